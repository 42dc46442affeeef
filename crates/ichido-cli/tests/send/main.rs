//! `ichido send` as a process, through a server that misbehaves and straight on real databases.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

#[path = "../outbox/folder.rs"]
mod folder;
mod many;
mod one;
mod program;
mod server;
mod store;
mod terminal;
