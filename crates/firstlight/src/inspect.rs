//! What a model file holds, without loading it.

use crate::Error;
use firstlight_onnx::{Inspection, LoadOptions};
use std::path::Path;

/// The parts of an [`Inspection`].
pub mod model {
    pub use firstlight_onnx::{
        InspectedFunction, InspectedOp, InspectedPlace, InspectedSubgraph, InspectedSymbol, InspectedValue,
        InspectedWeight, Inspection, OpSupport, WeightPlace,
    };
}

/// Tells what a model file holds: inputs and outputs, symbols, ops, weights. Nothing is loaded, so that no op need be
/// supported and no external data need be there.
///
/// **Errors**: a file that cannot be read or is no ONNX model; a limit on its structure.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection, Error> {
    Ok(firstlight_onnx::inspect(path.as_ref(), &LoadOptions::default())?)
}
