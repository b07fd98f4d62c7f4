//! How alike sentences are: embeddings from a sentence model, compared by their angles.
//!
//! A model: a sentence encoder with its `tokenizer.json`, for instance all-MiniLM-L6-v2, whose repository has both:
//!
//! ```text
//! pip install huggingface_hub
//! hf download sentence-transformers/all-MiniLM-L6-v2 onnx/model.onnx tokenizer.json --local-dir minilm
//! cargo run --release -p firstlight-examples --bin embed -- minilm/onnx/model.onnx minilm/tokenizer.json \
//!     "A cat sits on the mat" "A kitten rests on a rug" "The market fell by two percent"
//! ```

use clap::Parser;
use firstlight::{Outputs, Session, Tensor};
use ndarray::{Array2, Array3, Axis, Ix2, Ix3};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use tokenizers::{Encoding, PaddingParams, Tokenizer, TruncationParams};

/// Prints how alike sentences are: 1 for the same meaning, about 0 for unrelated ones.
#[derive(Debug, Parser)]
struct Args {
    /// An ONNX encoder that takes `input_ids` and `attention_mask`, `[N,length]`.
    model: PathBuf,
    /// The encoder's `tokenizer.json`.
    tokenizer: PathBuf,
    /// Sentences to compare.
    #[arg(required = true, num_args = 2..)]
    sentences: Vec<String>,
    /// Tokens of a sentence that count; what comes after is cut off.
    #[arg(long, default_value_t = 256)]
    max_tokens: usize,
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
    let session = Session::load(&args.model)?;
    let mut tokenizer =
        Tokenizer::from_file(&args.tokenizer).map_err(|error| format!("{}: {error}", args.tokenizer.display()))?;
    tokenizer
        .with_truncation(Some(TruncationParams { max_length: args.max_tokens, ..TruncationParams::default() }))
        .map_err(|error| error.to_string())?;
    tokenizer.with_padding(Some(PaddingParams::default()));
    let encodings = tokenizer.encode_batch(args.sentences.clone(), true).map_err(|error| error.to_string())?;
    let embeddings = embed(&session, &encodings)?;
    let cosines = embeddings.dot(&embeddings.t());
    for (i, a) in args.sentences.iter().enumerate() {
        for (j, b) in args.sentences.iter().enumerate().skip(i + 1) {
            println!("{:7.4}  {a:?}  {b:?}", cosines[[i, j]]);
        }
    }
    Ok(())
}

/// One row of length 1 for each sentence.
fn embed(session: &Session, encodings: &[Encoding]) -> Result<Array2<f32>, Box<dyn Error>> {
    let mask = numbers(encodings, Encoding::get_attention_mask);
    let mut inputs = vec![];
    for input in session.inputs() {
        let values = match input.name.as_str() {
            "input_ids" => numbers(encodings, Encoding::get_ids),
            "attention_mask" => mask.clone(),
            "token_type_ids" => numbers(encodings, Encoding::get_type_ids),
            other => return Err(format!("the model asks for {other:?}, which a tokenizer does not give").into()),
        };
        inputs.push((input.name.as_str(), Tensor::from_array(&values)?));
    }
    let outputs = session.run(inputs)?;
    let mut rows = pool(&outputs, &mask.mapv(|bit| bit as f32))?;
    for mut row in rows.rows_mut() {
        let length = row.dot(&row).sqrt();
        row /= length.max(f32::MIN_POSITIVE);
    }
    Ok(rows)
}

/// The mean of each sentence's token vectors, padding left out; a model that pools by itself gives them as they are.
fn pool(outputs: &Outputs, mask: &Array2<f32>) -> Result<Array2<f32>, Box<dyn Error>> {
    let output = outputs[0].array::<f32>()?;
    if output.ndim() == 2 {
        return Ok(output.into_owned().into_dimensionality::<Ix2>()?);
    }
    let tokens: Array3<f32> = output.into_owned().into_dimensionality::<Ix3>()?;
    let weights = mask.view().insert_axis(Axis(2));
    let counts = mask.sum_axis(Axis(1)).insert_axis(Axis(1));
    Ok((tokens * weights).sum_axis(Axis(1)) / counts.mapv(|count| count.max(1.0)))
}

/// A figure of every token of every sentence, `[N,length]`.
fn numbers(encodings: &[Encoding], of: fn(&Encoding) -> &[u32]) -> Array2<i64> {
    let length = encodings.first().map_or(0, |encoding| of(encoding).len());
    Array2::from_shape_fn((encodings.len(), length), |(i, j)| i64::from(of(&encodings[i])[j]))
}
