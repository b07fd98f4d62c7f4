//! Host memory of fixed address.

use super::ALIGN;
use firstlight_graph::{OpError, OpErrorKind};
use memmap2::{MmapMut, MmapOptions};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;

/// Zeroed host memory of fixed address, aligned to 64 bytes.
///
/// Large buffers ask the system for huge pages: the first touch of one costs a few hundred times less than that of the
/// small pages it stands for.
pub struct HostBuf {
    start: NonNull<u8>,
    len: usize,
    owner: Owner,
}

/// What the bytes are given back to.
enum Owner {
    /// There is no byte.
    Nobody,
    Heap,
    Map(MmapMut),
}

/// Bytes of a huge page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Buffers from this size on are maps of their own.
const MAP_FROM_BYTES: usize = 128 << 10;

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
            return Ok(HostBuf { start: NonNull::<Line>::dangling().cast(), len, owner: Owner::Nobody });
        }
        let layout = Layout::from_size_align(len, ALIGN).map_err(|_| refused())?;
        if len >= MAP_FROM_BYTES {
            let mut map = MmapOptions::new().len(len).map_anon().map_err(|_| refused())?;
            ask_for_huge_pages(&map);
            let start = NonNull::new(map.as_mut_ptr()).ok_or_else(refused)?;
            return Ok(HostBuf { start, len, owner: Owner::Map(map) });
        }
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refused)?;
        Ok(HostBuf { start, len, owner: Owner::Heap })
    }

    /// Has the system back the bytes with memory now, where it can, so that no kernel waits for that; values stay.
    pub fn populate(&self) {
        if let Owner::Map(map) = &self.owner {
            populate(map);
        }
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

/// Whole huge pages only: the rest would take one that is mostly not asked for.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(map: &MmapMut) {
    let whole = map.len() / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if whole > 0 {
        // A system that has none goes on with small pages.
        let _ = map.advise_range(memmap2::Advice::HugePage, 0, whole);
    }
}

#[cfg(target_os = "linux")]
fn populate(map: &MmapMut) {
    // A system that cannot backs each page when it is first touched.
    let _ = map.advise(memmap2::Advice::PopulateWrite);
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_: &MmapMut) {}

#[cfg(not(target_os = "linux"))]
fn populate(_: &MmapMut) {}

#[repr(align(64))]
struct Line;

impl Drop for HostBuf {
    fn drop(&mut self) {
        match self.owner {
            // SAFETY: allocated in `zeroed` with this size and alignment, which Layout accepted there.
            Owner::Heap => unsafe {
                dealloc(self.start.as_ptr(), Layout::from_size_align_unchecked(self.len, ALIGN));
            },
            Owner::Nobody | Owner::Map(_) => {}
        }
    }
}

impl fmt::Debug for HostBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}
