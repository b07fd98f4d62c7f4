//! A classifier of colours: scores are sums of the picture's mean red, green and blue, so that probabilities follow.

use super::onnx::{D, F32, Model, Weight};
use super::{answer, complaint, file};
use image::{ImageFormat, Rgb, RgbImage};
use std::io::Cursor;

const CLASSIFY: &str = env!("CARGO_BIN_EXE_classify");
const RED: Rgb<u8> = Rgb([255, 0, 0]);
const BLUE: Rgb<u8> = Rgb([0, 0, 255]);
const WEIGHTS: [[f32; 3]; 4] = [[1., -0.5, -0.5], [-0.5, 1., -0.5], [-0.5, -0.5, 1.], [0.3, 0.3, 0.3]];
const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const STD: [f32; 3] = [0.229, 0.224, 0.225];

fn model(name: &str, side: D) -> String {
    let weights: Vec<f32> = (0..12).map(|i| WEIGHTS[i % 4][i / 4]).collect();
    let model = Model::new("colours")
        .input("image", F32, &[D::Sym("N"), D::N(3), side.clone(), side])
        .weight(&Weight::f32("w", &[3, 4], &weights))
        .weight(&Weight::f32("b", &[4], &[0.; 4]))
        .node("GlobalAveragePool", "mean", &["image"], &["means"])
        .node("Flatten", "flat", &["means"], &["colour"])
        .node("Gemm", "score", &["colour", "w", "b"], &["scores"])
        .output("scores", F32);
    file(name, &model.finish())
}

fn labels() -> String {
    file("colours.txt", b"red\ngreen\nblue\ngrey\n")
}

/// The probabilities of a picture of one colour.
fn expected(colour: Rgb<u8>) -> [f64; 4] {
    let score = |class: usize| -> f64 {
        let normal = |c: usize| f64::from((f32::from(colour[c]) / 255. - MEAN[c]) / STD[c]);
        (0..3).map(|c| f64::from(WEIGHTS[class][c]) * normal(c)).sum::<f64>().exp()
    };
    let sum: f64 = (0..4).map(score).sum();
    std::array::from_fn(|class| score(class) / sum)
}

/// The lines under a picture's name: probability and class.
fn lines(said: &str) -> Vec<(f64, String)> {
    let split = |line: &str| {
        let (number, name) = line.trim().split_once("  ").unwrap();
        (number.parse().unwrap(), name.to_owned())
    };
    said.lines().filter(|line| line.starts_with("  ")).map(split).collect()
}

fn png(name: &str, image: &RgbImage) -> String {
    encoded(name, image, ImageFormat::Png)
}

fn encoded(name: &str, image: &RgbImage, format: ImageFormat) -> String {
    let mut bytes = Cursor::new(vec![]);
    image.write_to(&mut bytes, format).unwrap();
    file(name, &bytes.into_inner())
}

#[test]
fn a_red_picture_is_red_with_the_probability_that_its_mean_gives() {
    let picture = png("red.png", &RgbImage::from_pixel(50, 70, RED));
    let said = answer(CLASSIFY, &[&model("colours.onnx", D::N(32)), &picture, "--labels", &labels(), "--top", "2"]);
    let got = lines(&said);
    let probabilities = expected(RED);
    assert_eq!(said.lines().next(), Some(picture.as_str()));
    assert_eq!(got.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["red", "grey"]);
    assert!((got[0].0 - probabilities[0]).abs() < 1e-4 && (got[1].0 - probabilities[3]).abs() < 1e-4, "{said}");
}

#[test]
fn only_the_centre_counts() {
    // 64 by 32: the middle square is red, what lies beside it blue.
    let picture = RgbImage::from_fn(64, 32, |x, _| if (16..48).contains(&x) { RED } else { BLUE });
    let picture = png("centre.png", &picture);
    let model = model("any-side.onnx", D::Any);
    let args = [model.as_str(), &picture, "--labels", &labels(), "--size", "32", "--resize", "32"];
    assert!((lines(&answer(CLASSIFY, &args))[0].0 - expected(RED)[0]).abs() < 1e-4);
    // Scaled twice as high, the cut takes the middle quarter alone.
    let args = [model.as_str(), &picture, "--size", "32", "--resize", "64", "--top", "1"];
    let got = lines(&answer(CLASSIFY, &args));
    assert_eq!(got[0].1, "class 0");
    assert!((got[0].0 - expected(RED)[0]).abs() < 1e-4);
}

#[test]
fn several_pictures_of_either_format_each_get_their_answer() {
    let green = RgbImage::from_pixel(40, 40, Rgb([0, 255, 0]));
    let files = [
        encoded("green.jpg", &green, ImageFormat::Jpeg),
        png("blue.png", &RgbImage::from_pixel(33, 90, BLUE)),
        png("white.png", &RgbImage::from_pixel(90, 33, Rgb([255; 3]))),
    ];
    let model = model("several.onnx", D::N(32));
    let labels = labels();
    let args = [model.as_str(), &files[0], &files[1], &files[2], "--labels", &labels, "--top", "1"];
    let names: Vec<String> = lines(&answer(CLASSIFY, &args)).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["green", "blue", "grey"]);
}

#[test]
fn mean_and_deviation_are_the_callers() {
    let picture = png("plain.png", &RgbImage::from_pixel(32, 32, RED));
    let model = model("plain.onnx", D::N(32));
    // Values as they are: red is 1, and the scores of red, green, blue and grey are 1, -0.5, -0.5, 0.3.
    let args = [model.as_str(), &picture, "--mean", "0, 0, 0", "--std", "1,1,1", "--no-softmax", "--top", "4"];
    let got = lines(&answer(CLASSIFY, &args));
    assert_eq!(got.iter().map(|(score, _)| *score).collect::<Vec<_>>(), [1.0, 0.3, -0.5, -0.5]);
}

#[test]
fn a_file_that_is_no_picture_is_named() {
    let text = file("text.png", b"no picture");
    let said = complaint(CLASSIFY, &[&model("text.onnx", D::N(32)), &text]);
    assert!(said.starts_with(&format!("error: {text}: ")), "{said}");
}
