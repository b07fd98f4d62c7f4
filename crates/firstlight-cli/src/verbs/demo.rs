//! `firstlight demo`.

use crate::args::{PipelineArg, threads};
use crate::digits::{self, Answer, Classifier, HeldOut};
use crate::draw::{self, Caption, Cell, Look};
use crate::print::BAD;
use crate::progress::n_nodes;
use crate::random::Random;
use crate::record::{Recorder, Span, Spans};
use crate::table::{count, size};
use crate::{Failure, make_folder, print, timeline};
use anstyle::Style;
use clap::Args;
use firstlight::{RunOptions, files};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Reads handwritten digits with a model that is part of the program, and shows how that ran.
///
/// The digits are drawn by lot, by --seed, from those that were held out of training. They are read one at a time: the
/// first run compiles the model while it executes it, as the two rows under the digits show; the others replay it.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// How many digits to show, at most 360
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=360))]
    pub(crate) count: u16,
    /// Which digits to show: another number draws others
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write the model and the shown digits to a folder: model.onnx, digits.npz
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// Draw with ASCII only
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Working threads; 0 is as many as the machine offers [default: $FIRSTLIGHT_NUM_THREADS, $OMP_NUM_THREADS, or 0]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Whether the first run compiles on another thread than it executes on
    #[arg(long, value_enum, default_value_t = PipelineArg::Auto)]
    pub(crate) pipeline: PipelineArg,
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Ten digits, and ten others:
  $ firstlight demo
  $ firstlight demo --seed 1

  For a program to read:
  $ firstlight demo --count 3 --json

  Keep the model and the digits, and use them as any other model:
  $ firstlight demo --save demo
  $ firstlight run demo/model.onnx --input demo/digits.npz
";

/// What `--save` writes.
const MODEL_FILE: &str = "model.onnx";
const DIGITS_FILE: &str = "digits.npz";

/// Reads digits, draws them and says how long each step took.
pub(crate) fn demo(args: &DemoArgs) -> Result<(), Failure> {
    let n_threads = threads(args.threads)?;
    let held_out = HeldOut::read()?;
    let picked = Random::new(args.seed).pick(args.count.into(), held_out.images.len());

    let clock = Instant::now();
    let mut classifier = Classifier::load(n_threads, args.pipeline.into())?;
    let load = clock.elapsed();

    let recorder = Recorder::new();
    let mut shown = Vec::new();
    for index in picked {
        let first = RunOptions { events: Some(&recorder), ..RunOptions::default() };
        let options = if shown.is_empty() { first } else { RunOptions::default() };
        shown.push(Shown::new(index, &held_out, &mut classifier, &options)?);
    }
    let records = recorder.take();
    let mut all = Vec::new();
    for index in 0..held_out.images.len() {
        all.push(Shown::new(index, &held_out, &mut classifier, &RunOptions::default())?);
    }
    let demo = Demo { args, held_out, classifier, load, shown, all, spans: Spans::of(&records) };
    if let Some(folder) = &args.save {
        demo.save(folder)?;
    }
    if args.json {
        return print::json(&demo.json());
    }
    let (look, width) = (Look::of_stdout(args.ascii), draw::width());
    let timeline = look.plain(timeline::text(&records, width.min(100)));
    print::data(&demo.page(look, width, &timeline))
}

/// A digit, what the model said and how long that took.
#[derive(Clone, Copy, Debug)]
struct Shown {
    index: usize,
    label: u8,
    answer: Answer,
    time: Duration,
}

impl Shown {
    fn new(
        index: usize,
        held_out: &HeldOut,
        classifier: &mut Classifier,
        options: &RunOptions<'_>,
    ) -> Result<Shown, Failure> {
        let clock = Instant::now();
        let answer = classifier.read(&held_out.images[index], options)?;
        Ok(Shown { index, label: held_out.labels[index], answer, time: clock.elapsed() })
    }

    fn is_right(&self) -> bool {
        self.answer.digit == self.label
    }

    fn json(&self) -> Value {
        json!({
            "index": self.index, "label": self.label, "answer": self.answer.digit,
            "confidence": self.answer.confidence, "is_right": self.is_right(), "ms": ms(self.time),
        })
    }
}

/// All that there is to tell.
#[derive(Debug)]
struct Demo<'a> {
    args: &'a DemoArgs,
    held_out: HeldOut,
    classifier: Classifier,
    load: Duration,
    /// The digits that were picked; the first of them is the first run.
    shown: Vec<Shown>,
    /// Every digit that was held out.
    all: Vec<Shown>,
    /// Of the first run.
    spans: Spans<'a>,
}

impl Demo<'_> {
    fn page(&self, look: Look, width: usize, timeline: &str) -> String {
        let (n_all, all_right) = (self.all.len(), n_right(&self.all));
        let mut text = format!(
            "{} of {n_all} handwritten digits that were kept out of training (--seed {}).\n\
             Under each: what the model reads, and how sure it is.\n\n{}\n",
            self.shown.len(),
            self.args.seed,
            self.digits(look, width),
        );
        let mut line = |line: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{line}");
        };
        line(format_args!(
            "{} of {} right; of all {n_all}, {all_right} right ({:.1}%)\n",
            n_right(&self.shown),
            self.shown.len(),
            100. * all_right as f64 / n_all as f64
        ));
        line(format_args!("The first run, compiled while it executed:\n\n{}", timeline.trim_end_matches('\n')));
        let n_steps = self.spans.compiled.len();
        if let Some(first) = self.spans.ran.first() {
            let n_before = self.spans.compiled.iter().filter(|span| span.to <= first.from).count();
            line(format_args!(
                "The first step began when {n_before} of {n_steps} were compiled. In a gap it gets memory."
            ));
        }
        let stats = self.classifier.session().stats();
        let [best, median] = self.later();
        line(format_args!(
            "\n  load           {:>8}   a model of {} with {} nodes",
            millis(self.load),
            size(digits::MODEL.len()),
            self.n_nodes(),
        ));
        let first = self.shown.first().map(|shown| shown.time).unwrap_or_default();
        line(format_args!(
            "  first answer   {:>8}   {n_steps} steps, compiled and run on {}",
            millis(first),
            count(stats.threads, "thread"),
        ));
        line(format_args!("  later answers  {:>8}   the median of {n_all}; the best {}", millis(median), millis(best)));
        line(format_args!("\n{}", self.next()));
        text
    }

    fn digits(&self, look: Look, width: usize) -> String {
        let cell = |shown: &Shown| {
            let Answer { digit, confidence } = shown.answer;
            // One digit, then the rest of the width.
            let rest = look.columns().min(8) - 1;
            let text = format!("{digit}{:>rest$}", format!("{:.1}%", 100. * confidence));
            let wrong = if shown.is_right() { String::new() } else { look.plain(format!("✗ is {}", shown.label)) };
            Cell {
                image: &self.held_out.images[shown.index],
                captions: [Caption { text, style: Style::new() }, Caption { text: wrong, style: BAD }],
            }
        };
        draw::sheet(&self.shown.iter().map(cell).collect::<Vec<_>>(), look, width)
    }

    /// What to try now.
    fn next(&self) -> String {
        let folder = self.args.save.as_deref().unwrap_or(Path::new("demo"));
        let (model, images) = (quoted(&folder.join(MODEL_FILE)), quoted(&folder.join(DIGITS_FILE)));
        let first = match &self.args.save {
            Some(_) => format!("The model and these digits are in {model} and {images}.\n\nNext:\n"),
            None => "Next:\n  firstlight demo --save demo  # writes the model and these digits\n".to_owned(),
        };
        format!(
            "{first}  firstlight run {model} --input {images} --repeat 10\n  \
             firstlight explain {model}\n  \
             firstlight demo --seed {}\n  \
             firstlight help  # what else there is, for models of your own\n\
             In a checkout, `cargo run --release --` stands for `firstlight`;\n\
             `cargo install --locked --path crates/firstlight-cli` installs it.\n",
            self.args.seed.wrapping_add(1)
        )
    }

    /// The best and the median time of a run that replays.
    fn later(&self) -> [Duration; 2] {
        let mut times: Vec<Duration> = self.all.iter().map(|shown| shown.time).collect();
        times.sort_unstable();
        [times.first(), times.get(times.len() / 2)].map(|time| time.copied().unwrap_or_default())
    }

    fn n_nodes(&self) -> usize {
        n_nodes(self.classifier.session())
    }

    fn json(&self) -> Value {
        let us = |time: Duration| time.as_nanos() as f64 / 1e3;
        let spans = |spans: &[Span<'_>]| -> Vec<Value> {
            let one = |s: &Span<'_>| json!({"node": s.node, "op": s.op, "source": s.source, "from_us": us(s.from), "to_us": us(s.to)});
            spans.iter().map(one).collect()
        };
        let stats = self.classifier.session().stats();
        let [best, median] = self.later();
        json!({
            "seed": self.args.seed,
            "digits": self.shown.iter().map(Shown::json).collect::<Vec<_>>(),
            "n_right": n_right(&self.shown),
            "held_out": {"n_digits": self.all.len(), "n_right": n_right(&self.all)},
            "model": {"n_bytes": digits::MODEL.len(), "n_nodes": self.n_nodes(), "n_steps": self.spans.compiled.len()},
            "load_ms": ms(self.load),
            "first_ms": self.shown.first().map(|shown| ms(shown.time)),
            "later_ms": {"n_runs": self.all.len(), "median": ms(median), "best": ms(best)},
            "timeline": {"compile": spans(&self.spans.compiled), "execute": spans(&self.spans.ran)},
            "threads": stats.threads,
            "owned_peak_bytes": stats.owned_peak_bytes,
        })
    }

    fn save(&self, folder: &Path) -> Result<(), Failure> {
        make_folder(folder)?;
        files::write(folder.join(MODEL_FILE), digits::MODEL)?;
        let images: Vec<_> = self.shown.iter().map(|shown| &self.held_out.images[shown.index]).collect();
        Ok(files::write_npz(folder.join(DIGITS_FILE), [("image", &digits::batch(&images)?)])?)
    }
}

fn n_right(shown: &[Shown]) -> usize {
    shown.iter().filter(|shown| shown.is_right()).count()
}

fn ms(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// Milliseconds with two or three decimals.
fn millis(time: Duration) -> String {
    let ms = ms(time);
    let n_decimals = 2 + usize::from(ms < 1.);
    format!("{ms:.n_decimals$} ms")
}

/// A path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:+".contains(c);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
