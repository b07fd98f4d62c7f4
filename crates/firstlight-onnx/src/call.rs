//! Model-local functions: found by domain, name and overload, and inlined where they are called.

use crate::attributes::Attributes;
use crate::build::{Binding, Builder, Frame};
use crate::error::LoadError;
use crate::node_ctx::Values;
use crate::proto::{FunctionProto, ModelProto, NodeProto, OperatorSetIdProto};
use crate::survey::domain_of;
use firstlight_graph::ValueId;
use std::collections::HashMap;
use std::rc::Rc;

/// The functions of a model.
#[derive(Debug)]
pub(crate) struct Functions<'m> {
    by_id: HashMap<(&'m str, &'m str, &'m str), &'m FunctionProto<'m>>,
}

impl<'m> Functions<'m> {
    /// **Errors**: two functions of one domain, name and overload.
    pub(crate) fn new(model: &'m ModelProto<'m>) -> Result<Self, LoadError> {
        let mut by_id = HashMap::new();
        for f in &model.functions {
            if by_id.insert((domain_of(f.domain), f.name, f.overload), f).is_some() {
                return Err(LoadError::Model(format!("function {} is defined twice", label(f))));
            }
        }
        Ok(Self { by_id })
    }

    /// The functions of a model that may contradict itself: of two of one name the first counts.
    pub(crate) fn first_of_each(model: &'m ModelProto<'m>) -> Self {
        let by_id = model.functions.iter().rev().map(|f| ((domain_of(f.domain), f.name, f.overload), f)).collect();
        Self { by_id }
    }

    /// The function that a node calls. Functions come before ops of the same name.
    pub(crate) fn called_by(&self, node: &NodeProto<'m>) -> Option<&'m FunctionProto<'m>> {
        self.by_id.get(&(domain_of(node.domain), node.op_type, node.overload)).copied()
    }
}

fn label(f: &FunctionProto<'_>) -> String {
    let overload = if f.overload.is_empty() { String::new() } else { format!(":{}", f.overload) };
    format!("{}.{}{overload}", domain_of(f.domain), f.name)
}

/// What names inside a call begin with: the call's own name, or the end of a long one.
fn prefix_of(name: &str) -> String {
    const MAX_BYTES: usize = 256;
    let start = name.ceil_char_boundary(name.len().saturating_sub(MAX_BYTES));
    let (dots, tail) = (if start > 0 { "…" } else { "" }, name.get(start..).unwrap_or(name));
    format!("{dots}{tail}/")
}

/// Operator sets that a graph or function imports, and their versions.
#[derive(Clone, Debug)]
pub(crate) struct Opsets(HashMap<String, i64>);

impl Opsets {
    /// **Errors**: a model without any (but for the first versions of the format, which had one only), two versions of
    /// one domain.
    pub(crate) fn of_model(model: &ModelProto<'_>) -> Result<Self, LoadError> {
        let mut out = Self(HashMap::new());
        if model.opset_import.is_empty() {
            if model.ir_version >= 3 {
                return Err(LoadError::Model("it imports no operator set; is it an ONNX model?".into()));
            }
            out.0.insert("ai.onnx".into(), 1);
        }
        for OperatorSetIdProto { domain, version } in &model.opset_import {
            let other = out.0.insert(domain_of(domain).into(), *version).filter(|other| other != version);
            if let Some(other) = other {
                let domain = domain_of(domain);
                return Err(LoadError::Model(format!("it imports two versions of {domain}: {other} and {version}")));
            }
        }
        Ok(out)
    }

    /// Those of a function's body: its own, and the model's where it names none.
    pub(crate) fn of_function(&self, function: &FunctionProto<'_>) -> Self {
        let mut out = self.clone();
        out.0.extend(function.opset_import.iter().map(|o| (domain_of(o.domain).to_owned(), o.version)));
        out
    }

    pub(crate) fn version(&self, domain: &str) -> Option<i64> {
        self.0.get(domain).copied()
    }
}

impl<'m> Builder<'m> {
    /// Inlines a function: its nodes land in the graph at hand, under the name of the calling node.
    pub(crate) fn call(
        &mut self,
        function: &'m FunctionProto<'m>,
        node: &'m NodeProto<'m>,
        name: &str,
        inputs: &[Option<ValueId>],
        attributes: Attributes<'m>,
    ) -> Result<Values, LoadError> {
        let callee = label(function);
        let fail = |problem: String| LoadError::Node { node: name.into(), op: callee.clone(), problem };
        if let Some(first) = self.calls.iter().position(|c| *c == callee) {
            let chain = self.calls.get(first..).unwrap_or(&[]).join(" -> ");
            return Err(fail(format!("functions cannot call themselves: {chain} -> {callee}")));
        }
        self.check_depth()?;
        if inputs.len() > function.inputs.len() {
            return Err(fail(format!("it takes {} inputs, got {}", function.inputs.len(), inputs.len())));
        }
        if node.outputs.len() > function.outputs.len() {
            return Err(fail(format!("it has {} outputs, got {}", function.outputs.len(), node.outputs.len())));
        }
        let attributes = attributes.bound_to(function).map_err(&fail)?;
        let opsets = self.opsets_of(function);
        let level = self.levels.len() - 1;
        let caller = self.frame();
        let labels = node.outputs.iter().zip(&function.outputs).filter(|(actual, _)| !actual.is_empty());
        let labels: Vec<_> = labels.map(|(actual, formal)| (*formal, caller.value_label(actual))).collect();
        self.frames.push(Frame::new(level, opsets, Rc::new(attributes), false, prefix_of(name)));
        self.calls.push(callee.clone());
        for (i, formal) in function.inputs.iter().enumerate() {
            let value = inputs.get(i).copied().flatten();
            if self.frame().is_bound(formal) {
                return Err(fail(format!("the function lists its input `{formal}` twice")));
            }
            self.bind(formal, value.map_or(Binding::Omitted, Binding::Value));
        }
        let frame = self.frame_mut();
        for (formal, label) in labels {
            // A result carries the caller's name, unless it is one of the inputs handed back.
            if !frame.is_bound(formal) {
                frame.renamed.entry(formal).or_insert(label);
            }
        }
        self.declare_types(function.value_info.iter());
        self.nodes(&function.nodes)?;
        let mut values = Values::new();
        for formal in function.outputs.iter().take(node.outputs.len()) {
            let reader = || format!("output `{formal}` of function {callee}");
            let value = self.value(formal, &reader)?;
            values.push(value.ok_or_else(|| fail(format!("output `{formal}` is an input that the node leaves out")))?);
        }
        self.frames.pop();
        self.calls.pop();
        Ok(values)
    }
}
