//! Whether a handler gives its thread back at once.
//!
//! A prompt handler is polled in a task that it shares with other messages, which costs less than the task and the timer of its
//! own. One that keeps its thread, because it computes for long or blocks, would delay those messages, so it gets its own task.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The longest mean time of a first poll that counts as prompt, in microseconds.
///
/// It is far above a poll that only computes a little, so a thread that had to wait for its processor changes nothing.
const MAX_MEAN: u32 = 200;
/// How many of the last polls the mean is about.
const WEIGHT: u32 = 16;
/// The longest time that counts, so a handler that blocked once is prompt again after some dozen polls.
const MAX_COUNTED: u32 = MAX_MEAN * WEIGHT;

/// The recent first polls of a handler: their mean time, in microseconds.
#[derive(Debug)]
pub(super) struct Promptness(AtomicU32);

impl Default for Promptness {
    /// A new handler shows first that it is prompt.
    fn default() -> Self {
        Self(AtomicU32::new(MAX_MEAN * 4))
    }
}

impl Promptness {
    pub(super) fn is_prompt(&self) -> bool {
        self.0.load(Ordering::Relaxed) < MAX_MEAN
    }

    /// Records how long a first poll took. Polls at the same time may overwrite each other: it is an estimate.
    pub(super) fn record(&self, took: Duration) {
        let took = u32::try_from(took.as_micros()).unwrap_or(MAX_COUNTED).min(MAX_COUNTED);
        let mean = self.0.load(Ordering::Relaxed);
        self.0.store(mean - mean.div_ceil(WEIGHT) + took / WEIGHT, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(polls: u32, took: Duration, promptness: &Promptness) -> bool {
        for _ in 0..polls {
            promptness.record(took);
        }
        promptness.is_prompt()
    }

    #[test]
    fn handler_is_prompt_after_prompt_polls_only() {
        let (promptness, prompt, slow) = (Promptness::default(), Duration::ZERO, Duration::from_millis(10));
        assert!(!promptness.is_prompt() && !after(10, prompt, &promptness));
        assert!(after(30, prompt, &promptness));
        assert!(!after(1, slow, &promptness), "it kept its thread");
        assert!(!after(100, slow, &promptness) && !after(10, prompt, &promptness));
        assert!(after(60, prompt, &promptness), "it is prompt again");
        assert!(after(1, Duration::from_millis(2), &promptness), "its thread waited for a processor");
    }
}
