//! Which terms hold for what: those of a queue, then those of all, then the built-in ones.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{About, Rule, Terms};

/// What somebody says of an alert.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RuleChange {
    /// It is not watched for.
    Off,
    /// It is watched for, on terms that are changed so.
    On(TermsChange),
}

/// What somebody says of an alert's terms; what is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TermsChange {
    /// How far back it looks.
    pub window: Option<Duration>,
    /// The least samples by which it fires.
    pub least: Option<u64>,
    /// It fires above this.
    pub above: Option<f64>,
}

impl TermsChange {
    fn on(self, terms: Terms) -> Terms {
        Terms {
            // How things stand has no window.
            window: terms.window.map(|window| self.window.unwrap_or(window)),
            least: self.least.unwrap_or(terms.least),
            above: self.above.unwrap_or(terms.above),
        }
    }
}

/// The terms of all alerts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    common: BTreeMap<Rule, RuleChange>,
    queues: BTreeMap<(Rule, String), RuleChange>,
}

impl Rules {
    /// Changes a rule for everything.
    pub fn change(&mut self, rule: Rule, change: RuleChange) {
        self.common.insert(rule, change);
    }

    /// Changes a rule for one queue. What it leaves open is as for everything; where the rule is off for everything, as it is built in.
    pub fn change_for(&mut self, rule: Rule, queue: &str, change: RuleChange) {
        self.queues.insert((rule, queue.to_owned()), change);
    }

    /// The terms that hold; `None` where the rule is off.
    pub fn terms(&self, rule: Rule, about: &About) -> Option<Terms> {
        let own = about.queue().and_then(|queue| self.queues.get(&(rule, queue.to_owned())));
        self.with(rule, own.copied())
    }

    /// The terms that hold where a queue says nothing of its own; `None` where the rule is off there.
    pub fn common(&self, rule: Rule) -> Option<Terms> {
        match self.common.get(&rule) {
            Some(RuleChange::Off) => None,
            Some(RuleChange::On(change)) => Some(change.on(rule.terms())),
            None => Some(rule.terms()),
        }
    }

    /// The queues of which something is said, by name: each rule of which something is, with its terms or that it is off.
    pub fn of_queues(&self) -> BTreeMap<&str, Vec<(Rule, Option<Terms>)>> {
        let mut all: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for ((rule, queue), change) in &self.queues {
            all.entry(queue).or_default().push((*rule, self.with(*rule, Some(*change))));
        }
        all
    }

    /// All windows that a rule looks back, each once: how often counts must be read.
    pub fn windows(&self, rule: Rule) -> Vec<Duration> {
        let own = self.queues.iter().filter(|((of, _), _)| *of == rule);
        let own = own.filter_map(|(_, change)| self.with(rule, Some(*change)));
        let mut windows: Vec<Duration> =
            own.chain(self.common(rule)).filter_map(|terms| terms.window).collect();
        windows.sort_unstable();
        windows.dedup();
        windows
    }

    /// The terms that hold with what a queue says.
    fn with(&self, rule: Rule, own: Option<RuleChange>) -> Option<Terms> {
        let common = self.common(rule);
        match own {
            None => common,
            Some(RuleChange::Off) => None,
            Some(RuleChange::On(change)) => Some(change.on(common.unwrap_or(rule.terms()))),
        }
    }
}
