//! Tests the library as its users do: over real databases, sockets and servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the line shows where")]

mod application;
mod handler_gate;
mod http;
mod letters_bounded;
mod logs;
mod meters;
mod names;
mod nats;
mod once;
mod testing;
mod transaction_statements;
mod warnings;
mod worker;
mod worker_signs;
