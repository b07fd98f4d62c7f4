//! `drop-identities`: nodes that give their input as it is.

use super::{Action, Scope};
use firstlight_graph::Op;
use smallvec::SmallVec;

/// Identity, Cast to the type that the input has, Transpose that keeps the order.
pub(super) fn find(scope: &mut Scope<'_, '_>) -> Vec<(usize, Action)> {
    let candidates: SmallVec<[usize; 16]> = scope
        .nodes()
        .filter(|(_, node)| matches!(node.op, Op::Identity(_) | Op::Cast(_) | Op::Transpose(_)))
        .map(|(i, _)| i)
        .collect();
    let mut actions = vec![];
    for i in candidates {
        let node = &scope.graph.nodes()[i];
        let Some(Some(input)) = node.inputs.first().copied() else { continue };
        let same = match &node.op {
            Op::Identity(_) => true,
            Op::Cast(cast) => {
                let dtype = scope.fact(input).dtype;
                // The types that Cast takes; any other is for it to refuse.
                dtype == Some(cast.to) && firstlight_graph::ops::types::NUMERIC_OR_BOOL.contains(&cast.to)
            }
            Op::Transpose(op) => match &scope.fact(input).dims {
                Some(dims) => op.axes(dims.rank()).is_ok_and(|axes| axes.iter().copied().eq(0..dims.rank())),
                None => false,
            },
            _ => false,
        };
        if same {
            actions.push((i, Action::Replace(input)));
        }
    }
    actions
}
