//! The database of Ichido: the ledger and the outbox, on SQLite and on PostgreSQL.
//!
//! Guarantee: what is acknowledged is durable, and what is not acknowledged is whole or not there at all. Every
//! method is atomic in itself and speaks of requests and messages, never of rows.
//!
//! Start at [`Store`].

mod alone;
mod batch;
pub mod error;
mod headers;
pub mod ledger;
pub mod message;
pub mod node;
mod placement;
mod postgres;
pub mod rescue;
mod store;
#[cfg(all(unix, feature = "testing"))]
pub mod testing;

pub use store::Store;
