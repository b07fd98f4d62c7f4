//! Declared types of values.

use super::{Metadata, Parser, Result};
use firstlight_tensor::wire::Span;

/// A value's name and declared type.
#[derive(Clone, Debug)]
pub struct ValueInfoProto<'a> {
    /// The value's name.
    pub name: &'a str,
    /// Its type, where declared.
    pub ty: Option<TypeProto<'a>>,
    /// Free-form key/value pairs.
    pub metadata_props: Metadata<'a>,
}

/// A declared type.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeProto<'a> {
    /// The message names no kind of type.
    Unset,
    /// A tensor.
    Tensor(TensorTypeProto<'a>),
    /// A sparse tensor.
    SparseTensor(TensorTypeProto<'a>),
    /// A list of values of one type.
    Sequence(Box<TypeProto<'a>>),
    /// A value that may be absent.
    Optional(Box<TypeProto<'a>>),
    /// A map from keys of a `TensorProto.DataType` to values.
    Map {
        /// Data type of the keys.
        key: i32,
        /// Type of the values.
        value: Box<TypeProto<'a>>,
    },
    /// A type that only its domain knows.
    Opaque,
}

/// Element type and shape of a tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorTypeProto<'a> {
    /// The `TensorProto.DataType` number; 0 where not stated.
    pub elem_type: i32,
    /// The dims; `None` where even the rank is unknown.
    pub shape: Option<Vec<DimProto<'a>>>,
}

/// One declared dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimProto<'a> {
    /// A number.
    Value(i64),
    /// A name that stands for the same number wherever it appears.
    Param(&'a str),
    /// Not stated.
    Unset,
}

impl Parser {
    pub(super) fn value_info<'a>(&mut self, body: Span<'a>, depth: usize) -> Result<ValueInfoProto<'a>> {
        let mut v = ValueInfoProto { name: "", ty: None, metadata_props: Metadata::new(body, 4) };
        let mut r = body.reader();
        while let Some(f) = r.next_field("ValueInfoProto")? {
            match f.number {
                1 => v.name = self.name(f.span("ValueInfoProto.name")?, "ValueInfoProto.name")?,
                2 => v.ty = Some(self.type_proto(f.span("ValueInfoProto.type")?, depth)?),
                _ => {}
            }
        }
        Ok(v)
    }

    pub(super) fn type_proto<'a>(&mut self, body: Span<'a>, depth: usize) -> Result<TypeProto<'a>> {
        let depth = self.deeper(depth, body)?;
        let mut t = TypeProto::Unset;
        let mut r = body.reader();
        while let Some(f) = r.next_field("TypeProto")? {
            match f.number {
                1 => t = TypeProto::Tensor(self.tensor_type(f.span("TypeProto.tensor_type")?)?),
                4 => t = TypeProto::Sequence(self.element(f.span("TypeProto.sequence_type")?, 1, depth)?.1),
                5 => {
                    let (key, value) = self.element(f.span("TypeProto.map_type")?, 2, depth)?;
                    t = TypeProto::Map { key, value };
                }
                7 => t = TypeProto::Opaque,
                8 => t = TypeProto::SparseTensor(self.tensor_type(f.span("TypeProto.sparse_tensor_type")?)?),
                9 => t = TypeProto::Optional(self.element(f.span("TypeProto.optional_type")?, 1, depth)?.1),
                _ => {}
            }
        }
        Ok(t)
    }

    /// Reads `Sequence`, `Optional` (type in field 1) or `Map` (key in field 1, type in field 2).
    fn element<'a>(&mut self, body: Span<'a>, field: u32, depth: usize) -> Result<(i32, Box<TypeProto<'a>>)> {
        let (mut key, mut ty) = (0, TypeProto::Unset);
        let mut r = body.reader();
        while let Some(f) = r.next_field("TypeProto")? {
            if f.number == field {
                ty = self.type_proto(f.span("TypeProto.elem_type")?, depth)?;
            } else if f.number == 1 {
                key = f.i32("TypeProto.Map.key_type")?;
            }
        }
        Ok((key, Box::new(ty)))
    }

    fn tensor_type<'a>(&mut self, body: Span<'a>) -> Result<TensorTypeProto<'a>> {
        let mut t = TensorTypeProto::default();
        let mut r = body.reader();
        while let Some(f) = r.next_field("TypeProto.Tensor")? {
            match f.number {
                1 => t.elem_type = f.i32("TypeProto.Tensor.elem_type")?,
                2 => {
                    let mut dims = Vec::new();
                    let mut s = f.span("TypeProto.Tensor.shape")?.reader();
                    while let Some(f) = s.next_field("TensorShapeProto")? {
                        if f.number == 1 {
                            if dims.len() >= self.limits.rank {
                                return Err(self.over(f.offset, "rank", self.limits.rank));
                            }
                            let dim = self.dim(f.span("TensorShapeProto.dim")?)?;
                            self.push(&mut dims, dim, f.offset)?;
                        }
                    }
                    t.shape = Some(dims);
                }
                _ => {}
            }
        }
        Ok(t)
    }

    fn dim<'a>(&self, body: Span<'a>) -> Result<DimProto<'a>> {
        let mut d = DimProto::Unset;
        let mut r = body.reader();
        while let Some(f) = r.next_field("TensorShapeProto.Dimension")? {
            match f.number {
                1 => d = DimProto::Value(f.i64("TensorShapeProto.Dimension.dim_value")?),
                2 => {
                    let what = "TensorShapeProto.Dimension.dim_param";
                    d = DimProto::Param(self.name(f.span(what)?, what)?);
                }
                _ => {}
            }
        }
        Ok(d)
    }
}
