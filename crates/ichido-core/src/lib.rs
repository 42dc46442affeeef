//! The rules of Ichido as values and functions.
//!
//! Guarantee: nothing in this crate does I/O, reads a clock, draws a random number or awaits. Callers pass in stored
//! data, the time and random numbers; functions return what to do. So each rule can be tested with a table, replayed
//! from a log and checked with a model.
//!
//! Where to start: [`ledger`] decides what happens to an incoming request, [`lifecycle`] what happens to an outgoing
//! message. Both use [`verdict`], which derives the effect of a call from its response.
//!
//! # A request that arrives
//!
//! ```
//! use ichido_core::digest::{BodyRules, Digest};
//! use ichido_core::fence::Fence;
//! use ichido_core::fingerprint::{Fingerprint, RequestParts};
//! use ichido_core::key;
//! use ichido_core::ledger::{
//!     Admission, Class, StoredBody, RequestOutcome, Policy, PolicyDraft, Record, SettleRight, admit, may_settle, settle,
//! };
//! use ichido_core::time::Timestamp;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Timestamp::from_secs(1_800_000_000);
//! let policy = Policy::build(PolicyDraft::new(Class::ExternalEffect))?;
//!
//! // The request. The store finds the record by operation, identity and key.
//! let key = policy.require(key::read([("Idempotency-Key", "order-4711")])?)?;
//! assert!(key.is_some());
//! let media_type = "application/json";
//! let fingerprint = Fingerprint::new(&RequestParts {
//!     operation: "orders.create",
//!     identity: "alice",
//!     method: "POST",
//!     path: "/orders",
//!     query: "",
//!     media_type,
//!     digest: Digest::of_body(media_type, br#"{"qty":1}"#, &BodyRules::default())?,
//!     inputs: None,
//! });
//!
//! // Nothing is stored, so it runs: claim it with one insert that fails if a record exists.
//! assert_eq!(admit(None, fingerprint, &policy, now), Admission::Run { replaces: None });
//! let fence = Fence::new(1).ok_or("the store draws it from a sequence")?;
//! let claimed = Record::claimed(fingerprint, fence, now, &policy);
//! assert!(matches!(admit(Some(&claimed), fingerprint, &policy, now), Admission::Wait { .. }));
//!
//! // The work is done: settle it, if the claim still owns it.
//! assert_eq!(may_settle(&claimed, fence), SettleRight::Owner);
//! let settlement = settle(RequestOutcome::Responded { status: 201 }, &policy, now);
//! let phase = settlement.phase(StoredBody::Whole).ok_or("it is kept")?;
//! let settled = Record { phase, ..claimed };
//! assert_eq!(admit(Some(&settled), fingerprint, &policy, now), Admission::Replay);
//! # Ok(())
//! # }
//! ```
//!
//! # A message that must leave
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::time::Duration;
//! use ichido_core::fence::Fence;
//! use ichido_core::lifecycle::{StartMark, Event, State, AttemptResult};
//! use ichido_core::retry::{Guarantee, Retry};
//! use ichido_core::time::Timestamp;
//! use ichido_core::verdict::{NetworkFault, AttemptResponse, VerdictTable};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Timestamp::from_secs(1_800_000_000);
//! let message = State::queued(now, Retry::ORDER.max_attempts);
//!
//! // A worker claims it.
//! let fence = Fence::new(1).ok_or("the store draws it from a sequence")?;
//! let (sending, _) = message.advance(Event::Claimed { fence, start_mark: StartMark::NotTracked }, now)?;
//! let State::Sending { history, .. } = sending else { return Err("it was due".into()) };
//!
//! // It calls, and no response comes. The receiver deduplicates by key, so the call may be repeated.
//! let receiver = Guarantee::Keyed { keeps_for: Duration::from_hours(24) };
//! let safety = history.safety(receiver, now);
//! let verdict = VerdictTable::http().judge(&AttemptResponse::Network(NetworkFault::Timeout), now);
//! let next = verdict.next(safety, history.effect());
//!
//! // The next step becomes an event, and the event gives the next state.
//! let failure = NonZeroU32::new(history.attempts).ok_or("the claim counts")?;
//! let wait = Retry::ORDER.wait(failure, 0.5, verdict.hint);
//! let tried = AttemptResult {
//!     fence,
//!     effect: verdict.effect,
//!     safety,
//!     due: now.plus(wait),
//!     in_flight_until: now.plus(Duration::from_mins(10)),
//! };
//! let (failed, dead) = sending.advance(Event::from_attempt(next, tried), now)?;
//! assert_eq!((failed.name(), dead), ("failed", None));
//! # Ok(())
//! # }
//! ```

pub mod alert;
pub mod audit;
pub mod client_attempt;
pub mod clock;
mod debug_only;
pub mod digest;
pub mod drain;
pub mod failure_group;
pub mod fence;
pub mod fingerprint;
pub mod hops;
pub mod json;
pub mod key;
pub mod ledger;
pub mod lifecycle;
pub mod limits;
pub mod pace;
pub mod plan;
pub mod retry;
pub mod series;
pub mod settings;
pub mod sync;
pub mod text;
pub mod time;
pub mod verdict;
mod words;

/// Compiles the program in the README as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
