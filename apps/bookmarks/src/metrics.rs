//! Readiness and metrics of the service. The engine does the counting.
// SPEC A14.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use ichido::prometheus;
use ichido::store::error::StoreError;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::access::allow_totals;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::settings::limits::READY_WITHIN;

const FOLD_EVERY: Duration = Duration::from_secs(5);
const READY_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The recorder is global to a program, like its counters.
static RECORDER: OnceLock<Result<PrometheusHandle, String>> = OnceLock::new();

/// Starts recording, once per program.
pub(crate) fn begin() -> Result<(), String> {
    let started = RECORDER.get_or_init(|| {
        let handle = prometheus::install().map_err(|error| error.to_string())?;
        ichido_llm::judge::describe_metrics();
        Ok(handle)
    });
    started.as_ref().map(|_| ()).map_err(Clone::clone)
}

/// Folds the recorded values now and then, so memory stays bounded while nobody reads them.
pub(crate) async fn tend() {
    let mut fold = interval(FOLD_EVERY);
    fold.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        fold.tick().await;
        if let Some(Ok(handle)) = RECORDER.get() {
            handle.run_upkeep();
        }
    }
}

/// Reports readiness: the database responds, and the worker runs.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    let unready = |what: &'static str| Problem::new(Code::NotReady, what).after(READY_RETRY_AFTER);
    match timeout(READY_WITHIN, app.store.check_ready()).await {
        Ok(Ok(())) if *app.worker_lives.borrow() => Ok("ready\n"),
        Ok(Ok(())) => Err(unready("the worker has stopped; see the log")),
        Ok(Err(StoreError::Full)) => Err(unready("the disk is full; free some space")),
        Ok(Err(_)) => Err(unready("the database failed the readiness check")),
        Err(_) => Err(unready("the database did not respond in time")),
    }
}

/// Returns the metrics for Prometheus.
pub(crate) async fn page(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    allow_totals(&app, &headers).await?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text()).into_response())
}

/// Returns the metrics in Prometheus' text format.
pub(crate) fn text() -> String {
    match RECORDER.get() {
        Some(Ok(handle)) => prometheus::render(handle),
        Some(Err(_)) | None => String::new(),
    }
}
