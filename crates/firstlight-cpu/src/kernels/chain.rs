//! Elementwise ops that run as one: a tile at a time through all steps, with the functions of the separate kernels.

use super::rows::row;
use super::spread::{STREAM_NS, spread};
use super::{other_op, unary};
use firstlight_backend::{KernelBinding, KernelCtx, KernelQuery};
use firstlight_gemm::{Binary, Isa, Src, Unary};
use firstlight_graph::ops::elementwise::chain::{MAX_INPUTS, MAX_STEPS, Operand, Step};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::F32;

pub(super) const BINDINGS: &[KernelBinding] =
    &[KernelBinding { accepts, ..row(OpKind::Elementwise, &[F32], chain_f32) }];

/// Elements that go through all steps before the next ones.
const TILE: usize = 512;

/// Results of steps, and inputs that are spread over a tile.
type Registers = [[f32; TILE]; MAX_INPUTS + MAX_STEPS];

/// Which element of an input goes with an output's: `(at / inner) % mid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pattern {
    inner: usize,
    mid: usize,
}

impl Pattern {
    /// The pattern of an input whose dimensions other than 1 are a run of the output's.
    fn new(dims: &[usize], out: &[usize]) -> Option<Pattern> {
        let lead = out.len().checked_sub(dims.len())?;
        let Some(first) = dims.iter().position(|dim| *dim != 1) else { return Some(Pattern { inner: 1, mid: 1 }) };
        let end = dims.iter().rposition(|dim| *dim != 1)? + 1;
        let product = |dims: &[usize]| dims.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim));
        let (run, inner) = (dims.get(first..end)?, out.get(lead + end..)?);
        (out.get(lead + first..lead + end)? == run).then_some(Pattern { inner: product(inner)?, mid: product(run)? })
    }
}

#[derive(Clone, Copy, Debug)]
struct Input<'a> {
    bytes: &'a [u8],
    pattern: Pattern,
}

#[derive(Clone, Copy, Debug)]
enum Function {
    Unary(Unary),
    Binary(Binary),
    /// [`Unary::Clip`] with bounds that are operands.
    Clip,
}

/// What a step reads of a tile: one value for all elements, or one for each.
#[derive(Clone, Copy)]
enum Value<'a> {
    One(f32),
    Each(Src<'a>),
}

fn accepts(query: &KernelQuery<'_>) -> bool {
    let (Op::Elementwise(op), Some(out)) = (query.op, query.outputs.first()) else { return false };
    let fits = |input: &Option<_>| {
        let dims = input.as_ref().map(|spec: &firstlight_backend::OperandSpec| &spec.dims);
        dims.is_some_and(|dims| Pattern::new(dims, &out.dims).is_some())
    };
    query.inputs.len() <= MAX_INPUTS && op.steps.len() <= MAX_STEPS && query.inputs.iter().all(fits)
}

fn function(op: &Op) -> Option<Function> {
    Some(match op {
        Op::Add(_) => Function::Binary(Binary::Add),
        Op::Sub(_) => Function::Binary(Binary::Sub),
        Op::Mul(_) => Function::Binary(Binary::Mul),
        Op::Div(_) => Function::Binary(Binary::Div),
        Op::Clip(_) => Function::Clip,
        op => Function::Unary(unary::function(op)?),
    })
}

/// About how long a step takes for an element that is in the cache.
fn step_ns(function: Function) -> f32 {
    match function {
        Function::Unary(function) => unary::function_ns(function),
        Function::Binary(Binary::Div) => 0.2,
        _ => 0.04,
    }
}

fn chain_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Elementwise(op) = ctx.op() else { return Err(other_op("Elementwise")) };
    let misfit = || other_op("Elementwise of operands that fit");
    let (out_dims, n_inputs) = (ctx.out_dims(0)?, ctx.n_inputs());
    let mut inputs = [Input { bytes: &[], pattern: Pattern { inner: 1, mid: 1 } }; MAX_INPUTS];
    for (i, input) in inputs.iter_mut().enumerate().take(n_inputs) {
        let pattern = Pattern::new(ctx.dims(i)?, out_dims).ok_or_else(misfit)?;
        *input = Input { bytes: ctx.bytes(i)?, pattern };
    }
    let mut functions = [Function::Unary(Unary::Relu); MAX_STEPS];
    let mut ns_per_elem = STREAM_NS;
    if op.steps.len() > MAX_STEPS || n_inputs > MAX_INPUTS {
        return Err(misfit());
    }
    for (at, step) in functions.iter_mut().zip(&op.steps) {
        *at = function(&step.op).ok_or_else(misfit)?;
        ns_per_elem += step_ns(*at);
    }
    let out = ctx.output::<f32>(0)?;
    let isa = Isa::detect();
    spread(ctx.pool(), out, 1, ns_per_elem, &|at, out| {
        let mut registers: Registers = [[0.0; TILE]; MAX_INPUTS + MAX_STEPS];
        for (i, tile) in out.chunks_mut(TILE).enumerate() {
            run_tile(isa, &op.steps, &functions, &inputs[..n_inputs], &mut registers, at + i * TILE, tile);
        }
    })
}

/// Runs all steps for the elements of the output from `at` on.
fn run_tile(
    isa: Isa,
    steps: &[Step],
    functions: &[Function; MAX_STEPS],
    inputs: &[Input<'_>],
    registers: &mut Registers,
    at: usize,
    out: &mut [f32],
) {
    let n = out.len();
    let (spread_inputs, results) = registers.split_at_mut(MAX_INPUTS);
    for (input, register) in inputs.iter().zip(spread_inputs.iter_mut()) {
        if input.direct(at, n).is_none() {
            input.spread(at, &mut register[..n]);
        }
    }
    for (i, step) in steps.iter().enumerate() {
        let (done, rest) = results.split_at_mut(i);
        let value = |operand: usize| match step.operands.get(operand) {
            Some(&Operand::Input(input)) => {
                inputs[input].direct(at, n).unwrap_or(Value::Each(Src::from(&spread_inputs[input][..n])))
            }
            Some(&Operand::Step(step)) => Value::Each(Src::from(&done[step][..n])),
            Some(&Operand::Omitted) | None => Value::One(f32::NAN),
        };
        let to = if i + 1 == steps.len() { &mut *out } else { &mut rest[0][..n] };
        let function = match functions[i] {
            Function::Clip => Function::Unary(Unary::Clip { min: value(1).first(), max: value(2).first() }),
            other => other,
        };
        match (function, value(0), value(1)) {
            (Function::Unary(op), Value::Each(x), _) => isa.unary(op, x, to),
            (Function::Unary(op), Value::One(x), _) => {
                isa.unary(op, Src::from(&[x][..]), &mut to[..1]);
                to.fill(to[0]);
            }
            (Function::Binary(op), Value::Each(a), Value::Each(b)) => isa.binary(op, a, b, to),
            (Function::Binary(op), Value::Each(a), Value::One(b)) => isa.binary_scalar(op, a, b, to),
            (Function::Binary(op), Value::One(a), Value::Each(b)) => isa.scalar_binary(op, a, b, to),
            (Function::Binary(op), Value::One(a), Value::One(b)) => {
                isa.binary(op, Src::from(&[a][..]), Src::from(&[b][..]), &mut to[..1]);
                to.fill(to[0]);
            }
            // Its bounds have made it a function.
            (Function::Clip, _, _) => {}
        }
    }
}

impl Value<'_> {
    /// The value for the tile's first element.
    fn first(self) -> f32 {
        match self {
            Value::One(x) => x,
            Value::Each(src) => src.get(0).unwrap_or(f32::NAN),
        }
    }
}

impl<'a> Input<'a> {
    /// The elements for `n` of the output from `at` on, where they lie in order or are all one.
    fn direct(&self, at: usize, n: usize) -> Option<Value<'a>> {
        let Pattern { inner, mid } = self.pattern;
        let src = Src::from_bytes(self.bytes);
        if mid == 1 || (inner > 1 && at / inner == (at + n - 1) / inner) {
            return Some(Value::One(src.get(at / inner % mid).unwrap_or(0.0)));
        }
        let start = at % mid;
        (inner == 1 && start + n <= mid).then(|| Value::Each(src.slice(start, n)))
    }

    /// Writes the elements for the output from `at` on.
    fn spread(&self, at: usize, to: &mut [f32]) {
        let Pattern { inner, mid } = self.pattern;
        let mut done = 0;
        while done < to.len() {
            let at = at + done;
            let here = if inner == 1 { mid - at % mid } else { inner - at % inner };
            let part = &mut to[done..];
            let n = here.min(part.len());
            let part = &mut part[..n];
            match inner {
                1 => bytemuck::cast_slice_mut(part).copy_from_slice(&self.bytes[at % mid * 4..][..n * 4]),
                _ => part.fill(Src::from_bytes(self.bytes).get(at / inner % mid).unwrap_or(0.0)),
            }
            done += n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_runs_of_the_output() {
        let pattern = |dims: &[usize], out: &[usize]| Pattern::new(dims, out).map(|p| (p.inner, p.mid));
        assert_eq!(pattern(&[2, 3], &[2, 3]), Some((1, 6)), "the same shape");
        assert_eq!(pattern(&[], &[2, 3]), Some((1, 1)), "one element");
        assert_eq!(pattern(&[1, 1], &[2, 3]), Some((1, 1)));
        assert_eq!(pattern(&[3], &[2, 3]), Some((1, 3)), "a row");
        assert_eq!(pattern(&[2, 1], &[2, 3]), Some((3, 2)), "a column");
        assert_eq!(pattern(&[4, 1, 1], &[2, 4, 5, 6]), Some((30, 4)), "channels");
        assert_eq!(pattern(&[2, 1, 3], &[2, 4, 3]), None, "not a run");
        assert_eq!(pattern(&[1, 2, 3], &[2, 3]), None, "more dimensions");
        assert_eq!(pattern(&[2], &[3]), None);
    }
}
