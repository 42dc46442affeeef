//! `ichido config`, `worker` and `send` as processes, with real databases, real HTTP and real signals.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

#[path = "../paper/broker.rs"]
#[expect(dead_code, reason = "the tests of the broker itself ask more of it")]
mod broker;

#[path = "../../../ichido/tests/nats/server.rs"]
#[expect(dead_code, reason = "the tests of the destination itself ask more of it")]
mod server;

mod acceptance;
mod config;
mod database;
mod folder;
mod guide;
mod model;
mod program;
mod sending;
mod standing_still;
mod storm;
mod stream;
