//! The page of queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use ichido_core::series::SeriesSubject;
use ichido_store::counters::SubjectCounts;

use super::super::models::Queue;
use super::Dashboard;
use super::chart_data::{RATE_WINDOW, number};
use super::chart_texts;
use super::charts::rounded;
use super::marks;
use super::moments::{duration, grouped};
use super::overview::state_href;
use super::sampler::Sample;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::texts::fill;

#[derive(Template)]
#[template(path = "queues.html")]
struct QueuesPage {
    shell: Shell,
    ct: &'static chart_texts::Texts,
    queues: Vec<QueueRow>,
    can_act: bool,
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
    /// Messages sent a minute.
    pub(super) rate: String,
}

/// A number of messages, with a link to them.
pub(super) struct CountCell {
    /// The name of the state, for pages too narrow for a table.
    pub(super) name: &'static str,
    pub(super) count: String,
    pub(super) is_zero: bool,
    pub(super) href: String,
}

/// Lists the queues.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, PageRefusal> {
    let sample = dashboard.sampler.get(&dashboard.api).await?;
    let rates = dashboard.charts.recent(&dashboard.api).await?;
    let t = visitor.t();
    let mut shell = dashboard.shell(&visitor, t.queues);
    shell.live = Some("/live".to_owned());
    let page = QueuesPage {
        ct: visitor.charts(),
        queues: queue_rows(&visitor, &sample, &rates),
        can_act: visitor.can_act(),
        shell,
    };
    Ok(html(StatusCode::OK, &page))
}

/// Returns the queues of a sample as rows.
pub(super) fn queue_rows(
    visitor: &Visitor,
    sample: &Sample,
    rates: &BTreeMap<SeriesSubject, SubjectCounts>,
) -> Vec<QueueRow> {
    let sent =
        |queue: &Queue| rates.get(&SeriesSubject::Queue(queue.name.clone())).map_or(0, |counts| counts.sent);
    sample.queues.iter().map(|queue| queue_row(visitor, sample, queue, sent(queue))).collect()
}

/// Returns a queue as a row. `sent` counts the messages of the last [`RATE_WINDOW`].
pub(super) fn queue_row(visitor: &Visitor, sample: &Sample, queue: &Queue, sent: u64) -> QueueRow {
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
        name: match state {
            "queued" => t.waiting,
            "failed" => t.retrying,
            state => marks::state_name(t, state),
        },
        count: grouped(count),
        is_zero: count == 0,
        href: state_href(state, Some(&queue.name)),
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
        rate: rounded(number(sent) * 60.0 / RATE_WINDOW.as_secs_f64()),
    }
}
