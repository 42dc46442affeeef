//! `ichido judge` (SPEC B): the real program, a real store, and a server that plays the providers and misbehaves as it is told.

mod asking;
mod bad_input;
mod crashing;
mod ending;
mod failing;
mod planning;
pub(crate) mod program;
