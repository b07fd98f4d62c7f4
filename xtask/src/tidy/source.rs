//! Rust text taken apart: code without comments and strings, and comments without code.

/// One Rust file. `code` and `comments` have its lines, each with the other's text blanked.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) code: Vec<String>,
    pub(super) comments: Vec<String>,
    /// The first line of the unit tests at the end of the file, or the number of lines.
    pub(super) tests_from: usize,
    pub(super) is_generated: bool,
}

impl Source {
    pub(super) fn new(name: String, text: &str) -> Source {
        let (code, comments) = split(text);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let (code, comments) = (lines(&code), lines(&comments));
        let tests_from = code.iter().position(|line| line.trim_start().starts_with("#[cfg(test)]"));
        let is_generated = comments.first().is_some_and(|line| line.contains("@generated"));
        Source { name, tests_from: tests_from.unwrap_or(code.len()), code, comments, is_generated }
    }

    /// The crate's folder name, of files under `crates/`.
    pub(super) fn room(&self) -> Option<&str> {
        self.name.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the file holds only tests, benchmarks or examples.
    pub(super) fn is_test(&self) -> bool {
        ["/tests/", "/benches/", "/examples/"].iter().any(|part| self.name.contains(part))
            || self.name.ends_with("/tests.rs")
            || self.name.ends_with("_tests.rs")
    }

    /// Numbered lines of code outside the unit tests, from 1.
    pub(super) fn shipped(&self) -> impl Iterator<Item = (usize, &str)> {
        let n = if self.is_test() { 0 } else { self.tests_from };
        self.code.iter().take(n).enumerate().map(|(i, line)| (i + 1, line.as_str()))
    }

    /// How often `word` stands in the code as a whole word.
    pub(super) fn count_word(&self, word: &str) -> usize {
        self.code.iter().map(|line| words(line).filter(|w| *w == word).count()).sum()
    }
}

/// The identifiers and keywords of a line.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Code with comments and the insides of strings blanked, and comments with all else blanked.
fn split(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let (mut code, mut comments) = (String::with_capacity(text.len()), String::new());
    let mut i = 0;
    // Appends to one side; line ends go to both, so that line numbers stay.
    let put = |code: &mut String, comments: &mut String, c: char, is_code: bool, is_comment: bool| {
        for (side, is_mine) in [(code, is_code), (comments, is_comment)] {
            side.push(if c == '\n' || is_mine { c } else { ' ' });
        }
    };
    while i < chars.len() {
        let is_word_before = i > 0 && (at(i - 1).is_alphanumeric() || at(i - 1) == '_');
        let end = match at(i) {
            '/' if at(i + 1) == '/' => Some((line_end(&chars, i), true)),
            '/' if at(i + 1) == '*' => Some((block_end(&chars, i), true)),
            '"' => Some((string_end(&chars, i), false)),
            'r' if !is_word_before || at(i - 1) == 'b' => raw_end(&chars, i).map(|end| (end, false)),
            '\'' => char_end(&chars, i).map(|end| (end, false)),
            _ => None,
        };
        let Some((end, is_comment)) = end else {
            put(&mut code, &mut comments, at(i), true, false);
            i += 1;
            continue;
        };
        for j in i..end.min(chars.len()) {
            // A string keeps its first and last character, so that code still reads as code.
            let is_edge = !is_comment && (j == i || j + 1 == end);
            put(&mut code, &mut comments, at(j), is_edge, is_comment);
        }
        i = end.max(i + 1);
    }
    (code, comments)
}

fn line_end(chars: &[char], from: usize) -> usize {
    chars[from..].iter().position(|c| *c == '\n').map_or(chars.len(), |n| from + n)
}

fn block_end(chars: &[char], from: usize) -> usize {
    let (mut depth, mut i) = (0, from);
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') if depth == 1 => return i + 2,
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
    }
    chars.len()
}

fn string_end(chars: &[char], from: usize) -> usize {
    let mut i = from + 1;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

/// The end of a raw string whose `r` stands at `from`, if one does.
fn raw_end(chars: &[char], from: usize) -> Option<usize> {
    let hashes = chars[from + 1..].iter().take_while(|c| **c == '#').count();
    let open = from + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closes =
        |i: usize| chars[i] == '"' && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    (open + 1..chars.len()).find(|i| closes(*i)).map(|i| i + 1 + hashes)
}

/// The end of a character literal that starts at `from`; a lifetime has none.
fn char_end(chars: &[char], from: usize) -> Option<usize> {
    match (chars.get(from + 1)?, chars.get(from + 2)?) {
        ('\\', _) => chars[from + 3..].iter().position(|c| *c == '\'').map(|n| from + 4 + n),
        (_, '\'') => Some(from + 3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_leave_the_code() {
        let text =
            "let a = \"unsafe // no\"; // unsafe yes\nlet b = r#\"unsafe \" \"#; /* unsafe\n unsafe */ unsafe {}\n";
        let s = Source::new("x.rs".into(), text);
        assert_eq!(s.count_word("unsafe"), 1);
        assert_eq!(s.comments.iter().filter(|line| line.contains("unsafe")).count(), 3);
        assert_eq!((s.code.len(), s.comments.len()), (3, 3));
    }

    #[test]
    fn lifetimes_are_not_characters() {
        let s = Source::new("x.rs".into(), "fn f<'a>(x: &'a str) -> char { '\"' } // it's\nunsafe fn g() { '\\''; }\n");
        assert_eq!(s.count_word("unsafe"), 1);
        assert!(s.code[0].contains("-> char") && s.comments[0].contains("it's"));
    }

    #[test]
    fn words_are_whole() {
        let s = Source::new("x.rs".into(), "#![forbid(unsafe_code)]\n");
        assert_eq!((s.count_word("unsafe"), s.count_word("unsafe_code")), (0, 1));
    }

    #[test]
    fn unit_tests_are_not_shipped() {
        let s = Source::new("crates/a/src/lib.rs".into(), "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\n");
        assert_eq!(s.shipped().count(), 1);
        assert_eq!(s.room(), Some("a"));
    }
}
