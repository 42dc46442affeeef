//! Bad wires, held rows and batches that meet: each case tries to make the store answer wrongly, stall or lose something.

mod apart;
mod away;
mod crosswise;
mod dead;
mod lost;
mod meanwhile;
mod proxy;
mod storm;
pub(crate) mod words;
