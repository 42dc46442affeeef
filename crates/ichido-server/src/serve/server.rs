//! Handles one request, from its head to its response.
//!
//! Guarantee: every response has a new `x-request-id`, and every refusal is a problem. Authorization is decided before the body
//! is read.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse as _;
use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ichido::prometheus::{count_request, method_label};
use ichido_core::key;
use ichido_http::server::body::{ResponseBody, Timed};
use ichido_http::server::limits::Limits;
use ichido_http::server::{MalformedRequest, RequestHandler};
use metrics::Gauge;
use tower_service::Service as _;
use tracing::Level;
use uuid::Uuid;

use super::access::Access;
use super::api::{ApiState, is_health, router};
use super::arrivals;
use super::dashboard;
use super::feed;
use super::guard::RequestGuard;
use super::problem::{Code, Problem};
use super::waiting::WAITING;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The number of requests in flight.
const IN_FLIGHT: &str = "ichido_http_in_flight";

/// The service behind the HTTP server.
pub(super) struct ApiServer {
    router: Router,
    api: Arc<ApiState>,
    limits: Limits,
    in_flight: Gauge,
}

impl ApiServer {
    pub(super) fn new(api: ApiState, access: Access, limits: Limits) -> Self {
        let api = Arc::new(api);
        let access = Arc::new(access);
        tokio::spawn(feed::run(Arc::clone(&api), Arc::clone(&access)));
        let (pages, no_page) = dashboard::pages_of_server(Arc::clone(&api), Arc::clone(&access));
        let guard = RequestGuard { access, request_limits: api.request_limits };
        let (pages, no_page) = (guard.wrap_pages(pages), guard.wrap_pages(no_page));
        let api_routes = RequestGuard::wrap_unknown(guard.wrap(router(Arc::clone(&api))), no_page);
        let router = api_routes.merge(pages);
        Self { router, api, limits, in_flight: metrics::gauge!(IN_FLIGHT) }
    }

    async fn route(&self, request: Request<Incoming>) -> Response<Body> {
        let timed = |body| Body::new(Timed::request(body, self.limits.body_idle, self.limits.body));
        let answered = self.router.clone().call(request.map(timed)).await;
        answered.unwrap_or_else(|never| match never {})
    }
}

impl RequestHandler for ApiServer {
    async fn handle(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let _in_flight = InFlightGuard::new(&self.in_flight);
        let log = RequestLog::new(&request);
        log.finish(self.route(request).await)
    }

    fn is_health(&self, request: &Request<Incoming>) -> bool {
        is_health(request.uri().path())
    }

    fn overloaded(&self, request: &Request<Incoming>) -> Response<ResponseBody> {
        RequestLog::new(request).finish(Problem::overloaded().into_response())
    }

    /// The method is unknown, and no handler saw the request.
    fn malformed(&self, fault: MalformedRequest) -> Option<Response<Bytes>> {
        let code = match fault {
            MalformedRequest::Framing(_) | MalformedRequest::Head => Code::FramingInvalid,
            MalformedRequest::HeadTooLarge => Code::HeadTooLarge,
        };
        let problem = Problem::new(code, fault.to_string());
        let status = problem.status.as_u16();
        let id = Uuid::now_v7().to_string();
        count_request(None, status);
        tracing::info!(status, request_id = id, "request rejected");
        let mut response = problem.response();
        response.headers_mut().extend(HeaderValue::try_from(id).ok().map(|id| (REQUEST_ID, id)));
        Some(response)
    }

    fn stopping(&self) {
        self.api.waiting.stop();
        self.api.operations.stop();
        self.api.feed.stop();
    }
}

/// What is logged and counted of a request.
struct RequestLog {
    id: String,
    method: Method,
    key: Option<String>,
}

impl RequestLog {
    fn new(request: &Request<Incoming>) -> Self {
        Self {
            id: Uuid::now_v7().to_string(),
            method: request.method().clone(),
            key: tracing::enabled!(Level::INFO).then(|| key_hash(request.headers())).flatten(),
        }
    }

    fn finish(self, mut response: Response<Body>) -> Response<ResponseBody> {
        let Self { id, method, key } = self;
        let status = response.status().as_u16();
        count_request(Some(&method), status);
        tracing::info!(method = method_label(&method), status, request_id = id, key, "request completed");
        // A UUID consists of hexadecimal digits and hyphens.
        response.headers_mut().extend(HeaderValue::try_from(id).ok().map(|id| (REQUEST_ID, id)));
        response.map(|body| body.map_err(Into::into).boxed_unsync())
    }
}

/// Counts a request as in flight until dropped, even if the client hangs up.
struct InFlightGuard<'a>(&'a Gauge);

impl<'a> InFlightGuard<'a> {
    fn new(gauge: &'a Gauge) -> Self {
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// Describes the metrics of the server.
pub(super) fn describe_metrics() {
    arrivals::describe();
    feed::describe();
    metrics::describe_gauge!(IN_FLIGHT, "Requests in flight");
    metrics::describe_gauge!(WAITING, "Requests that wait for their message's outcome");
    metrics::gauge!(WAITING).set(0.0);
}

/// Returns the hash of the key for logs; `None` without a valid key.
// Spec: C5.
fn key_hash(headers: &HeaderMap) -> Option<String> {
    let fields = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    key::read(fields).ok().flatten().map(|key| key.log_hash())
}
