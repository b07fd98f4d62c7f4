//! Mutated models and what judges them: no model file may panic, abort, stall or blow up the runtime.
//!
//! A [`Corpus`] of base models (the op table's named cases, some written by hand, files) gives numbered cases, each
//! determined by seed and number; [`target::Driver::drive`] loads and runs one; [`oracle::run`] spreads cases over worker
//! processes, so that an abort or a hang costs one case, and counts what is bad and which ops still run.
//!
//! Start reading at [`Corpus::case`], then at `oracle`.
#![forbid(unsafe_code)]

mod base;
mod cases;
mod corpus;
mod hostile;
mod message;
mod mutate;
mod onnx;
pub mod oracle;
mod rng;
pub mod target;
pub mod worker;

pub use corpus::{Case, Corpus};
pub use rng::Rng;
