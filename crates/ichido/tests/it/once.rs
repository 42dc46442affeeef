//! The layer as its clients meet it: one test per behaviour, run over each database.
//!
//! The thirty cases and the bug classes that others met are listed in `docs/cases.md` with their tests here. Nothing sleeps: a
//! test waits for a condition, or moves the store's clock.

mod clock;
mod crash;
mod draft;
pub(crate) mod fixture;
mod gone;
mod guide;
mod key;
mod outage;
mod outcome;
mod race;
mod relay;
mod response;
mod same;
mod socket;
mod transaction;
