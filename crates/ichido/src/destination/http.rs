//! Delivers messages as HTTP calls: `POST`, signed, with their key.
//!
//! Guarantee: one call of [`Http::call`] puts at most one request on the wire. The table of [`ichido_core::verdict`] judges
//! the response, after the destination's own [rules](DeliveryRule). Without a response, the outcome says whether the request
//! may have arrived; in doubt, that it may have. Redirects are never followed, no proxy is taken from the environment, and
//! an address where clouds serve credentials is not called unless the [settings](HttpSettings::allow_link_local) name its
//! host. Connecting, the response and the whole call have timeouts, and the response has a size limit.
//!
//! # What the receiver gets
//!
//! The message's bytes as the body, and these fields in addition to those of the [settings](HttpSettings::headers):
//!
//! | field | value |
//! |---|---|
//! | `Idempotency-Key` | the outbound key, the same on every attempt |
//! | `Ichido-Fence` | the number of the claim: a receiver that remembers the highest may refuse a lower one |
//! | `Ichido-Attempt` | the number of the attempt, from 1 |
//! | `Ichido-Message-Id` | the message's id |
//! | `Ichido-Hops` | the hops so far, the outbox last, at most 8 entries |
//! | `Accept-Encoding` | `identity`, unless the settings have another: a response is stored as it arrives |
//! | `traceparent` | the trace it belongs to, if it has one |
//! | `webhook-id`, `webhook-timestamp`, `webhook-signature` | as [Standard Webhooks](https://www.standardwebhooks.com) has them, where there are signing secrets; the id is the message's |
//!
//! The key is written without quotes, because most receivers treat quotes as part of it. A key that starts with a quote is
//! written as a structured-field string.
//!
//! Start at [`HttpSettings`].
// Spec: D7 to D10, D18.

pub mod endpoint;
mod reconcile;
mod response;
mod settings;

pub use reconcile::ReconcileMeaning;
pub use response::ResponseMeaning;
pub use settings::{
    DeliveryRule, HttpSettings, MAX_ANSWER_BYTES, MAX_HEADERS, MAX_RULES, MAX_SECRETS, MAX_TIMEOUT,
    ReconcileRule, ReconcileSettings, ResponseRule,
};

use bytes::Bytes;
use ichido_core::key::IdempotencyKey;
use ichido_core::time::Timestamp;
use ichido_http::client::{CallLimits, HttpClient};
use ichido_http::clock;

use ::http::header::CONTENT_TYPE;
use ::http::uri::PathAndQuery;
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;

use super::{DeliveryAttempt, DeliveryOutcome, DeliveryTerms, ReconcileOutcome};
use ichido_http::signature::{self, Secret};
use reconcile::ReconcileEndpoint;
use response::ResponseReader;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const FENCE: HeaderName = HeaderName::from_static("ichido-fence");
const ATTEMPT: HeaderName = HeaderName::from_static("ichido-attempt");
const MESSAGE_ID: HeaderName = HeaderName::from_static("ichido-message-id");
const HOPS: HeaderName = HeaderName::from_static("ichido-hops");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Our `User-Agent`.
pub const AGENT: HeaderValue = HeaderValue::from_static(concat!("ichido/", env!("CARGO_PKG_VERSION")));

/// An HTTP destination.
///
/// Created by [`HttpSettings::resolve`], and used inside a tokio runtime with I/O and time.
pub struct Http {
    client: HttpClient<Full<Bytes>>,
    target: PathAndQuery,
    /// The fields that the settings add.
    headers: HeaderMap,
    secrets: Vec<Secret>,
    limits: CallLimits,
    reader: ResponseReader,
    reconcile: Option<ReconcileEndpoint>,
    promise: DeliveryTerms,
}

ichido_core::debug_only! {
    /// Shows neither secrets nor the values of header fields.
    Http as http { authority: http.client.authority().as_str(), limits, promise }
}

impl Http {
    /// Makes one attempt of a message. It ends within [`DeliveryTerms::timeout`].
    pub async fn call(&self, call: &DeliveryAttempt) -> DeliveryOutcome {
        let Some(request) = self.request(call, clock::now()) else {
            return DeliveryOutcome::unsendable();
        };
        let result = self.client.exchange(request, &self.limits).await;
        self.reader.judge(&call.key, result, clock::now())
    }

    /// Returns what it promises about its calls.
    pub const fn terms(&self) -> DeliveryTerms {
        self.promise
    }

    /// Returns whether it can look up a call.
    pub const fn can_reconcile(&self) -> bool {
        self.reconcile.is_some()
    }

    /// Looks up the effect of the calls made under `key`.
    ///
    /// It ends within [`DeliveryTerms::timeout`], and is a read: repeating it is harmless.
    // Spec: F2.
    pub async fn reconcile(&self, key: &IdempotencyKey) -> ReconcileOutcome {
        match &self.reconcile {
            Some(reconcile) => reconcile.ask(key, &self.headers, &self.limits, &self.reader).await,
            None => reconcile::lookup_unsupported(),
        }
    }

    /// Builds the request of one attempt.
    ///
    /// `None` if the media type is not a valid header value.
    fn request(&self, call: &DeliveryAttempt, now: Timestamp) -> Option<Request<Full<Bytes>>> {
        let (target, body) = (self.target.clone(), call.body.clone());
        let mut request = endpoint::request(&self.client, Method::POST, target, &self.headers, body);
        let fields = request.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_str(&call.content_type).ok()?);
        fields.insert(IDEMPOTENCY_KEY, key_field(&call.key)?);
        fields.insert(FENCE, HeaderValue::from(call.fence.get()));
        fields.insert(ATTEMPT, HeaderValue::from(call.attempt));
        let id = call.message.to_string();
        fields.insert(MESSAGE_ID, HeaderValue::from_str(&id).ok()?);
        if !call.hops.is_empty() {
            fields.insert(HOPS, HeaderValue::from_str(&call.hops.to_string()).ok()?);
        }
        // A trace that is not a valid header value is not a reason to skip the call.
        if let Some(trace) = call.trace.as_deref().and_then(|trace| HeaderValue::from_str(trace).ok()) {
            fields.insert(TRACEPARENT, trace);
        }
        for (name, value) in signature::fields(&self.secrets, &id, now, &call.body) {
            fields.insert(HeaderName::from_static(name), HeaderValue::from_str(&value).ok()?);
        }
        Some(request)
    }
}

/// Formats the key as a header value, marked as sensitive.
fn key_field(key: &IdempotencyKey) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&key.to_header_value()).ok()?;
    value.set_sensitive(true);
    Some(value)
}
