//! Network faults, locked rows and colliding batches: each case tries to make the store return a wrong result, stall or lose
//! something.

mod apart;
mod away;
mod crosswise;
mod dead;
mod lost;
mod meanwhile;
mod proxy;
mod storm;
pub(crate) mod words;
