//! The text of an alert: one sentence when it opens, one when it ends.
//!
//! Guarantee: a sentence names the subject, the measured value and the threshold, and no key, payload or identity.

use std::time::Duration;

use super::{AlertRule, AlertSubject, AlertTerms, MeasureUnit, Measurement};

/// Says that an incident has opened.
pub fn opened(rule: AlertRule, about: &AlertSubject, terms: AlertTerms, reading: Measurement) -> String {
    let value = amount(rule, reading.value);
    let above = amount(rule, terms.above);
    let window = terms.window.map(format_duration).unwrap_or_default();
    let samples = reading.samples;
    let what = match rule {
        AlertRule::DeadLetter => format!("{value} dead-lettered within {window}"),
        AlertRule::DeadLetters => format!("{value} dead-lettered within {window} (limit: {above})"),
        AlertRule::DeadSurge => format!(
            "{samples} dead-lettered within {window}, {value} times the usual rate (limit: {above} times)"
        ),
        AlertRule::FailedRetries => {
            format!("{value} of {samples} retries within {window} failed (limit: {above})")
        }
        AlertRule::Duplicates => {
            format!("{value} of {samples} requests within {window} were duplicates (limit: {above})")
        }
        AlertRule::ProcessingDelay => format!(
            "the {samples} messages that ended within {window} took {value} on average (limit: {above})"
        ),
        AlertRule::LagP95 => format!(
            "5 % of the {samples} messages that ended within {window} took {value} or longer (limit: {above})"
        ),
        AlertRule::OldestWaiting => {
            format!("the oldest message ready to send has waited for {value} (limit: {above})")
        }
        AlertRule::Parked => {
            format!("{value} parked with an unknown effect; a person must decide")
        }
        AlertRule::CircuitOpen => "circuit open: it is down and not called, except for probes".to_owned(),
        AlertRule::AuditBroken => {
            format!(
                "{value} of its entries or seals differ from what was sealed; run `ichido audit verify` to list them"
            )
        }
        AlertRule::UnknownOutcome => {
            format!(
                "requests of unknown outcome: {value}; a person must decide (`ichido keys unknown` lists them)"
            )
        }
    };
    format!("{about}: {what}")
}

/// Says that an incident is over.
pub fn resolved(rule: AlertRule, about: &AlertSubject, lasted: Duration) -> String {
    let what = match rule {
        AlertRule::DeadLetter => {
            "no more messages are dead-lettered; dead letters that are left wait for a person"
        }
        AlertRule::DeadLetters => {
            "few messages are dead-lettered now; dead letters that are left wait for a person"
        }
        AlertRule::DeadSurge => "no more messages than usual are dead-lettered",
        AlertRule::FailedRetries => "retries succeed again, or there are few",
        AlertRule::Duplicates => "most requests are new again",
        AlertRule::ProcessingDelay | AlertRule::LagP95 => "messages end in time again, or there are few",
        AlertRule::OldestWaiting => "no message has waited too long",
        AlertRule::Parked => "no message is parked",
        AlertRule::CircuitOpen => "circuit closed: it is up again",
        AlertRule::AuditBroken => "its entries and seals are as sealed",
        AlertRule::UnknownOutcome => "no key has an unknown outcome",
    };
    format!("{about}: resolved after {}: {what}", format_duration(lasted))
}

/// Says that an incident is closed because it is no longer watched.
///
/// Whether it is over is unknown.
pub fn switched_off(rule: AlertRule, about: &AlertSubject, lasted: Duration) -> String {
    format!(
        "{about}: closed after {}: {} is switched off here and no longer watched",
        format_duration(lasted),
        rule.as_str()
    )
}

/// Formats a value in its unit.
fn amount(rule: AlertRule, value: f64) -> String {
    match rule.unit() {
        MeasureUnit::Count => plain(value, 0),
        MeasureUnit::Share => format!("{} %", plain(value * 100.0, 1)),
        MeasureUnit::Seconds => format_duration(Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)),
        MeasureUnit::Times => plain(value, 1),
    }
}

fn plain(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Formats a duration in whole seconds, minutes and hours.
fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts = [(seconds / 3_600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| 0 < *count).map(|(count, unit)| format!("{count}{unit}")).collect();
    if parts.is_empty() { format!("{}ms", time.as_millis()) } else { parts.join(" ") }
}
