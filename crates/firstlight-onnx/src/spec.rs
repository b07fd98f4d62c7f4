//! Declared types as specs of the graph.

use crate::proto::{DimProto, TypeProto};
use firstlight_graph::Spec;
use firstlight_tensor::pb::dtype_of;
use firstlight_tensor::{DType, Dim, SymShape};

/// The spec that a declared type gives.
///
/// **Errors**: what it is instead of a tensor.
pub(crate) fn spec_of(ty: &TypeProto<'_>) -> Result<Spec, String> {
    let tensor = match ty {
        TypeProto::Tensor(tensor) => tensor,
        TypeProto::Unset => return Err("it has no type".into()),
        TypeProto::SparseTensor(_) => return Err("sparse tensors are not supported".into()),
        TypeProto::Sequence(_) => return Err("sequences are not supported".into()),
        TypeProto::Optional(_) => return Err("optional values are not supported".into()),
        TypeProto::Map { .. } => return Err("maps are not supported".into()),
        TypeProto::Opaque => return Err("opaque types are not supported".into()),
    };
    let dtype = dtype_of(tensor.elem_type).ok_or_else(|| format!("element type {} is unknown", tensor.elem_type))?;
    let dims = tensor.shape.as_ref().map(|dims| dims.iter().map(dim_of).collect::<SymShape>());
    Ok(Spec { dtype, dims })
}

/// The element type alone, where the declared type is a tensor of a known one.
pub(crate) fn dtype_declared(ty: Option<&TypeProto<'_>>) -> Option<DType> {
    match ty {
        Some(TypeProto::Tensor(tensor)) => dtype_of(tensor.elem_type),
        _ => None,
    }
}

/// Exporters write -1 and empty names for sizes that they do not know.
fn dim_of(dim: &DimProto<'_>) -> Dim {
    match dim {
        DimProto::Value(size) => usize::try_from(*size).map_or(Dim::Unknown, Dim::Known),
        DimProto::Param("") | DimProto::Unset => Dim::Unknown,
        DimProto::Param(name) => Dim::Named((*name).into()),
    }
}
