//! The event stream of a page: the API's own feed, for the visitor of the session.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{Method, Uri};

use super::Dashboard;
use super::shell::{PageRefusal, Visitor};

/// Streams changes. One task polls the store for all listeners.
pub(super) async fn stream(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    dashboard.call(visitor.caller()?, Method::GET, &format!("/v1/events{query}"), String::new()).await
}
