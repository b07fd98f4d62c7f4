//! Tensor files: `.npy`, `.npz`, and `.pb` (an ONNX `TensorProto`).
//!
//! A file is written beside its place and moved there whole, so that no partial file is ever seen.

use crate::Error;
use firstlight_tensor::{MappedFile, Tensor, npy, pb};
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// The most bytes that an `.npz` may unpack to.
const MAX_UNPACKED_BYTES: u64 = 1 << 36;

/// Reads an `.npy` file.
///
/// **Dtypes**: f16, f32, f64, complex, integers of 8 to 64 bits, bool, and fixed-width text as strings.
/// **Edge cases**: either byte order; Fortran order is turned into row-major order.
/// **Source**: NumPy's format, versions 1 to 3; no pickled objects and no structured dtypes.
/// **Errors**: [`Error::File`], naming the file.
pub fn read_npy(path: impl AsRef<Path>) -> Result<Tensor, Error> {
    let path = path.as_ref();
    npy::read_npy(read(path)?.as_slice()).map_err(|error| bad(path, error))
}

/// Reads an `.npz` file: names and tensors, in file order.
///
/// **Dtypes**: as [`read_npy`].
/// **Edge cases**: what unpacks to more than 64 GiB is refused.
/// **Errors**: [`Error::File`], naming the file and the array.
pub fn read_npz(path: impl AsRef<Path>) -> Result<Vec<(String, Tensor)>, Error> {
    let path = path.as_ref();
    npy::read_npz(read(path)?.as_slice(), MAX_UNPACKED_BYTES).map_err(|error| bad(path, error))
}

/// Reads an `.npz` file that is in memory, such as one that `include_bytes!` makes part of a program.
///
/// **Errors**: [`Error::File`] with `name` for the path, naming the array.
pub fn parse_npz(name: &str, bytes: &[u8]) -> Result<Vec<(String, Tensor)>, Error> {
    npy::read_npz(bytes, MAX_UNPACKED_BYTES).map_err(|error| bad(Path::new(name), error))
}

/// Reads a `.pb` file that holds a `TensorProto`: its name, often empty, and its values.
///
/// **Errors**: [`Error::File`], naming the file.
pub fn read_pb(path: impl AsRef<Path>) -> Result<(String, Tensor), Error> {
    let path = path.as_ref();
    pb::read_tensor(read(path)?.as_slice()).map_err(|error| bad(path, error))
}

/// Writes an `.npy` file.
///
/// **Dtypes**: those that [`read_npy`] reads; [`write_pb`] takes the rest.
/// **Errors**: [`Error::File`], naming the file: it cannot be written, or NumPy has no such element type.
pub fn write_npy(path: impl AsRef<Path>, tensor: &Tensor) -> Result<(), Error> {
    let path = path.as_ref();
    write(path, &npy::write_npy(tensor).map_err(|error| bad(path, error))?)
}

/// Writes an `.npz` file, uncompressed.
///
/// **Errors**: as [`write_npy`]; two tensors of one name.
pub fn write_npz<'a>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
) -> Result<(), Error> {
    let path = path.as_ref();
    write(path, &npy::write_npz(tensors).map_err(|error| bad(path, error))?)
}

/// Writes a `.pb` file that holds a `TensorProto`; it takes every element type.
///
/// **Errors**: [`Error::File`], naming the file.
pub fn write_pb(path: impl AsRef<Path>, name: &str, tensor: &Tensor) -> Result<(), Error> {
    let path = path.as_ref();
    write(path, &pb::write_tensor(name, tensor).map_err(|error| bad(path, error))?)
}

/// Writes a file whole: beside its place first, then moved there.
///
/// **Errors**: [`Error::File`], naming the file; nothing of it is left then.
pub fn write(path: impl AsRef<Path>, bytes: &[u8]) -> Result<(), Error> {
    let path = path.as_ref();
    let fail = |error: io::Error| bad(path, error);
    let name = path.file_name().ok_or_else(|| bad(path, "is not the name of a file"))?;
    if path.is_dir() {
        return Err(bad(path, "is a directory, not a file"));
    }
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(beside);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // Nothing more can be done where this fails too; the first error is the one to tell.
        let _ = std::fs::remove_file(&part);
    }
    written.map_err(fail)
}

fn read(path: &Path) -> Result<MappedFile, Error> {
    MappedFile::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => bad(path, "there is no such file"),
        _ => bad(path, error),
    })
}

fn bad(path: &Path, problem: impl Display) -> Error {
    Error::File { path: path.into(), problem: problem.to_string() }
}
