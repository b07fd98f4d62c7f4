//! The clocks that the benchmark's parent process compares with its own.

use rustix::time::{ClockId, clock_gettime};

/// A moment: monotonic time, and processor time of the process, both in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) wall: u64,
    pub(crate) cpu: u64,
}

impl Stamp {
    pub(crate) fn now() -> Stamp {
        Stamp { wall: read(ClockId::Monotonic), cpu: read(ClockId::ProcessCPUTime) }
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let parts = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    // Both clocks count up from zero.
    parts.0.unwrap_or(0) * 1_000_000_000 + parts.1.unwrap_or(0)
}

/// The most memory that was resident, in kilobytes; 0 where the system does not tell.
pub(crate) fn peak_resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward() {
        let first = Stamp::now();
        let second = Stamp::now();
        assert!(second.wall >= first.wall && second.cpu >= first.cpu && first.wall > 0);
    }
}
