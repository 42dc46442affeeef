//! Boundary files: the path of an idempotency key, described hop by hop in JSON.
//!
//! The path leads from the browser to the adapter.
//!
//! This crate reads boundary files, checks them against the rules of `ichido check`, compares two versions of them and writes
//! reports. The proxy runs on the same files.
//!
//! Guarantee: nothing in this crate does I/O, reads a clock or draws a random number. A text becomes a [`Boundary`] or
//! all its errors, each with its line and column, never a panic; unknown members are kept and ignored. The same files always give
//! the same findings in the same order, each with its rule, its location and how to fix it.
//!
//! Where to start: [`Boundary::read`] parses a file, [`check`] finds what is wrong with a set of files, [`loosened`] finds the
//! guarantees that a change removes, [`rules()`] lists the rules, and [`report`] formats findings.
//!
//! A file is about one [`Name`]: `browser_to_bff` is what the browser sends and the BFF receives, and so on;
//! `adapter` is what the adapter sends to the service with the side effect. Retries and timeouts in a file are for the
//! sender, keys are for the receiver, and each list of headers is for the party that its direction names.
//!
//! # What a proxy takes from its files
//!
//! A party reads the file in which it receives (`name().receiver()`) and the one in which it sends (`name().sender()`).
//!
//! ```
//! use ichido_boundary::{Boundary, Crossing, Mode, Name, Party, Traffic};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = br#"{
//!   "boundary": "bff_to_gateway",
//!   "http": {
//!     "methods": { "allowed": ["GET", "POST"], "state_changing": ["POST"] },
//!     "idempotency": {
//!       "mode": "validate_only",
//!       "validate_only": {
//!         "require_header_when_state_changing": true,
//!         "on_missing_key": { "action": "reject", "status": 400, "error_code": "key_missing" }
//!       }
//!     },
//!     "retry": { "mode": "enabled", "apply_to_methods": ["POST"], "max_attempts": 2, "retry_on_status": [503],
//!       "backoff_ms": 100, "retry_gate": { "require_idempotency_key_when_state_changing": true } },
//!     "timeouts": { "upstream_timeout_ms": 3000 }
//!   },
//!   "headers": { "gateway_inbound": { "allow": ["content-type", "idempotency-key", "ichido-hops"] } }
//! }"#;
//! let file = Boundary::read("bff_to_gateway.json", text)?;
//! assert_eq!((file.name(), file.name().receiver()), (Name::BffToGateway, Party::Gateway));
//!
//! // The gateway, which receives:
//! assert!(file.http.methods.allows("POST") && file.http.methods.changes_state("POST"));
//! assert_eq!(file.http.idempotency.mode, Some(Mode::ValidateOnly));
//! assert!(file.http.idempotency.requires_key());
//! assert_eq!(file.http.idempotency.on_missing_key().and_then(|reaction| reaction.status), Some(400));
//! assert!(!file.passes(Party::Gateway, Crossing::Arriving, Traffic::Requests, "X-User-Id"));
//!
//! // The BFF, which sends:
//! let plan = file.http.retry.plan().ok_or("it retries")?;
//! assert_eq!(plan.attempts.get(), 2); // and `covers`, `wait_after`; `retry::hop_may_repeat` has the last word
//! assert_eq!(file.http.timeouts.attempt_timeout(), Some(std::time::Duration::from_secs(3)));
//! # Ok(())
//! # }
//! ```
//!
//! The adapter finds its obligations in [`Enabled`] of the [`owner`] file: [`Enabled::profile`],
//! [`Enabled::in_flight_wait`], [`Enabled::ttl`], [`Fingerprint::inputs`] for the comparison, [`BodyHash::body_rules`]
//! for the digest, and the headers that a replay keeps. Its own file has [`Members::identity`], whose
//! [`Identity::rule`] says where the caller's identity is, and [`Members::operations`], each of which becomes a policy
//! with [`Operation::draft`]. `echo_key` of [`Idempotency`] and [`Observability`] apply at every hop.
//!
//! A proxy does not start if [`check`] has a finding of [`Severity::Error`]. [`Boundary::place`] returns the line and
//! column of a value, and [`schema`] lists every member of the dialect.
// SPEC C8.

mod diff;
mod hop_chain;
mod member;
mod model;
mod page;
mod read;
pub mod report;
mod rules;
mod starting;
mod timing;

pub use diff::loosened;
pub use hop_chain::{HopChain, hop_chains};
pub use ichido_rules::Severity;
pub use member::{
    MAX_COUNT, MAX_INVALID, MAX_NAME_BYTES, MAX_UNKNOWN, MAX_WHOLE, Member, MisspelledMember, NamedValues,
    Schema,
};
pub use model::*;
pub use page::{BoundaryRule, Example};
pub use read::{Boundary, Location, MAX_BYTES, ReadError, ReadErrorKind, ReadErrors, schema};
pub use rules::{Finding, UNREADABLE, check, rule, rules};
pub use starting::{STARTING, STARTING_README};

/// The header to which hops add themselves.
// SPEC F1.
pub const HOPS_HEADER: &str = "Ichido-Hops";

/// The header that distinguishes a request in flight from an outcome.
// SPEC C6.
pub const STATUS_HEADER: &str = "Idempotency-Status";

/// Returns the file whose boundary owns the outcome.
///
/// It is the adapter's own if it is `enabled`, else the one before it.
pub fn owner(files: &[Boundary]) -> Option<&Boundary> {
    let owners = files.iter().filter(|file| file.http.idempotency.mode == Some(Mode::Enabled));
    owners.max_by_key(|file| file.name())
}
