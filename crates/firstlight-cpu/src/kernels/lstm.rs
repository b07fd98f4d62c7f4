//! LSTM.

use super::matmul_tiles::{Sizes, lane_elems, misfit, run, src};
use super::number::read;
use super::rows::row;
use firstlight_backend::{KernelBinding, KernelCtx, KernelQuery, Pool};
use firstlight_gemm::{Binary, Epilogue, Isa, Lhs, Product, Rhs, Src, Unary};
use firstlight_graph::ops::nn::activation::Activation;
use firstlight_graph::ops::nn::lstm::LstmGeometry;
use firstlight_graph::{Op, OpError, OpKind};
use firstlight_tensor::DType::F32;
use firstlight_tensor::Shape;

pub(super) const BINDINGS: &[KernelBinding] = &[KernelBinding { scratch_bytes, ..row(OpKind::LSTM, &[F32], lstm) }];

/// Rows of one product over the inputs of several steps.
const ROWS: usize = 64;

/// How the work is laid out: the inputs' part of the gates is computed for some steps at once, the states' part step by
/// step.
#[derive(Clone, Copy, Debug)]
struct Plan {
    geometry: LstmGeometry,
    /// True when the batch's rows of a step follow each other in X, and all sequences have one length.
    uniform: bool,
    /// Steps whose inputs are multiplied at once.
    window: usize,
    /// Elements of scratch of a thread's products.
    lane: usize,
    threads: usize,
}

impl Plan {
    fn of(geometry: LstmGeometry, has_lens: bool, threads: usize) -> Plan {
        let uniform = !geometry.batch_first && !has_lens;
        let window = if uniform { ROWS / geometry.batch.max(1) } else { ROWS / 2 };
        let window = window.clamp(1, geometry.seq.max(1));
        let rows = if uniform { window.saturating_mul(geometry.batch) } else { window };
        let lane = lane_elems(rows, true).max(lane_elems(geometry.batch, true));
        Plan { geometry, uniform, window, lane, threads }
    }

    /// Elements of: product lanes, gates of inputs, gates of states, h, c, bias, a row of states.
    fn parts(&self) -> [usize; 7] {
        let LstmGeometry { batch, hidden, .. } = self.geometry;
        let gates = hidden.saturating_mul(4);
        let per_step = gates.saturating_mul(batch);
        let states = hidden.saturating_mul(batch);
        let lanes = self.lane.saturating_mul(self.threads);
        [lanes, per_step.saturating_mul(self.window), per_step, states, states, gates, hidden]
    }
}

fn scratch_bytes(query: &KernelQuery<'_>) -> usize {
    let Op::LSTM(op) = query.op else { return 0 };
    let [Some(x), Some(w), Some(r), ..] = query.inputs else { return 0 };
    let Ok(geometry) = op.geometry(&x.dims, &w.dims, &r.dims) else { return 0 };
    let has_lens = query.inputs.get(4).is_some_and(Option::is_some);
    let parts = Plan::of(geometry, has_lens, query.threads).parts();
    parts.iter().fold(0usize, |sum, &part| sum.saturating_add(part)).saturating_mul(size_of::<f32>())
}

/// The first `n` elements of `rest`, which keeps the others.
fn split<'a>(rest: &mut &'a mut [f32], n: usize) -> Result<&'a mut [f32], OpError> {
    let (part, left) = std::mem::take(rest).split_at_mut_checked(n).ok_or_else(misfit)?;
    *rest = left;
    Ok(part)
}

/// Length of the sequence of a batch.
#[derive(Clone, Copy)]
struct Lens<'a> {
    bytes: Option<&'a [u8]>,
    seq: usize,
}

impl Lens<'_> {
    fn check(self) -> Result<(), OpError> {
        let lens = self.bytes.unwrap_or_default().chunks_exact(4).map(read::<i32>);
        match lens.into_iter().find(|&len| len < 0 || len as usize > self.seq) {
            Some(len) => Err(OpError::value(format!("a sequence length is {len}, expected 0 to {}", self.seq))),
            None => Ok(()),
        }
    }

    fn of(self, batch: usize) -> usize {
        self.bytes.map_or(self.seq, |bytes| read::<i32>(&bytes[batch * 4..][..4]) as usize)
    }
}

fn lstm(ctx: &mut KernelCtx<'_>) -> Result<(), OpError> {
    let Op::LSTM(op) = ctx.op() else { return Err(super::other_op("LSTM")) };
    let geometry = op.geometry(ctx.dims(0)?, ctx.dims(1)?, ctx.dims(2)?)?;
    let LstmGeometry { seq, batch, input, hidden, directions, .. } = geometry;
    check_optional(ctx, &geometry)?;
    let optional = |i: usize| if ctx.has_input(i) { src(ctx, i).map(Some) } else { Ok(None) };
    let (x, w, r) = (src(ctx, 0)?, src(ctx, 1)?, src(ctx, 2)?);
    let (b, initial_h, initial_c, p) = (optional(3)?, optional(5)?, optional(6)?, optional(7)?);
    let lens = Lens { bytes: if ctx.has_input(4) { Some(ctx.bytes(4)?) } else { None }, seq };
    lens.check()?;
    let plan = Plan::of(geometry, lens.bytes.is_some(), ctx.pool().threads());
    let mut rest = ctx.scratch::<f32>()?;
    let [n_lanes, n_of_x, n_of_h, n_h, n_c, n_bias, n_row] = plan.parts();
    let lanes = split(&mut rest, n_lanes)?;
    let (of_x, of_h) = (split(&mut rest, n_of_x)?, split(&mut rest, n_of_h)?);
    let (h, c) = (split(&mut rest, n_h)?, split(&mut rest, n_c)?);
    let (bias, product) = (split(&mut rest, n_bias)?, split(&mut rest, n_row)?);
    let mut outputs: [&mut [f32]; 3] = Default::default();
    for (i, output) in outputs.iter_mut().enumerate().take(ctx.n_outputs()) {
        *output = ctx.output::<f32>(i)?;
    }
    let [y, last_h, last_c] = outputs;
    y.fill(0.0);
    if h.is_empty() {
        return Ok(());
    }
    let gates = 4 * hidden;
    let isa = Isa::detect();
    for direction in 0..directions {
        for batch in 0..batch {
            let at = geometry.state_at(direction, batch);
            load(initial_h, at, &mut h[batch * hidden..][..hidden]);
            load(initial_c, at, &mut c[batch * hidden..][..hidden]);
        }
        if let Some(b) = b {
            let half = |i: usize| b.slice((2 * direction + i) * gates, gates);
            isa.binary(Binary::Add, half(0), half(1), bias);
        }
        let functions = op.functions(direction);
        let cell = Cell {
            isa,
            f: functions.f,
            g: functions.g,
            h: functions.h,
            clip: op.clip,
            input_forget: op.input_forget,
            bias: b.map(|_| &*bias),
            peepholes: p.map(|p| p.slice(3 * direction * hidden, 3 * hidden)),
        };
        let pass = Pass {
            plan,
            lens,
            reverse: op.direction.is_reverse(direction),
            x,
            w: w.slice(direction * gates * input, gates * input),
            r: r.slice(direction * gates * hidden, gates * hidden),
        };
        for first in (0..seq).step_by(plan.window) {
            let end = seq.min(first + plan.window);
            pass.inputs(ctx.pool(), end, first, of_x, lanes)?;
            for i in first..end {
                pass.states(ctx.pool(), h, of_h, lanes)?;
                for batch in (0..batch).filter(|&batch| i < lens.of(batch)) {
                    let time = pass.time(i, batch);
                    let of_x = &of_x[pass.row(time, batch, first, end) * gates..][..gates];
                    let of_h = &mut of_h[batch * gates..][..gates];
                    let h = &mut h[batch * hidden..][..hidden];
                    cell.advance(of_x, of_h, &mut c[batch * hidden..][..hidden], h, product);
                    copy(h, y, geometry.y_at(time, direction, batch));
                }
            }
        }
        for batch in 0..batch {
            let at = geometry.state_at(direction, batch);
            copy(&h[batch * hidden..][..hidden], last_h, at);
            copy(&c[batch * hidden..][..hidden], last_c, at);
        }
    }
    Ok(())
}

/// Writes a row to an output, where that is asked for.
fn copy(from: &[f32], output: &mut [f32], at: usize) {
    if let Some(to) = output.get_mut(at..at + from.len()) {
        to.copy_from_slice(from);
    }
}

/// One direction over all sequences.
struct Pass<'a> {
    plan: Plan,
    lens: Lens<'a>,
    reverse: bool,
    x: Src<'a>,
    w: Src<'a>,
    r: Src<'a>,
}

impl Pass<'_> {
    /// When in its sequence step `i` of a batch is.
    fn time(&self, i: usize, batch: usize) -> usize {
        if self.reverse { self.lens.of(batch) - 1 - i } else { i }
    }

    /// The earliest time of a window of steps.
    fn start(&self, batch: usize, first: usize, end: usize) -> usize {
        let from = if self.reverse { self.lens.of(batch).saturating_sub(end) } else { first };
        from.min(self.plan.geometry.seq - self.plan.window)
    }

    /// The row of the inputs' products that holds a time of a batch.
    fn row(&self, time: usize, batch: usize, first: usize, end: usize) -> usize {
        let after = time - self.start(batch, first, end);
        match self.plan.uniform {
            true => after * self.plan.geometry.batch + batch,
            false => batch * self.plan.window + after,
        }
    }

    /// The inputs' part of the gates for the steps of a window.
    fn inputs(&self, pool: &Pool, end: usize, first: usize, out: &mut [f32], lanes: &mut [f32]) -> Result<(), OpError> {
        let LstmGeometry { batch, input, hidden, batch_first, .. } = self.plan.geometry;
        let (n_products, m) = match self.plan.uniform {
            true => (1, self.plan.window * batch),
            false => (batch, self.plan.window),
        };
        let stride = if self.plan.uniform || batch_first { input } else { batch * input };
        let sizes = Sizes { n_products, m, k: input, n: 4 * hidden };
        run(
            pool,
            sizes,
            out,
            lanes,
            self.plan.lane,
            &|batch| {
                let at = self.plan.geometry.x_at(self.start(batch, first, end), batch);
                let lhs = Lhs::strided(self.x.slice(at, usize::MAX), m, stride, input, 1)?;
                let rhs = Rhs::transposed(self.w, input, 4 * hidden, input)?;
                Some(Product { lhs, rhs, epilogue: Epilogue::default() })
            },
            None,
        )
    }

    /// The states' part of the gates for one step.
    fn states(&self, pool: &Pool, h: &[f32], out: &mut [f32], lanes: &mut [f32]) -> Result<(), OpError> {
        let LstmGeometry { batch, hidden, .. } = self.plan.geometry;
        let sizes = Sizes { n_products: 1, m: batch, k: hidden, n: 4 * hidden };
        run(
            pool,
            sizes,
            out,
            lanes,
            self.plan.lane,
            &|_| {
                let lhs = Lhs::strided(Src::from(h), batch, hidden, hidden, 1)?;
                let rhs = Rhs::transposed(self.r, hidden, 4 * hidden, hidden)?;
                Some(Product { lhs, rhs, epilogue: Epilogue::default() })
            },
            None,
        )
    }
}

fn check_optional(ctx: &KernelCtx<'_>, geometry: &LstmGeometry) -> Result<(), OpError> {
    let rows = |n: usize| Shape::from([geometry.directions, n.saturating_mul(geometry.hidden)]);
    let (batch, state) = (Shape::from([geometry.batch]), geometry.state_shape());
    for (i, expected) in [(3, &rows(8)), (4, &batch), (5, &state), (6, &state), (7, &rows(3))] {
        if ctx.has_input(i) && ctx.dims(i)? != expected {
            return Err(OpError::shape(format!("input {i} has shape {}, expected {expected}", ctx.dims(i)?)));
        }
    }
    for (i, expected) in [&geometry.y_shape(), &state, &state].into_iter().enumerate().take(ctx.n_outputs()) {
        if ctx.out_dims(i)? != expected {
            return Err(OpError::shape(format!("output {i} has shape {}, expected {expected}", ctx.out_dims(i)?)));
        }
    }
    Ok(())
}

/// Copies a state, or zeros where none is given.
fn load(from: Option<Src<'_>>, at: usize, to: &mut [f32]) {
    for (i, to) in to.iter_mut().enumerate() {
        *to = from.and_then(|from| from.get(at + i)).unwrap_or(0.0);
    }
}

/// What does not change from step to step in one direction.
struct Cell<'a> {
    isa: Isa,
    f: Activation,
    g: Activation,
    h: Activation,
    clip: Option<f32>,
    input_forget: bool,
    /// Of the inputs and of the states, added.
    bias: Option<&'a [f32]>,
    peepholes: Option<Src<'a>>,
}

impl Cell<'_> {
    /// One step of one sequence. `of_x` and `gates` are the products with the input and with the state before it; `gates`
    /// is overwritten, `c` and `h` hold the new states afterwards.
    fn advance(&self, of_x: &[f32], gates: &mut [f32], c: &mut [f32], h: &mut [f32], state: &mut [f32]) {
        let isa = self.isa;
        let hidden = c.len();
        isa.binary_in_place(Binary::Add, gates, of_x);
        if let Some(bias) = self.bias {
            isa.binary_in_place(Binary::Add, gates, bias);
        }
        let (input, rest) = gates.split_at_mut(hidden);
        let (output, rest) = rest.split_at_mut(hidden);
        let (forget, candidate) = rest.split_at_mut(hidden);
        self.peep(0, c, input, state);
        self.gate(self.f, input);
        if self.input_forget {
            isa.scalar_binary(Binary::Sub, 1.0, &*input, forget);
        } else {
            self.peep(2, c, forget, state);
            self.gate(self.f, forget);
        }
        self.gate(self.g, candidate);
        isa.binary_in_place(Binary::Mul, c, &*forget);
        isa.binary_in_place(Binary::Mul, candidate, &*input);
        isa.binary_in_place(Binary::Add, c, &*candidate);
        self.peep(1, c, output, state);
        self.gate(self.f, output);
        h.copy_from_slice(c);
        apply(isa, self.h, h);
        isa.binary_in_place(Binary::Mul, h, &*output);
    }

    /// Adds a gate's view of the cell state.
    fn peep(&self, which: usize, c: &[f32], gate: &mut [f32], state: &mut [f32]) {
        if let Some(p) = self.peepholes {
            self.isa.binary(Binary::Mul, p.slice(which * c.len(), c.len()), c, state);
            self.isa.binary_in_place(Binary::Add, gate, &*state);
        }
    }

    fn gate(&self, activation: Activation, gate: &mut [f32]) {
        if let Some(clip) = self.clip {
            for x in &mut *gate {
                *x = if *x > clip {
                    clip
                } else if *x < -clip {
                    -clip
                } else {
                    *x
                };
            }
        }
        apply(self.isa, activation, gate);
    }
}

fn apply(isa: Isa, activation: Activation, values: &mut [f32]) {
    match activation {
        Activation::Sigmoid => isa.unary_in_place(Unary::Sigmoid, values),
        Activation::Tanh => isa.unary_in_place(Unary::Tanh, values),
        other => values.iter_mut().for_each(|x| *x = other.apply((*x).into()) as f32),
    }
}
