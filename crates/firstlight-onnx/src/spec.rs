//! Declared types as specs of the graph.

use crate::error::LoadError;
use crate::proto::{DimProto, TypeProto, ValueInfoProto};
use firstlight_graph::Spec;
use firstlight_tensor::pb::dtype_of;
use firstlight_tensor::{DType, Dim, SymShape};

/// The spec that the declared type of a graph's input or output gives.
///
/// **Errors**: no type, an unknown element type, something that is not a tensor.
pub(crate) fn spec_of(what: &str, value: &ValueInfoProto<'_>) -> Result<Spec, LoadError> {
    let unknown = |problem: String| LoadError::Model(format!("{what} `{}`: {problem}", value.name));
    let unsupported = |problem: &str| {
        Err(LoadError::UnsupportedValue { value: value.name.into(), problem: format!("{problem} are not supported") })
    };
    let tensor = match &value.ty {
        Some(TypeProto::Tensor(tensor)) => tensor,
        None | Some(TypeProto::Unset) => return Err(unknown("it has no type".into())),
        Some(TypeProto::SparseTensor(_)) => return unsupported("sparse tensors"),
        Some(TypeProto::Sequence(_)) => return unsupported("sequences"),
        Some(TypeProto::Optional(_)) => return unsupported("optional values"),
        Some(TypeProto::Map { .. }) => return unsupported("maps"),
        Some(TypeProto::Opaque) => return unsupported("opaque types"),
    };
    let dtype = dtype_of(tensor.elem_type);
    let dtype = dtype.ok_or_else(|| unknown(format!("element type {} is unknown", tensor.elem_type)))?;
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
pub(crate) fn dim_of(dim: &DimProto<'_>) -> Dim {
    match dim {
        DimProto::Value(size) => usize::try_from(*size).map_or(Dim::Unknown, Dim::Known),
        DimProto::Param("") | DimProto::Unset => Dim::Unknown,
        DimProto::Param(name) => Dim::Named((*name).into()),
    }
}
