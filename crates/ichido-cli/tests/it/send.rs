//! `ichido send` as a process, with a misbehaving server and on real databases.

mod many;
mod one;
pub(crate) mod program;
pub(crate) mod server;
mod store;
mod terminal;
