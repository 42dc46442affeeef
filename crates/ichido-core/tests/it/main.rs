//! The rules of the core, seen from outside: files, documents, paces and whole worlds.

#![expect(clippy::unwrap_used, reason = "a test may stop at what cannot be")]

mod boundary;
mod json;
mod pace;
mod world;
