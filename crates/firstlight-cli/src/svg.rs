//! A timeline as an SVG picture: tracks of session, compile, execute and threads. It needs nothing but a viewer.

use crate::record::{Span, Spans};
use std::fmt::Write;
use std::time::Duration;

/// Width of the part that shows time, and of the labels left of it.
const WIDTH: f64 = 1400.;
const LABELS: f64 = 80.;
const MARGIN: f64 = 12.;
/// Height of a bar, and of its row.
const BAR: f64 = 22.;
const ROW: f64 = 26.;
/// Width of a character of a label.
const CHAR: f64 = 6.2;
/// Rows of steps inside of steps; deeper ones are drawn in the last.
const MAX_DEPTH: usize = 3;

/// A bar's text, the text shown where the pointer rests on it, its colour, and where it lies.
struct Bar<'a> {
    label: &'a str,
    title: String,
    hue: u32,
    row: usize,
    from: Duration,
    to: Duration,
}

/// Draws what a recording tells, under a title. `session` holds the spans of loading and of runs, `threads` when each thread ran
/// parts of kernels.
pub(crate) fn timeline(
    title: &str,
    session: &[(&str, Duration, Duration)],
    threads: &[(String, Vec<(Duration, Duration)>)],
    spans: &Spans<'_>,
) -> String {
    let ends = session.iter().map(|(_, _, to)| *to).chain(spans.compiled.iter().chain(&spans.ran).map(|span| span.to));
    let total = ends.max().unwrap_or_default().max(Duration::from_nanos(1));
    let depth = spans.ran.iter().map(|span| span.depth).max().unwrap_or(0).min(MAX_DEPTH - 1);
    let first_thread = 3 + depth;
    let n_rows = first_thread + threads.len();
    let top = 40.;
    let height = top + n_rows as f64 * ROW + 34. + MARGIN;
    let width = LABELS + WIDTH + 2. * MARGIN;
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{MARGIN}\" y=\"22\" font-size=\"15\">{}</text>",
        escaped(title),
        escaped(title)
    );
    let y_of = |row: usize| top + row as f64 * ROW;
    axis(&mut out, total, y_of(0), y_of(n_rows));
    let names = ["session", "compile", "execute"].into_iter().enumerate();
    for (row, name) in names.chain(threads.iter().enumerate().map(|(i, (name, _))| (first_thread + i, name.as_str()))) {
        let y = y_of(row) + BAR * 0.7;
        let _ = writeln!(out, "<text x=\"{MARGIN}\" y=\"{y:.1}\" font-weight=\"bold\">{name}</text>");
    }
    for (name, from, to) in session {
        let title = format!("{name}: {}", millis(to.saturating_sub(*from)));
        draw(&mut out, total, y_of(0), &Bar { label: name, title, hue: 215, row: 0, from: *from, to: *to });
    }
    let of = |span: &Span<'_>, what: &str, row: usize| {
        let by = if span.source.is_empty() { String::new() } else { format!(" by {}", span.source) };
        format!("{what} {} ({}{by}): {}", span.node, span.op, millis(span.time())).trim_start().to_owned()
            + if row > 2 { ", inside of a loop" } else { "" }
    };
    // Outer steps first, so that those inside of them are not covered.
    let mut ran: Vec<&Span<'_>> = spans.ran.iter().collect();
    ran.sort_by_key(|span| span.depth);
    let compiled = spans.compiled.iter().map(|span| (span, "compile", 1));
    let ran = ran.into_iter().map(|span| (span, "run", 2 + span.depth.min(MAX_DEPTH - 1)));
    for (span, what, row) in compiled.chain(ran) {
        let title = of(span, what, row);
        draw(
            &mut out,
            total,
            y_of(row),
            &Bar { label: span.node, title, hue: hue(span.op), row, from: span.from, to: span.to },
        );
    }
    for (row, (name, busy)) in (first_thread..).zip(threads) {
        for (from, to) in busy {
            let title = format!("{name} runs parts of a kernel: {}", millis(to.saturating_sub(*from)));
            draw(&mut out, total, y_of(row), &Bar { label: "", title, hue: 160, row, from: *from, to: *to });
        }
    }
    for at in &spans.awaited {
        mark(&mut out, total, *at, y_of(1), "the compiler waits for a value", "#b45309");
    }
    for at in &spans.first_answers {
        mark(&mut out, total, *at, y_of(2), "first answer", "#15803d");
    }
    out.push_str("</svg>\n");
    out
}

fn x_of(total: Duration, at: Duration) -> f64 {
    MARGIN + LABELS + WIDTH * (at.as_secs_f64() / total.as_secs_f64()).clamp(0., 1.)
}

/// Lines and labels at round times.
fn axis(out: &mut String, total: Duration, top: f64, bottom: f64) {
    let total_ms = total.as_secs_f64() * 1e3;
    let rough = total_ms / 8.;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1., 2., 5., 10.].into_iter().map(|n| n * power).find(|step| *step >= rough).unwrap_or(10. * power);
    let digits = if step >= 1. { 0 } else { (-step.log10()).ceil() as usize };
    for i in 0..=(total_ms / step) as usize {
        let ms = i as f64 * step;
        let x = x_of(total, Duration::from_secs_f64(ms / 1e3));
        let y = bottom + 16.;
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#555\">{ms:.digits$} ms</text>"
        );
    }
}

fn draw(out: &mut String, total: Duration, y: f64, bar: &Bar<'_>) {
    let (from, to) = (x_of(total, bar.from), x_of(total, bar.to));
    let width = (to - from).max(0.3);
    let light = if bar.row == 1 { 82 } else { 72 };
    let _ = write!(
        out,
        "<g><title>{}</title><rect x=\"{from:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{BAR}\" \
         fill=\"hsl({},60%,{light}%)\"{}/>",
        escaped(&bar.title),
        bar.hue,
        if width > 3. { " stroke=\"white\" stroke-width=\"0.5\"" } else { "" }
    );
    let fits = ((width - 6.) / CHAR).max(0.) as usize;
    if fits >= 3 {
        let (x, y) = (from + 3., y + BAR * 0.68);
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" pointer-events=\"none\">{}</text>",
            escaped(&shortened(bar.label, fits))
        );
    }
    out.push_str("</g>\n");
}

fn mark(out: &mut String, total: Duration, at: Duration, y: f64, title: &str, colour: &str) {
    let (x, bottom) = (x_of(total, at), y + BAR);
    let _ = writeln!(
        out,
        "<g><title>{title} at {}</title><line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" \
         stroke=\"{colour}\" stroke-width=\"2\"/></g>",
        millis(at)
    );
}

/// The end of a name says more than its beginning.
fn shortened(text: &str, n_chars: usize) -> String {
    let n = text.chars().count();
    match n <= n_chars {
        true => text.to_owned(),
        false => ['…'].into_iter().chain(text.chars().skip(n + 1 - n_chars)).collect(),
    }
}

/// A colour for each op, the same in every picture.
fn hue(op: &str) -> u32 {
    op.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)).wrapping_mul(2_654_435_761))
        % 360
}

fn millis(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

/// A text as XML may hold it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML has no way to write these.
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::What;
    use crate::record::tests::{compiled, ran, records};

    #[test]
    fn names_from_a_file_cannot_break_the_picture() {
        assert_eq!(escaped("a<b>&\"'\u{0}\u{1b}é"), "a&lt;b&gt;&amp;&quot;&#39;\u{FFFD}\u{FFFD}é");
        let evil = "</title><script>alert(1)</script>";
        let list = records(&[(0, What::Compiling), (5, compiled(evil)), (5, What::Running), (900, ran(evil))]);
        let picture = timeline(
            evil,
            &[("model_run", Duration::ZERO, Duration::from_micros(900))],
            &[("worker 1".to_owned(), vec![(Duration::ZERO, Duration::from_micros(5))])],
            &Spans::of(&list),
        );
        assert!(picture.contains(">worker 1</text>"));
        assert!(!picture.contains("<script"), "{picture}");
        assert_eq!(picture.matches("<svg").count(), 1);
        for tag in ["title", "text", "g", "svg"] {
            let opened = picture.matches(&format!("<{tag}>")).count() + picture.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, picture.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn long_labels_keep_their_end() {
        assert_eq!(shortened("/encoder/layer.11/MatMul", 8), "….MatMul".replace('.', "/"));
        assert_eq!(shortened("conv", 8), "conv");
    }
}
