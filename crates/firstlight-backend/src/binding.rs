//! The kernel binding table: which function runs an op on a backend.

use crate::device::BackendId;
use crate::memory::KernelCtx;
use firstlight_graph::{Op, OpError, OpKind, Types};
use firstlight_tensor::{DType, Shape};
use std::fmt;

/// A kernel: reads inputs, fills outputs, all handed out by the context. It never allocates outputs and never chooses
/// threads.
pub type KernelFn = fn(&mut KernelCtx<'_>) -> Result<(), OpError>;

/// One row of the table.
#[derive(Clone, Copy)]
pub struct KernelBinding {
    /// The op that the kernel runs.
    pub op: OpKind,
    /// The element types of the op's type variables, in their order.
    pub types: &'static [DType],
    /// Whose devices it runs on.
    pub backend: BackendId,
    /// The function that is launched.
    pub kernel: KernelFn,
    /// What the planner may count on beyond the contract.
    pub caps: Caps,
    /// False for attributes or shapes that the kernel does not take.
    pub accepts: fn(&KernelQuery<'_>) -> bool,
    /// Bytes of scratch the kernel asks for.
    pub scratch_bytes: fn(&KernelQuery<'_>) -> usize,
    /// Names the row among its competitors.
    pub source: &'static str,
}

/// What a row is asked about: a node whose shapes are known.
#[derive(Debug)]
pub struct KernelQuery<'a> {
    /// The node's op with its attributes.
    pub op: &'a Op,
    /// `None`: omitted.
    pub inputs: &'a [Option<OperandSpec>],
    /// One an output; a data-sized one has its upper bound.
    pub outputs: &'a [OperandSpec],
    /// Working threads of the pool that will run it.
    pub threads: usize,
}

/// Element type and shape of an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandSpec {
    /// Element type.
    pub dtype: DType,
    /// Shape, every dimension known.
    pub dims: Shape,
}

impl OperandSpec {
    /// Bytes that the operand takes; 0 for an absurd one, which inference has refused before.
    pub fn n_bytes(&self) -> usize {
        self.dims.n_elems().and_then(|n| self.dtype.size_bytes(n)).unwrap_or(0)
    }
}

impl fmt::Display for OperandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.dims)
    }
}

/// What a row can do beyond the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Reads inputs through `KernelCtx::words`, so that a mapped weight need not be aligned. A row without it gets
    /// such a weight materialised once.
    pub unaligned: bool,
    /// May be part of a captured run: same addresses in, same launches out.
    pub capture_safe: bool,
}

/// The row that others are written from: `KernelBinding { op, types, kernel, source, ..ROW }`.
pub const ROW: KernelBinding = KernelBinding {
    op: OpKind::Input,
    types: &[],
    backend: BackendId::CPU,
    kernel: no_kernel,
    caps: Caps { unaligned: false, capture_safe: true },
    accepts: |_| true,
    scratch_bytes: |_| 0,
    source: "",
};

fn no_kernel(_ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    Err(OpError::unsupported("a row without a kernel was chosen"))
}

/// All rows of all backends, read-only once made.
#[derive(Debug)]
pub struct KernelBindingTable {
    rows: Vec<&'static KernelBinding>,
    references: Vec<(BackendId, KernelFn)>,
}

/// Why rows do not make a table, or a table has no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingError {
    /// What is wrong, and which rows there are.
    pub message: String,
}

impl fmt::Display for BindingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BindingError {}

impl KernelBindingTable {
    /// Makes the table of given rows. `references` names the backends on which an op without a row runs its reference.
    ///
    /// **Errors**: two rows of one key and source; element types that do not fit the op's type variables.
    pub fn finalize(
        families: &[&'static [KernelBinding]],
        references: &[(BackendId, KernelFn)],
    ) -> Result<KernelBindingTable, BindingError> {
        let mut rows: Vec<&'static KernelBinding> = families.iter().flat_map(|rows| rows.iter()).collect();
        // Stable: competitors keep the order in which they are listed, first choice first.
        rows.sort_by_key(|row| (row.op, row.backend, row.types));
        for row in &rows {
            let info = row.op.info();
            let fits = row.types.len() == info.types.len()
                && row.types.iter().zip(info.types).all(|(dtype, var)| var.allowed.contains(dtype));
            if !fits {
                let message = format!("{} row {:?}: types {:?} do not fit the op", info.name, row.source, row.types);
                return Err(BindingError { message });
            }
        }
        let same_key = |a: &KernelBinding, b: &KernelBinding| (a.op, a.backend, a.types) == (b.op, b.backend, b.types);
        for (i, row) in rows.iter().enumerate() {
            let later = rows[i + 1..].iter().take_while(|other| same_key(row, other));
            if later.into_iter().any(|other| other.source == row.source) {
                let message = format!("{} has two rows {:?} for {:?}", row.op.name(), row.source, row.types);
                return Err(BindingError { message });
            }
        }
        Ok(KernelBindingTable { rows, references: references.to_vec() })
    }

    /// The rows of a key, first choice first.
    pub fn rows(&self, op: OpKind, types: &[DType], backend: BackendId) -> &[&'static KernelBinding] {
        let key = (op, backend, types);
        let from = self.rows.partition_point(|row| (row.op, row.backend, row.types) < key);
        let n = self.rows[from..].partition_point(|row| (row.op, row.backend, row.types) == key);
        &self.rows[from..from + n]
    }

    /// Every row.
    pub fn all(&self) -> &[&'static KernelBinding] {
        &self.rows
    }

    /// The kernel that runs an op's reference on a backend, where it has one.
    pub fn reference(&self, backend: BackendId) -> Option<KernelFn> {
        self.references.iter().find(|(id, _)| *id == backend).map(|(_, kernel)| *kernel)
    }

    /// The error of a node that no row takes: names the key and what exists.
    pub fn missing(&self, op: OpKind, types: &Types, backend: BackendId) -> BindingError {
        let names = |types: &[DType]| types.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
        let mut exist: Vec<String> = vec![];
        for row in self.rows.iter().filter(|row| row.op == op && row.backend == backend) {
            exist.push(format!("({}) {}", names(row.types), row.source));
        }
        let exist = if exist.is_empty() { "none".to_owned() } else { exist.join("; ") };
        let message = format!("no kernel for {}({}) on {backend}; rows that exist: {exist}", op.name(), names(types));
        BindingError { message }
    }
}

impl fmt::Debug for KernelBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} {} on {}", self.op.name(), self.types, self.source, self.backend)
    }
}
