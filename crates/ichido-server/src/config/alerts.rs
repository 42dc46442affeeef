//! `[alerts]`: the terms of each alert, for all queues or one, and the receivers.

#[cfg(test)]
mod tests;

use std::time::Duration;

use ichido::worker::{AlertFormat, AlertReceiver, AlertSettings};
use ichido_core::alert::{AlertRule, MeasureUnit, RuleChange, TermsChange};
use ichido_store::message::QueueName;

use super::document::Section;

/// The parsed alerts, and the section of each receiver.
#[derive(Default)]
pub(super) struct LocatedAlerts<'a> {
    pub(super) alerts: AlertSettings,
    pub(super) receivers: Vec<Section<'a>>,
}

pub(super) fn read<'a>(section: &Section<'a>) -> LocatedAlerts<'a> {
    let mut located = LocatedAlerts::default();
    for (rule, change) in changes(section) {
        located.alerts.rules.change(rule, change);
    }
    for section in section.sections("queues") {
        if QueueName::parse(section.name).is_none() {
            let what = "is not a valid queue name; use 1 to 128 letters, digits, `.`, `_`, `-` and `:`";
            section.report("", what);
        }
        for (rule, change) in changes(&section) {
            located.alerts.rules.change_for(rule, section.name, change);
        }
    }
    for section in section.sections("to") {
        if let Some(receiver) = receiver(&section) {
            located.alerts.receivers.push(receiver);
            located.receivers.push(section);
        }
    }
    located
}

/// Returns the changes that a table makes to each alert.
///
/// They are its terms, or whether it is on.
fn changes(section: &Section<'_>) -> Vec<(AlertRule, RuleChange)> {
    let of_rule = |rule: AlertRule| {
        let name = rule.as_str();
        if let Some(terms) = section.section(name) {
            return Some((rule, RuleChange::On(change(rule, &terms))));
        }
        // `true` switches an alert on for one queue if it is off for all.
        let is_on = section.explicit::<bool>(name)?;
        Some((rule, if is_on { RuleChange::On(TermsChange::default()) } else { RuleChange::Off }))
    };
    AlertRule::ALL.into_iter().filter_map(of_rule).collect()
}

fn change(rule: AlertRule, section: &Section<'_>) -> TermsChange {
    let above = match rule.unit() {
        MeasureUnit::Seconds => section.get::<Duration>("above").map(|time| time.as_secs_f64()),
        MeasureUnit::Count | MeasureUnit::Share | MeasureUnit::Times => section.get("above"),
    };
    TermsChange {
        window: section.get("window"),
        min_samples: section.get::<u32>("min_samples").map(u64::from),
        above,
    }
}

fn receiver(section: &Section<'_>) -> Option<AlertReceiver> {
    let (destination, form) = (section.get("destination")?, section.word("format", AlertFormat::parse)?);
    let receiver = AlertReceiver { name: section.name.to_owned(), destination, format: form };
    if QueueName::parse(&receiver.queue()).is_none() {
        let what = "is not a valid receiver name; use at most 100 letters, digits, `.`, `_`, `-` and `:`";
        section.report("", what);
        return None;
    }
    Some(receiver)
}
