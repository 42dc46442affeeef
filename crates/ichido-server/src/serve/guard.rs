//! Middleware before every route: limits the head of a request and authenticates its caller.
//!
//! Guarantee: no handler sees an unauthenticated request, except on the paths that reveal nothing about messages.

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use http::Method;
use http::header::X_CONTENT_TYPE_OPTIONS;
use ichido_core::settings::size;
use ichido_http::problem::NOSNIFF;
use tower_service::Service as _;

use super::access::Access;
use super::api::is_public;
use super::error_pages::accepts_html;
use super::problem::{Code, Problem};
use crate::limits::RequestLimits;

/// The access rules, and the limits of a head.
#[derive(Clone)]
pub(super) struct RequestGuard {
    pub(super) access: Arc<Access>,
    pub(super) request_limits: RequestLimits,
}

impl RequestGuard {
    /// Wraps routes with this check.
    pub(super) fn wrap(self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(self, guard_request))
    }

    /// Wraps everything, so a browser at a path that has nothing gets a page.
    pub(super) fn wrap_unknown(routes: Router, no_page: Router) -> Router {
        routes.layer(from_fn_with_state(no_page, page_or_problem))
    }

    /// Wraps the pages of the dashboard, which authenticate their visitors themselves.
    pub(super) fn wrap_pages(&self, pages: Router) -> Router {
        pages.layer(from_fn_with_state(self.request_limits, guard_page))
    }
}

async fn page_or_problem(State(no_page): State<Router>, request: Request, next: Next) -> Response {
    let is_unknown = request.extensions().get::<MatchedPath>().is_none();
    if is_unknown && request.method() == Method::GET && accepts_html(request.headers()) {
        return no_page.clone().call(request).await.unwrap_or_else(|never| match never {});
    }
    next.run(request).await
}

async fn guard_page(State(limits): State<RequestLimits>, request: Request, next: Next) -> Response {
    let mut response = match check_head(&request, limits) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

async fn guard_request(State(guard): State<RequestGuard>, mut request: Request, next: Next) -> Response {
    let mut response = match authorize(&guard, &mut request).await {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    // A browser must not guess that stored text is a page.
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    response
}

async fn authorize(guard: &RequestGuard, request: &mut Request) -> Result<(), Problem> {
    check_head(request, guard.request_limits)?;
    if !is_public(request.uri().path()) {
        let caller = guard.access.admit(request.method(), request.uri(), request.headers()).await?;
        request.extensions_mut().insert(caller);
    }
    Ok(())
}

/// Checks the size of the head.
///
/// The HTTP server has wider limits, which its own refusals name.
fn check_head(request: &Request, request_limits: RequestLimits) -> Result<(), Problem> {
    let fields: usize =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let RequestLimits { max_headers, max_head_bytes, .. } = request_limits;
    if max_headers < request.headers().len() || max_head_bytes < fields + target {
        let detail = format!(
            "the request has more than {max_headers} header fields or {} of them; send fewer",
            size::format_in_text(max_head_bytes)
        );
        return Err(Problem::new(Code::HeadTooLarge, detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use http::StatusCode;
    use http::header::ACCEPT;

    use super::*;

    #[tokio::test]
    async fn a_browser_gets_a_page_where_nothing_is() {
        let no_page = Router::new().fallback(async || (StatusCode::NOT_FOUND, "page"));
        let api = Router::new().route("/v1", get(async || "api"));
        let api = api.fallback(async || StatusCode::UNAUTHORIZED);
        let routes = RequestGuard::wrap_unknown(api, no_page);
        for (method, path, accept, expected) in [
            (Method::GET, "/no", "text/html,*/*", StatusCode::NOT_FOUND),
            (Method::GET, "/no", "*/*", StatusCode::UNAUTHORIZED),
            (Method::POST, "/no", "text/html", StatusCode::UNAUTHORIZED),
            (Method::GET, "/v1", "text/html", StatusCode::OK),
        ] {
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method.clone();
            *request.uri_mut() = path.parse().expect("a path");
            request.headers_mut().insert(ACCEPT, accept.parse().expect("a value"));
            let response = routes.clone().call(request).await.expect("an answer");
            assert_eq!(response.status(), expected, "{method} {path} {accept}");
        }
    }
}
