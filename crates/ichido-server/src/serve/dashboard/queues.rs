//! The page of queues.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};

use super::super::models::Queue;
use super::super::request::query_pairs;
use super::Dashboard;
use super::moments::{duration, grouped};
use super::sampler::Sample;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::texts::fill;

#[derive(Template)]
#[template(path = "queues.html")]
struct QueuesPage {
    shell: Shell,
    queues: Vec<QueueRow>,
    can_act: bool,
    notice: Option<&'static str>,
}

/// A queue in a table.
pub(super) struct QueueRow {
    pub(super) name: String,
    pub(super) mark: &'static str,
    pub(super) class: &'static str,
    pub(super) condition: &'static str,
    pub(super) note: Option<String>,
    pub(super) is_paused: bool,
    pub(super) cells: Vec<CountCell>,
    pub(super) oldest: String,
}

/// A number of messages, with a link to them.
pub(super) struct CountCell {
    pub(super) count: String,
    pub(super) is_zero: bool,
    pub(super) href: String,
}

/// Lists the queues.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let sample = dashboard.sampler.get(&dashboard.api).await?;
    let t = visitor.t();
    let query = query_pairs(&uri)?;
    let notice = query.iter().find(|(name, _)| name == "did").and_then(|(_, did)| match did.as_str() {
        "pause" => Some(t.did_pause),
        "resume" => Some(t.did_resume),
        _ => None,
    });
    let mut shell = dashboard.shell(&visitor, t.queues);
    shell.live = Some("/live".to_owned());
    let page =
        QueuesPage { queues: queue_rows(&visitor, &sample), can_act: visitor.can_act(), notice, shell };
    Ok(html(StatusCode::OK, &page))
}

/// Returns the queues of a sample as rows.
pub(super) fn queue_rows(visitor: &Visitor, sample: &Sample) -> Vec<QueueRow> {
    sample.queues.iter().map(|queue| queue_row(visitor, sample, queue)).collect()
}

fn queue_row(visitor: &Visitor, sample: &Sample, queue: &Queue) -> QueueRow {
    let t = visitor.t();
    let counts = queue.counts.unwrap_or_default();
    let is_served = queue.served_here || sample.published.contains(&queue.name);
    let (mark, class, condition) =
        match (queue.paused, is_served, counts.queued + counts.sending + counts.failed) {
            (true, ..) => ("pause", "warn", t.paused),
            (false, false, _) => ("down", "bad", t.unserved),
            (false, true, 0) => ("idle", "quiet", t.idle),
            (false, true, _) => ("go", "good", t.served),
        };
    let note = queue.paused_at.as_deref().map(|at| {
        let who = queue.paused_by.as_deref().unwrap_or(t.a_person);
        fill(t.paused_by, &[("who", who), ("when", &visitor.time(at).short)])
    });
    let states = [
        ("queued", counts.queued),
        ("sending", counts.sending),
        ("failed", counts.failed),
        ("parked", counts.parked),
        ("dead", counts.dead),
        ("sent", counts.sent),
    ];
    let cell = |(state, count)| CountCell {
        count: grouped(count),
        is_zero: count == 0,
        href: format!("/messages?q=queue:{}+state:{state}", queue.name),
    };
    let oldest =
        queue.oldest_waiting_seconds.and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok());
    QueueRow {
        name: queue.name.clone(),
        mark,
        class,
        condition,
        note,
        is_paused: queue.paused,
        cells: states.map(cell).into(),
        oldest: oldest.map_or_else(|| "–".to_owned(), duration),
    }
}
