//! The first page: one sentence, what needs a person, then charts and numbers.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use ichido_core::failure_group::GroupState;
use ichido_core::series::SeriesSubject;
use ichido_core::text::bounded;
use ichido_http::clock;
use uuid::Uuid;

use super::super::models::{Counts, Queue};
use super::super::request::query_pairs;
use super::super::series::Series;
use super::Dashboard;
use super::bulk_texts::Texts as BulkTexts;
use super::chart_data::{ChartRange, RATE_WINDOW, sent_per_second};
use super::chart_texts;
use super::charts::{ChartSubject, Charts, shown_rate};
use super::language::Language;
use super::marks;
use super::moments::{duration, grouped};
use super::queues::{QueueRow, queue_rows};
use super::sampler::{MAX_COUNTED, MAX_GROUPS_SHOWN, Sample};
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::terms::{Term, Terms};
use super::texts::{Texts, fill};

/// Maximum alerts in the list; the page of alerts has them all.
const MAX_ALERTS_SHOWN: usize = 5;
/// Maximum characters of an error in the list.
const MAX_CAUSE_CHARS: usize = 120;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    shell: Shell,
    ct: &'static chart_texts::Texts,
    verdict: ShownVerdict,
    needs: Vec<ShownNeed>,
    charts: Charts,
    totals: Vec<StateTotal>,
    queues: Vec<QueueRow>,
    can_act: bool,
    is_new: bool,
    first_command: String,
}

/// The sentence at the top.
struct ShownVerdict {
    mark: &'static str,
    class: &'static str,
    /// Where the messages are that it is about.
    href: Option<&'static str>,
    sentence: String,
    detail: String,
}

/// Something that needs a person, with a link to its rows.
struct ShownNeed {
    mark: &'static str,
    class: &'static str,
    title: String,
    href: String,
    detail: String,
    term: Option<Term>,
}

/// The number of messages in a state.
pub(super) struct StateTotal {
    pub(super) mark: &'static str,
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) count: String,
    pub(super) href: String,
}

/// The condition of the whole system.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
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
enum Need {
    NobodyWorks,
    Parked(i64),
    UnknownKeys(u64),
    /// Nothing was called for [`RATE_WINDOW`], and a message is due for longer.
    Stalled {
        oldest: Duration,
    },
    FiringAlert {
        text: String,
    },
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
        came_back: bool,
    },
    MoreGroups,
    /// No worker has grouped them yet.
    DeadLetters(usize),
}

/// Shows the overview.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let sample = dashboard.sampler.get(&dashboard.api).await?;
    let (t, now) = (visitor.t(), dashboard.sampler.now(clock::now()));
    let range = chart_range(&uri)?;
    let series = |range| dashboard.charts.series(&dashboard.api, &SeriesSubject::Queues, range, now);
    let (shown, recent) = (series(range).await?, series(ChartRange::FiveMinutes).await?);
    let rates = dashboard.charts.recent(&dashboard.api).await?;
    let needs = needs(&sample, &recent);
    let condition = condition(&sample, &needs, sent_per_second(&recent, now));
    let total = total(&sample);
    let mut shell = dashboard.shell(&visitor, t.overview);
    shell.live = Some("/live".to_owned());
    let first_queue = sample.queues.first().map_or("demo", |queue| queue.name.as_str());
    let page = OverviewPage {
        ct: visitor.charts(),
        verdict: shown_verdict(visitor.language, &condition, &sample, total.sent),
        needs: needs.iter().map(|need| shown_need(visitor.language, shell.terms, need)).collect(),
        charts: Charts::new(visitor.charts(), ChartSubject::Queues, range, "/", &shown),
        totals: totals(t, total, None),
        queues: queue_rows(&visitor, &sample, &rates),
        can_act: false,
        is_new: condition == Condition::New,
        first_command: format!(
            "curl -i http://{}/v1/queues/{first_queue}/messages -H 'Idempotency-Key: order-1' \\\n    \
             -H 'Content-Type: application/json' -d '{{\"symbol\": \"ACME\", \"intent\": \"buy\", \"qty\": \"10\"}}'",
            visitor.host
        ),
        shell,
    };
    Ok(html(StatusCode::OK, &page))
}

/// Returns the range in an address; an hour by default.
pub(super) fn chart_range(uri: &Uri) -> Result<ChartRange, PageRefusal> {
    let query = query_pairs(uri)?;
    let range = query.iter().find(|(name, _)| name == "range");
    Ok(range.and_then(|(_, text)| ChartRange::parse(text)).unwrap_or(ChartRange::Hour))
}

/// Judges the whole system.
fn condition(sample: &Sample, needs: &[Need], sent_per_second: f64) -> Condition {
    if needs.contains(&Need::NobodyWorks) {
        return Condition::Down;
    }
    if !needs.is_empty() {
        return Condition::NeedsPerson(needs.len());
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
fn needs(sample: &Sample, recent: &Series) -> Vec<Need> {
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
    let alerts = sample.alerts.iter().take(MAX_ALERTS_SHOWN);
    needs.extend(alerts.map(|alert| Need::FiringAlert { text: alert.text.clone() }));
    for queue in &sample.queues {
        let waiting = queue.counts.map_or(0, |counts| counts.queued + counts.failed);
        let name = || queue.name.clone();
        if waiting == 0 {
            continue;
        }
        if queue.paused {
            needs.push(Need::PausedQueue { queue: name(), waiting });
        } else if is_alive && !is_served(&queue) {
            needs.push(Need::Unserved { queue: name(), waiting });
        }
    }
    needs
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
    let open = sample.groups.iter().filter(|group| is_open(group.standing.state));
    let mut needs: Vec<Need> = open
        .map(|group| {
            let words = [group.code.as_deref().unwrap_or_default(), &group.template];
            Need::FailureGroup {
                id: group.id,
                queue: group.queue.as_str().to_owned(),
                cause: bounded(words.join(" ").trim(), MAX_CAUSE_CHARS),
                count: group.count,
                came_back: group.standing.state == GroupState::CameBack,
            }
        })
        .collect();
    if (MAX_GROUPS_SHOWN as usize) < needs.len() {
        needs.truncate(MAX_GROUPS_SHOWN as usize);
        needs.push(Need::MoreGroups);
    }
    needs
}

/// Adds up all queues.
fn total(sample: &Sample) -> Counts {
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

fn shown_verdict(language: Language, condition: &Condition, sample: &Sample, sent: i64) -> ShownVerdict {
    let (t, ct) = (Texts::of(language), chart_texts::Texts::of(language));
    let alive = sample.nodes.iter().filter(|node| node.alive).count().to_string();
    let nodes = || fill(t.nodes_alive, &[("alive", &alive), ("sent", &grouped(sent))]);
    let (mark, class, sentence, detail) = match condition {
        Condition::Down => ("down", "bad", t.nobody_works.to_owned(), t.nobody_works_detail.to_owned()),
        Condition::NeedsPerson(1) => ("bell", "warn", t.one_needs_you.to_owned(), nodes()),
        Condition::NeedsPerson(count) => {
            ("bell", "warn", fill(t.many_need_you, &[("n", &count.to_string())]), nodes())
        }
        Condition::New => ("in", "calm", t.is_new.to_owned(), nodes()),
        Condition::Idle => ("idle", "good", t.healthy_idle.to_owned(), nodes()),
        Condition::Busy { waiting, oldest, sent_per_second } => {
            let rate = shown_rate(ct, *sent_per_second);
            let sentence = match oldest {
                Some(oldest) => fill(ct.healthy, &[("rate", &rate), ("oldest", &duration(*oldest))]),
                None => fill(ct.healthy_next, &[("rate", &rate)]),
            };
            let detail = [("waiting", &*grouped(*waiting)), ("rest", &nodes())];
            ("check", "good", sentence, fill(ct.waiting_detail, &detail))
        }
    };
    let href = match condition {
        Condition::Busy { .. } => Some("/messages?q=state:queued"),
        Condition::Down => Some("/nodes"),
        Condition::NeedsPerson(_) | Condition::New | Condition::Idle => None,
    };
    ShownVerdict { mark, class, href, sentence, detail }
}

fn shown_need(language: Language, terms: &'static Terms, need: &Need) -> ShownNeed {
    let (t, ct, b) = (Texts::of(language), chart_texts::Texts::of(language), BulkTexts::of(language));
    let count = |text: &str, count: String| fill(text, &[("n", &count)]);
    let shown = |mark, class, title: String, href: &str, detail: String, term| ShownNeed {
        mark,
        class,
        title,
        href: href.to_owned(),
        detail,
        term,
    };
    match need {
        Need::NobodyWorks => shown(
            "down",
            "bad",
            t.nobody_works.to_owned(),
            "/nodes",
            t.nobody_works_detail.to_owned(),
            Some(terms.node),
        ),
        Need::Parked(parked) => {
            let title = count(t.parked_need, grouped(*parked));
            shown(
                "ask",
                "doubt",
                title,
                "/dead-letters?state=parked",
                t.parked_need_detail.to_owned(),
                Some(terms.parked),
            )
        }
        Need::UnknownKeys(keys) => {
            let title = count(t.keys_need, keys.to_string());
            shown("ask", "doubt", title, "/keys", t.keys_need_detail.to_owned(), Some(terms.idempotency_key))
        }
        Need::Stalled { oldest } => {
            let minutes = (RATE_WINDOW.as_secs() / 60).to_string();
            let title = fill(ct.stalled, &[("minutes", &minutes)]);
            let detail = fill(ct.stalled_detail, &[("oldest", &duration(*oldest))]);
            shown("down", "warn", title, "/messages?q=state:queued", detail, None)
        }
        Need::FiringAlert { text } => {
            shown("bell", "warn", text.clone(), "/alerts", String::new(), Some(terms.alert))
        }
        Need::Unserved { queue, waiting } => {
            let title = fill(t.unserved_need, &[("queue", queue)]);
            let href = format!("/messages?q=queue:{queue}+state:queued");
            shown(
                "down",
                "warn",
                title,
                &href,
                count(t.unserved_need_detail, grouped(*waiting)),
                Some(terms.queue),
            )
        }
        Need::PausedQueue { queue, waiting } => {
            let title = fill(t.paused_need, &[("queue", queue), ("n", &grouped(*waiting))]);
            shown("pause", "warn", title, &format!("/queues/{queue}"), t.pause_hint.to_owned(), None)
        }
        Need::FailureGroup { id, queue, cause, count, came_back } => {
            let text = if *came_back { b.group_need_back } else { b.group_need };
            let title = fill(text, &[("queue", queue), ("cause", cause), ("n", &grouped(*count))]);
            let href = format!("/dead-letters/groups/{id}");
            let (mark, detail) =
                if *came_back { ("retry", b.about_came_back) } else { ("cross", t.dead_need_detail) };
            shown(mark, "bad", title, &href, detail.to_owned(), Some(terms.failure_group))
        }
        Need::MoreGroups => {
            let detail = count(b.more_groups_detail, MAX_GROUPS_SHOWN.to_string());
            shown("cross", "bad", b.more_groups.to_owned(), "/dead-letters", detail, None)
        }
        Need::DeadLetters(letters) => {
            let more = if *letters < MAX_COUNTED as usize { "" } else { "+" };
            let title = count(t.dead_need, format!("{letters}{more}"));
            shown(
                "cross",
                "bad",
                title,
                "/dead-letters?state=dead",
                t.dead_need_detail.to_owned(),
                Some(terms.dead_letter),
            )
        }
    }
}

/// Returns how many messages are in each state, of one queue or of all.
pub(super) fn totals(t: &'static Texts, total: Counts, queue: Option<&str>) -> Vec<StateTotal> {
    let queue = queue.map_or_else(String::new, |queue| format!("queue:{queue}+"));
    let states = [
        ("queued", t.waiting, total.queued),
        ("sending", t.state_sending, total.sending),
        ("failed", t.retrying, total.failed),
        ("parked", t.state_parked, total.parked),
        ("dead", t.state_dead, total.dead),
        ("sent", t.state_sent, total.sent),
        ("cancelled", t.state_cancelled, total.cancelled),
    ];
    let shown = states.map(|(state, name, count)| {
        let shown = marks::of_state(state);
        StateTotal {
            mark: shown.mark,
            class: shown.class,
            name,
            count: grouped(count),
            href: format!("/messages?q={queue}state:{state}"),
        }
    });
    shown.into()
}

#[cfg(test)]
mod tests {
    use ichido_core::failure_group::GroupStanding;
    use ichido_core::time::Timestamp;
    use ichido_store::failure_group::FailureGroup;
    use ichido_store::message::QueueName;
    use serde_json::json;

    use super::super::super::alerts::Alert;
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

    fn alert(text: &str) -> Alert {
        let value = json!({
            "id": Uuid::nil(), "rule": "dead_letters", "about": "queue orders", "state": "firing", "opened_at": "", "clear_since": null,
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
        let verdict = shown_verdict(Language::English, &fast, &sample, 7);
        assert_eq!(verdict.sentence, "Healthy: 412 a second, nothing is late.");
        let late = Condition::Busy { waiting: 5, oldest, sent_per_second: 412.0 };
        let verdict = shown_verdict(Language::English, &late, &sample, 7);
        assert_eq!(verdict.sentence, "Healthy: 412 a second, oldest waiting 800 ms.");
    }

    #[test]
    fn what_needs_a_person_is_listed_in_order() {
        let queues = vec![
            queue("orders", [1, 0, 2, 0], true),
            queue("lost", [4, 1, 0, 0], false),
            queue("quiet", [0; 4], true),
        ];
        let sample =
            Sample::new_for_tests(queues, &["orders"], vec![node(true)], vec![alert("too many")], 3, 5);
        let expected = [
            Need::Parked(2),
            Need::UnknownKeys(5),
            Need::DeadLetters(3),
            Need::FiringAlert { text: "too many".to_owned() },
            Need::PausedQueue { queue: "orders".to_owned(), waiting: 1 },
            Need::Unserved { queue: "lost".to_owned(), waiting: 5 },
        ];
        assert_eq!(needs(&sample, &Series::default()), expected);
        assert_eq!(condition(&sample, &expected, 3.0), Condition::NeedsPerson(6));
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
            came_back,
        };
        let states = [Open, CameBack, Acknowledged, Resolved];
        let all = (1..).zip(states).map(|(number, state)| group(number, state)).collect();
        assert_eq!(failures(9, all), [need(1, false), need(2, true)], "only what nobody takes care of");
        assert_eq!(failures(9, vec![group(1, Acknowledged)]), [], "somebody works on it");
        assert_eq!(failures(9, Vec::new()), [Need::DeadLetters(9)], "not grouped yet");
        assert_eq!(failures(0, vec![group(1, Open)]), [], "parked messages are in the list already");
        let many = failures(99, (1..=6).map(|number| group(number, Open)).collect());
        assert_eq!((many.len(), many.last()), (6, Some(&Need::MoreGroups)));
        let shown = shown_need(Language::English, Terms::of(Language::English), &need(1, false));
        assert_eq!(shown.title, "orders: BROKER_5XX no such symbol \"…\". Open messages: 3,412");
        assert_eq!(shown.href, format!("/dead-letters/groups/{}", Uuid::from_u128(1)));
    }
}
