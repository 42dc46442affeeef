//! The pages of `docs/errors`, which the `type` of a problem refers to.
//!
//! Guarantee: every code of the server, the layer and the proxy has one page, and a page shows nothing of a request or a message.
//! So a page needs no token, and caches may store it.

mod html;

use axum::response::Response;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::problem::{Code, Problem};
use super::request::Segment;
use super::response::with_type;

/// The list of all codes.
const INDEX: &str = include_str!("../../../../docs/errors/README.md");
/// A browser may use a page for an hour; a page changes only with the program.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=3600");
/// The pages load nothing, not even a style.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

macro_rules! pages {
    ($($code:literal)+) => {
        /// Every code with its page, in Markdown.
        const PAGES: &[(&str, &str)] =
            &[$(($code, include_str!(concat!("../../../../docs/errors/", $code, ".md"))),)+];
    };
}

pages! {
    "action_refused" "adapter_busy" "batch_too_large" "batches_full" "bodies_full" "body_incomplete" "body_invalid" "body_timeout"
    "body_too_large" "body_unexpected" "decided_refused" "decision_refused" "destination_unknown" "feed_full" "framing_invalid"
    "group_unknown" "handler_failed" "head_too_large" "host_not_allowed" "identity_invalid" "identity_missing" "key_conflict" "key_in_flight"
    "key_invalid" "key_mismatch" "key_missing" "line_invalid" "loop_detected" "media_type_unsupported" "message_unknown"
    "method_not_allowed" "method_override" "not_ready" "operation_not_configured" "operation_refused" "operation_unknown"
    "origin_not_allowed" "outcome_unknown" "parameter_invalid" "proxy_busy" "queue_full" "queue_unknown" "record_unknown"
    "record_unreadable" "request_malformed" "response_not_stored" "role_insufficient" "route_unknown" "schema_mismatch" "server_busy"
    "store_refused" "store_unavailable" "token_busy" "token_invalid" "token_missing" "transaction_contended" "transaction_failed"
    "upgrade_unsupported" "upstream_lost" "upstream_timeout" "upstream_unreachable"
}

/// Lists the codes of all errors.
///
/// The page is HTML for a browser, and Markdown for every other client.
#[utoipa::path(
    get,
    path = "/errors",
    tag = "errors",
    responses((status = 200, description = "The list", content((String = "text/markdown"), (String = "text/html")))),
)]
pub(super) async fn list_error_pages(headers: HeaderMap) -> Response {
    page(INDEX, &headers)
}

/// Returns the page of one error code.
///
/// The `type` of a problem refers to it. The page is HTML for a browser, and Markdown for every other client.
#[utoipa::path(
    get,
    path = "/errors/{code}",
    tag = "errors",
    params(("code" = String, Path, description = "The `code` of a problem")),
    responses(
        (status = 200, description = "The page", content((String = "text/markdown"), (String = "text/html"))),
        (status = 404, description = "No error has this code"),
    ),
)]
pub(super) async fn get_error_page(Segment(code): Segment, headers: HeaderMap) -> Result<Response, Problem> {
    find(&code, &headers)
}

/// Returns the page at a path; `None` if the path belongs to something else.
pub(super) fn at(path: &str, headers: &HeaderMap) -> Option<Result<Response, Problem>> {
    match path.strip_prefix("/errors")? {
        "" => Some(Ok(page(INDEX, headers))),
        rest => Some(find(rest.strip_prefix('/')?, headers)),
    }
}

/// Whether a path is that of a page.
pub(super) fn is_page(path: &str) -> bool {
    path == "/errors" || path.starts_with("/errors/")
}

fn find(code: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    // The pages refer to each other by the names of their files.
    let code = code.strip_suffix(".md").unwrap_or(code);
    let found = PAGES.iter().find(|(known, _)| *known == code);
    let (_, text) = found
        .ok_or_else(|| Problem::new(Code::RouteUnknown, "no error has this code; /errors lists all codes"))?;
    Ok(page(text, headers))
}

fn page(markdown: &'static str, headers: &HeaderMap) -> Response {
    let mut response = if accepts_html(headers) {
        with_type(StatusCode::OK, "text/html; charset=utf-8", html::page(markdown))
    } else {
        with_type(StatusCode::OK, "text/markdown; charset=utf-8", markdown)
    };
    let fields = response.headers_mut();
    fields.insert(CACHE_CONTROL, CACHED);
    fields.insert(VARY, HeaderValue::from_static("accept"));
    fields.insert(CONTENT_SECURITY_POLICY, POLICY);
    response
}

/// Whether the client names HTML, as browsers do. curl accepts everything and names nothing.
pub(super) fn accepts_html(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = values.flat_map(|value| value.split(',')).filter_map(|range| range.split(';').next());
    types.any(|name| name.trim().eq_ignore_ascii_case("text/html"))
}

#[cfg(test)]
mod tests;
