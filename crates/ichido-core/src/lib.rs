//! The rules of Ichido, as values and functions.
//!
//! Guarantee: nothing in this crate does I/O, reads a clock, draws a random number or awaits. What was
//! read, the time and the dice come in as arguments; what to do goes out as a value. So each rule can be
//! tested by a table, replayed from a log, and checked by a model.
//!
//! Where to start: [`ledger`] decides what happens to a request that arrives, [`lifecycle`] what happens
//! to a message that must leave. Both lean on [`verdict`], which says what an answer tells of the effect.

pub mod digest;
pub mod fence;
pub mod fingerprint;
pub mod json;
pub mod key;
pub mod ledger;
pub mod lifecycle;
pub mod pace;
pub mod plan;
pub mod retry;
pub mod time;
pub mod verdict;
