//! What became of the messages that an operation sent again.
//!
//! Guarantee: three reads, each bounded: the operation's last entry in the audit trail, up to [`MAX_FOLLOWED`] entries before it, and the
//! states of their messages. If an operation moved more, the page says of how many of them it speaks.

use bytes::Bytes;
use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;
use ichido_store::error::StoreError;
use uuid::Uuid;

use super::super::super::audit::{AuditEntries, AuditEntry};
use super::super::Dashboard;
use super::super::bulk_plan::{BulkPlan, BulkStep, address};
use super::super::bulk_texts::Texts as BulkTexts;
use super::super::call::unreadable;
use super::super::dead_letters::FoundLetters;
use super::super::marks;
use super::super::shell::{PageRefusal, Visitor};
use super::super::texts::{Texts, fill};
use super::{FailedLine, Operation, count, failed_line};

/// Maximum messages of an operation whose state is looked up.
const MAX_FOLLOWED: usize = 100;
/// Maximum messages that are named because they failed again.
const MAX_ROWS: usize = 5;
/// The same, if a canary's failures halted the operation: they are what the person looks for.
const MAX_CANARY_ROWS: usize = 20;
/// Maximum letters that are counted because they died after the operation was counted.
const MAX_LATER: usize = 100;

/// What became of the messages.
pub(super) struct Moved {
    /// Of how many the page speaks.
    pub(super) text: String,
    pub(super) states: Vec<MovedState>,
    /// Whether it speaks of all of them.
    pub(super) is_all: bool,
    /// Some of those that are dead or parked again.
    pub(super) rows: Vec<FailedLine>,
    /// Whether some have not ended.
    pub(super) is_settling: bool,
}

/// The number of messages in a state.
pub(super) struct MovedState {
    pub(super) class: &'static str,
    pub(super) text: String,
    /// Where they are. No list has only those that were sent, so they have none.
    pub(super) href: Option<String>,
}

/// Messages that the operation leaves out, because they died after it was counted.
pub(in super::super) struct LaterLetters {
    pub(in super::super) text: String,
    pub(in super::super) href: String,
}

impl Moved {
    /// Looks up what became of the messages of an operation that has ended; `None` if it sends nothing or nothing is known.
    pub(super) async fn read(
        dashboard: &Dashboard,
        visitor: &Visitor,
        operation: &Operation,
        plan: &BulkPlan,
    ) -> Result<Option<Self>, PageRefusal> {
        let moved = operation.result.as_ref().map_or(0, |result| result.moved);
        if moved == 0 || !plan.sends() {
            return Ok(None);
        }
        let caller = visitor.caller()?;
        let of_operation = [("subject", operation.id.to_string()), ("limit", "1".to_owned())];
        let last: AuditEntries = dashboard.read(caller, &address("/v1/audit", &of_operation)).await?;
        // What it did to messages was recorded before its end.
        let Some(cursor) = last.next else { return Ok(None) };
        let kind = if plan.step == BulkStep::Requeue { "requeued" } else { "decided" };
        let before = [("kind", kind.to_owned()), ("cursor", cursor), ("limit", MAX_FOLLOWED.to_string())];
        let found: AuditEntries = dashboard.read(caller, &address("/v1/audit", &before)).await?;
        let own: Vec<&AuditEntry> =
            found.entries.iter().filter(|entry| is_of(operation, plan.get("queue"), entry)).collect();
        let ids: Vec<Uuid> = own.iter().map(|entry| entry.subject).collect();
        let states = states(dashboard, visitor, operation.id, &ids).await?;
        if states.is_empty() {
            return Ok(None);
        }
        let queue = own.first().and_then(|entry| entry.queue.as_deref());
        let queue = queue.filter(|queue| own.iter().all(|entry| entry.queue.as_deref() == Some(*queue)));
        let mut shown = Self::new(visitor.t(), BulkTexts::of(visitor.language), plan, moved, &states);
        shown.states =
            links(visitor.t(), BulkTexts::of(visitor.language), &states, queue, &operation.started_at);
        let named = operation.result.iter().flat_map(|result| &result.failed_ids);
        let named: Vec<&Uuid> = named.collect();
        let again = states.iter().filter(|(id, state)| has_failed(state) && !named.contains(&id));
        let most = if named.is_empty() { MAX_ROWS } else { MAX_CANARY_ROWS };
        for (id, _) in again.take(most) {
            // It may have been deleted meanwhile.
            if let Ok(message) = dashboard.read(caller, &format!("/v1/messages/{id}")).await {
                shown.rows.push(failed_line(visitor, message));
            }
        }
        Ok(Some(shown))
    }

    fn new(
        t: &'static Texts,
        b: &'static BulkTexts,
        plan: &BulkPlan,
        moved: u64,
        states: &[(Uuid, String)],
    ) -> Self {
        let known = u64::try_from(states.len()).unwrap_or(u64::MAX);
        let text = if known == moved { b.became } else { b.became_of_last };
        let values = [("n", count(known)), ("moved", count(moved)), ("done", plan.step.done(b).to_owned())];
        Self {
            text: fill(text, &values.each_ref().map(|(name, value)| (*name, value.as_str()))),
            states: links(t, b, states, None, ""),
            is_all: known == moved,
            rows: Vec::new(),
            is_settling: states.iter().any(|(_, state)| is_open(state)),
        }
    }
}

impl LaterLetters {
    /// Finds dead letters that match the operation's filter and died after it was counted: a canary's failures are among them.
    pub(in super::super) async fn read(
        dashboard: &Dashboard,
        visitor: &Visitor,
        plan: &BulkPlan,
    ) -> Result<Option<Self>, PageRefusal> {
        let Some(filter) = plan.later_filter() else { return Ok(None) };
        let limit = ("limit", MAX_LATER.to_string());
        let target = address("/v1/dead-letters", &[filter.clone(), vec![limit]].concat());
        let found: FoundLetters = dashboard.read(visitor.caller()?, &target).await?;
        let more = if found.next.is_some() { "+" } else { "" };
        let number = format!("{}{more}", found.dead_letters.len());
        Ok((!found.dead_letters.is_empty()).then(|| Self {
            text: fill(BulkTexts::of(visitor.language).later_letters, &[("n", &number)]),
            href: address("/dead-letters", &filter),
        }))
    }
}

/// Returns the states of messages. Pages of one operation that refresh themselves share them.
async fn states(
    dashboard: &Dashboard,
    visitor: &Visitor,
    operation: Uuid,
    ids: &[Uuid],
) -> Result<Vec<(Uuid, String)>, PageRefusal> {
    let read = async {
        let found = dashboard.api.store.messages().states(ids).await?;
        let found: Vec<(Uuid, &str)> = found.iter().map(|(id, state, _)| (*id, state.as_str())).collect();
        Ok::<_, StoreError>(serde_json::to_vec(&found).map(Bytes::from).unwrap_or_default())
    };
    let target = format!("states of {operation}");
    let bytes = dashboard.shared_reads.get(&visitor.caller()?.role, &target, read).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        tracing::error!(%error, "failed to read states of messages");
        unreadable()
    })
}

/// Whether an entry before the operation's end is about one of its messages.
fn is_of(operation: &Operation, queue: Option<&str>, entry: &AuditEntry) -> bool {
    let reason = operation.start.as_ref().and_then(|start| start.reason.as_deref());
    let has_begun = Timestamp::parse(&operation.started_at) <= Timestamp::parse(&entry.at);
    has_begun
        && entry.actor.as_deref() == Some(&operation.by)
        && entry.detail.as_deref() == reason
        && (queue.is_none() || entry.queue.as_deref() == queue)
}

fn is_open(state: &str) -> bool {
    StateName::parse(state)
        .is_some_and(|state| matches!(state, StateName::Queued | StateName::Sending | StateName::Failed))
}

fn has_failed(state: &str) -> bool {
    StateName::parse(state).is_some_and(|state| matches!(state, StateName::Dead | StateName::Parked))
}

/// Counts the states, with links to the messages that somebody may have to look at.
fn links(
    t: &'static Texts,
    b: &'static BulkTexts,
    states: &[(Uuid, String)],
    queue: Option<&str>,
    since: &str,
) -> Vec<MovedState> {
    let state = |class, name: &str, href: Option<String>, is: &dyn Fn(&str) -> bool| {
        let number = states.iter().filter(|(_, state)| is(state)).count();
        let text = fill(b.became_state, &[("n", &number.to_string()), ("state", name)]);
        (0 < number).then_some(MovedState { class, text, href })
    };
    let one = |state_is: &'static str| {
        let href = has_failed(state_is).then(|| {
            let mut filter = vec![("state", state_is.to_owned()), ("since_from", since.to_owned())];
            filter.extend(queue.map(|queue| ("queue", queue.to_owned())));
            address("/dead-letters", &filter)
        });
        state(marks::of_state(state_is).class, marks::state_name(t, state_is), href, &|state| {
            state == state_is
        })
    };
    let waiting = queue.map_or_else(|| "/queues".to_owned(), |queue| format!("/queues/{queue}"));
    let all = [
        one("sent"),
        one("dead"),
        one("parked"),
        one("cancelled"),
        state("calm", b.became_open, Some(waiting), &is_open),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::language::Language;
    use super::*;

    fn states(words: &[&str]) -> Vec<(Uuid, String)> {
        words.iter().map(|word| (Uuid::now_v7(), (*word).to_owned())).collect()
    }

    #[test]
    fn the_outcome_counts_states_and_says_its_bound() {
        let (t, b) = (Texts::of(Language::English), BulkTexts::of(Language::English));
        let plan = BulkPlan::new(BulkStep::Requeue, vec![("state", "dead".to_owned())]);
        let six = states(&["sent", "sent", "sent", "sent", "dead", "failed"]);
        let shown = Moved::new(t, b, &plan, 6, &six);
        let words: Vec<&str> = shown.states.iter().map(|state| &*state.text).collect();
        assert_eq!(
            (shown.text.as_str(), words.join(", ").as_str()),
            ("6 requeued:", "4 sent, 1 dead, 1 open")
        );
        assert!(shown.is_settling && shown.is_all);
        let some = Moved::new(t, b, &plan, 5_000, &states(&["sent", "sent"]));
        assert_eq!(some.text, "Of the last 2 of 5,000 requeued:");
        assert!(!some.is_settling && !some.is_all);
    }

    #[test]
    fn states_lead_to_rows_that_need_somebody() {
        let (t, b) = (Texts::of(Language::English), BulkTexts::of(Language::English));
        let all = states(&["sent", "parked", "queued"]);
        let links = links(t, b, &all, Some("orders"), "2026-11-18T00:00:00Z");
        let hrefs: Vec<Option<&str>> = links.iter().map(|link| link.href.as_deref()).collect();
        assert_eq!(
            hrefs,
            [
                None,
                Some("/dead-letters?state=parked&since_from=2026-11-18T00%3A00%3A00Z&queue=orders"),
                Some("/queues/orders"),
            ]
        );
    }
}
