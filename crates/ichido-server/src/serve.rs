//! The HTTP API, and the server that runs it beside a worker.
//!
//! Guarantee: a message answered with 201 is durable, and is stored once under its key however often it is sent. Beyond loopback,
//! a token is required. After the first stop the server accepts nothing new, finishes the requests in flight, and then stops the
//! worker without losing anything; after the second it ends immediately.
//!
//! Start at [`Serving`]. [`ichido_http::server`] accepts connections, `server` handles a request, `access` authenticates the
//! caller, and `api` has the routes.

// Spec: D1, D3, D11, D18, E6, F6.

mod access;
mod admission;
mod alerts;
mod api;
mod arrivals;
mod attempts;
mod audit;
mod batch;
mod boundaries;
mod bulk_history;
mod bulk_runner;
mod caller;
mod cursor;
pub mod dashboard;
mod dead_letters;
mod destinations;
mod error_pages;
mod events;
mod failure_groups;
mod feed;
mod field;
mod guard;
pub(crate) mod health;
mod hops;
mod in_process;
mod json_body;
mod keys;
mod listings;
mod messages;
pub mod metrics;
mod models;
mod mounted;
mod named;
mod openapi;
mod operations;
mod own_url;
mod parallelism;
mod parsing;
mod problem;
mod queues;
mod replace;
mod request;
mod response;
mod search;
mod series;
mod server;
mod serving;
mod steps;
mod text;
pub mod token;
mod waiting;

/// The response bodies of the API, which the server writes and a client reads.
pub mod views {
    pub use super::alerts::{Alert, Alerts};
    pub use super::attempts::Attempt;
    pub use super::audit::{AuditEntries, AuditEntry};
    pub use super::boundaries::{Boundaries, BoundaryFile, BoundaryFinding};
    pub use super::dead_letters::Letter;
    pub use super::destinations::Destination;
    pub use super::failure_groups::{FailureGroup, FailureGroupDetail, FailureGroups};
    pub use super::keys::{HeaderView, KeyEvent, KeyRecord, KeysFound, ResponseView, SearchedMessages};
    pub use super::models::{
        Accepted, CancelRequest, Counts, Event, Holder, LastError, Message, MessageFacts, MessageResult,
        Queue, ResultResponse,
    };
    pub use super::named::{NamedMessages, find_all_named, find_named};
    pub use super::operations::{
        CanaryResult, NotMoved, Operation, OperationFilter, OperationProgress, OperationResult,
        OperationStart, Preview, RefusedLetters, StartedOperation,
    };
    pub use super::series::{DurationSummary, Series, SeriesCounts, TimedCounts};
}

use std::net::SocketAddr;

use ichido_core::settings::ConfigErrors;

use crate::Error;
use crate::config::ServeConfig;
pub use access::Access;
use access::TokenStatus;
pub use in_process::InProcessApi;
pub use mounted::mount;
pub use serving::Serving;

/// Whether every local user has access. Beyond loopback, a token must exist.
pub async fn is_open(access: &Access, address: SocketAddr, flag: &str) -> Result<bool, Error> {
    let status = access.token_status().await;
    let status =
        status.map_err(|error| Error::Failed(format!("cannot read the tokens from the store: {error}")))?;
    match (status, address.ip().is_loopback()) {
        (TokenStatus::NeverCreated, true) => Ok(true),
        (TokenStatus::AllInactive, true) | (TokenStatus::Live, _) => Ok(false),
        (TokenStatus::NeverCreated, false) => Err(no_token(address, flag)),
        (TokenStatus::AllInactive, false) => {
            Err(unprotected(address, flag, "every token is revoked or expired, so nobody would have access"))
        }
    }
}

/// The error of a server beyond loopback whose store has no token, or does not exist yet.
pub fn no_token(address: SocketAddr, flag: &str) -> Error {
    unprotected(address, flag, "no token exists, so anybody would have access")
}

/// Refuses a server that other machines reach without encryption: everybody on the way could read its tokens and messages.
fn check_encrypted(config: &ServeConfig, is_loopback: bool) -> Result<(), Error> {
    if is_loopback || config.is_encrypted() {
        return Ok(());
    }
    let what = "other machines can reach the server, and nothing encrypts its tokens and messages; set `tls` to a certificate and its key; \
                or, if a proxy in front of the server encrypts, set `public_url` to its https:// address; or listen on 127.0.0.1";
    Err(Error::Misconfigured(ConfigErrors::one("[serve]", what)))
}

fn unprotected(address: SocketAddr, flag: &str, why: &str) -> Error {
    Error::Misconfigured(ConfigErrors::one(
        flag,
        format!(
            "{address} can be reached from other machines, and {why}; create one with `ichido token create NAME --role admin` on the \
             same store, or listen on 127.0.0.1"
        ),
    ))
}
