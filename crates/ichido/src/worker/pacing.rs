//! The pace of a destination for callers that are not workers.
//!
//! One such caller is a batch of model calls.
//!
//! Guarantee: all callers that share a store keep one pace together; without a store the pace is local to this process.

pub use super::pacer::{CallKind, FRESH_FOR, Pacer, Slot};
pub use crate::clock::{Clock, StoreQuery};
