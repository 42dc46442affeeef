//! The table of results.

use std::fmt::Write as _;

use crate::load::ContenderRun;

/// The maximum share of throttled calls that ours aims for.
const THROTTLED_TARGET: f64 = 0.05;
/// The maximum ratio to the ideal time that ours aims for.
const TO_IDEAL_TARGET: f64 = 1.15;

/// Renders the table. The first row is ours, and only it has targets.
pub(crate) fn text(all: &[ContenderRun]) -> String {
    let mut text = String::from(
        "| contender | time | to the ideal | calls | throttled | not answered |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for (index, ran) in all.iter().enumerate() {
        let mark = |is_missed: bool| if index == 0 && is_missed { " (missed)" } else { "" };
        writeln!(
            text,
            "| {} | {:.1} s | {:.2}{} | {} | {:.1} %{} | {} |",
            ran.contender,
            ran.took.as_secs_f64(),
            ran.to_ideal(),
            mark(TO_IDEAL_TARGET < ran.to_ideal()),
            ran.seen.requests,
            ran.throttled() * 100.0,
            mark(THROTTLED_TARGET <= ran.throttled()),
            ran.unanswered(),
        )
        .expect("writing to a string cannot fail");
    }
    text
}
