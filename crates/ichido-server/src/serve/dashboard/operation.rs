//! The page of a bulk operation, and the list of the latest ones.
//!
//! Guarantee: the page says what the audit trail and this server know, and nothing more. An operation whose process is gone is never shown
//! as running for longer than its lease. The outcome stays at the address, whatever restarts.

mod moved;

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{Method, StatusCode};
use ichido::dead_letters::Canary;
use ichido::dead_letters::limits::LEASE;
use serde::Deserialize;
use uuid::Uuid;

use super::super::bulk_history::MAX_BULKS;
use super::super::models::Message;
use super::super::operations::{CanaryResult, Operation};
use super::super::problem::{Code, Problem};
use super::bulk::RefusedLine;
use super::bulk_plan::{BulkPlan, BulkStep};
use super::bulk_texts::Texts as BulkTexts;
use super::group_names::GroupNames;
use super::marks::StateMark;
use super::message_texts::Fact;
use super::messages::FilterChip;
use super::moments::{ShownTime, grouped};
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::texts::fill;
use super::{Dashboard, dead_letters, marks, see_other};
pub(super) use moved::LaterLetters;
use moved::Moved;

#[derive(Template)]
#[template(path = "operation.html")]
struct OperationPage {
    shell: Shell,
    b: &'static BulkTexts,
    id: Uuid,
    title: String,
    shown: ShownOperation,
    facts: Vec<Fact>,
    scope: Vec<Fact>,
    rows_href: Option<String>,
    failed: Vec<FailedLine>,
    /// What became of the messages that it sent again.
    moved: Option<Moved>,
    /// Whether that is the outcome: it has ended, and all of its messages are known.
    is_headline: bool,
    /// Whether some of these have not ended.
    is_settling: bool,
    later: Option<LaterLetters>,
    can_stop: bool,
    rest_href: Option<String>,
    /// The failure group that it is about.
    group_href: Option<String>,
}

#[derive(Template)]
#[template(path = "operations.html")]
struct OperationsPage {
    shell: Shell,
    b: &'static BulkTexts,
    chips: Vec<FilterChip>,
    rows: Vec<OperationLine>,
    /// Says that there are more.
    latest: Option<String>,
}

/// An operation in the list.
struct OperationLine {
    id: Uuid,
    title: String,
    mark: &'static str,
    class: &'static str,
    /// Its state, and what happened.
    sentence: String,
    scope: Vec<Fact>,
    by: String,
    at: ShownTime,
}

/// A message that failed in the canary.
struct FailedLine {
    id: Uuid,
    item: String,
    state: String,
    mark: &'static str,
    class: &'static str,
    code: Option<String>,
    error: Option<String>,
}

/// How an operation is, in words.
struct ShownOperation {
    mark: &'static str,
    class: &'static str,
    state: &'static str,
    sentence: String,
    then: Option<String>,
    is_running: bool,
    bar: Option<Bar>,
    canary: Option<String>,
    refused: Vec<RefusedLine>,
    gone: Option<String>,
    error: Option<String>,
}

/// The progress as a bar.
struct Bar {
    moved: u64,
    total: u64,
    text: String,
}

/// What is known of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Running,
    /// Asked to stop.
    Stopping,
    /// It has not ended, as far as is recorded, and does not run here.
    Silent,
    Ended,
    Stopped,
    Halted,
    Failed,
    Abandoned,
}

#[derive(Deserialize)]
struct FoundOperations {
    operations: Vec<Operation>,
}

/// Shows an operation.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, PageRefusal> {
    let (b, caller) = (BulkTexts::of(visitor.language), visitor.caller()?);
    let operation: Operation = dashboard.read(caller, &format!("/v1/operations/{}", parse_id(&id)?)).await?;
    let mut failed = Vec::new();
    for id in operation.result.iter().flat_map(|result| &result.failed_ids) {
        // A message that was sent since may have been deleted.
        if let Ok(message) = dashboard.read(caller, &format!("/v1/messages/{id}")).await {
            failed.push(failed_line(&visitor, message));
        }
    }
    let fate = fate(&operation);
    let plan = plan(&operation);
    let (moved, later) = match &plan {
        Some(plan) if !fate.is_running() => (
            Moved::read(&dashboard, &visitor, &operation, plan).await?,
            LaterLetters::read(&dashboard, &visitor, plan).await?,
        ),
        _ => (None, None),
    };
    let mut moved = moved;
    if let Some(moved) = moved.as_mut().filter(|_| !failed.is_empty()) {
        // The canary named some of them; a second list would look like others.
        failed.append(&mut moved.rows);
    }
    let mut outcome = shown(b, &operation);
    if fate == Fate::Ended && moved.as_ref().is_some_and(|moved| !moved.is_settling) {
        // Nothing is on its way any more.
        outcome.then = None;
    }
    let scope = match &plan {
        Some(plan) => dashboard.scope(&visitor, plan).await?,
        None => Vec::new(),
    };
    let mut shell = dashboard.shell(&visitor, title(b, &operation));
    shell.live = Some("/live".to_owned());
    let page = OperationPage {
        b,
        id: operation.id,
        title: title(b, &operation),
        shown: outcome,
        facts: facts(&visitor, b, &operation),
        scope,
        // The rows of one that ended have left its filter.
        rows_href: plan.as_ref().filter(|_| fate != Fate::Ended).map(BulkPlan::rows_href),
        failed,
        is_settling: moved.as_ref().is_some_and(|moved| moved.is_settling),
        is_headline: fate == Fate::Ended && moved.as_ref().is_some_and(|moved| moved.is_all),
        moved,
        later,
        can_stop: visitor.can_act() && matches!(fate, Fate::Running | Fate::Silent),
        group_href: plan
            .as_ref()
            .and_then(|plan| plan.get("group"))
            .map(|group| format!("/dead-letters/groups/{group}")),
        rest_href: plan.filter(|_| visitor.can_act() && fate.leaves_rest()).map(|plan| plan.href()),
        shell,
    };
    Ok(html(StatusCode::OK, &page))
}

/// Lists the latest operations.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, PageRefusal> {
    let b = BulkTexts::of(visitor.language);
    let found: FoundOperations = dashboard.read(visitor.caller()?, "/v1/operations").await?;
    let has_group = |operation: &Operation| plan(operation).is_some_and(|plan| plan.get("group").is_some());
    let names = if found.operations.iter().any(has_group) {
        dashboard.group_names(&visitor).await?
    } else {
        GroupNames::default()
    };
    let mut shell = dashboard.shell(&visitor, b.operations);
    shell.live = Some("/live".to_owned());
    let page = OperationsPage {
        b,
        chips: dead_letters::chips(&visitor, "operations"),
        latest: (found.operations.len() == MAX_BULKS)
            .then(|| fill(b.latest_operations, &[("n", &MAX_BULKS.to_string())])),
        rows: found.operations.iter().map(|operation| line(&visitor, &names, operation)).collect(),
        shell,
    };
    Ok(html(StatusCode::OK, &page))
}

/// Asks an operation to stop.
pub(super) async fn stop(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, PageRefusal> {
    let id = parse_id(&id)?;
    let target = format!("/v1/operations/{id}/stop");
    match dashboard.call(visitor.caller()?, Method::POST, &target, String::new()).await {
        // If it has ended meanwhile, its page says how.
        Ok(_) => Ok(see_other(&dashboard.base, &format!("/operations/{id}"))),
        Err(refusal) if refusal.status == 409 => Ok(see_other(&dashboard.base, &format!("/operations/{id}"))),
        Err(refusal) => Err(refusal),
    }
}

fn parse_id(id: &str) -> Result<Uuid, PageRefusal> {
    Uuid::try_parse(id)
        .map_err(|_| Problem::new(Code::OperationUnknown, "no bulk operation has this id").into())
}

fn plan(operation: &Operation) -> Option<BulkPlan> {
    BulkPlan::rest_of(&operation.action, &operation.start.as_ref()?.filter)
}

fn title(b: &'static BulkTexts, operation: &Operation) -> String {
    plan(operation).map_or_else(|| operation.action.clone(), |plan| plan.title(b).to_owned())
}

/// Returns what tells an operation from others of its kind: the cause of its failure group, or its queue.
fn subject(plan: &BulkPlan, names: &GroupNames) -> Option<String> {
    let cause = plan.get("group").and_then(|group| names.get(group));
    cause.map(String::as_str).or(plan.get("queue")).map(str::to_owned)
}

fn fate(operation: &Operation) -> Fate {
    match (operation.state.as_str(), operation.progress.is_some()) {
        ("started", true) => Fate::Running,
        ("started", false) => Fate::Silent,
        ("stopping", _) => Fate::Stopping,
        ("stopped", _) => Fate::Stopped,
        ("halted", _) => Fate::Halted,
        ("failed", _) => Fate::Failed,
        ("abandoned", _) => Fate::Abandoned,
        _ => Fate::Ended,
    }
}

impl Fate {
    const fn leaves_rest(self) -> bool {
        matches!(self, Self::Stopped | Self::Halted | Self::Failed | Self::Abandoned)
    }

    const fn is_running(self) -> bool {
        matches!(self, Self::Running | Self::Stopping | Self::Silent)
    }

    /// Whether its sentence says the state too.
    const fn is_in_sentence(self) -> bool {
        matches!(self, Self::Stopped | Self::Halted)
    }

    const fn mark(self) -> StateMark {
        let (mark, class) = match self {
            Self::Running => ("go", "busy"),
            Self::Stopping => ("pause", "warn"),
            Self::Silent => ("ask", "doubt"),
            Self::Ended => ("check", "good"),
            Self::Stopped => ("slash", "quiet"),
            Self::Halted => ("bell", "warn"),
            Self::Failed => ("cross", "bad"),
            Self::Abandoned => ("down", "bad"),
        };
        StateMark { mark, class }
    }

    const fn name(self, b: &'static BulkTexts) -> &'static str {
        match self {
            Self::Running => b.op_running,
            Self::Stopping => b.op_stopping,
            Self::Silent => b.op_silent,
            Self::Ended => b.op_ended,
            Self::Stopped => b.op_stopped,
            Self::Halted => b.op_halted,
            Self::Failed => b.op_failed,
            Self::Abandoned => b.op_abandoned,
        }
    }
}

fn count(number: u64) -> String {
    grouped(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The numbers of an operation that its sentences name.
struct Numbers {
    moved: Option<String>,
    total: String,
    /// Whether there are more than the total.
    has_more: bool,
    done: &'static str,
    who: Option<String>,
    canary: Option<CanaryNumbers>,
}

struct CanaryNumbers {
    failed: u64,
    pending: u64,
    watched: u64,
}

impl Numbers {
    fn new(b: &'static BulkTexts, operation: &Operation) -> Self {
        let (progress, result) = (operation.progress.as_ref(), operation.result.as_ref());
        let moved = progress.map(|progress| progress.moved).or(result.map(|result| result.moved));
        let start = operation.start.as_ref();
        let has_more =
            progress.is_some_and(|progress| progress.has_more) || start.is_some_and(|start| start.has_more);
        let total = match start {
            Some(start) if has_more => Some(start.matched),
            _ => progress.map(|progress| progress.total).or(start.map(|start| start.eligible)),
        };
        let canary = result.and_then(|result| result.canary.as_ref()).map(
            |CanaryResult { pending, succeeded, failed }| CanaryNumbers {
                failed: *failed,
                pending: *pending,
                watched: pending + succeeded + failed,
            },
        );
        Self {
            moved: moved.map(count),
            total: total.map_or_else(|| "?".to_owned(), count),
            has_more,
            done: BulkStep::of_operation(&operation.action).map_or(b.done_requeue, |step| step.done(b)),
            who: result.and_then(|result| result.stopped_by.clone()),
            canary,
        }
    }

    fn fill(&self, text: &str) -> String {
        let canary =
            |number: fn(&CanaryNumbers) -> u64| self.canary.as_ref().map(|numbers| count(number(numbers)));
        let values = [
            ("moved", self.moved.clone()),
            ("total", Some(self.total.clone())),
            ("done", Some(self.done.to_owned())),
            ("who", self.who.clone()),
            ("failed", canary(|numbers| numbers.failed)),
            ("pending", canary(|numbers| numbers.pending)),
            ("watched", canary(|numbers| numbers.watched)),
            ("percent", Some(Canary::DEFAULT.max_failures_percent.to_string())),
            ("minutes", Some((Canary::DEFAULT.watch_for.as_secs() / 60).to_string())),
            ("seconds", Some(LEASE.as_secs().to_string())),
        ];
        let values: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (*name, value.as_deref().unwrap_or("?"))).collect();
        fill(text, &values)
    }
}

/// Returns what happened so far, and what happens next.
fn say(b: &'static BulkTexts, fate: Fate, numbers: &Numbers) -> (&'static str, Option<&'static str>) {
    let is_known = numbers.moved.is_some();
    match fate {
        Fate::Running if numbers.has_more => (b.say_running_more, Some(b.then_running)),
        Fate::Running => (b.say_running, Some(b.then_running)),
        Fate::Stopping if is_known && numbers.has_more => (b.say_stopping_more, Some(b.then_stopped)),
        Fate::Stopping if is_known => (b.say_stopping, Some(b.then_stopped)),
        Fate::Stopping | Fate::Silent => (b.say_silent, Some(b.then_silent)),
        Fate::Ended if is_known => (b.say_ended, None),
        Fate::Ended => (b.say_ended_unknown, None),
        Fate::Stopped => match (is_known, &numbers.who) {
            (true, Some(_)) => (b.say_stopped, Some(b.then_stopped)),
            (true, None) => (b.say_stopped_server, Some(b.then_stopped)),
            (false, _) => (b.say_stopped_unknown, Some(b.then_abandoned)),
        },
        Fate::Halted => match &numbers.canary {
            // Not enough failed, so the others took too long.
            Some(CanaryNumbers { failed, pending, watched })
                if 0 < *pending
                    && failed * 100 <= u64::from(Canary::DEFAULT.max_failures_percent) * watched =>
            {
                (b.say_halted_slow, Some(b.then_halted_slow))
            }
            Some(CanaryNumbers { failed: 1.., .. }) => (b.say_halted, Some(b.then_halted)),
            _ => (b.say_halted_unknown, Some(b.then_halted)),
        },
        Fate::Failed if is_known => (b.say_failed, Some(b.then_failed)),
        Fate::Failed | Fate::Abandoned => (b.say_abandoned, Some(b.then_abandoned)),
    }
}

fn shown(b: &'static BulkTexts, operation: &Operation) -> ShownOperation {
    let fate = fate(operation);
    let numbers = Numbers::new(b, operation);
    let (sentence, then) = say(b, fate, &numbers);
    let has_requeued = fate == Fate::Ended
        && operation.action == "requeue"
        && operation.result.as_ref().is_some_and(|result| 0 < result.moved);
    let then = if has_requeued { Some(b.then_requeued) } else { then };
    let (progress, result) = (operation.progress.as_ref(), operation.result.as_ref());
    let canary = |text: &str, canary: &CanaryResult| {
        let CanaryResult { pending, succeeded, failed } = canary;
        let values =
            [("pending", count(*pending)), ("succeeded", count(*succeeded)), ("failed", count(*failed))];
        fill(text, &values.each_ref().map(|(name, value)| (*name, value.as_str())))
    };
    let now = progress.and_then(|progress| progress.canary.as_ref()).map(|now| canary(b.canary_now, now));
    let end = result.and_then(|result| result.canary.as_ref()).map(|end| canary(b.canary_end, end));
    let total = operation.start.as_ref().map(|start| start.eligible);
    let (moved, total) = match (progress, result) {
        (Some(progress), _) => (Some(progress.moved), Some(progress.total)),
        (None, Some(result)) => (Some(result.moved), total),
        (None, None) => (None, None),
    };
    let refused = result.into_iter().flat_map(|result| &result.refused).map(|refused| RefusedLine {
        queue: None,
        count: count(refused.count),
        why: refused.detail.clone(),
    });
    let mark = fate.mark();
    ShownOperation {
        mark: mark.mark,
        class: mark.class,
        state: fate.name(b),
        sentence: numbers.fill(sentence),
        then: then.map(|then| numbers.fill(then)),
        is_running: fate.is_running(),
        bar: moved
            .zip(total)
            .filter(|(_, total)| 0 < *total && !numbers.has_more)
            .map(|(moved, total)| Bar { moved, total, text: format!("{} / {}", count(moved), count(total)) }),
        canary: now.or(end),
        refused: refused.collect(),
        gone: result.map(|result| result.gone).filter(|gone| 0 < *gone).map(count),
        error: result.and_then(|result| result.error.clone()),
    }
}

fn facts(visitor: &Visitor, b: &'static BulkTexts, operation: &Operation) -> Vec<Fact> {
    let mut facts = vec![
        Fact::text(b.started_by, operation.by.as_str()),
        Fact::text(b.started_at, visitor.time(&operation.started_at).full),
        Fact::text(b.ended_at, visitor.time(&operation.updated_at).full),
    ];
    if let Some(reason) = operation.start.as_ref().and_then(|start| start.reason.as_ref()) {
        facts.push(Fact::text(visitor.t().reason, reason.as_str()));
    }
    facts.push(Fact::code("ID", operation.id.to_string()));
    // An earlier release recorded it, so the words are all that is known.
    if operation.start.is_none() {
        facts.push(Fact::text(b.record, operation.detail.as_str()));
    }
    facts
}

fn failed_line(visitor: &Visitor, message: Message) -> FailedLine {
    let facts = message.facts;
    let shown = marks::of_state(&facts.status);
    let (code, error) = facts
        .last_error
        .map_or((None, None), |error| (Some(error.code), error.text.map(dead_letters::one_line)));
    FailedLine {
        id: facts.id,
        item: facts.item.unwrap_or(facts.idempotency_key),
        state: marks::state_name(visitor.t(), &facts.status).to_owned(),
        mark: shown.mark,
        class: shown.class,
        code,
        error,
    }
}

fn line(visitor: &Visitor, names: &GroupNames, operation: &Operation) -> OperationLine {
    let b = BulkTexts::of(visitor.language);
    let ShownOperation { mark, class, state, sentence, .. } = shown(b, operation);
    let plan = plan(operation);
    let subject = plan.as_ref().and_then(|plan| subject(plan, names));
    let title = title(b, operation);
    OperationLine {
        id: operation.id,
        title: subject.map_or_else(|| title.clone(), |subject| format!("{title}: {subject}")),
        mark,
        class,
        sentence: if fate(operation).is_in_sentence() { sentence } else { format!("{state}: {sentence}") },
        scope: plan.map(|plan| plan.scope(visitor.t(), b, names)).unwrap_or_default(),
        by: operation.by.clone(),
        at: visitor.time(&operation.started_at),
    }
}

#[cfg(test)]
mod tests;
