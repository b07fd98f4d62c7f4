//! Which runs of a graph go on side by side, and which has the memory to itself.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Runs under way, and those that wait for the memory to themselves.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    runs: Mutex<Runs>,
    landed: Condvar,
}

#[derive(Debug, Default)]
struct Runs {
    n_now: usize,
    n_queued: usize,
    /// True while a run has the memory to itself.
    alone: bool,
}

/// A run under way; ends when dropped.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    flights: &'a Flights,
    /// True for a run beside which no other goes on.
    pub(crate) alone: bool,
}

impl Flights {
    /// Starts a run, behind those that wait for the memory to themselves.
    pub(crate) fn start(&self) -> InFlight<'_> {
        let runs = self.landed.wait_while(self.lock(), |runs| runs.alone || runs.n_queued > 0);
        runs.unwrap_or_else(PoisonError::into_inner).n_now += 1;
        InFlight { flights: self, alone: false }
    }

    /// Starts a run after the others ended; none starts until it ends.
    pub(crate) fn start_alone(&self) -> InFlight<'_> {
        let mut runs = self.lock();
        runs.n_queued += 1;
        let runs = self.landed.wait_while(runs, |runs| runs.alone || runs.n_now > 0);
        let mut runs = runs.unwrap_or_else(PoisonError::into_inner);
        runs.n_queued -= 1;
        runs.alone = true;
        InFlight { flights: self, alone: true }
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut runs = self.flights.lock();
        match self.alone {
            true => runs.alone = false,
            false => runs.n_now -= 1,
        }
        drop(runs);
        self.flights.landed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_run_goes_on_beside_one_that_is_alone() {
        let (flights, now) = (Flights::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (flights, now) = (&flights, &now);
                scope.spawn(move || {
                    for i in 0..500 {
                        let flight = match (thread + i) % 3 {
                            0 => flights.start_alone(),
                            _ => flights.start(),
                        };
                        now.fetch_add(1, Ordering::SeqCst);
                        for _ in 0..4 {
                            std::thread::yield_now();
                            let n = now.load(Ordering::SeqCst);
                            assert!(n == 1 || !flight.alone, "{n} runs beside one that is alone");
                        }
                        now.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let runs = flights.lock();
        assert_eq!((runs.n_now, runs.n_queued, runs.alone), (0, 0, false));
    }
}
