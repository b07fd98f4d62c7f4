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
    /// By op; those of one op as they are listed, so that of competitors the first choice comes first.
    rows: Vec<&'static KernelBinding>,
    /// Where the rows of each op start.
    starts: Vec<u32>,
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
        let table = KernelBindingTable::of_constants(families, references);
        for row in &table.rows {
            let info = row.op.info();
            let fits = row.types.len() == info.types.len()
                && row.types.iter().zip(info.types).all(|(dtype, var)| var.allowed.contains(dtype));
            if !fits {
                let message = format!("{} row {:?}: types {:?} do not fit the op", info.name, row.source, row.types);
                return Err(BindingError { message });
            }
            let same = table.rows(row.op, row.types, row.backend).filter(|other| other.source == row.source);
            if same.count() > 1 {
                let message = format!("{} has two rows {:?} for {:?}", row.op.name(), row.source, row.types);
                return Err(BindingError { message });
            }
        }
        Ok(table)
    }

    /// The same of rows that are known to make a table, such as those of a crate whose tests finalize them: nothing is
    /// checked, so that a process starts sooner.
    pub fn of_constants(
        families: &[&'static [KernelBinding]],
        references: &[(BackendId, KernelFn)],
    ) -> KernelBindingTable {
        let all = || families.iter().copied().flatten();
        let mut starts = vec![0u32; OpKind::ALL.len() + 1];
        all().for_each(|row| starts[row.op as usize + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut rows = vec![&ROW; all().count()];
        for row in all() {
            let place = &mut next[row.op as usize];
            rows[*place as usize] = row;
            *place += 1;
        }
        KernelBindingTable { rows, starts, references: references.to_vec() }
    }

    /// The rows of a key, first choice first.
    pub fn rows<'a>(
        &'a self,
        op: OpKind,
        types: &'a [DType],
        backend: BackendId,
    ) -> impl Iterator<Item = &'static KernelBinding> + 'a {
        self.of_op(op).iter().copied().filter(move |row| row.types == types && row.backend == backend)
    }

    fn of_op(&self, op: OpKind) -> &[&'static KernelBinding] {
        let place = |i: usize| self.starts[i] as usize;
        &self.rows[place(op as usize)..place(op as usize + 1)]
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
        for row in self.of_op(op).iter().filter(|row| row.backend == backend) {
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
