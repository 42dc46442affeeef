//! `ichido proxy` as a process, between real sockets.

mod adapter;
mod admin;
mod boundary;
mod chain;
mod client;
mod clients;
mod guide;
mod identity;
mod keys;
mod ledger;
mod passing;
mod preflight;
mod program;
mod retries;
mod service;
mod settings;
mod stopping;
mod tenants;
mod tls;
mod unguarded;
mod wire;
