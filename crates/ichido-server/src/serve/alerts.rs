//! Alerts over HTTP: what fires, and what was over (SPEC A15).

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use ichido_core::alert::words;
use ichido_core::time::Timestamp;
use ichido_store::alert::Alert as Kept;
use ichido_store::error::StoreError;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::answer::json;
use super::api::Api;
use super::caller::Caller;
use super::cursor;
use super::problem::{Code, Problem};
use super::request::parameters;
use super::search::count;
use crate::limits::ALERTS_MAX;

/// How many are shown where nobody says.
const ALERTS_DEFAULT: u32 = 50;
/// A place between two pages: a moment and an id.
const PLACE_BYTES: usize = 24;

/// Incidents of alerts.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Alerts {
    /// The last to be opened first.
    pub(super) alerts: Vec<Alert>,
    /// Where the next page begins, as its parameter `cursor`; none on the last.
    next: Option<String>,
}

/// An incident.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Alert {
    id: Uuid,
    /// Which alert it is, such as `dead_letters`.
    rule: &'static str,
    /// What it is about, such as `queue orders`.
    about: String,
    /// `firing` or `resolved`.
    state: &'static str,
    opened_at: String,
    /// Since when what was measured is clear of its bound.
    clear_since: Option<String>,
    resolved_at: Option<String>,
    /// What was measured when it was opened, in `unit`.
    value: f64,
    /// Of how many samples.
    samples: u64,
    /// The bound that it was above.
    above: f64,
    /// `count`, `share` (from 0 to 1), `seconds` or `times` (the usual).
    unit: &'static str,
    /// How far back it looked; none where it looked at how things stood.
    window_seconds: Option<u64>,
    /// In a sentence.
    text: String,
}

impl Alert {
    pub(super) fn new(kept: &Kept) -> Self {
        Self {
            id: kept.id,
            rule: kept.rule.as_str(),
            about: kept.about.to_string(),
            state: if kept.resolved_at.is_some() { "resolved" } else { "firing" },
            opened_at: kept.opened_at.to_string(),
            clear_since: kept.clear_since.map(|at| at.to_string()),
            resolved_at: kept.resolved_at.map(|at| at.to_string()),
            value: kept.reading.value,
            samples: kept.reading.samples,
            above: kept.terms.above,
            unit: kept.rule.unit().as_str(),
            window_seconds: kept.terms.window.as_ref().map(Duration::as_secs),
            text: words::opened(kept.rule, &kept.about, kept.terms, kept.reading),
        }
    }
}

/// Incidents of alerts: those that are open (`state=firing`), or all that are kept.
#[utoipa::path(
    get,
    path = "/v1/alerts",
    operation_id = "listAlerts",
    tag = "alerts",
    params(
        ("state" = Option<String>, Query, description = "`firing`: those that are open, all of them on one page. Left out: all, page by page", example = "firing"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "At most so many; 50 if left out"),
        ("cursor" = Option<String>, Query, description = "The `next` of the page before"),
    ),
    responses(
        (status = 200, description = "The incidents, the last to be opened first", body = Alerts),
    )
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, Problem> {
    let (mut is_firing, mut limit, mut after) = (false, ALERTS_DEFAULT, None);
    for (name, text) in parameters(&uri, &["state", "limit", "cursor"])? {
        match name.as_str() {
            "state" if text == "firing" => is_firing = true,
            "state" => {
                let detail = "state is firing, or left out for all";
                return Err(Problem::new(Code::ParameterInvalid, detail));
            }
            "limit" => limit = count(&text, ALERTS_MAX)?,
            _ => after = Some(place(cursor::read::<PLACE_BYTES>(&text)?)),
        }
    }
    caller.views()?;
    if is_firing {
        let alerts = firing(&api).await.map_err(|error| Problem::of_store(&error))?;
        return Ok(json(StatusCode::OK, &Alerts { alerts, next: None }));
    }
    let kept = api.store.alerts().list(after, limit).await.map_err(|error| Problem::of_store(&error))?;
    let last = kept.last().filter(|_| kept.len() == limit as usize);
    let next = last.map(|last| cursor::write(&written(last)));
    Ok(json(StatusCode::OK, &Alerts { alerts: kept.iter().map(Alert::new).collect(), next }))
}

/// Those that are open, the last to be opened first.
pub(super) async fn firing(api: &Api) -> Result<Vec<Alert>, StoreError> {
    let mut firing = api.store.alerts().firing().await?;
    firing.sort_by_key(|alert| Reverse((alert.opened_at, alert.id)));
    Ok(firing.iter().map(Alert::new).collect())
}

fn written(last: &Kept) -> Vec<u8> {
    [last.opened_at.as_micros().to_be_bytes().as_slice(), last.id.as_bytes()].concat()
}

fn place(bytes: [u8; PLACE_BYTES]) -> (Timestamp, Uuid) {
    let (mut moment, mut id) = ([0; 8], [0; 16]);
    moment.copy_from_slice(&bytes[..8]);
    id.copy_from_slice(&bytes[8..]);
    (Timestamp::from_micros(i64::from_be_bytes(moment)), Uuid::from_bytes(id))
}
