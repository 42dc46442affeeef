//! `ichido send --offline-queue` and `ichido offline` as processes: through a server that misbehaves, and killed in front of a real one.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod crash;
mod deciding;
#[path = "../outbox/folder.rs"]
mod folder;
mod guide;
#[path = "../send/program.rs"]
mod program;
mod queueing;
#[path = "../send/server.rs"]
#[expect(dead_code, reason = "the tests of `ichido send` use more of it")]
mod server;
