//! The condition of the whole system, and what needs a person: decided from a sample, without I/O.

use std::cmp::Reverse;
use std::time::Duration;

use ichido_core::alert::{AlertRule, AlertSubject};
use ichido_core::failure_group::GroupState;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::super::alerts::Alert;
use super::super::models::{Counts, Queue};
use super::super::series::Series;
use super::chart_data::RATE_WINDOW;
use super::group_names::cause;
use super::sampler::Sample;

/// Maximum alerts in the list; the page of alerts has them all.
const MAX_ALERTS_SHOWN: usize = 5;
/// Maximum failure groups in the list, the largest; the page of dead letters has them all.
pub(super) const MAX_GROUPS_SHOWN: usize = 5;

/// The condition of the whole system.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// No worker is alive.
    Down,
    NeedsPerson(usize),
    /// No message was ever accepted.
    New,
    Idle,
    Busy {
        waiting: i64,
        /// How long the oldest message that is due waits.
        oldest: Option<Duration>,
        sent_per_second: f64,
    },
}

/// Something that needs a person.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Need {
    NobodyWorks,
    Parked(i64),
    UnknownKeys(u64),
    /// Nothing was called for [`RATE_WINDOW`], and a message is due for longer.
    Stalled {
        oldest: Duration,
    },
    FiringAlert(Alert),
    Unserved {
        queue: String,
        waiting: i64,
    },
    PausedQueue {
        queue: String,
        waiting: i64,
    },
    /// Dead letters with the same error, which nobody takes care of yet.
    FailureGroup {
        id: Uuid,
        queue: String,
        cause: String,
        count: i64,
        first_seen: Timestamp,
        last_seen: Timestamp,
        came_back: bool,
    },
    /// So many failure groups are not in the list.
    MoreGroups(usize),
    /// No worker has grouped them yet.
    DeadLetters(usize),
}

impl Need {
    /// Returns how many things it stands for.
    const fn count(&self) -> usize {
        match self {
            Self::MoreGroups(groups) => *groups,
            _ => 1,
        }
    }
}

/// Judges the whole system.
pub(super) fn condition(sample: &Sample, needs: &[Need], sent_per_second: f64) -> Condition {
    if needs.contains(&Need::NobodyWorks) {
        return Condition::Down;
    }
    if !needs.is_empty() {
        return Condition::NeedsPerson(needs.iter().map(Need::count).sum());
    }
    let total = total(sample);
    let waiting = total.queued + total.sending + total.failed;
    if waiting == 0 && total.sent + total.dead + total.cancelled == 0 {
        return Condition::New;
    }
    if waiting == 0 && sent_per_second <= 0.0 {
        return Condition::Idle;
    }
    Condition::Busy { waiting, oldest: oldest(&sample.queues), sent_per_second }
}

/// Returns how long the oldest message that is due waits.
fn oldest<'q>(queues: impl IntoIterator<Item = &'q Queue>) -> Option<Duration> {
    let seconds = queues.into_iter().filter_map(|queue| queue.oldest_waiting_seconds);
    seconds.filter_map(|seconds| Duration::try_from_secs_f64(seconds).ok()).max()
}

/// Lists what needs a person: first what stops everything, then what may lose or repeat an effect.
pub(super) fn needs(sample: &Sample, recent: &Series) -> Vec<Need> {
    let total = total(sample);
    let is_alive = sample.nodes.iter().any(|node| node.alive);
    let mut needs = Vec::new();
    needs.extend((!is_alive).then_some(Need::NobodyWorks));
    needs.extend((0 < total.parked).then_some(Need::Parked(total.parked)));
    needs.extend((0 < sample.unknown_keys).then_some(Need::UnknownKeys(sample.unknown_keys)));
    let is_served =
        |queue: &&Queue| !queue.paused && (queue.served_here || sample.published.contains(&queue.name));
    let waits_for = oldest(sample.queues.iter().filter(is_served)).filter(|oldest| RATE_WINDOW <= *oldest);
    let is_silent = recent.total.executed == 0 && recent.total.sent == 0;
    let stalled = waits_for.filter(|_| is_alive && is_silent);
    needs.extend(stalled.map(|oldest| Need::Stalled { oldest }));
    needs.extend(failures(sample));
    let stopped: Vec<Need> =
        sample.queues.iter().filter_map(|queue| stopped(queue, is_alive && !is_served(&queue))).collect();
    let is_listed = |alert: &Alert| has_rows(alert) || is_explained(alert, &stopped);
    let alerts = sample.alerts.iter().filter(|alert| !is_listed(alert)).take(MAX_ALERTS_SHOWN);
    needs.extend(alerts.map(|alert| Need::FiringAlert(alert.clone())));
    needs.extend(stopped);
    needs
}

/// Returns why a queue sends nothing, if messages wait in it.
fn stopped(queue: &Queue, is_unserved: bool) -> Option<Need> {
    let waiting = queue.counts.map_or(0, |counts| counts.queued + counts.failed);
    let name = queue.name.clone();
    match (waiting, queue.paused) {
        (0, _) => None,
        (_, true) => Some(Need::PausedQueue { queue: name, waiting }),
        (_, false) => is_unserved.then_some(Need::Unserved { queue: name, waiting }),
    }
}

/// Lists the failure groups that nobody takes care of yet.
fn failures(sample: &Sample) -> Vec<Need> {
    let letters = sample.open_letters();
    if letters == 0 {
        // Groups have parked messages too, which are in the list already.
        return Vec::new();
    }
    if sample.groups.is_empty() {
        return vec![Need::DeadLetters(letters)];
    }
    let is_open = |state| matches!(state, GroupState::Open | GroupState::CameBack);
    // Parked messages are in the list already.
    let has_dead = |queue: &str| {
        let counts = sample.queues.iter().find(|known| known.name == queue).and_then(|known| known.counts);
        counts.is_none_or(|counts| 0 < counts.dead)
    };
    let open = sample.groups.iter().filter(|group| is_open(group.standing.state));
    let open = open.filter(|group| has_dead(group.queue.as_str()));
    let mut open: Vec<_> = open.collect();
    open.sort_by_key(|group| Reverse(group.count));
    let mut needs: Vec<Need> = open
        .into_iter()
        .map(|group| Need::FailureGroup {
            id: group.id,
            queue: group.queue.as_str().to_owned(),
            cause: cause(group.code.as_deref(), &group.template),
            count: group.count,
            first_seen: group.first_seen,
            last_seen: group.last_seen,
            came_back: group.standing.state == GroupState::CameBack,
        })
        .collect();
    let more = needs.len().saturating_sub(MAX_GROUPS_SHOWN);
    if 0 < more {
        needs.truncate(MAX_GROUPS_SHOWN);
        needs.push(Need::MoreGroups(more));
    }
    needs
}

/// Returns whether an alert is about messages or requests that are listed while they wait, and not until the alert resolves.
fn has_rows(alert: &Alert) -> bool {
    use AlertRule::{DeadLetter, DeadLetters, DeadSurge, Parked, UnknownOutcome};
    let rule = AlertRule::parse(&alert.rule);
    matches!(rule, Some(DeadLetter | DeadLetters | DeadSurge | Parked | UnknownOutcome))
}

/// Returns whether an alert says that messages of a queue wait, and the queue is listed with the reason.
fn is_explained(alert: &Alert, stopped: &[Need]) -> bool {
    let Some(AlertSubject::Queue(name)) = AlertSubject::parse(&alert.about) else { return false };
    let is_stopped = stopped.iter().any(|need| match need {
        Need::PausedQueue { queue, .. } | Need::Unserved { queue, .. } => *queue == name,
        _ => false,
    });
    is_stopped && matches!(AlertRule::parse(&alert.rule), Some(AlertRule::OldestWaiting))
}

/// Adds up all queues.
pub(super) fn total(sample: &Sample) -> Counts {
    sample.queues.iter().filter_map(|queue| queue.counts).fold(Counts::default(), |total, counts| Counts {
        queued: total.queued + counts.queued,
        sending: total.sending + counts.sending,
        failed: total.failed + counts.failed,
        parked: total.parked + counts.parked,
        sent: total.sent + counts.sent,
        dead: total.dead + counts.dead,
        cancelled: total.cancelled + counts.cancelled,
    })
}

#[cfg(test)]
mod tests {
    use ichido_core::failure_group::GroupStanding;
    use ichido_store::failure_group::FailureGroup;
    use ichido_store::message::QueueName;
    use serde_json::json;

    use super::super::super::models::NodeStatus;
    use super::super::super::series::SeriesCounts;
    use super::*;

    fn node(alive: bool) -> NodeStatus {
        let (started_at, seen_at) = ("2026-11-18T00:00:00Z".to_owned(), "2026-11-18T00:00:00Z".to_owned());
        NodeStatus { id: Uuid::nil(), name: "web-1".to_owned(), alive, started_at, seen_at }
    }

    /// Returns a queue from its counts: queued, failed, parked, sent.
    fn queue(name: &str, [queued, failed, parked, sent]: [i64; 4], paused: bool) -> Queue {
        let value = json!({
            "name": name, "served_here": false, "paused": paused, "paused_by": null, "paused_at": null,
            "counts": { "queued": queued, "sending": 0, "failed": failed, "parked": parked, "sent": sent, "dead": 0, "cancelled": 0 },
            "oldest_waiting_at": null, "oldest_waiting_seconds": if queued == 0 { None } else { Some(0.8) },
        });
        serde_json::from_value(value).expect("a queue")
    }

    fn alert(rule: AlertRule, text: &str) -> Alert {
        let value = json!({
            "id": Uuid::nil(), "rule": rule.as_str(), "about": "queue orders", "state": "firing", "opened_at": "", "clear_since": null,
            "resolved_at": null, "value": 1.0, "samples": 1, "above": 0.0, "unit": "count", "window_seconds": null, "text": text,
        });
        serde_json::from_value(value).expect("an alert")
    }

    #[test]
    fn the_sentence_follows_from_the_sample() {
        let (up, quiet) = (|| vec![node(false), node(true)], Series::default());
        let sample = |queues, nodes| Sample::new_for_tests(queues, &["orders"], nodes, Vec::new(), 0, 0);
        let oldest = Some(Duration::from_millis(800));
        let busy = Condition::Busy { waiting: 5, oldest, sent_per_second: 0.0 };
        for (name, sample, expected) in [
            ("nothing yet", sample(vec![queue("orders", [0; 4], false)], up()), Condition::New),
            ("idle", sample(vec![queue("orders", [0, 0, 0, 7], false)], up()), Condition::Idle),
            ("busy", sample(vec![queue("orders", [3, 2, 0, 7], false)], up()), busy),
            (
                "dead is not idle",
                sample(vec![queue("orders", [0, 0, 0, 7], false)], vec![node(false)]),
                Condition::Down,
            ),
            ("nobody was ever there", sample(Vec::new(), Vec::new()), Condition::Down),
            ("parked", sample(vec![queue("orders", [3, 0, 1, 7], false)], up()), Condition::NeedsPerson(1)),
            (
                "paused, nothing waits",
                sample(vec![queue("orders", [0, 0, 0, 1], true)], up()),
                Condition::Idle,
            ),
        ] {
            assert_eq!(condition(&sample, &needs(&sample, &quiet), 0.0), expected, "{name}");
        }
        // A worker that keeps up leaves nothing waiting.
        let sample = sample(vec![queue("orders", [0, 0, 0, 7], false)], up());
        let fast = Condition::Busy { waiting: 0, oldest: None, sent_per_second: 412.0 };
        assert_eq!(condition(&sample, &[], 412.0), fast);
    }

    #[test]
    fn what_needs_a_person_is_listed_in_order() {
        let queues = vec![
            queue("orders", [1, 0, 2, 0], true),
            queue("lost", [4, 1, 0, 0], false),
            queue("quiet", [0; 4], true),
        ];
        // What is listed with its rows is not listed again as an alert.
        let rules = [AlertRule::DeadSurge, AlertRule::Parked, AlertRule::UnknownOutcome, AlertRule::LagP95];
        let alerts = rules.map(|rule| alert(rule, "too many")).into();
        let sample = Sample::new_for_tests(queues, &["orders"], vec![node(true)], alerts, 3, 5);
        let expected = [
            Need::Parked(2),
            Need::UnknownKeys(5),
            Need::DeadLetters(3),
            Need::FiringAlert(alert(AlertRule::LagP95, "too many")),
            Need::PausedQueue { queue: "orders".to_owned(), waiting: 1 },
            Need::Unserved { queue: "lost".to_owned(), waiting: 5 },
        ];
        assert_eq!(needs(&sample, &Series::default()), expected);
        assert_eq!(condition(&sample, &expected, 3.0), Condition::NeedsPerson(6));
    }

    #[test]
    fn a_queue_that_is_stopped_is_listed_once() {
        let late = alert(AlertRule::OldestWaiting, "the oldest message has waited for 10m");
        let found = |paused, waiting| {
            let queues = vec![queue("orders", [waiting, 0, 0, 0], paused)];
            let alerts = vec![late.clone()];
            let sample = Sample::new_for_tests(queues, &["orders"], vec![node(true)], alerts, 0, 0);
            needs(&sample, &Series::default())
        };
        assert_eq!(found(true, 3), [Need::PausedQueue { queue: "orders".to_owned(), waiting: 3 }]);
        assert_eq!(found(false, 3), [Need::FiringAlert(late.clone())], "nothing else says why");
        assert_eq!(found(true, 0), [Need::FiringAlert(late.clone())]);
    }

    #[test]
    fn silence_while_messages_are_due_needs_a_person() {
        let waiting = |seconds: f64, paused| {
            let queue = queue("orders", [1, 0, 0, 0], paused);
            Queue { oldest_waiting_seconds: Some(seconds), ..queue }
        };
        let called = |executed| Series {
            total: SeriesCounts { executed, ..SeriesCounts::default() },
            ..Series::default()
        };
        for (queue, executed, node_alive, is_stalled) in [
            (waiting(301.0, false), 0, true, true),
            // Calls are made, others wait longer than usual, or the reason is listed already.
            (waiting(301.0, false), 1, true, false),
            (waiting(299.0, false), 0, true, false),
            (waiting(301.0, true), 0, true, false),
            (waiting(301.0, false), 0, false, false),
        ] {
            let sample =
                Sample::new_for_tests(vec![queue], &["orders"], vec![node(node_alive)], Vec::new(), 0, 0);
            let found = needs(&sample, &called(executed));
            assert_eq!(
                found.contains(&Need::Stalled { oldest: Duration::from_secs(301) }),
                is_stalled,
                "{found:?}"
            );
        }
    }

    fn group(number: u128, state: GroupState) -> FailureGroup {
        FailureGroup {
            id: Uuid::from_u128(number),
            queue: QueueName::parse("orders").expect("a name"),
            code: Some("BROKER_5XX".to_owned()),
            template: "no such symbol \"…\"".to_owned(),
            count: 3_412,
            first_seen: Timestamp::EPOCH,
            last_seen: Timestamp::EPOCH,
            standing: GroupStanding { state, since: Timestamp::EPOCH },
            changed_by: None,
        }
    }

    #[test]
    fn failure_groups_are_named_instead_of_counted() {
        use GroupState::{Acknowledged, CameBack, Open, Resolved};
        let failures = |letters, groups| {
            let mut sample = Sample::new_for_tests(Vec::new(), &[], vec![node(true)], Vec::new(), letters, 0);
            sample.groups = groups;
            needs(&sample, &Series::default())
        };
        let need = |number: u128, came_back| Need::FailureGroup {
            id: Uuid::from_u128(number),
            queue: "orders".to_owned(),
            cause: "BROKER_5XX no such symbol \"…\"".to_owned(),
            count: 3_412,
            first_seen: Timestamp::EPOCH,
            last_seen: Timestamp::EPOCH,
            came_back,
        };
        let states = [Open, CameBack, Acknowledged, Resolved];
        let all = (1..).zip(states).map(|(number, state)| group(number, state)).collect();
        assert_eq!(failures(9, all), [need(1, false), need(2, true)], "only what nobody takes care of");
        assert_eq!(failures(9, vec![group(1, Acknowledged)]), [], "somebody works on it");
        assert_eq!(failures(9, Vec::new()), [Need::DeadLetters(9)], "not grouped yet");
        assert_eq!(failures(0, vec![group(1, Open)]), [], "parked messages are in the list already");
        let parked = vec![queue("orders", [0, 0, 2, 0], false), queue("mail", [0; 4], false)];
        let mut sample = Sample::new_for_tests(parked, &[], vec![node(true)], Vec::new(), 9, 0);
        sample.groups = vec![group(1, Open)];
        assert_eq!(
            needs(&sample, &Series::default()),
            [Need::Parked(2)],
            "so are those of a queue without dead ones"
        );
        let few = FailureGroup { count: 3_411, ..group(1, Open) };
        let both = failures(9, vec![few, group(2, Open)]);
        assert_eq!(both.first(), Some(&need(2, false)), "the largest first");
        let many = failures(99, (1..=6).map(|number| group(number, Open)).collect());
        assert_eq!((many.len(), many.last()), (6, Some(&Need::MoreGroups(1))));
    }
}
