//! What is in a picture: the classes that an image model finds most likely.
//!
//! A model: any ImageNet classifier with an input `[N,3,H,W]`, for instance MobileNetV3 from PyTorch, with its labels
//! (one name a line):
//!
//! ```text
//! pip install torch torchvision onnx onnxscript
//! python - <<'END'
//! import torch, torchvision
//! weights = torchvision.models.MobileNet_V3_Small_Weights.DEFAULT
//! model = torchvision.models.mobilenet_v3_small(weights=weights).eval()
//! torch.onnx.export(model, torch.zeros(1, 3, 224, 224), "mobilenet.onnx", external_data=False)
//! open("labels.txt", "w").write("\n".join(weights.meta["categories"]))
//! END
//! cargo run --release -p firstlight-examples --bin classify -- mobilenet.onnx photo.jpg --labels labels.txt
//! ```

use clap::Parser;
use firstlight::{Session, TensorBuf, TensorRef};
use image::RgbImage;
use image::imageops::{self, FilterType};
use ndarray::Array4;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints the most likely classes of images, with their probabilities.
#[derive(Debug, Parser)]
struct Args {
    /// An ONNX classifier that takes one image, `[N,3,H,W]`.
    model: PathBuf,
    /// Images to classify, PNG or JPEG.
    #[arg(required = true)]
    images: Vec<PathBuf>,
    /// Names of the classes, one a line; without it classes are numbers.
    #[arg(long)]
    labels: Option<PathBuf>,
    /// How many classes to print.
    #[arg(long, default_value_t = 5)]
    top: usize,
    /// Side of the square that the model sees, where the model does not declare one.
    #[arg(long, default_value_t = 224)]
    size: u32,
    /// Length that an image's shorter side is scaled to, before the centre is cut out [default: 8/7 of the square's]
    #[arg(long)]
    resize: Option<u32>,
    /// Mean of the red, green and blue that the model was trained on, of 1.
    #[arg(long, value_parser = three, default_value = "0.485,0.456,0.406")]
    mean: [f32; 3],
    /// Their standard deviation.
    #[arg(long, value_parser = three, default_value = "0.229,0.224,0.225")]
    std: [f32; 3],
    /// The model's outputs are probabilities already.
    #[arg(long)]
    no_softmax: bool,
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
    let labels = match &args.labels {
        Some(path) => std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?,
        None => String::new(),
    };
    let labels: Vec<&str> = labels.lines().collect();
    let [input] = session.inputs() else {
        return Err(format!("the model has {} inputs; a classifier has one", session.inputs().len()).into());
    };
    let declared = |dim: usize| input.shape.as_ref().and_then(|shape| shape.get(dim)?.known());
    let (height, width) = (declared(2).unwrap_or(args.size as usize), declared(3).unwrap_or(args.size as usize));
    let mut outputs = vec![TensorBuf::new(); session.outputs().len()];
    for path in &args.images {
        let image = open(path)?;
        let pixels = pixels(&crop(&image, height as u32, width as u32, args.resize), args.mean, args.std);
        session.run_into(&[(input.name.as_str(), TensorRef::from_array(&pixels)?)], &mut outputs)?;
        let mut scores = outputs[0].values::<f32>()?.to_vec();
        if !args.no_softmax {
            softmax(&mut scores);
        }
        println!("{}", path.display());
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        for class in order.into_iter().take(args.top) {
            let name = labels.get(class).map_or_else(|| format!("class {class}"), |label| (*label).to_owned());
            println!("  {:.4}  {name}", scores[class]);
        }
    }
    Ok(())
}

fn open(path: &Path) -> Result<RgbImage, String> {
    image::open(path).map(|image| image.into_rgb8()).map_err(|e| format!("{}: {e}", path.display()))
}

/// Scales the shorter side to `resize` and cuts `height` by `width` out of the centre.
fn crop(image: &RgbImage, height: u32, width: u32, resize: Option<u32>) -> RgbImage {
    let side = resize.unwrap_or(height.max(width) * 8 / 7).max(height).max(width);
    let scale = f64::from(side) / f64::from(image.width().min(image.height()).max(1));
    let scaled = |length: u32| ((f64::from(length) * scale).round() as u32).max(side);
    let (w, h) = (scaled(image.width()), scaled(image.height()));
    let image = imageops::resize(image, w, h, FilterType::Triangle);
    imageops::crop_imm(&image, (w - width) / 2, (h - height) / 2, width, height).to_image()
}

/// The image as the model wants it: planes of red, green and blue, `(value - mean) / std`.
fn pixels(image: &RgbImage, mean: [f32; 3], std: [f32; 3]) -> Array4<f32> {
    Array4::from_shape_fn((1, 3, image.height() as usize, image.width() as usize), |(_, channel, y, x)| {
        let value = f32::from(image.get_pixel(x as u32, y as u32)[channel]) / 255.0;
        (value - mean[channel]) / std[channel]
    })
}

fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - most).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
}
