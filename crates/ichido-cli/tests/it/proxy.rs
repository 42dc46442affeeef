//! `ichido proxy` as a process, between real sockets.

mod adapter;
mod admin;
mod boundary;
mod chain;
pub(crate) mod client;
mod clients;
mod guide;
pub(crate) mod identity;
mod keys;
mod ledger;
mod passing;
mod preflight;
pub(crate) mod program;
mod retries;
pub(crate) mod service;
mod settings;
mod stopping;
mod tenants;
mod tls;
pub(crate) mod token;
mod unguarded;
mod wire;
