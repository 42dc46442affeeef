//! The library as its users meet it: over real databases, real sockets and real servers.

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
