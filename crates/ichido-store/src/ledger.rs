//! Types of the ledger: claims of keys, and their outcomes.
//!
//! Guarantee: a key is claimed by one unique insert, and every later change of its record compares the fence, so only the
//! current owner's report counts. [`ichido_core::ledger::admit`] decides the outcome of a claim, from the stored record.
//!
//! # Claim and settle a request
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
//! use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, KeySettled, StoredResponse};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let url = &file.url;
//! let store = Store::open(url, 4).await?;
//! let policy = Arc::new(Policy::build(PolicyDraft::new(Class::ExternalEffect))?);
//! let name = RecordName {
//!     operation: "orders.create".to_owned(),
//!     identity: "ann".to_owned(),
//!     key: IdempotencyKey::parse("order-4711")?,
//! };
//! let request = |body: &[u8]| {
//!     let request_digest = Digest::of_bytes(body);
//!     let fingerprint = Fingerprint::new(&RequestParts {
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
//! // The first request runs; its duplicate does not, and a different request under the key is a conflict.
//! let KeyClaimed::Run { fence, .. } = store.keys().claim(request(b"one apple")).await? else {
//!     return Err("nobody was here before".into());
//! };
//! assert!(matches!(store.keys().claim(request(b"one apple")).await?, KeyClaimed::InFlight { .. }));
//! assert_eq!(store.keys().claim(request(b"two apples")).await?, KeyClaimed::Conflict);
//!
//! // The work takes long: renew the claim. `false` would mean that it is no longer ours.
//! assert_eq!(store.keys().renew(&[(name.clone(), fence, policy.lease())]).await?, [true]);
//!
//! // The work is done. `ichido_core::ledger::settle` decides what to store, from the outcome.
//! let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(b"thanks".to_vec()) };
//! let outcome = KeyOutcome::Keep {
//!     settled: Settled::Applied,
//!     response: response.clone(),
//!     result_digest: None,
//!     message_id: None,
//!     ttl: policy.ttl(),
//! };
//! let settled = store.keys().settle(KeySettle { name: name.clone(), fence, outcome }).await?;
//! assert_eq!(settled, KeySettled::Settled);
//!
//! // Those who waited for it wake up, and claim again.
//! assert!(store.keys().wait(&name, Duration::from_secs(2)).await);
//! assert_eq!(store.keys().claim(request(b"one apple")).await?, KeyClaimed::Replay(response));
//! assert!(store.keys().get(&name).await?.is_some_and(|found| found.completed_at.is_some()));
//! # Ok(())
//! # }
//! ```
//!
//! # Resolve an unknown outcome
//!
//! An owner that lost the response settles with [`KeyOutcome::Hold`]. If an owner died, the next claim notices once the lease
//! has expired. Either way that claim returns [`KeyClaimed::Unknown`], and nothing runs until somebody finds out and calls
//! [`Keys::resolve`](crate::Keys::resolve). A finding that nothing was done counts only when the call can no longer be in
//! flight.
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
//! # use ichido_store::ledger::{KeyClaim, KeyClaimed, StoredResponse};
//! use ichido_store::ledger::KeyResolved;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! # let policy = Arc::new(Policy::build(PolicyDraft::new(Class::ExternalEffect))?);
//! # let key = IdempotencyKey::parse("order-4711")?;
//! # let name = RecordName { operation: "orders.create".to_owned(), identity: "ann".to_owned(), key };
//! # let fingerprint = Fingerprint::from_bytes([0; 32]);
//! # let request_digest = Digest::of_bytes(b"one apple");
//! # let (hops, trace) = (None, None);
//! # let claim_policy = Arc::clone(&policy);
//! # let request = KeyClaim { name: name.clone(), fingerprint, request_digest, policy: claim_policy, hops, trace };
//! # assert!(matches!(store.keys().claim(request.clone()).await?, KeyClaimed::Run { .. }));
//! # // Its owner is gone.
//! # store.advance_clock(policy.lease() + Duration::from_secs(1));
//! assert!(matches!(store.keys().claim(request).await?, KeyClaimed::Unknown { .. }));
//! // The receiver was asked, and reports that it was done.
//! let response = StoredResponse { status: 201, headers: Vec::new(), body: Some(b"thanks".to_vec()) };
//! let resolved = store.keys().resolve(&name, Resolution::Applied, Some(response), &policy).await?;
//! assert_eq!(resolved, KeyResolved::Resolved);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::{OperationGuarantee, Policy, Record, RecordName, ResolveError, Settled};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::bounded;
use crate::check;
use crate::error::StoreError;
use crate::headers;

/// A request to run under a key ([`Keys::claim`](crate::Keys::claim)).
#[derive(Clone, Debug)]
pub struct KeyClaim {
    /// Operation, identity and key. Operation and identity must not be empty, nor longer than [`limits::MAX_OPERATION_BYTES`]
    /// and [`limits::MAX_IDENTITY_BYTES`].
    pub name: RecordName,
    /// The fingerprint that admission compares.
    pub fingerprint: Fingerprint,
    /// The digest shown in the audit trail.
    pub request_digest: Digest,
    /// The operation's policy: the lease, and how to treat a lapsed or unknown record.
    pub policy: Arc<Policy>,
    /// The request's hops, as in its header; at most [`limits::MAX_HOPS_BYTES`].
    // SPEC F1.
    pub hops: Option<String>,
    /// The request's trace context; at most [`limits::MAX_TRACE_BYTES`].
    pub trace: Option<String>,
}

/// Limits of a record.
pub mod limits {
    use std::ops::RangeInclusive;
    use std::time::Duration;

    /// The maximum length of an operation's name.
    pub const MAX_OPERATION_BYTES: usize = 256;
    /// The maximum length of an identity.
    pub const MAX_IDENTITY_BYTES: usize = 256;
    /// The valid response statuses.
    pub const STATUS: RangeInclusive<u16> = 100..=999;
    /// The maximum size of a response's header fields: names and values, plus 8 bytes for each field.
    pub const MAX_HEADERS_BYTES: usize = 1 << 20;
    /// The maximum length of a response body. A longer response can be settled without its body.
    pub const MAX_BODY_BYTES: usize = 64 << 20;
    /// The maximum length of the hops header.
    pub const MAX_HOPS_BYTES: usize = 2048;
    /// The maximum length of a trace context.
    pub const MAX_TRACE_BYTES: usize = 256;
    /// The maximum number of records on a page.
    pub const MAX_PAGE: u32 = 1_000;
    /// The maximum number of unknown outcomes that are counted. Beyond it an alert has long fired.
    pub const MAX_UNKNOWN_COUNTED: u32 = 10_000;
    /// How long a key that may run again is left to its caller's retries before it counts as unknown.
    pub const RETRIED_WITHIN: Duration = Duration::from_hours(1);
}

impl KeyClaim {
    /// Refuses values that a database cannot hold, before they join a batch.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let RecordName { operation, identity, .. } = &self.name;
        check::name("the operation", operation, limits::MAX_OPERATION_BYTES)?;
        check::name("the identity", identity, limits::MAX_IDENTITY_BYTES)?;
        check::text("the hops", self.hops.as_deref().unwrap_or_default(), limits::MAX_HOPS_BYTES)?;
        check::text("the trace", self.trace.as_deref().unwrap_or_default(), limits::MAX_TRACE_BYTES)
    }
}

/// The keys of an operation whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCount {
    /// The operation.
    pub operation: String,
    /// How many there are, up to [`limits::MAX_UNKNOWN_COUNTED`] in all.
    pub count: u64,
    /// When the oldest was first claimed.
    pub oldest: Timestamp,
}

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a request runs only if its claim says so, and is then settled"]
pub enum KeyClaimed {
    /// Run the request, and settle it under this fence.
    Run {
        /// The fence of the claim.
        fence: Fence,
        /// What the claim found under the key.
        began: ClaimOrigin,
    },
    /// The request was done: here is the response.
    Replay(StoredResponse),
    /// The request was done, and the response body was not stored.
    ReplayNotStored {
        /// The status of the response.
        status: u16,
    },
    /// The request is in flight: call [`Keys::wait`](crate::Keys::wait), then claim again.
    InFlight {
        /// When that claim lapses.
        lease_until: Timestamp,
    },
    /// The key belongs to a different request.
    Conflict,
    /// The outcome is unknown: do not run it. To resolve it, settle under this fence (see the [module](self)).
    Unknown {
        /// The fence of the claim whose outcome is unknown. Its owner may still settle it, too.
        fence: Fence,
    },
}

/// What a new claim found under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimOrigin {
    /// No record.
    New,
    /// An expired record.
    Expired,
    /// The same request, whose owner is gone.
    TakenOver {
        /// The strictest mode that it ran under before.
        from: OperationGuarantee,
    },
}

/// A stored HTTP response. Header values are bytes, and repeated fields stay repeated, in order.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The status: one of [`limits::STATUS`].
    pub status: u16,
    /// The header fields; at most [`limits::MAX_HEADERS_BYTES`].
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, at most [`limits::MAX_BODY_BYTES`]; `None` if it was not stored.
    pub body: Option<Vec<u8>>,
}

impl StoredResponse {
    fn header_bytes(&self) -> usize {
        self.headers.iter().map(|(name, value)| name.len() + value.len() + headers::FIELD_BYTES).sum()
    }

    fn body_bytes(&self) -> usize {
        self.body.as_ref().map_or(0, Vec::len)
    }

    fn check(&self) -> Result<(), StoreError> {
        check::bytes("the headers of the response", self.header_bytes(), limits::MAX_HEADERS_BYTES)?;
        check::bytes("the body of the response", self.body_bytes(), limits::MAX_BODY_BYTES)?;
        let (least, most) = (*limits::STATUS.start(), *limits::STATUS.end());
        check::number("the status", self.status.into(), least.into()..=most.into())
    }
}

ichido_core::debug_only! {
    /// Keeps payloads out of logs.
    StoredResponse as response {
        status,
        headers: response.headers.len(),
        body_bytes: response.body.as_ref().map(Vec::len),
    }
}

/// An owner's report about its claim.
#[derive(Clone, Debug)]
pub struct KeySettle {
    /// Operation, identity and key.
    pub name: RecordName,
    /// The fence of the claim.
    pub fence: Fence,
    /// The outcome.
    pub outcome: KeyOutcome,
}

impl KeySettle {
    /// Returns the approximate size of this job in a batch.
    pub(crate) fn bytes(&self) -> usize {
        /// The size of the other columns.
        const ROW_BYTES: usize = 1_000;
        match &self.outcome {
            KeyOutcome::Keep { response, .. } => ROW_BYTES + response.header_bytes() + response.body_bytes(),
            KeyOutcome::Release | KeyOutcome::Hold | KeyOutcome::HoldAnswered => ROW_BYTES,
        }
    }

    /// Refuses what could not be read back unchanged, or is too large, before it joins a batch.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &self.outcome {
            KeyOutcome::Keep { response, .. } => response.check(),
            KeyOutcome::Release | KeyOutcome::Hold | KeyOutcome::HoldAnswered => Ok(()),
        }
    }

    /// Limits the time to live to what both databases can hold.
    pub(crate) fn bounded(mut self) -> Self {
        if let KeyOutcome::Keep { ttl, .. } = &mut self.outcome {
            *ttl = bounded(*ttl);
        }
        self
    }
}

/// The outcome of a claim.
#[derive(Clone, Debug)]
pub enum KeyOutcome {
    /// Store the response.
    Keep {
        /// Whether it was applied or refused.
        settled: Settled,
        /// The response.
        response: StoredResponse,
        /// The digest of the result, if one is computed.
        // SPEC D10.
        result_digest: Option<Digest>,
        /// The message that was enqueued with it. The record does not expire while that message lives.
        message_id: Option<Uuid>,
        /// How long the key is kept from now: [`Policy::ttl`]. With zero, the key counts as new at once.
        ttl: Duration,
    },
    /// Nothing was done: the key is free again.
    Release,
    /// The outcome is unknown: hold the key. Later claims get [`KeyClaimed::Unknown`], unless the policy lets them run again.
    Hold,
    /// The same, although the call was answered: it is no longer in transit, so "nothing was done" can be decided at once.
    HoldAnswered,
}

/// The outcome of a settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "unless it was settled, roll back: another owner may repeat the effect"]
pub enum KeySettled {
    /// The settle was applied.
    Settled,
    /// The record was settled before, under the same fence: use the stored response ([`Keys::get`](crate::Keys::get)).
    AlreadySettled,
    /// Somebody else owns the record, or it is gone. Nothing was changed, and the other owner may repeat this owner's effect.
    Stale,
}

/// What a look-up found under a key ([`Keys::look_up`](crate::Keys::look_up)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a look-up claims nothing"]
pub enum KeyLookup {
    /// No record.
    Free,
    /// A record that a claim would replace or mark: it expired, or its owner is gone.
    NeedsClaim,
    /// The outcome that a claim would have, other than [`KeyClaimed::Run`].
    Blocked(KeyClaimed),
}

/// An outcome to record under a key that nobody claimed ([`Keys::record_in`](crate::Keys::record_in)).
#[derive(Clone, Debug)]
pub struct KeyRecording {
    /// The request.
    pub request: KeyClaim,
    /// Identifies the attempt, which recognizes its own record after a COMMIT of unknown outcome.
    pub attempt: Uuid,
    /// Whether it was applied or refused.
    pub settled: Settled,
    /// The response.
    pub response: StoredResponse,
    /// The digest of the result, if one is computed.
    pub result_digest: Option<Digest>,
    /// The message that was enqueued with it. The record does not expire while that message lives.
    pub message_id: Option<Uuid>,
    /// How long the key is kept from now: [`Policy::ttl`].
    pub ttl: Duration,
}

impl KeyRecording {
    /// Refuses what the database cannot hold, or what could not be read back unchanged.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.request.check()?;
        self.response.check()
    }
}

/// The outcome of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "unless it was recorded, roll back: another request took effect"]
pub enum KeyRecorded {
    /// It takes effect with the caller's commit.
    Recorded,
    /// The key has a record.
    Taken,
}

/// What one statement of a sweep did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeySweep {
    /// Expired keys that it deleted.
    pub(crate) deleted: u64,
    /// Expired keys that it found, with those that a live message uses.
    pub(crate) checked: u64,
}

/// The outcome of resolving an unknown effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a refused resolution changed nothing"]
pub enum KeyResolved {
    /// The resolution was applied.
    Resolved,
    /// The resolution was refused.
    Refused(ResolveError),
    /// There is no such record.
    Missing,
}

/// A key record, as shown to people and tools.
// SPEC A6.
#[derive(Clone, Debug)]
pub struct KeyRecord {
    /// Operation, identity and key.
    pub name: RecordName,
    /// Fingerprint, fence, phase, and when it was claimed.
    pub record: Record,
    /// The digest of the request.
    pub request_digest: Digest,
    /// The request's hops.
    pub hops: Option<String>,
    /// The request's trace context.
    pub trace: Option<String>,
    /// The stored response, if any.
    pub response: Option<StoredResponse>,
    /// The digest of the result.
    pub result_digest: Option<Digest>,
    /// The message that was enqueued with it.
    pub message_id: Option<Uuid>,
    /// When it was settled.
    pub completed_at: Option<Timestamp>,
    /// The attempt that claimed or recorded it.
    pub attempt: Uuid,
}

#[cfg(test)]
mod tests {
    use ichido_core::key::IdempotencyKey;

    use super::*;

    fn settle(headers: Vec<(String, Vec<u8>)>, body: Option<Vec<u8>>) -> KeySettle {
        let key = IdempotencyKey::parse("k").unwrap();
        let outcome = KeyOutcome::Keep {
            settled: Settled::Applied,
            response: StoredResponse { status: 200, headers, body },
            result_digest: None,
            message_id: None,
            ttl: Duration::from_secs(1),
        };
        let name = RecordName { operation: "o".to_owned(), identity: "i".to_owned(), key };
        KeySettle { name, fence: Fence::new(1).unwrap(), outcome }
    }

    /// Otherwise many of them would make a statement too large for the server.
    #[test]
    fn headers_count_as_much_as_the_body() {
        let field = ("x".repeat(1_000), vec![7; 9_000]);
        let (bare, full) = (settle(Vec::new(), None), settle(vec![field; 3], Some(vec![7; 50_000])));
        assert!(full.bytes() - bare.bytes() >= 3 * 10_000 + 50_000);
    }
}
