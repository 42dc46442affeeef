//! The commands of `ichido` as processes, with real databases, sockets and signals.
//!
//! Each command has a module; the others are shared helpers.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod audit;
mod check;
mod complaints;
mod dead;
mod demo;
mod examples;
mod folder;
mod http_message;
mod judge;
#[cfg(feature = "bedrock")]
mod judge_bedrock;
mod keep;
mod machines;
mod messages;
mod mock_broker;
mod offline;
mod outbox;
mod probe;
mod proxy;
mod send;
mod serve;
mod target;
mod traces;
