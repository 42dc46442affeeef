//! The charts of a page: tiles with a number, bars below it, and the same as a table.

use std::time::Duration;

use ichido_core::time::Timestamp;

use super::super::series::{DurationSummary, Series, SeriesCounts};
use super::chart::Chart;
use super::chart_data::{ChartRange, number};
use super::chart_texts::Texts;
use super::marks;
use super::messages::FilterChip;
use super::moments::{duration, grouped};
use super::texts::fill;

/// The charts of one subject.
pub(super) struct Charts {
    pub(super) t: &'static Texts,
    pub(super) chips: Vec<FilterChip>,
    pub(super) note: String,
    pub(super) tiles: Vec<ChartTile>,
    pub(super) table: Vec<NumberRow>,
    pub(super) columns: Vec<&'static str>,
}

/// A number with its chart.
pub(super) struct ChartTile {
    pub(super) mark: &'static str,
    pub(super) class: &'static str,
    pub(super) title: &'static str,
    /// With a link each, if there are rows to show.
    pub(super) numbers: Vec<LinkedNumber>,
    pub(super) detail: String,
    pub(super) chart: Chart,
    /// The points whose rows can be shown.
    pub(super) links: Vec<PointLink>,
    /// All of it in words.
    pub(super) label: String,
}

/// A number, with a link to its rows.
pub(super) struct LinkedNumber {
    pub(super) text: String,
    pub(super) href: Option<String>,
}

/// A link to the rows of a point.
pub(super) struct PointLink {
    /// The place of the point, from the left.
    pub(super) at: usize,
    pub(super) href: String,
    /// Its time and number.
    pub(super) title: String,
}

/// A point as numbers.
pub(super) struct NumberRow {
    pub(super) time: String,
    /// The messages of its time.
    pub(super) href: Option<String>,
    pub(super) cells: Vec<String>,
}

/// What the charts are about: it decides which numbers exist, and where their rows are.
#[derive(Clone, Copy)]
pub(super) enum ChartSubject<'a> {
    Queues,
    Queue(&'a str),
    Destination,
    Models,
}

/// A number of each point.
struct Measure {
    mark: &'static str,
    class: &'static str,
    title: &'static str,
    /// What is added up, and where its rows are.
    parts: Vec<MeasurePart>,
}

struct MeasurePart {
    /// The class of its bars; the measure's own if it is empty.
    class: &'static str,
    count: fn(&SeriesCounts) -> u64,
    rows: Option<Rows>,
}

/// Where the rows of a number are.
#[derive(Clone)]
enum Rows {
    /// Messages that were accepted in the time of the number.
    Accepted { queue: Option<String> },
    /// Messages in a state, whenever they got there: the store has no index of that time.
    InState { queue: Option<String>, state: &'static str },
    /// Dead or parked messages, by when they became so.
    Letters { queue: Option<String>, state: &'static str },
}

impl Rows {
    /// Returns the page of the rows since a time.
    fn since(&self, from: &str) -> String {
        match self {
            Self::Accepted { queue } => messages(queue.as_deref(), &format!("since:{from}")),
            Self::InState { queue, state } => messages(queue.as_deref(), &format!("state:{state}")),
            Self::Letters { queue, state } => letters(queue.as_deref(), state, &[("since_from", from)]),
        }
    }

    /// Returns the page of the rows of a point; `None` if rows are not found by that time.
    fn between(&self, from: &str, before: &str) -> Option<String> {
        match self {
            Self::Accepted { queue } => {
                Some(messages(queue.as_deref(), &format!("since:{from}+before:{before}")))
            }
            Self::InState { .. } => None,
            Self::Letters { queue, state } => {
                let span = [("since_from", from), ("since_before", before)];
                Some(letters(queue.as_deref(), state, &span))
            }
        }
    }
}

impl Charts {
    /// Shows a series. `here` is the path of the page.
    pub(super) fn new(
        t: &'static Texts,
        subject: ChartSubject<'_>,
        range: ChartRange,
        here: &str,
        series: &Series,
    ) -> Self {
        let from = time_of(&series.from, range);
        let step = step_name(t, series.step_seconds);
        let measures = measures(t, subject);
        let mut tiles: Vec<ChartTile> =
            measures.iter().map(|measure| count_tile(t, measure, range, series)).collect();
        let mut columns: Vec<&'static str> = measures.iter().map(|measure| measure.title).collect();
        let has_times = !matches!(subject, ChartSubject::Models);
        if has_times {
            tiles.push(time_tile(t, t.to_claim, series, |counts| &counts.due_to_claim));
            tiles.push(time_tile(t, t.to_end, series, |counts| &counts.due_to_end));
            columns.extend([t.claim_p50, "p99", t.end_p50, "p99"]);
        }
        Self {
            t,
            chips: range_chips(t, range, here),
            note: fill(t.range_note, &[("from", &from), ("step", &step)]),
            tiles,
            table: table(series, range, &measures, has_times),
            columns,
        }
    }
}

/// Returns the links to all ranges.
fn range_chips(t: &'static Texts, range: ChartRange, here: &str) -> Vec<FilterChip> {
    let chip = |other: ChartRange| FilterChip {
        name: match other {
            ChartRange::FiveMinutes => t.range_5m,
            ChartRange::Hour => t.range_1h,
            ChartRange::Day => t.range_24h,
        },
        mark: "",
        class: "quiet",
        href: format!("{here}?range={}", other.as_str()),
        is_here: other == range,
    };
    ChartRange::ALL.map(chip).into()
}

fn measures(t: &'static Texts, subject: ChartSubject<'_>) -> Vec<Measure> {
    let measure = |(mark, class), title, count, rows| Measure {
        mark,
        class,
        title,
        parts: vec![MeasurePart { class: "", count, rows }],
    };
    let of_state = |state: &str| {
        let shown = marks::of_state(state);
        (shown.mark, shown.class)
    };
    let calls = measure(("go", "calm"), t.calls, |counts: &SeriesCounts| counts.executed, None);
    let throttled = measure(("half", "warn"), t.throttled, |counts| counts.throttled, None);
    if let ChartSubject::Models = subject {
        return vec![
            calls,
            measure(("retry", "warn"), t.retried, |counts| counts.retried, None),
            throttled,
            measure(("ask", "doubt"), t.billed_twice, |counts| counts.possibly_billed_twice, None),
            measure(("in", "calm"), t.tokens_in, |counts| counts.tokens_in, None),
            measure(("check", "good"), t.tokens_out, |counts| counts.tokens_out, None),
        ];
    }
    // Messages of a destination are found by their queue only.
    let queue = match subject {
        ChartSubject::Queues => Some(None),
        ChartSubject::Queue(name) => Some(Some(name.to_owned())),
        ChartSubject::Destination | ChartSubject::Models => None,
    };
    let letters = |state| queue.clone().map(|queue| Rows::Letters { queue, state });
    let in_state = |state| queue.clone().map(|queue| Rows::InState { queue, state });
    let mut given_up = measure(of_state("dead"), t.given_up, |counts| counts.dead, letters("dead"));
    let parked = letters("parked");
    given_up.parts.push(MeasurePart { class: "doubt", count: |counts| counts.parked, rows: parked });
    let sent = measure(of_state("sent"), t.sent, |counts| counts.sent, in_state("sent"));
    let retried = measure(of_state("failed"), t.retried, |counts| counts.retried, in_state("failed"));
    if let ChartSubject::Destination = subject {
        return vec![calls, sent, retried, given_up, throttled];
    }
    let accepted = queue.clone().map(|queue| Rows::Accepted { queue });
    vec![measure(("in", "calm"), t.accepted, |counts| counts.accepted, accepted), sent, retried, given_up]
}

/// Returns the page of messages with this filter.
fn messages(queue: Option<&str>, filter: &str) -> String {
    let queue = queue.map_or_else(String::new, |queue| format!("queue:{queue}+"));
    format!("/messages?q={queue}{filter}")
}

/// Returns the page of dead letters or parked messages with this filter.
fn letters(queue: Option<&str>, state: &str, filter: &[(&str, &str)]) -> String {
    let queue = queue.map_or_else(String::new, |queue| format!("&queue={queue}"));
    let start = format!("/dead-letters?state={state}{queue}");
    filter.iter().fold(start, |address, (name, value)| format!("{address}&{name}={value}"))
}

fn count_tile(t: &'static Texts, measure: &Measure, range: ChartRange, series: &Series) -> ChartTile {
    let bars = |part: &MeasurePart| -> Vec<f64> {
        series.points.iter().map(|point| number((part.count)(&point.counts))).collect()
    };
    let bars: Vec<_> = measure.parts.iter().map(|part| (part.class, bars(part))).collect();
    let chart = Chart::stacked(&bars);
    let linked = |part: &MeasurePart| {
        let count = (part.count)(&series.total);
        let rows = part.rows.as_ref().filter(|_| 0 < count);
        LinkedNumber { text: shown_count(count), href: rows.map(|rows| rows.since(&series.from)) }
    };
    let numbers: Vec<LinkedNumber> = measure.parts.iter().map(linked).collect();
    let detail = if chart.is_empty() {
        t.nothing_counted.to_owned()
    } else {
        fill(t.peak, &[("peak", &rounded(chart.peak))])
    };
    let total: Vec<&str> = numbers.iter().map(|number| number.text.as_str()).collect();
    let values = [("title", measure.title), ("total", &total.join(" + ")), ("peak", &detail)];
    let label = fill(t.chart_label, &values);
    ChartTile {
        mark: measure.mark,
        class: measure.class,
        title: measure.title,
        numbers,
        detail,
        chart,
        links: point_links(measure, range, series),
        label,
    }
}

/// Returns a link for each point with rows: to those of its first part that has any.
fn point_links(measure: &Measure, range: ChartRange, series: &Series) -> Vec<PointLink> {
    let step = Duration::from_secs(series.step_seconds);
    let links = series.points.iter().enumerate().map(|(at, point)| {
        let part = measure.parts.iter().find(|part| 0 < (part.count)(&point.counts))?;
        let before = Timestamp::parse(&point.at)?.plus(step).to_string();
        let href = part.rows.as_ref()?.between(&point.at, &before)?;
        let total: u64 = measure.parts.iter().map(|part| (part.count)(&point.counts)).sum();
        Some(PointLink { at, href, title: format!("{}: {}", time_of(&point.at, range), shown_count(total)) })
    });
    links.flatten().collect()
}

fn time_tile(
    t: &'static Texts,
    title: &'static str,
    series: &Series,
    times: fn(&SeriesCounts) -> &DurationSummary,
) -> ChartTile {
    let seconds = |percentile: fn(&DurationSummary) -> Option<f64>| -> Vec<f64> {
        series.points.iter().map(|point| percentile(times(&point.counts)).unwrap_or(0.0)).collect()
    };
    let chart = Chart::overlaid(&[
        ("far", seconds(|summary| summary.p99_seconds)),
        ("", seconds(|summary| summary.p50_seconds)),
    ]);
    let total = times(&series.total);
    let (numbers, detail) = match (total.p50_seconds, total.p99_seconds) {
        (Some(p50), Some(p99)) => {
            let values = [("p50", &*shown_seconds(p50)), ("p99", &*shown_seconds(p99))];
            let number = LinkedNumber { text: shown_seconds(p50), href: None };
            (vec![number], fill(t.percentiles, &values))
        }
        _ => (vec![LinkedNumber { text: "–".to_owned(), href: None }], t.no_times.to_owned()),
    };
    let peak = if chart.is_empty() {
        t.nothing_counted.to_owned()
    } else {
        fill(t.peak, &[("peak", &shown_seconds(chart.peak))])
    };
    let label = fill(t.chart_label, &[("title", title), ("total", &detail), ("peak", &peak)]);
    ChartTile { mark: "wait", class: "quiet wide", title, numbers, detail, chart, links: Vec::new(), label }
}

/// Returns the points with counts, newest first.
fn table(series: &Series, range: ChartRange, measures: &[Measure], has_times: bool) -> Vec<NumberRow> {
    let rows = series.points.iter().rev().map(|point| {
        let counts = &point.counts;
        let sum = |measure: &Measure| measure.parts.iter().map(|part| (part.count)(counts)).sum::<u64>();
        let numbers: Vec<u64> = measures.iter().map(sum).collect();
        let times = [&counts.due_to_claim, &counts.due_to_end].into_iter().filter(|_| has_times);
        let times: Vec<Option<f64>> =
            times.flat_map(|times| [times.p50_seconds, times.p99_seconds]).collect();
        let is_empty = numbers.iter().all(|count| *count == 0) && times.iter().all(Option::is_none);
        let numbers = numbers.into_iter().map(shown_count);
        let times = times.into_iter().map(|seconds| seconds.map_or_else(|| "–".to_owned(), shown_seconds));
        let cells = numbers.chain(times).collect();
        let href = measures.iter().find_map(|measure| {
            let rows = measure.parts.first()?.rows.as_ref()?;
            let before = Timestamp::parse(&point.at)?.plus(Duration::from_secs(series.step_seconds));
            rows.between(&point.at, &before.to_string())
        });
        (!is_empty).then(|| NumberRow { time: time_of(&point.at, range), href, cells })
    });
    rows.flatten().collect()
}

/// Returns the time of day; in a range of a day, with the date.
fn time_of(at: &str, range: ChartRange) -> String {
    let time = at.get(11..16).unwrap_or(at);
    match (range, at.get(5..10)) {
        (ChartRange::Day, Some(day)) => format!("{day} {time}"),
        _ => time.to_owned(),
    }
}

fn step_name(t: &'static Texts, seconds: u64) -> String {
    match seconds {
        60 => t.step_60.to_owned(),
        120 => t.step_120.to_owned(),
        1_800 => t.step_1800.to_owned(),
        other => duration(Duration::from_secs(other)),
    }
}

/// Returns a count with its thousands separated.
pub(super) fn shown_count(count: u64) -> String {
    grouped(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Returns seconds as a short duration.
fn shown_seconds(seconds: f64) -> String {
    duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Returns a whole number with its thousands separated.
pub(super) fn rounded(peak: f64) -> String {
    format!("{peak:.0}").parse().map_or_else(|_| String::new(), grouped)
}

/// Returns a rate in words: a second, or a minute if it is less than one a second.
pub(super) fn shown_rate(t: &Texts, per_second: f64) -> String {
    let (text, rate) = if 1.0 <= per_second || per_second <= 0.0 {
        (t.a_second, per_second)
    } else {
        (t.a_minute, per_second * 60.0)
    };
    let shown = if (0.05..9.95).contains(&rate) { format!("{rate:.1}") } else { rounded(rate) };
    fill(text, &[("n", shown.strip_suffix(".0").unwrap_or(&shown))])
}

#[cfg(test)]
mod tests {
    use super::super::super::series::TimedCounts;
    use super::super::language::Language;
    use super::*;

    fn series() -> Series {
        let times = |p50, p99| DurationSummary {
            count: 1,
            p50_seconds: Some(p50),
            p99_seconds: Some(p99),
            ..DurationSummary::default()
        };
        let busy = SeriesCounts {
            accepted: 1_500,
            sent: 1_400,
            dead: 2,
            parked: 1,
            due_to_claim: times(0.012, 0.4),
            due_to_end: times(0.05, 3.0),
            ..SeriesCounts::default()
        };
        let point = |at: &str, counts| TimedCounts { at: at.to_owned(), counts };
        Series {
            from: "2026-11-15T03:00:00Z".to_owned(),
            to: "2026-11-15T03:04:00Z".to_owned(),
            step_seconds: 120,
            total: busy.clone(),
            points: vec![
                point("2026-11-15T03:00:00Z", busy),
                point("2026-11-15T03:02:00Z", SeriesCounts::default()),
            ],
            ..Series::default()
        }
    }

    fn shown(subject: ChartSubject<'_>) -> Charts {
        Charts::new(Texts::of(Language::English), subject, ChartRange::Hour, "/", &series())
    }

    #[test]
    fn every_number_links_to_its_rows_where_rows_exist() {
        let links = |charts: &Charts| -> Vec<(String, Option<String>)> {
            let numbers = charts.tiles.iter().flat_map(|tile| &tile.numbers);
            numbers.map(|number| (number.text.clone(), number.href.clone())).collect()
        };
        let link = |text: &str, href: &str| (text.to_owned(), Some(href.to_owned()));
        let plain = |text: &str| (text.to_owned(), None);
        assert_eq!(
            links(&shown(ChartSubject::Queues)),
            [
                link("1,500", "/messages?q=since:2026-11-15T03:00:00Z"),
                link("1,400", "/messages?q=state:sent"),
                plain("0"),
                link("2", "/dead-letters?state=dead&since_from=2026-11-15T03:00:00Z"),
                link("1", "/dead-letters?state=parked&since_from=2026-11-15T03:00:00Z"),
                plain("12 ms"),
                plain("50 ms"),
            ]
        );
        let of_queue = links(&shown(ChartSubject::Queue("orders")));
        assert_eq!(of_queue[1], link("1,400", "/messages?q=queue:orders+state:sent"));
        assert_eq!(
            of_queue[4],
            link("1", "/dead-letters?state=parked&queue=orders&since_from=2026-11-15T03:00:00Z")
        );
        assert!(links(&shown(ChartSubject::Destination)).iter().all(|(_, href)| href.is_none()));
    }

    #[test]
    fn a_bar_links_to_the_rows_of_its_time() {
        let links = |subject| -> Vec<(usize, String, String)> {
            let tiles = shown(subject).tiles;
            let links = tiles.into_iter().flat_map(|tile| tile.links);
            links.map(|link| (link.at, link.href, link.title)).collect()
        };
        let (from, before) = ("2026-11-15T03:00:00Z", "2026-11-15T03:02:00Z");
        let accepted = format!("/messages?q=queue:orders+since:{from}+before:{before}");
        let dead = format!("/dead-letters?state=dead&queue=orders&since_from={from}&since_before={before}");
        assert_eq!(
            links(ChartSubject::Queue("orders")),
            [(0, accepted, "03:00: 1,500".to_owned()), (0, dead, "03:00: 3".to_owned())]
        );
        assert!(links(ChartSubject::Destination).is_empty(), "its messages are found by their queue only");
    }

    #[test]
    fn the_table_has_the_numbers_of_the_bars() {
        for subject in [
            ChartSubject::Queues,
            ChartSubject::Queue("orders"),
            ChartSubject::Destination,
            ChartSubject::Models,
        ] {
            let charts = shown(subject);
            for row in &charts.table {
                assert_eq!(row.cells.len(), charts.columns.len());
            }
        }
        let charts = shown(ChartSubject::Queues);
        assert_eq!(charts.table.len(), 1, "a point without counts has no row");
        let row = &charts.table[0];
        assert_eq!(row.time, "03:00");
        assert_eq!(row.cells, ["1,500", "1,400", "0", "3", "12 ms", "400 ms", "50 ms", "3.0 s"]);
        let accepted = &charts.tiles[0];
        assert_eq!(accepted.label, "Accepted: 1,500; highest bar: 1,500");
        assert_eq!(charts.tiles[2].label, "Retried: 0; none");
        let claim = &charts.tiles[4];
        assert_eq!(
            claim.label,
            "Wait before the first attempt: half within 12 ms, 99 % within 400 ms; highest bar: 400 ms"
        );
    }

    #[test]
    fn rates_are_short() {
        let t = Texts::of(Language::English);
        for (per_second, expected) in [
            (0.0, "0 a second"),
            (412.4, "412 a second"),
            (12_345.0, "12,345 a second"),
            (2.5, "2.5 a second"),
            (3.0, "3 a second"),
            (0.5, "30 a minute"),
            (1.0 / 60.0, "1 a minute"),
        ] {
            assert_eq!(shown_rate(t, per_second), expected);
        }
    }
}
