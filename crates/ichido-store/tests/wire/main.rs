//! Bad wires, held rows and batches that meet: each case tries to make the store answer wrongly, stall or lose something.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod apart;
mod away;
mod crosswise;
mod dead;
#[path = "../conformance/fixture.rs"]
#[expect(dead_code, reason = "the words of the conformance suite, of which these cases need some")]
mod fixture;
mod lost;
mod meanwhile;
mod proxy;
mod storm;
mod words;
