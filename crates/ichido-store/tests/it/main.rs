//! The store on real databases, through its public interface.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod conformance;
mod connect;
mod crash;
mod durability;
mod files;
mod fixture;
mod keep;
mod must_use;
mod plans;
mod plans_sqlite;
mod postgres_for_tests;
mod schema;
mod secrets;
mod spawned;
mod sqlite;
#[cfg(target_os = "linux")] // strace is for Linux.
mod syncs;
mod tls;
mod traps;
mod upgrade;
mod wire;
