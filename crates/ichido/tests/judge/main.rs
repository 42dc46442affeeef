//! Many questions to a model under its rate limit (SPEC B), on the paused clock with a model in memory; and with real stores.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the line says where")]

#[path = "../llm/recorder.rs"]
mod recorder;

mod adapting;
mod counting;
mod ending;
mod failing;
mod keeping;
mod pacing;
mod scripted;
