//! Text for people: columns, sizes, names that a terminal can be shown.

use anstyle::Style;
use std::fmt::Write;

/// A heading of a section.
const HEADING: Style = Style::new().bold();

/// Lines of cells, each column as wide as its widest cell.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<(Style, Vec<String>)>,
    /// Columns of numbers: they end at the same place.
    right: Vec<usize>,
}

impl Table {
    pub(crate) fn new(right: &[usize]) -> Table {
        Table { rows: vec![], right: right.to_vec() }
    }

    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.styled(Style::new(), cells);
    }

    /// A row in a colour.
    pub(crate) fn styled<S: Into<String>>(&mut self, style: Style, cells: impl IntoIterator<Item = S>) {
        self.rows.push((style, cells.into_iter().map(|cell| shown(&cell.into())).collect()));
    }

    /// Appends the lines to a text, indented by two.
    pub(crate) fn write(&self, out: &mut String) {
        let n_columns = self.rows.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|(_, row)| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..n_columns).map(width).collect();
        for (style, row) in &self.rows {
            let mut line = String::from(" ");
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Writing to a string does not fail.
                let _ = match self.right.contains(&column) {
                    true => write!(line, " {cell:>width$}"),
                    false => write!(line, " {cell:<width$}"),
                };
                line.push(' ');
            }
            let _ = writeln!(out, "{style}{}{style:#}", line.trim_end());
        }
    }
}

/// Appends a section's heading after an empty line.
pub(crate) fn heading(out: &mut String, title: &str, rest: &str) {
    let gap = if rest.is_empty() { "" } else { "  " };
    let _ = writeln!(out, "\n{HEADING}{title}{HEADING:#}{gap}{}", shown(rest));
}

/// A text from a file as it may be shown: what would move a terminal's cursor or colour is escaped.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() => _ = write!(out, "{}", c.escape_debug()),
            c => out.push(c),
        }
    }
    out
}

/// The first `width` characters of a text, with a mark where there is more.
pub(crate) fn short(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// The last `width` characters of a text, with a mark where there is more: what sets long names apart is at their end.
pub(crate) fn tail(text: &str, width: usize) -> String {
    match text.chars().count().checked_sub(width.saturating_sub(1)) {
        Some(cut) if cut > 1 => ['…'].into_iter().chain(text.chars().skip(cut)).collect(),
        _ => text.to_owned(),
    }
}

/// A size as people read it, in powers of 1000.
pub(crate) fn size(n_bytes: usize) -> String {
    let mut value = n_bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 999.95 {
            return if unit == "B" { format!("{n_bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1e3;
    }
    format!("{value:.1} TB")
}

/// A count of operations as people read it.
pub(crate) fn operations(n: u64) -> String {
    let mut value = n as f64;
    for unit in ["", "k", "M", "G"] {
        if value < 999.95 {
            return if unit.is_empty() { n.to_string() } else { format!("{value:.1}{unit}") };
        }
        value /= 1e3;
    }
    format!("{value:.1}T")
}

/// `1 node`, `2 nodes`.
pub(crate) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_control_characters_are_shown() {
        let mut table = Table::new(&[1]);
        table.row(["a", "1"]);
        table.row(["longer\u{1b}[31m", "20"]);
        let mut out = String::new();
        table.write(&mut out);
        assert_eq!(out, "  a                  1\n  longer\\u{1b}[31m  20\n");
    }

    #[test]
    fn sizes_and_counts() {
        assert_eq!([size(0), size(999), size(1000), size(1 << 20)], ["0 B", "999 B", "1.0 kB", "1.0 MB"]);
        assert_eq!(size(999_960), "1.0 MB");
        assert_eq!([operations(12), operations(1_234_000_000)], ["12", "1.2G"]);
        assert_eq!([count(1, "node"), count(0, "node")], ["1 node", "0 nodes"]);
        assert_eq!([short("abc", 3), short("abcd", 3)], ["abc", "ab…"]);
        assert_eq!([tail("abc", 3), tail("abcd", 3)], ["abc", "…cd"]);
    }
}
