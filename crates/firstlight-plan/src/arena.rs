//! Addresses: which chunk and offset a value gets, decided node by node as values come and go.

use crate::plan::PlanCounters;
use firstlight_backend::{ALIGN, HUGE_PAGE_BYTES, Loc};
use std::collections::HashMap;
use std::sync::Arc;

/// A range of the arena that one or more values share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Region(u32);

#[derive(Clone, Debug)]
struct Taken {
    chunk: u32,
    offset: usize,
    n_bytes: usize,
    refs: u32,
}

#[derive(Clone, Debug)]
struct Chunk {
    id: u32,
    n_bytes: usize,
    /// Free ranges by offset, never adjacent.
    free: Vec<(usize, usize)>,
}

/// Best-fit allocation in chunks that grow in number, never in size. Cloned where the segment tree branches; chunk ids
/// are unique in the plan, so that branches never disagree on a chunk's size.
#[derive(Clone, Debug)]
pub struct Arena {
    counters: Arc<PlanCounters>,
    chunks: Vec<Chunk>,
    taken: HashMap<Region, Taken>,
    next: u32,
    /// Keeps every region of its own: nothing is freed.
    keep_all: bool,
}

/// The least size of a chunk.
const MIN_CHUNK_BYTES: usize = 64 << 10;

impl Arena {
    /// An arena without a chunk.
    pub fn new(counters: Arc<PlanCounters>, keep_all: bool) -> Arena {
        Arena { counters, chunks: vec![], taken: HashMap::new(), next: 0, keep_all }
    }

    /// Takes `n_bytes`; the region starts with one reference. A chunk that has to be made is appended to `new_chunks`.
    pub fn take(&mut self, n_bytes: usize, new_chunks: &mut Vec<(u32, usize)>) -> Region {
        let wanted = n_bytes.max(1).next_multiple_of(ALIGN);
        let fits = self.chunks.iter().enumerate().flat_map(|(c, chunk)| {
            chunk.free.iter().enumerate().filter(|(_, range)| range.1 >= wanted).map(move |(r, range)| (range.1, c, r))
        });
        let (c, r) = match fits.min() {
            Some((_, c, r)) => (c, r),
            None => {
                // A quarter of what is there already: few chunks, and little that nobody asked for. Rounded up by at most
                // an eighth, so that paths through the tree find each other's chunks of about this size.
                let total: usize = self.chunks.iter().map(|chunk| chunk.n_bytes).sum();
                let size = wanted.max(total / 4).max(MIN_CHUNK_BYTES);
                let grain = (size.next_power_of_two() / 16).max(ALIGN);
                // From a huge page on, whole ones: the first touch of those costs least.
                let grain = if total + size >= HUGE_PAGE_BYTES { grain.max(HUGE_PAGE_BYTES) } else { grain };
                let size = size.checked_next_multiple_of(grain).unwrap_or(size);
                let id = self.counters.chunk(self.chunks.len(), size);
                new_chunks.push((id, size));
                self.chunks.push(Chunk { id, n_bytes: size, free: vec![(0, size)] });
                (self.chunks.len() - 1, 0)
            }
        };
        let chunk = &mut self.chunks[c];
        let (offset, size) = chunk.free[r];
        match size - wanted {
            0 => drop(chunk.free.remove(r)),
            rest => chunk.free[r] = (offset + wanted, rest),
        }
        let region = Region(self.next);
        self.next += 1;
        self.taken.insert(region, Taken { chunk: chunk.id, offset, n_bytes: wanted, refs: 1 });
        region
    }

    /// Where a region lies.
    pub fn loc(&self, region: Region) -> Option<Loc> {
        self.taken.get(&region).map(|taken| Loc::Arena { chunk: taken.chunk, offset: taken.offset })
    }

    /// Adds a reference to a region.
    pub fn share(&mut self, region: Region) {
        if let Some(taken) = self.taken.get_mut(&region) {
            taken.refs += 1;
        }
    }

    /// Drops a reference; the last one frees the region.
    pub fn release(&mut self, region: Region) {
        let Some(taken) = self.taken.get_mut(&region) else { return };
        taken.refs -= 1;
        if taken.refs > 0 || self.keep_all {
            return;
        }
        let (id, offset, n_bytes) = (taken.chunk, taken.offset, taken.n_bytes);
        self.taken.remove(&region);
        let Some(chunk) = self.chunks.iter_mut().find(|chunk| chunk.id == id) else { return };
        let at = chunk.free.partition_point(|range| range.0 < offset);
        chunk.free.insert(at, (offset, n_bytes));
        if at + 1 < chunk.free.len() && chunk.free[at].0 + chunk.free[at].1 == chunk.free[at + 1].0 {
            chunk.free[at].1 += chunk.free.remove(at + 1).1;
        }
        if at > 0 && chunk.free[at - 1].0 + chunk.free[at - 1].1 == chunk.free[at].0 {
            chunk.free[at - 1].1 += chunk.free.remove(at).1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_disjoint_reused_and_merged() {
        let mut arena = Arena::new(Arc::new(PlanCounters::default()), false);
        let mut new = vec![];
        let [a, b, c] = [100, 200, 300].map(|n| arena.take(n, &mut new));
        assert_eq!(new.len(), 1);
        let at = |arena: &Arena, region| match arena.loc(region) {
            Some(Loc::Arena { chunk, offset }) => (chunk, offset),
            other => panic!("{other:?}"),
        };
        assert_eq!([at(&arena, a), at(&arena, b), at(&arena, c)], [(0, 0), (0, 128), (0, 384)]);
        arena.share(a);
        arena.release(a);
        assert!(arena.loc(a).is_some(), "one reference is left");
        arena.release(b);
        arena.release(a);
        let d = arena.take(380, &mut new);
        assert_eq!(at(&arena, d), (0, 0), "two neighbours became one range");
        let big = arena.take(1 << 20, &mut new);
        assert_eq!((at(&arena, big), new.len()), ((1, 0), 2));
    }
}
