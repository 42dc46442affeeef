//! The Ichido server: the HTTP API, its configuration, and the worker that runs beside it.
//!
//! Guarantee: a configuration is accepted as a whole, or refused with all of its errors, each with its line. The API behaves the
//! same over HTTP, mounted in another app with [`serve::mount`], and in a command without a server.

pub mod accept;
pub mod admin;
pub mod body_key;
pub mod config;
pub mod environment;
mod error;
mod instance;
mod labels;
mod limits;
pub mod part_file;
mod redacted;
pub mod schedule;
mod schema;
pub mod serve;
pub mod server_file;
pub mod target;
pub mod traces;
pub mod worker;

pub use error::Error;
pub use serve::dashboard;
