//! Where kernels read f32 from.

use std::marker::PhantomData;

/// Read-only f32 values anywhere in memory, with no alignment: a slice, or the little-endian bytes of a mapped weight.
///
/// `From<&[f32]>` and [`Src::from_bytes`] make one; both are free.
#[derive(Clone, Copy, Debug)]
pub struct Src<'a> {
    ptr: *const f32,
    len: usize,
    lifetime: PhantomData<&'a [u8]>,
}

// SAFETY: a `Src` is a shared borrow of plain data, like `&[u8]`.
unsafe impl Send for Src<'_> {}
// SAFETY: as above; nothing is ever written through it.
unsafe impl Sync for Src<'_> {}

impl<'a> Src<'a> {
    /// The whole f32 values in `bytes` (native byte order); up to three trailing bytes are ignored.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Src { ptr: bytes.as_ptr().cast(), len: bytes.len() / 4, lifetime: PhantomData }
    }

    /// `len` values at `ptr`.
    ///
    /// # Safety
    /// `ptr` is readable for `len` f32 (of any alignment), and nobody writes them, for all of `'a`.
    pub unsafe fn from_raw(ptr: *const f32, len: usize) -> Self {
        Src { ptr, len, lifetime: PhantomData }
    }

    /// Number of values.
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are no values.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Value `i`, or `None` past the end.
    pub fn get(self, i: usize) -> Option<f32> {
        // SAFETY: i is within the readable values.
        (i < self.len).then(|| unsafe { self.ptr.add(i).read_unaligned() })
    }

    /// The values from `start` on, at most `len` of them; what lies past the end is cut off.
    pub fn slice(self, start: usize, len: usize) -> Self {
        let start = start.min(self.len);
        // SAFETY: start is at most the length, so the pointer stays within the values or one past them.
        Src { ptr: unsafe { self.ptr.add(start) }, len: len.min(self.len - start), lifetime: PhantomData }
    }

    /// Address of value 0; it may have any alignment.
    pub fn as_ptr(self) -> *const f32 {
        self.ptr
    }
}

impl<'a> From<&'a [f32]> for Src<'a> {
    fn from(x: &'a [f32]) -> Self {
        Src { ptr: x.as_ptr(), len: x.len(), lifetime: PhantomData }
    }
}

impl<'a> From<&'a mut [f32]> for Src<'a> {
    fn from(x: &'a mut [f32]) -> Self {
        Src { ptr: x.as_ptr(), len: x.len(), lifetime: PhantomData }
    }
}

impl<'a, const N: usize> From<&'a [f32; N]> for Src<'a> {
    fn from(x: &'a [f32; N]) -> Self {
        x.as_slice().into()
    }
}

impl<'a> From<&'a Vec<f32>> for Src<'a> {
    fn from(x: &'a Vec<f32>) -> Self {
        x.as_slice().into()
    }
}
