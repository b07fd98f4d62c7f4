//! `absorb-transpose`: MatMul reads its right operand as it lies before a Transpose of the last two dimensions.

use super::{Action, Scope};
use firstlight_graph::{Op, ValueId};
use smallvec::SmallVec;

/// A Transpose that only a MatMul reads, as B.
pub(super) fn find(scope: &mut Scope<'_, '_>) -> Vec<(usize, Action)> {
    let graph = scope.graph;
    let products: SmallVec<[usize; 16]> =
        scope.nodes().filter(|(_, node)| matches!(node.op, Op::MatMul(_))).map(|(i, _)| i).collect();
    if products.is_empty() {
        return vec![];
    }
    let readers = scope.sole_readers();
    let mut actions = vec![];
    for i in products {
        let node = &graph.nodes()[i];
        let (Op::MatMul(product), [Some(a), Some(b)]) = (&node.op, &node.inputs[..]) else { continue };
        let transpose = b.node.0 as usize;
        if readers[scope.place(*b)] != Some(i) {
            continue;
        }
        let (Op::Transpose(op), [Some(x)]) = (&graph.nodes()[transpose].op, &graph.nodes()[transpose].inputs[..])
        else {
            continue;
        };
        let Some(rank) = scope.fact(*x).dims.as_ref().map(|dims| dims.rank()).filter(|rank| *rank >= 2) else {
            continue;
        };
        let swapped = (0..rank - 2).chain([rank - 1, rank - 2]);
        if op.axes(rank).is_ok_and(|axes| axes.iter().copied().eq(swapped)) {
            let mut product = product.clone();
            product.transpose_b = !product.transpose_b;
            let inputs: SmallVec<[Option<ValueId>; 4]> = SmallVec::from_slice(&[Some(*a), Some(*x)]);
            actions.push((i, Action::Become { op: product.into(), inputs, sources: vec![transpose, i] }));
        }
    }
    actions
}
