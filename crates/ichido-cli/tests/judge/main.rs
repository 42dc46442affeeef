//! `ichido judge` (SPEC B): the real program, a real store, and a server that plays the providers and misbehaves as it is told.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

#[path = "../outbox/folder.rs"]
mod folder;

mod asking;
mod bad_input;
mod crashing;
mod ending;
mod failing;
mod planning;
mod program;
