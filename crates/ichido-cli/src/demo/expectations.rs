//! What a viewer of the demo should see, and whether it was observed.
//!
//! Guarantee: an expectation is counted only if a response proves it, and those never met are named.

use std::collections::BTreeMap;

use serde::Deserialize;

use ichido_core::text::table;
use ichido_server::serve::views::LastError;

use crate::api_client::format;

ichido_core::words! {
    /// An observable behaviour and its description, in the order of the scenario.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum Expectation {
        Sent = "sent on the first attempt",
        Replayed = "repeated by its caller: the first response was replayed",
        Refused = "refused: the key was used for a different request",
        Retried = "failed, retried after a backoff, and sent",
        LostAndDoneOnce = "response lost: retried with the same key, took effect once",
        Parked = "response lost, effect unknown: parked, not retried",
        Dead = "permanent error: dead letter without a retry",
        AlertOpened = "an alert opened",
        Requeued = "a dead letter was requeued and sent",
        Decided = "an operator decided a parked message",
        AskedAfter = "reconciled: its receiver reported the outcome",
        AlertResolved = "an alert was resolved",
    }
}

/// A message as the API returns it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ShownMessage {
    pub(super) status: String,
    pub(super) attempts: u32,
    pub(super) last_error: Option<LastError>,
    pub(super) result: Option<ShownResult>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ShownResult {
    pub(super) receipt: Option<String>,
}

impl ShownMessage {
    /// Returns whether nothing more happens to it automatically.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "sent" | "dead" | "parked" | "cancelled")
    }

    /// Returns the expectation that its final state meets.
    ///
    /// Only the receiver knows whether a lost response had one effect, so this does not distinguish it from other
    /// failures.
    pub(super) fn expectation(&self) -> Option<Expectation> {
        match self.status.as_str() {
            "sent" if 1 < self.attempts => Some(Expectation::Retried),
            "sent" => Some(Expectation::Sent),
            "dead" => Some(Expectation::Dead),
            "parked" => Some(Expectation::Parked),
            _ => None,
        }
    }

    /// Describes its state in a few words.
    pub(super) fn describe(&self) -> String {
        let error = self.last_error.as_ref().map(|error| format::code(&error.code)).unwrap_or_default();
        let receipt = self.result.as_ref().and_then(|result| result.receipt.as_deref());
        let receipt = receipt.map(|receipt| format!(", as {receipt}")).unwrap_or_default();
        match (self.status.as_str(), self.attempts) {
            ("sent", 1) => format!("sent on the first attempt{receipt}"),
            ("sent", attempts) => format!("sent on attempt {attempts}, after {error}{receipt}"),
            ("dead", 1) => format!("dead after the first attempt: {error}"),
            ("dead", attempts) => format!("dead after {attempts} attempts: {error}"),
            ("parked", _) => format!("parked: {error}, unknown whether it took effect"),
            ("failed", attempts) => format!("attempt {attempts} failed: {error}; retries after a backoff"),
            (status, _) => status.to_owned(),
        }
    }
}

/// How often each expectation was met.
#[derive(Debug, Default)]
pub(super) struct Observations(BTreeMap<Expectation, u64>);

impl Observations {
    pub(super) fn count(&mut self, expectation: Expectation) {
        *self.0.entry(expectation).or_default() += 1;
    }

    /// Lists the expectations that were never met.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let missing = Expectation::ALL.into_iter().filter(|expectation| !self.0.contains_key(expectation));
        missing.map(Expectation::as_str).collect()
    }

    /// Renders the counts as a table, for people.
    pub(super) fn table(&self) -> String {
        let rows = Expectation::ALL.into_iter().map(|expectation| {
            let count = self.0.get(&expectation).copied().unwrap_or(0);
            [count.to_string(), expectation.to_string()]
        });
        table(["SEEN", "WHAT"], rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(status: &str, attempts: u32) -> ShownMessage {
        let last_error = Some(LastError { code: "BROKER_5XX".to_owned(), text: None });
        ShownMessage { status: status.to_owned(), attempts, last_error, result: None }
    }

    #[test]
    fn every_expectation_has_unique_text_and_missing_ones_are_listed() {
        let mut observed = Observations::default();
        assert_eq!(observed.missing().len(), Expectation::ALL.len());
        for (index, expectation) in Expectation::ALL.into_iter().enumerate() {
            assert!(observed.missing().contains(&expectation.as_str()), "{expectation} describes two");
            observed.count(expectation);
            assert_eq!(observed.missing().len(), Expectation::ALL.len() - index - 1);
        }
        observed.count(Expectation::Sent);
        let table = observed.table();
        assert!(table.contains("2     sent on the first attempt\n") && !table.contains("\n0 "), "{table}");
    }

    #[test]
    fn only_final_states_meet_expectations() {
        for (status, attempts, expectation) in [
            ("queued", 0, None),
            ("sending", 1, None),
            ("failed", 1, None),
            ("sent", 1, Some(Expectation::Sent)),
            ("sent", 2, Some(Expectation::Retried)),
            ("dead", 1, Some(Expectation::Dead)),
            ("parked", 1, Some(Expectation::Parked)),
        ] {
            let message = message(status, attempts);
            assert_eq!(
                (message.expectation(), message.has_ended()),
                (expectation, expectation.is_some()),
                "{status}"
            );
        }
        let sent = "sent on attempt 2, after BROKER_5XX (the destination failed)";
        assert_eq!(message("sent", 2).describe(), sent);
    }
}
