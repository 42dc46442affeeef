//! The attempts of a message, read from its events.

use std::time::Duration;

use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::models::{Event, LastError};

/// One attempt of a message, as its events show it.
#[derive(Debug)]
pub struct Attempt {
    /// Its number, from 1; a requeue of a dead letter starts again.
    pub number: u32,
    /// When a worker claimed the message.
    pub started_at: String,
    /// From its claim to its end; `None` while it is in flight.
    pub took: Option<Duration>,
    /// The node that made it.
    pub node: Option<Uuid>,
    /// The state that it left the message in, `in flight`, or `not called` if the worker gave the message back.
    pub outcome: String,
    /// The status of the receiver's response.
    pub status: Option<u16>,
    /// Why it failed.
    pub error: Option<LastError>,
}

impl Attempt {
    /// Returns the attempts in a message's events, oldest first.
    pub fn list(events: &[Event]) -> Vec<Self> {
        let claims = events.iter().filter(|event| event.kind == "claimed");
        claims.map(|claim| Self::new(claim, events)).collect()
    }

    fn new(claim: &Event, events: &[Event]) -> Self {
        let is_end = |event: &&Event| {
            event.fence == claim.fence && event.from.as_deref() == Some(StateName::Sending.as_str())
        };
        let end = events.iter().find(is_end);
        let at = |event: &Event| Timestamp::parse(&event.at);
        let outcome = match end {
            None => "in flight",
            Some(end) if end.kind == "given_back" => "not called",
            Some(end) => &*end.to,
        };
        Self {
            number: claim.attempts,
            started_at: claim.at.clone(),
            took: end.and_then(|end| Some(at(end)?.since(at(claim)?))),
            node: claim.node,
            outcome: outcome.to_owned(),
            status: end.and_then(|end| end.status),
            error: end.and_then(|end| Some(LastError::new(end.error_code.clone()?, end.error_text.clone()))),
        }
    }
}
