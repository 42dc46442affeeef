//! Ichido as a library: makes a service's state-changing work take effect once.
//!
//! Guarantee: a request that is sent again, however often and by any hop on its way, has one effect and one outcome, as far
//! as the effect can be known. An unknown effect is never guessed. [`ichido_core`] holds the rules, [`ichido_store`] the
//! ledger and the outbox.
//!
//! Start at `once`, the layer for endpoints (feature `once`, on by default), or at `worker`, which delivers the outbox
//! (feature `worker`). `letters` handles messages that could not be delivered and wait for a person. `prometheus` renders
//! the metrics page (feature `prometheus`). Language models have their own crate, `ichido-llm`.

#[cfg(any(feature = "once", feature = "worker"))]
#[cfg_attr(
    not(feature = "worker"),
    allow(dead_code, unreachable_pub, reason = "the layer needs our own clock alone")
)]
mod clock;
#[cfg(feature = "worker")]
pub mod dead_letters;
#[cfg(feature = "worker")]
pub mod destination;
#[cfg(any(feature = "once", feature = "worker"))]
mod errors;
#[cfg(any(feature = "once", feature = "worker"))]
pub mod key_seals;
#[cfg(any(feature = "once", feature = "worker"))]
mod lease;
#[cfg(feature = "worker")]
pub mod message;
#[cfg(feature = "once")]
pub mod once;
#[cfg(feature = "prometheus")]
pub mod prometheus;
#[cfg(any(feature = "once", feature = "worker"))]
pub mod unknown_outcomes;
#[cfg(feature = "worker")]
pub mod worker;

#[cfg(any(feature = "once", feature = "worker"))]
pub use errors::BuildErrors;
