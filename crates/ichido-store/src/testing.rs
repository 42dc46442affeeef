//! What tests of this crate, and of those above it, need to run on real databases.
//!
//! Guarantee: every database handed out is new and empty, lives in a temporary folder, runs with the durability we ship
//! with, and is gone when its owner is, however that ends.

pub mod postgres;
pub mod sqlite;
