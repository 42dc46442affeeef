//! The page of one queue: its counts, charts, who serves it, and how fast.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::{Method, StatusCode, Uri};
use ichido_core::retry::Guarantee;
use ichido_core::series::SeriesSubject;
use ichido_http::clock;
use ichido_store::message::QueueName;
use serde::Serialize;
use serde_json::json;

use super::super::caller::unknown_queue;
use super::super::models::Queue;
use super::super::parallelism::Parallelism;
use super::super::problem::{Code, Problem};
use super::super::request::query_pairs;
use super::chart_texts::Texts;
use super::charts::{ChartSubject, Charts};
use super::message::Notice;
use super::message_texts::Fact;
use super::moments::{ShownTime, duration};
use super::overview::{StateTotal, chart_range, totals};
use super::queues::{QueueRow, queue_row};
use super::sampler::Sample;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::sign_in::read_form;
use super::texts::fill;
use super::{Dashboard, see_other};

/// Maximum nodes that are listed.
const MAX_NODES_SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "queue.html")]
struct QueuePage {
    shell: Shell,
    ct: &'static Texts,
    queue: QueueRow,
    notice: Option<Notice>,
    facts: Vec<Fact>,
    totals: Vec<StateTotal>,
    /// Names and addresses of the lists of its messages.
    lists: Vec<(String, String)>,
    charts: Charts,
    served_by: Vec<ServingNode>,
    can_act: bool,
    /// What the form begins with.
    parallelism: String,
}

/// A node with a worker that has the queue in its configuration.
struct ServingNode {
    mark: &'static str,
    class: &'static str,
    name: String,
    state: &'static str,
    seen: ShownTime,
}

/// Shows a queue.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let (t, ct) = (visitor.t(), visitor.charts());
    let query = query_pairs(&uri)?;
    let sample = dashboard.sampler.get(&dashboard.api).await?;
    // Somebody else may have changed it since; the address stays.
    let is_paused = sample.queues.iter().any(|queue| queue.name == name && queue.paused);
    let did = query.iter().find(|(name, _)| name == "did").and_then(|(_, did)| match did.as_str() {
        "pause" if is_paused => Some(t.did_pause),
        "resume" if !is_paused => Some(t.did_resume),
        "parallelism" => Some(ct.did_parallelism),
        _ => None,
    });
    let notice = did.map(|text| Notice { class: "ok", text: text.to_owned() });
    page(&dashboard, &visitor, &name, &uri, StatusCode::OK, notice).await
}

/// Sets how many messages each worker runs at the same time.
pub(super) async fn set_parallelism(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, PageRefusal> {
    let queue = QueueName::parse(&name).ok_or_else(unknown_queue)?;
    let (uri, target) = (request.uri().clone(), format!("/v1/queues/{}/parallelism", queue.as_str()));
    let refused =
        put_number(&dashboard, &visitor, request, "parallelism", &target, |text| text.parse::<u32>().ok());
    match refused.await? {
        None => Ok(see_other(&dashboard.base, &format!("/queues/{}?did=parallelism", queue.as_str()))),
        notice => page(&dashboard, &visitor, &name, &uri, StatusCode::UNPROCESSABLE_ENTITY, notice).await,
    }
}

/// Sets the number of a form; an empty field goes back to the configuration. Returns what to say if it is refused.
pub(super) async fn put_number<T: Serialize>(
    dashboard: &Dashboard,
    visitor: &Visitor,
    request: Request,
    field: &str,
    target: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<Notice>, PageRefusal> {
    let (head, body) = request.into_parts();
    let form = read_form(&head.headers, body).await?;
    form.check(visitor.t(), &[field])?;
    let missing =
        || Problem::new(Code::BodyUnexpected, fill(visitor.charts().field_missing, &[("name", field)]));
    let text = form.get(field).map(str::trim).ok_or_else(missing)?;
    let number = if text.is_empty() { None } else { parse(text) };
    if number.is_none() && !text.is_empty() {
        let why = fill(visitor.charts().not_a_number, &[("text", text)]);
        return refused(visitor, Problem::new(Code::BodyUnexpected, why).into()).map(Some);
    }
    let body = json!({ field: number }).to_string();
    match dashboard.call(visitor.caller()?, Method::PUT, target, body).await {
        Ok(_) => {
            dashboard.sampler.forget();
            Ok(None)
        }
        Err(refusal) => refused(visitor, refusal).map(Some),
    }
}

/// Returns a refusal of the API as a notice, if the person can do something about it here.
fn refused(visitor: &Visitor, refusal: PageRefusal) -> Result<Notice, PageRefusal> {
    if matches!(refusal.status, 400 | 409 | 422) {
        let text = fill(visitor.t().not_done_notice, &[("why", &refusal.detail)]);
        return Ok(Notice { class: "refused", text });
    }
    Err(refusal)
}

async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    name: &str,
    uri: &Uri,
    status: StatusCode,
    notice: Option<Notice>,
) -> Result<Response, PageRefusal> {
    let sample = dashboard.sampler.get(&dashboard.api).await?;
    let queue = sample.queues.iter().find(|queue| queue.name == name).ok_or_else(unknown_queue)?;
    let range = chart_range(uri)?;
    let (subject, now) = (SeriesSubject::Queue(name.to_owned()), dashboard.sampler.now(clock::now()));
    let series = dashboard.charts.series(&dashboard.api, &subject, range, now).await?;
    let rates = dashboard.charts.recent(&dashboard.api).await?;
    let sent = rates.get(&subject).map_or(0, |counts| counts.sent);
    let (ct, path) = (visitor.charts(), format!("/queues/{name}"));
    let mut shell = dashboard.shell(visitor, name);
    shell.live = Some("/live".to_owned());
    shell.here.clone_from(&path);
    let page = QueuePage {
        ct,
        queue: queue_row(visitor, &sample, queue, sent),
        notice,
        facts: facts(visitor, &sample, queue),
        totals: totals(visitor.t(), queue.counts.unwrap_or_default(), Some(name)),
        lists: lists(ct, name),
        charts: Charts::new(ct, ChartSubject::Queue(name), range, &path, &series),
        served_by: served_by(visitor, &sample, name),
        can_act: visitor.can_act(),
        parallelism: in_effect(queue.parallelism.as_ref())
            .map_or_else(String::new, |count| count.to_string()),
        shell,
    };
    Ok(html(status, &page))
}

/// Returns the lists of a queue's messages.
fn lists(ct: &Texts, queue: &str) -> Vec<(String, String)> {
    let of_queue = |text: &str| fill(text, &[("queue", queue)]);
    vec![
        (of_queue(ct.messages_of), format!("/messages?q=queue:{queue}")),
        (of_queue(ct.letters_of), format!("/dead-letters?queue={queue}")),
        (of_queue(ct.parked_of), format!("/dead-letters?state=parked&queue={queue}")),
    ]
}

fn in_effect(parallelism: Option<&Parallelism>) -> Option<u32> {
    parallelism.and_then(|parallelism| parallelism.set.or(parallelism.configured))
}

fn facts(visitor: &Visitor, sample: &Sample, queue: &Queue) -> Vec<Fact> {
    let (t, ct) = (visitor.t(), visitor.charts());
    let known = sample.facts.iter().find(|known| known.queue.as_str() == queue.name);
    let parallelism = queue.parallelism.as_ref().map(|parallelism| shown_parallelism(visitor, parallelism));
    let mut facts = vec![Fact::text(ct.parallelism, parallelism.unwrap_or_default())];
    facts.extend(known.map(|known| Fact::text(ct.guarantee, shown_guarantee(ct, known.facts.guarantee))));
    facts.extend(known.map(|known| Fact::text(ct.max_attempts, known.facts.max_attempts.to_string())));
    let oldest = queue.oldest_waiting_at.as_deref().map(|at| visitor.time(at).short);
    facts.push(Fact::text(t.oldest, oldest.unwrap_or_else(|| "–".to_owned())));
    facts
}

/// Says how many messages run at the same time, who set it, and what the file says.
fn shown_parallelism(visitor: &Visitor, parallelism: &Parallelism) -> String {
    let ct = visitor.charts();
    let file = parallelism.configured.map(|count| count.to_string());
    match (parallelism.set, file) {
        (Some(set), file) => {
            let file = file.unwrap_or_else(|| ct.not_in_file.to_owned());
            let change = (parallelism.set_by.as_deref(), parallelism.set_at.as_deref());
            format!("{set} ({})", set_by(visitor, change, &file))
        }
        (None, Some(file)) => format!("{file} ({})", ct.as_in_file),
        (None, None) => ct.set_elsewhere.to_owned(),
    }
}

/// Says who set something, when, and what the file says.
pub(super) fn set_by(visitor: &Visitor, (by, at): (Option<&str>, Option<&str>), file: &str) -> String {
    let who = by.unwrap_or(visitor.t().a_person);
    let when = at.map_or_else(|| "–".to_owned(), |at| visitor.time(at).short);
    fill(visitor.charts().set_by, &[("who", who), ("when", &when), ("file", file)])
}

fn shown_guarantee(ct: &Texts, guarantee: Guarantee) -> String {
    match guarantee {
        Guarantee::Idempotent => ct.guarantee_idempotent.to_owned(),
        Guarantee::Keyed { keeps_for } => fill(ct.guarantee_keyed, &[("time", &duration(keeps_for))]),
        Guarantee::None => ct.guarantee_none.to_owned(),
        Guarantee::Transactional => ct.guarantee_transactional.to_owned(),
    }
}

fn served_by(visitor: &Visitor, sample: &Sample, queue: &str) -> Vec<ServingNode> {
    let t = visitor.t();
    let known = sample.facts.iter().find(|known| known.queue.as_str() == queue);
    let nodes = known.map(|known| known.nodes.as_slice()).unwrap_or_default();
    let shown = nodes.iter().take(MAX_NODES_SHOWN).map(|(node, _)| {
        let is_alive = sample.nodes.iter().any(|status| status.id == node.id && status.alive);
        let (mark, class, state) =
            if is_alive { ("check", "good", t.alive) } else { ("none", "quiet", t.gone) };
        ServingNode {
            mark,
            class,
            name: node.name.clone(),
            state,
            seen: visitor.time(&node.seen_at.to_string()),
        }
    });
    shown.collect()
}
