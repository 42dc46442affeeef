//! Ichido as a library: what a service adds to make its state-changing work happen once in effect.
//!
//! Guarantee: a request that is sent again, however often and by whomever on its way, has one effect and one outcome, as
//! far as what it acts on can be known; where it cannot be known, nothing is guessed. The rules are those of
//! [`ichido_core`], the memory is [`ichido_store`]'s.
//!
//! Start at `once`, the layer for endpoints (feature `once`, on by default), or at `worker`, which delivers what the outbox holds
//! (feature `worker`). Messages that it could not deliver wait for a person: `letters`. `prometheus` is the metrics page (feature
//! `prometheus`). Language models have a crate of their own, `ichido-llm`.

#[cfg(any(feature = "once", feature = "worker"))]
#[cfg_attr(
    not(feature = "worker"),
    allow(dead_code, unreachable_pub, reason = "the layer needs our own clock alone")
)]
mod clock;
#[cfg(feature = "worker")]
pub mod destination;
#[cfg(any(feature = "once", feature = "worker"))]
mod errors;
#[cfg(any(feature = "once", feature = "worker"))]
mod lease;
#[cfg(feature = "worker")]
pub mod letters;
#[cfg(feature = "once")]
pub mod once;
#[cfg(feature = "prometheus")]
pub mod prometheus;
#[cfg(feature = "worker")]
pub mod worker;

#[cfg(any(feature = "once", feature = "worker"))]
pub use errors::BuildErrors;
