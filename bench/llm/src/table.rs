//! The table of results.

use std::fmt::Write as _;

use crate::load::ContenderRun;

/// What ours is to stay below, as a share of its calls.
const THROTTLED_TARGET: f64 = 0.05;
/// What ours is to stay within, of the ideal.
const TO_IDEAL_TARGET: f64 = 1.15;

/// The first is ours, and the targets are its alone.
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
        .expect("a string takes everything");
    }
    text
}
