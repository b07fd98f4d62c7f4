//! An encoder that looks words up in a table, where words of one meaning have one row.

use super::onnx::{D, F32, I64, Model, Weight};
use super::{answer, complaint, file, int};
use serde_json::json;

const EMBED: &str = env!("CARGO_BIN_EXE_embed");

/// Words and their vectors. Padding has one that would spoil every mean it entered.
const WORDS: &[(&str, [f32; 3])] = &[
    ("[PAD]", [50., 50., 50.]),
    ("[UNK]", [0., 0., 0.]),
    ("cat", [1., 0., 0.]),
    ("kitten", [1., 0., 0.]),
    ("big", [0., 2., 0.]),
    ("large", [0., 2., 0.]),
    ("stone", [0., 0., 3.]),
    ("##s", [1., 0., 0.]),
];

fn tokenizer() -> String {
    let vocab: serde_json::Map<_, _> =
        WORDS.iter().enumerate().map(|(i, (word, _))| ((*word).into(), json!(i))).collect();
    let tokenizer = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null,
        "decoder": null,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
    });
    file("tokenizer.json", tokenizer.to_string().as_bytes())
}

fn model() -> Model {
    let table: Vec<f32> = WORDS.iter().flat_map(|(_, row)| *row).collect();
    let dims = [D::Sym("N"), D::Sym("length")];
    Model::new("table")
        .input("input_ids", I64, &dims)
        .input("attention_mask", I64, &dims)
        .input("token_type_ids", I64, &dims)
        .weight(&Weight::f32("table", &[WORDS.len() as i64, 3], &table))
        .node("Gather", "look-up", &["table", "input_ids"], &["tokens"])
}

fn cosines(said: &str) -> Vec<f64> {
    said.lines().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
}

#[test]
fn cosines_are_those_of_the_words_means() {
    let model = file("table.onnx", &model().output("tokens", F32).finish());
    let args = [model.as_str(), &tokenizer(), "Big cat", "large kitten", "cat", "stone", "cats kitten cat"];
    let said = answer(EMBED, &args);
    // Means: (0.5, 1, 0) twice, (1, 0, 0), (0, 0, 3), (1, 0, 0).
    let between = 0.5 / 1.25f64.sqrt();
    let expected = [1., between, 0., between, between, 0., between, 0., 1., 0.];
    let got = cosines(&said);
    assert_eq!(got.len(), expected.len());
    assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() <= 5.1e-5), "{said}");
    assert!(said.starts_with(" 1.0000  \"Big cat\"  \"large kitten\"\n"), "{said}");
}

#[test]
fn what_comes_after_the_last_token_that_counts_is_cut_off() {
    let model = file("cut.onnx", &model().output("tokens", F32).finish());
    let args = [model.as_str(), &tokenizer(), "cat stone stone", "cat", "--max-tokens", "1"];
    assert_eq!(cosines(&answer(EMBED, &args)), [1.0]);
}

#[test]
fn a_model_that_pools_by_itself_is_taken_at_its_word() {
    // The first word alone.
    let first = model().weight(&Weight::i64("zero", &[], &[0])).node_with(
        "Gather",
        "first",
        &["tokens", "zero"],
        &["word"],
        |w| int(w, "axis", 1),
    );
    let first = file("first.onnx", &first.output("word", F32).finish());
    let args = [first.as_str(), &tokenizer(), "cat stone", "kitten", "big stone"];
    assert_eq!(cosines(&answer(EMBED, &args)), [1., 0., 0.]);
}

#[test]
fn an_input_that_no_tokenizer_gives_is_named() {
    let model = file("pixels.onnx", &model().input("pixels", F32, &[D::Any]).output("tokens", F32).finish());
    let said = complaint(EMBED, &[&model, &tokenizer(), "cat", "stone"]);
    assert_eq!(said, "error: the model asks for \"pixels\", which a tokenizer does not give\n");
    let said = complaint(EMBED, &[&model, "no/such.json", "cat", "stone"]);
    assert!(said.starts_with("error: no/such.json: "), "{said}");
}
