//! Which terms hold for what: those of a queue, then those of all, then the built-in ones.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{About, Rule, Terms};

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
    common: BTreeMap<Rule, TermsChange>,
    queues: BTreeMap<(Rule, String), TermsChange>,
}

impl Rules {
    /// Changes a rule's terms for everything.
    pub fn change(&mut self, rule: Rule, change: TermsChange) {
        self.common.insert(rule, change);
    }

    /// Changes a rule's terms for one queue; what it leaves open is as for everything.
    pub fn change_for(&mut self, rule: Rule, queue: &str, change: TermsChange) {
        self.queues.insert((rule, queue.to_owned()), change);
    }

    /// The terms that hold.
    pub fn terms(&self, rule: Rule, about: &About) -> Terms {
        let common = self.common.get(&rule).copied().unwrap_or_default().on(rule.terms());
        let own = about.queue().and_then(|queue| self.queues.get(&(rule, queue.to_owned())));
        own.copied().unwrap_or_default().on(common)
    }

    /// All windows that a rule looks back, each once: how often counts must be read.
    pub fn windows(&self, rule: Rule) -> Vec<Duration> {
        let common = self.common.get(&rule).copied().unwrap_or_default().on(rule.terms());
        let own = self.queues.iter().filter(|((of, _), _)| *of == rule);
        let mut windows: Vec<Duration> =
            own.filter_map(|(_, change)| change.on(common).window).chain(common.window).collect();
        windows.sort_unstable();
        windows.dedup();
        windows
    }
}
