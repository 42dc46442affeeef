//! The variables of the environment that set what holds where a queue says nothing of its own (SPEC D15).
//!
//! They win over the file's `[queue_defaults]` and `[worker]`; what a queue itself says wins over both, because it was said about
//! that queue.

use std::ops::RangeInclusive;
use std::time::Duration;

use ichido::worker::limits::PARALLELISM_MAX;
use ichido_core::settings::Faults;
use ichido_core::settings::duration;
use ichido_store::message::limits::CLAIM_MAX;

use super::outside::Outside;
use super::queues::RETRIES_MAX;

pub(super) const BATCH_SIZE: &str = "OUTBOX_BATCH_SIZE";
pub(super) const PARALLELISM: &str = "OUTBOX_PARALLELISM";
pub(super) const RETRY_MAX: &str = "OUTBOX_RETRY_MAX";
pub(super) const IDLE_SLEEP_MS: &str = "OUTBOX_IDLE_SLEEP_MS";
pub(super) const STUCK_THRESHOLD_MIN: &str = "OUTBOX_STUCK_THRESHOLD_MIN";

/// The most minutes and milliseconds: a day.
const MINUTES_MAX: u32 = 24 * 60;
const MILLIS_MAX: u32 = 24 * 60 * 60 * 1_000;

/// What the environment says; `None` where it says nothing.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) batch_size: Option<u32>,
    pub(super) parallelism: Option<u32>,
    pub(super) retries_max: Option<u32>,
    pub(super) idle_sleep: Option<Duration>,
    pub(super) lease: Option<Duration>,
}

impl Environment {
    /// What it says of a setting, as the file would have it, and by which variable.
    pub(super) fn said(&self, path: &str) -> Option<(String, &'static str)> {
        let count = |count: Option<u32>| count.map(|count| count.to_string());
        let time = |time: Option<Duration>| time.map(|time| format!("{:?}", duration::shown(time)));
        let (said, variable) = match path {
            "queue_defaults.batch_size" => (count(self.batch_size), BATCH_SIZE),
            "queue_defaults.parallelism" => (count(self.parallelism), PARALLELISM),
            "queue_defaults.retries_max" => (count(self.retries_max), RETRY_MAX),
            "queue_defaults.lease" => (time(self.lease), STUCK_THRESHOLD_MIN),
            "worker.idle_sleep" => (time(self.idle_sleep), IDLE_SLEEP_MS),
            _ => return None,
        };
        said.map(|said| (said, variable))
    }

    pub(super) fn read(outside: &Outside<'_>, faults: &mut Faults) -> Self {
        let mut count = |name: &str, range: RangeInclusive<u32>| -> Option<u32> {
            let text = (outside.variable)(name)?;
            let count = text.trim().parse().ok().filter(|count| range.contains(count));
            if count.is_none() {
                let (first, last) = range.into_inner();
                faults.add(
                    format!("the variable {name}"),
                    format!(
                        "{text:?} is not taken; set it to a whole number from {first} to {last}, or unset it"
                    ),
                );
            }
            count
        };
        Self {
            batch_size: count(BATCH_SIZE, 1..=CLAIM_MAX),
            parallelism: count(PARALLELISM, 1..=PARALLELISM_MAX),
            retries_max: count(RETRY_MAX, 0..=RETRIES_MAX),
            idle_sleep: count(IDLE_SLEEP_MS, 1..=MILLIS_MAX).map(|ms| Duration::from_millis(ms.into())),
            lease: count(STUCK_THRESHOLD_MIN, 1..=MINUTES_MAX).map(|m| Duration::from_mins(m.into())),
        }
    }
}
