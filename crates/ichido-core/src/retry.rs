//! When to try again, and whether one may.
//!
//! Guarantee: a wait is never shorter than what the server asked for, never longer than the schedule's
//! cap (or the server's wish, if greater) plus its jitter, and a repetition that could do the work twice
//! is refused. Attempt and dice come in as values, so every wait can be tested and replayed.
//!
//! One number says how often: `tries`, the first try included. [`Retry::CLIENT`], [`Retry::LLM`],
//! [`Retry::OUTBOX`] and [`Retry::JOB`] are the four schedules of the specification.
// SPEC G.

mod budget;
mod schedule;

pub use crate::verdict::{Guarantee, RepeatRefused, Safety, WAIT_MAX, hop_may_repeat, may_repeat};
pub use budget::{Budget, BudgetSettings};
pub use schedule::{Jitter, Retry, Schedule, ScheduleError, TRIES_MAX, TooLate};

#[cfg(test)]
mod tests;
