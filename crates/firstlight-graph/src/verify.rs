//! The verifier: what must hold of every graph, whoever built it.

use crate::graph::{Graph, NodeId};
use crate::ops::Op;
use std::fmt;

/// A rule that a graph breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// The node's name, outermost subgraph first.
    pub node: String,
    /// The rule, and what breaks it.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {:?}: {}", self.node, self.message)
    }
}

impl std::error::Error for VerifyError {}

impl Graph {
    /// Checks the rules that every graph keeps: inputs name earlier values, counts fit the op, subgraphs take and give
    /// what their node does, input nodes and declared inputs agree.
    ///
    /// **Errors**: the first rule that is broken, with the node.
    pub fn verify(&self) -> Result<(), VerifyError> {
        for (i, node) in self.nodes().iter().enumerate() {
            let fail = |message: String| Err(VerifyError { node: node.name.clone(), message });
            for input in node.inputs.iter().flatten() {
                let earlier = input.node < NodeId(i as u32);
                if !earlier || self.node(input.node).outputs.len() <= input.output as usize {
                    return fail(format!("reads {input}, which is no earlier value"));
                }
            }
            if let Err(error) = node.op.info().check_arity(&node.inputs, node.outputs.len()) {
                return fail(error.message().to_owned());
            }
            match &node.op {
                Op::Input(input) => {
                    let declared = self.inputs().get(input.index as usize);
                    if declared.is_none_or(|declared| declared.value.node != NodeId(i as u32)) {
                        return fail(format!("is not the graph's input {}", input.index));
                    }
                }
                Op::If(op) => {
                    for (name, branch) in [("then_branch", &op.then_branch), ("else_branch", &op.else_branch)] {
                        let (takes, gives) = (branch.inputs().len(), branch.outputs().len());
                        let (captures, outputs) = (node.inputs.len() - 1, node.outputs.len());
                        if takes != captures || gives != outputs {
                            return fail(format!(
                                "{name} takes {takes} captures and gives {gives} outputs; the node has {captures} and {outputs}"
                            ));
                        }
                    }
                }
                Op::Loop(op) => {
                    let (takes, gives) = (op.body.inputs().len(), op.body.outputs().len());
                    let (inputs, outputs) = (node.inputs.len(), node.outputs.len());
                    if takes != inputs || gives != outputs + 1 || op.n_carried > outputs || op.n_carried + 2 > inputs {
                        return fail(format!(
                            "the body takes {takes} and gives {gives} values; {inputs} and {} are needed, {} of them carried",
                            outputs + 1,
                            op.n_carried
                        ));
                    }
                }
                _ => {}
            }
            for subgraph in node.op.subgraphs() {
                subgraph
                    .verify()
                    .map_err(|inner| VerifyError { node: format!("{}/{}", node.name, inner.node), ..inner })?;
            }
        }
        for (name, value) in self.outputs() {
            if self.nodes().get(value.node.0 as usize).is_none_or(|node| node.outputs.len() <= value.output as usize) {
                return Err(VerifyError {
                    node: name.clone(),
                    message: format!("output reads {value}, which is no value"),
                });
            }
        }
        Ok(())
    }
}
