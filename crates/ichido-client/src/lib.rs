//! The caller's side: an action that changes state, sent again until its outcome is known, and done once.
//!
//! Guarantee: every try of an [`Action`] carries the same key and the same bytes. It is sent again only where SPEC A8 allows, no
//! sooner than the server asked, within a total time, and within a budget that all actions share; one without a key only with proof that
//! nothing was done (SPEC C4). What comes back says what is known of the effect, without a guess. The key, the token and the bodies are
//! shown in no log and no debug output.
//!
//! Start at [`Client::send`]; [`Client::read`] asks for what is there, and [`fresh_key`] makes a key. [`next`] is the decision after each
//! try, without a clock or a socket. `docs/guides/retrying-client.md` shows all of it in five minutes. With the feature `queue` there is a
//! module of that name: what is accepted while nobody is reached is kept in a file, and sent later.
//!
//! # What the server gets
//!
//! | field | value |
//! |---|---|
//! | `Idempotency-Key` | the action's key, the same on every try; quoted for a server of the profile `ietf`; not there for an action without one |
//! | `Ichido-Try` | which try this is, from 1, and who began it: `2; auto` (SPEC A14) |
//! | `Ichido-Hops` | the way that it came, and us at its end (SPEC F1); to servers of the profile `ichido` alone |
//! | `X-Request-Id` | the id of this one request, which the hop names too: the caller's, or a new one; to the same servers |
//! | `Authorization` | `Bearer` and the token, where there is one |
//! | `Content-Type`, `Content-Length`, `Host`, `User-Agent` | as always |
//!
//! `Ichido-Try` is a structured-field integer (RFC 9651) with one parameter: `auto` where this client sent again by itself, or where
//! a program began the action; `manual` where a person pressed, be it the first time or on a retry button ([`Cause`]). So the retries that
//! a client made are the tries over 1 with `auto`, and those that people made are the tries over 1 with `manual`.
//!
//! # How servers speak of keys
//!
//! [`ClientSettings::profile`] says whose words are understood. The rows stand with
//! [`Profile::client_table`](ichido_core::ledger::Profile::client_table).
//!
//! | | in flight: asked again | the key was used for a different request: [`Refusal::KeyConflict`](next::Refusal::KeyConflict) |
//! |---|---|---|
//! | `ichido` | 202 with `Idempotency-Status: processing` | 409 with the code `key_conflict` |
//! | `ietf` | 409 with `Retry-After`, or the code `key_in_flight`; a bare 409 counts as a failed try | 422 |
//! | `stripe` | 409 with the code `idempotency_key_in_use` | 400 of the type `idempotency_error` |
//!
//! A replay is known in each of them by `Idempotency-Replayed` or `Idempotent-Replayed`. A failure with that mark is one that the server
//! keeps: it is not asked for again ([`Refusal::KeptFailure`](next::Refusal::KeptFailure)).
//!
//! # What it does not do
//!
//! It follows no redirect, takes no proxy from the environment, and keeps no cookies. It speaks HTTP/1.1: where one connection carries one
//! call, one that breaks leaves no doubt about whose call it was.
//!
//! It uses hyper's connections directly, and no client library above them. Those send a request again by themselves when a kept connection
//! turns out to be closed (hyper-util unless told not to; reqwest, which stands on it, has a switch for its own retries and none for those
//! below). Such tries would be in no count of ours and in no header field. Here a request moves to another connection only where the first
//! one hands it back whole, with no byte of it written, and that is the same try.

mod action;
mod answer;
mod client;
mod fresh;
pub mod next;
#[cfg(feature = "queue")]
pub mod queue;
mod settings;
mod token;

pub use action::{Action, ActionError, Cause};
pub use answer::{Answer, ProblemDetails};
pub use client::{Client, Last, Outcome};
pub use fresh::{NoRandomness, fresh_key};
pub use settings::{ANSWER_BYTES_MAX, ClientSettings, Problems, TIME_MAX};
pub use token::{Token, TokenError};
