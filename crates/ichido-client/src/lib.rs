//! A client that retries a state-changing request until its outcome is known.
//!
//! The request takes effect once.
//!
//! Guarantee: every attempt of an [`Action`] carries the same key and the same bytes. The client retries only after a
//! network error, a 5xx, 408 or 429, or while the request is in flight. It never retries sooner than the server
//! asked, and stays within a total timeout and a retry budget that all actions share. It retries an action without a
//! key only with proof that nothing was done. The outcome says what is known about the effect, without guessing.
//! Keys, tokens and bodies never appear in logs or debug output.
//!
//! Start at [`Client::send`]. [`Client::read`] sends a read, and [`new_key`] creates a key. [`decision`] decides what
//! follows each attempt, without a clock or a socket. `docs/guides/retrying-client.md` shows everything in five
//! minutes. With the feature `queue`, the module of that name stores actions in a file while the server is
//! unreachable and sends them later.
//!
//! # What the server gets
//!
//! | field | value |
//! |---|---|
//! | `Idempotency-Key` | the action's key, the same on every attempt; quoted for a server of the profile `ietf`; absent without a key |
//! | `Ichido-Attempt` | the number of this attempt, from 1, and who started it: `2; auto` |
//! | `Ichido-Hops` | the hops so far, with this client last; only to servers of the profile `ichido` |
//! | `X-Request-Id` | the id of this request, which the hop repeats: the caller's, or a new one; only to the same servers |
//! | `Authorization` | `Bearer` and the token, if there is one |
//! | `Content-Type`, `Content-Length`, `Host`, `User-Agent` | as usual |
//!
//! `Ichido-Attempt` is a structured-field integer (RFC 9651) with one parameter: `auto` if this client retried
//! automatically or a program started the action, `manual` if a person did, for the first time or with a retry button
//! ([`Cause`]). Attempts over 1 with `auto` are therefore the client's retries, and attempts over 1 with `manual` are
//! those of people.
//!
//! # Profiles
//!
//! [`ClientSettings::profile`] selects how responses about keys are interpreted. The rows are defined in
//! [`Profile::client_table`](ichido_core::ledger::Profile::client_table).
//!
//! | | in flight: retried | the key was used for a different request: [`Refusal::KeyConflict`](decision::RefusalReason::KeyConflict) |
//! |---|---|---|
//! | `ichido` | 202 with `Idempotency-Status: processing` | 409 with the code `key_conflict` |
//! | `ietf` | 409 with `Retry-After`, or the code `key_in_flight`; a bare 409 counts as a failed attempt | 422 |
//! | `stripe` | 409 with the code `idempotency_key_in_use` | 400 of the type `idempotency_error` |
//!
//! In every profile `Idempotency-Replayed` or `Idempotent-Replayed` marks a replay. A failure with that mark is
//! stored by the server and is not retried ([`Refusal::KeptFailure`](decision::RefusalReason::KeptFailure)).
//!
//! # What it does not do
//!
//! The client follows no redirects, uses no proxy from the environment, and stores no cookies. It speaks HTTP/1.1: a
//! connection that carries one call at a time leaves no doubt about whose call broke.
//!
//! The client uses hyper's connections directly and no client library above them. Those libraries resend a request
//! automatically when an idle connection turns out to be closed (hyper-util unless configured otherwise; reqwest,
//! which is built on it, can turn off its own retries but not those below). Such attempts would be missing from our
//! counts and header fields. Here a request moves to another connection only if the first one returns it whole, with
//! no byte written, and that is the same attempt.
// Spec: A8, A14, C4, F1.

mod action;
mod client;
pub mod decision;
mod fresh;
#[cfg(feature = "queue")]
pub mod queue;
mod response;
mod settings;
mod token;

pub use action::{Action, ActionError, Cause};
pub use client::{Client, LastResult, Outcome};
pub use fresh::{RandomnessError, new_key};
pub use ichido_core::key::IdempotencyKey;
pub use ichido_core::verdict::Effect;
pub use response::{ProblemDetails, Response};
pub use settings::{ClientConfigErrors, ClientSettings, MAX_ANSWER_BYTES, MAX_TIME};
pub use token::{Token, TokenError};
