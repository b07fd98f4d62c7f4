//! ONNX `TensorProto` messages.
//!
//! [`TensorProto`] is a view: it reads the header fields and leaves every payload where it lies, so parsing a model does
//! not touch its weights.

use crate::wire::{Reader, Span, WireError};
use smallvec::SmallVec;

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
