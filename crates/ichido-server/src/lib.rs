//! The server of Ichido: the HTTP API, its configuration, and the worker beside it.
//!
//! Guarantee: a configuration is understood whole or refused with everything that is wrong with it, each with its line. What the API
//! does is the same over HTTP, in an app that mounts it by [`serve::mount`], and in a command without a server.

pub mod accept;
pub mod admin;
pub mod body_key;
pub mod config;
mod error;
mod limits;
mod redacted;
mod schema;
pub mod serve;
pub mod traces;
pub mod worker;

pub use error::Error;
