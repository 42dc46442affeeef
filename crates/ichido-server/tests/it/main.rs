//! The server from a user's perspective: mounted in an app, over real sockets.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod api;
mod audit;
mod boundaries;
mod dashboard;
mod groups;
mod mounting;
mod preview;
mod redaction;
mod series;
mod tls;
mod typed;
