//! Messages that are published to a stream of NATS `JetStream` (SPEC D7, F2).
//!
//! Guarantee: one call of [`Nats::call`] publishes at most once, on one connection: nothing is kept for a later connection, so that a
//! publish that was given up on cannot go out after [`Promise::settles_within`]. A message counts as done when the stream that was found
//! at the start acknowledges it, and as not done only where that is proved; in doubt it may have been stored.
//!
//! # What the stream gets
//!
//! The message's bytes, and these headers:
//!
//! | header | value |
//! |---|---|
//! | `Nats-Msg-Id` | the outbound key, by which the stream knows a repetition |
//! | `Nats-Expected-Stream` | the stream found at the start: no other one, with a shorter memory, can take the message |
//! | `Idempotency-Key` | the outbound key again, under the name that receivers of HTTP calls know |
//! | `Ichido-Fence` | the number of the claim |
//! | `Ichido-Attempt` | which try this is, from 1 |
//! | `Ichido-Message-Id` | the message's id |
//! | `Content-Type` | the media type of the body |
//! | `Ichido-Hops` | the way it came, the outbox last, at most 8 entries |
//! | `traceparent` | the trace it belongs to, if it has one |
//!
//! # How long keys are honoured
//!
//! A stream remembers ids for its `duplicate_window`, 2 minutes unless it was made with another. The worker makes no retry that could
//! arrive after it, so a stream whose window is not longer than a publish may be under way is refused at the start. When a server starts again it learns the ids from the messages that are
//! still stored: where consumers remove messages within the window, as with a work queue, a restart forgets those.
//!
//! It cannot be asked what became of a call: there is no look-up by id, and reading through a stream is no proof, since a
//! message may have been stored and removed.
//!
//! Start at [`NatsSettings`].

mod connection;
mod response;
mod settings;
mod start;

pub use settings::{Credentials, NatsSettings, SETTLES_WITHIN_MIN, TIMEOUT_MAX, URLS_MAX};
pub use start::{NatsPlan, StartError};

use std::str::FromStr as _;
use std::time::Duration;

use async_nats::header::{
    HeaderMap, HeaderValue, NATS_EXPECTED_STREAM, NATS_MESSAGE_ID, ParseHeaderValueError,
};
use tokio::time::Instant;

use super::{Call, Came, Promise};
use connection::NatsClient;

/// A NATS destination.
///
/// Made by [`NatsPlan::connect`], and used inside the same tokio runtime.
pub struct Nats {
    client: NatsClient,
    subject: String,
    /// The stream that covers the subject.
    stream: String,
    promise: Promise,
}

ichido_core::debug_only! {
    /// Nothing of the credentials.
    Nats as nats { subject, stream, promise }
}

impl Nats {
    /// Makes one try of a message. It ends within [`Promise::time_out`].
    pub async fn call(&self, call: &Call) -> Came {
        let deadline = Instant::now() + self.promise.time_out;
        let Ok(headers) = self.headers(call) else {
            return Came::unsendable();
        };
        let connection = match self.client.take(deadline).await {
            Ok(connection) => connection,
            Err(error) => return response::not_sent(&error),
        };
        let outcome = connection.publish(&self.subject, headers, call.body.clone(), deadline).await;
        response::judge(&self.stream, outcome)
    }

    /// What it promises about the calls it gets.
    pub const fn promise(&self) -> Promise {
        self.promise
    }

    /// The stream that covers the subject, as it was found at the start.
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// The headers of one try; an error when the message's media type is no header's value.
    fn headers(&self, call: &Call) -> Result<HeaderMap, ParseHeaderValueError> {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, HeaderValue::from_str(call.key.as_str())?);
        headers.insert(NATS_EXPECTED_STREAM, HeaderValue::from_str(&self.stream)?);
        headers.insert("Idempotency-Key", HeaderValue::from_str(call.key.as_str())?);
        headers.insert("Ichido-Fence", HeaderValue::from(call.fence.get()));
        headers.insert("Ichido-Attempt", HeaderValue::from(call.attempt));
        headers.insert("Ichido-Message-Id", HeaderValue::from_str(&call.message.to_string())?);
        headers.insert("Content-Type", HeaderValue::from_str(&call.content_type)?);
        if !call.hops.is_empty() {
            headers.insert("Ichido-Hops", HeaderValue::from_str(&call.hops.to_string())?);
        }
        // A trace that no header can carry is no reason not to send.
        if let Some(trace) = call.trace.as_deref().and_then(|trace| HeaderValue::from_str(trace).ok()) {
            headers.insert("traceparent", trace);
        }
        Ok(headers)
    }
}

/// The longest from when a publish sets out until the stream has taken it, or never will.
fn max_time_in_flight(promise: &Promise) -> Duration {
    promise.time_out + promise.settles_within
}
