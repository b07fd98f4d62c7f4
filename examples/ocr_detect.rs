//! Where text is in a picture: boxes from the probability map of a detection model.
//!
//! A model: the detector of PP-OCR, which the `rapidocr-onnxruntime` Python package ships:
//!
//! ```text
//! pip download --no-deps rapidocr-onnxruntime
//! unzip -j rapidocr_onnxruntime-*.whl 'rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx'
//! cargo run --release -p firstlight-examples --bin ocr_detect -- ch_PP-OCRv4_det_infer.onnx page.png
//! ```

use clap::Parser;
use firstlight::{Session, Tensor};
use image::RgbImage;
use image::imageops::{self, FilterType};
use ndarray::{Array4, ArrayView2, Ix4, s};
use serde_json::json;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints the boxes of text in an image as JSON: x, y, width, height in pixels, and a score.
#[derive(Debug, Parser)]
struct Args {
    /// A detector that turns an image `[N,3,H,W]` into a map of probabilities `[N,1,H,W]`.
    model: PathBuf,
    /// The image, PNG or JPEG.
    image: PathBuf,
    /// Images are shrunk until their longer side has at most this length.
    #[arg(long, default_value_t = 960)]
    max_side: u32,
    /// Probability from which a pixel counts as text.
    #[arg(long, default_value_t = 0.3)]
    threshold: f32,
    /// Mean probability of a box that is printed.
    #[arg(long, default_value_t = 0.5)]
    box_threshold: f32,
    /// Smallest side of a box that is printed, in pixels of the map.
    #[arg(long, default_value_t = 3)]
    min_size: usize,
    /// How far a box is widened: by this times its area over its perimeter, since detectors mark the core of text.
    #[arg(long, default_value_t = 1.6)]
    unclip: f32,
    /// Mean of the blue, green and red that the model was trained on, of 1.
    #[arg(long, value_parser = three, default_value = "0.5,0.5,0.5")]
    mean: [f32; 3],
    /// Their standard deviation.
    #[arg(long, value_parser = three, default_value = "0.5,0.5,0.5")]
    std: [f32; 3],
}

/// Three numbers with commas between them.
fn three(text: &str) -> Result<[f32; 3], String> {
    let numbers: Result<Vec<f32>, _> = text.split(',').map(|number| number.trim().parse()).collect();
    numbers.map_err(|e| e.to_string())?.try_into().map_err(|_| "expected three numbers with commas between them".into())
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
    let image = image::open(&args.image).map_err(|e| format!("{}: {e}", args.image.display()))?.into_rgb8();
    let pixels = pixels(&fit(&image, args.max_side), args.mean, args.std);
    let outputs = session.run_positional(&[Tensor::from_array(&pixels)?])?;
    let map = outputs[0].array::<f32>()?.into_dimensionality::<Ix4>()?;
    let map = map.slice(s![0, 0, .., ..]);
    let scale = (image.width() as f32 / map.ncols() as f32, image.height() as f32 / map.nrows() as f32);
    let boxes: Vec<_> = components(map, args.threshold)
        .into_iter()
        .filter(|found| found.score() >= args.box_threshold && found.shorter_side() >= args.min_size)
        .map(|found| {
            let [left, top, right, bottom] = found.widened(args.unclip);
            let x = |at: f32| (at * scale.0).clamp(0.0, image.width() as f32).round();
            let y = |at: f32| (at * scale.1).clamp(0.0, image.height() as f32).round();
            json!({
                "x": x(left) as u32,
                "y": y(top) as u32,
                "width": (x(right) - x(left)) as u32,
                "height": (y(bottom) - y(top)) as u32,
                "score": (f64::from(found.score()) * 1e4).round() / 1e4,
            })
        })
        .collect();
    println!("{}", serde_json::to_string_pretty(&boxes)?);
    Ok(())
}

/// The image with both sides a multiple of 32, which such models halve five times.
fn fit(image: &RgbImage, max_side: u32) -> RgbImage {
    let longer = image.width().max(image.height()).max(1);
    let scale = (f64::from(max_side) / f64::from(longer)).min(1.0);
    let side = |length: u32| ((f64::from(length) * scale / 32.0).round() as u32).max(1) * 32;
    imageops::resize(image, side(image.width()), side(image.height()), FilterType::Triangle)
}

/// The image as the model wants it: planes of blue, green and red, `(value - mean) / std`.
fn pixels(image: &RgbImage, mean: [f32; 3], std: [f32; 3]) -> Array4<f32> {
    Array4::from_shape_fn((1, 3, image.height() as usize, image.width() as usize), |(_, channel, y, x)| {
        let value = f32::from(image.get_pixel(x as u32, y as u32)[2 - channel]) / 255.0;
        (value - mean[channel]) / std[channel]
    })
}

/// Pixels that touch each other and all count as text.
#[derive(Debug)]
struct Component {
    left: usize,
    top: usize,
    right: usize,
    bottom: usize,
    n_pixels: usize,
    sum: f32,
}

impl Component {
    /// The mean probability of the pixels.
    fn score(&self) -> f32 {
        self.sum / self.n_pixels as f32
    }

    fn shorter_side(&self) -> usize {
        (self.right - self.left).min(self.bottom - self.top)
    }

    /// Left, top, right and bottom, moved outwards.
    fn widened(&self, ratio: f32) -> [f32; 4] {
        let (width, height) = ((self.right - self.left) as f32, (self.bottom - self.top) as f32);
        let by = ratio * width * height / (2.0 * (width + height));
        [self.left as f32 - by, self.top as f32 - by, self.right as f32 + by, self.bottom as f32 + by]
    }
}

/// Groups of pixels above a threshold that touch by a side or a corner, in the order of their first pixels.
fn components(map: ArrayView2<'_, f32>, threshold: f32) -> Vec<Component> {
    let (height, width) = map.dim();
    let mut is_left: Vec<bool> = map.iter().map(|&p| p > threshold).collect();
    let mut found = vec![];
    for first in 0..is_left.len() {
        if !std::mem::take(&mut is_left[first]) {
            continue;
        }
        let (x, y) = (first % width, first / width);
        let mut component = Component { left: x, top: y, right: x + 1, bottom: y + 1, n_pixels: 0, sum: 0.0 };
        let mut to_visit = vec![(x, y)];
        while let Some((x, y)) = to_visit.pop() {
            component.left = component.left.min(x);
            component.right = component.right.max(x + 1);
            component.bottom = component.bottom.max(y + 1);
            component.n_pixels += 1;
            component.sum += map[[y, x]];
            for near_y in y.saturating_sub(1)..height.min(y + 2) {
                for near_x in x.saturating_sub(1)..width.min(x + 2) {
                    if std::mem::take(&mut is_left[near_y * width + near_x]) {
                        to_visit.push((near_x, near_y));
                    }
                }
            }
        }
        found.push(component);
    }
    found
}
