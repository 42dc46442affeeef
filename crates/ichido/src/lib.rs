//! Ichido as a library: makes a service's state-changing work take effect once.
//!
//! Guarantee: a request that is sent again, however often and by any hop on its way, has one effect and one outcome, as far
//! as the effect can be known. An unknown effect is never guessed. This crate re-exports what an application names of its
//! parts: the modules of the rules, such as [`retry`] and [`lifecycle`], and the ledger and the outbox as [`store`].
//!
//! Start at [`Ichido`], your database with Ichido's tables: it enqueues messages ([`message::Message`]) in your transactions,
//! and its `worker` delivers them (feature `worker`, on by default); or at `once`, the layer for endpoints (feature `once`,
//! on by default). [`prelude`] has what most applications need. `dead_letters` handles messages that could not be delivered
//! and wait for a person. `client` sends to an Ichido server over HTTP (feature `client`). `prometheus` renders the metrics
//! page (feature `prometheus`). `testing` helps to test an application (feature `testing`). Language models have their own
//! crate, `ichido-llm`.

#[cfg(feature = "worker")]
pub mod application;
#[cfg(feature = "client")]
pub mod client;
#[cfg(any(feature = "once", feature = "worker"))]
#[cfg_attr(
    not(feature = "worker"),
    allow(dead_code, unreachable_pub, reason = "the layer needs our own clock alone")
)]
mod clock;
#[cfg(any(feature = "once", feature = "worker"))]
mod counters;
#[cfg(feature = "worker")]
pub mod dead_letters;
#[cfg(feature = "worker")]
pub mod destination;
#[cfg(any(feature = "once", feature = "worker"))]
mod errors;
#[cfg(any(feature = "once", feature = "worker"))]
mod handler_tx;
#[cfg(any(feature = "once", feature = "worker"))]
mod key_seals;
#[cfg(any(feature = "once", feature = "worker"))]
mod lease;
#[cfg(feature = "worker")]
pub mod message;
#[cfg(feature = "once")]
pub mod once;
#[cfg(any(feature = "once", feature = "worker"))]
mod open_transaction;
#[cfg(feature = "worker")]
pub mod prelude;
#[cfg(feature = "prometheus")]
pub mod prometheus;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "worker")]
mod transaction;
#[cfg(any(feature = "once", feature = "worker"))]
mod unknown_outcomes;
#[cfg(feature = "worker")]
pub mod worker;

#[cfg(feature = "worker")]
pub use application::Ichido;
#[cfg(any(feature = "once", feature = "worker"))]
pub use errors::BuildErrors;
#[cfg(any(feature = "once", feature = "worker"))]
pub use handler_tx::{Pool, Tx, TxError, TxGuard};
#[cfg(feature = "worker")]
pub use transaction::Transaction;

// The types of the interface that the parts define.
// Spec: H4.
pub use ichido_core::{
    alert, audit, digest, failure_group, fence, fingerprint, hops, json, key, ledger, lifecycle, pace, retry,
    series, settings, time, verdict,
};
pub use ichido_store as store;
