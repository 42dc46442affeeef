//! How the service is: ready, and measured (SPEC A14). What is counted is the engine's.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use ichido::prometheus;
use ichido_store::error::StoreError;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::access::{is_bearer, needs_own_host};
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::settings::limits::READY_WITHIN;

const FOLD_EVERY: Duration = Duration::from_secs(5);
const READY_RETRY_AFTER: Duration = Duration::from_secs(1);

/// What is measured is one for a program, as its counters are.
static MEASURED: OnceLock<Result<PrometheusHandle, String>> = OnceLock::new();

/// Begins to measure, once in a program.
pub(crate) fn begin() -> Result<(), String> {
    let begun = MEASURED.get_or_init(|| {
        let handle = prometheus::begin().map_err(|error| error.to_string())?;
        Ok(handle)
    });
    begun.as_ref().map(|_| ()).map_err(Clone::clone)
}

/// Folds what was measured now and then, so that it takes no room while nobody asks.
pub(crate) async fn tend() {
    let mut fold = interval(FOLD_EVERY);
    fold.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        fold.tick().await;
        if let Some(Ok(handle)) = MEASURED.get() {
            handle.run_upkeep();
        }
    }
}

/// Whether it should get requests: its database answers, and its worker works.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    let unready = |what: &'static str| Problem::new(Code::NotReady, what).after(READY_RETRY_AFTER);
    match timeout(READY_WITHIN, app.store.check_ready()).await {
        Ok(Ok(())) if *app.worker_lives.borrow() => Ok("ready\n"),
        Ok(Ok(())) => Err(unready("the worker has ended; the log says why")),
        Ok(Err(StoreError::Full)) => Err(unready("the disk is full")),
        Ok(Err(_)) => Err(unready("the database does not answer as it should")),
        Err(_) => Err(unready("the database does not answer")),
    }
}

/// What was measured, for Prometheus: on this machine for everybody who names it, from elsewhere for who has a token.
pub(crate) async fn page(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    let is_inner = app.settings.listen.ip().is_loopback() && app.settings.public_origin.is_none();
    if is_inner {
        needs_own_host(&headers)?;
    } else if !is_bearer(&app, &headers).await? {
        return Err(Problem::signed_out());
    }
    let text = match MEASURED.get() {
        Some(Ok(handle)) => prometheus::page(handle),
        Some(Err(_)) | None => String::new(),
    };
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
