//! Publishes messages to a stream of NATS `JetStream`.
//!
//! Guarantee: one call of [`Nats::call`] publishes at most once, on one connection. Nothing is buffered for a later
//! connection, so an abandoned publish cannot go out after [`DeliveryTerms::settle_grace`]. A message counts as done when the
//! stream found at startup acknowledges it, and as not done only if that is proven; in doubt it may have been stored.
//!
//! # What the stream gets
//!
//! The message's bytes, and these headers:
//!
//! | header | value |
//! |---|---|
//! | `Nats-Msg-Id` | the outbound key, by which the stream recognises a duplicate |
//! | `Nats-Expected-Stream` | the stream found at startup: no other one, with a shorter window, can accept the message |
//! | `Idempotency-Key` | the outbound key again, under the name that HTTP receivers know |
//! | `Ichido-Fence` | the number of the claim |
//! | `Ichido-Attempt` | the number of the attempt, from 1 |
//! | `Ichido-Message-Id` | the message's id |
//! | `Content-Type` | the media type of the body |
//! | `Ichido-Hops` | the hops so far, the outbox last, at most 8 entries |
//! | `traceparent` | the trace it belongs to, if it has one |
//!
//! # How long keys are remembered
//!
//! A stream remembers ids for its `duplicate_window`, 2 minutes by default. The worker makes no retry that could arrive
//! later, so a stream whose window is not longer than a publish may be in flight is refused at startup. A restarted server
//! relearns the ids from the messages that are still stored: if consumers remove messages within the window, as with a work
//! queue, a restart forgets those ids.
//!
//! It cannot look up a call: there is no lookup by id, and reading through a stream proves nothing, because a message may
//! have been stored and removed.
//!
//! Start at [`NatsSettings`].
// Spec: D7, F2.

mod connection;
mod response;
mod settings;
mod start;

pub use settings::{Credentials, MAX_TIMEOUT, MAX_URLS, MIN_SETTLE_GRACE, NatsSettings};
pub use start::{NatsPlan, NatsStartError};

use std::str::FromStr as _;
use std::time::Duration;

use async_nats::header::{
    HeaderMap, HeaderValue, NATS_EXPECTED_STREAM, NATS_MESSAGE_ID, ParseHeaderValueError,
};
use tokio::time::Instant;

use super::{DeliveryAttempt, DeliveryOutcome, DeliveryTerms};
use connection::NatsClient;

/// A NATS destination.
///
/// Created by [`NatsPlan::connect`], and used inside the same tokio runtime.
pub struct Nats {
    client: NatsClient,
    subject: String,
    /// The stream that covers the subject.
    stream: String,
    promise: DeliveryTerms,
}

ichido_core::debug_only! {
    /// Shows nothing of the credentials.
    Nats as nats { subject, stream, promise }
}

impl Nats {
    /// Makes one attempt of a message. It ends within [`DeliveryTerms::timeout`].
    pub async fn call(&self, call: &DeliveryAttempt) -> DeliveryOutcome {
        let deadline = Instant::now() + self.promise.timeout;
        let Ok(headers) = self.headers(call) else {
            return DeliveryOutcome::unsendable();
        };
        let connection = match self.client.take(deadline).await {
            Ok(connection) => connection,
            Err(error) => return response::not_sent(&error),
        };
        let outcome = connection.publish(&self.subject, headers, call.body.clone(), deadline).await;
        response::judge(&self.stream, outcome)
    }

    /// Returns what it promises about its calls.
    pub const fn terms(&self) -> DeliveryTerms {
        self.promise
    }

    /// Returns the stream that covers the subject, as found at startup.
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// Builds the headers of one attempt.
    ///
    /// Fails if the media type is not a valid header value.
    fn headers(&self, call: &DeliveryAttempt) -> Result<HeaderMap, ParseHeaderValueError> {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, HeaderValue::from_str(&call.key.to_header_value())?);
        headers.insert(NATS_EXPECTED_STREAM, HeaderValue::from_str(&self.stream)?);
        headers.insert("Idempotency-Key", HeaderValue::from_str(&call.key.to_header_value())?);
        headers.insert("Ichido-Fence", HeaderValue::from(call.fence.get()));
        headers.insert("Ichido-Attempt", HeaderValue::from(call.attempt));
        headers.insert("Ichido-Message-Id", HeaderValue::from_str(&call.message.to_string())?);
        headers.insert("Content-Type", HeaderValue::from_str(&call.content_type)?);
        if !call.hops.is_empty() {
            headers.insert("Ichido-Hops", HeaderValue::from_str(&call.hops.to_string())?);
        }
        // A trace that is not a valid header value is not a reason to skip the call.
        if let Some(trace) = call.trace.as_deref().and_then(|trace| HeaderValue::from_str(trace).ok()) {
            headers.insert("traceparent", trace);
        }
        Ok(headers)
    }
}

/// Returns how long a publish may be in flight until the stream stored it or never will.
fn max_time_in_flight(promise: &DeliveryTerms) -> Duration {
    promise.timeout + promise.settle_grace
}
