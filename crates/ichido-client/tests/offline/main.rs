//! The offline queue: real files, real servers that misbehave, real processes that are killed.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod accepting;
mod crash;
mod deciding;
mod files;
mod place;
mod sending;
#[path = "../once/server.rs"]
#[expect(dead_code, reason = "the client's own cases use the rest of it")]
mod server;
