//! Which terms apply: those of a queue, then those of all, then the built-in ones.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{AlertRule, AlertSubject, AlertTerms};

/// A change to an alert.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RuleChange {
    /// It is off.
    Off,
    /// It is on, with changed terms.
    On(TermsChange),
}

/// A change to an alert's terms; `None` leaves a value unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TermsChange {
    /// How far back it looks.
    pub window: Option<Duration>,
    /// The minimum number of samples.
    pub min_samples: Option<u64>,
    /// The threshold.
    pub above: Option<f64>,
}

impl TermsChange {
    fn on(self, terms: AlertTerms) -> AlertTerms {
        AlertTerms {
            // The current state has no window.
            window: terms.window.map(|window| self.window.unwrap_or(window)),
            min_samples: self.min_samples.unwrap_or(terms.min_samples),
            above: self.above.unwrap_or(terms.above),
        }
    }
}

/// The terms of all alerts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlertRules {
    common: BTreeMap<AlertRule, RuleChange>,
    queues: BTreeMap<(AlertRule, String), RuleChange>,
}

impl AlertRules {
    /// Changes a rule for everything.
    pub fn change(&mut self, rule: AlertRule, change: RuleChange) {
        self.common.insert(rule, change);
    }

    /// Changes a rule for one queue.
    ///
    /// Missing values are those for everything or, if the rule is off for everything, the built-in ones.
    pub fn change_for(&mut self, rule: AlertRule, queue: &str, change: RuleChange) {
        self.queues.insert((rule, queue.to_owned()), change);
    }

    /// Returns the terms that apply; `None` if the rule is off.
    pub fn terms(&self, rule: AlertRule, about: &AlertSubject) -> Option<AlertTerms> {
        let own = about.queue().and_then(|queue| self.queues.get(&(rule, queue.to_owned())));
        self.with(rule, own.copied())
    }

    /// Returns the terms for a queue without its own; `None` if the rule is off.
    pub fn common(&self, rule: AlertRule) -> Option<AlertTerms> {
        match self.common.get(&rule) {
            Some(RuleChange::Off) => None,
            Some(RuleChange::On(change)) => Some(change.on(rule.terms())),
            None => Some(rule.terms()),
        }
    }

    /// Returns the queues with changes, by name.
    ///
    /// Each changed rule has its terms, or `None` if it is off.
    pub fn of_queues(&self) -> BTreeMap<&str, Vec<(AlertRule, Option<AlertTerms>)>> {
        let mut all: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for ((rule, queue), change) in &self.queues {
            all.entry(queue).or_default().push((*rule, self.with(*rule, Some(*change))));
        }
        all
    }

    /// Returns a rule's windows, each once: counts are read for each of them.
    pub fn windows(&self, rule: AlertRule) -> Vec<Duration> {
        let own = self.queues.iter().filter(|((of, _), _)| *of == rule);
        let own = own.filter_map(|(_, change)| self.with(rule, Some(*change)));
        let mut windows: Vec<Duration> =
            own.chain(self.common(rule)).filter_map(|terms| terms.window).collect();
        windows.sort_unstable();
        windows.dedup();
        windows
    }

    /// Returns the terms with a queue's changes.
    fn with(&self, rule: AlertRule, own: Option<RuleChange>) -> Option<AlertTerms> {
        let common = self.common(rule);
        match own {
            None => common,
            Some(RuleChange::Off) => None,
            Some(RuleChange::On(change)) => Some(change.on(common.unwrap_or(rule.terms()))),
        }
    }
}
