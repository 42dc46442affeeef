//! When to retry, and whether a retry is safe.
//!
//! Guarantee: a wait is never shorter than what the server asked for, and never longer than the schedule's cap (or the
//! server's hint, if greater) plus its jitter. A repetition that could apply the work twice is refused. The attempt
//! number and the random number are arguments, so every wait can be tested and replayed.
//!
//! One number limits the attempts: `tries`, including the first one. [`Retry::CLIENT`], [`Retry::LLM`],
//! [`Retry::ORDER`], [`Retry::WEBHOOK`] and [`Retry::JOB`] are the five schedules of the specification.
// SPEC G.

mod budget;
mod schedule;

pub use crate::verdict::{Guarantee, MAX_WAIT, RepeatRefused, Safety, hop_may_repeat, may_repeat};
pub use budget::{Budget, BudgetSettings};
pub use schedule::{Jitter, MAX_ATTEMPTS, Retry, Schedule, ScheduleError, TooLate};

#[cfg(test)]
mod tests;
