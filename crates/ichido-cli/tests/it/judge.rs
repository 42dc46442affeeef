//! `ichido judge` as a process, with a real store and a fake provider that misbehaves on demand.
// Spec: B.

mod asking;
mod bad_input;
mod crashing;
mod ending;
mod env_file;
mod failing;
mod metrics;
mod pausing;
mod planning;
pub(crate) mod program;
#[cfg(unix)]
mod terminal;
