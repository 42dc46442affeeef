//! The ledger's side of the store: claims of keys, and what came of them.
//!
//! Guarantee: a key is claimed by one unique insert, and every later change of its record compares the
//! fence, so of two owners only the current one is heard. Which of the answers a request gets is decided
//! by [`ichido_core::ledger::admit`], from what the database holds at that moment.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::{Policy, Record, RecordName, Settled};
use ichido_core::time::Timestamp;
use uuid::Uuid;

/// A request that wants to run under a key.
#[derive(Clone, Debug)]
pub struct KeyClaim {
    /// Operation, identity and key.
    pub name: RecordName,
    /// What admission compares.
    pub fingerprint: Fingerprint,
    /// What the audit shows.
    pub request_digest: Digest,
    /// The operation's rules: lease, and what to do about a lapsed or unknown record.
    pub policy: Arc<Policy>,
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyClaimed {
    /// Run it, and settle it under this fence.
    Run {
        /// The claim.
        fence: Fence,
    },
    /// It was done: here is the answer.
    Replay(Response),
    /// It was done, and the answer's body was not kept.
    ReplayNotKept {
        /// The status it had.
        status: u16,
    },
    /// Somebody is at it.
    InFlight {
        /// When that claim lapses.
        lease_until: Timestamp,
    },
    /// The key belongs to another request.
    Mismatch,
    /// Nobody knows what came of it.
    Unknown {
        /// The claim whose outcome is unknown.
        fence: Fence,
    },
}

/// An HTTP response as it is kept: header values are bytes, and repeats stay repeats, in order.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The header fields.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body; `None` when it was not kept.
    pub body: Option<Vec<u8>>,
}

/// Payloads stay out of logs.
impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers.len())
            .field("body_bytes", &self.body.as_ref().map(Vec::len))
            .finish()
    }
}

/// What an owner reports of its claim.
#[derive(Clone, Debug)]
pub struct KeySettle {
    /// Operation, identity and key.
    pub name: RecordName,
    /// The claim.
    pub fence: Fence,
    /// What came of it.
    pub outcome: KeyOutcome,
}

/// What came of a claim.
#[derive(Clone, Debug)]
pub enum KeyOutcome {
    /// Keep the answer.
    Keep {
        /// Which way it was finished.
        settled: Settled,
        /// The answer.
        response: Response,
        /// The digest of the result, where one is taken (SPEC D10).
        result_digest: Option<Digest>,
        /// The message that was made with it: the record does not expire while that message lives.
        message_id: Option<Uuid>,
        /// How long the key is kept from now.
        ttl: Duration,
    },
    /// Nothing was done: the key is free again.
    Release,
    /// Nobody knows: hold the key.
    Hold,
}

/// What the store made of a settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySettled {
    /// It stands.
    Stands,
    /// The record was settled before.
    AlreadySettled,
    /// Somebody else owns the record, or it is gone: nothing was changed.
    Stale,
}

/// A record as a person or a tool looks at it (SPEC A6).
#[derive(Clone, Debug)]
pub struct KeyRecord {
    /// Operation, identity and key.
    pub name: RecordName,
    /// Fingerprint, fence, phase, and when it was claimed.
    pub record: Record,
    /// The digest of the request.
    pub request_digest: Digest,
    /// The answer, where there is one.
    pub response: Option<Response>,
    /// The digest of the result.
    pub result_digest: Option<Digest>,
    /// The message that was made with it.
    pub message_id: Option<Uuid>,
    /// When it was settled.
    pub completed_at: Option<Timestamp>,
}
