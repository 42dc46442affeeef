//! Batches of questions under a rate limit, on a paused clock with a model in memory; and with real stores.
// SPEC B.

mod adapting;
mod counting;
mod ending;
mod failing;
mod keeping;
mod pacing;
mod pausing;
mod scripted;
