//! The ledger's side of the store: claims of keys, and what came of them.
//!
//! Guarantee: a key is claimed by one unique insert, and every later change of its record compares the
//! fence, so of two owners only the current one is heard. Which of the answers a request gets is decided
//! by [`ichido_core::ledger::admit`], from what the database holds at that moment.
//!
//! # A request that arrives
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use ichido_core::digest::Digest;
//! use ichido_core::fingerprint::{Fingerprint, RequestParts};
//! use ichido_core::key::IdempotencyKey;
//! use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, Settled};
//! use ichido_store::Store;
//! use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, KeySettled, Response};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let url = &file.url;
//! let store = Store::open(url, 4).await?;
//! let policy = Arc::new(Policy::build(PolicyDraft::of(Class::ExternalEffect))?);
//! let name = RecordName {
//!     operation: "orders.create".to_owned(),
//!     identity: "ann".to_owned(),
//!     key: IdempotencyKey::parse("order-4711")?,
//! };
//! let request = |body: &[u8]| {
//!     let request_digest = Digest::of_bytes(body);
//!     let fingerprint = Fingerprint::of(&RequestParts {
//!         operation: &name.operation,
//!         identity: &name.identity,
//!         method: "POST",
//!         path: "/orders",
//!         query: "",
//!         media_type: "text/plain",
//!         digest: request_digest,
//!         inputs: None,
//!     });
//!     let policy = Arc::clone(&policy);
//!     KeyClaim { name: name.clone(), fingerprint, request_digest, policy, hops: None, trace: None }
//! };
//!
//! // The first request runs; its duplicate does not, and another request under the key is refused.
//! let KeyClaimed::Run { fence, .. } = store.keys().claim(request(b"one apple")).await? else {
//!     return Err("nobody was here before".into());
//! };
//! assert!(matches!(store.keys().claim(request(b"one apple")).await?, KeyClaimed::InFlight { .. }));
//! assert_eq!(store.keys().claim(request(b"two apples")).await?, KeyClaimed::Mismatch);
//!
//! // The work takes long: keep the claim. `false` would mean that it is no longer ours.
//! assert_eq!(store.keys().renew(&[(name.clone(), fence, policy.lease())]).await?, [true]);
//!
//! // The work is done. `ichido_core::ledger::settle` says what to keep, from what came of it.
//! let response = Response { status: 201, headers: Vec::new(), body: Some(b"thanks".to_vec()) };
//! let outcome = KeyOutcome::Keep {
//!     settled: Settled::Applied,
//!     response: response.clone(),
//!     result_digest: None,
//!     message_id: None,
//!     ttl: policy.ttl(),
//! };
//! let settled = store.keys().settle(KeySettle { name: name.clone(), fence, outcome }).await?;
//! assert_eq!(settled, KeySettled::Stands);
//!
//! // Whoever waited for it wakes up, and asks again.
//! assert!(store.keys().wait(&name, Duration::from_secs(2)).await);
//! assert_eq!(store.keys().claim(request(b"one apple")).await?, KeyClaimed::Replay(response));
//! assert!(store.keys().get(&name).await?.is_some_and(|found| found.completed_at.is_some()));
//! # Ok(())
//! # }
//! ```
//!
//! # An outcome that nobody knows
//!
//! An owner that lost its answer settles with [`KeyOutcome::Hold`]; an owner that died is found by the next claim, once its lease
//! is over. Either way that claim is answered with [`KeyClaimed::Unknown`], and nothing runs until somebody finds out and tells
//! [`Keys::resolve`](crate::Keys::resolve). That nothing was done counts only when the call can no longer be travelling.
//!
//! ```
//! # use std::sync::Arc;
//! # use std::time::Duration;
//! # use ichido_core::digest::Digest;
//! # use ichido_core::fingerprint::Fingerprint;
//! # use ichido_core::key::IdempotencyKey;
//! # use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName};
//! # use ichido_store::Store;
//! use ichido_core::ledger::Resolution;
//! # use ichido_store::ledger::{KeyClaim, KeyClaimed, Response};
//! use ichido_store::ledger::KeyResolved;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! # let policy = Arc::new(Policy::build(PolicyDraft::of(Class::ExternalEffect))?);
//! # let key = IdempotencyKey::parse("order-4711")?;
//! # let name = RecordName { operation: "orders.create".to_owned(), identity: "ann".to_owned(), key };
//! # let fingerprint = Fingerprint::from_bytes([0; 32]);
//! # let request_digest = Digest::of_bytes(b"one apple");
//! # let (hops, trace) = (None, None);
//! # let claim_policy = Arc::clone(&policy);
//! # let request = KeyClaim { name: name.clone(), fingerprint, request_digest, policy: claim_policy, hops, trace };
//! # assert!(matches!(store.keys().claim(request.clone()).await?, KeyClaimed::Run { .. }));
//! # // Its owner is gone.
//! # store.skew_by(policy.lease() + Duration::from_secs(1));
//! assert!(matches!(store.keys().claim(request).await?, KeyClaimed::Unknown { .. }));
//! // The far side was asked, and says that it was done.
//! let response = Response { status: 201, headers: Vec::new(), body: Some(b"thanks".to_vec()) };
//! let resolved = store.keys().resolve(&name, Resolution::Applied, Some(response), &policy).await?;
//! assert_eq!(resolved, KeyResolved::Stands);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::{EffectMode, Policy, Record, RecordName, ResolveError, Settled};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::bounded;
use crate::check;
use crate::error::StoreError;
use crate::headers;

/// A request that wants to run under a key ([`Keys::claim`](crate::Keys::claim)).
#[derive(Clone, Debug)]
pub struct KeyClaim {
    /// Operation, identity and key. Neither of the first two may be empty, or longer than [`limits::OPERATION_BYTES_MAX`] and
    /// [`limits::IDENTITY_BYTES_MAX`].
    pub name: RecordName,
    /// What admission compares.
    pub fingerprint: Fingerprint,
    /// What the audit shows.
    pub request_digest: Digest,
    /// The operation's rules: lease, and what to do about a lapsed or unknown record.
    pub policy: Arc<Policy>,
    /// The hops that the request came through, as its header says; at most [`limits::HOPS_BYTES_MAX`].
    // SPEC F1.
    pub hops: Option<String>,
    /// The trace that the request belongs to; at most [`limits::TRACE_BYTES_MAX`].
    pub trace: Option<String>,
}

/// The bounds of what a record holds.
pub mod limits {
    use std::ops::RangeInclusive;

    /// The longest name of an operation.
    pub const OPERATION_BYTES_MAX: usize = 256;
    /// The longest name of an identity.
    pub const IDENTITY_BYTES_MAX: usize = 256;
    /// The statuses that a response can have.
    pub const STATUS: RangeInclusive<u16> = 100..=999;
    /// The most bytes that the header fields of a response take, names and values together with 8 for each field.
    pub const HEADERS_BYTES_MAX: usize = 1 << 20;
    /// The longest body of a response; what is longer can be settled without its body.
    pub const BODY_BYTES_MAX: usize = 64 << 20;
    /// The longest account of a request's hops.
    pub const HOPS_BYTES_MAX: usize = 2048;
    /// The longest trace context.
    pub const TRACE_BYTES_MAX: usize = 256;
    /// The most records on one page.
    pub const PAGE_MAX: u32 = 1_000;
}

impl KeyClaim {
    /// Refuses what is out of bounds, or what no database could hold, before it meets others in a batch.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let RecordName { operation, identity, .. } = &self.name;
        check::name("the operation", operation, limits::OPERATION_BYTES_MAX)?;
        check::name("the identity", identity, limits::IDENTITY_BYTES_MAX)?;
        check::text("the hops", self.hops.as_deref().unwrap_or_default(), limits::HOPS_BYTES_MAX)?;
        check::text("the trace", self.trace.as_deref().unwrap_or_default(), limits::TRACE_BYTES_MAX)
    }
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyClaimed {
    /// Run it, and settle it under this fence.
    Run {
        /// The claim.
        fence: Fence,
        /// What was there before.
        began: Began,
    },
    /// It was done: here is the answer.
    Replay(Response),
    /// It was done, and the answer's body was not kept.
    ReplayNotKept {
        /// The status it had.
        status: u16,
    },
    /// Somebody is at it: [`Keys::wait`](crate::Keys::wait), then claim again.
    InFlight {
        /// When that claim lapses.
        lease_until: Timestamp,
    },
    /// The key belongs to another request.
    Mismatch,
    /// Nobody knows what came of it: run nothing. Whoever finds out settles it under this fence (see the [module](self)).
    Unknown {
        /// The claim whose outcome is unknown; it is still its owner's to settle, too.
        fence: Fence,
    },
}

/// What a new claim found under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Began {
    /// Nothing.
    New,
    /// An outcome whose time was over.
    Expired,
    /// The same request, whose owner is gone.
    TakenOver {
        /// The strictest mode that it ran under before.
        from: EffectMode,
    },
}

/// An HTTP response as it is kept: header values are bytes, and repeats stay repeats, in order.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// The status: one of [`limits::STATUS`].
    pub status: u16,
    /// The header fields; at most [`limits::HEADERS_BYTES_MAX`].
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, at most [`limits::BODY_BYTES_MAX`]; `None` when it was not kept.
    pub body: Option<Vec<u8>>,
}

impl Response {
    fn header_bytes(&self) -> usize {
        self.headers.iter().map(|(name, value)| name.len() + value.len() + headers::FIELD_BYTES).sum()
    }

    fn body_bytes(&self) -> usize {
        self.body.as_ref().map_or(0, Vec::len)
    }
}

ichido_core::debug_only! {
    /// Payloads stay out of logs.
    Response as response {
        status,
        headers: response.headers.len(),
        body_bytes: response.body.as_ref().map(Vec::len),
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

impl KeySettle {
    /// What it counts in a batch, near enough.
    pub(crate) fn bytes(&self) -> usize {
        /// The other columns.
        const ROW_BYTES: usize = 1_000;
        match &self.outcome {
            KeyOutcome::Keep { response, .. } => ROW_BYTES + response.header_bytes() + response.body_bytes(),
            KeyOutcome::Release | KeyOutcome::Hold => ROW_BYTES,
        }
    }

    /// Refuses what could not be read back as it was written, or is too much, before it meets others in a batch.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let KeyOutcome::Keep { response, .. } = &self.outcome else { return Ok(()) };
        check::bytes("the headers of the response", response.header_bytes(), limits::HEADERS_BYTES_MAX)?;
        check::bytes("the body of the response", response.body_bytes(), limits::BODY_BYTES_MAX)?;
        let (least, most) = (*limits::STATUS.start(), *limits::STATUS.end());
        check::number("the status", response.status.into(), least.into()..=most.into())
    }

    /// With a time to live that both databases hold alike.
    pub(crate) fn bounded(mut self) -> Self {
        if let KeyOutcome::Keep { ttl, .. } = &mut self.outcome {
            *ttl = bounded(*ttl);
        }
        self
    }
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
        /// The digest of the result, where one is taken.
        // SPEC D10.
        result_digest: Option<Digest>,
        /// The message that was made with it: the record does not expire while that message lives.
        message_id: Option<Uuid>,
        /// How long the key is kept from now: [`Policy::ttl`]. At zero it counts as new at once.
        ttl: Duration,
    },
    /// Nothing was done: the key is free again.
    Release,
    /// Nobody knows: hold the key. Later claims are answered with [`KeyClaimed::Unknown`], unless the policy lets them run again.
    Hold,
}

/// What the store made of a settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySettled {
    /// It stands.
    Stands,
    /// The record was settled before, under this same fence: answer with what is stored ([`Keys::get`](crate::Keys::get)).
    AlreadySettled,
    /// Somebody else owns the record, or it is gone: nothing was changed, and what this owner did may be done again by the other.
    Stale,
}

/// What the store made of a finding about an action of unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyResolved {
    /// It stands.
    Stands,
    /// It does not count.
    Refused(ResolveError),
    /// There is no such record.
    Missing,
}

/// A record as a person or a tool looks at it.
// SPEC A6.
#[derive(Clone, Debug)]
pub struct KeyRecord {
    /// Operation, identity and key.
    pub name: RecordName,
    /// Fingerprint, fence, phase, and when it was claimed.
    pub record: Record,
    /// The digest of the request.
    pub request_digest: Digest,
    /// The hops that the request came through.
    pub hops: Option<String>,
    /// The trace that it belongs to.
    pub trace: Option<String>,
    /// The answer, where there is one.
    pub response: Option<Response>,
    /// The digest of the result.
    pub result_digest: Option<Digest>,
    /// The message that was made with it.
    pub message_id: Option<Uuid>,
    /// When it was settled.
    pub completed_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use ichido_core::key::IdempotencyKey;

    use super::*;

    fn settle(headers: Vec<(String, Vec<u8>)>, body: Option<Vec<u8>>) -> KeySettle {
        let key = IdempotencyKey::parse("k").unwrap();
        let outcome = KeyOutcome::Keep {
            settled: Settled::Applied,
            response: Response { status: 200, headers, body },
            result_digest: None,
            message_id: None,
            ttl: Duration::from_secs(1),
        };
        let name = RecordName { operation: "o".to_owned(), identity: "i".to_owned(), key };
        KeySettle { name, fence: Fence::new(1).unwrap(), outcome }
    }

    /// Or many of them make a statement that no server takes.
    #[test]
    fn headers_count_as_much_as_the_body() {
        let field = ("x".repeat(1_000), vec![7; 9_000]);
        let (bare, full) = (settle(Vec::new(), None), settle(vec![field; 3], Some(vec![7; 50_000])));
        assert!(full.bytes() - bare.bytes() >= 3 * 10_000 + 50_000);
    }
}
