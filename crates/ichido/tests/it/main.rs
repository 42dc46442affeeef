//! Tests the library as its users do: over real databases, sockets and servers.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod http;
mod letters_bounded;
mod logs;
mod meters;
mod nats;
mod once;
mod own_process;
mod worker;
mod worker_signs;
