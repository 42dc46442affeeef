//! The proxy's own responses: problem details (RFC 9457) with stable codes.
//!
//! Guarantee: every problem says what happened and what to do, and, if the request may have reached the upstream,
//! what is known about its effect. No problem repeats a key, a header value or a body.
// Spec: F2.

use std::time::Duration;

use http::header::ALLOW;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use ichido_core::key::KeyError;
use ichido_core::settings::size;
use ichido_core::verdict::{Effect, NetworkFault};
use ichido_http::problem::code_of_key;
use ichido_http::server::MalformedRequest;
use ichido_http::server::body::{BodyError, ResponseBody};
use ichido_http::server::limits::{MAX_BODIES_BYTES, MAX_BODIES_BYTES_OF_ONE};
use ichido_http::server::permits;
use serde_json::json;

use super::upstream::Failure;

/// When to retry if the proxy is busy.
const BUSY_RETRY_AFTER: Duration = Duration::from_secs(1);

ichido_http::problems! {
    pub(crate) enum Code in "urn:ichido:problem:" {
        MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The method is not allowed for this path";
        RequestMalformed = "request_malformed", BAD_REQUEST, "The request is malformed or ambiguous";
        HeadTooLarge = "head_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The request's head is too large";
        UpgradeUnsupported = "upgrade_unsupported", NOT_IMPLEMENTED, "WebSockets and tunnels are not supported";
        KeyMissing = "key_missing", BAD_REQUEST, "The request needs an idempotency key";
        KeyInvalid = "key_invalid", BAD_REQUEST, "The idempotency key is not valid";
        OperationNotConfigured = "operation_not_configured", NOT_FOUND, "No operation is configured for the request";
        MethodOverride = "method_override", BAD_REQUEST, "The method cannot be overridden";
        AdapterBusy = "adapter_busy", SERVICE_UNAVAILABLE, "The adapter is busy";
        ProxyBusy = "proxy_busy", SERVICE_UNAVAILABLE, "The proxy is busy";
        BodiesFull = "bodies_full", SERVICE_UNAVAILABLE, "Too many bodies are in flight";
        BodyTimeout = "body_timeout", REQUEST_TIMEOUT, "The body did not arrive in time";
        BodyIncomplete = "body_incomplete", BAD_REQUEST, "The body is not complete";
        UpstreamTimeout = "upstream_timeout", GATEWAY_TIMEOUT, "The upstream did not respond in time";
        UpstreamLost = "upstream_lost", BAD_GATEWAY, "The upstream's response was lost";
        UpstreamUnreachable = "upstream_unreachable", BAD_GATEWAY, "The upstream cannot be reached";
    }
}

impl Problem {
    /// Replaces the status and code, if a boundary file sets them.
    pub(crate) fn with_code(self, status: StatusCode, code: &str) -> Self {
        self.under(status).with("type", json!(format!("urn:ichido:problem:{code}"))).with("code", json!(code))
    }

    /// The method does not cross this boundary.
    pub(crate) fn method(allowed: &[String]) -> Self {
        let allowed = allowed.join(", ");
        let detail = format!("this method is not allowed; allowed methods: {allowed}");
        let mut problem = Self::new(Code::MethodNotAllowed, detail);
        problem.fields.extend(HeaderValue::try_from(allowed).ok().map(|allowed| (ALLOW, allowed)));
        problem
    }

    /// The request is invalid for any service.
    pub(crate) fn malformed(detail: &'static str) -> Self {
        Self::new(Code::RequestMalformed, detail)
    }

    /// The bytes were rejected before they formed a request.
    pub(crate) fn rejected(fault: MalformedRequest) -> Self {
        let code = match fault {
            MalformedRequest::Framing(_) | MalformedRequest::Head => Code::RequestMalformed,
            MalformedRequest::HeadTooLarge => Code::HeadTooLarge,
        };
        Self::new(code, fault.to_string())
    }

    /// The request asks for a WebSocket or a tunnel.
    pub(crate) fn upgrade() -> Self {
        let detail = "this proxy does not forward WebSockets or tunnels; connect to the service directly";
        Self::new(Code::UpgradeUnsupported, detail)
    }

    /// The key is missing or invalid.
    // Spec: C1.
    pub(crate) fn key_error(error: KeyError) -> Self {
        // Bodies are not compared here.
        let code = code_of_key(error, Code::KeyMissing, Code::KeyInvalid, Code::KeyInvalid);
        Self::new(code, error.to_string())
    }

    /// The adapter has no operation for a request that would change state.
    pub(crate) fn operation_not_configured() -> Self {
        let detail = "no operation is configured for this method and path, so the request would be unprotected; \
                      nothing was done; add it to the adapter's operations, with class read if it changes nothing";
        Self::new(Code::OperationNotConfigured, detail)
    }

    /// The request asks for a method other than the one that matched the operation.
    pub(crate) fn method_override() -> Self {
        let detail = "the request names another method in X-HTTP-Method-Override, X-HTTP-Method, X-Method-Override or \
                      _method, so it would be unprotected; nothing was done; send it with that method instead";
        Self::new(Code::MethodOverride, detail)
    }

    /// Too many requests are in flight, including those whose clients have disconnected.
    pub(crate) fn busy() -> Self {
        let detail =
            "too many requests are in flight in this adapter; nothing was done; send the request again";
        Self::new(Code::AdapterBusy, detail).after(BUSY_RETRY_AFTER)
    }

    /// Every connection is busy, or every connection of the caller's address.
    pub(crate) fn overloaded() -> Self {
        let detail = "too many connections are busy, in total or from your address; nothing was done; send the same \
                      request again, and use fewer connections";
        Self::new(Code::ProxyBusy, detail).after(BUSY_RETRY_AFTER)
    }

    /// Request bodies use all the memory they may.
    pub(crate) fn bodies_full(full: permits::Full) -> Self {
        let (status, whose, most) = match full {
            permits::Full::All => (StatusCode::SERVICE_UNAVAILABLE, "", MAX_BODIES_BYTES),
            permits::Full::Own => {
                (StatusCode::TOO_MANY_REQUESTS, " from this address", MAX_BODIES_BYTES_OF_ONE)
            }
        };
        let detail = format!(
            "the bodies in flight{whose} have reached the limit of {}; nothing was done; send the same request again",
            size::format_in_text(most)
        );
        Self::new(Code::BodiesFull, detail).under(status).with_effect(Effect::NotDone).after(BUSY_RETRY_AFTER)
    }

    /// There was no response; `effect` is what is known after all attempts.
    pub(crate) fn no_response(failure: Failure, effect: Effect) -> Self {
        let known = match effect {
            Effect::NotDone => "nothing was done; the same request can be sent again",
            Effect::Done => "the request took effect",
            Effect::Unknown => {
                "it is not known whether the request took effect; if it has an idempotency key, send it again with \
                 the same key"
            }
        };
        Self::without_response(failure, effect, known)
    }

    /// There was no response, and the adapter holds the key, because the operation has no guarantee.
    pub(crate) fn held(failure: Failure) -> Self {
        let known = "it is not known whether the request took effect, so its key is held: the same request gets 409 \
                     outcome_unknown until the outcome is decided (`ichido keys decide`)";
        Self::without_response(failure, Effect::Unknown, known)
    }

    fn without_response(failure: Failure, effect: Effect, known: &str) -> Self {
        let (code, what) = match failure {
            Failure::Network(fault) => network_problem(fault),
            Failure::Upload(fault) => upload_problem(fault),
        };
        let problem = Self::new(code, format!("{what}; {known}")).with_effect(effect);
        match failure {
            Failure::Network(NetworkFault::ConnectTimeout) => problem.under(StatusCode::GATEWAY_TIMEOUT),
            Failure::Network(_) | Failure::Upload(_) => problem,
        }
    }

    /// Adds what is known about the request's effect.
    fn with_effect(self, effect: Effect) -> Self {
        self.with("effect", json!(effect.as_str()))
    }

    /// Builds the response, which no cache stores.
    pub(crate) fn into_response(self) -> Response<ResponseBody> {
        self.response().map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync())
    }
}

const fn network_problem(fault: NetworkFault) -> (Code, &'static str) {
    use NetworkFault as Fault;
    match fault {
        Fault::NameNotResolved | Fault::ConnectRefused | Fault::StreamRefused | Fault::NotSent => {
            (Code::UpstreamUnreachable, "cannot connect to the upstream")
        }
        Fault::Tls => (
            Code::UpstreamUnreachable,
            "cannot connect to the upstream: its certificate is not trusted or not for this host, or it does not speak TLS",
        ),
        Fault::ConnectTimeout => (Code::UpstreamUnreachable, "connecting to the upstream timed out"),
        Fault::ClosedUnused => {
            (Code::UpstreamUnreachable, "the upstream closed its connections before the request was written")
        }
        Fault::Timeout => (Code::UpstreamTimeout, "the request was sent, and no response arrived in time"),
        Fault::Broken => (
            Code::UpstreamLost,
            "the connection to the upstream broke after the request, or part of it, was sent",
        ),
        Fault::ResponseCut => (Code::UpstreamLost, "the upstream's response was incomplete"),
    }
}

const fn upload_problem(fault: BodyError) -> (Code, &'static str) {
    match fault {
        BodyError::Idle | BodyError::TooSlow => (
            Code::BodyTimeout,
            "the request's body did not arrive in time, and the upstream got at most part of it",
        ),
        BodyError::NoMemory(_) => (
            Code::BodiesFull,
            "the bodies in flight use all the memory allowed for them, and the upstream got nothing of this one",
        ),
        BodyError::Cut => (
            Code::BodyIncomplete,
            "the request's body ended early or is malformed, and the upstream got at most part of it",
        ),
    }
}
