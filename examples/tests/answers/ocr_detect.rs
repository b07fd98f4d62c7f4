//! A detector of what has no blue in it: `sigmoid(20 darkness)`, where darkness is blue's mean over 3 by 3 pixels.

use super::onnx::{D, F32, Model, Weight};
use super::{answer, file, ints};
use image::{ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};
use std::io::Cursor;

const OCR_DETECT: &str = env!("CARGO_BIN_EXE_ocr_detect");
const YELLOW: Rgb<u8> = Rgb([255, 255, 0]);
const CYAN: Rgb<u8> = Rgb([0, 255, 255]);
/// Left, top, width, height.
const WORDS: [[u32; 4]; 2] = [[24, 16, 40, 16], [40, 60, 64, 12]];

fn model() -> String {
    // Blue is the first plane.
    let weights: Vec<f32> = (0..27).map(|i| if i < 9 { -20. / 9. } else { 0. }).collect();
    let model = Model::new("darkness")
        .input("x", F32, &[D::Sym("N"), D::N(3), D::Sym("H"), D::Sym("W")])
        .weight(&Weight::f32("w", &[1, 3, 3, 3], &weights))
        .node_with("Conv", "blur", &["x", "w"], &["darkness"], |w| ints(w, "pads", &[1, 1, 1, 1]))
        .node("Sigmoid", "decide", &["darkness"], &["map"])
        .output("map", F32);
    file("darkness.onnx", &model.finish())
}

/// 128 by 96 times `scale`: two yellow words on white, a yellow line of two pixels, a word that has only no red.
fn page(scale: u32) -> RgbImage {
    let mut page = RgbImage::from_pixel(128 * scale, 96 * scale, Rgb([255; 3]));
    let marks = WORDS.iter().map(|&word| (word, YELLOW)).chain([([110, 10, 2, 40], YELLOW), ([10, 80, 20, 12], CYAN)]);
    for ([left, top, width, height], colour) in marks {
        for y in top * scale..(top + height) * scale {
            (left * scale..(left + width) * scale).for_each(|x| page.put_pixel(x, y, colour));
        }
    }
    page
}

pub(super) fn png(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Cursor::new(vec![]);
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// A word's box, widened, in pixels of the page.
fn expected([left, top, width, height]: [u32; 4], unclip: f64, scale: u32) -> [u64; 4] {
    let [left, top, width, height, scale] = [left, top, width, height, scale].map(f64::from);
    let by = unclip * width * height / (2. * (width + height));
    let place = |at: f64| (at * scale).round();
    let (x, y) = (place(left - by), place(top - by));
    [x, y, place(left + width + by) - x, place(top + height + by) - y].map(|value| value as u64)
}

fn boxes(said: &str) -> Vec<[u64; 4]> {
    let boxes: Vec<Value> = serde_json::from_str(said).unwrap();
    boxes.iter().map(|found| ["x", "y", "width", "height"].map(|key| found[key].as_u64().unwrap())).collect()
}

#[test]
fn words_are_boxed_and_lines_and_other_colours_are_not() {
    let page = file("page.png", &png(&page(1)));
    let said = answer(OCR_DETECT, &[&model(), &page]);
    assert_eq!(boxes(&said), WORDS.map(|word| expected(word, 1.6, 1)), "{said}");
    let said = answer(OCR_DETECT, &[&model(), &page, "--unclip", "0"]);
    assert_eq!(boxes(&said), WORDS.map(|[x, y, w, h]| [x, y, w, h].map(u64::from)));
    // The mean over a word less its corners: on the rim a third more is dark than bright.
    let sigmoid = |darkness: f64| 1. / (1. + (-20. * darkness).exp());
    let score = |[_, _, w, h]: [u32; 4]| {
        let (w, h) = (f64::from(w), f64::from(h));
        let (core, rim) = ((w - 2.) * (h - 2.), 2. * (w - 2.) + 2. * (h - 2.));
        (core * sigmoid(1.) + rim * sigmoid(1. / 3.)) / (core + rim)
    };
    let found: Vec<Value> = serde_json::from_str(&said).unwrap();
    for (found, word) in found.iter().zip(WORDS) {
        assert!((found["score"].as_f64().unwrap() - score(word)).abs() < 1e-4, "{found}");
    }
}

#[test]
fn thresholds_and_sizes_are_the_callers() {
    let page = file("sizes.png", &png(&page(1)));
    let with_line = boxes(&answer(OCR_DETECT, &[&model(), &page, "--unclip", "0", "--min-size", "2"]));
    // At its ends the line is too thin to be dark.
    assert_eq!(with_line, [[110, 11, 2, 38], [24, 16, 40, 16], [40, 60, 64, 12]]);
    let said = answer(OCR_DETECT, &[&model(), &page, "--box-threshold", "1"]);
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), json!([]));
}

#[test]
fn a_page_that_is_shrunk_gets_its_boxes_in_its_own_pixels() {
    let page = file("large.png", &png(&page(4)));
    let said = answer(OCR_DETECT, &[&model(), &page, "--max-side", "128"]);
    assert_eq!(boxes(&said), WORDS.map(|word| expected(word, 1.6, 4)), "{said}");
}
