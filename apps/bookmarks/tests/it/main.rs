//! The service from outside: its responses, and what survives when it is killed.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod api;
mod kill;
mod packaging;
