//! Middleware before every route: limits the head of a request and authenticates its caller.
//!
//! Guarantee: no handler sees an unauthenticated request, except on the paths that reveal nothing about messages.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use http::header::X_CONTENT_TYPE_OPTIONS;
use ichido_core::settings::size;
use ichido_http::problem::NOSNIFF;

use super::access::Access;
use super::api::is_public;
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

    /// Wraps the pages of the dashboard, which authenticate their visitors themselves.
    pub(super) fn wrap_pages(&self, pages: Router) -> Router {
        pages.layer(from_fn_with_state(self.request_limits, guard_page))
    }
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
