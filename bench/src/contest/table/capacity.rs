//! The rates of `docs/scale.md`, so the page on capacity shows the last run.

use super::super::endpoint::replays_of;
use super::super::growth::ON_POSTGRES;
use super::{Measurement, Part, Results, Table, grouped};

/// Accepting over HTTP is measured by `cargo xtask bench serve`, not by the contest: see `bench/NOTES.md`.
const ACCEPTED: f64 = 12_022.0;
/// The share of the calculated rate to plan with.
const PLANNED: f64 = 1.0 / 3.0;

/// Returns the table of rates and what follows from it.
pub(in crate::contest) fn text(results: &Results) -> String {
    let rate = |name: &str, part| {
        results.find(name, part, 0.0).and_then(Measurement::rates).map(|spread| spread.median)
    };
    let delivered = rate("Ichido", Part::Drain);
    let keyed = "Ichido, keyed";
    let rows = [
        ("accepting over HTTP, 64 connections, without deliveries", Some(ACCEPTED)),
        ("enqueuing with the library, 1,000 per call", rate("Ichido", Part::EnqueueBulk)),
        ("delivering to a Rust handler, history kept", delivered),
        ("an endpoint behind the layer that inserts one row: keyed", rate(keyed, Part::Serve)),
        ("the same endpoint: transactional", rate("Ichido, transactional", Part::Serve)),
        ("the same endpoint: replays", rate(&replays_of(keyed), Part::Serve)),
    ];
    let mut table = Table::new(&["work", "messages or requests per second", "time for each"]);
    for (what, rate) in rows.into_iter().filter_map(|(what, rate)| Some((what, rate?))) {
        table.row(&[what.to_owned(), grouped(rate), format!("{} µs", grouped(1e6 / rate))]);
    }
    [table.text, delivered.map(sum).unwrap_or_default(), history(results)].concat()
}

/// Both costs of a message together.
fn sum(delivered: f64) -> String {
    let (accepting, delivering) = (1e6 / ACCEPTED, 1e6 / delivered);
    let rate = 1e6 / (accepting + delivering);
    format!(
        "\nThe last column is one second divided by the rate. Times add up if the work shares the cores: accepting ({} µs) and\n\
         delivering ({} µs) a message take {} µs, so about {} messages a second. That number is calculated: no benchmark accepts\n\
         and delivers at once. Plan with a third of that, {} messages a second: the rates vary by a fifth and more from run to run, and\n\
         peaks exceed the average.\n",
        grouped(accepting),
        grouped(delivering),
        grouped(accepting + delivering),
        grouped(rounded(rate)),
        grouped(rounded(rate * PLANNED)),
    )
}

/// How much of its rate a drain keeps behind the longest history that was measured.
fn history(results: &Results) -> String {
    let behind = results.measurements.iter();
    let mut behind: Vec<&Measurement> = behind
        .filter(|it| it.contestant == ON_POSTGRES && it.part == Part::Drain && 0 < it.history)
        .collect();
    behind.sort_by_key(|it| it.history);
    let rate = |it: Option<&&Measurement>| it.and_then(|it| it.rates()).map(|spread| spread.median);
    let (Some(longest), Some(first), Some(last)) = (behind.last(), rate(behind.first()), rate(behind.last()))
    else {
        return String::new();
    };
    format!(
        "\nWith {} finished messages in the store, delivering kept {:.0} % of its rate.\n",
        grouped(super::float(longest.history)),
        100.0 * last / first
    )
}

/// Returns two significant digits, down to hundreds.
fn rounded(rate: f64) -> f64 {
    (rate / 100.0).round() * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_one_message_add_up() {
        let text = sum(40_000.0);
        assert!(text.contains("accepting (83 µs)") && text.contains("delivering (25 µs)"), "{text}");
        assert!(text.contains("about 9,200 messages") && text.contains("that, 3,100 messages"), "{text}");
    }
}
