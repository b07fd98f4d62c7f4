//! Elementwise ops that run as one: a tile at a time through all steps, with the functions of the separate kernels.

use super::rows::row;
use super::spread::{STREAM_NS, spread};
use super::{other_op, unary};
use firstlight_backend::{KernelBinding, KernelCtx, KernelQuery, OperandSpec};
use firstlight_gemm::{Binary, Isa, Src, Unary};
use firstlight_graph::ops::elementwise::chain::{MAX_INPUTS, MAX_STEPS, Operand, Step};
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::F32;

pub(super) const BINDINGS: &[KernelBinding] =
    &[KernelBinding { accepts, ..row(OpKind::Elementwise, &[F32], chain_f32) }];

/// Slots that hold tiles of intermediate values, for most chains and for all.
const FEW_SLOTS: usize = 4;
const MAX_SLOTS: usize = MAX_INPUTS + MAX_STEPS;

fn accepts(query: &KernelQuery<'_>) -> bool {
    let (Op::Elementwise(op), Some(out)) = (query.op, query.outputs.first()) else { return false };
    !op.steps.is_empty() && query.inputs.len() <= MAX_INPUTS && fits(&op.steps, query.inputs, out)
}

/// Whether a chain can run over an output, with operands of these specs.
pub(super) fn fits(steps: &[Step], inputs: &[Option<OperandSpec>], out: &OperandSpec) -> bool {
    let is_run = |input: &Option<OperandSpec>| {
        input.as_ref().is_some_and(|input| Pattern::new(&input.dims, &out.dims).is_some())
    };
    steps.len() <= MAX_STEPS && inputs.len() <= MAX_INPUTS && inputs.iter().all(is_run)
}

fn chain_f32(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::Elementwise(op) = ctx.op() else { return Err(other_op("Elementwise")) };
    let chain = Chain::of_inputs(ctx, &op.steps)?;
    let out = ctx.output::<f32>(0)?;
    let isa = Isa::detect();
    spread(ctx.pool(), out, 1, STREAM_NS + chain.ns_per_elem, &|at, out| chain.run(isa, at, out))
}

/// The steps of a chain and what they read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain<'a> {
    steps: &'a [Step],
    functions: [Function; MAX_STEPS],
    /// Where each step's result lies; the last one's is the output.
    places: [usize; MAX_STEPS],
    inputs: [Input<'a>; MAX_INPUTS],
    n_inputs: usize,
    n_slots: usize,
    ns_per_elem: f32,
}

#[derive(Clone, Copy, Debug)]
struct Input<'a> {
    /// `None`: what the output holds before.
    bytes: Option<&'a [u8]>,
    pattern: Pattern,
    /// Where it is spread over a tile, unless it never is.
    place: Option<usize>,
}

/// Which element of an input goes with an output's: `(at / inner) % mid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pattern {
    inner: usize,
    mid: usize,
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

fn misfit() -> OpError {
    other_op("elementwise steps with operands that fit")
}

impl<'a> Chain<'a> {
    /// A chain that reads the launch's inputs.
    ///
    /// **Errors**: steps or inputs that the row did not accept.
    fn of_inputs(ctx: &KernelCtx<'a>, steps: &'a [Step]) -> Result<Chain<'a>, OpError> {
        let mut inputs = [Input::RESULT; MAX_INPUTS];
        let n_inputs = ctx.n_inputs();
        for (i, input) in inputs.get_mut(..n_inputs).ok_or_else(misfit)?.iter_mut().enumerate() {
            *input = Input::new(ctx, i)?;
        }
        Chain::new(steps, inputs, n_inputs, ctx.out_dims(0)?.iter().product())
    }

    /// A chain whose input 0 is what the output holds, and whose others are the launch's from `first` on.
    ///
    /// **Errors**: steps or inputs that the row did not accept.
    pub(super) fn of_result(ctx: &KernelCtx<'a>, steps: &'a [Step], first: usize) -> Result<Chain<'a>, OpError> {
        let mut inputs = [Input::RESULT; MAX_INPUTS];
        let n_others = ctx.n_inputs().saturating_sub(first);
        for (i, input) in inputs.get_mut(1..1 + n_others).ok_or_else(misfit)?.iter_mut().enumerate() {
            *input = Input::new(ctx, first + i)?;
        }
        Chain::new(steps, inputs, 1 + n_others, ctx.out_dims(0)?.iter().product())
    }

    fn new(
        steps: &'a [Step],
        mut inputs: [Input<'a>; MAX_INPUTS],
        n_inputs: usize,
        n_elems: usize,
    ) -> Result<Chain<'a>, OpError> {
        if steps.is_empty() || steps.len() > MAX_STEPS {
            return Err(misfit());
        }
        let mut n_slots = 0;
        for input in &mut inputs[..n_inputs] {
            // One value, or one for each element in order, is read where it lies.
            let in_place = input.pattern.mid == 1 || (input.pattern.inner == 1 && input.pattern.mid == n_elems);
            if input.bytes.is_none() || !in_place {
                input.place = Some(n_slots);
                n_slots += 1;
            }
        }
        let first_step_slot = n_slots;
        let mut functions = [Function::Clip; MAX_STEPS];
        let mut places = [0; MAX_STEPS];
        // A slot is free once the last step that reads it has run.
        let mut free_from = [0; MAX_STEPS];
        let mut ns_per_elem = 0.0;
        for (i, step) in steps.iter().enumerate() {
            functions[i] = function(&step.op).ok_or_else(misfit)?;
            ns_per_elem += step_ns(functions[i]);
            let reads = |operand: &Operand| match *operand {
                Operand::Input(input) => input < n_inputs,
                Operand::Step(step) => step < i,
                Operand::Omitted => true,
            };
            if !step.operands.iter().all(reads) {
                return Err(misfit());
            }
            let readers = steps.iter().enumerate().filter(|(_, step)| step.operands.contains(&Operand::Step(i)));
            let last = readers.map(|(reader, _)| reader).max().unwrap_or(i);
            let slot = free_from.iter().position(|free| *free <= i).ok_or_else(misfit)?;
            free_from[slot] = last + 1;
            places[i] = first_step_slot + slot;
            if i + 1 < steps.len() {
                n_slots = n_slots.max(places[i] + 1);
            }
        }
        Ok(Chain { steps, functions, places, inputs, n_inputs, n_slots, ns_per_elem })
    }

    /// About how long all steps take for an element that is in the cache.
    pub(super) fn ns_per_elem(&self) -> f32 {
        self.ns_per_elem
    }

    /// Runs all steps for the elements of the output from `at` on.
    pub(super) fn run(&self, isa: Isa, at: usize, out: &mut [f32]) {
        self.run_parts(isa, out.len(), std::iter::once((at, out)));
    }

    /// The same for parts of the output, none of more than `longest` elements.
    pub(super) fn run_parts<'o>(&self, isa: Isa, longest: usize, parts: impl Iterator<Item = (usize, &'o mut [f32])>) {
        match (self.functions[0], self.steps) {
            (Function::Unary(function), [step]) if self.is_of_result(step) => {
                parts.for_each(|(_, out)| isa.unary_in_place(function, out));
            }
            _ if self.n_slots > FEW_SLOTS => self.run_tiles::<128, MAX_SLOTS>(isa, parts),
            _ if longest <= 128 => self.run_tiles::<128, FEW_SLOTS>(isa, parts),
            _ => self.run_tiles::<512, FEW_SLOTS>(isa, parts),
        }
    }

    /// Whether a step's first operand is what the output holds.
    fn is_of_result(&self, step: &Step) -> bool {
        matches!(step.operands.first(), Some(Operand::Input(input)) if self.inputs[*input].bytes.is_none())
    }

    fn run_tiles<'o, const TILE: usize, const SLOTS: usize>(
        &self,
        isa: Isa,
        parts: impl Iterator<Item = (usize, &'o mut [f32])>,
    ) {
        let mut slots = [[0.0; TILE]; SLOTS];
        for (at, part) in parts {
            for (i, tile) in part.chunks_mut(TILE).enumerate() {
                self.run_tile(isa, &mut slots, at + i * TILE, tile);
            }
        }
    }

    fn run_tile<const TILE: usize>(&self, isa: Isa, slots: &mut [[f32; TILE]], at: usize, out: &mut [f32]) {
        let n = out.len();
        let inputs = &self.inputs[..self.n_inputs];
        for (input, place) in inputs.iter().filter_map(|input| Some((input, input.place?))) {
            match input.bytes {
                None => slots[place][..n].copy_from_slice(out),
                Some(bytes) if input.pattern.direct(bytes, at, n).is_none() => {
                    input.pattern.spread(bytes, at, &mut slots[place][..n]);
                }
                Some(_) => {}
            }
        }
        let place_of = |input: &Input<'_>| input.place.unwrap_or(0);
        for (i, step) in self.steps.iter().enumerate() {
            let is_last = i + 1 == self.steps.len();
            let to = if is_last { slots.len() } else { self.places[i] };
            let (before, rest) = slots.split_at_mut(to);
            let (own, after) = match rest.split_first_mut() {
                Some((own, after)) => (Some(own), &*after),
                None => (None, &[][..]),
            };
            let slot = |place: usize| {
                let slot = if place < to { &before[place] } else { &after[place - to - 1] };
                Value::Each(Src::from(&slot[..n]))
            };
            let value = |operand: usize| match step.operands.get(operand) {
                Some(&Operand::Input(input)) => {
                    let input = &inputs[input];
                    let direct = input.bytes.and_then(|bytes| input.pattern.direct(bytes, at, n));
                    direct.unwrap_or_else(|| slot(place_of(input)))
                }
                Some(&Operand::Step(step)) => slot(self.places[step]),
                Some(&Operand::Omitted) | None => Value::One(f32::NAN),
            };
            let to = match own {
                Some(own) => &mut own[..n],
                None => &mut *out,
            };
            apply(isa, self.functions[i], value, to);
        }
    }
}

/// One step of a tile.
fn apply<'v>(isa: Isa, function: Function, value: impl Fn(usize) -> Value<'v>, to: &mut [f32]) {
    match (function, value(0), value(1)) {
        (Function::Unary(op), x, _) => each(isa, op, x, to),
        (Function::Clip, x, min) => each(isa, Unary::Clip { min: min.first(), max: value(2).first() }, x, to),
        (Function::Binary(op), Value::Each(a), Value::Each(b)) => isa.binary(op, a, b, to),
        (Function::Binary(op), Value::Each(a), Value::One(b)) => isa.binary_scalar(op, a, b, to),
        (Function::Binary(op), Value::One(a), Value::Each(b)) => isa.scalar_binary(op, a, b, to),
        (Function::Binary(op), Value::One(a), Value::One(b)) => {
            isa.binary(op, Src::from(&[a][..]), Src::from(&[b][..]), &mut to[..1]);
            to.fill(to[0]);
        }
    }
}

fn each(isa: Isa, op: Unary, x: Value<'_>, to: &mut [f32]) {
    match x {
        Value::Each(x) => isa.unary(op, x, to),
        Value::One(x) => {
            isa.unary(op, Src::from(&[x][..]), &mut to[..1]);
            to.fill(to[0]);
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
    /// What the output holds before.
    const RESULT: Input<'a> = Input { bytes: None, pattern: Pattern { inner: 1, mid: 1 }, place: None };

    /// Input `i` of a launch.
    fn new(ctx: &KernelCtx<'a>, i: usize) -> Result<Input<'a>, OpError> {
        let pattern = Pattern::new(ctx.dims(i)?, ctx.out_dims(0)?).ok_or_else(misfit)?;
        Ok(Input { bytes: Some(ctx.bytes(i)?), pattern, place: None })
    }
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

    /// The elements for `n` of the output from `at` on, where they lie in order or are all one.
    fn direct<'a>(&self, bytes: &'a [u8], at: usize, n: usize) -> Option<Value<'a>> {
        let Pattern { inner, mid } = *self;
        let src = Src::from_bytes(bytes);
        if mid == 1 || (inner > 1 && at / inner == (at + n - 1) / inner) {
            return Some(Value::One(src.get(at / inner % mid).unwrap_or(0.0)));
        }
        let start = at % mid;
        (inner == 1 && start + n <= mid).then(|| Value::Each(src.slice(start, n)))
    }

    /// Writes the elements for the output from `at` on.
    fn spread(&self, bytes: &[u8], at: usize, to: &mut [f32]) {
        let Pattern { inner, mid } = *self;
        let mut done = 0;
        while done < to.len() {
            let at = at + done;
            let here = if inner == 1 { mid - at % mid } else { inner - at % inner };
            let part = &mut to[done..];
            let n = here.min(part.len());
            let part = &mut part[..n];
            match inner {
                1 => bytemuck::cast_slice_mut(part).copy_from_slice(&bytes[at % mid * 4..][..n * 4]),
                _ => part.fill(Src::from_bytes(bytes).get(at / inner % mid).unwrap_or(0.0)),
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

    #[test]
    fn slots_are_used_again() {
        use firstlight_graph::ops;
        let step = |op: Op, operands: &[Operand]| Step { op, operands: operands.into() };
        let (x, t) = (Operand::Input, Operand::Step);
        let steps = [
            step(ops::Add.into(), &[x(0), x(0)]),
            step(ops::Relu.into(), &[t(0)]),
            step(ops::Mul.into(), &[t(0), t(1)]),
            step(ops::Sqrt.into(), &[t(2)]),
            step(ops::Sub.into(), &[t(3), x(0)]),
        ];
        let chain = Chain::new(&steps, [Input::RESULT; MAX_INPUTS], 1, 7).unwrap();
        assert_eq!(chain.places[..4], [1, 2, 3, 1], "after the copy of the output");
        assert_eq!(chain.n_slots, 4);
    }
}
