//! The wire: the server, connections to it, and one request on one of them.

mod exchange;
mod peer;
mod pool;
mod way;

pub(crate) use exchange::Bounds;
pub(crate) use peer::{Fault, Peer};
