//! What every role does with a request that comes in and an answer that goes out.
//!
//! Guarantee: the key is read and checked before anything is sent, and passed on byte for byte (SPEC C1); every
//! answer carries the id of its request; the way of a request is told to the next hop, and what an outsider says of
//! it is not believed (SPEC F1).

use http::header::HeaderName;
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use ichido_boundary::{Methods, RequestId as RequestIdRule, Traceparent};
use ichido_core::hops::{Hop, HopName, Hops, RequestId};
use ichido_core::key::{self, IdempotencyKey, KeyError};
use ichido_http::clock;
use ichido_http::server::Peer;
use ichido_http::server::body::Timed;
use ichido_http::server::limits::Limits;
use uuid::Uuid;

use super::headers::{self, HOPS, HeaderFilter, KEY, REQUEST_ID, TRACEPARENT, TRACESTATE, X_KEY};
use super::problem::Problem;
use super::upstream::UpstreamRequest;
use super::validate::validated_target;

/// What holds for all requests through one proxy.
#[derive(Clone, Debug)]
pub(crate) struct FilterRules {
    /// Who we are, in the header of hops.
    pub(crate) name: HopName,
    /// Whether callers are outsiders, whose word about earlier hops counts for nothing.
    pub(crate) is_edge: bool,
    /// What becomes of `x-request-id`.
    pub(crate) request_id: RequestIdRule,
    /// What becomes of `traceparent` and `tracestate`.
    pub(crate) traceparent: Traceparent,
    /// Which methods pass, and which of them change state.
    pub(crate) methods: Methods,
    /// Whether a request that changes state must bring a key.
    pub(crate) key: KeyRule,
    /// Whether answers carry the key: always, never, or as the upstream does (SPEC C5).
    pub(crate) echo_key: Option<bool>,
    /// Which header fields pass.
    pub(crate) lists: HeaderFilter,
    /// Fields that say who asks, which no client may take away by naming them in `Connection`.
    pub(crate) relied_on: Vec<HeaderName>,
}

/// Whether a request that changes state must bring a key.
#[derive(Clone, Debug)]
pub(crate) enum KeyRule {
    /// It must; without one it is refused like this.
    Required {
        /// 400, unless a file says otherwise.
        status: StatusCode,
        /// [`KeyRule::CODE`], unless a file says otherwise.
        code: String,
    },
    /// It need not; one that is there must be a key.
    Optional,
}

impl KeyRule {
    /// The code of the refusal.
    pub(crate) const CODE: &str = "key_missing";
}

/// A request that may go on.
pub(crate) struct AdmittedRequest {
    pub(crate) call: UpstreamRequest,
    pub(crate) body: Timed,
    /// Who sent it.
    pub(crate) peer: Option<Peer>,
    /// The key, where the method changes state.
    pub(crate) key: Option<IdempotencyKey>,
}

/// What the answer to a request needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    pub(crate) request_id: RequestId,
    /// The field with the key, as it came.
    key_field: Option<http::HeaderValue>,
}

impl RequestContext {
    /// What logs carry of the key (SPEC C5): its hash; nothing where there is none, or no valid one.
    pub(crate) fn key_hash(&self) -> Option<String> {
        let field = self.key_field.as_ref()?.as_bytes();
        key::read([(KEY.as_str(), field)]).ok().flatten().map(|key| key.log_hash())
    }
}

impl FilterRules {
    /// The slip of a request: to be had before anything is decided, so that refusals carry an id too.
    pub(crate) fn context(&self, headers: &HeaderMap) -> RequestContext {
        let key_field = headers.get(KEY).or_else(|| headers.get(X_KEY)).cloned();
        RequestContext { request_id: self.request_id(headers), key_field }
    }

    /// The id that came, if it is one and may be kept; else a new one.
    fn request_id(&self, headers: &HeaderMap) -> RequestId {
        let mut lines = headers.get_all(REQUEST_ID).iter();
        let came = match (lines.next(), lines.next()) {
            (Some(line), None) => line.to_str().ok().and_then(|line| RequestId::parse(line).ok()),
            _ => None,
        };
        match (self.request_id, came) {
            (RequestIdRule::Keep, Some(id)) => id,
            (RequestIdRule::Keep | RequestIdRule::New, _) => fresh_id(),
        }
    }

    /// Checks a request and makes it ready to go on; `is_guarded` says whether it changes state, so that its key counts.
    pub(crate) fn admit(
        &self,
        request: Request<Incoming>,
        context: &RequestContext,
        limits: &Limits,
        is_guarded: bool,
    ) -> Result<AdmittedRequest, Problem> {
        let (head, body) = request.into_parts();
        let target = validated_target(&head)?;
        let peer = head.extensions.get::<Peer>().copied();
        let method = head.method;
        if !self.methods.allows(method.as_str()) {
            return Err(Problem::method(self.methods.allowed.as_deref().unwrap_or_default()));
        }
        let mut headers = head.headers;
        headers::strip_request(&mut headers, &self.relied_on).map_err(|headers::NamesEndToEnd| {
            Problem::malformed(
                "the Connection header names a field that concerns every hop, such as Idempotency-Key; leave it out there",
            )
        })?;
        let key = if is_guarded { self.key_of(&headers)? } else { None };
        let hops = self.hops(&headers, context);
        headers.remove(http::header::HOST);
        self.lists.filter_arriving(&mut headers);
        if self.traceparent == Traceparent::Drop {
            headers.remove(TRACEPARENT);
            headers.remove(TRACESTATE);
        }
        headers::set(&mut headers, REQUEST_ID, context.request_id.as_str());
        headers::set(&mut headers, HOPS, &hops.to_string());
        let body = Timed::request(body, limits.body_idle, limits.body);
        Ok(AdmittedRequest { call: UpstreamRequest { method, target, headers }, body, peer, key })
    }

    /// The key of a request that changes state. On all others it means nothing, and is not looked at.
    fn key_of(&self, headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Problem> {
        let fields = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        match (key::read(fields), &self.key) {
            (Ok(None), KeyRule::Required { status, code }) => {
                Err(Problem::of_key(KeyError::Missing).called(*status, code))
            }
            (Ok(found), KeyRule::Required { .. } | KeyRule::Optional) => Ok(found),
            (Err(error), _) => Err(Problem::of_key(error)),
        }
    }

    fn hops(&self, headers: &HeaderMap, context: &RequestContext) -> Hops {
        let before = if self.is_edge { Hops::default() } else { Hops::read(headers.get_all(HOPS)) };
        before.and(Hop { name: self.name.clone(), at: clock::now(), request_id: context.request_id.clone() })
    }

    /// Takes out of a request what may not go out to the upstream.
    pub(crate) fn filter_outbound(&self, call: &mut UpstreamRequest) {
        self.lists.filter_leaving(&mut call.headers);
    }

    /// Takes out of an upstream's answer what may not pass.
    pub(crate) fn filter_response<B>(&self, answer: &mut Response<B>) {
        headers::strip_answer(answer.headers_mut());
        self.lists.filter_answer(answer.headers_mut());
    }

    /// Makes an answer, the upstream's or our own, ready for the client.
    pub(crate) fn finish_response<B>(&self, response: &mut Response<B>, context: &RequestContext) {
        let headers = response.headers_mut();
        match (self.echo_key, &context.key_field) {
            (Some(true), Some(field)) => drop(headers.insert(KEY, field.clone())),
            (Some(false), _) => {
                headers.remove(KEY);
                headers.remove(X_KEY);
            }
            (Some(true), None) | (None, _) => {}
        }
        headers::set(headers, REQUEST_ID, context.request_id.as_str());
    }
}

fn fresh_id() -> RequestId {
    let id = Uuid::now_v7().to_string();
    RequestId::parse(&id).unwrap_or_else(|_| unreachable!("a UUID is hexadecimal digits and hyphens"))
}
