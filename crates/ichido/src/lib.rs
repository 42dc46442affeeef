//! Ichido as a library: what a service adds to make its state-changing work happen once in effect.
//!
//! Guarantee: a request that is sent again, however often and by whomever on its way, has one effect and one outcome, as
//! far as what it acts on can be known; where it cannot be known, nothing is guessed. The rules are those of
//! [`ichido_core`], the memory is [`ichido_store`]'s.
//!
//! Start at `once`, the layer for endpoints (feature `once`, on by default).

#[cfg(feature = "http")]
pub mod destination;
#[cfg(feature = "once")]
pub mod once;
