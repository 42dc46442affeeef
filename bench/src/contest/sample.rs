//! One measurement, and the median and spread of several.

use serde::{Deserialize, Serialize};

use super::counters::CounterDelta;

/// What one part of one contestant took in one round.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    /// Transactions that wrote something; SQLite does not count them.
    pub(crate) commits: Option<u64>,
    pub(crate) wal_bytes: Option<u64>,
    /// Processor time of the contestant's process.
    pub(crate) process_us: u64,
    /// Processor time of all of the server's processes.
    pub(crate) database_us: Option<u64>,
    /// Peak resident memory of the contestant's process.
    pub(crate) peak_kib: u64,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
}

/// The median of several rounds, with the least and the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Sample {
    pub(super) fn new(
        seconds: f64,
        delta: CounterDelta,
        has_server: bool,
        peak_kib: u64,
        mut latencies: Vec<f64>,
    ) -> Self {
        latencies.sort_by(f64::total_cmp);
        Self {
            seconds,
            commits: has_server.then_some(delta.commits),
            wal_bytes: has_server.then_some(delta.wal_bytes),
            process_us: delta.process_us,
            database_us: has_server.then_some(delta.database_us),
            peak_kib,
            p50_us: quantile(&latencies, 0.5),
            p99_us: quantile(&latencies, 0.99),
        }
    }

    /// Returns what this share of the work took. Latencies and memory stay as they are.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts here are far below 2^52, and a share is positive"
    )]
    pub(super) fn scaled(self, share: f64) -> Self {
        let scale = |number: u64| (number as f64 * share).round() as u64;
        Self {
            seconds: self.seconds * share,
            commits: self.commits.map(scale),
            wal_bytes: self.wal_bytes.map(scale),
            process_us: scale(self.process_us),
            database_us: self.database_us.map(scale),
            ..self
        }
    }
}

impl Spread {
    /// Returns nothing if there is no number.
    pub(crate) fn new(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut numbers: Vec<f64> = numbers.into_iter().collect();
        numbers.sort_by(f64::total_cmp);
        let (min, max) = (*numbers.first()?, *numbers.last()?);
        let upper = numbers.get(numbers.len() / 2)?;
        let lower = numbers.get((numbers.len() - 1) / 2)?;
        Some(Self { median: f64::midpoint(*lower, *upper), min, max })
    }
}

/// Returns the number that this share of sorted numbers does not exceed.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts here are far below 2^52, and a share is between 0 and 1"
    )]
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_is_between_the_middle_two() {
        let spread = |numbers: &[f64]| Spread::new(numbers.iter().copied());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0]), Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
        assert_eq!(spread(&[9.0, 1.0, 4.0]), Some(Spread { median: 4.0, min: 1.0, max: 9.0 }));
        assert_eq!(spread(&[9.0, 1.0]), Some(Spread { median: 5.0, min: 1.0, max: 9.0 }));
    }

    #[test]
    fn a_share_of_the_work_takes_a_share_of_its_cost() {
        let delta = CounterDelta { commits: 10, wal_bytes: 1_000, database_us: 400, process_us: 200 };
        let half = Sample::new(4.0, delta, true, 7, vec![1.0]).scaled(0.5);
        assert_eq!((half.seconds, half.commits, half.wal_bytes), (2.0, Some(5), Some(500)));
        assert_eq!((half.database_us, half.process_us, half.peak_kib), (Some(200), 100, 7));
        assert_eq!(half.p50_us, Some(1.0));
    }

    #[test]
    fn a_quantile_is_one_of_the_numbers() {
        let numbers: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&numbers, 0.5), Some(50.0));
        assert_eq!(quantile(&numbers, 0.99), Some(99.0));
        assert_eq!(quantile(&numbers, 1.0), Some(100.0));
        assert_eq!(quantile(&[7.0], 0.5), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
