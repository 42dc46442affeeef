//! Tests the layer as its clients use it: one test per behaviour, run on each database.
//!
//! `docs/cases.md` lists the thirty cases and the known bug classes with their tests here. Nothing sleeps: a test waits for
//! a condition, or moves the store's clock.

mod clock;
mod crash;
mod draft;
pub(crate) mod fixture;
mod gone;
mod guide;
mod key;
mod maintenance;
mod outage;
mod outcome;
mod probe;
mod race;
pub(crate) mod relay;
mod response;
mod same;
mod socket;
mod transaction;
mod unclaimed;
