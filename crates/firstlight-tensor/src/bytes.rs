//! Immutable bytes of a constant: owned, or a range of a mapped file.

use crate::MappedFile;
use std::fmt;
use std::sync::Arc;

/// Bytes that live in memory of our own, aligned to 8 bytes.
#[derive(Clone, Default)]
pub struct OwnedBytes {
    words: Vec<u64>,
    len: usize,
}

impl OwnedBytes {
    /// `len` zero bytes.
    pub fn zeroed(len: usize) -> OwnedBytes {
        OwnedBytes { words: vec![0; len.div_ceil(8)], len }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    /// The bytes, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }
}

impl From<&[u8]> for OwnedBytes {
    fn from(bytes: &[u8]) -> OwnedBytes {
        let mut owned = OwnedBytes::zeroed(bytes.len());
        owned.as_mut_slice().copy_from_slice(bytes);
        owned
    }
}

/// Immutable bytes, cheap to clone: owned memory, or a range of a mapped file that is never copied.
#[derive(Clone)]
pub enum Bytes {
    /// Memory of our own, aligned to 8 bytes.
    Owned(Arc<OwnedBytes>),
    /// A range of a mapped file, of any alignment.
    Mapped {
        /// The mapping, which lives as long as any range of it.
        file: Arc<MappedFile>,
        /// Bytes from the file's start.
        offset: usize,
        /// Length in bytes.
        len: usize,
    },
}

/// The system maps this many bytes of a file at once when one of them is touched.
const TOUCH_STRIDE: usize = 64 << 10;

impl Bytes {
    /// Has the pages of a mapped range at hand, so that no reader waits for them; owned bytes are.
    pub fn page_in(&self) {
        if let Bytes::Mapped { .. } = self {
            let bytes = self.as_slice();
            for byte in bytes.iter().step_by(TOUCH_STRIDE).chain(bytes.last()) {
                std::hint::black_box(*byte);
            }
        }
    }

    /// A range of a mapped file, or `None` when it reaches beyond the file.
    pub fn mapped(file: &Arc<MappedFile>, offset: usize, len: usize) -> Option<Bytes> {
        (offset.checked_add(len)? <= file.len()).then(|| Bytes::Mapped { file: file.clone(), offset, len })
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Bytes::Owned(owned) => owned.len,
            Bytes::Mapped { len, .. } => *len,
        }
    }

    /// True when there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Owned(owned) => owned.as_slice(),
            Bytes::Mapped { file, offset, len } => &file.as_slice()[*offset..*offset + *len],
        }
    }

    /// Bytes of owned memory held: 0 for a mapped range.
    pub fn owned_len(&self) -> usize {
        match self {
            Bytes::Owned(owned) => owned.len,
            Bytes::Mapped { .. } => 0,
        }
    }
}

impl From<OwnedBytes> for Bytes {
    fn from(owned: OwnedBytes) -> Bytes {
        Bytes::Owned(Arc::new(owned))
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        OwnedBytes::from(bytes).into()
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bytes::Owned(owned) => write!(f, "{} bytes", owned.len),
            Bytes::Mapped { offset, len, .. } => write!(f, "{len} bytes mapped at {offset}"),
        }
    }
}

impl fmt::Debug for OwnedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}
