//! Figures of many times.

use serde_json::{Value, json};
use std::time::Duration;

/// Milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stats {
    n: usize,
    mean: f64,
    median: f64,
    p90: f64,
    p99: f64,
    min: f64,
    max: f64,
}

impl Stats {
    /// `None` where there is no time.
    pub(super) fn of(times: &[Duration]) -> Option<Stats> {
        let mut sorted: Vec<f64> = times.iter().copied().map(ms).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        // The least value that so large a part of the values does not exceed.
        let part = |percent: usize| sorted[(n * percent).div_ceil(100).clamp(1, n) - 1];
        let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.;
        let mean = sorted.iter().sum::<f64>() / n as f64;
        Some(Stats { n, mean, median, p90: part(90), p99: part(99), min, max })
    }

    pub(super) fn median(&self) -> f64 {
        self.median
    }

    pub(super) fn per_second(&self) -> f64 {
        1e3 / self.mean.max(1e-9)
    }

    pub(super) fn row(&self, name: &str) -> Vec<String> {
        let mut row = vec![name.to_owned(), self.n.to_string()];
        let figures = [self.mean, self.median, self.p90, self.p99, self.min, self.max];
        row.extend(figures.map(|figure| format!("{figure:.3}")));
        row
    }

    pub(super) fn json(&self) -> Value {
        let Stats { n, mean, median, p90, p99, min, max } = self;
        json!({
            "runs": n, "mean_ms": mean, "median_ms": median, "p90_ms": p90, "p99_ms": p99, "min_ms": min, "max_ms": max,
            "per_second": self.per_second(),
        })
    }
}

pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        let stats = Stats::of(&times).unwrap();
        let expected = Stats { n: 200, mean: 100.5, median: 100.5, p90: 180., p99: 198., min: 1., max: 200. };
        assert_eq!(stats, expected);
        let one = Stats::of(&[Duration::from_millis(4)]).unwrap();
        assert_eq!((one.median, one.p99, one.per_second()), (4., 4., 250.));
        assert_eq!(Stats::of(&[]), None);
    }
}
