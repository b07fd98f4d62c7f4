//! The device's address space: allocations that are never moved, never reused, and checked at every access.

use firstlight_backend::{ALIGN, HostBuf, OperandAddr};
use firstlight_graph::{OpError, OpErrorKind};
use std::collections::BTreeMap;
use std::ops::Range;

/// What fresh memory holds, repeated: NaN in every float type of 16 bits and more, no valid index in any integer type.
pub const POISON: [u8; 2] = [0xFD, 0xFF];

/// Where the first device's addresses start: not canonical on any processor, so never a valid host address.
const START: u64 = 0x5151_0000_0000_0000;

/// Address space of one device; the next one's starts there.
const EXTENT: u64 = 1 << 44;

/// Unused bytes behind every allocation, so that running over the end of one never lands in the next.
const GAP: u64 = 4096;

/// All memory of a device.
#[derive(Debug)]
pub(crate) struct Space {
    limit: usize,
    used: usize,
    next: u64,
    live: BTreeMap<u64, HostBuf>,
    /// Lengths by address.
    freed: BTreeMap<u64, usize>,
}

impl Space {
    /// An empty space of `limit` bytes for the device of that ordinal.
    pub(crate) fn new(ordinal: u8, limit: usize) -> Space {
        let next = START + u64::from(ordinal) * EXTENT;
        Space { limit, used: 0, next, live: BTreeMap::new(), freed: BTreeMap::new() }
    }

    /// Allocates poisoned bytes and says where they are.
    pub(crate) fn allocate(&mut self, n_bytes: usize) -> Result<u64, OpError> {
        let (used, limit) = (self.used, self.limit);
        if used.checked_add(n_bytes).is_none_or(|sum| sum > limit) {
            let message = format!("device memory: {n_bytes} bytes asked for, {used} of {limit} in use");
            return Err(OpError::new(OpErrorKind::Device, message));
        }
        let bytes = poisoned(n_bytes)?;
        let address = self.next;
        self.next += (n_bytes as u64).next_multiple_of(ALIGN as u64) + GAP;
        self.used += n_bytes;
        self.live.insert(address, bytes);
        Ok(address)
    }

    /// Frees an allocation; its addresses stay known as freed.
    pub(crate) fn free(&mut self, address: u64) {
        if let Some(bytes) = self.live.remove(&address) {
            self.used -= bytes.len();
            self.freed.insert(address, bytes.len());
        }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// The bytes at an address.
    pub(crate) fn read(&self, at: OperandAddr) -> Result<&[u8], OpError> {
        if at.n_bytes == 0 {
            return Ok(&[]);
        }
        let (start, range) = self.find(at)?;
        self.live.get(&start).and_then(|bytes| bytes.as_slice().get(range)).ok_or_else(|| nowhere(at))
    }

    /// Writes bytes to an address.
    pub(crate) fn write(&mut self, at: OperandAddr, from: &[u8]) -> Result<(), OpError> {
        if at.n_bytes != from.len() {
            return Err(invalid(at, format!("get {} bytes", from.len())));
        }
        if at.n_bytes == 0 {
            return Ok(());
        }
        let (start, range) = self.find(at)?;
        let to = self.live.get_mut(&start).and_then(|bytes| bytes.as_mut_slice().get_mut(range));
        to.ok_or_else(|| nowhere(at))?.copy_from_slice(from);
        Ok(())
    }

    /// The allocation that holds an address range, and where in it.
    fn find(&self, at: OperandAddr) -> Result<(u64, Range<usize>), OpError> {
        let within = |start: u64, len: usize| start.checked_add(len as u64).is_some_and(|end| at.address < end);
        if let Some((&start, bytes)) = self.live.range(..=at.address).next_back()
            && within(start, bytes.len())
        {
            let offset = (at.address - start) as usize;
            return match offset.checked_add(at.n_bytes).filter(|&end| end <= bytes.len()) {
                Some(end) => Ok((start, offset..end)),
                None => Err(invalid(at, format!("reach beyond the allocation of {} bytes at {start:#x}", bytes.len()))),
            };
        }
        match self.freed.range(..=at.address).next_back() {
            Some((&start, &len)) if within(start, len) => {
                Err(invalid(at, format!("are in the allocation of {len} bytes at {start:#x}, which was freed")))
            }
            _ => Err(nowhere(at)),
        }
    }
}

/// Host memory that holds poison.
pub(crate) fn poisoned(n_bytes: usize) -> Result<HostBuf, OpError> {
    let mut bytes = HostBuf::zeroed(n_bytes)?;
    for pair in bytes.as_mut_slice().chunks_mut(POISON.len()) {
        let n = pair.len();
        pair.copy_from_slice(&POISON[..n]);
    }
    Ok(bytes)
}

fn nowhere(at: OperandAddr) -> OpError {
    invalid(at, "are in no allocation of this device".to_owned())
}

fn invalid(at: OperandAddr, what: String) -> OpError {
    OpError::new(OpErrorKind::Device, format!("invalid access: {} bytes at {:#x} {what}", at.n_bytes, at.address))
}
