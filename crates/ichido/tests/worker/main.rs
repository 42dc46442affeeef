//! The worker as its users meet it: one test per behaviour, run over each database. Nothing sleeps: a test waits for a condition,
//! or moves the store's clock.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod alerts;
mod draft;
mod dying;
mod failing;
mod fixture;
mod guide;
mod handler;
mod letters;
mod pacing;
mod reconcile;
mod sending;
mod stopping;
mod upkeep;
