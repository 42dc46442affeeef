//! Alerts over HTTP: firing and resolved incidents.

// Spec: A15.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use std::cmp::Reverse;
use std::time::Duration;

use axum::response::Response;
use http::StatusCode;
use ichido_core::alert::words;
use ichido_core::time::Timestamp;
use ichido_store::alert::Alert as Incident;
use ichido_store::error::StoreError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::api::ApiState;
use super::cursor::{self, Cursor};
use super::problem::Problem;
use super::request::{AuthorizedRequest, Viewer};
use super::response::json;
use super::text;

/// Filters for incidents.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AlertQuery {
    /// `firing`: all open incidents, on one page. Unset: all incidents, page by page.
    state: Option<text::AlertState>,
    /// Maximum incidents on a page; 50 by default.
    limit: Option<text::Limit>,
    /// Cursor of the page: `next` of the previous page.
    #[param(value_type = Option<text::PageCursor>)]
    cursor: Option<Cursor<(Timestamp, Uuid)>>,
}

/// Incidents of alerts.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Alerts {
    /// Newest first.
    pub alerts: Vec<Alert>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// An incident.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct Alert {
    pub id: Uuid,
    /// The alert, such as `dead_letters`.
    pub rule: String,
    /// Its subject, such as `queue orders`.
    pub about: String,
    /// `firing` or `resolved`.
    pub state: String,
    pub opened_at: String,
    /// Since when the value is below the threshold.
    pub clear_since: Option<String>,
    pub resolved_at: Option<String>,
    /// The value when it opened, in `unit`.
    pub value: f64,
    /// The number of samples.
    pub samples: u64,
    /// The threshold that it exceeded.
    pub above: f64,
    /// `count`, `share` (from 0 to 1), `seconds` or `times` (a multiple of the usual value).
    pub unit: String,
    /// How far back the alert looks; null if it looks at the current state.
    pub window_seconds: Option<u64>,
    /// A description in one sentence, with the values when it opened.
    pub text: String,
}

impl Alert {
    pub(super) fn new(incident: &Incident) -> Self {
        Self {
            id: incident.id,
            rule: incident.rule.to_string(),
            about: incident.about.to_string(),
            state: if incident.resolved_at.is_some() { "resolved" } else { "firing" }.to_owned(),
            opened_at: incident.opened_at.to_string(),
            clear_since: incident.clear_since.map(|at| at.to_string()),
            resolved_at: incident.resolved_at.map(|at| at.to_string()),
            value: incident.reading.value,
            samples: incident.reading.samples,
            above: incident.terms.above,
            unit: incident.rule.unit().to_string(),
            window_seconds: incident.terms.window.as_ref().map(Duration::as_secs),
            text: words::opened(incident.rule, &incident.about, incident.terms, incident.reading),
        }
    }
}

/// Lists incidents of alerts: the open ones (`state=firing`), or all that are stored.
#[utoipa::path(
    get,
    path = "/v1/alerts",
    params(AlertQuery),
    responses(
        (status = 200, description = "The incidents, newest first", body = Alerts),
    )
)]
pub(super) async fn list_alerts(
    AuthorizedRequest { api, query, .. }: AuthorizedRequest<Viewer, AlertQuery>,
) -> Result<Response, Problem> {
    let limit = query.limit.map_or(text::PAGE_DEFAULT, |limit| limit.0);
    let (alerts, next) = if query.state.is_some() {
        (firing(&api).await?, None)
    } else {
        let incidents = api.store.alerts().list(query.cursor.map(|cursor| cursor.0), limit).await?;
        let next = cursor::next(&incidents, limit, |last| (last.opened_at, last.id));
        (incidents.iter().map(Alert::new).collect(), next)
    };
    Ok(json(StatusCode::OK, &Alerts { alerts, next }))
}

/// Returns the open incidents, newest first.
pub(super) async fn firing(api: &ApiState) -> Result<Vec<Alert>, StoreError> {
    let mut firing = api.store.alerts().firing().await?;
    firing.sort_by_key(|alert| Reverse((alert.opened_at, alert.id)));
    Ok(firing.iter().map(Alert::new).collect())
}
