//! `ichido backup`, `ichido doctor`, `ichido healthcheck` and what is shipped to run Ichido by, with real databases and processes.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

#[path = "../serve/client.rs"]
#[expect(dead_code, reason = "the tests of the server send more kinds of requests")]
mod client;
#[path = "../outbox/folder.rs"]
mod folder;
#[path = "../proxy/message.rs"]
#[expect(dead_code, reason = "the tests of the proxy read more kinds of messages")]
mod message;
#[path = "../serve/program.rs"]
#[expect(dead_code, reason = "the tests of the server ask it for more")]
mod program;

mod backup;
mod doctor;
mod healthcheck;
mod packaging;
