//! `LSTM`.

use super::activation::Activation;
use super::arith::{Math, Real, Stored, widened};
use crate::op::{Arity, AttrDoc, AttrValue, Case, Exactness, OpDef, OpInfo, Param, RefCtx, TypeRef, TypeVar};
use crate::ops::elementwise::unlisted;
use crate::ops::layout::{case_tensor, check_output, product};
use crate::ops::types::FLOATS;
use crate::{InferCtx, OpError, OutInfo};
use firstlight_tensor::{DType, Dim, Shape, SymShape, Tensor, TensorView, bf16, f16};
use smallvec::SmallVec;

/// A long short-term memory over a sequence, in one direction or both.
///
/// A gate is `(x W + h R) + (Wb + Rb) + P c`, added in that order with a rounding each; the two products are sums of their
/// own, from +0, one fused multiply-add a term in ascending order. The new state is `f c + i g`, both products rounded.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LSTM {
    /// The functions f, g and h of each direction; Sigmoid, Tanh, Tanh when empty.
    pub activations: Vec<Activation>,
    /// True when the batch comes first (ONNX's layout 1).
    pub batch_first: bool,
    /// Bound of what goes into a gate's activation (not into h), on both sides of 0.
    pub clip: Option<f32>,
    /// Which way the sequence is read.
    pub direction: Direction,
    /// Size of the state; the recurrence weights' when omitted.
    pub hidden_size: Option<i64>,
    /// True when the forget gate is 1 minus the input gate.
    pub input_forget: bool,
}

/// Which way a recurrent op reads its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// From the first element to the last.
    #[default]
    Forward,
    /// From the last element to the first.
    Reverse,
    /// Both, forward first, each with its own weights.
    Bidirectional,
}

const fn optional(name: &'static str) -> Param {
    Param { name, ty: TypeRef::Var(0), arity: Arity::Optional }
}

pub(crate) const INFO: OpInfo = OpInfo {
    name: "LSTM",
    doc: "A long short-term memory over a sequence, in one direction or both. Beyond a sequence's own length outputs \
          are 0, and the last states are those at its end.",
    attributes: &[
        AttrDoc {
            name: "activations",
            doc: "the functions f, g and h of each direction; Sigmoid, Tanh, Tanh when empty",
        },
        AttrDoc { name: "batch_first", doc: "the batch comes first (ONNX's layout 1)" },
        AttrDoc { name: "clip", doc: "bound of what goes into a gate's activation, on both sides of 0" },
        AttrDoc { name: "direction", doc: "forward, reverse or bidirectional" },
        AttrDoc { name: "hidden_size", doc: "size of the state; the recurrence weights' when omitted" },
        AttrDoc { name: "input_forget", doc: "the forget gate is 1 minus the input gate" },
    ],
    inputs: &[
        Param { name: "X", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "W", ty: TypeRef::Var(0), arity: Arity::One },
        Param { name: "R", ty: TypeRef::Var(0), arity: Arity::One },
        optional("B"),
        Param { name: "sequence_lens", ty: TypeRef::Fixed(DType::I32), arity: Arity::Optional },
        optional("initial_h"),
        optional("initial_c"),
        optional("P"),
    ],
    outputs: &[optional("Y"), optional("Y_h"), optional("Y_c")],
    types: &[TypeVar { name: "T", allowed: FLOATS }],
    exactness: Exactness::Rounding,
    cases,
};

impl OpDef for LSTM {
    fn attributes(&self) -> Vec<(&'static str, AttrValue)> {
        let names: Vec<String> = self.activations.iter().map(Activation::to_string).collect();
        let mut attributes = vec![
            ("activations", AttrValue::Text(names.join(" "))),
            ("batch_first", AttrValue::Bool(self.batch_first)),
            ("direction", AttrValue::Text(self.direction.name().to_owned())),
            ("input_forget", AttrValue::Bool(self.input_forget)),
        ];
        attributes.extend(self.clip.map(|clip| ("clip", AttrValue::Float(clip))));
        attributes.extend(self.hidden_size.map(|size| ("hidden_size", AttrValue::Int(size))));
        attributes.sort_by_key(|attribute| attribute.0);
        attributes
    }

    fn infer(&self, ctx: &InferCtx<'_>) -> Result<SmallVec<[OutInfo; 1]>, OpError> {
        let (x, w, r) = (ctx.dims(0)?, ctx.shape(1)?, ctx.shape(2)?);
        let [first, second, input] = &x[..] else {
            return Err(OpError::shape(format!("LSTM takes X of 3 dimensions, got {x}")));
        };
        let (seq, batch) = if self.batch_first { (second, first) } else { (first, second) };
        // Sizes that are not known yet are taken as fitting.
        let size = |dim: &Dim, else_size| dim.known().unwrap_or(else_size);
        let input_size = size(input, w.get(2).copied().unwrap_or(0));
        let sizes = [size(first, 1), size(second, 1), input_size];
        let geometry = self.geometry(&sizes, &w, &r)?;
        for (i, expected) in geometry.optional_shapes() {
            if !ctx.has(i) {
                continue;
            }
            let got = ctx.dims(i)?;
            // Batch sizes that are not known are compared with those of 1, so only what is known all over counts.
            let open = batch.known().is_none();
            let fits = got.rank() == expected.rank()
                && got.iter().zip(&expected).enumerate().all(|(d, (dim, &size))| {
                    (open && Some(d) == self.batch_axis(i)) || dim.known().is_none_or(|dim| dim == size)
                });
            if !fits {
                return Err(misfit(i, &got.to_string(), &expected));
            }
        }
        let (directions, hidden) = (Dim::Known(geometry.directions), Dim::Known(geometry.hidden));
        let (y, state) = match self.batch_first {
            true => (
                vec![batch.clone(), seq.clone(), directions.clone(), hidden.clone()],
                vec![batch.clone(), directions, hidden],
            ),
            false => (
                vec![seq.clone(), directions.clone(), batch.clone(), hidden.clone()],
                vec![directions, batch.clone(), hidden],
            ),
        };
        let dtype = ctx.dtype(0)?;
        Ok([y, state.clone(), state].into_iter().map(|dims| OutInfo::new(dtype, SymShape(dims))).collect())
    }

    fn reference(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError> {
        match ctx.input(0)?.dtype() {
            DType::F32 => self.compute::<f32>(ctx),
            DType::F64 => self.compute::<f64>(ctx),
            DType::F16 => self.compute::<f16>(ctx),
            DType::BF16 => self.compute::<bf16>(ctx),
            other => Err(unlisted("LSTM", other)),
        }
    }

    fn n_operations(&self, inputs: &[&[usize]], _outputs: &[&[usize]]) -> u64 {
        let [x, w, r, ..] = inputs else { return 0 };
        let count = |dims: &[usize]| dims.iter().fold(1u64, |n, &dim| n.saturating_mul(dim as u64));
        let steps = x.get(..2).map_or(0, count);
        steps.saturating_mul(count(w).saturating_add(count(r))).saturating_mul(2)
    }
}

/// Sizes of an [`LSTM`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LstmGeometry {
    /// Elements of the longest sequence.
    pub seq: usize,
    /// Sequences.
    pub batch: usize,
    /// Size of one element of the sequence.
    pub input: usize,
    /// Size of the state.
    pub hidden: usize,
    /// 1 or 2.
    pub directions: usize,
    /// True where batch comes before sequence in the shapes (`layout` 1).
    pub batch_first: bool,
}

impl LstmGeometry {
    /// Shape of `Y`.
    pub fn y_shape(&self) -> Shape {
        match self.batch_first {
            true => Shape::from([self.batch, self.seq, self.directions, self.hidden]),
            false => Shape::from([self.seq, self.directions, self.batch, self.hidden]),
        }
    }

    /// Shape of `Y_h`, `Y_c`, `initial_h` and `initial_c`.
    pub fn state_shape(&self) -> Shape {
        match self.batch_first {
            true => Shape::from([self.batch, self.directions, self.hidden]),
            false => Shape::from([self.directions, self.batch, self.hidden]),
        }
    }

    /// Element of `X` at which a step of the sequence starts.
    pub fn x_at(&self, step: usize, batch: usize) -> usize {
        let row = if self.batch_first { batch * self.seq + step } else { step * self.batch + batch };
        row * self.input
    }

    /// Element of `Y` at which a step's output starts.
    pub fn y_at(&self, step: usize, direction: usize, batch: usize) -> usize {
        let row = match self.batch_first {
            true => (batch * self.seq + step) * self.directions + direction,
            false => (step * self.directions + direction) * self.batch + batch,
        };
        row * self.hidden
    }

    /// Element of a state at which a direction's state of one batch starts.
    pub fn state_at(&self, direction: usize, batch: usize) -> usize {
        let row = if self.batch_first { batch * self.directions + direction } else { direction * self.batch + batch };
        row * self.hidden
    }

    /// Inputs that may be omitted, with the shapes they have when given.
    fn optional_shapes(&self) -> [(usize, Shape); 5] {
        let rows = |n: usize| Shape::from([self.directions, n.saturating_mul(self.hidden)]);
        [(3, rows(8)), (4, Shape::from([self.batch])), (5, self.state_shape()), (6, self.state_shape()), (7, rows(3))]
    }
}

impl Direction {
    /// ONNX's name of the direction.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
            Direction::Bidirectional => "bidirectional",
        }
    }

    /// The direction of that name.
    pub fn from_name(name: &str) -> Option<Direction> {
        [Direction::Forward, Direction::Reverse, Direction::Bidirectional].into_iter().find(|way| way.name() == name)
    }

    /// How many directions that is.
    pub fn count(self) -> usize {
        if self == Direction::Bidirectional { 2 } else { 1 }
    }

    /// True when direction `i` reads from the end.
    pub fn is_reverse(self, i: usize) -> bool {
        self == Direction::Reverse || i == 1
    }
}

/// The functions of one direction: f for the gates, g for the candidate, h for the state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LstmActivations {
    /// Of the input, output and forget gates.
    pub f: Activation,
    /// Of the candidate for the cell.
    pub g: Activation,
    /// Of the cell, before the output gate scales it.
    pub h: Activation,
}

impl LSTM {
    /// Sizes of an LSTM over `x` with input weights `w` and recurrence weights `r`, once the attributes are checked.
    ///
    /// **Errors**: shapes that do not fit each other or `hidden_size`, a wrong count of activations, a clip that is no
    /// bound.
    pub fn geometry(&self, x: &[usize], w: &[usize], r: &[usize]) -> Result<LstmGeometry, OpError> {
        let directions = self.direction.count();
        let ([first, second, input], [_, _, w_input], [_, rows, hidden]) = (x, w, r) else {
            return Err(OpError::shape(format!(
                "LSTM takes X, W and R of 3 dimensions each, got {}, {} and {}",
                Shape::from(x),
                Shape::from(w),
                Shape::from(r)
            )));
        };
        let gates = hidden.checked_mul(4);
        let fits =
            gates == Some(*rows) && w[..] == [directions, *rows, *input] && r[0] == directions && input == w_input;
        let declared = self.hidden_size.is_none_or(|size| usize::try_from(size) == Ok(*hidden));
        if !fits || !declared {
            return Err(OpError::shape(format!(
                "W {} and R {} do not fit {directions} direction(s) of 4 gates over X {}{}",
                Shape::from(w),
                Shape::from(r),
                Shape::from(x),
                self.hidden_size.map_or(String::new(), |size| format!(" with hidden_size {size}"))
            )));
        }
        if !self.activations.is_empty() && self.activations.len() != 3 * directions {
            return Err(OpError::value(format!(
                "LSTM takes 3 activations for each of {directions} direction(s), got {}",
                self.activations.len()
            )));
        }
        if self.clip.is_some_and(|clip| clip.is_nan() || clip < 0.0) {
            return Err(OpError::value("clip must be a number of at least 0"));
        }
        let (seq, batch) = if self.batch_first { (*second, *first) } else { (*first, *second) };
        let geometry =
            LstmGeometry { seq, batch, input: *input, hidden: *hidden, directions, batch_first: self.batch_first };
        product(&geometry.y_shape())?;
        Ok(geometry)
    }

    /// The functions of direction `i`.
    pub fn functions(&self, i: usize) -> LstmActivations {
        match self.activations.get(3 * i..3 * i + 3) {
            Some(&[f, g, h]) => LstmActivations { f, g, h },
            _ => LstmActivations { f: Activation::Sigmoid, g: Activation::Tanh, h: Activation::Tanh },
        }
    }

    /// The axis of input `i` that is the batch.
    fn batch_axis(&self, i: usize) -> Option<usize> {
        match i {
            4 => Some(0),
            5 | 6 => Some(usize::from(!self.batch_first)),
            _ => None,
        }
    }

    fn compute<T: Stored>(&self, ctx: &mut RefCtx<'_>) -> Result<(), OpError>
    where
        T::Math: Real,
    {
        let (x, w, r) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let geometry = self.geometry(x.shape(), w.shape(), r.shape())?;
        for (i, expected) in geometry.optional_shapes() {
            match ctx.optional(i) {
                Some(view) if view.shape() != &expected => {
                    return Err(misfit(i, &view.shape().to_string(), &expected));
                }
                _ => {}
            }
        }
        let shapes = [geometry.y_shape(), geometry.state_shape(), geometry.state_shape()];
        for (i, shape) in shapes.iter().enumerate().take(ctx.n_outputs().max(1)) {
            check_output(ctx, i, shape)?;
        }
        if ctx.outputs().iter().all(|output| output.shape().contains(&0)) {
            return Ok(());
        }
        let lens = sequence_lens(ctx.optional(4), &geometry)?;
        let optional = |i: usize| ctx.optional(i).map(|view| widened::<T>(&view)).transpose();
        let cell = Cell {
            geometry,
            x: widened::<T>(&x)?,
            w: widened::<T>(&w)?,
            r: widened::<T>(&r)?,
            b: optional(3)?,
            p: optional(7)?,
            clip: self.clip.map(|clip| T::Math::from_f64(clip.into())),
            input_forget: self.input_forget,
        };
        let zeros = vec![T::Math::ZERO; product(&shapes[1])?];
        let mut h = optional(5)?.unwrap_or_else(|| zeros.clone());
        let mut c = optional(6)?.unwrap_or(zeros);
        let mut y = vec![T::Math::ZERO; product(&shapes[0])?];
        let hidden = geometry.hidden;
        for direction in 0..geometry.directions {
            let functions = self.functions(direction);
            for (batch, &len) in lens.iter().enumerate() {
                let at = geometry.state_at(direction, batch);
                let (h, c) = (&mut h[at..at + hidden], &mut c[at..at + hidden]);
                for i in 0..len {
                    let step = if self.direction.is_reverse(direction) { len - 1 - i } else { i };
                    cell.advance(functions, step, direction, batch, h, c);
                    let at = geometry.y_at(step, direction, batch);
                    y[at..at + hidden].copy_from_slice(h);
                }
            }
        }
        for (i, values) in [y, h, c].iter().enumerate().take(ctx.n_outputs()) {
            for (to, &value) in ctx.output(i)?.values_mut::<T>()?.iter_mut().zip(values) {
                *to = T::narrow(value);
            }
        }
        Ok(())
    }
}

/// What does not change from step to step.
struct Cell<M> {
    geometry: LstmGeometry,
    x: Vec<M>,
    w: Vec<M>,
    r: Vec<M>,
    b: Option<Vec<M>>,
    p: Option<Vec<M>>,
    clip: Option<M>,
    input_forget: bool,
}

impl<M: Real> Cell<M> {
    /// Computes one step: `h` and `c` are the states before it, then after.
    fn advance(&self, by: LstmActivations, step: usize, direction: usize, batch: usize, h: &mut [M], c: &mut [M]) {
        let LstmGeometry { input, hidden, .. } = self.geometry;
        let at = self.geometry.x_at(step, batch);
        let x = &self.x[at..at + input];
        // Rows of the weights: all input gates, then output, forget and candidate.
        let gate = |gate: usize, i: usize, peephole: Option<(usize, M)>| {
            let row = (direction * 4 + gate) * hidden + i;
            let mut sum = dot(x, &self.w[row * input..(row + 1) * input]);
            sum = sum.plus(dot(h, &self.r[row * hidden..(row + 1) * hidden]));
            if let Some(b) = &self.b {
                let row = (direction * 8 + gate) * hidden + i;
                sum = sum.plus(b[row].plus(b[row + 4 * hidden]));
            }
            match (&self.p, peephole) {
                (Some(p), Some((which, c))) => sum.plus(p[(direction * 3 + which) * hidden + i].times(c)),
                _ => sum,
            }
        };
        let apply = |activation: Activation, x: M| M::from_f64(activation.apply(x.to_f64()));
        let activate = |activation: Activation, x: M| apply(activation, self.clipped(x));
        let mut next = Vec::with_capacity(hidden);
        for (i, c) in c.iter_mut().enumerate() {
            let input_gate = activate(by.f, gate(0, i, Some((0, *c))));
            let forget = match self.input_forget {
                true => M::from_f64(1.0 - input_gate.to_f64()),
                false => activate(by.f, gate(2, i, Some((2, *c)))),
            };
            let candidate = activate(by.g, gate(3, i, None));
            *c = forget.times(*c).plus(input_gate.times(candidate));
            let output_gate = activate(by.f, gate(1, i, Some((1, *c))));
            next.push(output_gate.times(apply(by.h, *c)));
        }
        h.copy_from_slice(&next);
    }

    fn clipped(&self, x: M) -> M {
        match self.clip {
            Some(clip) if x > clip => clip,
            Some(clip) if x.to_f64() < -clip.to_f64() => M::from_f64(-clip.to_f64()),
            _ => x,
        }
    }
}

fn dot<M: Math>(a: &[M], b: &[M]) -> M {
    a.iter().zip(b).fold(M::ZERO, |sum, (&a, &b)| a.fused(b, sum))
}

fn sequence_lens(lens: Option<TensorView<'_>>, geometry: &LstmGeometry) -> Result<Vec<usize>, OpError> {
    let Some(lens) = lens else { return Ok(vec![geometry.seq; geometry.batch]) };
    lens.values::<i32>()?
        .iter()
        .map(|&len| {
            usize::try_from(len)
                .ok()
                .filter(|&len| len <= geometry.seq)
                .ok_or_else(|| OpError::value(format!("a sequence length is {len}, expected 0 to {}", geometry.seq)))
        })
        .collect()
}

fn misfit(i: usize, got: &str, expected: &Shape) -> OpError {
    let name = INFO.inputs.get(i).map_or("", |param| param.name);
    OpError::shape(format!("LSTM's {name} has shape {got}, expected {expected}"))
}

fn cases() -> Vec<Case> {
    let t = case_tensor::<f32>;
    let case = |name, op: LSTM, inputs: &[Option<Tensor>], outputs: &[Tensor]| Case {
        name,
        op: op.into(),
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
    };
    let plain = LSTM::default;
    let (gates, recurrent) = ([0.5, -0.5, 0.25, 1.], [0.1, 0.2, 0.3, 0.4]);
    let x = Some(t(&[2, 1, 1], &[1., 2.]));
    let w = Some(t(&[1, 4, 1], &gates));
    let r = Some(t(&[1, 4, 1], &recurrent));
    let both = |values: &[f32; 4]| Some(t(&[2, 4, 1], &[&values[..], &values[..]].concat()));
    let lens = |values: &[i32]| Some(case_tensor(&[values.len()], values));
    let one = |value: f32| t(&[1, 1, 1], &[value]);
    let y = |first: f32, second: f32| t(&[2, 1, 1, 1], &[first, second]);
    let eighths: Vec<f32> = (0..16).map(|i| i as f32 / 8. - 1.).collect();
    let sixteenths: Vec<f32> = (0..16).map(|i| i as f32 / 16.).collect();
    vec![
        case(
            "forward",
            LSTM { hidden_size: Some(1), ..plain() },
            &[x.clone(), w.clone(), r.clone()],
            &[y(0.166_674_76, 0.211_204_19), one(0.211_204_19), one(1.011_772_5)],
        ),
        case(
            "reverse",
            LSTM { direction: Direction::Reverse, ..plain() },
            &[x.clone(), w.clone(), r.clone()],
            &[y(0.275_577_15, 0.163_349_87), one(0.275_577_15), one(0.898_001_4)],
        ),
        case(
            "biases, states and peepholes",
            plain(),
            &[
                x.clone(),
                w.clone(),
                r.clone(),
                Some(t(&[1, 8], &[0.1, 0.2, 0.3, 0.4, 0.01, 0.02, 0.03, 0.04])),
                None,
                Some(one(0.5)),
                Some(one(-0.5)),
                Some(t(&[1, 3], &[0.5, 0.25, -0.5])),
            ],
            &[y(0.089_482_83, 0.262_582_1), one(0.262_582_1), one(0.892_646_2)],
        ),
        case(
            "both directions, lengths of their own",
            LSTM { direction: Direction::Bidirectional, ..plain() },
            &[Some(t(&[2, 2, 1], &[1., 2., 3., 4.])), both(&gates), both(&recurrent), None, lens(&[2, 1])],
            &[
                t(
                    &[2, 2, 2, 1],
                    &[0.166_674_76, 0.163_349_87, 0.284_147_96, 0.163_349_87, 0.152_887_74, 0., 0.122_504_89, 0.],
                ),
                t(&[2, 2, 1], &[0.152_887_74, 0.163_349_87, 0.284_147_96, 0.163_349_87]),
                t(&[2, 2, 1], &[1.143_587_5, 0.704_760_6, 0.953_336_83, 0.704_760_6]),
            ],
        ),
        case(
            "batch first",
            LSTM { direction: Direction::Bidirectional, batch_first: true, ..plain() },
            &[Some(t(&[2, 2, 1], &[1., 3., 2., 4.])), both(&gates), both(&recurrent), None, lens(&[2, 1])],
            &[
                t(
                    &[2, 2, 2, 1],
                    &[0.166_674_76, 0.284_147_96, 0.152_887_74, 0.122_504_89, 0.163_349_87, 0.163_349_87, 0., 0.],
                ),
                t(&[2, 2, 1], &[0.152_887_74, 0.284_147_96, 0.163_349_87, 0.163_349_87]),
            ],
        ),
        case(
            "clipped gates, coupled forget gate",
            LSTM { clip: Some(0.3), input_forget: true, ..plain() },
            &[x.clone(), w.clone(), r.clone()],
            &[y(0.070_556_41, 0.099_636_41), one(0.099_636_41), one(0.238_556_14)],
        ),
        case(
            "a state beyond the clip",
            LSTM { clip: Some(0.3), ..plain() },
            &[x.clone(), w.clone(), r.clone(), None, None, None, Some(one(3.))],
            &[y(0.405_177_2, 0.358_847_47), one(0.358_847_47), one(1.232_285_2)],
        ),
        case(
            "other activations",
            LSTM {
                activations: vec![
                    Activation::HardSigmoid { alpha: 0.25, beta: 0.5 },
                    Activation::Relu,
                    Activation::Softsign,
                ],
                ..plain()
            },
            &[x, w.clone(), r.clone()],
            &[y(0.144_230_77, 0.169_964_24), one(0.169_964_24), one(1.948_074_6)],
        ),
        case(
            "two inputs, two units",
            plain(),
            &[
                Some(t(&[1, 1, 2], &[1., -1.])),
                Some(t(&[1, 8, 2], &eighths)),
                Some(t(&[1, 8, 2], &sixteenths)),
                None,
                None,
                Some(t(&[1, 1, 2], &[0.5, -0.25])),
            ],
            &[t(&[1, 1, 1, 2], &[0.010_461_401, 0.017_986_785])],
        ),
        case(
            "no step",
            plain(),
            &[Some(t(&[0, 1, 1], &[])), w, r, None, None, Some(one(0.5))],
            &[t(&[0, 1, 1, 1], &[]), one(0.5), one(0.)],
        ),
    ]
}
