//! Host memory of fixed address.

use super::ALIGN;
use firstlight_graph::{OpError, OpErrorKind};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;

/// Zeroed host memory of fixed address, aligned to 64 bytes.
pub struct HostBuf {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a HostBuf owns its allocation as a Box does; shared references only read.
unsafe impl Send for HostBuf {}
// SAFETY: as above.
unsafe impl Sync for HostBuf {}

impl HostBuf {
    /// Allocates `len` zero bytes.
    ///
    /// **Errors**: the system has no memory left, or the size is absurd.
    pub fn zeroed(len: usize) -> Result<HostBuf, OpError> {
        let refused = || OpError::new(OpErrorKind::Device, format!("the system refused {len} bytes of memory"));
        if len == 0 {
            return Ok(HostBuf { start: NonNull::<Line>::dangling().cast(), len });
        }
        let layout = Layout::from_size_align(len, ALIGN).map_err(|_| refused())?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refused)?;
        Ok(HostBuf { start, len })
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the bytes start.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: start is valid for len initialised bytes for as long as self lives; `&self` excludes writers.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[repr(align(64))]
struct Line;

impl Drop for HostBuf {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: allocated in `zeroed` with this size and alignment, which Layout accepted there.
            unsafe { dealloc(self.start.as_ptr(), Layout::from_size_align_unchecked(self.len, ALIGN)) };
        }
    }
}

impl fmt::Debug for HostBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}
