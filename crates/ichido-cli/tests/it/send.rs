//! `ichido send` as a process, through a server that misbehaves and straight on real databases.

mod many;
mod one;
pub(crate) mod program;
pub(crate) mod server;
mod store;
mod terminal;
