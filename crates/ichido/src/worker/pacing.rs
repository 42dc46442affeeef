//! The pace of something that is called, for callers that are not workers, such as a batch of questions to a model.
//!
//! Guarantee: all that share a store keep one pace together; without a store it is this process's own.

pub use super::pacer::{Caller, FRESH_FOR, Pacer, Slot};
pub use crate::clock::{Clock, StoreQuery};
