//! When a queue tries again: one of the schedules of the specification by name, or one of its own.

use std::time::Duration;

use ichido_core::retry::{Jitter, Retry, Schedule};
use ichido_core::settings::Faults;
use ichido_core::settings::duration;

use super::document::Section;

/// The schedules that have a name.
const PRESETS: [(&str, Retry); 4] =
    [("outbox", Retry::OUTBOX), ("job", Retry::JOB), ("llm", Retry::LLM), ("client", Retry::CLIENT)];
/// The most waits of a list.
const WAITS_MAX: usize = 100;
/// The most that a wait is multiplied by to give the next.
const FACTOR_MAX: u32 = 100;
const JITTERS: &str =
    "\"none\", \"full\" (anything from 0 to the wait), \"+10%\" (longer), or \"+-10%\" (either)";

/// What `retry` says in a queue's section; the outbox's own where it says nothing. How often is not said here.
pub(super) fn read(queue: &mut Section<'_>, faults: &mut Faults) -> Option<Retry> {
    let Some(member) = queue.get("retry") else { return Some(Retry::OUTBOX) };
    if member.is_table() {
        return own(queue.section("retry", faults)?, faults);
    }
    let preset = member.as_str().and_then(|name| PRESETS.iter().find(|(known, _)| *known == name));
    if preset.is_none() {
        let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        faults.add(
            queue.place("retry"),
            format!(
                "is no schedule; write one of {}, or a table such as {{ base = \"2s\", factor = 2, cap = \"256s\", jitter = \"+-10%\" }}",
                names.join(", ")
            ),
        );
    }
    preset.map(|(_, retry)| retry.clone())
}

/// A schedule of its own.
fn own(mut section: Section<'_>, faults: &mut Faults) -> Option<Retry> {
    let waits = section.texts("waits", faults);
    let base = section.time("base", faults);
    let factor = section.count("factor", 1..=FACTOR_MAX, faults);
    let cap = section.time("cap", faults);
    let jitter = match section.text("jitter", faults) {
        Some(text) => jitter(text).or_else(|| {
            faults.add(section.place("jitter"), format!("{text:?} is no jitter; write {JITTERS}"));
            None
        }),
        None => Some(Retry::OUTBOX.jitter),
    };
    let place = section.own_place();
    let schedule = match (waits, base) {
        (Some(_), Some(_)) => {
            faults.add(place.clone(), "has both waits and base; a schedule is a list or grows, not both");
            None
        }
        (Some(waits), None) => list(&waits, &section, faults),
        (None, Some(base)) => {
            let factor = factor.unwrap_or(2);
            Some(Schedule::Exponential { base, factor, cap: cap.unwrap_or(ichido_core::retry::WAIT_MAX) })
        }
        (None, None) => {
            if !section.has("waits") && !section.has("base") {
                faults.add(
                    place.clone(),
                    "has no waits; give base (and factor, cap), or waits = [\"2s\", \"4s\"]",
                );
            }
            None
        }
    };
    section.finish(faults);
    let retry = Retry { schedule: schedule?, jitter: jitter?, tries: Retry::OUTBOX.tries };
    faults.check(&place, retry.checked())
}

fn list(waits: &[&str], section: &Section<'_>, faults: &mut Faults) -> Option<Schedule> {
    let place = section.place("waits");
    if WAITS_MAX < waits.len() {
        faults.add(
            place,
            format!("has more than {WAITS_MAX} waits; the last one is used again when they run out"),
        );
        return None;
    }
    let waits: Vec<Option<Duration>> =
        waits.iter().map(|wait| faults.check(&place, duration::parse(wait))).collect();
    waits.into_iter().collect::<Option<_>>().map(Schedule::List)
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
