//! The role `adapter`: the last component before the side effect, which completes idempotency.
//!
//! Guarantee: a request that belongs to an operation goes through the ledger ([`ichido::once`]) and takes effect
//! once, as far as the operation's mode can guarantee it. A request that may change state but belongs to no operation
//! is refused, because it would be unprotected. So is a request that overrides its own method. All other requests
//! stream through.
// Spec: C2.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use ichido::once::{self, Claim, LeaseKeeper, Once, OnceLayer, RequestOutcome};
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::OperationGuarantee;
use ichido_core::settings::ConfigErrors;
use ichido_core::verdict::{Effect, ErrorCode, VerdictTable};
use ichido_http::clock;
use ichido_http::server::Peer;
use ichido_http::server::body::{BodyError, ResponseBody, Timed};
use ichido_http::server::limits::{Limits, MAX_BODIES_BYTES, MAX_BODIES_BYTES_OF_ONE};
use ichido_http::server::metered::{BodyPermit, MeteredBody};
use ichido_http::server::permits::Permits;
use tower_layer::Layer as _;
use tower_service::Service as _;

use super::body::Upload;
use super::filters::{AdmittedRequest, FilterRules, RequestContext};
use super::forward::judge_response;
use super::headers::{KEY, STATUS, X_KEY, strip_reports};
use super::method;
use super::problem::Problem;
use super::route::Pattern;
use super::settings::{AdapterSettings, OperationSettings, Protection};
use super::upstream::{Failure, Upstream, UpstreamRequest};

/// The service behind the adapter, and its operations.
pub(crate) struct AdapterRole {
    pub(crate) rules: Arc<FilterRules>,
    pub(crate) limits: Limits,
    pub(crate) upstream: Arc<Upstream>,
    /// Counts the requests in flight.
    pub(crate) keeper: LeaseKeeper,
    /// How long the service may take until its response begins.
    pub(crate) response_timeout: Duration,
    /// In order of precedence.
    pub(crate) routes: Vec<Route>,
    /// The header fields of a replay, if not all the stored ones are sent.
    pub(crate) replayed_fields: Option<Vec<String>>,
    /// Memory permits for bodies that go through the ledger.
    pub(crate) bodies: Permits<Peer>,
}

/// One operation.
pub(crate) struct Route {
    pub(crate) methods: Vec<Method>,
    pub(crate) pattern: Pattern,
    pub(crate) guard: OperationGuard,
}

/// The protection of an operation.
pub(crate) enum OperationGuard {
    /// The ledger.
    Once(once::OnceService<UpstreamHandler>),
    /// Nothing: the operation only reads.
    // Spec: C11.
    None,
}

/// Wraps the service in the ledger, operation by operation.
pub(crate) fn build(
    settings: AdapterSettings,
    keeper: &LeaseKeeper,
    rules: FilterRules,
    limits: Limits,
    upstream: Upstream,
    response_timeout: Duration,
) -> Result<AdapterRole, ConfigErrors> {
    let (rules, upstream) = (Arc::new(rules), Arc::new(upstream));
    let mut routes = Vec::new();
    for OperationSettings { name, methods, pattern, protection } in settings.operations {
        let guard = match protection {
            None => OperationGuard::None,
            Some(protection) => {
                let service_key = protection.service_key;
                let holds_unknown =
                    matches!(protection.draft.guarantee, None | Some(OperationGuarantee::None));
                let layer = layer(&name, &methods, protection, keeper)?;
                let (rules, upstream) = (Arc::clone(&rules), Arc::clone(&upstream));
                OperationGuard::Once(layer.layer(UpstreamHandler {
                    rules,
                    upstream,
                    response_timeout,
                    service_key,
                    holds_unknown,
                }))
            }
        };
        routes.push(Route { methods, pattern, guard });
    }
    let replayed_fields = settings.replayed_fields;
    let bodies = Permits::new(MAX_BODIES_BYTES, MAX_BODIES_BYTES_OF_ONE);
    let keeper = keeper.clone();
    Ok(AdapterRole { rules, limits, upstream, keeper, response_timeout, routes, replayed_fields, bodies })
}

fn layer(
    name: &str,
    methods: &[Method],
    protection: Protection,
    keeper: &LeaseKeeper,
) -> Result<OnceLayer, ConfigErrors> {
    let Protection { draft, identity, extra_inputs, form, max_request_bytes, .. } = protection;
    let effect = match draft.guarantee {
        Some(OperationGuarantee::Idempotent) => once::Guarantee::Idempotent,
        Some(OperationGuarantee::Keyed) => once::Guarantee::Keyed,
        // Transactional was refused earlier; none guarantees nothing.
        Some(OperationGuarantee::None | OperationGuarantee::Transactional) | None => once::Guarantee::None,
    };
    let mut once = Once::operation(name)
        .policy(draft)
        .guarantee(effect)
        .caller(move |head| identity.caller(head, &extra_inputs))
        .methods(methods.iter().cloned())
        .json_form(form);
    if let Some(bytes) = max_request_bytes {
        once = once.max_request_bytes(bytes);
    }
    once.build(keeper).map_err(|errors| ConfigErrors::one(name, errors.to_string()))
}

impl AdapterRole {
    /// Handles a request.
    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
        context: &RequestContext,
    ) -> Result<Response<ResponseBody>, Problem> {
        let route = self.route(request.method(), request.uri().path());
        let is_declared = route.is_some();
        let guarded = match route.map(|route| &route.guard) {
            Some(OperationGuard::Once(service)) => Some(service.clone()),
            Some(OperationGuard::None) | None => None,
        };
        let AdmittedRequest { mut call, body, peer, .. } =
            self.rules.admit(request, context, &self.limits, guarded.is_some())?;
        if !is_declared && self.may_change_state(&call.method) {
            return Err(Problem::operation_not_configured());
        }
        // The fingerprint covers the query and the body of a guarded request, but not these headers.
        if method::header_overrides(&call.method, &call.headers)
            || (guarded.is_none() && method::query_overrides(&call.method, call.target.query()))
        {
            return Err(Problem::method_override());
        }
        // A request continues when its client disconnects, so the connection limit does not bound it.
        if guarded.is_some() && self.limits.max_connections <= self.keeper.in_flight() {
            return Err(Problem::busy());
        }
        let Some(mut service) = guarded else {
            self.rules.filter_outbound(&mut call);
            let upload = Upload::streamed(Bytes::new(), body);
            let mut response =
                self.upstream.send_once(&self.rules, &call, upload, self.response_timeout).await?;
            strip_reports(response.headers_mut());
            return Ok(response);
        };
        let permit = BodyPermit::new(self.bodies.empty(peer));
        let answered = service.call(layer_request(call, body, &permit)).await;
        // The layer knows only that the body ended early, and has done nothing in that case.
        match permit.fault() {
            Some(BodyError::NoMemory(full)) => return Err(Problem::bodies_full(full)),
            Some(fault @ (BodyError::Idle | BodyError::TooSlow)) => {
                return Err(Problem::no_response(Failure::Upload(fault), Effect::NotDone));
            }
            Some(BodyError::Cut) | None => (),
        }
        let mut response = answered.unwrap_or_else(|never| match never {});
        self.narrow_replay(response.headers_mut());
        Ok(response.map(BodyExt::boxed_unsync))
    }

    /// Whether the method may change state: every method that HTTP does not define as safe.
    fn may_change_state(&self, method: &Method) -> bool {
        !method.is_safe() || self.rules.methods.changes_state(method.as_str())
    }

    fn route(&self, method: &Method, path: &str) -> Option<&Route> {
        self.routes.iter().find(|route| route.methods.contains(method) && route.pattern.matches(path))
    }

    /// Removes from a replay the fields that the boundary file does not list.
    fn narrow_replay(&self, headers: &mut HeaderMap) {
        const ALWAYS: [&str; 4] =
            ["content-type", "content-encoding", "idempotency-replayed", "idempotent-replayed"];
        let is_replay = ALWAYS[2..].iter().any(|marker| headers.contains_key(*marker));
        let Some(listed) = self.replayed_fields.as_ref().filter(|_| is_replay) else { return };
        let passes =
            |name: &str| ALWAYS.contains(&name) || listed.iter().any(|one| one.eq_ignore_ascii_case(name));
        let dropped: Vec<_> = headers.keys().filter(|name| !passes(name.as_str())).cloned().collect();
        for name in dropped {
            headers.remove(name);
        }
    }
}

/// The body of a request, counted against the memory for bodies.
type LedgerBody = MeteredBody<Timed, Peer>;

/// Builds the layer's request, whose path and query are part of its fingerprint.
///
/// The permit for its body travels with it: a request that has started continues, and holds its body, when its client
/// disconnects.
fn layer_request(call: UpstreamRequest, body: Timed, permit: &Arc<BodyPermit<Peer>>) -> Request<LedgerBody> {
    let mut request = Request::new(MeteredBody::new(body, Arc::clone(permit)));
    request.extensions_mut().insert(Arc::clone(permit));
    *request.method_mut() = call.method;
    *request.uri_mut() = call.target.into();
    *request.headers_mut() = call.headers;
    request
}

/// The handler that the layer runs: the call to the service.
#[derive(Clone)]
pub(crate) struct UpstreamHandler {
    pub(crate) rules: Arc<FilterRules>,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) response_timeout: Duration,
    pub(crate) service_key: ServiceKey,
    /// Whether a retry after an unknown outcome finds its key held.
    pub(crate) holds_unknown: bool,
}

/// Which key the service gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceKey {
    /// The client's key, byte for byte.
    Clients,
    /// A key derived from operation, identity and key.
    ///
    /// Equal keys of two callers never collide at the service.
    Derived,
}

/// The step of the action that the derived key names.
const STEP: &str = "service";

impl tower_service::Service<Request<once::Body<LedgerBody>>> for UpstreamHandler {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<once::Body<LedgerBody>>) -> Self::Future {
        let handler = self.clone();
        Box::pin(async move { Ok(handler.run(request).await) })
    }
}

impl UpstreamHandler {
    async fn run(&self, request: Request<once::Body<LedgerBody>>) -> Response<ResponseBody> {
        let (head, body) = request.into_parts();
        let bytes = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            // The layer has already read the whole body, so this does not happen; if it did, nothing was sent.
            Err(fault) => return failed(Failure::Upload(fault), Effect::NotDone, self.holds_unknown),
        };
        let Some(target) = head.uri.path_and_query().cloned() else {
            return failed(Failure::Upload(BodyError::Cut), Effect::NotDone, self.holds_unknown);
        };
        let mut headers = head.headers;
        // The service gets the same bytes on every attempt, however the client spells the key.
        if let Some(claim) = head.extensions.get::<Claim>() {
            match self.service_key {
                ServiceKey::Derived => replace_key(&mut headers, &claim.key_for(STEP)),
                ServiceKey::Clients => replace_key(&mut headers, &claim.name.key),
            }
        }
        let mut call = UpstreamRequest { method: head.method, target, headers };
        self.rules.filter_outbound(&mut call);
        match self.upstream.send(&call, Upload::whole(bytes), self.response_timeout).await {
            Ok(answer) => {
                let outcome = response_outcome(&answer);
                let mut response = self.upstream.stream_response(&self.rules, answer);
                strip_reports(response.headers_mut());
                if outcome == RequestOutcome::StillRunning {
                    response.headers_mut().insert(STATUS, HeaderValue::from_static("processing"));
                }
                if self.service_key == ServiceKey::Derived {
                    // A service that echoes the key would show one that the client never sent.
                    response.headers_mut().remove(KEY);
                    response.headers_mut().remove(X_KEY);
                }
                response.extensions_mut().insert(outcome);
                response
            }
            Err(failure) => failed(failure, failure.effect(), self.holds_unknown),
        }
    }
}

/// Replaces the key in each field that has it.
fn replace_key(headers: &mut HeaderMap, key: &IdempotencyKey) {
    for name in [KEY, X_KEY] {
        if headers.contains_key(&name) {
            super::headers::set(headers, name, &key.to_header_value());
        }
    }
}

/// Builds our own response instead of the service's, with the outcome for the ledger.
fn failed(failure: Failure, effect: Effect, holds_unknown: bool) -> Response<ResponseBody> {
    let problem = match effect {
        Effect::Unknown if holds_unknown => Problem::held(failure),
        Effect::NotDone | Effect::Done | Effect::Unknown => Problem::no_response(failure, effect),
    };
    let mut response = problem.into_response();
    response.extensions_mut().insert(match effect {
        Effect::NotDone => RequestOutcome::NotStarted,
        Effect::Done | Effect::Unknown => RequestOutcome::Lost,
    });
    response
}

/// Reads the outcome from a response's status.
///
/// The service's own idempotency layer may report that it is still working.
fn response_outcome(answer: &Response<Incoming>) -> RequestOutcome {
    match judge_response(answer, |seen| VerdictTable::http().judge(seen, clock::now()).code) {
        Some(ErrorCode::InProgress) => RequestOutcome::StillRunning,
        _ => RequestOutcome::Responded { status: answer.status().as_u16() },
    }
}
