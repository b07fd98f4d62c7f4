//! Images drawn with characters, side by side.

use crate::digits::{Image, SIDE, WHITE};
use anstyle::{Ansi256Color, Style};
use std::fmt::Write;
use std::io::IsTerminal;

/// What a stream can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Greys, two pixels a character.
    Colour,
    /// Half blocks: a pixel is there or not.
    Blocks,
    /// Characters of ASCII that are more or less dark, two a pixel.
    Ascii,
}

/// An image and what stands under it.
#[derive(Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) image: &'a Image,
    /// One text for each line.
    pub(crate) captions: [Caption; 2],
}

/// A text in its style.
#[derive(Debug, Default)]
pub(crate) struct Caption {
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// Columns between images.
const GAP: usize = 3;
/// From paper to ink.
const SHADES: &[u8; 5] = b" .+%@";

impl Look {
    /// What standard output can show: ASCII where the locale says so, colours on a terminal unless the user objects.
    pub(crate) fn of_stdout(is_ascii: bool) -> Look {
        let choice = anstream::AutoStream::choice(&std::io::stdout());
        if is_ascii || !is_utf8(|name| std::env::var(name).ok()) {
            return Look::Ascii;
        }
        // `choice` says yes to a file where the user forces colours.
        if choice == anstream::ColorChoice::Never { Look::Blocks } else { Look::Colour }
    }

    /// Columns of an image.
    pub(crate) fn columns(self) -> usize {
        if self == Look::Ascii { 2 * SIDE } else { SIDE }
    }

    /// The same text in characters that can be shown.
    pub(crate) fn plain(self, text: String) -> String {
        if self != Look::Ascii {
            return text;
        }
        let plain = |c: char| match c {
            '▁' | '▂' | '▃' => '.',
            '▄' | '▅' => '=',
            '▆' | '▇' | '█' => '#',
            '✗' => 'x',
            _ => c,
        };
        text.chars().map(plain).collect()
    }
}

/// Whether the locale is one of UTF-8, or nothing says what it is.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_dumb = variable("TERM").is_some_and(|term| term == "dumb");
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
    let says_utf8 = |locale: String| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    };
    !is_dumb && locale.is_none_or(says_utf8)
}

/// Columns of the terminal that standard output is; `$COLUMNS` or 80 where it is none.
pub(crate) fn width() -> usize {
    let terminal = if std::io::stdout().is_terminal() { terminal_size::terminal_size() } else { None };
    let said = || std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    terminal.map(|(width, _)| usize::from(width.0)).or_else(said).unwrap_or(80).clamp(24, 1000)
}

/// The images in rows of about equal length, as many in a row as `width` columns take.
pub(crate) fn sheet(cells: &[Cell<'_>], look: Look, width: usize) -> String {
    let most = ((width + GAP) / (look.columns() + GAP)).max(1);
    let n_rows = cells.len().div_ceil(most).max(1);
    let n_columns = cells.len().div_ceil(n_rows).max(1);
    let rows: Vec<String> = cells.chunks(n_columns).map(|row| one_row(row, look)).collect();
    rows.join("\n")
}

fn one_row(cells: &[Cell<'_>], look: Look) -> String {
    let mut text = String::new();
    let n_lines = if look == Look::Ascii { SIDE } else { SIDE / 2 };
    for line in 0..n_lines {
        let parts: Vec<String> = cells.iter().map(|cell| image_line(cell.image, line, look)).collect();
        push_line(&mut text, &parts);
    }
    for i in 0..2 {
        if cells.iter().all(|cell| cell.captions[i].text.is_empty()) {
            continue;
        }
        let caption = |cell: &Cell<'_>| {
            let Caption { text, style } = &cell.captions[i];
            let n_spaces = look.columns().saturating_sub(text.chars().count());
            format!("{style}{text}{style:#}{:n_spaces$}", "")
        };
        push_line(&mut text, &cells.iter().map(caption).collect::<Vec<_>>());
    }
    text
}

fn push_line(text: &mut String, parts: &[String]) {
    let line = parts.join(&" ".repeat(GAP));
    text.push_str(line.trim_end());
    text.push('\n');
}

/// A line of characters of an image: one line of its pixels, or two with half blocks.
fn image_line(image: &Image, line: usize, look: Look) -> String {
    let pixels = |y: usize| image.iter().copied().skip(y * SIDE).take(SIDE);
    let mut text = String::new();
    match look {
        Look::Colour => {
            for (above, below) in pixels(2 * line).zip(pixels(2 * line + 1)) {
                let style = Style::new().fg_color(Some(grey(above).into())).bg_color(Some(grey(below).into()));
                // Writing to a string does not fail.
                let _ = write!(text, "{style}▀{style:#}");
            }
        }
        Look::Blocks => {
            let is_ink = |pixel: u8| pixel >= WHITE / 2;
            for (above, below) in pixels(2 * line).zip(pixels(2 * line + 1)) {
                text.push(match (is_ink(above), is_ink(below)) {
                    (true, true) => '█',
                    (true, false) => '▀',
                    (false, true) => '▄',
                    (false, false) => ' ',
                });
            }
        }
        Look::Ascii => {
            for pixel in pixels(line) {
                let shade = usize::from(pixel.min(WHITE)) * (SHADES.len() - 1) / usize::from(WHITE);
                let shade = char::from(SHADES[shade]);
                text.extend([shade, shade]);
            }
        }
    }
    text
}

/// One of the 24 greys that terminals have.
fn grey(pixel: u8) -> Ansi256Color {
    let step = u16::from(pixel.min(WHITE)) * 23 / u16::from(WHITE);
    Ansi256Color(232 + step as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bright upper half.
    fn image() -> Image {
        std::array::from_fn(|i| if i < 32 { WHITE } else { 0 })
    }

    fn drawn(n: usize, look: Look, width: usize) -> Vec<String> {
        let image = image();
        let caption = |text: &str| Caption { text: text.into(), style: Style::new() };
        let cell = || Cell { image: &image, captions: [caption("7  99.0%"), Caption::default()] };
        sheet(&(0..n).map(|_| cell()).collect::<Vec<_>>(), look, width).lines().map(str::to_owned).collect()
    }

    #[test]
    fn images_stand_side_by_side_as_far_as_the_width_goes() {
        let blocks = "████████";
        assert_eq!(drawn(1, Look::Blocks, 80), [blocks, blocks, "", "", "7  99.0%"]);
        let lines = drawn(10, Look::Blocks, 80);
        assert_eq!(lines.len(), 2 * 5 + 1);
        assert_eq!(lines[0], [blocks; 5].join("   "));
        assert!(drawn(10, Look::Blocks, 107).len() == 5 && drawn(10, Look::Blocks, 106).len() > 5);
        assert!(drawn(3, Look::Blocks, 1)[0] == blocks);
        let lines = drawn(10, Look::Ascii, 80);
        assert_eq!(lines[0], vec!["@".repeat(16); 4].join("   "));
        assert!(lines.iter().all(|line| line.is_ascii() && line.len() <= 80));
    }

    #[test]
    fn greys_go_from_the_darkest_to_the_lightest() {
        let greys: Vec<u8> = (0..=WHITE).map(|pixel| grey(pixel).0).collect();
        assert!(greys.windows(2).all(|pair| pair[0] <= pair[1]), "{greys:?}");
        assert_eq!((greys[0], greys[16]), (232, 255));
    }

    #[test]
    fn the_locale_decides() {
        let with = |name: &'static str, value: &'static str| move |n: &str| (n == name).then(|| value.to_owned());
        assert!(is_utf8(|_| None) && is_utf8(with("LANG", "en_US.UTF-8")) && is_utf8(with("LC_ALL", "C.utf8")));
        assert!(!is_utf8(with("LANG", "C")) && !is_utf8(with("LC_ALL", "POSIX")) && !is_utf8(with("TERM", "dumb")));
        assert!(is_utf8(with("LC_ALL", "")));
    }
}
