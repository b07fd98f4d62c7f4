//! Faults that wait for their call.

use firstlight_graph::{OpError, OpErrorKind};

/// A call of a device that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimCall {
    /// Taking memory.
    Allocate,
    /// Host to device.
    Upload,
    /// Device to host.
    Download,
    /// Within the device.
    Copy,
    /// Running a kernel.
    Launch,
}

/// What happens instead of the call's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Fail(String),
    /// The kernel panics.
    Panic(String),
}

/// The faults of a device, each of which strikes once.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// A call, how many calls of it go through first, and what happens then.
    waiting: Vec<(SimCall, u64, Fault)>,
}

impl Faults {
    pub(crate) fn add(&mut self, call: SimCall, after: u64, fault: Fault) {
        self.waiting.push((call, after, fault));
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Counts a call down and takes the fault that strikes it.
    pub(crate) fn strike(&mut self, call: SimCall) -> Option<Fault> {
        let hit = self.waiting.iter().position(|(at, after, _)| *at == call && *after == 0);
        let fault = hit.map(|i| self.waiting.remove(i).2);
        for (at, after, _) in &mut self.waiting {
            if *at == call {
                *after = after.saturating_sub(1);
            }
        }
        fault
    }
}

impl Fault {
    /// Fails, or panics as a kernel does.
    pub(crate) fn happen(self) -> Result<(), OpError> {
        match self {
            Fault::Fail(message) => Err(OpError::new(OpErrorKind::Device, message)),
            Fault::Panic(message) => panic!("{message}"),
        }
    }
}
