//! NumPy files: `.npy` holds one array, `.npz` a zip of them.
//!
//! The header is a Python dict literal of three known keys, read here by a parser of its own: bounded in size, without
//! recursion. Pickled and structured arrays are refused.

use crate::{Bytes, DType, OwnedBytes, Shape, Tensor};
use std::fmt;
use std::io::{Cursor, Read, Write};

/// Why bytes are no NumPy file, or a tensor cannot be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyError {
    /// The array's name inside an `.npz`; empty for a bare `.npy`.
    pub array: String,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.array.is_empty() {
            f.write_str(&self.problem)
        } else {
            write!(f, "array `{}`: {}", self.array, self.problem)
        }
    }
}

impl std::error::Error for NpyError {}

fn bad(problem: impl Into<String>) -> NpyError {
    NpyError { array: String::new(), problem: problem.into() }
}

const MAGIC: &[u8] = b"\x93NUMPY";
const MAX_HEADER_BYTES: usize = 65_536;
const MAX_RANK: usize = 64;

/// Reads an `.npy` file.
///
/// **Dtypes**: f16, f32, f64, complex, integers of 8 to 64 bits, bool, and fixed-width text (`U`) as strings, of either
/// byte order. **Edge cases**: Fortran order is turned into row-major order.
/// **Errors**: not an `.npy` file, pickled objects, structured or unknown dtypes, more or fewer bytes than the shape asks.
pub fn read_npy(bytes: &[u8]) -> Result<Tensor, NpyError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| bad("not an npy file: it does not begin with \\x93NUMPY"))?;
    let (header_bytes, rest) = match rest {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        [version, ..] => return Err(bad(format!("npy version {version} is not 1, 2 or 3, or the file is cut short"))),
        [] => return Err(bad("the file is cut short")),
    };
    if header_bytes > MAX_HEADER_BYTES {
        return Err(bad(format!("a header of {header_bytes} bytes is more than {MAX_HEADER_BYTES}")));
    }
    let (header, data) = rest.split_at_checked(header_bytes).ok_or_else(|| bad("the file ends inside its header"))?;
    let header = std::str::from_utf8(header).map_err(|_| bad("the header is not text"))?;
    let header = Header::parse(header)?;
    header.tensor(data)
}

/// Writes an `.npy` file.
///
/// **Dtypes**: those that [`read_npy`] reads.
/// **Errors**: a dtype that NumPy has no name for (bf16, 8-bit floats, sub-byte types); a `.pb` file holds those.
pub fn write_npy(tensor: &Tensor) -> Result<Vec<u8>, NpyError> {
    let mut text_width = 0;
    let descr = match tensor.dtype() {
        DType::String => {
            let strings = tensor.strings().map_err(|e| bad(e.to_string()))?;
            text_width = strings.iter().map(|s| s.chars().count()).max().unwrap_or(0).max(1);
            format!("<U{text_width}")
        }
        dtype => match SCALARS.iter().find(|(_, _, d)| *d == dtype) {
            Some((kind, 1, _)) => format!("|{kind}1"),
            Some((kind, size, _)) => format!("<{kind}{size}"),
            None => return Err(bad(format!("npy has no {dtype}; write a .pb file instead"))),
        },
    };
    let dims: String = tensor.shape().iter().map(|d| format!("{d}, ")).collect();
    let dims = if tensor.shape().rank() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    // The data begin at a multiple of 64 bytes.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let header_bytes = u16::try_from(header.len()).map_err(|_| bad("the header is too long"))?;
    let mut out = Vec::with_capacity(MAGIC.len() + 4 + header.len() + tensor.as_bytes().len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&header_bytes.to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    if tensor.dtype() == DType::String {
        for s in tensor.strings().map_err(|e| bad(e.to_string()))? {
            let padded = s.chars().map(u32::from).chain(std::iter::repeat(0));
            out.extend(padded.take(text_width).flat_map(u32::to_le_bytes));
        }
    } else {
        out.extend_from_slice(tensor.as_bytes());
    }
    Ok(out)
}

/// Reads an `.npz` file: names without `.npy`, in file order. All arrays together may unpack to `max_bytes`.
///
/// **Errors**: not a zip file, an entry that is not an `.npy`, more than `max_bytes`; otherwise as [`read_npy`].
pub fn read_npz(bytes: &[u8], max_bytes: u64) -> Result<Vec<(String, Tensor)>, NpyError> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|e| bad(format!("not an npz file: {e}")))?;
    let mut left = max_bytes;
    let mut out = Vec::new();
    for i in 0..archive.len() {
        let entry = archive.by_index(i).map_err(|e| bad(format!("entry {i} of the npz file: {e}")))?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let array = name.strip_suffix(".npy").unwrap_or(&name).to_string();
        let named = |problem: String| NpyError { array: array.clone(), problem };
        let mut unpacked = Vec::new();
        let read = entry.take(left.saturating_add(1)).read_to_end(&mut unpacked);
        let n = read.map_err(|e| named(format!("cannot be unpacked: {e}")))? as u64;
        left = left.checked_sub(n).ok_or_else(|| named(format!("the arrays unpack to more than {max_bytes} bytes")))?;
        let tensor = read_npy(&unpacked).map_err(|e| named(e.problem))?;
        out.push((array, tensor));
    }
    Ok(out)
}

/// Writes an `.npz` file, uncompressed.
///
/// **Errors**: as [`write_npy`], naming the array; two arrays of one name.
pub fn write_npz<'a>(arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<Vec<u8>, NpyError> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (array, tensor) in arrays {
        let named = |problem: String| NpyError { array: array.into(), problem };
        let npy = write_npy(tensor).map_err(|e| named(e.problem))?;
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .large_file(npy.len() as u64 >= u64::from(u32::MAX));
        archive.start_file(format!("{array}.npy"), options).map_err(|e| named(e.to_string()))?;
        archive.write_all(&npy).map_err(|e| named(e.to_string()))?;
    }
    Ok(archive.finish().map_err(|e| bad(e.to_string()))?.into_inner())
}

/// NumPy's kind letter and size in bytes of each element type that both sides have.
const SCALARS: [(char, usize, DType); 14] = [
    ('b', 1, DType::Bool),
    ('i', 1, DType::I8),
    ('i', 2, DType::I16),
    ('i', 4, DType::I32),
    ('i', 8, DType::I64),
    ('u', 1, DType::U8),
    ('u', 2, DType::U16),
    ('u', 4, DType::U32),
    ('u', 8, DType::U64),
    ('f', 2, DType::F16),
    ('f', 4, DType::F32),
    ('f', 8, DType::F64),
    ('c', 8, DType::Complex64),
    ('c', 16, DType::Complex128),
];

#[derive(Debug)]
struct Header {
    big_endian: bool,
    kind: char,
    size: usize,
    fortran_order: bool,
    shape: Shape,
}

impl Header {
    fn parse(text: &str) -> Result<Header, NpyError> {
        let mut rest = text.trim();
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        eat(&mut rest, "{")?;
        while !rest.starts_with('}') {
            let key = quoted(&mut rest)?;
            eat(&mut rest, ":")?;
            match key {
                "descr" if rest.starts_with('[') => {
                    return Err(bad("structured arrays have no tensor; save each field as an array of its own"));
                }
                "descr" => descr = Some(quoted(&mut rest)?),
                "fortran_order" => fortran_order = Some(boolean(&mut rest)?),
                "shape" => shape = Some(tuple(&mut rest)?),
                other => return Err(bad(format!("the header has an unknown key {other:?}"))),
            }
            if !rest.starts_with('}') {
                eat(&mut rest, ",")?;
            }
        }
        let (Some(descr), Some(fortran_order), Some(shape)) = (descr, fortran_order, shape) else {
            return Err(bad("the header lacks descr, fortran_order or shape"));
        };
        let (big_endian, code) = match descr.strip_prefix(['<', '|', '=']) {
            Some(code) => (false, code),
            None => (descr.starts_with('>'), descr.strip_prefix('>').unwrap_or(descr)),
        };
        let mut chars = code.chars();
        let kind = chars.next().unwrap_or(' ');
        if kind == 'O' {
            return Err(bad("an array of pickled Python objects cannot be read safely; save numbers or text instead"));
        }
        let size = chars.as_str().parse().map_err(|_| bad(format!("dtype {descr:?} is not one that can be read")))?;
        Ok(Header { big_endian, kind, size, fortran_order, shape })
    }

    fn tensor(self, data: &[u8]) -> Result<Tensor, NpyError> {
        let (kind, size) = (self.kind, self.size);
        let scalar = SCALARS.iter().find(|(k, s, _)| (*k, *s) == (kind, size)).map(|(.., d)| *d);
        let (dtype, item_bytes, swap_bytes) = match (kind, scalar) {
            ('U', _) => (DType::String, size.checked_mul(4), 4),
            ('c', Some(d)) => (d, Some(size), size / 2),
            (_, Some(d)) => (d, Some(size), size),
            (_, None) => {
                return Err(bad(format!(
                    "dtype `{kind}{size}` has no counterpart; use f2 f4 f8, i1..i8, u1..u8, b1, c8 c16 or U"
                )));
            }
        };
        let too_large = || bad(format!("an array {} of `{kind}{size}` is larger than memory can hold", self.shape));
        let n_elems = self.shape.n_elems().ok_or_else(too_large)?;
        let item_bytes = item_bytes.ok_or_else(too_large)?;
        let expected = n_elems.checked_mul(item_bytes).ok_or_else(too_large)?;
        if data.len() != expected {
            let got = data.len();
            return Err(bad(format!("an array {} of `{kind}{size}` takes {expected} bytes, got {got}", self.shape)));
        }
        let mut owned = OwnedBytes::from(data);
        if self.big_endian && swap_bytes > 1 {
            owned.as_mut_slice().chunks_exact_mut(swap_bytes).for_each(<[u8]>::reverse);
        }
        if self.fortran_order && self.shape.rank() > 1 && expected > 0 {
            owned = row_major(owned.as_slice(), &self.shape, item_bytes);
        }
        if dtype == DType::String {
            let words = owned.as_slice().chunks(item_bytes.max(1)).map(text).collect::<Option<Vec<_>>>();
            // Items of no width leave no bytes to walk.
            let words = if item_bytes == 0 { None } else { words };
            let words = words.ok_or_else(|| bad("the text holds a code point that is not Unicode, or has no width"))?;
            return Tensor::from_strings(self.shape, &words).map_err(|e| bad(e.to_string()));
        }
        Tensor::new(dtype, self.shape, Bytes::from(owned)).map_err(|e| bad(e.to_string()))
    }
}

/// Decodes UTF-32 padded with zeros.
fn text(item: &[u8]) -> Option<String> {
    let (words, _) = item.as_chunks::<4>();
    let n = words.iter().rposition(|w| *w != [0; 4]).map_or(0, |last| last + 1);
    words.iter().take(n).map(|w| char::from_u32(u32::from_le_bytes(*w))).collect()
}

/// Turns items stored first-index-fastest into row-major order. No dim is zero.
fn row_major(data: &[u8], shape: &Shape, item_bytes: usize) -> OwnedBytes {
    let mut out = OwnedBytes::zeroed(data.len());
    let mut index = vec![0usize; shape.rank()];
    for item in out.as_mut_slice().chunks_exact_mut(item_bytes.max(1)) {
        let at = index.iter().zip(shape).rev().fold(0, |at, (i, dim)| at * dim + i) * item_bytes;
        if let Some(source) = data.get(at..at + item_bytes) {
            item.copy_from_slice(source);
        }
        for (i, dim) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *dim {
                break;
            }
            *i = 0;
        }
    }
    out
}

fn eat(rest: &mut &str, token: &str) -> Result<(), NpyError> {
    let after = rest.trim_start().strip_prefix(token);
    *rest = after.ok_or_else(|| {
        bad(format!("the header is not a dict of descr, fortran_order and shape near {:?}", start(rest)))
    })?;
    *rest = rest.trim_start();
    Ok(())
}

fn start(rest: &str) -> String {
    rest.chars().take(20).collect()
}

fn quoted<'a>(rest: &mut &'a str) -> Result<&'a str, NpyError> {
    let mut chars = rest.chars();
    let quote = chars.next().filter(|c| matches!(c, '\'' | '"'));
    let split = quote.and_then(|q| chars.as_str().split_once(q));
    let (text, after) = split.ok_or_else(|| bad(format!("the header has no quoted text near {:?}", start(rest))))?;
    *rest = after.trim_start();
    Ok(text)
}

fn boolean(rest: &mut &str) -> Result<bool, NpyError> {
    for (word, value) in [("True", true), ("False", false)] {
        if let Some(after) = rest.strip_prefix(word) {
            *rest = after.trim_start();
            return Ok(value);
        }
    }
    Err(bad(format!("fortran_order is neither True nor False near {:?}", start(rest))))
}

fn tuple(rest: &mut &str) -> Result<Shape, NpyError> {
    eat(rest, "(")?;
    let (inside, after) = rest.split_once(')').ok_or_else(|| bad("the shape in the header has no end"))?;
    *rest = after.trim_start();
    let mut shape = Shape::scalar();
    let mut parts = inside.split(',').map(str::trim).peekable();
    while let Some(part) = parts.next() {
        if part.is_empty() && parts.peek().is_none() {
            break;
        }
        let digits = part.strip_suffix('L').unwrap_or(part);
        let dim = digits.parse().map_err(|_| bad(format!("the shape holds {:?}, which is no dim", start(part))))?;
        if shape.rank() == MAX_RANK {
            return Err(bad(format!("the shape has more than {MAX_RANK} dims")));
        }
        shape.push(dim);
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&[1, 0]);
        out.extend_from_slice(&(header.len() as u16).to_le_bytes());
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(data);
        out
    }

    #[test]
    fn every_dtype_round_trips() {
        for (_, size, dtype) in SCALARS {
            for shape in [vec![], vec![3], vec![2, 3], vec![0, 2]] {
                let n: usize = shape.iter().product();
                let bytes: Vec<u8> =
                    (0..n * size).map(|i| i as u8 & u8::from(dtype != DType::Bool).wrapping_neg()).collect();
                let tensor = Tensor::new(dtype, shape.into_iter().collect(), bytes.as_slice().into()).unwrap();
                let file = write_npy(&tensor).unwrap();
                assert_eq!(read_npy(&file).unwrap(), tensor);
                assert_eq!((file.len() - tensor.as_bytes().len()) % 64, 0);
            }
        }
        let text = Tensor::from_strings([2, 2], &["a", "", "naïve", "日本"]).unwrap();
        assert_eq!(read_npy(&write_npy(&text).unwrap()).unwrap(), text);
        let bf16 = Tensor::zeros(DType::BF16, [1]).unwrap();
        assert!(write_npy(&bf16).unwrap_err().problem.contains(".pb"));
    }

    #[test]
    fn header_is_what_numpy_writes() {
        let file = write_npy(&Tensor::from_slice([1, 2], &[1f32, 2.0]).unwrap()).unwrap();
        let header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }   ";
        assert_eq!(&file[..header.len()], header);
        let file = write_npy(&Tensor::from_bools([1], &[true]).unwrap()).unwrap();
        assert!(String::from_utf8_lossy(&file).contains("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }"));
    }

    #[test]
    fn byte_order_and_index_order() {
        let big = npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}", &[1, 2, 3, 4]);
        assert_eq!(&read_npy(&big).unwrap().values::<i16>().unwrap()[..], [0x0102, 0x0304]);
        let complex = npy("{'descr': '>c8', 'fortran_order': False, 'shape': ()}", &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(read_npy(&complex).unwrap().as_bytes(), [4, 3, 2, 1, 8, 7, 6, 5]);
        let fortran = npy("{\"shape\": (2L, 3), 'fortran_order': True, 'descr': '|u1'}", &[0, 3, 1, 4, 2, 5]);
        assert_eq!(read_npy(&fortran).unwrap().as_bytes(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn bad_files_are_errors() {
        let error = |bytes: &[u8]| read_npy(bytes).unwrap_err().problem;
        let header = |h: &str, n: usize| error(&npy(h, &vec![0; n]));
        assert!(error(b"text").contains("not an npy file"));
        assert!(error(MAGIC).contains("cut short"));
        assert!(error(b"\x93NUMPY\x01\x00\xff\xff{").contains("ends inside"));
        assert!(error(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{").contains("more than"));
        assert!(header("{'descr': '|O', 'fortran_order': False, 'shape': ()}", 1).contains("pickled"));
        assert!(header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", 4).contains("structured"));
        assert!(header("{'descr': '|V2', 'fortran_order': False, 'shape': ()}", 2).contains("`V2`"));
        assert!(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 4).contains("takes 8 bytes, got 4"));
        assert!(header("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}", 8).contains("neither"));
        assert!(header("{'descr': '<f4', 'fortran_order': False}", 8).contains("lacks"));
        assert!(header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8).contains("no dim"));
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}";
        assert!(header(huge, 8).contains("larger than memory"));
        assert!(header("{'descr': '<U0', 'fortran_order': False, 'shape': (3,)}", 0).contains("width"));
        assert!(header("((((((((", 0).contains("dict"));
        assert!(header("{'descr", 0).contains("quoted"));
    }

    #[test]
    fn npz_round_trips() {
        let a = Tensor::from_slice([2], &[1i64, 2]).unwrap();
        let b = Tensor::from_strings([1], &["x"]).unwrap();
        let file = write_npz([("a", &a), ("dir/b", &b)]).unwrap();
        let back = read_npz(&file, 1 << 20).unwrap();
        assert_eq!(back, [("a".to_string(), a.clone()), ("dir/b".to_string(), b)]);
        assert!(read_npz(&file, 200).unwrap_err().problem.contains("more than 200"));
        assert!(read_npz(b"no zip", 200).unwrap_err().problem.contains("not an npz"));
        let bf16 = Tensor::zeros(DType::BF16, [1]).unwrap();
        assert_eq!(write_npz([("z", &bf16)]).unwrap_err().array, "z");
        assert!(write_npz([("a", &a), ("a", &a)]).is_err());
    }

    #[test]
    fn compressed_entries_are_read() {
        let a = Tensor::zeros(DType::F32, [100, 100]).unwrap();
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        archive.start_file("a.npy", options).unwrap();
        archive.write_all(&write_npy(&a).unwrap()).unwrap();
        let file = archive.finish().unwrap().into_inner();
        assert!(file.len() < 1000);
        assert_eq!(read_npz(&file, 1 << 20).unwrap(), [("a".to_string(), a)]);
        assert!(read_npz(&file, 1000).unwrap_err().problem.contains("unpack to more"));
    }
}
