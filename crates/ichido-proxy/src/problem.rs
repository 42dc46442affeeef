//! What the proxy itself answers when it cannot pass an answer on: problem details (RFC 9457) with a stable code.
//!
//! Guarantee: every problem says in words what happened and what to do, and where a request may have reached the
//! upstream, what is known of its effect (SPEC F2). None repeats a key, a header's value or a body.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use ichido_core::key::KeyError;
use ichido_core::settings::size;
use ichido_core::verdict::{Effect, NetworkFault};
use ichido_http::server::body::{AnswerBody, BodyFault};
use ichido_http::server::limits::{BODIES_BYTES_MAX, BODIES_BYTES_OF_ONE_MAX};
use ichido_http::server::permits;
use serde_json::json;

use super::upstream::Failure;

/// One refusal or failure.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: Cow<'static, str>,
    title: &'static str,
    detail: Cow<'static, str>,
    effect: Option<Effect>,
    /// A header field that goes with it.
    field: Option<Box<(HeaderName, HeaderValue)>>,
}

impl Problem {
    fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, code: code.into(), title, detail: detail.into(), effect: None, field: None }
    }

    /// The same under another status and code, where a boundary file asks for them.
    pub(crate) fn called(self, status: StatusCode, code: String) -> Self {
        Self { status, code: Cow::Owned(code), ..self }
    }

    /// The method does not cross this boundary.
    pub(crate) fn method(allowed: &[String]) -> Self {
        let detail = format!("requests of this method do not pass here; these do: {}", allowed.join(", "));
        let title = "The method does not pass";
        let problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", title, detail);
        let allowed = HeaderValue::try_from(allowed.join(", ")).ok();
        Self { field: allowed.map(|allowed| Box::new((ALLOW, allowed))), ..problem }
    }

    /// The request itself is wrong, whoever would get it.
    pub(crate) fn malformed(detail: &'static str) -> Self {
        let title = "The request cannot be read in one way only";
        Self::new(StatusCode::BAD_REQUEST, "request_malformed", title, detail)
    }

    /// A WebSocket or a tunnel is asked for.
    pub(crate) fn upgrade() -> Self {
        let detail = "this proxy carries requests and answers, not WebSockets or tunnels; connect to the service directly for \
                      those";
        let title = "WebSockets and tunnels are not supported";
        Self::new(StatusCode::NOT_IMPLEMENTED, "upgrade_unsupported", title, detail)
    }

    /// What is wrong with the key, or that there is none (SPEC C1).
    pub(crate) fn of_key(error: KeyError) -> Self {
        let (code, title) = match error {
            KeyError::Missing => ("key_missing", "The request needs an idempotency key"),
            KeyError::Empty
            | KeyError::TooLong { .. }
            | KeyError::FieldTooLong { .. }
            | KeyError::NotVisible { .. }
            | KeyError::BadQuoting
            | KeyError::ManyLines { .. }
            | KeyError::HeadersDisagree
            | KeyError::BodyDisagrees => ("key_invalid", "The idempotency key is not valid"),
        };
        Self::new(StatusCode::BAD_REQUEST, code, title, error.to_string())
    }

    /// The adapter knows no operation for a request that would change state.
    pub(crate) fn operation_unknown() -> Self {
        let detail = "no operation is configured for this method and path, so that it would go unprotected; nothing was done; \
                      add it to the adapter's operations, with class read if it changes nothing";
        let title = "No operation is configured for the request";
        Self::new(StatusCode::NOT_FOUND, "operation_unknown", title, detail)
    }

    /// Another method is meant than the one by which the operation was found.
    pub(crate) fn method_override() -> Self {
        let detail = "the request names another method in X-HTTP-Method-Override, X-HTTP-Method, X-Method-Override or _method, \
                      so it would go unprotected; nothing was done; send it with that method itself";
        let title = "The method cannot be overridden";
        Self::new(StatusCode::BAD_REQUEST, "method_override", title, detail)
    }

    /// As much is under way as may be, those included whose clients have gone.
    pub(crate) fn busy() -> Self {
        let detail = "as many requests are under way as this adapter takes at once; nothing was done; send the request again";
        let title = "The adapter is busy";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "adapter_busy", title, detail).again_soon()
    }

    /// Every connection that is served at once is busy, or all of the caller's address.
    pub(crate) fn overloaded() -> Self {
        let detail = "as many connections are busy as this proxy serves at once, in all or from one address; nothing was done; send the \
                      same request again, and keep fewer connections busy";
        let title = "The proxy serves as many connections as it may";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "proxy_busy", title, detail).again_soon()
    }

    /// The bodies that an adapter has in memory take as much of it as they may.
    pub(crate) fn bodies_full(full: permits::Full) -> Self {
        let (status, whose, most) = match full {
            permits::Full::All => (StatusCode::SERVICE_UNAVAILABLE, "", BODIES_BYTES_MAX),
            permits::Full::Own => {
                (StatusCode::TOO_MANY_REQUESTS, " from this address", BODIES_BYTES_OF_ONE_MAX)
            }
        };
        let detail = format!(
            "the bodies in flight{whose} have {} at once, which is the most; nothing was done; send the same request again",
            size::told(most)
        );
        let title = "Too many bodies are in flight";
        Self { effect: Some(Effect::NotDone), ..Self::new(status, "bodies_full", title, detail) }.again_soon()
    }

    fn again_soon(self) -> Self {
        Self { field: Some(Box::new((RETRY_AFTER, HeaderValue::from_static("1")))), ..self }
    }

    /// No answer came; `effect` is what is known after all tries.
    pub(crate) fn of_failure(failure: Failure, effect: Effect) -> Self {
        let (status, code, title, what) = match failure {
            Failure::Network(fault) => of_network(fault),
            Failure::Upload(fault) => of_upload(fault),
        };
        let known = match effect {
            Effect::NotDone => "nothing was done, so the request can be sent again as it is",
            Effect::Done => "the request was done",
            Effect::Unknown => {
                "it is not known whether the request took effect; with an idempotency key, send it again under the same key"
            }
        };
        let detail = format!("{what}; {known}");
        Self { effect: Some(effect), ..Self::new(status, code, title, detail) }
    }

    /// The answer. It is not to be kept by caches: it says nothing of the resource.
    pub(crate) fn into_response(self) -> Response<AnswerBody> {
        let mut body = json!({
            "type": format!("urn:ichido:problem:{}", self.code),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": self.code,
        });
        if let Some(effect) = self.effect {
            body["effect"] = json!(effect.as_str());
        }
        let bytes = Bytes::from(body.to_string());
        let mut response = Response::new(Full::new(bytes).map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.field.map(|field| *field));
        response
    }
}

type Words = (StatusCode, &'static str, &'static str, &'static str);

const fn of_network(fault: NetworkFault) -> Words {
    use NetworkFault::{
        AnswerCut, Broken, ClosedUnused, ConnectRefused, ConnectTimeout, HeldBack, NameNotResolved,
        StreamRefused, Timeout, Tls,
    };
    let what = match fault {
        NameNotResolved | ConnectRefused | Tls | StreamRefused | HeldBack => {
            "no connection to the upstream could be made"
        }
        ConnectTimeout => "the connection to the upstream did not come about in time",
        ClosedUnused => "the upstream closed its connections before the request was written",
        Timeout => "the request was sent, and no answer came in time",
        Broken => "the connection to the upstream broke after the request, or a part of it, was sent",
        AnswerCut => "the upstream's answer was not whole",
    };
    let status = match fault {
        ConnectTimeout | Timeout => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    match fault {
        Timeout => (status, "upstream_timeout", "The upstream did not answer in time", what),
        Broken | AnswerCut => (status, "upstream_lost", "The upstream's answer was lost", what),
        _ => (status, "upstream_unreachable", "The upstream cannot be reached", what),
    }
}

const fn of_upload(fault: BodyFault) -> Words {
    const TITLE: &str = "The body is not complete";
    match fault {
        BodyFault::Idle | BodyFault::TooSlow => {
            let what = "the request's body did not arrive in time, and the upstream got a part of it at most";
            (StatusCode::REQUEST_TIMEOUT, "body_timeout", TITLE, what)
        }
        BodyFault::NoMemory(_) => {
            let what = "the bodies in flight take as much memory as they may, and the upstream got nothing of this one";
            (StatusCode::SERVICE_UNAVAILABLE, "bodies_full", "Too many bodies are in flight", what)
        }
        BodyFault::Cut => {
            let what =
                "the request's body ended early or is malformed, and the upstream got a part of it at most";
            (StatusCode::BAD_REQUEST, "body_incomplete", TITLE, what)
        }
    }
}
