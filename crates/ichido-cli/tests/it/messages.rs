//! `ichido messages` and `ichido queues` as processes, at a running server and on real databases.

mod alerts;
mod completing;
mod dead;
mod destinations;
mod ends;
pub(crate) mod fixture;
mod ledger;
mod looking;
mod plain;
mod programs;
mod queues;
mod stepping;
