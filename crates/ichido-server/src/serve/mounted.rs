//! The API inside another axum app.
//!
//! Guarantee: it behaves like a server with the same store and configuration, except that it always requires a token, because it
//! does not know what the app listens on. It delivers nothing; that takes a worker, in this process or another.

use std::sync::Arc;

use axum::Router;
use ichido_http::server::limits::{MAX_BODIES_BYTES, MAX_BODIES_BYTES_OF_ONE};
use ichido_http::server::permits::Permits;
use ichido_store::Store;

use super::access::Access;
use super::admission::Admission;
use super::api::{ApiState, routes};
use super::feed;
use super::guard::RequestGuard;
use super::in_process;
use super::waiting::OutcomeWaiters;
use crate::config::Config;

/// Returns the routes of the API, to merge into an app. They begin with `/v1/` or `/errors`, except `/openapi.json`.
///
/// Create tokens with `ichido token create` on the same store.
pub async fn mount(store: Store, config: &Config) -> Router {
    let (api, access) = state(store, config).await;
    let guard = RequestGuard { access, request_limits: api.request_limits };
    guard.wrap(routes().with_state(api))
}

/// Returns the state of an API without a server, with its event feed.
pub(super) async fn state(store: Store, config: &Config) -> (Arc<ApiState>, Arc<Access>) {
    let api = in_process::api(store.clone(), Some(config));
    let api = Arc::new(ApiState {
        admission: Admission::start(store.clone(), &api.queues).await,
        waiting: OutcomeWaiters::start(store.clone(), api.request_limits.max_waiters),
        bodies: Permits::new(MAX_BODIES_BYTES, MAX_BODIES_BYTES_OF_ONE),
        ..api
    });
    let access = Arc::new(Access::tokens_only(store));
    tokio::spawn(feed::run(Arc::clone(&api), Arc::clone(&access)));
    (api, access)
}
