//! Routes requests to handlers.

mod export;
mod icon;
mod import;
mod in_flight;
mod list;
mod one;
mod reprocess;
mod save;
mod session;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use ichido::once::{IdentityError, KeyNeed, OnceConfigErrors};
use ichido::prelude::*;
use serde::Serialize;
use serde_json::json;

use self::reprocess::Replaced;
use crate::access::{self, AuthenticatedCaller};
use crate::app::App;
use crate::database::on;
use crate::problem::{Code, Problem};
use crate::settings::limits;
use crate::{assets, jobs, metrics, stats};

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; \
     worker-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
);
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Returns the router of everything that is served.
pub(crate) fn router(app: &Arc<App>) -> Result<Router, OnceConfigErrors> {
    let keeper = on!(&app.database, ichido => ichido.keeper());
    let save = protected(Once::operation("bookmarks.create"), app);
    let save = save.max_request_bytes(limits::MAX_BODY_BYTES).build(keeper)?;
    let retry_layer = protected(Once::operation("bookmarks.reprocess"), app).key(KeyNeed::Optional);
    let retry_layer = retry_layer.max_request_bytes(limits::MAX_BODY_BYTES).build(keeper)?;
    let import = on_own_rows(Once::operation("bookmarks.import"), app).guarantee(Guarantee::Idempotent);
    let import = import.key(KeyNeed::Optional).max_request_bytes(limits::MAX_IMPORT_BYTES).build(keeper)?;
    let import: MethodRouter<Arc<App>> = post(import::import).layer(import);
    let data = Router::new()
        .route(access::IMPORT, import.layer(DefaultBodyLimit::max(limits::MAX_IMPORT_BYTES)))
        .route("/v1/export", get(export::export))
        .route("/v1/me", get(me))
        .route(
            "/v1/bookmarks",
            post(save::save).layer(save).layer(from_fn(in_flight::show_saving)).get(list::list),
        )
        .route("/v1/bookmarks/{id}", get(one::show).patch(one::edit).delete(one::delete))
        .route("/v1/icons/{id}", get(icon::show))
        .route("/v1/bookmarks/{id}/reprocess", post(reprocess::reprocess).layer(retry_layer))
        .layer(from_fn_with_state(Arc::clone(app), wake))
        .layer(from_fn_with_state(Arc::clone(app), access::require_sign_in));
    Ok(assets::routes()
        .merge(data)
        .route("/session", post(session::sign_in).delete(session::sign_out))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(metrics::ready))
        .route("/metrics", get(metrics::page))
        .route("/stats", get(stats::page))
        .fallback(unknown)
        .method_not_allowed_fallback(async || {
            Problem::new(Code::MethodNotAllowed, "method not allowed for this path")
        })
        .layer(DefaultBodyLimit::max(limits::MAX_BODY_BYTES))
        .layer(from_fn(with_policies))
        .with_state(Arc::clone(app)))
}

/// An operation in the layer's transaction.
fn protected(once: Once, app: &App) -> Once {
    on_own_rows(once, app).guarantee(on!(&app.database, ichido => ichido.transactional()))
}

/// An operation on the app's own rows, with the caller as the identity.
// SPEC A2, C3.
fn on_own_rows(once: Once, app: &App) -> Once {
    once.class(Class::Mutate).ttl(app.settings.keep_responses).lease(limits::KEY_LEASE).identity(|parts| {
        let caller = parts.extensions.get::<AuthenticatedCaller>();
        caller.map(|caller| caller.person.id.to_string()).ok_or(IdentityError::Forbidden)
    })
}

/// The layer commits after the handler has returned, so replaced jobs are cancelled and the worker is woken here.
async fn wake(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let is_read = request.method().is_safe();
    let response = next.run(request).await;
    if let Some(replaced) = response.extensions().get::<Replaced>() {
        replaced.cancel(&app.store).await;
    }
    if !is_read {
        app.store.queues().wake(&jobs::extraction_queue());
    }
    response
}

async fn me(Extension(caller): Extension<AuthenticatedCaller>) -> Response {
    answer(StatusCode::OK, &json!({ "id": caller.person.id, "name": caller.person.name }))
}

/// Returns a page to a browser and a problem to a program.
async fn unknown(headers: HeaderMap) -> Response {
    let is_page = |accept: &HeaderValue| accept.to_str().is_ok_and(|accept| accept.contains("text/html"));
    if headers.get(ACCEPT).is_some_and(is_page) {
        return (StatusCode::NOT_FOUND, assets::not_found()).into_response();
    }
    Problem::new(Code::PathUnknown, "the path does not exist").into_response()
}

/// Sets a policy that allows only our own scripts and sends no referrer.
async fn with_policies(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Returns a JSON response that no browser caches: it would still be there after signing out.
fn answer(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(body) => (status, as_json(), body).into_response(),
        Err(error) => {
            tracing::error!(%error, "could not serialise response");
            Problem::new(Code::Failed, "the response could not be serialised").into_response()
        }
    }
}

fn as_json() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers
}
