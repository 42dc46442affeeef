//! The rules of the core, seen from outside: documents, paces and whole message lives.

#![expect(clippy::unwrap_used, reason = "a test may stop at what cannot be")]

mod json;
mod pace;
mod world;
