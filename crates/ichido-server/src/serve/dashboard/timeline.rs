//! The timeline of a message and its key: hops, claims of the key, attempts, and what people did.
//!
//! Guarantee: one pass over a page of events, so it is as short as the page, however long the history. A claim and its end are one attempt,
//! equal attempts in a row are one entry, and a time without events is one too.

use std::time::Duration;

use ichido_core::hops::Hops;
use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::super::keys::{KeyEvent, KeyRecord};
use super::super::models::{Event, ReplayCount};

/// Maximum recorded events on a page.
pub(super) const PAGE: u32 = 200;
/// A shorter time without events is not mentioned.
const MIN_IDLE: Duration = Duration::from_mins(1);

/// What a timeline is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimelineParts<'a> {
    /// The hop chain, as in its header.
    pub(super) hops: Option<&'a str>,
    /// The requests that enqueued the message, with their history.
    pub(super) keys: &'a [KeyRecord],
    /// When the message was accepted, unless the events say it.
    pub(super) accepted_at: Option<&'a str>,
    /// How often the message was enqueued again.
    pub(super) replays: Option<&'a ReplayCount>,
    /// A page of the message's events.
    pub(super) events: &'a [Event],
    /// The position of the page before.
    pub(super) earlier: Option<&'a str>,
}

/// An entry of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimelineEntry {
    /// A component that the request passed.
    Hop { name: String, at: String },
    /// A step of the request's key.
    Key(KeyStep),
    /// Requests that got the stored response of an operation, or found the message enqueued.
    Replays { operation: Option<String>, replays: ReplayCount },
    /// Attempts with the same outcome.
    Attempts(AttemptRun),
    /// Anything else that happened to the message.
    Step(TimelineStep),
    /// A time in which nothing happened.
    Idle { lasted: Duration },
    /// Events before this page, which ends at this time.
    Earlier { before: String, at: String },
}

/// A step in the history of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyStep {
    pub(super) at: String,
    pub(super) kind: String,
    pub(super) operation: String,
    pub(super) to: String,
    pub(super) fence: Option<u64>,
    pub(super) actor: Option<String>,
}

/// Attempts in a row that ended alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttemptRun {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) count: usize,
    /// When the first was claimed, and the last ended.
    pub(super) at: String,
    pub(super) ended_at: Option<String>,
    /// How long the last one took.
    pub(super) took: Option<Duration>,
    /// Of the last one.
    pub(super) node: Option<Uuid>,
    pub(super) fence: Option<u64>,
    pub(super) outcome: AttemptEnd,
    pub(super) receipt: Option<String>,
    pub(super) text: Option<String>,
    /// Why attempts begin at 1 again.
    pub(super) again: Option<SentAgain>,
}

/// What a person did to send a message again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentAgain {
    Requeued,
    Decided,
}

/// How an attempt ended; equal ones are grouped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttemptEnd {
    /// The kind of the event that ended it; `None` while it is in flight.
    pub(super) kind: Option<String>,
    /// The state that it left the message in.
    pub(super) to: String,
    pub(super) status: Option<u16>,
    pub(super) effect: String,
    pub(super) code: Option<String>,
}

/// A step that is not an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TimelineStep {
    pub(super) at: String,
    pub(super) kind: String,
    pub(super) to: String,
    pub(super) actor: Option<String>,
    pub(super) text: Option<String>,
    pub(super) receipt: Option<String>,
}

impl TimelineEntry {
    /// Returns when it began; `None` for a hop, whose clock is another machine's.
    fn began(&self) -> Option<Timestamp> {
        match self {
            Self::Key(KeyStep { at, .. })
            | Self::Attempts(AttemptRun { at, .. })
            | Self::Step(TimelineStep { at, .. })
            | Self::Replays { replays: ReplayCount { last_at: at, .. }, .. }
            | Self::Earlier { at, .. } => Timestamp::parse(at),
            Self::Hop { .. } | Self::Idle { .. } => None,
        }
    }

    fn ended(&self) -> Option<Timestamp> {
        match self {
            // An attempt in flight has not ended.
            Self::Attempts(run) => run.ended_at.as_deref().and_then(Timestamp::parse),
            _ => self.began(),
        }
    }
}

/// Returns the timeline, oldest first.
pub(super) fn timeline(parts: &TimelineParts<'_>) -> Vec<TimelineEntry> {
    let hops = parts.hops.map(|hops| Hops::read([hops])).unwrap_or_default();
    let hops = hops
        .iter()
        .map(|hop| TimelineEntry::Hop { name: hop.name.as_str().to_owned(), at: hop.at.to_string() });
    let mut entries: Vec<TimelineEntry> = parts.keys.iter().flat_map(key_steps).collect();
    let replays = parts.keys.iter().map(|key| (key.operation.clone(), key.replays.as_ref()));
    entries.extend(replays.chain([(None, parts.replays)]).filter_map(|(operation, replays)| {
        Some(TimelineEntry::Replays { operation, replays: replays?.clone() })
    }));
    entries.extend(parts.accepted_at.map(|at| TimelineEntry::Step(accepted(at))));
    if let (Some(before), Some(first)) = (parts.earlier, parts.events.first()) {
        entries.push(TimelineEntry::Earlier { before: before.to_owned(), at: first.at.clone() });
    }
    entries.extend(event_entries(parts.events));
    // Stable: what happened at the same moment stays in this order.
    entries.sort_by_key(TimelineEntry::began);
    hops.chain(with_idle_times(entries)).collect()
}

fn key_steps(record: &KeyRecord) -> impl Iterator<Item = TimelineEntry> {
    let operation = record.operation.as_deref().unwrap_or_default();
    record.history.iter().map(move |KeyEvent { at, kind, to, fence, actor, .. }| {
        TimelineEntry::Key(KeyStep {
            at: at.clone(),
            kind: kind.clone(),
            operation: operation.to_owned(),
            to: to.clone(),
            fence: *fence,
            actor: actor.clone(),
        })
    })
}

fn accepted(at: &str) -> TimelineStep {
    TimelineStep {
        at: at.to_owned(),
        kind: "accepted".to_owned(),
        to: StateName::Queued.to_string(),
        actor: None,
        text: None,
        receipt: None,
    }
}

/// Adds entries for times without events. A backoff within a run of attempts is part of the run.
fn with_idle_times(entries: Vec<TimelineEntry>) -> Vec<TimelineEntry> {
    let mut shown = Vec::with_capacity(entries.len());
    let mut ended: Option<Timestamp> = None;
    for entry in entries {
        let lasted = ended.zip(entry.began()).map_or(Duration::ZERO, |(ended, began)| began.since(ended));
        if MIN_IDLE <= lasted && !matches!(entry, TimelineEntry::Earlier { .. }) {
            shown.push(TimelineEntry::Idle { lasted });
        }
        // What lies before the page may have been busy.
        ended = if matches!(entry, TimelineEntry::Earlier { .. }) { None } else { ended.max(entry.ended()) };
        shown.push(entry);
    }
    shown
}

/// Returns the entries of a page of events.
fn event_entries(events: &[Event]) -> Vec<TimelineEntry> {
    let mut entries = Vec::new();
    let (mut open, mut again): (Option<&Event>, _) = (None, None);
    for event in events {
        again = sent_again(event).or(again);
        match (event.kind.as_str(), open) {
            ("claimed", previous) => {
                entries.extend(previous.map(|claim| attempt(claim, None, again)));
                open = Some(event);
            }
            // Internal steps: the start of a call, and the end of a backoff.
            ("began" | "came_due", _) => (),
            (_, Some(claim)) if is_end(claim, event) => {
                add(&mut entries, attempt(claim, Some(event), again));
                open = None;
            }
            _ => entries.push(TimelineEntry::Step(step(event))),
        }
    }
    entries.extend(open.map(|claim| attempt(claim, None, again)));
    entries
}

fn is_end(claim: &Event, event: &Event) -> bool {
    event.from.as_deref() == Some(StateName::Sending.as_str())
        && (event.fence.is_none() || event.fence == claim.fence)
}

/// A retry of a failed message continues its attempts, and is not among these.
fn sent_again(event: &Event) -> Option<SentAgain> {
    let is_ended = event.from.as_deref() != Some(StateName::Failed.as_str());
    match event.kind.as_str() {
        _ if !is_ended || event.to != StateName::Queued.as_str() => None,
        "requeued" => Some(SentAgain::Requeued),
        "decided" => Some(SentAgain::Decided),
        _ => None,
    }
}

fn attempt(claim: &Event, end: Option<&Event>, again: Option<SentAgain>) -> TimelineEntry {
    let took = end.and_then(|end| Some(Timestamp::parse(&end.at)?.since(Timestamp::parse(&claim.at)?)));
    TimelineEntry::Attempts(AttemptRun {
        first: claim.attempts,
        last: claim.attempts,
        count: 1,
        at: claim.at.clone(),
        ended_at: end.map(|end| end.at.clone()),
        took,
        node: claim.node,
        fence: claim.fence,
        outcome: AttemptEnd {
            kind: end.map(|end| end.kind.clone()),
            to: end.map_or_else(|| claim.to.clone(), |end| end.to.clone()),
            status: end.and_then(|end| end.status),
            effect: end.map_or_else(String::new, |end| end.effect.clone()),
            code: end.and_then(|end| end.error_code.clone()),
        },
        receipt: end.and_then(|end| end.receipt.clone()),
        text: end.and_then(|end| end.error_text.clone()),
        again,
    })
}

/// Adds an attempt, to the entry before if it ended alike.
fn add(entries: &mut Vec<TimelineEntry>, entry: TimelineEntry) {
    if let (Some(TimelineEntry::Attempts(run)), TimelineEntry::Attempts(next)) = (entries.last_mut(), &entry)
        && run.outcome == next.outcome
        && run.receipt == next.receipt
    {
        let (first, at, count) = (run.first, std::mem::take(&mut run.at), run.count + 1);
        *run = AttemptRun { first, count, at, ..next.clone() };
        return;
    }
    entries.push(entry);
}

fn step(event: &Event) -> TimelineStep {
    TimelineStep {
        at: event.at.clone(),
        kind: event.kind.clone(),
        to: event.to.clone(),
        actor: event.actor.clone(),
        text: event.error_text.clone(),
        receipt: event.receipt.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(at: u32, kind: &str, from: Option<&str>, to: &str, attempts: u32, fence: Option<u64>) -> Event {
        let time = Timestamp::from_secs(i64::from(at)).to_string();
        let value = json!({
            "at": time, "kind": kind, "from": from, "to": to, "idempotency_key": "k", "trace_id": null, "traceparent": null,
            "attempts": attempts, "effect": "not_done", "error_code": (kind == "failed").then_some("BROKER_5XX"), "error_text": null,
            "status": (kind == "failed").then_some(503), "receipt": null, "result_digest": null, "fence": fence, "node": null, "actor": null,
        });
        serde_json::from_value(value).expect("an event")
    }

    /// Returns an attempt that failed.
    fn failure(number: u32) -> [Event; 3] {
        let fence = Some(u64::from(number));
        [
            event(number * 10, "claimed", Some("queued"), "sending", number, fence),
            event(number * 10 + 2, "failed", Some("sending"), "failed", number, fence),
            event(number * 10 + 5, "came_due", Some("failed"), "queued", number, None),
        ]
    }

    #[test]
    fn replays_are_one_entry_at_the_time_of_the_last() {
        let events = [
            event(0, "accepted", None, "queued", 0, None),
            event(90, "cancelled", Some("queued"), "cancelled", 0, None),
        ];
        let time = |seconds| Timestamp::from_secs(seconds).to_string();
        let replays = ReplayCount { count: 14, first_at: time(10), last_at: time(50) };
        let parts = TimelineParts { replays: Some(&replays), events: &events, ..TimelineParts::default() };
        let entries = timeline(&parts);
        let [
            TimelineEntry::Step(_),
            TimelineEntry::Replays { operation: None, replays: shown },
            TimelineEntry::Step(last),
        ] = &entries[..]
        else {
            panic!("{entries:?}")
        };
        assert_eq!((shown, last.kind.as_str()), (&replays, "cancelled"));
    }

    #[test]
    fn equal_attempts_are_one_entry() {
        let mut events = vec![event(0, "accepted", None, "queued", 0, None)];
        events.extend((1..=10_000).flat_map(failure));
        events.push(event(200_000, "claimed", Some("queued"), "sending", 10_001, Some(10_001)));
        events.push(event(200_001, "succeeded", Some("sending"), "sent", 10_001, Some(10_001)));
        let hops = Some(r#"bff;t=1800000000000;r="7f1c""#);
        let entries = timeline(&TimelineParts { hops, events: &events, ..TimelineParts::default() });
        let [
            TimelineEntry::Hop { name, .. },
            TimelineEntry::Step(accepted),
            TimelineEntry::Attempts(run),
            TimelineEntry::Idle { lasted },
            TimelineEntry::Attempts(last),
        ] = &entries[..]
        else {
            panic!("{entries:?}")
        };
        assert_eq!((name.as_str(), accepted.kind.as_str()), ("bff", "accepted"));
        assert_eq!((run.first, run.last, run.count, run.fence), (1, 10_000, 10_000, Some(10_000)));
        assert_eq!(run.at, Timestamp::from_secs(10).to_string());
        assert_eq!((run.outcome.status, run.took), (Some(503), Some(Duration::from_secs(2))));
        assert_eq!(*lasted, Duration::from_secs(200_000 - 100_002));
        assert_eq!((last.first, last.count, last.outcome.kind.as_deref()), (10_001, 1, Some("succeeded")));
    }

    #[test]
    fn attempts_after_a_requeue_say_so() {
        let again = |entries: &[TimelineEntry]| -> Vec<Option<SentAgain>> {
            let of = |entry: &TimelineEntry| match entry {
                TimelineEntry::Attempts(run) => Some(run.again),
                _ => None,
            };
            entries.iter().filter_map(of).collect()
        };
        for (kind, from, expected) in [
            ("requeued", "dead", Some(SentAgain::Requeued)),
            ("decided", "parked", Some(SentAgain::Decided)),
            ("requeued", "failed", None),
        ] {
            let mut events = Vec::from(failure(1));
            events.push(event(20, kind, Some(from), "queued", 0, None));
            events.extend(failure(3));
            let entries = timeline(&TimelineParts { events: &events, ..TimelineParts::default() });
            assert_eq!(again(&entries), [None, expected], "{kind} {from}");
        }
    }

    #[test]
    fn an_attempt_in_flight_and_a_late_response_are_shown() {
        let events = [
            event(1, "claimed", Some("queued"), "sending", 1, Some(1)),
            event(2, "worker_died", Some("sending"), "queued", 1, Some(1)),
            event(3, "claimed", Some("queued"), "sending", 2, Some(2)),
            event(4, "late_success", Some("sending"), "sending", 2, Some(1)),
        ];
        let entries = timeline(&TimelineParts { events: &events, ..TimelineParts::default() });
        assert_eq!(entries.len(), 3, "{entries:?}");
        assert!(
            matches!(&entries[1], TimelineEntry::Attempts(run) if run.outcome.kind.is_none() && run.fence == Some(2))
        );
        assert!(matches!(&entries[2], TimelineEntry::Step(step) if step.kind == "late_success"));
    }

    #[test]
    fn a_key_is_in_the_timeline_from_its_first_claim_on() {
        let at = |seconds: i64| Timestamp::from_secs(seconds).to_string();
        let entry = |seconds, kind: &str| json!({ "at": at(seconds), "kind": kind, "from": "", "to": "applied", "fence": 7, "actor": null });
        let key: KeyRecord = serde_json::from_value(json!({
            "kind": "request", "operation": "orders.create", "queue": null, "identity": "ann", "idempotency_key": "k", "key_hash": "00",
            "state": "applied", "request_digest": "", "result_digest": null, "created_at": at(1), "completed_at": at(4), "expires_at": null,
            "claimed_at": at(1), "lease_until": null, "not_done_from": null, "message": null, "hops": null, "trace": null,
            "response": null, "history": [entry(1, "claimed"), entry(4, "settled")],
        }))
        .expect("a record");
        let [claimed, failed, _] = failure(1);
        let events = [event(2, "accepted", None, "queued", 0, None), claimed, failed];
        let keys = std::slice::from_ref(&key);
        let entries = timeline(&TimelineParts { keys, events: &events, ..TimelineParts::default() });
        let [
            TimelineEntry::Key(claimed),
            TimelineEntry::Step(accepted),
            TimelineEntry::Key(settled),
            TimelineEntry::Attempts(_),
        ] = &entries[..]
        else {
            panic!("{entries:?}")
        };
        assert_eq!((claimed.kind.as_str(), claimed.operation.as_str()), ("claimed", "orders.create"));
        assert_eq!((accepted.kind.as_str(), settled.kind.as_str()), ("accepted", "settled"));
    }

    #[test]
    fn a_page_of_a_long_history_says_that_there_is_more() {
        let step = |at| event(at, "requeued", Some("dead"), "queued", 0, None);
        let events: Vec<Event> = (800..1_000).map(step).collect();
        let accepted_at = Timestamp::from_secs(1).to_string();
        let entries = timeline(&TimelineParts {
            accepted_at: Some(&accepted_at),
            events: &events,
            earlier: Some("cursor"),
            ..TimelineParts::default()
        });
        assert_eq!(entries.len(), 202, "no idle time beside what is left out");
        assert!(matches!(&entries[0], TimelineEntry::Step(step) if step.kind == "accepted"));
        assert!(matches!(&entries[1], TimelineEntry::Earlier { before, .. } if before == "cursor"));
    }
}
