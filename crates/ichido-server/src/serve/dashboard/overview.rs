//! The first page: one sentence, what needs a person, then charts and numbers.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use ichido_core::series::SeriesSubject;
use ichido_core::time::Timestamp;
use ichido_http::clock;

use super::super::models::Counts;
use super::super::request::query_pairs;
use super::Dashboard;
use super::alert_texts::{opened, rows_href, sentence};
use super::bulk_texts::Texts as BulkTexts;
use super::chart_data::{ChartRange, RATE_WINDOW, sent_per_second};
use super::chart_texts;
use super::charts::{ChartSubject, Charts, shown_rate};
use super::condition::{Condition, MAX_GROUPS_SHOWN, Need, condition, needs, total};
use super::language::Language;
use super::marks;
use super::moments::{duration, grouped, relative};
use super::queues::{QueueRow, queue_rows};
use super::sampler::{MAX_COUNTED, ParkedSample, Sample};
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::terms::{Term, Terms};
use super::texts::{Texts, fill};

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
    /// Where and when, apart from the rest, because times change.
    when: Vec<String>,
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
        needs: needs.iter().map(|need| shown_need(&visitor, sample.parked.as_ref(), need)).collect(),
        charts: Charts::new(visitor.charts(), ChartSubject::Queues, range, "/", &shown),
        totals: totals(t, total, None),
        queues: queue_rows(&visitor, &sample, &rates),
        can_act: false,
        is_new: condition == Condition::New,
        first_command: format!(
            "{} -H 'Idempotency-Key: order-1' \\\n    \
             -H 'Content-Type: application/json' -d '{{\"symbol\": \"ACME\", \"intent\": \"buy\", \"qty\": \"10\"}}'",
            visitor.curl("-i", &format!("/v1/queues/{first_queue}/messages"))
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

fn shown_need(visitor: &Visitor, parked_last: Option<&ParkedSample>, need: &Need) -> ShownNeed {
    let (language, terms) = (visitor.language, Terms::of(visitor.language));
    let (t, ct, b) = (Texts::of(language), chart_texts::Texts::of(language), BulkTexts::of(language));
    let count = |text: &str, count: String| fill(text, &[("n", &count)]);
    let shown = |mark, class, title: String, href: &str, detail: String, term| ShownNeed {
        mark,
        class,
        title,
        href: href.to_owned(),
        when: Vec::new(),
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
            let (detail, href) = (t.parked_need_detail, "/dead-letters?state=parked");
            let about = |detail| shown("ask", "doubt", title, href, detail, Some(terms.parked));
            let Some(last) = parked_last else { return about(detail.to_owned()) };
            let since = relative(t, last.since, visitor.now);
            let when = vec![
                fill(t.parked_need_queue, &[("queue", &last.queue)]),
                fill(t.parked_need_since, &[("since", &since)]),
            ];
            let detail = fill(t.parked_need_cause, &[("cause", &last.cause), ("detail", detail)]);
            ShownNeed { when, ..about(detail) }
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
        Need::FiringAlert(alert) => {
            let (title, href) = (sentence(language, alert), rows_href(alert));
            let when = vec![opened(language, alert)];
            ShownNeed { when, ..shown("bell", "warn", title, &href, String::new(), Some(terms.alert)) }
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
        Need::FailureGroup { id, queue, cause, count, first_seen, last_seen, came_back } => {
            let text = if *came_back { b.group_need_back } else { b.group_need };
            let title = fill(text, &[("queue", queue), ("cause", cause), ("n", &grouped(*count))]);
            let href = format!("/dead-letters/groups/{id}");
            let (mark, detail) =
                if *came_back { ("retry", b.about_came_back) } else { ("cross", t.dead_need_detail) };
            let ago = |at: &Timestamp| relative(t, *at, visitor.now);
            let when = vec![
                fill(b.group_need_first, &[("at", &ago(first_seen))]),
                fill(b.group_need_last, &[("at", &ago(last_seen))]),
            ];
            ShownNeed {
                when,
                ..shown(mark, "bad", title, &href, detail.to_owned(), Some(terms.failure_group))
            }
        }
        Need::MoreGroups(more) => {
            let title = count(b.more_groups, more.to_string());
            let detail = count(b.more_groups_detail, MAX_GROUPS_SHOWN.to_string());
            shown("cross", "bad", title, "/dead-letters", detail, None)
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
            href: state_href(state, queue),
        }
    });
    shown.into()
}

/// Returns the list of the messages that are counted as in a state. A closed dead letter is not counted.
pub(super) fn state_href(state: &str, queue: Option<&str>) -> String {
    match (state, queue) {
        ("dead", None) => "/dead-letters?state=dead".to_owned(),
        ("dead", Some(queue)) => format!("/dead-letters?state=dead&queue={queue}"),
        (state, None) => format!("/messages?q=state:{state}"),
        (state, Some(queue)) => format!("/messages?q=queue:{queue}+state:{state}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_sentence_says_the_rate_and_what_is_late() {
        let sample = Sample::new_for_tests(Vec::new(), &[], Vec::new(), Vec::new(), 0, 0);
        for (oldest, sentence) in [
            (None, "Healthy: 412 a second, nothing is late."),
            (Some(Duration::from_millis(800)), "Healthy: 412 a second, oldest waiting 800 ms."),
        ] {
            let condition = Condition::Busy { waiting: 0, oldest, sent_per_second: 412.0 };
            assert_eq!(shown_verdict(Language::English, &condition, &sample, 7).sentence, sentence);
        }
    }

    #[test]
    fn parked_messages_are_shown_with_queue_age_and_cause() {
        let visitor = Visitor { now: Timestamp::from_secs(600), ..Visitor::new_for_tests(Language::English) };
        let last = ParkedSample {
            queue: "transfers".to_owned(),
            cause: "TIMEOUT no response".to_owned(),
            since: Timestamp::EPOCH,
        };
        let shown = shown_need(&visitor, Some(&last), &Need::Parked(2));
        assert_eq!(shown.when, ["Queue transfers", "the oldest 10 min ago"]);
        assert!(shown.detail.starts_with("TIMEOUT no response. Nobody knows"), "{}", shown.detail);
    }

    #[test]
    fn a_failure_group_is_named_by_its_error() {
        let need = Need::FailureGroup {
            id: Uuid::from_u128(1),
            queue: "orders".to_owned(),
            cause: "BROKER_5XX no such symbol \"…\"".to_owned(),
            count: 3_412,
            first_seen: Timestamp::EPOCH,
            last_seen: Timestamp::from_secs(3_000),
            came_back: false,
        };
        let visitor =
            Visitor { now: Timestamp::from_secs(3_030), ..Visitor::new_for_tests(Language::English) };
        let shown = shown_need(&visitor, None, &need);
        assert_eq!(shown.title, "orders: BROKER_5XX no such symbol \"…\". Open messages: 3,412");
        assert_eq!(shown.when, ["First 50 min ago", "last 30 s ago"]);
        assert_eq!(shown.href, format!("/dead-letters/groups/{}", Uuid::from_u128(1)));
    }
}
