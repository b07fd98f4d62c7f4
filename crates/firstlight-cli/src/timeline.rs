//! What was compiled and executed when, drawn as text.

use crate::record::{Record, Span, Spans};
use std::time::Duration;

/// How full a cell is, in eighths.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Two rows, `compile` and `execute`, and a scale under them, each `width` characters wide at most and 24 at least.
///
/// A cell is as full as that part of the time was busy; what took any time at all shows. Empty where nothing ran.
pub(crate) fn text(records: &[Record], width: usize) -> String {
    let spans = Spans::of(records);
    let all = || spans.compiled.iter().chain(&spans.ran);
    let (Some(from), Some(to)) = (all().map(|s| s.from).min(), all().map(|s| s.to).max()) else {
        return String::new();
    };
    const LABEL: usize = "execute ".len();
    let n_cells = width.saturating_sub(LABEL).max(16);
    let row = |spans: &[Span<'_>]| -> String {
        let shares = busy(spans.iter().filter(|span| span.depth == 0), from, to, n_cells);
        let bar = |share: f64| if share > 0. { BARS[((share * 8.).round() as usize).clamp(1, 8)] } else { BARS[0] };
        shares.into_iter().map(bar).collect::<String>().trim_end().to_owned()
    };
    let end = format!("{} ms", millis(to.saturating_sub(from)));
    let scale = format!("{:<LABEL$}0{end:>n$}", "", n = n_cells - 1);
    let (compile, execute) = (row(&spans.compiled), row(&spans.ran));
    format!("{:<LABEL$}{compile}\n{:<LABEL$}{execute}\n{scale}\n", "compile", "execute")
}

/// The busy share of each cell of a time.
fn busy<'a>(spans: impl Iterator<Item = &'a Span<'a>>, from: Duration, to: Duration, n_cells: usize) -> Vec<f64> {
    let mut shares = vec![0f64; n_cells];
    let total = to.saturating_sub(from).as_nanos().max(1);
    let cells = n_cells as u128;
    for span in spans {
        // In nanoseconds times the number of cells, in which every cell is `total` long.
        let at = |time: Duration| (time.saturating_sub(from).as_nanos() * cells).min(total * cells);
        let (start, end) = (at(span.from), at(span.to));
        let first = (start / total).min(cells - 1);
        let last = end.div_ceil(total).saturating_sub(1).clamp(first, cells - 1);
        for i in first..=last {
            let inside = end.min((i + 1) * total).saturating_sub(start.max(i * total));
            shares[i as usize] += (inside as f64 / total as f64).max(1e-6);
        }
    }
    shares
}

/// Milliseconds with three figures that say something.
fn millis(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    match ms {
        _ if ms >= 100. => format!("{ms:.0}"),
        _ if ms >= 10. => format!("{ms:.1}"),
        _ if ms >= 1. => format!("{ms:.2}"),
        _ => format!("{ms:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::What;
    use crate::record::tests::{compiled, ran, records};

    #[test]
    fn two_rows_and_a_scale() {
        let list = records(&[
            (0, What::Compiling),
            (8, compiled("a")),
            (8, What::Running),
            (16, ran("a")),
            (14, What::Compiling),
            (15, compiled("b")),
            (15, What::Running),
            (16, ran("b")),
        ]);
        let lines = text(&list, 24);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines, ["compile ████████      █", "execute         ████████", "        0       0.016 ms"]);
        assert_eq!(text(&[], 80), "");
    }
}
