//! Files mapped read-only.
#![allow(unsafe_code)]

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
#[cfg(unix)]
use std::time::{Duration, Instant};

/// A file mapped read-only, or read whole where mapping was not wanted.
///
/// **Edge cases**: a mapping shows what the file holds at the moment of reading. [`MappedFile::unchanged`] tells
/// whether size and modification time are still those of the opening; another process that truncates the file under
/// the map is outside what it can catch, and reading the file whole ([`MappedFile::read`]) is the answer to that.
pub struct MappedFile {
    path: PathBuf,
    content: Content,
    opened: Option<(File, u64, Option<SystemTime>)>,
}

enum Content {
    Mapped(memmap2::Mmap),
    Read(Vec<u8>),
}

impl MappedFile {
    /// Maps a regular file.
    ///
    /// **Errors**: what opening reports; a directory or another non-regular file is `InvalidInput`.
    pub fn map(path: &Path) -> io::Result<MappedFile> {
        let (file, stat) = open_regular(path)?;
        if stat.len() == 0 {
            return Ok(MappedFile { path: path.into(), content: Content::Read(Vec::new()), opened: None });
        }
        // SAFETY: the map is private to this value and read-only. Its bytes stay valid while no other process shrinks
        // the file; that remaining case is documented on the type and in docs/security.md with `read` as the answer.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        read_ahead_if_cold(&map);
        let opened = Some((file, stat.len(), stat.modified().ok()));
        Ok(MappedFile { path: path.into(), content: Content::Mapped(map), opened })
    }

    /// Reads a regular file whole into memory.
    ///
    /// **Errors**: as [`MappedFile::map`].
    pub fn read(path: &Path) -> io::Result<MappedFile> {
        open_regular(path)?;
        Ok(MappedFile { path: path.into(), content: Content::Read(std::fs::read(path)?), opened: None })
    }

    /// Wraps bytes that are in memory already.
    pub fn from_vec(bytes: Vec<u8>) -> MappedFile {
        MappedFile { path: PathBuf::new(), content: Content::Read(bytes), opened: None }
    }

    /// Where the file was opened; empty for bytes from memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// True when the file has no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when the bytes are the page cache's and not a copy.
    pub fn is_mapped(&self) -> bool {
        matches!(self.content, Content::Mapped(_))
    }

    /// The file's bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.content {
            Content::Mapped(map) => map,
            Content::Read(bytes) => bytes,
        }
    }

    /// False when a mapped file's size or modification time differs from what it was at opening.
    pub fn unchanged(&self) -> bool {
        match &self.opened {
            None => true,
            Some((file, len, modified)) => match file.metadata() {
                Ok(stat) => stat.len() == *len && stat.modified().ok() == *modified,
                Err(_) => false,
            },
        }
    }
}

/// A first byte that takes longer than this comes from disk; one from memory takes a few microseconds.
#[cfg(unix)]
const FROM_DISK: Duration = Duration::from_micros(200);
/// What is asked for at once: systems do not read ahead much more than this when asked for more.
#[cfg(unix)]
const ASK_BYTES: usize = 256 << 10;
/// The most that is asked for ahead of its use.
#[cfg(unix)]
const MAX_AHEAD_BYTES: usize = 1 << 30;

/// Has the system read a file that is not in memory in the order of its bytes, while it is parsed and run: asking takes a tenth of
/// the reading, and pages that are read one by one as they are touched come four times as slowly.
#[cfg(unix)]
fn read_ahead_if_cold(map: &memmap2::Mmap) {
    let begin = Instant::now();
    std::hint::black_box(map.first().copied());
    if begin.elapsed() < FROM_DISK {
        return;
    }
    let end = map.len().min(MAX_AHEAD_BYTES);
    for from in (0..end).step_by(ASK_BYTES) {
        // Where the system cannot, pages are read when they are touched.
        let _ = map.advise_range(memmap2::Advice::WillNeed, from, ASK_BYTES.min(end - from));
    }
}

#[cfg(not(unix))]
fn read_ahead_if_cold(_: &memmap2::Mmap) {}

fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    // Looked at before it is opened: opening a pipe would wait for its other end.
    let before = std::fs::metadata(path)?;
    if !before.is_file() {
        let what = if before.is_dir() { "is a directory, not a file" } else { "is not a regular file" };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let file = File::open(path)?;
    let stat = file.metadata()?;
    Ok((file, stat))
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedFile({}, {} bytes)", self.path.display(), self.len())
    }
}
