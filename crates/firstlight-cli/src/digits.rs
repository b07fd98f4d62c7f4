//! The digit classifier and the digits that it never saw: both are part of the program.
//!
//! `models/digits/train.py` of the repository makes the two files.

use crate::Failure;
use firstlight::{Binding, Error, Pipeline, RunOptions, Session, Tensor, files};

/// The model file: `image`, `f32[N,1,8,8]` with pixels from 0 to 16, and `probabilities`, `f32[N,10]`.
pub(crate) const MODEL: &[u8] = include_bytes!("../data/digits.onnx");
const HELD_OUT: &[u8] = include_bytes!("../data/held-out.npz");

/// Pixels of a side.
pub(crate) const SIDE: usize = 8;
/// The brightest pixel.
pub(crate) const WHITE: u8 = 16;
/// Row by row, from 0 (paper) to [`WHITE`] (ink).
pub(crate) type Image = [u8; SIDE * SIDE];

/// A model that is loaded and its buffers.
#[derive(Debug)]
pub(crate) struct Classifier {
    binding: Binding,
}

/// What the model takes an image for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) digit: u8,
    /// The probability that the model gives its answer.
    pub(crate) confidence: f32,
}

impl Classifier {
    pub(crate) fn load(threads: usize, pipeline: Pipeline) -> Result<Classifier, Error> {
        let session = Session::builder().threads(threads).pipeline(pipeline).load_bytes(MODEL)?;
        Ok(Classifier { binding: session.bind() })
    }

    pub(crate) fn session(&self) -> &Session {
        self.binding.session()
    }

    /// Runs the model on one image. The first call compiles.
    pub(crate) fn read(&mut self, image: &Image, options: &RunOptions<'_>) -> Result<Answer, Failure> {
        let pixels = self.binding.input::<f32>("image", &[1, 1, SIDE, SIDE])?;
        for (to, from) in pixels.iter_mut().zip(image) {
            *to = f32::from(*from);
        }
        self.binding.run_with(options)?;
        let probabilities = self.binding.output("probabilities")?.values::<f32>().map_err(Error::from)?;
        let best = probabilities.iter().zip(0u8..).max_by(|a, b| a.0.total_cmp(b.0));
        let (confidence, digit) = best.ok_or_else(|| Failure::Failed("the model gave no probabilities".into()))?;
        Ok(Answer { digit, confidence: *confidence })
    }
}

/// Digits that were not used in training, and what they are.
#[derive(Debug)]
pub(crate) struct HeldOut {
    pub(crate) images: Vec<Image>,
    pub(crate) labels: Vec<u8>,
}

impl HeldOut {
    pub(crate) fn read() -> Result<HeldOut, Failure> {
        let bytes = |name: &str| -> Result<Vec<u8>, Failure> {
            let members = files::parse_npz("held-out.npz", HELD_OUT)?;
            let member = members.into_iter().find(|(member, _)| member == name);
            let (_, tensor) = member.ok_or_else(|| Failure::Failed(format!("held-out.npz holds no {name}")))?;
            Ok(tensor.values::<u8>().map_err(Error::from)?.into_owned())
        };
        let (images, labels) = (bytes("images")?.as_chunks::<{ SIDE * SIDE }>().0.to_vec(), bytes("labels")?);
        if images.len() != labels.len() {
            return Err(Failure::Failed(format!("held-out.npz: {} images, {} labels", images.len(), labels.len())));
        }
        Ok(HeldOut { images, labels })
    }
}

/// Images as the model takes them: `f32[N,1,8,8]`.
pub(crate) fn batch(images: &[&Image]) -> Result<Tensor, Error> {
    let pixels: Vec<f32> = images.iter().flat_map(|image| image.iter().copied().map(f32::from)).collect();
    Ok(Tensor::from_slice([images.len(), 1, SIDE, SIDE], &pixels)?)
}
