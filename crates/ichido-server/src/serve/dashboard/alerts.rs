//! The page of alerts: what fires, and what fired.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use form_urlencoded::Serializer;
use http::{StatusCode, Uri};

use super::super::alerts::{Alert, Alerts};
use super::super::request::query_pairs;
use super::Dashboard;
use super::alert_texts::{opened, rows_href, sentence};
use super::moments::{ShownTime, full};
use super::shell::{PageRefusal, Shell, Visitor, html};

#[derive(Template)]
#[template(path = "alerts.html")]
struct AlertsPage {
    shell: Shell,
    rows: Vec<AlertLine>,
    newest: Option<&'static str>,
    next: Option<String>,
}

/// An incident.
struct AlertLine {
    mark: &'static str,
    class: &'static str,
    state: &'static str,
    rule: String,
    about: String,
    href: String,
    text: String,
    /// When its numbers were true.
    opened: String,
    at: ShownTime,
    resolved: Option<String>,
}

/// Lists incidents.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let cursor = query_pairs(&uri)?.into_iter().find(|(name, _)| name == "cursor").map(|(_, cursor)| cursor);
    let address = |path: &str, cursor: &str| {
        Serializer::for_suffix(format!("{path}?"), path.len() + 1).append_pair("cursor", cursor).finish()
    };
    let target =
        cursor.as_deref().map_or_else(|| "/v1/alerts".to_owned(), |cursor| address("/v1/alerts", cursor));
    let found: Alerts = dashboard.read(visitor.caller()?, &target).await?;
    let mut shell = dashboard.shell(&visitor, visitor.t().alerts);
    shell.live = Some("/live".to_owned());
    let page = AlertsPage {
        rows: found.alerts.into_iter().map(|alert| line(&visitor, alert)).collect(),
        newest: cursor.map(|_| "/alerts"),
        next: found.next.map(|next| address("/alerts", &next)),
        shell,
    };
    Ok(html(StatusCode::OK, &page))
}

fn line(visitor: &Visitor, alert: Alert) -> AlertLine {
    let t = visitor.t();
    let is_firing = alert.resolved_at.is_none();
    AlertLine {
        mark: if is_firing { "bell" } else { "check" },
        class: if is_firing { "warn" } else { "quiet" },
        state: if is_firing { t.firing } else { t.resolved },
        text: sentence(visitor.language, &alert),
        href: rows_href(&alert),
        opened: opened(visitor.language, &alert),
        rule: alert.rule,
        about: alert.about,
        at: visitor.time(&alert.opened_at),
        resolved: alert.resolved_at.as_deref().map(full),
    }
}
