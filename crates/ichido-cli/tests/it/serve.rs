//! `ichido serve` and `ichido token` as processes, with real databases, real HTTP and real signals.

mod accepting;
mod access;
mod admitting;
mod away;
mod batch;
pub(crate) mod client;
pub(crate) mod destinations;
mod feed;
mod fitting;
mod hops;
mod ledger;
mod limits;
mod lost;
mod many;
mod ops;
mod orders;
pub(crate) mod program;
mod quickstart;
mod reading;
mod schedule;
mod searching;
mod sending;
mod setup;
mod stepping;
mod stopping;
mod waiting;
mod webhooks;
