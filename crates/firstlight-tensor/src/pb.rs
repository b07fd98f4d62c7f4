//! ONNX `TensorProto` messages, in files of their own and inside models.
//!
//! [`TensorProto`] is a view: it reads the header fields and leaves every payload where it lies, so parsing a model does
//! not touch its weights. [`TensorProto::tensor`] then makes a [`Tensor`]: a range of the mapped file for `raw_data`, a
//! decoded copy for the typed fields. [`read_tensor`] and [`write_tensor`] are the two for a `.pb` file.

use crate::wire::{Field, Reader, Span, WireError, Writer};
use crate::{Bytes, DType, MappedFile, OwnedBytes, Shape, Tensor, TensorError};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// A `TensorProto` whose payload has not been read.
#[derive(Clone, Debug)]
pub struct TensorProto<'a> {
    /// The tensor's name; empty when it has none.
    pub name: &'a str,
    /// The dims as written, which may be negative in a malformed file.
    pub dims: SmallVec<[i64; 4]>,
    /// The `TensorProto.DataType` number.
    pub data_type: i32,
    /// `raw_data`, when present.
    pub raw_data: Option<Span<'a>>,
    /// Whether `data_location` says that the payload lies in another file.
    pub is_external: bool,
    /// Whether the tensor is a segment of a larger one, which no ONNX version gives a meaning.
    pub is_segment: bool,
    /// The whole message.
    pub body: Span<'a>,
}

/// Where another file holds a tensor's payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalData {
    /// Path relative to the model's folder, with `/` between its parts.
    pub location: String,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes; the tensor's own size where absent.
    pub length: Option<u64>,
    /// SHA-1 of the file as the producer wrote it; kept, not checked.
    pub checksum: Option<String>,
}

impl<'a> TensorProto<'a> {
    /// Reads the header of the message in `body`.
    ///
    /// **Errors**: malformed wire data, a name that is not UTF-8, more than `max_rank` dims.
    pub fn parse(body: Span<'a>, max_rank: usize) -> Result<Self, WireError> {
        let mut t = Self {
            name: "",
            dims: SmallVec::new(),
            data_type: 0,
            raw_data: None,
            is_external: false,
            is_segment: false,
            body,
        };
        let mut r = body.reader();
        while let Some(f) = r.next_field("TensorProto")? {
            match f.number {
                1 => f.each_varint("TensorProto.dims", |d| {
                    if t.dims.len() >= max_rank {
                        return Err(WireError {
                            offset: f.offset,
                            what: "TensorProto.dims",
                            expected: "no more dims than the rank limit allows",
                            got: format!("more than {max_rank}"),
                        });
                    }
                    t.dims.push(d as i64);
                    Ok(())
                })?,
                2 => t.data_type = f.i32("TensorProto.data_type")?,
                3 => t.is_segment = true,
                8 => t.name = f.text("TensorProto.name")?,
                9 => t.raw_data = Some(f.span("TensorProto.raw_data")?),
                14 => t.is_external = f.i32("TensorProto.data_location")? == 1,
                _ => {}
            }
        }
        Ok(t)
    }

    /// Reads a `TensorProto` that is a file of its own.
    pub fn from_bytes(bytes: &'a [u8], max_rank: usize) -> Result<Self, WireError> {
        Self::parse(Span::whole(bytes), max_rank)
    }

    /// The entries of `external_data`.
    ///
    /// **Errors**: a missing `location`, an `offset` or `length` that is not a decimal number, text that is not UTF-8.
    /// Unknown keys are ignored.
    pub fn external_data(&self) -> Result<ExternalData, WireError> {
        let mut out = ExternalData::default();
        let mut r = self.body.reader();
        while let Some(f) = r.next_field("TensorProto")? {
            if f.number != 13 {
                continue;
            }
            let (key, value) = key_value(f.span("TensorProto.external_data")?.reader())?;
            let number = || {
                value.parse::<u64>().map_err(|_| WireError {
                    offset: f.offset,
                    what: "TensorProto.external_data",
                    expected: "an offset or length in decimal digits",
                    got: format!("{value:?}"),
                })
            };
            match key {
                "location" => out.location = value.into(),
                "offset" => out.offset = number()?,
                "length" => out.length = Some(number()?),
                "checksum" => out.checksum = Some(value.into()),
                _ => {}
            }
        }
        if out.location.is_empty() {
            return Err(WireError {
                offset: self.body.offset,
                what: "TensorProto.external_data",
                expected: "a `location`",
                got: "none".into(),
            });
        }
        Ok(out)
    }
}

/// Reads a `StringStringEntryProto`.
pub fn key_value(mut r: Reader<'_>) -> Result<(&str, &str), WireError> {
    let (mut key, mut value) = ("", "");
    while let Some(f) = r.next_field("StringStringEntryProto")? {
        match f.number {
            1 => key = f.text("StringStringEntryProto.key")?,
            2 => value = f.text("StringStringEntryProto.value")?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// Why a `TensorProto` holds no tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PbError {
    /// The message is not what the format asks for.
    Malformed(WireError),
    /// The message is well formed but contradicts itself.
    Invalid {
        /// The tensor's name; empty when it has none.
        tensor: String,
        /// What is wrong.
        problem: String,
    },
}

impl fmt::Display for PbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PbError::Malformed(e) => e.fmt(f),
            PbError::Invalid { tensor, problem } if tensor.is_empty() => write!(f, "unnamed tensor: {problem}"),
            PbError::Invalid { tensor, problem } => write!(f, "tensor `{tensor}`: {problem}"),
        }
    }
}

impl std::error::Error for PbError {}

impl From<WireError> for PbError {
    fn from(e: WireError) -> Self {
        PbError::Malformed(e)
    }
}

/// Largest rank that [`read_tensor`] accepts.
const MAX_RANK: usize = 64;

/// Reads a `.pb` file that holds one `TensorProto`: its name (often empty) and its values.
///
/// **Errors**: malformed bytes, dims and values that do not fit, external data.
pub fn read_tensor(bytes: &[u8]) -> Result<(String, Tensor), PbError> {
    let proto = TensorProto::from_bytes(bytes, MAX_RANK)?;
    Ok((proto.name.into(), proto.tensor(None)?))
}

/// Writes a `TensorProto`: strings as `string_data`, everything else as `raw_data`.
pub fn write_tensor(name: &str, tensor: &Tensor) -> Result<Vec<u8>, TensorError> {
    let mut w = Writer::new();
    for &dim in tensor.shape() {
        w.u64(1, dim as u64);
    }
    w.i64(2, onnx_data_type(tensor.dtype()).into());
    if tensor.dtype() == DType::String {
        for s in tensor.strings()? {
            w.text(6, s);
        }
    }
    if !name.is_empty() {
        w.text(8, name);
    }
    if tensor.dtype() != DType::String {
        w.bytes(9, tensor.as_bytes());
    }
    Ok(w.finish())
}

/// The element type that a `TensorProto.DataType` number stands for.
pub fn dtype_of(data_type: i32) -> Option<DType> {
    DType::ALL.into_iter().find(|&dtype| onnx_data_type(dtype) == data_type)
}

/// The `TensorProto.DataType` number of an element type.
pub fn onnx_data_type(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => 1,
        DType::U8 => 2,
        DType::I8 => 3,
        DType::U16 => 4,
        DType::I16 => 5,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::String => 8,
        DType::Bool => 9,
        DType::F16 => 10,
        DType::F64 => 11,
        DType::U32 => 12,
        DType::U64 => 13,
        DType::Complex64 => 14,
        DType::Complex128 => 15,
        DType::BF16 => 16,
        DType::F8E4M3FN => 17,
        DType::F8E4M3FNUZ => 18,
        DType::F8E5M2 => 19,
        DType::F8E5M2FNUZ => 20,
        DType::U4 => 21,
        DType::I4 => 22,
        DType::F4E2M1 => 23,
        DType::F8E8M0 => 24,
        DType::U2 => 25,
        DType::I2 => 26,
        DType::F6E2M3 => 27,
        DType::F6E3M2 => 28,
    }
}

/// The field that holds the values of an element type when `raw_data` does not.
#[derive(Clone, Copy)]
enum TypedField {
    Float,
    Int32,
    String,
    Int64,
    Double,
    Uint64,
}

impl TypedField {
    fn of(dtype: DType) -> Self {
        match dtype {
            DType::F32 | DType::Complex64 => TypedField::Float,
            DType::F64 | DType::Complex128 => TypedField::Double,
            DType::I64 => TypedField::Int64,
            DType::U64 | DType::U32 => TypedField::Uint64,
            DType::String => TypedField::String,
            DType::I32
            | DType::I16
            | DType::I8
            | DType::I4
            | DType::I2
            | DType::U16
            | DType::U8
            | DType::U4
            | DType::U2
            | DType::Bool
            | DType::F16
            | DType::BF16
            | DType::F8E4M3FN
            | DType::F8E4M3FNUZ
            | DType::F8E5M2
            | DType::F8E5M2FNUZ
            | DType::F8E8M0
            | DType::F6E2M3
            | DType::F6E3M2
            | DType::F4E2M1 => TypedField::Int32,
        }
    }

    fn number(self) -> u32 {
        match self {
            TypedField::Float => 4,
            TypedField::Int32 => 5,
            TypedField::String => 6,
            TypedField::Int64 => 7,
            TypedField::Double => 10,
            TypedField::Uint64 => 11,
        }
    }

    fn name(self) -> &'static str {
        match self {
            TypedField::Float => "TensorProto.float_data",
            TypedField::Int32 => "TensorProto.int32_data",
            TypedField::String => "TensorProto.string_data",
            TypedField::Int64 => "TensorProto.int64_data",
            TypedField::Double => "TensorProto.double_data",
            TypedField::Uint64 => "TensorProto.uint64_data",
        }
    }
}

impl<'a> TensorProto<'a> {
    fn invalid(&self, problem: impl Into<String>) -> PbError {
        PbError::Invalid { tensor: self.name.into(), problem: problem.into() }
    }

    /// The element type.
    ///
    /// **Errors**: a `data_type` that is not one of ONNX's.
    pub fn dtype(&self) -> Result<DType, PbError> {
        dtype_of(self.data_type).ok_or_else(|| self.invalid(format!("data type {} is unknown", self.data_type)))
    }

    /// The shape.
    ///
    /// **Errors**: a negative dim, dims whose product overflows.
    pub fn shape(&self) -> Result<Shape, PbError> {
        let dims = self.dims.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<Shape>>();
        let dims = dims.ok_or_else(|| self.invalid(format!("dims {:?} cannot be negative", &self.dims[..])))?;
        match dims.n_elems() {
            Some(_) => Ok(dims),
            None => Err(self.invalid(format!("dims {dims} multiply to more than memory can hold"))),
        }
    }

    /// The size of the payload, and of the external file's range; `None` for strings.
    ///
    /// **Errors**: as [`TensorProto::dtype`] and [`TensorProto::shape`].
    pub fn n_bytes(&self) -> Result<Option<usize>, PbError> {
        let (dtype, shape) = (self.dtype()?, self.shape()?);
        if dtype == DType::String {
            return Ok(None);
        }
        let n = shape.n_elems().and_then(|n| dtype.size_bytes(n));
        n.map(Some).ok_or_else(|| self.invalid(format!("{dtype}{shape} is larger than memory can hold")))
    }

    /// The tensor. `file`, when given, is the file that the message lies in: `raw_data` then stays a range of it.
    ///
    /// **Dtypes**: all, from `raw_data` or the typed field that ONNX names for the element type.
    /// **Errors**: dims and values that do not fit, values out of the element type's range, external data (which the
    /// caller resolves by [`TensorProto::external_data`]), a segment.
    pub fn tensor(&self, file: Option<&Arc<MappedFile>>) -> Result<Tensor, PbError> {
        let (dtype, shape) = (self.dtype()?, self.shape()?);
        if self.is_external {
            return Err(self.invalid("its data is in another file"));
        }
        if self.is_segment {
            return Err(self.invalid("segments of tensors have no meaning in ONNX"));
        }
        let bytes = match self.raw_data {
            Some(raw) if dtype != DType::String => match file {
                Some(file) => Bytes::mapped(file, raw.offset, raw.bytes.len())
                    .ok_or_else(|| self.invalid("raw_data lies beyond the file"))?,
                None => Bytes::from(raw.bytes),
            },
            Some(_) => return Err(self.invalid("strings cannot be raw_data")),
            None => self.typed(dtype, &shape)?,
        };
        Tensor::new(dtype, shape, bytes).map_err(|e| self.invalid(e.to_string()))
    }

    fn each_typed(
        &self,
        field: TypedField,
        mut each: impl FnMut(Field<'a>) -> Result<(), PbError>,
    ) -> Result<(), PbError> {
        let mut r = self.body.reader();
        while let Some(f) = r.next_field("TensorProto")? {
            if f.number == field.number() {
                each(f)?;
            }
        }
        Ok(())
    }

    /// Decodes a typed field. The values are counted before memory is taken for them.
    fn typed(&self, dtype: DType, shape: &Shape) -> Result<Bytes, PbError> {
        let n_elems = shape.n_elems().unwrap_or(0);
        let field = TypedField::of(dtype);
        let what = field.name();
        if let TypedField::String = field {
            return self.typed_strings(shape, n_elems);
        }
        // Values of the field per element, or bytes where a value holds several elements.
        let n_values = match dtype {
            DType::Complex64 | DType::Complex128 => n_elems.checked_mul(2),
            DType::I4 | DType::U4 | DType::F4E2M1 | DType::I2 | DType::U2 => dtype.size_bytes(n_elems),
            _ => Some(n_elems),
        };
        let mut got = 0usize;
        self.each_typed(field, |f| match field {
            TypedField::Float => f.each_f32(what, |_| count(&mut got)),
            TypedField::Double => f.each_f64(what, |_| count(&mut got)),
            _ => f.each_varint(what, |_| count(&mut got)),
        })?;
        if n_values != Some(got) {
            let expected = n_values.map_or("more than memory can hold".into(), |n| n.to_string());
            return Err(self.invalid(format!("{dtype}{shape} takes {expected} values, {what} holds {got}")));
        }
        let n_bytes = dtype.size_bytes(n_elems).ok_or_else(|| self.invalid("larger than memory can hold"))?;
        let mut owned = OwnedBytes::zeroed(n_bytes);
        if dtype.bits() == 6 {
            self.put_6_bits(owned.as_mut_slice(), dtype)?;
            return Ok(owned.into());
        }
        let mut out = owned.as_mut_slice();
        self.each_typed(field, |f| match field {
            TypedField::Float => f.each_f32(what, |v| self.put(&mut out, &v.to_le_bytes())),
            TypedField::Double => f.each_f64(what, |v| self.put(&mut out, &v.to_le_bytes())),
            TypedField::Int64 => f.each_varint(what, |v| self.put(&mut out, &v.to_le_bytes())),
            TypedField::Uint64 if dtype == DType::U32 => f.each_varint(what, |v| {
                let v = u32::try_from(v).map_err(|_| self.invalid(format!("{v} is no u32")))?;
                self.put(&mut out, &v.to_le_bytes())
            }),
            TypedField::Uint64 => f.each_varint(what, |v| self.put(&mut out, &v.to_le_bytes())),
            TypedField::Int32 | TypedField::String => f.each_varint(what, |v| self.put_int(&mut out, dtype, v as i32)),
        })?;
        Ok(owned.into())
    }

    fn typed_strings(&self, shape: &Shape, n_elems: usize) -> Result<Bytes, PbError> {
        let mut strings = Vec::new();
        self.each_typed(TypedField::String, |f| {
            strings.push(f.text("TensorProto.string_data")?);
            Ok(())
        })?;
        if strings.len() != n_elems {
            let problem = format!("string{shape} takes {n_elems} values, string_data holds {}", strings.len());
            return Err(self.invalid(problem));
        }
        let tensor = Tensor::from_strings(shape.clone(), &strings).map_err(|e| self.invalid(e.to_string()))?;
        Ok(tensor.bytes().clone())
    }

    /// Writes an entry of `int32_data`: a value, or the bits of one, or a byte of packed elements. Bits may come signed
    /// or unsigned.
    fn put_int(&self, out: &mut &mut [u8], dtype: DType, v: i32) -> Result<(), PbError> {
        let fits = |low: i32, high: i32| match (low..=high).contains(&v) {
            true => Ok(()),
            false => Err(self.invalid(format!("int32_data holds {v}, which is no {dtype}"))),
        };
        match dtype {
            DType::I32 => self.put(out, &v.to_le_bytes()),
            DType::Bool => self.put(out, &[u8::from(v != 0)]),
            DType::I8 => fits(-0x80, 0x7f).and_then(|()| self.put(out, &[v as u8])),
            DType::U8 => fits(0, 0xff).and_then(|()| self.put(out, &[v as u8])),
            DType::I16 => fits(-0x8000, 0x7fff).and_then(|()| self.put(out, &(v as u16).to_le_bytes())),
            DType::U16 => fits(0, 0xffff).and_then(|()| self.put(out, &(v as u16).to_le_bytes())),
            d if d.bits() == 16 => fits(-0x8000, 0xffff).and_then(|()| self.put(out, &(v as u16).to_le_bytes())),
            _ => fits(-0x80, 0xff).and_then(|()| self.put(out, &[v as u8])),
        }
    }

    /// Packs entries of `int32_data` that hold one 6-bit element each.
    fn put_6_bits(&self, out: &mut [u8], dtype: DType) -> Result<(), PbError> {
        let mut bit = 0;
        self.each_typed(TypedField::Int32, |f| {
            f.each_varint("TensorProto.int32_data", |v| {
                let code = u8::try_from(v).ok().filter(|v| *v < 64);
                let code =
                    code.ok_or_else(|| self.invalid(format!("int32_data holds {}, which is no {dtype}", v as i32)))?;
                let [low, high] = (u16::from(code) << (bit % 8)).to_le_bytes();
                for (byte, part) in out.iter_mut().skip(bit / 8).zip([low, high]) {
                    *byte |= part;
                }
                bit += 6;
                Ok(())
            })
        })
    }

    fn put(&self, out: &mut &mut [u8], bytes: &[u8]) -> Result<(), PbError> {
        match std::mem::take(out).split_at_mut_checked(bytes.len()) {
            Some((head, tail)) => {
                head.copy_from_slice(bytes);
                *out = tail;
                Ok(())
            }
            None => Err(self.invalid("more values than elements")),
        }
    }
}

fn count(n: &mut usize) -> Result<(), PbError> {
    *n = n.saturating_add(1);
    Ok(())
}

#[cfg(test)]
mod tests;
