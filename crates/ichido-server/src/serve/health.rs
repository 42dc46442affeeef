//! Health and metrics.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use ichido::prometheus::render;
use ichido_store::Store;
use serde::Deserialize;
use serde_json::json as value;
use tokio::time::timeout;

use super::api::ApiState;
use super::caller::ApiCaller;
use super::models::{ReadinessCheck, Ready};
use super::problem::{Code, Problem};
use super::request::parse_query;
use super::response::{json, with_type};
use crate::limits::READY_TIMEOUT;

/// The media type of the metrics page.
pub(super) const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns whether the process runs.
///
/// It does not check the store, whose outage is not a reason to restart the server.
#[utoipa::path(get, path = "/livez", operation_id = "getLiveness", tag = "health", responses((status = 200, description = "The process runs", body = String, content_type = "text/plain")))]
pub(crate) async fn livez() -> Response {
    with_type(StatusCode::OK, "text/plain; charset=utf-8", "ok\n")
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReadinessQuery {
    /// Lists the checks. Any value switches it on.
    verbose: Option<String>,
}

/// Returns whether the server is ready for requests.
///
/// It is ready if its store responds and has disk space, and its worker runs.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "getReadiness",
    tag = "health",
    params(ReadinessQuery),
    responses(
        (status = 200, description = "The server is ready", body = Ready),
        (status = 400, description = "The query is not valid"),
        (status = 503, description = "The server is not ready; `checks` says why"),
    )
)]
pub(super) async fn readyz(State(api): State<Arc<ApiState>>, uri: Uri) -> Result<Response, Problem> {
    let works = *api.worker_lives.borrow();
    ready(Some(&api.store), Some(works), &uri).await
}

/// Reports whether the store responds and the worker runs, if there are any.
///
/// Every server of this program uses it.
pub(crate) async fn ready(
    store: Option<&Store>,
    works: Option<bool>,
    uri: &Uri,
) -> Result<Response, Problem> {
    let ReadinessQuery { verbose } = parse_query(uri)?;
    let mut checks = Vec::new();
    if let Some(store) = store {
        let (ok, detail) = match timeout(READY_TIMEOUT, store.check_ready()).await {
            Ok(Ok(())) => (true, "responds".to_owned()),
            Ok(Err(error)) => (false, error.to_string()),
            Err(_) => (false, format!("did not respond within {} seconds", READY_TIMEOUT.as_secs())),
        };
        checks.push(ReadinessCheck { name: "store", ok, detail });
    }
    if let Some(ok) = works {
        let detail = if ok { "runs" } else { "has stopped; see the log" }.to_owned();
        checks.push(ReadinessCheck { name: "worker", ok, detail });
    }
    if checks.iter().all(|check| check.ok) {
        return Ok(json(StatusCode::OK, &Ready { status: "ready", checks: verbose.map(|_| checks) }));
    }
    let failing: Vec<&str> = checks.iter().filter(|check| !check.ok).map(|check| check.name).collect();
    let detail = format!("checks failed: {}", failing.join(", "));
    Err(Problem::new(Code::NotReady, detail).with("checks", value!(checks)))
}

/// Returns the metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    tag = "health",
    responses(
        (status = 200, description = "Metrics in the Prometheus text format", body = String, content_type = "text/plain"),
    )
)]
pub(super) async fn metrics(
    State(api): State<Arc<ApiState>>,
    Extension(caller): Extension<ApiCaller>,
) -> Result<Response, Problem> {
    caller.require_viewer()?;
    Ok(with_type(StatusCode::OK, METRICS_TYPE, render(&api.metrics)))
}

#[cfg(test)]
mod tests {
    use ichido_core::key::IdempotencyKey;
    use ichido_store::message::{NewMessage, QueueName};
    use ichido_store::testing::sqlite::fresh_file;
    use sqlx::Row as _;

    use super::*;

    #[tokio::test]
    async fn a_full_disk_is_not_ready() {
        let file = fresh_file();
        let store = Store::open(&file.url, 1).await.unwrap();
        let uri = Uri::from_static("/readyz?verbose");
        assert_eq!(ready(Some(&store), Some(true), &uri).await.unwrap().status(), StatusCode::OK);

        let writer = store.sqlite_writer().unwrap();
        let pages: i64 = sqlx::query("PRAGMA page_count").fetch_one(writer).await.unwrap().get(0);
        let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
        sqlx::query(limit).execute(writer).await.unwrap();
        let (queue, key) = (QueueName::parse("orders").unwrap(), IdempotencyKey::parse("k").unwrap());
        let large = NewMessage::new(queue, "alice", key, vec![7; 1 << 20]);
        let refused = store.messages().enqueue(large).await.unwrap_err();
        let refused = Problem::from_store(&refused);
        assert_eq!(refused.code, Code::StoreUnavailable);
        assert!(refused.detail.contains("nothing was done"), "{}", refused.detail);

        let unready = ready(Some(&store), Some(true), &uri).await.unwrap_err();
        assert_eq!(unready.code, Code::NotReady);
        assert!(unready.to_json().to_string().contains("the disk is full"), "{}", unready.to_json());
    }
}
