//! The tables in Markdown: a summary for `bench/README.md`, all details for `bench/RESULTS.md`.

pub(super) mod capacity;
mod goals;

use std::fmt::Write as _;

use super::contestant::{CONTESTANTS, Contestant};
use super::endpoint::{ENDPOINTS, LATENCY_RATE, replays_of};
use super::growth::{ON_POSTGRES, ON_SQLITE};
use super::protocol::Part;
use super::results::{Measurement, Results, float};
use super::sample::Spread;
use super::{BYTES, RATES};

const BEGIN: &str = "<!-- generated: begin -->\n";
const END: &str = "<!-- generated: end -->\n";
/// Shown where a contestant has no number: it failed, did not keep up, or does not do the part.
const NOTHING: &str = "–";

/// Replaces what is between the marks.
pub(super) fn between_marks(text: &str, generated: &str) -> String {
    let (before, rest) = text.split_once(BEGIN).expect("a first mark");
    let (_, after) = rest.split_once(END).expect("a second mark");
    format!("{before}{BEGIN}{generated}{END}{after}")
}

/// Returns what a reader needs to decide.
pub(super) fn summary(results: Option<&Results>) -> String {
    let Some(results) = results else {
        return "No run is stored yet.\n".to_owned();
    };
    [heading(results), PICTURE.to_owned(), contest(results), endpoints(results)].join("\n")
}

/// Returns everything else; before the first run, only who takes part.
pub(super) fn details(results: Option<&Results>) -> String {
    let mut sections = vec![TITLE.to_owned()];
    if let Some(results) = results {
        sections.extend([
            heading(results),
            goals::table(results),
            costs(results),
            endpoint_costs(results),
            growth(results),
        ]);
    }
    sections.push(settings());
    sections.join("\n")
}

const PICTURE: &str = "\
<picture>
  <source media=\"(prefers-color-scheme: dark)\" srcset=\"charts/drain-dark.svg\">
  <img src=\"charts/drain-light.svg\" width=\"800\" alt=\"Messages drained per second by one worker process, for each library.\">
</picture>
";

const TITLE: &str = "\
# All results

`cargo xtask bench` wrote this page. [README.md](README.md) has the summary, and explains what the numbers mean.
";

fn heading(results: &Results) -> String {
    let machine = &results.machine;
    let remark = match (results.is_quick, results.is_complete) {
        (true, _) => {
            "**A quick run on a busy machine: it shows that the contest works, not how fast anybody is.** "
        }
        (false, false) => "**This run is not finished.** ",
        (false, true) => "",
    };
    format!(
        "{remark}{}, commit {}; {} × {}, PostgreSQL {}; median of {} rounds, least and greatest in brackets.\n",
        machine.date, machine.commit, machine.cores, machine.processor, machine.postgres, results.rounds
    )
}

/// The one table.
fn contest(results: &Results) -> String {
    let mut table = Table::new(&[
        "contestant",
        "drained/s",
        "enqueued/s, 1,000 a call",
        "enqueued/s, one caller",
        "pickup at 100/s, p50 / p99 ms",
        "at 1,000/s",
        "at 5,000/s",
    ]);
    for contestant in &CONTESTANTS {
        let rate = |part| results.find(contestant.name, part, 0.0).and_then(Measurement::rates);
        let mut row = vec![
            title(contestant),
            ranged(rate(Part::Drain)),
            ranged(rate(Part::EnqueueBulk)),
            ranged(rate(Part::EnqueueOne)),
        ];
        row.extend(RATES.map(|rate| latencies(results.find(contestant.name, Part::Pickup, rate))));
        table.row(&row);
    }
    table.text
}

/// What a message costs, for each rate of the one table.
fn costs(results: &Results) -> String {
    let mut text = String::from("## What a message costs\n");
    for (part, title) in [
        (Part::Drain, "Drained"),
        (Part::EnqueueBulk, "Enqueued, 1,000 a call"),
        (Part::EnqueueOne, "Enqueued by one caller"),
    ] {
        let mut table = Table::new(&[
            title,
            "commits/s",
            "messages per commit",
            "WAL bytes",
            "CPU µs, process",
            "CPU µs, database",
            "peak memory MB",
        ]);
        for contestant in &CONTESTANTS {
            let Some(it) = results.find(contestant.name, part, 0.0) else { continue };
            table.row(&[&[contestant.name.to_owned()][..], &cost(it)].concat());
        }
        write!(text, "\n{}", table.text).expect("writing to a string cannot fail");
    }
    text
}

/// Returns the cells of commits, log, processor time and memory.
fn cost(it: &Measurement) -> Vec<String> {
    let commits = it.spread(|sample| sample.commits.map(whole_float)).map(|spread| spread.median);
    let seconds = it.spread(|sample| Some(sample.seconds)).map(|spread| spread.median);
    let memory = it.spread(|sample| Some(whole_float(sample.peak_kib) / 1_024.0)).map(|spread| spread.median);
    vec![
        number(commits.zip(seconds).map(|(commits, seconds)| commits / seconds)),
        number(commits.filter(|commits| 0.0 < *commits).map(|commits| float(it.count) / commits)),
        number(it.per_message(|sample| sample.wal_bytes.map(whole_float))),
        number(it.per_message(|sample| Some(whole_float(sample.process_us)))),
        number(it.per_message(|sample| sample.database_us.map(whole_float))),
        number(memory),
    ]
}

fn endpoints(results: &Results) -> String {
    let latency = format!("p50 / p99 ms at {LATENCY_RATE:.0}/s");
    let mut table = Table::new(&[
        "endpoint with an idempotency key",
        "first requests/s",
        "replays/s",
        &latency,
        "promise",
    ]);
    for endpoint in &ENDPOINTS {
        let Some(first) = results.find(endpoint.name, Part::Serve, 0.0) else { continue };
        let replays = results.find(&replays_of(endpoint.name), Part::Serve, 0.0);
        let paced = results.find(endpoint.name, Part::Serve, LATENCY_RATE);
        table.row(&[
            endpoint.name.to_owned(),
            ranged(first.rates()),
            ranged(replays.and_then(Measurement::rates)),
            latencies(paced),
            endpoint.promise.to_owned(),
        ]);
    }
    table.text
}

fn endpoint_costs(results: &Results) -> String {
    let mut table = Table::new(&[
        "first requests, 64 connections",
        "commits/s",
        "requests per commit",
        "WAL bytes",
        "CPU µs, process",
        "CPU µs, database",
        "peak memory MB",
    ]);
    for endpoint in &ENDPOINTS {
        let Some(first) = results.find(endpoint.name, Part::Serve, 0.0) else { continue };
        table.row(&[&[endpoint.name.to_owned()][..], &cost(first)].concat());
    }
    format!("## What a request to an endpoint costs\n\n{}", table.text)
}

fn growth(results: &Results) -> String {
    let mut text = String::from("## How cost grows\n\nOne round.\n");
    for name in [ON_POSTGRES, ON_SQLITE] {
        let head = [
            name,
            "enqueued/s, bulk",
            "drained/s",
            "WAL bytes, drain",
            "CPU µs, process",
            "CPU µs, database",
        ];
        let mut table = Table::new(&head);
        let drains = results.measurements.iter().filter(|it| it.contestant == name && it.part == Part::Drain);
        for drain in drains {
            let bulk = results.measurements.iter().find(|it| {
                (&it.contestant, it.part) == (&drain.contestant, Part::EnqueueBulk)
                    && (it.bytes, it.workers, it.history) == (drain.bytes, drain.workers, drain.history)
            });
            let what = match (drain.history, drain.workers) {
                (0, 1) if drain.bytes != BYTES => format!("payload of {} B", grouped(float(drain.bytes))),
                (0, workers) => format!("workers: {workers}"),
                (history, _) => format!("{} finished before", grouped(float(history))),
            };
            let cells = cost(drain);
            let mut row = vec![what, ranged(bulk.and_then(Measurement::rates)), ranged(drain.rates())];
            row.extend(cells.into_iter().skip(2).take(3));
            table.row(&row);
        }
        write!(text, "\n{}", table.text).expect("writing to a string cannot fail");
    }
    text
}

fn settings() -> String {
    let mut table = Table::new(&[
        "contestant",
        "version",
        "language",
        "keeps of a finished message",
        "settings of its drain",
    ]);
    for it in &CONTESTANTS {
        let cells = [it.name, it.version, it.language(), it.keeps, it.settings];
        table.row(&cells.map(str::to_owned));
    }
    // Text, not numbers.
    format!("## Contestants\n\n{}", table.text.replace("---:", "---"))
}

fn title(contestant: &Contestant) -> String {
    let name = format!("{} ({})", contestant.name, contestant.language());
    if contestant.is_peer() { name } else { format!("**{name}**") }
}

/// Returns `12,300 [11,900–12,800]`.
fn ranged(spread: Option<Spread>) -> String {
    let Some(Spread { median, min, max }) = spread else { return NOTHING.to_owned() };
    if min.to_bits() == max.to_bits() {
        return grouped(median);
    }
    format!("{} [{}–{}]", grouped(median), grouped(min), grouped(max))
}

fn latencies(it: Option<&Measurement>) -> String {
    let of = |number: fn(&super::sample::Sample) -> Option<f64>| it.and_then(|it| it.spread(number));
    let (p50, p99) = (of(|sample| sample.p50_us), of(|sample| sample.p99_us));
    match p50.zip(p99) {
        Some((p50, p99)) => format!("{} / {}", ms(p50.median), ms(p99.median)),
        None => NOTHING.to_owned(),
    }
}

fn ms(us: f64) -> String {
    if us < 100_000.0 { format!("{:.1}", us / 1e3) } else { grouped(us / 1e3) }
}

fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value < 10.0 => format!("{value:.1}"),
        Some(value) => grouped(value),
        None => NOTHING.to_owned(),
    }
}

/// Returns a whole number with commas.
pub(super) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if 0 < index && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
fn whole_float(count: u64) -> f64 {
    count as f64
}

/// A Markdown table: the first column is text, the others are numbers.
struct Table {
    text: String,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        let marks = vec!["---:"; head.len().saturating_sub(1)].join("|");
        Self { text: format!("| {} |\n|---|{marks}|\n", head.join(" | ")) }
    }

    fn row(&mut self, cells: &[String]) {
        writeln!(self.text, "| {} |", cells.join(" | ")).expect("writing to a string cannot fail");
    }
}

#[cfg(test)]
mod tests;
