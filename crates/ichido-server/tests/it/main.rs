//! The server from a user's perspective: mounted in an app, over real sockets.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod dashboard;
mod mounting;
#[path = "../../../ichido/tests/it/own_process.rs"]
mod own_process;
#[expect(dead_code, reason = "the level is for another crate's tests")]
#[path = "../../../ichido/tests/it/statement_log.rs"]
mod statement_log;
mod series;
mod typed;
