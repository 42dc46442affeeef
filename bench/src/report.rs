//! The table of results.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

/// One row: our rate beside the floor's, from the same run.
pub(crate) struct ReportLine {
    pub(crate) work: String,
    pub(crate) ours: f64,
    pub(crate) floor: f64,
    pub(crate) target: f64,
}

pub(crate) fn print(lines: &[ReportLine]) {
    let mut text = String::from("| work | ours/s | floor/s | ratio | target |\n|---|---:|---:|---:|---:|\n");
    for line in lines {
        let ratio = line.ours / line.floor;
        let mark = if ratio < line.target { " (missed)" } else { "" };
        let (work, ours, floor, target) = (&line.work, line.ours, line.floor, line.target);
        writeln!(text, "| {work} | {ours:.0} | {floor:.0} | {ratio:.2}{mark} | {target:.2} |")
            .expect("writing to a string cannot fail");
    }
    print!("{text}");
}

/// Measures elapsed time and rates.
pub(crate) struct Stopwatch(Instant);

#[expect(clippy::disallowed_methods, reason = "a benchmark is about time; nothing is decided by it")]
fn now() -> Instant {
    Instant::now()
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        now().duration_since(self.0)
    }

    pub(crate) fn rate(&self, count: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
        let count = count as f64;
        count / self.elapsed().as_secs_f64()
    }
}

/// Returns the results of the tasks. All are started before the first is awaited.
pub(crate) async fn joined<T>(tasks: impl Iterator<Item = JoinHandle<T>>) -> Vec<T> {
    let mut ended = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        ended.push(task.await.expect("a task"));
    }
    ended
}

/// Returns the median of several runs.
pub(crate) fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
