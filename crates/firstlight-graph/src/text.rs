//! The printed text form of a graph.
//!
//! One line a node: `%7 = Add(%3, %6) -> "sum"`, attributes in braces, subgraphs as indented blocks.

use crate::op::AttrValue;
use crate::ops::Op;
use crate::{Graph, Node};
use std::fmt;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self, f, 0)
    }
}

fn print(graph: &Graph, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
    let pad = "  ".repeat(depth);
    writeln!(f, "{pad}graph {:?} {{", graph.name())?;
    for (i, node) in graph.nodes().iter().enumerate() {
        write!(f, "{pad}  %{i} = ")?;
        print_node(graph, node, f)?;
        writeln!(f)?;
        for subgraph in node.op.subgraphs() {
            print(subgraph, f, depth + 2)?;
        }
    }
    write!(f, "{pad}  return")?;
    for (i, (name, value)) in graph.outputs().iter().enumerate() {
        write!(f, "{} {name:?} = {value}", if i == 0 { "" } else { "," })?;
    }
    writeln!(f, "\n{pad}}}")
}

fn print_node(graph: &Graph, node: &Node, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}(", node.op.info().name)?;
    for (i, input) in node.inputs.iter().enumerate() {
        write!(f, "{}", if i == 0 { "" } else { ", " })?;
        match input {
            Some(value) => write!(f, "{value}")?,
            None => write!(f, "_")?,
        }
    }
    write!(f, ")")?;
    let attributes = node.op.def().attributes();
    for (i, (name, value)) in attributes.iter().enumerate() {
        write!(f, "{}{name}={value}", if i == 0 { " {" } else { ", " })?;
    }
    if !attributes.is_empty() {
        write!(f, "}}")?;
    }
    if let Op::Input(input) = &node.op
        && let Some(declared) = graph.inputs().get(input.index as usize)
    {
        write!(f, ": {}", declared.spec)?;
    }
    write!(f, " ->")?;
    for (i, output) in node.outputs.iter().enumerate() {
        write!(f, "{} {output:?}", if i == 0 { "" } else { "," })?;
    }
    Ok(())
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::Bool(v) => write!(f, "{v}"),
            AttrValue::Int(v) => write!(f, "{v}"),
            AttrValue::Float(v) => write!(f, "{v:?}"),
            AttrValue::Ints(v) => write!(f, "{v:?}"),
            AttrValue::Text(v) => write!(f, "{v:?}"),
            AttrValue::DType(v) => write!(f, "{v}"),
            AttrValue::Tensor(v) => write!(f, "{}{}", v.dtype(), v.shape()),
            AttrValue::Graph => write!(f, "below"),
        }
    }
}
