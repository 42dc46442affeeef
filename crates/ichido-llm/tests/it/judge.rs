//! Many questions to a model under its rate limit (SPEC B), on the paused clock with a model in memory; and with real stores.

mod adapting;
mod counting;
mod ending;
mod failing;
mod keeping;
mod pacing;
mod scripted;
