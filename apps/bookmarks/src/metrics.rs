//! How the service is: ready, and measured (SPEC A14).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, StatusCode};
use ichido::worker::describe_metrics;
use metrics::{counter, describe_counter};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::access::is_bearer;
use crate::app::App;
use crate::problem::Problem;
use crate::settings::limits::READY_WITHIN;

const FOLD_EVERY: Duration = Duration::from_secs(5);
/// Saves, by result and by try.
const SAVES: &str = "bookmarks_saves_total";
/// The number of a client's try, and whether a person or the client itself began it.
const TRY: HeaderName = HeaderName::from_static("ichido-try");

/// What is measured is one for a program, as its counters are.
static MEASURED: OnceLock<Result<PrometheusHandle, String>> = OnceLock::new();

/// Begins to measure, once in a program.
pub(crate) fn begin() -> Result<(), String> {
    let begun = MEASURED.get_or_init(|| {
        let handle = PrometheusBuilder::new().install_recorder().map_err(|error| error.to_string())?;
        describe_metrics();
        describe_counter!(SAVES, "Saves that were done or refused, by which try of its client each came");
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

/// Counts a save by what came of it, and by which try of its client it came: the share of retries that succeed, and of those that people made
/// by hand. The other numbers of SPEC A14 are the engine's.
pub(crate) fn saved(headers: &HeaderMap, status: StatusCode) {
    let result = if status == StatusCode::CREATED || status == StatusCode::OK { "done" } else { "refused" };
    counter!(SAVES, "result" => result, "try" => try_of(headers)).increment(1);
}

/// A client that does not say is taken to try for the first time. (The client's crate has the form: `2; auto`.)
fn try_of(headers: &HeaderMap) -> &'static str {
    let said = headers.get(TRY).and_then(|value| value.to_str().ok()?.split_once(';'));
    match said.map(|(number, cause)| (number.trim(), cause.trim())) {
        Some((number, "auto")) if number != "1" => "auto",
        Some((number, "manual")) if number != "1" => "manual",
        _ => "first",
    }
}

/// Whether it should get requests: its database answers, and its worker works.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    let unready = |what: &str| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", what).after_secs(1);
    match timeout(READY_WITHIN, app.store.now()).await {
        Ok(Ok(_)) if *app.worker_lives.borrow() => Ok("ready\n"),
        Ok(Ok(_)) => Err(unready("the worker has ended; the log says why")),
        Ok(Err(_)) => Err(unready("the database does not answer as it should")),
        Err(_) => Err(unready("the database does not answer")),
    }
}

/// What was measured, for Prometheus: on this machine for everybody, from elsewhere for who has a token.
pub(crate) async fn page(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    let is_inner = app.settings.listen.ip().is_loopback() && app.settings.public_origin.is_none();
    if !is_inner && !is_bearer(&app, &headers).await? {
        return Err(Problem::signed_out());
    }
    let text = match MEASURED.get() {
        Some(Ok(handle)) => handle.render(),
        Some(Err(_)) | None => String::new(),
    };
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
