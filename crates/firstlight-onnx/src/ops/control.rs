//! Constants and control flow.

use crate::error::LoadError;
use crate::node_ctx::{NodeCtx, Values};
use firstlight_graph::ops;
use firstlight_tensor::{DType, Tensor};
use std::sync::Arc;

pub(super) fn constant(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let mut given: Option<Tensor> = None;
    let mut kinds = 0;
    let mut keep = |tensor: Option<Tensor>| {
        kinds += usize::from(tensor.is_some());
        given = given.take().or(tensor);
    };
    keep(ctx.tensor("value")?);
    if ctx.opset >= 11 {
        keep(ctx.sparse_tensor("sparse_value")?);
    }
    if ctx.opset >= 12 {
        let made = |ctx: &NodeCtx<'_, '_>, made: Option<Result<Tensor, _>>| {
            made.transpose().map_err(|e: firstlight_tensor::TensorError| ctx.error(e.to_string()))
        };
        keep(ctx.float("value_float")?.map(Tensor::scalar));
        keep(ctx.int("value_int")?.map(Tensor::scalar));
        let floats = ctx.floats("value_floats")?.map(|v| Tensor::from_slice([v.len()], v));
        keep(made(ctx, floats)?);
        let ints = ctx.ints("value_ints")?.map(|v| Tensor::from_slice([v.len()], v));
        keep(made(ctx, ints)?);
        let text = ctx.text("value_string")?.map(|v| Tensor::from_strings([0; 0], &[v]));
        keep(made(ctx, text)?);
        let texts = ctx.texts("value_strings")?.map(|v| Tensor::from_strings([v.len()], &v));
        keep(made(ctx, texts)?);
    }
    match given.filter(|_| kinds == 1) {
        Some(tensor) => {
            let dtype = tensor.dtype();
            ctx.emit_typed(ops::Const { tensor }, &[], &[Some(dtype)])
        }
        None => Err(ctx.error(format!("one attribute should hold the value, {kinds} do"))),
    }
}

pub(super) fn if_(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let (then_proto, else_proto) = (ctx.graph("then_branch")?, ctx.graph("else_branch")?);
    let cond = ctx.needed(0)?;
    let mut then_branch = ctx.subgraph(then_proto, &[], &[])?;
    let else_branch = ctx.subgraph(else_proto, &[], &then_branch.captures)?;
    let (n_then, n_else) = (then_branch.outputs.len(), else_branch.outputs.len());
    if n_then != n_else || n_then < ctx.n_outputs() {
        let n = ctx.n_outputs();
        return Err(ctx.error(format!("its branches give {n_then} and {n_else} values, the node has {n} outputs")));
    }
    for &outer in else_branch.captures.iter().skip(then_branch.captures.len()) {
        ctx.unread_capture(&mut then_branch, outer)?;
    }
    let inputs: Vec<_> = std::iter::once(cond).chain(else_branch.captures).map(Some).collect();
    let dtypes: Vec<_> = then_branch.outputs.iter().zip(else_branch.outputs).map(|(a, b)| a.or(b)).collect();
    let op = ops::If { then_branch: Arc::new(then_branch.graph), else_branch: Arc::new(else_branch.graph) };
    ctx.emit_all(op, &inputs, &dtypes)
}

pub(super) fn loop_(ctx: &mut NodeCtx<'_, '_>) -> Result<Values, LoadError> {
    let proto = ctx.graph("body")?;
    let mut inputs = std::mem::take(&mut ctx.inputs);
    inputs.resize(inputs.len().max(2), None);
    let carried = inputs.get(2..).unwrap_or(&[]);
    let n_carried = carried.len();
    if carried.iter().any(Option::is_none) {
        return Err(ctx.error("a carried value is missing"));
    }
    let mut formals = vec![Some(DType::I64), Some(DType::Bool)];
    formals.extend(carried.iter().map(|value| value.and_then(|value| ctx.dtype(value))));
    let body = ctx.subgraph(proto, &formals, &[])?;
    let n_outputs = body.outputs.len().saturating_sub(1);
    if body.outputs.is_empty() || n_outputs < n_carried || n_outputs < ctx.n_outputs() {
        let n = ctx.n_outputs();
        return Err(ctx.error(format!(
            "its body gives {} values; the condition, {n_carried} carried values and the node's {n} outputs ask for more",
            body.outputs.len()
        )));
    }
    // Carried values keep their type where the body does not tell.
    let dtypes = body.outputs.iter().skip(1).enumerate();
    let dtypes: Vec<_> = dtypes.map(|(i, dtype)| dtype.or(formals.get(i + 2).copied().flatten())).collect();
    inputs.extend(body.captures.into_iter().map(Some));
    ctx.emit_all(ops::Loop { body: Arc::new(body.graph), n_carried }, &inputs, &dtypes)
}
