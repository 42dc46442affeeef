//! The page of one request's key, and the form that decides it.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::json;

use super::super::keys::KeyRecord;
use super::Dashboard;
use super::key_answer::{ShownReplay, message_path, shown_key_answer, shown_replay};
use super::key_done::was_key_done;
use super::key_texts::Texts as KeyTexts;
use super::keys::{self, KeyQuery, key_path};
use super::marks::StateMark;
use super::message::{Notice, ReadEvents};
use super::message_texts::{ShownAnswer, ShownEntry, shown_timeline};
use super::see_other;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::sign_in::read_form;
use super::texts::fill;
use super::timeline::{TimelineParts, timeline};

#[derive(Template)]
#[template(path = "key.html")]
struct KeyPage {
    shell: Shell,
    k: &'static KeyTexts,
    operation: String,
    identity: String,
    key: String,
    state: String,
    state_mark: &'static str,
    state_class: &'static str,
    notice: Option<Notice>,
    answer: ShownAnswer,
    can_decide: bool,
    decide_effect: String,
    replay: Option<ShownReplay>,
    timeline: Vec<ShownEntry>,
}

/// Returns the page of a record that a look-up found.
pub(super) async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    record: &KeyRecord,
    status: StatusCode,
    notice: Option<Notice>,
) -> Result<Response, PageRefusal> {
    let k = visitor.key_texts();
    let operation = record.operation.clone().unwrap_or_default();
    let path = key_path(&operation, &record.identity, &record.idempotency_key);
    let message = record.message.as_deref().and_then(message_path);
    let events = match &message {
        // Sent messages are deleted before their keys.
        Some(path) => ReadEvents::read(dashboard, visitor, path, None).await.unwrap_or_default(),
        None => ReadEvents::default(),
    };
    let parts = TimelineParts {
        hops: record.hops.as_deref(),
        keys: std::slice::from_ref(record),
        events: &events.events,
        earlier: events.earlier.as_deref(),
        ..TimelineParts::default()
    };
    let answer = was_key_done(record, visitor.now);
    let shown = mark(&record.state);
    let mut shell = dashboard.shell(visitor, &*record.idempotency_key);
    shell.here.clone_from(&path);
    shell.live = Some("/live".to_owned());
    let page = KeyPage {
        k,
        state: state_name(k, &record.state).to_owned(),
        state_mark: shown.mark,
        state_class: shown.class,
        notice,
        answer: shown_key_answer(visitor, &answer, record),
        can_decide: record.state == "unknown" && visitor.can_act(),
        decide_effect: visitor.local_name().map_or_else(
            || k.decide_key_effect.to_owned(),
            |who| fill(k.decide_key_effect_local, &[("who", who)]),
        ),
        replay: record.response.as_ref().map(|response| shown_replay(k, response)),
        timeline: shown_timeline(visitor, &timeline(&parts), message.as_deref().unwrap_or_default()),
        operation,
        identity: record.identity.clone(),
        key: record.idempotency_key.clone(),
        shell,
    };
    Ok(html(status, &page))
}

/// Returns how the state of a request is shown.
pub(super) fn mark(state: &str) -> StateMark {
    let (mark, class) = match state {
        "claimed" => ("go", "busy"),
        "applied" => ("check", "good"),
        "refused" => ("slash", "quiet"),
        _ => ("ask", "doubt"),
    };
    StateMark { mark, class }
}

/// Returns the name of a request's state; that of a later release as it is.
pub(super) fn state_name<'s>(k: &'static KeyTexts, state: &'s str) -> &'s str {
    match state {
        "claimed" => k.state_claimed,
        "unknown" => k.state_unknown,
        "applied" => k.state_applied,
        "refused" => k.state_refused,
        other => other,
    }
}

/// Decides a key of unknown outcome.
pub(super) async fn decide(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, PageRefusal> {
    let (head, body) = request.into_parts();
    let form = read_form(&head.headers, body).await?;
    let [operation, identity, key, decision] =
        ["operation", "identity", "key", "decision"].map(|name| form.get(name).unwrap_or_default());
    let body = json!({ "operation": operation, "identity": identity, "key": key, "decision": decision });
    match dashboard.call(visitor.caller()?, Method::POST, "/v1/keys/decide", body.to_string()).await {
        Ok(_) => {
            dashboard.sampler.forget();
            let path = key_path(operation, identity, key);
            Ok(see_other(&dashboard.base, &format!("{path}&did={decision}")))
        }
        Err(refusal) if matches!(refusal.status, 400 | 409 | 422) && !key.is_empty() => {
            let text = fill(visitor.t().not_done_notice, &[("why", &refusal.detail)]);
            let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::CONFLICT);
            let query = KeyQuery::of_request(operation, identity, key);
            let notice = Notice { class: "refused", text };
            keys::page(&dashboard, &visitor, &query, status, Some(notice)).await
        }
        Err(refusal) => Err(refusal),
    }
}
