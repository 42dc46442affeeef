//! Alerts: `[alerts]`, on which terms they fire, for all queues and for single ones, and who is told.

#[cfg(test)]
mod tests;

use std::time::Duration;

use ichido::worker::{Alerts, BuildError, Form, QUEUE_PREFIX, Receiver, problems};
use ichido_core::alert::{Rule, RuleChange, TermsChange, Unit, WINDOW_MAX, WINDOW_MIN};
use ichido_core::settings::Faults;
use ichido_core::settings::duration::shown;
use ichido_store::message::QueueName;

use super::Described;
use super::document::{Section, nearest};

/// The most samples that an alert may ask for: whatever is more is a typing error.
const LEAST_MAX: u32 = 1_000_000_000;

/// Alerts that were understood, and where the destination of each receiver was said.
#[derive(Default)]
pub(super) struct Placed {
    pub(super) alerts: Alerts,
    places: Vec<String>,
}

pub(super) fn read(section: Option<Section<'_>>, faults: &mut Faults) -> Placed {
    let mut placed = Placed::default();
    let Some(mut section) = section else { return placed };
    for (rule, change) in changes(&mut section, faults) {
        placed.alerts.rules.change(rule, change);
    }
    // These have no terms: they are watched for or not.
    for rule in Rule::ALL.into_iter().filter(|rule| !rule.is_of_queues()) {
        if section.flag(rule.as_str(), faults) == Some(false) {
            placed.alerts.rules.change(rule, RuleChange::Off);
        }
    }
    for (queue, mut section) in section.sections("queues", faults) {
        if QueueName::parse(queue).is_none() {
            faults.add(
                section.own_place(),
                "is no queue's name: 1 to 128 letters, digits, `.`, `_`, `-` and `:`",
            );
        }
        for (rule, change) in changes(&mut section, faults) {
            placed.alerts.rules.change_for(rule, queue, change);
        }
        section.finish(faults);
    }
    for (name, section) in section.sections("to", faults) {
        let place = section.place("destination");
        if let Some(receiver) = receiver(name, section, faults) {
            placed.alerts.receivers.push(receiver);
            placed.places.push(place);
        }
    }
    section.finish(faults);
    placed
}

/// What a table says of each alert that is about queues.
fn changes(section: &mut Section<'_>, faults: &mut Faults) -> Vec<(Rule, RuleChange)> {
    let mut changes = Vec::new();
    for rule in Rule::ALL.into_iter().filter(|rule| rule.is_of_queues()) {
        let name = rule.as_str();
        let Some(member) = section.get(name) else { continue };
        if member.is_table() {
            let terms = section.section(name, faults).map(|terms| change(rule, terms, faults));
            changes.extend(terms.map(|terms| (rule, RuleChange::On(terms))));
            continue;
        }
        match member.as_bool() {
            Some(false) => changes.push((rule, RuleChange::Off)),
            // For a queue of its own where it is off for all.
            Some(true) => changes.push((rule, RuleChange::On(TermsChange::default()))),
            None => {
                let what = format!(
                    "is {}; write a table of terms, such as {{ above = 20 }}, or false to switch it off",
                    member.kind()
                );
                faults.add(section.place(name), what);
            }
        }
    }
    changes
}

fn change(rule: Rule, mut section: Section<'_>, faults: &mut Faults) -> TermsChange {
    let mut change = TermsChange::default();
    // What looks at how things stand has no window.
    if rule.terms().window.is_some() {
        change.window = section.time("window", faults);
        if change.window.is_some_and(|window| !(WINDOW_MIN..=WINDOW_MAX).contains(&window)) {
            let (least, most) = (shown(WINDOW_MIN), shown(WINDOW_MAX));
            faults.add(
                section.place("window"),
                format!("is no window that can be looked back; give it {least} to {most}"),
            );
        }
    }
    change.least = section.count("least", 1..=LEAST_MAX, faults).map(u64::from);
    change.above = match rule.unit() {
        Unit::Seconds => section.time("above", faults).as_ref().map(Duration::as_secs_f64),
        Unit::Count | Unit::Share | Unit::Times => section.measure("above", faults),
    };
    if rule.unit() == Unit::Share && change.above.is_some_and(|above| 1.0 <= above) {
        faults.add(
            section.place("above"),
            "is a share that nothing is above; write it as a number below 1, such as 0.05 for 5 %",
        );
    }
    section.finish(faults);
    change
}

fn receiver(name: &str, mut section: Section<'_>, faults: &mut Faults) -> Option<Receiver> {
    let destination = section.text("destination", faults);
    if !section.has("destination") {
        faults.add(section.place("destination"), "is missing; name one of the [destinations]");
    }
    let form = section.needed_word("form", &Form::ALL.map(|form| (form.as_str(), form)), faults);
    let own_place = section.own_place();
    section.finish(faults);
    let receiver = Receiver { name: name.to_owned(), destination: destination?.to_owned(), form: form? };
    if QueueName::parse(&receiver.queue()).is_none() {
        faults.add(own_place, "is no receiver's name: letters, digits, `.`, `_`, `-` and `:`, 100 at most");
        return None;
    }
    Some(receiver)
}

impl Placed {
    /// What contradicts itself between receivers, destinations and queues, each at its place.
    pub(super) fn check(
        &self,
        destinations: &[Described],
        named: &[&str],
        queues: &[(&str, String)],
        faults: &mut Faults,
    ) {
        for (name, place) in queues.iter().filter(|(name, _)| name.starts_with(QUEUE_PREFIX)) {
            faults
                .add(place, format!("{name} is a name that is kept for what tells of alerts; take another"));
        }
        let known: Vec<(&str, Duration)> =
            destinations.iter().map(|described| (described.name.as_str(), described.time_out())).collect();
        for (queue, place) in self.alerts.queues().iter().zip(&self.places) {
            let destination = &queue.destination;
            for error in problems(&known, std::slice::from_ref(queue)) {
                match error {
                    // It is there, and what is wrong with it was said.
                    BuildError::NoDestination { .. } if named.contains(&destination.as_str()) => (),
                    BuildError::NoDestination { .. } => {
                        let meant = nearest(destination, named.iter().copied());
                        let meant = meant.map(|name| format!("; did you mean {name}")).unwrap_or_default();
                        faults.add(place, format!("there is no [destinations.{destination}]{meant}; add it, or name one that is there"));
                    }
                    BuildError::DestinationName { .. } | BuildError::DestinationTwice { .. } => (),
                    error => faults.add(place, error.to_string()),
                }
            }
        }
    }
}
