//! The memory budget: owned bytes are reserved before they are allocated.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Owned bytes in use and the most that may be.
///
/// **Units**: bytes of our own (arena, scratch, copies, outputs); mapped bytes are not counted.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
}

/// A refusal: what was asked for, what is in use, what the limit is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// What the refused reservation asked for.
    pub asked_bytes: usize,
    /// What was reserved already.
    pub used_bytes: usize,
    /// The most that may be reserved at once.
    pub limit_bytes: usize,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory limit of {} bytes: {} are in use and {} more are needed; raise the limit to {} or more",
            self.limit_bytes,
            self.used_bytes,
            self.asked_bytes,
            self.used_bytes.saturating_add(self.asked_bytes)
        )
    }
}

impl std::error::Error for OverBudget {}

impl Budget {
    /// A budget of `limit` bytes; `None` only counts.
    pub fn new(limit: Option<usize>) -> Arc<Budget> {
        Arc::new(Budget { limit: limit.unwrap_or(usize::MAX), used: AtomicUsize::new(0), peak: AtomicUsize::new(0) })
    }

    /// Reserves bytes until the reservation is dropped.
    ///
    /// **Errors**: the limit would be exceeded; nothing is reserved then.
    pub fn reserve(self: &Arc<Budget>, n_bytes: usize) -> Result<Reservation, OverBudget> {
        let refused = |used| OverBudget { asked_bytes: n_bytes, used_bytes: used, limit_bytes: self.limit };
        let add = |used: usize| used.checked_add(n_bytes).filter(|&sum| sum <= self.limit);
        let before = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).map_err(refused)?;
        self.peak.fetch_max(before + n_bytes, Ordering::Relaxed);
        Ok(Reservation { budget: self.clone(), n_bytes })
    }

    /// Bytes in use now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The most bytes that were in use at once.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// The limit, where there is one.
    pub fn limit(&self) -> Option<usize> {
        (self.limit != usize::MAX).then_some(self.limit)
    }
}

/// Bytes reserved in a [`Budget`]; given back on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    n_bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.n_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reserves_nothing_and_says_what_is_needed() {
        let budget = Budget::new(Some(100));
        let held = budget.reserve(60).unwrap();
        let refused = budget.reserve(50).unwrap_err();
        assert_eq!(refused, OverBudget { asked_bytes: 50, used_bytes: 60, limit_bytes: 100 });
        assert!(refused.to_string().contains("raise the limit to 110"));
        drop(held);
        assert_eq!((budget.used(), budget.peak()), (0, 60));
        assert!(budget.reserve(usize::MAX).is_err());
    }
}
