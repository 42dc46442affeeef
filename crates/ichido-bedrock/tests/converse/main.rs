//! Runs the real SDK against local servers: one imitates Bedrock and checks its requests, one returns the bytes of a
//! case.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the line shows where")]

mod answers;
mod environment;
mod fixture;
mod forms;
mod logs;
mod lost;
mod raw;
mod refusals;
mod regions;
mod settings;
