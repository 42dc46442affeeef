//! The retry schedule of a queue: one of the specification's named ones, or a custom one.

use ichido_core::retry::{Jitter, Retry, Schedule};
use ichido_core::settings::duration;

use super::document::Section;

/// The named schedules.
pub(super) const PRESETS: [(&str, Retry); 5] = [
    ("order", Retry::ORDER),
    (WEBHOOK, Retry::WEBHOOK),
    ("job", Retry::JOB),
    ("llm", Retry::LLM),
    ("client", Retry::CLIENT),
];
/// The default of queues with an HTTP destination.
pub(super) const WEBHOOK: &str = "webhook";
/// Maximum waits in a list.
const MAX_WAITS: usize = 100;
const JITTERS: &str = "\"none\", \"full\" (0 to the wait), \"+10%\" (longer) or \"+-10%\" (either way)";

/// Returns a named schedule.
pub(super) fn preset(name: &str) -> Option<Retry> {
    PRESETS.into_iter().find(|(known, _)| *known == name).map(|(_, retry)| retry)
}

/// Reads `retry` of a queue's section.
///
/// The number of attempts is a setting of its own.
pub(super) fn read(queue: &Section<'_>) -> Option<Retry> {
    match queue.section("retry") {
        Some(section) => custom(&section),
        None => queue.word("retry", preset),
    }
}

/// Reads a custom schedule.
fn custom(section: &Section<'_>) -> Option<Retry> {
    let text: String = section.get_or_default("jitter");
    let jitter = jitter(&text).ok_or_else(|| format!("{text:?} is not a valid jitter; write {JITTERS}"));
    let jitter = section.checked("jitter", jitter);
    let report = |what: &str| section.report("", what);
    let schedule = match (section.get::<Vec<String>>("waits"), section.get("base")) {
        (Some(_), Some(_)) => {
            report("has both waits and base; remove one of them");
            None
        }
        (Some(waits), None) => section.checked("waits", list(&waits)),
        (None, Some(base)) => Some(Schedule::Exponential {
            base,
            factor: section.get_or_default("factor"),
            cap: section.get_or_default("cap"),
        }),
        (None, None) => {
            if !section.has("waits") && !section.has("base") {
                report("has neither waits nor base; set base (and factor, cap), or waits = [\"2s\", \"4s\"]");
            }
            None
        }
    };
    let retry = Retry { schedule: schedule?, jitter: jitter?, max_attempts: Retry::ORDER.max_attempts };
    retry.checked().map_err(|error| report(&error.to_string())).ok()
}

fn list(waits: &[String]) -> Result<Schedule, String> {
    if MAX_WAITS < waits.len() {
        return Err(format!("has more than {MAX_WAITS} waits; shorten the list, whose last wait repeats"));
    }
    let waits: Result<_, _> = waits.iter().map(|wait| duration::parse(wait)).collect();
    waits.map(Schedule::List).map_err(|error| error.to_string())
}

fn jitter(text: &str) -> Option<Jitter> {
    let share = |text: &str| {
        let percent: f64 = text.strip_suffix('%')?.parse().ok()?;
        Some(percent / 100.0).filter(|share| (0.0..=1.0).contains(share))
    };
    match text {
        "none" => Some(Jitter::None),
        "full" => Some(Jitter::Full),
        _ => match text.strip_prefix("+-").or_else(|| text.strip_prefix('±')) {
            Some(text) => share(text).map(Jitter::PlusMinus),
            None => share(text.strip_prefix('+')?).map(Jitter::Add),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_read_as_people_write_it() {
        for (text, expected) in [
            ("none", Some(Jitter::None)),
            ("full", Some(Jitter::Full)),
            ("+10%", Some(Jitter::Add(0.1))),
            ("+-10%", Some(Jitter::PlusMinus(0.1))),
            ("±10%", Some(Jitter::PlusMinus(0.1))),
            ("10%", None),
            ("+101%", None),
            ("-10%", None),
            ("", None),
        ] {
            assert_eq!(jitter(text), expected, "{text}");
        }
    }
}
