//! Tests the worker as its users do: one test per behaviour, run on each database. Nothing sleeps: a test waits for a
//! condition, or moves the store's clock.

mod alerts;
mod answered;
mod cancelling;
mod draft;
mod dying;
mod facts;
mod failing;
pub(crate) mod fixture;
mod guide;
mod handler;
mod lanes;
mod layers;
mod letters;
mod pacing;
mod reconcile;
mod sending;
mod series;
mod stopping;
mod tx;
mod types;
mod upkeep;
