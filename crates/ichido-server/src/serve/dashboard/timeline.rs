//! The timeline of a message: its hops, its attempts, and what people did.
//!
//! Guarantee: one pass over the events. A claim and its end are one attempt, and equal attempts in a row are one entry, so a message with
//! thousands of attempts has a short timeline. At most [`MAX_ENTRIES`] are shown, the oldest and the newest, and how many are left out.

use std::time::Duration;

use ichido_core::hops::Hops;
use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::super::models::Event;

/// Maximum entries of a timeline.
pub(super) const MAX_ENTRIES: usize = 200;
/// How many of them are the oldest ones.
const OLDEST_SHOWN: usize = 20;

/// An entry of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimelineEntry {
    /// A component that the request passed.
    Hop { name: String, at: String },
    /// Attempts with the same outcome.
    Attempts(AttemptRun),
    /// Anything else that happened to the message.
    Step(TimelineStep),
    /// Entries that are not shown.
    LeftOut { count: usize },
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

/// Returns the timeline of a message, oldest first.
pub(super) fn timeline(hops: Option<&str>, events: &[Event]) -> Vec<TimelineEntry> {
    let hops = hops.map(|hops| Hops::read([hops])).unwrap_or_default();
    let mut entries: Vec<TimelineEntry> = hops
        .iter()
        .map(|hop| TimelineEntry::Hop { name: hop.name.as_str().to_owned(), at: hop.at.to_string() })
        .collect();
    let mut open: Option<&Event> = None;
    for event in events {
        match (event.kind.as_str(), open) {
            ("claimed", previous) => {
                entries.extend(previous.map(|claim| attempt(claim, None)));
                open = Some(event);
            }
            // Internal steps: the start of a call, and the end of a backoff.
            ("began" | "came_due", _) => (),
            (_, Some(claim)) if is_end(claim, event) => {
                add(&mut entries, attempt(claim, Some(event)));
                open = None;
            }
            _ => entries.push(TimelineEntry::Step(step(event))),
        }
    }
    if let Some(claim) = open {
        entries.push(attempt(claim, None));
    }
    shortened(entries)
}

fn is_end(claim: &Event, event: &Event) -> bool {
    event.from.as_deref() == Some(StateName::Sending.as_str())
        && (event.fence.is_none() || event.fence == claim.fence)
}

fn attempt(claim: &Event, end: Option<&Event>) -> TimelineEntry {
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

fn shortened(mut entries: Vec<TimelineEntry>) -> Vec<TimelineEntry> {
    let count = entries.len().saturating_sub(MAX_ENTRIES);
    if 0 < count {
        entries.splice(OLDEST_SHOWN..OLDEST_SHOWN + count, [TimelineEntry::LeftOut { count }]);
    }
    entries
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
    fn equal_attempts_are_one_entry() {
        let mut events = vec![event(0, "accepted", None, "queued", 0, None)];
        events.extend((1..=10_000).flat_map(failure));
        events.push(event(200_000, "claimed", Some("queued"), "sending", 10_001, Some(10_001)));
        events.push(event(200_001, "succeeded", Some("sending"), "sent", 10_001, Some(10_001)));
        let entries = timeline(Some(r#"bff;t=1800000000000;r="7f1c""#), &events);
        let [
            TimelineEntry::Hop { name, .. },
            TimelineEntry::Step(accepted),
            TimelineEntry::Attempts(run),
            TimelineEntry::Attempts(last),
        ] = &entries[..]
        else {
            panic!("{entries:?}")
        };
        assert_eq!((name.as_str(), accepted.kind.as_str()), ("bff", "accepted"));
        assert_eq!((run.first, run.last, run.count, run.fence), (1, 10_000, 10_000, Some(10_000)));
        assert_eq!(run.at, Timestamp::from_secs(10).to_string());
        assert_eq!((run.outcome.status, run.took), (Some(503), Some(Duration::from_secs(2))));
        assert_eq!((last.first, last.count, last.outcome.kind.as_deref()), (10_001, 1, Some("succeeded")));
    }

    #[test]
    fn an_attempt_in_flight_and_a_late_response_are_shown() {
        let events = [
            event(1, "claimed", Some("queued"), "sending", 1, Some(1)),
            event(2, "worker_died", Some("sending"), "queued", 1, Some(1)),
            event(3, "claimed", Some("queued"), "sending", 2, Some(2)),
            event(4, "late_success", Some("sending"), "sending", 2, Some(1)),
        ];
        let entries = timeline(None, &events);
        assert_eq!(entries.len(), 3, "{entries:?}");
        assert!(matches!(&entries[1], TimelineEntry::Step(step) if step.kind == "late_success"));
        assert!(
            matches!(&entries[2], TimelineEntry::Attempts(run) if run.outcome.kind.is_none() && run.fence == Some(2))
        );
    }

    #[test]
    fn a_long_timeline_shows_its_ends() {
        let step = |at| event(at, "requeued", Some("dead"), "queued", 0, None);
        let entries = timeline(None, &(0..1_000).map(step).collect::<Vec<_>>());
        assert_eq!(entries.len(), MAX_ENTRIES + 1);
        assert_eq!(entries[OLDEST_SHOWN], TimelineEntry::LeftOut { count: 800 });
        assert!(
            matches!(entries.last(), Some(TimelineEntry::Step(last)) if last.at == Timestamp::from_secs(999).to_string())
        );
    }
}
