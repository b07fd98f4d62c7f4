//! ONNX import: bytes to [`firstlight_graph::Graph`], and nothing after that.
//!
//! The file is mapped and read as views ([`proto`]); weights stay byte ranges of it. The importer checks names and
//! order, inlines model-local functions, resolves external data inside the model's folder, and turns each node into
//! the graph's op by the table in `ops`: one function an ONNX op, which also knows how its opsets differ.
//!
//! What is not here: shape inference, passes, kernels. Start reading at [`load`], then at `build`.
#![forbid(unsafe_code)]

mod attributes;
mod build;
mod call;
mod check;
mod error;
mod external;
mod inspect;
mod node_ctx;
mod ops;
mod order;
pub mod proto;
mod spec;
mod survey;
mod tensors;

pub use check::{Checked, check};
pub use error::{LoadError, UnsupportedOp};
pub use inspect::{
    InspectedFunction, InspectedOp, InspectedPlace, InspectedSubgraph, InspectedSymbol, InspectedValue,
    InspectedWeight, Inspection, OpSupport, WeightPlace, inspect, inspect_slice,
};
pub use ops::{ImportedOp, NEWEST_OPSET, imported_ops};
pub use proto::ProtoLimits;

use build::Builder;
use call::Functions;
use check::Noted;
use external::ExternalFiles;
use firstlight_graph::{Graph, Spec};
use firstlight_tensor::{CancelToken, MappedFile};
use proto::{ModelProto, ProtoError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensors::Tensors;

/// How to load a model.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Maps the files, so that weights are never copied. False reads them whole: for files that others can write.
    pub map: bool,
    /// Folder that external data must lie in; the model's own folder where `None`. A model from bytes has none.
    pub folder: Option<PathBuf>,
    /// Bounds on what a model may ask for.
    pub limits: Limits,
    /// Ends the import within one node.
    pub cancel: Option<CancelToken>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { map: true, folder: None, limits: Limits::default(), cancel: None }
    }
}

/// Bounds on what a model may ask for while it is imported. The defaults let every ordinary model pass.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Nodes in the file, all graphs and functions together.
    pub nodes: usize,
    /// How deep subgraphs and function calls may lie inside each other.
    pub nesting: usize,
    /// Dims of a tensor.
    pub rank: usize,
    /// Bytes of one name.
    pub name_bytes: usize,
    /// Nodes that inlining functions adds.
    pub function_expansion: usize,
    /// Bytes of values that the file holds in another form than the graph does (typed fields, sparse tensors).
    pub folded_bytes: usize,
    /// Bytes of the parsed structure, weights not included.
    pub struct_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let p = ProtoLimits::default();
        Self {
            nodes: p.nodes,
            nesting: p.nesting,
            rank: p.rank,
            name_bytes: p.name_bytes,
            function_expansion: 100_000,
            folded_bytes: 1 << 30,
            struct_bytes: p.struct_bytes,
        }
    }
}

/// A model as a graph, and what the file says besides.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The graph. Its inputs carry names, specs and defaults.
    pub graph: Graph,
    /// Declared specs of the graph's outputs, in order; `None` where the file declares none.
    pub outputs: Vec<(String, Option<Spec>)>,
    /// What is odd about the file but does not stop it.
    pub warnings: Vec<String>,
    /// What the file says about itself.
    pub metadata: ModelMetadata,
}

/// What a model file says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelMetadata {
    /// Version of the file format.
    pub ir_version: i64,
    /// Program that wrote the file, and its version.
    pub producer: (String, String),
    /// The model's domain.
    pub domain: String,
    /// The model's version.
    pub model_version: i64,
    /// Operator sets and their versions.
    pub opsets: Vec<(String, i64)>,
    /// Free-form key/value pairs.
    pub properties: Vec<(String, String)>,
}

/// Loads a model file.
///
/// **Errors**: [`LoadError`], naming the thing that is wrong.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Imported, LoadError> {
    import_file(&open(path, options)?, options)
}

/// Imports a model file that is open.
///
/// **Errors**: [`LoadError`], naming the thing that is wrong.
pub fn import_file(file: &Arc<MappedFile>, options: &LoadOptions) -> Result<Imported, LoadError> {
    import(file, folder_of(file.path(), options), options)
}

/// Loads a model from bytes. External data need [`LoadOptions::folder`].
///
/// **Errors**: [`LoadError`], naming the thing that is wrong.
pub fn load_bytes(bytes: Vec<u8>, options: &LoadOptions) -> Result<Imported, LoadError> {
    import(&Arc::new(MappedFile::from_vec(bytes)), options.folder.clone(), options)
}

/// Opens a model file as the options say; nothing is read of a mapped one yet.
///
/// **Errors**: what the system says.
pub fn open(path: &Path, options: &LoadOptions) -> Result<Arc<MappedFile>, LoadError> {
    let open = if options.map { MappedFile::map } else { MappedFile::read };
    open(path).map(Arc::new).map_err(|e| LoadError::io(path, &e))
}

/// The folder that external data of a model file must lie in.
fn folder_of(path: &Path, options: &LoadOptions) -> Option<PathBuf> {
    let own = || {
        let parent = path.parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent.to_path_buf() }
    };
    Some(options.folder.clone().unwrap_or_else(own))
}

fn proto_limits(limits: &Limits) -> ProtoLimits {
    ProtoLimits {
        nesting: limits.nesting,
        nodes: limits.nodes,
        rank: limits.rank,
        name_bytes: limits.name_bytes,
        struct_bytes: limits.struct_bytes,
    }
}

fn import(file: &Arc<MappedFile>, folder: Option<PathBuf>, options: &LoadOptions) -> Result<Imported, LoadError> {
    import_noting(file, folder, options, None)
}

/// Imports a model; where `noted` is given, problems are noted there as long as the import can go on.
fn import_noting(
    file: &Arc<MappedFile>,
    folder: Option<PathBuf>,
    options: &LoadOptions,
    mut noted: Option<&mut Noted>,
) -> Result<Imported, LoadError> {
    let limits = &options.limits;
    let model = ModelProto::parse(file.as_slice(), &proto_limits(limits))?;
    let graph = model.graph.as_ref().ok_or_else(LoadError::no_graph)?;
    let functions = Functions::new(&model)?;
    match (survey::check_supported(&model, graph, &functions), &mut noted) {
        (Err(error @ LoadError::Unsupported(_)), Some(noted)) => noted.note(error),
        (surveyed, _) => surveyed?,
    }
    let external = ExternalFiles::new(folder, options.map);
    let tensors = Tensors::new(file.clone(), external, limits.folded_bytes);
    let mut builder = Builder::new(&model, &functions, tensors, limits)?;
    builder.cancel = options.cancel.as_ref();
    builder.noted = noted.as_deref_mut().map(std::mem::take);
    let built = builder.main_graph(graph);
    let found = builder.noted.take();
    if let (Some(noted), Some(found)) = (noted, found) {
        *noted = found;
    }
    let (built, outputs) = built?;
    Ok(Imported { graph: built, outputs, warnings: builder.into_warnings(), metadata: metadata(&model)? })
}

fn metadata(model: &ModelProto<'_>) -> Result<ModelMetadata, LoadError> {
    let properties = model.metadata_props.iter().map(|p| p.map(|(k, v)| (k.to_owned(), v.to_owned())));
    Ok(ModelMetadata {
        ir_version: model.ir_version,
        producer: (model.producer_name.into(), model.producer_version.into()),
        domain: model.domain.into(),
        model_version: model.model_version,
        opsets: model.opset_import.iter().map(|o| (o.domain.to_owned(), o.version)).collect(),
        properties: properties.collect::<Result<_, _>>().map_err(ProtoError::from)?,
    })
}

#[cfg(test)]
mod tests;
