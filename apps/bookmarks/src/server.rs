//! The HTTP server and its limits.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ichido_http::server::RequestHandler;
use ichido_http::server::body::ResponseBody;
use ichido_http::server::limits::Limits;
use tokio::time::timeout;
use tower_service::Service as _;

use crate::access;
use crate::problem::{Code, Problem};
use crate::settings::limits;

/// Time limits for clients, and their maximum number.
pub(crate) const LIMITS: Limits = Limits {
    max_connections: limits::MAX_CLIENTS,
    max_peer_connections: None,
    head: limits::HEAD_WAIT,
    body_idle: limits::REQUEST_WAIT,
    body: limits::REQUEST_WAIT,
    drain: limits::DRAIN_WITHIN,
};
/// When a client may retry that found the server full.
const OVERLOADED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Serves requests from a router.
pub(crate) struct BookmarkServer(pub(crate) Router);

impl RequestHandler for BookmarkServer {
    async fn handle(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        // The timeout of the whole request bounds its body too.
        let is_import = request.uri().path() == access::IMPORT;
        let wait = if is_import { limits::IMPORT_WAIT } else { limits::REQUEST_WAIT };
        let answered = timeout(wait, self.0.clone().call(request.map(Body::new))).await;
        boxed(answered.map_or_else(|_| late().into_response(), |Ok(response)| response))
    }

    fn is_health(&self, request: &Request<Incoming>) -> bool {
        matches!(request.uri().path(), "/livez" | "/readyz" | "/metrics")
    }

    fn overloaded(&self, _: &Request<Incoming>) -> Response<ResponseBody> {
        let detail = "too many requests are in flight; retry the same request with the same key";
        boxed(Problem::new(Code::Overloaded, detail).after(OVERLOADED_RETRY_AFTER).into_response())
    }
}

/// The request may still take effect, and the same key gets its outcome.
fn late() -> Problem {
    let detail = "the request was not received or completed in time; retry it with the same key";
    Problem::new(Code::RequestTimeout, detail)
}

fn boxed(response: Response) -> Response<ResponseBody> {
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}
