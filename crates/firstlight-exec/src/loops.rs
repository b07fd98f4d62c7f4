//! Loops: the body is planned for the specs that enter it and run by the engine, iteration by iteration.
//!
//! Carried values live in growing buffers of the outer memory between iterations; the body has a memory of its own, so
//! that its addresses stay fixed whatever grows outside.

use crate::RunError;
use crate::engine::Engine;
use crate::state::PersistentOutputs;
use firstlight_backend::{Loc, OperandSpec, RunMemory};
use firstlight_graph::OpError;
use firstlight_plan::{CompiledNode, Compiler, Fed, LoopStep, Plan, PlanOutput, SegmentEnd};
use firstlight_tensor::{DType, Dim, Shape};
use std::sync::{Arc, PoisonError};

/// What a loop keeps from one run to the next.
#[derive(Debug, Default)]
pub(crate) struct LoopState {
    /// Memory of the body for each of its plans, last one first.
    bodies: Vec<PersistentOutputs>,
    /// Specs of the node's outputs as the last run left them.
    pub(crate) outputs: Vec<OperandSpec>,
    /// Specs of scanned outputs of a run without an iteration, by the specs of the carried values.
    empty: Vec<(Vec<OperandSpec>, Vec<OperandSpec>)>,
}

/// Plans of one body beyond which the oldest goes.
const MAX_BODY_PLANS: usize = 64;

impl LoopState {
    /// Bytes of all buffers.
    pub(crate) fn n_bytes(&self) -> usize {
        self.bodies.iter().map(|body| body.n_bytes()).sum()
    }
}

impl Engine<'_> {
    /// Runs a loop; its outputs lie in growing buffers of `memory` and their specs in `state`.
    pub(crate) fn run_loop(
        &self,
        step: &CompiledNode,
        looped: &LoopStep,
        state: &mut LoopState,
        memory: &mut RunMemory,
    ) -> Result<(), RunError> {
        let fail = |error: OpError| RunError::node(step, error);
        let mut trips = i64::MAX;
        if let Some(Some(loc)) = step.inputs.first() {
            let mut bytes = [0; 8];
            memory.read(loc, &mut bytes, self.guards).map_err(fail)?;
            trips = i64::from_le_bytes(bytes);
        }
        let mut going = true;
        if let Some(Some(loc)) = step.inputs.get(1) {
            let mut bytes = [0; 1];
            memory.read(loc, &mut bytes, self.guards).map_err(fail)?;
            going = bytes[0] != 0;
        }
        let carried = |i: usize| 2 + i;
        // Specs are overwritten in place, so that a replay allocates nothing.
        let unknown = || OperandSpec { dtype: DType::F32, dims: Shape::from([0]) };
        state.outputs.resize_with(looped.grown.len(), unknown);
        for i in 0..looped.n_carried {
            let (Some(Some(spec)), Some(Some(loc))) = (step.call.inputs.get(carried(i)), step.inputs.get(carried(i)))
            else {
                return Err(fail(OpError::shape(format!("carried value {i} is missing"))));
            };
            memory.ensure_grown(looped.grown[i], spec.n_bytes(), 0).map_err(fail)?;
            let to = Loc::Grown(looped.grown[i]);
            memory.copy(loc, &to, 0, spec.n_bytes(), self.guards).map_err(fail)?;
            state.outputs[i].clone_from(spec);
        }
        let mut iteration = 0i64;
        while going && iteration < trips {
            self.options.check(step, 0)?;
            let plan = self.body_plan(step, looped, &state.outputs)?;
            let at = state.bodies.iter().position(|body| body.plan == plan.id());
            let new = at.is_none();
            let at = at.unwrap_or_else(|| {
                let mut body = PersistentOutputs::new(self.device.clone(), self.budget.clone());
                body.plan = plan.id();
                state.bodies.push(body);
                state.bodies.len() - 1
            });
            if new && state.bodies.len() > MAX_BODY_PLANS {
                state.bodies.remove(0);
            }
            let at = at.min(state.bodies.len() - 1);
            let body = &mut state.bodies[at];
            self.enter(step, looped, &plan, body, memory, iteration, new || iteration == 0).map_err(fail)?;
            let last = self.run_plan(&plan, body)?;
            let SegmentEnd::Done(outputs) = &last.end else {
                return Err(fail(OpError::shape("the body ended without its outputs")));
            };
            going = self.leave(looped, outputs, body, memory, &mut state.outputs, iteration).map_err(fail)?;
            iteration += 1;
        }
        if iteration == 0 {
            self.scan_nothing(step, looped, state)?;
            for &grown in &looped.grown[looped.n_carried..] {
                memory.ensure_grown(grown, 0, 0).map_err(fail)?;
            }
        }
        Ok(())
    }

    /// The body's plan for the carried specs of this iteration.
    fn body_plan(
        &self,
        step: &CompiledNode,
        looped: &LoopStep,
        carried: &[OperandSpec],
    ) -> Result<Arc<Plan>, RunError> {
        let carried = &carried[..looped.n_carried];
        let mut plans = looped.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |plan: &Arc<Plan>| {
            let held = plan.key.inputs.get(2..2 + looped.n_carried);
            held.is_some_and(|held| held.iter().zip(carried).all(|(held, spec)| held.as_ref() == Some(spec)))
        };
        if let Some(at) = plans.iter().rposition(fits) {
            if !plans[at].counters.is_worn() {
                return Ok(plans[at].clone());
            }
            plans.remove(at);
        }
        let declared = looped.body.graph().inputs();
        let one = |i: usize, dtype| {
            let dims = declared.get(i).and_then(|input| input.spec.dims.as_ref());
            let is_vector = dims.is_some_and(|dims| dims.len() == 1 && matches!(dims[0], Dim::Known(1)));
            let dims = if is_vector { Shape::from([1]) } else { Shape::scalar() };
            Fed::Runtime(OperandSpec { dtype, dims })
        };
        let mut fed = vec![one(0, DType::I64), one(1, DType::Bool)];
        fed.extend(carried.iter().cloned().map(Fed::Runtime));
        for (i, known) in looped.known_captures.iter().enumerate() {
            fed.push(match (known, step.call.inputs.get(2 + looped.n_carried + i)) {
                (Some(tensor), _) => Fed::Known(tensor.clone()),
                (None, Some(Some(spec))) => Fed::Pinned(spec.clone()),
                _ => return Err(RunError::node(step, OpError::shape(format!("capture {i} is missing")))),
            });
        }
        let plan = Arc::new(Compiler::plan(&looped.body, &fed, firstlight_plan::Adopted::new(), false)?);
        if plans.len() >= MAX_BODY_PLANS {
            plans.remove(0);
        }
        plans.push(plan.clone());
        Ok(plan)
    }

    /// Puts the body's inputs in their places; captures only when they may have changed.
    #[expect(clippy::too_many_arguments, reason = "two memories and what moves between them")]
    fn enter(
        &self,
        step: &CompiledNode,
        looped: &LoopStep,
        plan: &Plan,
        body: &mut PersistentOutputs,
        outer: &RunMemory,
        iteration: i64,
        captures: bool,
    ) -> Result<(), OpError> {
        for &(chunk, n_bytes) in &plan.chunks {
            body.memory.ensure_chunk(chunk, n_bytes)?;
        }
        for (i, (place, spec)) in plan.inputs.iter().zip(&plan.key.inputs).enumerate() {
            let (Some(place), Some(spec)) = (place, spec) else { continue };
            match i {
                0 => body.memory.write(place, &iteration.to_le_bytes())?,
                1 => body.memory.write(place, &[1])?,
                _ => {
                    let grown;
                    let from = match i - 2 {
                        carried if carried < looped.n_carried => {
                            grown = Loc::Grown(looped.grown[carried]);
                            &grown
                        }
                        _ if !captures => continue,
                        _ => match step.inputs.get(i) {
                            Some(Some(loc)) => loc,
                            _ => return Err(OpError::shape(format!("capture {i} is missing"))),
                        },
                    };
                    body.memory.copy_from(outer, from, place, 0, spec.n_bytes(), self.guards)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the body's outputs: the next condition is returned, carried values replace the old ones, scanned ones are
    /// appended.
    fn leave(
        &self,
        looped: &LoopStep,
        outputs: &[PlanOutput],
        body: &PersistentOutputs,
        outer: &mut RunMemory,
        specs: &mut [OperandSpec],
        iteration: i64,
    ) -> Result<bool, OpError> {
        let (cond, values) = outputs.split_first().ok_or_else(|| OpError::shape("the body gives no condition"))?;
        if cond.spec.dtype != DType::Bool || cond.spec.dims.n_elems() != Some(1) {
            return Err(OpError::shape(format!("the body's condition must be one bool, got {}", cond.spec)));
        }
        let mut going = [0];
        body.memory.read(&cond.loc, &mut going, self.guards)?;
        for (i, value) in values.iter().enumerate() {
            let (grown, n_bytes) = (looped.grown[i], value.spec.n_bytes());
            let mut at = 0;
            if i < looped.n_carried {
                if specs[i].dtype != value.spec.dtype {
                    return Err(OpError::dtype(format!(
                        "carried value {i} enters as {} and leaves as {}",
                        specs[i], value.spec
                    )));
                }
                specs[i].clone_from(&value.spec);
                outer.ensure_grown(grown, n_bytes, 0)?;
            } else {
                let scanned = &mut specs[i];
                if iteration == 0 {
                    scanned.dtype = value.spec.dtype;
                    scanned.dims = Shape::from([0]);
                    value.spec.dims.iter().for_each(|&dim| scanned.dims.push(dim));
                }
                if scanned.dtype != value.spec.dtype || scanned.dims[1..] != value.spec.dims[..] {
                    return Err(OpError::shape(format!(
                        "scanned value {i} is {} in iteration {iteration} and was {scanned} before",
                        value.spec
                    )));
                }
                at = scanned.dims[0].checked_mul(n_bytes).ok_or_else(|| OpError::shape("too many scanned values"))?;
                scanned.dims[0] += 1;
                let all = at.checked_add(n_bytes).ok_or_else(|| OpError::shape("too many scanned values"))?;
                outer.ensure_grown(grown, all, at)?;
            }
            outer.copy_from(&body.memory, &value.loc, &Loc::Grown(grown), at, n_bytes, self.guards)?;
        }
        Ok(going[0] != 0)
    }

    /// Sets the specs of scanned outputs of a loop that ran no iteration: what the body's plan says, where it can be
    /// told without running it.
    fn scan_nothing(&self, step: &CompiledNode, looped: &LoopStep, state: &mut LoopState) -> Result<(), RunError> {
        let (carried, scanned) = state.outputs.split_at_mut(looped.n_carried);
        if scanned.is_empty() {
            return Ok(());
        }
        if let Some((_, specs)) = state.empty.iter().find(|(held, _)| held[..] == *carried) {
            scanned.clone_from_slice(specs);
            return Ok(());
        }
        let plan = self.body_plan(step, looped, carried)?;
        let mut compiler = Compiler::new(plan.start.clone());
        let ctx = self.plan_ctx();
        let outputs = loop {
            match compiler.next(&ctx) {
                Ok(firstlight_plan::Emit::Node(_)) => {}
                Ok(firstlight_plan::Emit::Done(outputs)) => break outputs,
                Ok(firstlight_plan::Emit::Await(_)) | Err(_) => break vec![],
            }
        };
        for (i, spec) in scanned.iter_mut().enumerate() {
            let found = outputs.get(1 + looped.n_carried + i).map(|output| &output.spec);
            spec.dtype = found.map_or(DType::F32, |found| found.dtype);
            spec.dims = [0].into_iter().chain(found.iter().flat_map(|found| found.dims.iter().copied())).collect();
        }
        state.empty.push((carried.to_vec(), scanned.to_vec()));
        Ok(())
    }
}
