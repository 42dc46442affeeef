//! `ichido serve` and `ichido token` as processes, with real databases, real HTTP and real signals.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

#[path = "../outbox/folder.rs"]
mod folder;
#[path = "../dead/place.rs"]
#[expect(dead_code, reason = "the tests of `ichido dead` use more of it")]
mod letters;
#[path = "../proxy/message.rs"]
#[expect(dead_code, reason = "the tests of the proxy read more kinds of messages")]
mod message;

mod accepting;
mod access;
mod admitting;
mod away;
mod batch;
mod client;
mod destinations;
mod feed;
mod fitting;
mod hops;
mod ledger;
mod limits;
mod many;
mod ops;
mod program;
mod quickstart;
mod reading;
mod searching;
mod sending;
mod setup;
mod stepping;
mod stopping;
mod waiting;
