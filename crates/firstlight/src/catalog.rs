//! Every op: what it is, which ONNX ops it is imported from, which kernels compute it.

use crate::Runtime;
use firstlight_backend::KernelBinding;
use firstlight_graph::{OpInfo, OpKind};
use firstlight_onnx::{ImportedOp, imported_ops};

/// An op with what the importer and the kernel table know of it.
#[derive(Clone, Debug)]
pub struct OpEntry {
    /// The op's name; ONNX's where ONNX has it.
    pub name: &'static str,
    /// The op in the table of ops; `None` for an ONNX op that is imported as others.
    pub info: Option<&'static OpInfo>,
    /// Its import, where models may hold it; an op without one is made by passes or by the importer.
    pub import: Option<ImportedOp>,
    /// Kernels of the runtime's device that compute it, by element types, first choice first. What none of them takes
    /// is computed by the op's reference.
    pub kernels: Vec<&'static KernelBinding>,
}

/// All ops with the kernels of a runtime, by name: those of the table, and ONNX ops that are imported as others.
pub fn catalog(runtime: &Runtime) -> Vec<OpEntry> {
    let imports: Vec<ImportedOp> = imported_ops().collect();
    let backend = runtime.device.backend();
    let kernels = |kind: OpKind| {
        let rows = runtime.table.all().iter().copied();
        let mut rows: Vec<_> = rows.filter(|row| row.op == kind && row.backend == backend).collect();
        rows.sort_by_key(|row| row.types);
        rows
    };
    let entry = |kind: &OpKind| OpEntry {
        name: kind.name(),
        info: Some(kind.info()),
        import: imports.iter().find(|import| import.name == kind.name()).copied(),
        kernels: kernels(*kind),
    };
    let mut all: Vec<OpEntry> = OpKind::ALL.iter().map(entry).collect();
    let others = imports.iter().filter(|import| OpKind::ALL.iter().all(|kind| kind.name() != import.name));
    all.extend(others.map(|import| OpEntry { name: import.name, info: None, import: Some(*import), kernels: vec![] }));
    all.sort_by_key(|entry| entry.name);
    all
}
