//! What the bars of the core ask, of all eleven models; and the examples.

use super::{Bar, Bench, Figure, agree, memory, runtime, speed};
use crate::project::Failure;

pub(super) const MODELS: [&str; 11] = [
    "one-add",
    "silero-vad",
    "resnet50",
    "minilm",
    "magika",
    "ppocr4-det",
    "ppocr4-rec",
    "mobilenetv3",
    "vit-b16",
    "bert-base",
    "gpt2",
];

/// Runs of each way to run a model: fewer than for the core's models, since some of these take seconds.
const SAME_BITS_RUNS: usize = 3;
const N_MUTATED: u64 = 100_000;

pub(super) const AGREEMENT: Bar = Bar {
    name: "2-values",
    what: "values within 1e-4 of onnxruntime, optimiser off",
    is_long: false,
    measure: |bench| agree::agreement(bench, &MODELS),
};

pub(super) const SAME_BITS: Bar = Bar {
    name: "2-bits",
    what: "the same bits however a model is run",
    is_long: false,
    measure: |bench| runtime::same_bits(bench, &MODELS, SAME_BITS_RUNS),
};

pub(super) const REPLAY: Bar = Bar {
    name: "2-replay",
    what: "a replay allocates nothing",
    is_long: false,
    measure: |bench| runtime::allocations(bench, &MODELS),
};

pub(super) const MEMORY: Bar = Bar {
    name: "2-memory",
    what: "memory at the first output, and its limit",
    is_long: false,
    measure: |bench| memory::of_models(bench, &MODELS),
};

pub(super) const HOSTILE: Bar = Bar {
    name: "2-hostile",
    what: "mutated models do no harm",
    is_long: false,
    measure: |bench| runtime::hostile(bench, &MODELS, N_MUTATED),
};

pub(super) const EXAMPLES: Bar =
    Bar { name: "5", what: "the examples do what they say", is_long: false, measure: examples };

pub(super) const SPEED: Bar = Bar {
    name: "6",
    what: "cold sooner than onnxruntime, warm at most 1.5 times it",
    is_long: false,
    measure: |bench| speed::against_onnxruntime(bench, &MODELS, 1.5),
};

fn examples(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let (package, what) = ("firstlight-examples", "tests of the programs in examples/");
    Ok(vec![runtime::tests(bench, &["--package", package], what)])
}
