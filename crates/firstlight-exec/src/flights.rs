//! Which runs of a graph go on side by side, and which has the memory to itself.

use crate::control::RunOptions;
use crate::error::RunError;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// How often a run that waits looks at its cancel token and its deadline.
const LOOK: Duration = Duration::from_millis(5);

impl Flights {
    /// Starts a run, behind those that wait for the memory to themselves.
    ///
    /// **Errors**: cancelled, or past its deadline, while it waits.
    pub(crate) fn start(&self, options: &RunOptions<'_>) -> Result<InFlight<'_>, RunError> {
        self.wait(options, |runs| runs.alone || runs.n_queued > 0)?.n_now += 1;
        Ok(InFlight { flights: self, alone: false })
    }

    /// Starts a run after the others ended; none starts until it ends.
    ///
    /// **Errors**: cancelled, or past its deadline, while it waits.
    pub(crate) fn start_alone(&self, options: &RunOptions<'_>) -> Result<InFlight<'_>, RunError> {
        self.lock().n_queued += 1;
        let waited = self.wait(options, |runs| runs.alone || runs.n_now > 0).map(|mut runs| runs.alone = true);
        self.lock().n_queued -= 1;
        match waited {
            Ok(()) => Ok(InFlight { flights: self, alone: true }),
            Err(error) => {
                self.landed.notify_all();
                Err(error)
            }
        }
    }

    /// Waits while what is under way holds the run up.
    fn wait(
        &self,
        options: &RunOptions<'_>,
        is_held: impl Fn(&Runs) -> bool,
    ) -> Result<MutexGuard<'_, Runs>, RunError> {
        let mut runs = self.lock();
        while is_held(&runs) {
            options.check_waiting()?;
            runs = self.landed.wait_timeout(runs, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(runs)
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
    use crate::CancelToken;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    #[test]
    fn no_run_goes_on_beside_one_that_is_alone() {
        let (flights, now) = (Flights::default(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let (flights, now) = (&flights, &now);
                scope.spawn(move || {
                    for i in 0..500 {
                        let flight = match (thread + i) % 3 {
                            0 => flights.start_alone(&RunOptions::default()),
                            _ => flights.start(&RunOptions::default()),
                        };
                        let flight = flight.unwrap();
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
    #[test]
    fn a_run_that_waits_ends_when_it_is_told_to() {
        let flights = Flights::default();
        let running = flights.start(&RunOptions::default()).unwrap();
        let token = CancelToken::new();
        token.cancel();
        let cancelled = RunOptions { cancel: Some(&token), ..Default::default() };
        let late = RunOptions { deadline: Some(Instant::now() + LOOK), ..Default::default() };
        let cancelled = flights.start_alone(&cancelled).unwrap_err();
        assert_eq!(cancelled, RunError::Cancelled { node: None });
        assert!(cancelled.to_string().starts_with("cancelled before the first node"), "{cancelled}");
        assert_eq!(flights.start_alone(&late).unwrap_err(), RunError::DeadlineExceeded { node: None });
        // Nobody waits for those that gave up.
        drop(flights.start(&RunOptions::default()).unwrap());
        drop(running);
        let alone = flights.start_alone(&late).unwrap();
        assert_eq!(flights.start(&late).unwrap_err(), RunError::DeadlineExceeded { node: None });
        drop(alone);
    }
}
