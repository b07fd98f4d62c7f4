//! A detector of loudness: its state follows the energy of a chunk half way, and speech is where it is above a limit.

use super::onnx::{D, F32, I64, Model, Weight};
use super::{answer, answer_to, complaint, file, int, ints};
use hound::{SampleFormat, WavSpec, WavWriter};
use std::io::Cursor;

const VAD: &str = env!("CARGO_BIN_EXE_vad");
/// Energy of the tone.
const ENERGY: f32 = 0.125;
/// Of the energies that chunks of a tone and its ends have, only one that state and context both enter is just above.
const LIMIT: f32 = 0.066;

/// `state = (state + mean(input^2)) / 2`, `output = sigmoid(2000 (mean(state) - limit))`.
fn model() -> String {
    let state = [D::N(2), D::Sym("batch"), D::N(8)];
    let model = Model::new("loudness")
        .input("input", F32, &[D::Sym("batch"), D::Sym("samples")])
        .input("state", F32, &state)
        .input("sr", I64, &[])
        .weight(&Weight::f32("half", &[1], &[0.5]))
        .weight(&Weight::f32("limit", &[1], &[LIMIT]))
        .weight(&Weight::f32("slope", &[1], &[2000.]))
        .node("Mul", "square", &["input", "input"], &["squares"])
        .node_with("ReduceMean", "energy", &["squares"], &["energies"], |w| ints(w, "axes", &[1]))
        .node("Add", "add", &["state", "energies"], &["sum"])
        .node("Mul", "halve", &["sum", "half"], &["stateN"])
        .node_with("ReduceMean", "layers", &["stateN"], &["layer"], |w| {
            ints(w, "axes", &[0]);
            int(w, "keepdims", 0);
        })
        .node_with("ReduceMean", "level", &["layer"], &["level"], |w| ints(w, "axes", &[1]))
        .node("Sub", "above", &["level", "limit"], &["excess"])
        .node("Mul", "steepen", &["excess", "slope"], &["logit"])
        .node("Sigmoid", "decide", &["logit"], &["output"])
        .output("output", F32)
        .output("stateN", F32);
    file("loudness.onnx", &model.finish())
}

/// Four seconds with a tone in the chunks 32 to 63, 80 to 95 and, too short for speech, 110.
pub(super) fn recording(name: &str, rate: u32, n_channels: u16) -> String {
    let is_float = n_channels > 1;
    let spec = WavSpec {
        channels: n_channels,
        sample_rate: rate,
        bits_per_sample: if is_float { 32 } else { 16 },
        sample_format: if is_float { SampleFormat::Float } else { SampleFormat::Int },
    };
    let mut bytes = Cursor::new(vec![]);
    let mut wav = WavWriter::new(&mut bytes, spec).unwrap();
    let chunk = rate / 16_000 * 512 + rate % 16_000 / 8_000 * 256;
    for at in 0..4 * rate {
        let is_tone = matches!(at / chunk, 32..64 | 80..96 | 110);
        let wave = if at % 16 < 8 { ENERGY.sqrt() } else { -ENERGY.sqrt() };
        let sample = if is_tone { wave } else { 0.0 };
        if is_float {
            // All in the first channel: the mean of the channels is the tone.
            wav.write_sample(sample * f32::from(n_channels)).unwrap();
            (1..n_channels).for_each(|_| wav.write_sample(0f32).unwrap());
        } else {
            wav.write_sample((sample * 32768.) as i16).unwrap();
        }
    }
    wav.finalize().unwrap();
    file(name, &bytes.into_inner())
}

/// A chunk of tone whose context is silent leaves the state below the limit, the second one lifts it above: speech
/// begins with chunk 33. The silent chunk 64 has an end of the tone as its context and half the state: it is above.
const EXPECTED: &str = "speech 1.056 - 2.080 s\nspeech 2.592 - 3.104 s\n";

#[test]
fn speech_is_where_state_and_context_say() {
    let model = model();
    let mono = recording("mono.wav", 16_000, 1);
    assert_eq!(answer(VAD, &[&model, &mono]), EXPECTED);
    assert_eq!(answer_to(VAD, &[&model, "-"], &mono), EXPECTED);
    assert_eq!(answer(VAD, &[&model, &recording("stereo.wav", 8_000, 2)]), EXPECTED);
}

#[test]
fn pauses_and_lengths_are_the_callers() {
    let (model, mono) = (model(), recording("pauses.wav", 16_000, 1));
    assert_eq!(answer(VAD, &[&model, &mono, "--min-silence", "0.6"]), "speech 1.056 - 3.104 s\n");
    assert_eq!(answer(VAD, &[&model, &mono, "--min-speech", "0.6"]), "speech 1.056 - 2.080 s\n");
}

#[test]
fn every_chunk_can_be_shown() {
    let said = answer(VAD, &[&model(), &recording("chunks.wav", 16_000, 1), "--chunks"]);
    let shown: Vec<f64> = said
        .lines()
        .filter(|line| !line.starts_with("speech"))
        .map(|line| line.split_whitespace().last().unwrap().parse().unwrap())
        .collect();
    assert_eq!(shown.len(), 125);
    let is_speech = |i: usize| (33..65).contains(&i) || (81..97).contains(&i);
    assert!(shown.iter().enumerate().all(|(i, &p)| (p > 0.99) == is_speech(i) && (p < 0.01) != is_speech(i)), "{said}");
}

#[test]
fn a_rate_that_the_model_does_not_take_is_refused() {
    let said = complaint(VAD, &[&model(), &recording("fast.wav", 44_100, 1)]);
    assert_eq!(said, "error: the audio has 44100 samples a second; the model takes 16000 or 8000: resample it\n");
    let said = complaint(VAD, &[&model(), &file("text.wav", b"no sound")]);
    assert!(said.starts_with("error: "), "{said}");
}
