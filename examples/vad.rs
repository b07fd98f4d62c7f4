//! When somebody speaks: voice activity over a WAV stream, chunk by chunk, with the model's state carried along.
//!
//! A model: Silero VAD 5 or later, which its Python package ships. Audio at 16 or 8 kHz, from a file or a pipe:
//!
//! ```text
//! pip download --no-deps silero-vad && unzip -j silero_vad-*.whl 'silero_vad/data/silero_vad.onnx'
//! cargo run --release -p firstlight-examples --bin vad -- silero_vad.onnx speech.wav
//! ffmpeg -i talk.mp3 -ac 1 -ar 16000 -f wav - | cargo run --release -p firstlight-examples --bin vad -- silero_vad.onnx -
//! ```

use clap::Parser;
use firstlight::{Binding, Session, Tensor};
use hound::{SampleFormat, WavReader};
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Read, stdin};
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints the segments of a recording in which somebody speaks, in seconds, as they end.
#[derive(Debug, Parser)]
struct Args {
    /// Silero VAD as an ONNX model.
    model: PathBuf,
    /// A WAV file of 16 or 8 kHz, or `-` for standard input.
    audio: PathBuf,
    /// Probability from which a chunk counts as speech; speech ends 0.15 below.
    #[arg(long, default_value_t = 0.5)]
    threshold: f32,
    /// Silence that ends a segment, in seconds; shorter pauses belong to it.
    #[arg(long, default_value_t = 0.1)]
    min_silence: f64,
    /// Shortest segment to print, in seconds.
    #[arg(long, default_value_t = 0.25)]
    min_speech: f64,
    /// Prints the probability of every chunk as well.
    #[arg(long)]
    chunks: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let audio: Box<dyn Read> = match args.audio.as_os_str() == "-" {
        true => Box::new(stdin().lock()),
        false => {
            Box::new(BufReader::new(File::open(&args.audio).map_err(|e| format!("{}: {e}", args.audio.display()))?))
        }
    };
    let mut wav = WavReader::new(audio)?;
    let rate = wav.spec().sample_rate;
    if rate != 16_000 && rate != 8_000 {
        return Err(format!("the audio has {rate} samples a second; the model takes 16000 or 8000: resample it").into());
    }
    let mut detector = Detector::new(&Session::load(&args.model)?, rate)?;
    let mut segments = Segments { args, speech: None, silence: None };
    let mut chunk = vec![0f32; detector.chunk];
    let mut samples = mono(&mut wav);
    let mut n_samples = 0;
    loop {
        let start = n_samples as f64 / f64::from(rate);
        let n_read = fill(&mut chunk, &mut samples)?;
        if n_read == 0 {
            segments.end(start);
            return Ok(());
        }
        n_samples += n_read;
        let probability = detector.probability(&chunk)?;
        if args.chunks {
            println!("{start:9.3} s  {probability:.3}");
        }
        segments.push(start, probability);
    }
}

/// The model with what it remembers between chunks.
struct Detector {
    binding: Binding,
    /// Samples of a chunk.
    chunk: usize,
    /// The end of the last chunk: the model sees it before the next one.
    context: Vec<f32>,
    state: Vec<f32>,
    state_dims: Vec<usize>,
}

impl Detector {
    fn new(session: &Session, rate: u32) -> Result<Detector, Box<dyn Error>> {
        let (chunk, n_context) = if rate == 16_000 { (512, 64) } else { (256, 32) };
        let state = session.inputs().iter().find(|input| input.name == "state");
        let shape = state.and_then(|input| input.shape.as_ref()).ok_or("the model has no input \"state\"")?;
        // The batch is 1.
        let state_dims: Vec<usize> = shape.iter().map(|dim| dim.known().unwrap_or(1)).collect();
        let state = vec![0f32; state_dims.iter().product()];
        let mut binding = session.bind();
        if session.inputs().iter().any(|input| input.name == "sr") {
            binding.set("sr", Tensor::scalar(i64::from(rate)))?;
        }
        Ok(Detector { binding, chunk, context: vec![0.0; n_context], state, state_dims })
    }

    /// The probability that a chunk is speech. Buffers stay, so that a chunk costs no allocation.
    fn probability(&mut self, chunk: &[f32]) -> Result<f32, Box<dyn Error>> {
        let n_context = self.context.len();
        let input = self.binding.input::<f32>("input", &[1, n_context + chunk.len()])?;
        input[..n_context].copy_from_slice(&self.context);
        input[n_context..].copy_from_slice(chunk);
        self.binding.input::<f32>("state", &self.state_dims)?.copy_from_slice(&self.state);
        self.binding.run()?;
        let state = self.binding.output("stateN")?.values::<f32>()?;
        if state.len() != self.state.len() {
            return Err(format!("the model's state has {} numbers, then {}", self.state.len(), state.len()).into());
        }
        self.state.copy_from_slice(state);
        self.context.copy_from_slice(&chunk[chunk.len() - n_context..]);
        Ok(*self.binding.output("output")?.values::<f32>()?.first().ok_or("the model gave no probability")?)
    }
}

/// Turns probabilities into segments.
struct Segments<'a> {
    args: &'a Args,
    /// Where the running segment began.
    speech: Option<f64>,
    /// Where the pause in it began.
    silence: Option<f64>,
}

impl Segments<'_> {
    fn push(&mut self, start: f64, probability: f32) {
        if probability >= self.args.threshold {
            self.speech.get_or_insert(start);
            self.silence = None;
        } else if self.speech.is_some() && probability < self.args.threshold - 0.15 {
            let silence = *self.silence.get_or_insert(start);
            if start - silence >= self.args.min_silence {
                self.end(silence);
            }
        }
    }

    fn end(&mut self, end: f64) {
        let end = self.silence.take().unwrap_or(end);
        if let Some(start) = self.speech.take().filter(|start| end - start >= self.args.min_speech) {
            println!("speech {start:.3} - {end:.3} s");
        }
    }
}

/// The samples as they come, channels averaged, in -1 to 1.
fn mono<R: Read>(wav: &mut WavReader<R>) -> Box<dyn Iterator<Item = hound::Result<f32>> + '_> {
    let spec = wav.spec();
    let n_channels = usize::from(spec.channels.max(1));
    let mut samples: Box<dyn Iterator<Item = hound::Result<f32>> + '_> = match spec.sample_format {
        SampleFormat::Float => Box::new(wav.samples::<f32>()),
        SampleFormat::Int => {
            let scale = 0.5f32.powi(i32::from(spec.bits_per_sample) - 1);
            Box::new(wav.samples::<i32>().map(move |sample| Ok(sample? as f32 * scale)))
        }
    };
    Box::new(std::iter::from_fn(move || {
        let mut sum = samples.next()?;
        for _ in 1..n_channels {
            sum = sum.and_then(|sum| Ok(sum + samples.next().unwrap_or(Ok(0.0))?));
        }
        Some(sum.map(|sum| sum / n_channels as f32))
    }))
}

/// Fills a chunk; what the samples do not reach is silence. Returns how many there were.
fn fill(chunk: &mut [f32], samples: &mut dyn Iterator<Item = hound::Result<f32>>) -> hound::Result<usize> {
    let mut n_read = 0;
    for (to, sample) in chunk.iter_mut().zip(samples) {
        *to = sample?;
        n_read += 1;
    }
    chunk[n_read..].fill(0.0);
    Ok(n_read)
}
