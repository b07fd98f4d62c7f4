//! The protobuf wire format: a borrowing [`Reader`] that knows where in the file every field lies, and a small [`Writer`].
//!
//! Nothing here knows about ONNX. A field is handed out whole, so a field that the caller does not know costs nothing to
//! skip, and a payload is a [`Span`]: bytes plus their absolute offset, so that a caller can keep the range and not the
//! bytes. There is no recursion; a nested message is a new `Reader`, and how deep to go is the caller's decision.

use std::fmt;

/// A run of bytes and the absolute offset of its first byte in the outermost buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// The bytes themselves.
    pub bytes: &'a [u8],
    /// Offset of `bytes[0]` from the start of the outermost buffer.
    pub offset: usize,
}

impl fmt::Debug for Span<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {:?}", self.range())
    }
}

impl<'a> Span<'a> {
    /// The whole of an outermost buffer.
    pub fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// The byte range that the span covers in the outermost buffer.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset.saturating_add(self.bytes.len())
    }

    /// Reads the span as a message.
    pub fn reader(&self) -> Reader<'a> {
        Reader { bytes: self.bytes, pos: 0, base: self.offset }
    }

    /// Reads the span as UTF-8 text.
    ///
    /// **Errors**: names `what` and the offset of the first bad byte.
    pub fn text(&self, what: &'static str) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes).map_err(|e| WireError {
            offset: self.offset.saturating_add(e.valid_up_to()),
            what,
            expected: "UTF-8 text",
            got: "a byte sequence that is not UTF-8".into(),
        })
    }
}

/// What went wrong while reading, and at which byte of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    /// Absolute offset in the outermost buffer.
    pub offset: usize,
    /// The message or field that was being read, such as `NodeProto.input`.
    pub what: &'static str,
    /// What should have been there.
    pub expected: &'static str,
    /// What was there.
    pub got: String,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}: expected {}, got {}", self.offset, self.what, self.expected, self.got)
    }
}

impl std::error::Error for WireError {}

/// One field of a message, read whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// The field's number in its message.
    pub number: u32,
    /// The payload.
    pub value: Value<'a>,
    /// Absolute offset of the field's tag.
    pub offset: usize,
}

/// A field's payload as the wire format knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Wire type 0: integers, booleans, enumerations.
    Varint(u64),
    /// Wire type 1: 8 little-endian bytes.
    Fixed64(u64),
    /// Wire type 2: text, bytes, nested messages, packed lists.
    Bytes(Span<'a>),
    /// Wire type 5: 4 little-endian bytes.
    Fixed32(u32),
    /// Wire types 3 and 4: a group, skipped whole.
    Group,
}

impl Value<'_> {
    fn describe(&self) -> &'static str {
        match self {
            Value::Varint(_) => "a varint",
            Value::Fixed64(_) => "a 64-bit number",
            Value::Bytes(_) => "length-delimited bytes",
            Value::Fixed32(_) => "a 32-bit number",
            Value::Group => "a group",
        }
    }
}

impl<'a> Field<'a> {
    fn mismatch(&self, what: &'static str, expected: &'static str) -> WireError {
        WireError { offset: self.offset, what, expected, got: self.value.describe().into() }
    }

    /// The payload as a signed integer.
    pub fn i64(&self, what: &'static str) -> Result<i64, WireError> {
        match self.value {
            Value::Varint(v) => Ok(v as i64),
            _ => Err(self.mismatch(what, "a varint")),
        }
    }

    /// The payload as an `int32` or an enumeration: the low 32 bits of the varint, as protobuf reads it.
    pub fn i32(&self, what: &'static str) -> Result<i32, WireError> {
        Ok(self.i64(what)? as i32)
    }

    /// The payload as a `float`.
    pub fn f32(&self, what: &'static str) -> Result<f32, WireError> {
        match self.value {
            Value::Fixed32(v) => Ok(f32::from_bits(v)),
            _ => Err(self.mismatch(what, "a 32-bit number")),
        }
    }

    /// The payload as bytes.
    pub fn span(&self, what: &'static str) -> Result<Span<'a>, WireError> {
        match self.value {
            Value::Bytes(s) => Ok(s),
            _ => Err(self.mismatch(what, "length-delimited bytes")),
        }
    }

    /// The payload as UTF-8 text.
    pub fn text(&self, what: &'static str) -> Result<&'a str, WireError> {
        self.span(what)?.text(what)
    }

    /// Calls `each` for every integer of a repeated integer field, packed or not.
    pub fn each_varint<E: From<WireError>>(
        &self,
        what: &'static str,
        mut each: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.value {
            Value::Varint(v) => each(v),
            Value::Bytes(s) => {
                let mut r = s.reader();
                while !r.at_end() {
                    each(r.varint(what)?)?;
                }
                Ok(())
            }
            _ => Err(self.mismatch(what, "varints, packed or one by one").into()),
        }
    }

    /// Calls `each` for every number of a repeated `float` field, packed or not.
    pub fn each_f32<E: From<WireError>>(
        &self,
        what: &'static str,
        mut each: impl FnMut(f32) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.value {
            Value::Fixed32(v) => each(f32::from_bits(v)),
            Value::Bytes(s) => {
                let (words, rest) = s.bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(ragged(s, what, "a multiple of 4 bytes").into());
                }
                words.iter().try_for_each(|w| each(f32::from_le_bytes(*w)))
            }
            _ => Err(self.mismatch(what, "32-bit numbers, packed or one by one").into()),
        }
    }

    /// Calls `each` for every number of a repeated `double` field, packed or not.
    pub fn each_f64<E: From<WireError>>(
        &self,
        what: &'static str,
        mut each: impl FnMut(f64) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.value {
            Value::Fixed64(v) => each(f64::from_bits(v)),
            Value::Bytes(s) => {
                let (words, rest) = s.bytes.as_chunks::<8>();
                if !rest.is_empty() {
                    return Err(ragged(s, what, "a multiple of 8 bytes").into());
                }
                words.iter().try_for_each(|w| each(f64::from_le_bytes(*w)))
            }
            _ => Err(self.mismatch(what, "64-bit numbers, packed or one by one").into()),
        }
    }
}

fn ragged(s: Span<'_>, what: &'static str, expected: &'static str) -> WireError {
    WireError { offset: s.offset, what, expected, got: format!("{} bytes", s.bytes.len()) }
}

/// How deep groups may nest; ONNX has none, and a group that is skipped keeps no state but this count.
const MAX_GROUP_DEPTH: usize = 64;

/// Reads the fields of one message in order.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
    base: usize,
}

impl<'a> Reader<'a> {
    /// Reads an outermost message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0, base: 0 }
    }

    /// Absolute offset of the next byte.
    pub fn offset(&self) -> usize {
        self.base.saturating_add(self.pos)
    }

    /// Whether the message is used up.
    pub fn at_end(&self) -> bool {
        self.pos >= self.bytes.len()
    }

    /// The next field, or `None` at the end of the message. `what` names the message in errors.
    ///
    /// **Errors**: a truncated field, a length beyond the message, a varint of more than 10 bytes, field number 0,
    /// an unknown wire type.
    pub fn next_field(&mut self, what: &'static str) -> Result<Option<Field<'a>>, WireError> {
        if self.at_end() {
            return Ok(None);
        }
        let offset = self.offset();
        let (number, wire_type) = self.tag(what)?;
        let value = match wire_type {
            3 => {
                self.skip_group(what, number)?;
                Value::Group
            }
            4 => return Err(self.error(offset, what, "a field", "the end of a group that was never begun")),
            other => self.payload(what, other, offset)?,
        };
        Ok(Some(Field { number, value, offset }))
    }

    fn error(&self, offset: usize, what: &'static str, expected: &'static str, got: impl Into<String>) -> WireError {
        WireError { offset, what, expected, got: got.into() }
    }

    fn tag(&mut self, what: &'static str) -> Result<(u32, u8), WireError> {
        let offset = self.offset();
        let tag = self.varint(what)?;
        let number = u32::try_from(tag >> 3).ok().filter(|n| (1..=0x1fff_ffff).contains(n));
        let number = number
            .ok_or_else(|| self.error(offset, what, "a field number from 1 to 536870911", (tag >> 3).to_string()))?;
        Ok((number, (tag & 7) as u8))
    }

    fn payload(&mut self, what: &'static str, wire_type: u8, offset: usize) -> Result<Value<'a>, WireError> {
        Ok(match wire_type {
            0 => Value::Varint(self.varint(what)?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array(what)?)),
            2 => {
                let at = self.offset();
                let length = self.varint(what)?;
                let left = self.bytes.len().saturating_sub(self.pos);
                match usize::try_from(length).ok().filter(|n| *n <= left) {
                    Some(n) => Value::Bytes(self.take(n, what)?),
                    None => {
                        let got = format!("a length of {length} with {left} bytes left");
                        return Err(self.error(at, what, "a length within the message", got));
                    }
                }
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array(what)?)),
            other => return Err(self.error(offset, what, "a wire type from 0 to 5", other.to_string())),
        })
    }

    fn skip_group(&mut self, what: &'static str, number: u32) -> Result<(), WireError> {
        let mut open = vec![number];
        while let Some(&innermost) = open.last() {
            let offset = self.offset();
            let (n, wire_type) = self.tag(what)?;
            match wire_type {
                3 if open.len() == MAX_GROUP_DEPTH => {
                    return Err(self.error(offset, what, "groups nested at most 64 deep", "one more"));
                }
                3 => open.push(n),
                4 if n == innermost => {
                    open.pop();
                }
                4 => return Err(self.error(offset, what, "the end of the innermost group", format!("the end of {n}"))),
                other => {
                    self.payload(what, other, offset)?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, n: usize, what: &'static str) -> Result<Span<'a>, WireError> {
        let offset = self.offset();
        let end = self.pos.checked_add(n);
        match end.and_then(|end| self.bytes.get(self.pos..end)) {
            Some(bytes) => {
                self.pos += n;
                Ok(Span { bytes, offset })
            }
            None => {
                let left = self.bytes.len().saturating_sub(self.pos);
                Err(self.error(offset, what, "a whole field", format!("{left} bytes where {n} are needed")))
            }
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        let offset = self.offset();
        let span = self.take(N, what)?;
        span.bytes.try_into().map_err(|_| self.error(offset, what, "a whole field", "too few bytes"))
    }

    fn varint(&mut self, what: &'static str) -> Result<u64, WireError> {
        let start = self.offset();
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let Some(&byte) = self.bytes.get(self.pos) else {
                return Err(self.error(start, what, "a whole varint", "the end of the message"));
            };
            self.pos += 1;
            // The tenth byte holds one bit; protobuf drops what does not fit.
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error(start, what, "a varint of at most 10 bytes", "a longer one"))
    }
}

/// Writes the fields of one message.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty message.
    pub fn new() -> Self {
        Self::default()
    }

    /// The message as bytes.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    fn raw_varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.bytes.push((v as u8 & 0x7f) | 0x80);
            v >>= 7;
        }
        self.bytes.push(v as u8);
    }

    fn tag(&mut self, number: u32, wire_type: u8) {
        self.raw_varint(u64::from(number) << 3 | u64::from(wire_type));
    }

    /// An unsigned integer.
    pub fn u64(&mut self, number: u32, v: u64) -> &mut Self {
        self.tag(number, 0);
        self.raw_varint(v);
        self
    }

    /// A signed integer or an enumeration.
    pub fn i64(&mut self, number: u32, v: i64) -> &mut Self {
        self.u64(number, v as u64)
    }

    /// A `float`.
    pub fn f32(&mut self, number: u32, v: f32) -> &mut Self {
        self.tag(number, 5);
        self.bytes.extend_from_slice(&v.to_le_bytes());
        self
    }

    /// A `double`.
    pub fn f64(&mut self, number: u32, v: f64) -> &mut Self {
        self.tag(number, 1);
        self.bytes.extend_from_slice(&v.to_le_bytes());
        self
    }

    /// Bytes.
    pub fn bytes(&mut self, number: u32, v: &[u8]) -> &mut Self {
        self.tag(number, 2);
        self.raw_varint(v.len() as u64);
        self.bytes.extend_from_slice(v);
        self
    }

    /// Text.
    pub fn text(&mut self, number: u32, v: &str) -> &mut Self {
        self.bytes(number, v.as_bytes())
    }

    /// A nested message, filled by `fill`.
    pub fn message(&mut self, number: u32, fill: impl FnOnce(&mut Writer)) -> &mut Self {
        let mut inner = Writer::new();
        fill(&mut inner);
        self.bytes(number, &inner.bytes)
    }

    /// A packed list of integers.
    pub fn packed_i64(&mut self, number: u32, v: &[i64]) -> &mut Self {
        self.message(number, |w| v.iter().for_each(|&x| w.raw_varint(x as u64)))
    }

    /// A packed list of `float`s.
    pub fn packed_f32(&mut self, number: u32, v: &[f32]) -> &mut Self {
        self.message(number, |w| v.iter().for_each(|x| w.bytes.extend_from_slice(&x.to_le_bytes())))
    }

    /// A packed list of `double`s.
    pub fn packed_f64(&mut self, number: u32, v: &[f64]) -> &mut Self {
        self.message(number, |w| v.iter().for_each(|x| w.bytes.extend_from_slice(&x.to_le_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<Field<'_>>, WireError> {
        let mut r = Reader::new(bytes);
        let mut out = Vec::new();
        while let Some(f) = r.next_field("Test")? {
            out.push(f);
        }
        Ok(out)
    }

    #[test]
    fn reads_what_it_wrote() {
        let mut w = Writer::new();
        w.u64(1, 300).i64(2, -1).f32(3, 1.5).f64(4, -2.25).text(5, "naïve").packed_i64(6, &[1, -2, i64::MAX]);
        w.message(7, |m| {
            m.bytes(536_870_911, &[0, 255]);
        });
        let bytes = w.finish();
        let f = fields(&bytes).unwrap();
        assert_eq!(f[0].value, Value::Varint(300));
        assert_eq!(f[1].i64("x").unwrap(), -1);
        assert_eq!(f[2].f32("x").unwrap(), 1.5);
        assert_eq!(f[3].value, Value::Fixed64((-2.25f64).to_bits()));
        assert_eq!(f[4].text("x").unwrap(), "naïve");
        let mut ints = Vec::new();
        f[5].each_varint::<WireError>("x", |v| {
            ints.push(v as i64);
            Ok(())
        })
        .unwrap();
        assert_eq!(ints, [1, -2, i64::MAX]);
        let inner = f[6].span("x").unwrap();
        assert_eq!(&bytes[inner.range()], inner.bytes);
        let leaf = inner.reader().next_field("x").unwrap().unwrap();
        assert_eq!((leaf.number, leaf.span("x").unwrap().bytes), (536_870_911, &[0u8, 255][..]));
        assert_eq!(&bytes[leaf.span("x").unwrap().range()], &[0, 255]);
    }

    #[test]
    fn packed_and_single_numbers_read_alike() {
        let mut w = Writer::new();
        w.packed_f32(1, &[1.0, 2.0]).f32(1, 3.0).packed_f64(2, &[4.0]).f64(2, 5.0).packed_i64(3, &[6]).i64(3, 7);
        let bytes = w.finish();
        let mut got = Vec::new();
        for f in fields(&bytes).unwrap() {
            match f.number {
                1 => f.each_f32::<WireError>("x", |v| {
                    got.push(f64::from(v));
                    Ok(())
                }),
                2 => f.each_f64("x", |v| {
                    got.push(v);
                    Ok(())
                }),
                _ => f.each_varint("x", |v| {
                    got.push(v as f64);
                    Ok(())
                }),
            }
            .unwrap();
        }
        assert_eq!(got, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    }

    #[test]
    fn names_the_offset_of_what_is_wrong() {
        // (bytes, offset of the error, what was expected)
        let cases: &[(&[u8], usize, &str)] = &[
            (&[0x08], 1, "a whole varint"),
            (&[0x08, 0x80], 1, "a whole varint"),
            (&[0x08, 1, 0x12, 5, 1], 3, "a length within the message"),
            (&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], 1, "a length within the message"),
            (&[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1], 1, "a varint of at most 10 bytes"),
            (&[0x00, 0x01], 0, "a field number from 1 to 536870911"),
            (&[0x0e], 0, "a wire type from 0 to 5"),
            (&[0x0d, 1, 2], 1, "a whole field"),
            (&[0x09, 1, 2], 1, "a whole field"),
            (&[0x0c], 0, "a field"),
            (&[0x0b, 0x14], 1, "the end of the innermost group"),
        ];
        for (bytes, offset, expected) in cases {
            let e = fields(bytes).unwrap_err();
            assert_eq!((e.offset, e.expected), (*offset, *expected), "{bytes:02x?}");
            assert!(e.to_string().contains("at byte"), "{e}");
        }
    }

    #[test]
    fn groups_are_skipped_without_recursion() {
        let f = fields(&[0x0b, 0x10, 5, 0x13, 0x14, 0x0c, 0x18, 9]);
        let f = f.unwrap();
        assert_eq!((f[0].value, f[1].number, f[1].value), (Value::Group, 3, Value::Varint(9)));
        let deep = vec![0x0b; 100_000];
        assert_eq!(fields(&deep).unwrap_err().expected, "groups nested at most 64 deep");
    }

    #[test]
    fn text_error_points_at_the_bad_byte() {
        let mut w = Writer::new();
        w.bytes(1, b"ab\xffc");
        let bytes = w.finish();
        let e = fields(&bytes).unwrap()[0].text("Test.name").unwrap_err();
        assert_eq!((e.offset, e.what, e.expected), (4, "Test.name", "UTF-8 text"));
    }

    #[test]
    fn ragged_packed_numbers_are_refused() {
        let mut w = Writer::new();
        w.bytes(1, &[0; 6]);
        let bytes = w.finish();
        let f = fields(&bytes).unwrap()[0];
        assert!(f.each_f32::<WireError>("x", |_| Ok(())).is_err());
        assert!(f.each_f64::<WireError>("x", |_| Ok(())).is_err());
    }
}
