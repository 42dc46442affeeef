//! `ichido messages` and `ichido queues` as processes, at a running server and straight on real databases.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

#[path = "../serve/client.rs"]
#[expect(dead_code, reason = "the tests of the server send more kinds of requests")]
mod client;
#[path = "../outbox/folder.rs"]
#[expect(dead_code, reason = "the tests of the worker write files")]
mod folder;
#[path = "../dead/place.rs"]
#[expect(dead_code, reason = "the tests of `ichido dead` use more of it")]
mod letters;
#[path = "../proxy/message.rs"]
#[expect(dead_code, reason = "the tests of the proxy read more kinds of messages")]
mod message;
#[path = "../serve/program.rs"]
#[expect(dead_code, reason = "the tests of the server ask it for more")]
mod program;

mod alerts;
mod completing;
mod dead;
mod ends;
mod ledger;
mod looking;
mod plain;
mod programs;
mod queues;
mod stepping;
mod ways;
