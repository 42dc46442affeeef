//! Failure modes and how often each occurs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Declares each failure mode once: its name, its description, and whether the order takes effect.
macro_rules! faults {
    ($($fault:ident: $name:literal, $meaning:literal, $has_effect:literal;)+) => {
        /// A way to fail. "Before" means that the order took no effect, "after" that it did.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FailureMode {
            $(#[doc = $meaning] $fault,)+
        }

        impl FailureMode {
            /// All failure modes with their names and descriptions.
            pub const ALL: [(Self, &'static str, &'static str); [$($name),+].len()] =
                [$((Self::$fault, $name, $meaning)),+];

            /// Whether the order takes effect anyway.
            pub(crate) const fn has_effect(self) -> bool {
                match self {
                    $(Self::$fault => $has_effect,)+
                }
            }
        }
    };
}

faults! {
    ServerErrorBefore: "server_error_before", "503, without the effect", false;
    ServerErrorAfter: "server_error_after", "500 after the effect", true;
    ResetBefore: "reset_before", "connection reset, without the effect", false;
    ResetAfter: "reset_after", "connection reset after the effect", true;
    SilenceBefore: "silence_before", "no response, without the effect", false;
    SilenceAfter: "silence_after", "no response after the effect", true;
    CutAfter: "cut_after", "half a response after the effect", true;
    RateLimited: "rate_limited", "429 with Retry-After, without the effect", false;
    Slow: "slow", "the correct response, late", true;
    ConflictProcessed: "conflict_processed", "409 `already_processed`, after the effect", true;
    ConflictInProgress: "conflict_in_progress", "409 `in_progress`, without the effect", false;
    ConflictOther: "conflict_other", "409 for another reason, without the effect", false;
    BadRequest: "bad_request", "400, without the effect", false;
    Unauthorized: "unauthorized", "401, without the effect", false;
    Malformed: "malformed", "200 with invalid JSON after the effect", true;
    WrongKey: "wrong_key", "200 with another key after the effect", true;
    NoKey: "no_key", "200 without a key after the effect", true;
}

impl FailureMode {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(fault, ..)| *fault)
    }
}

/// Returns the `--help` text about failure modes.
pub fn help() -> String {
    let mut text = "Failure mode and its share of the calls, from 0 to 1, such as reset_after=0.05; can be repeated. All shares together are at most 1. The modes:".to_owned();
    for (_, name, meaning) in FailureMode::ALL {
        // Writing to a string cannot fail.
        _ = write!(text, "\n  {name}: {meaning}");
    }
    text
}

/// The share of calls that fail in each mode.
///
/// The modes are ordered, so the same rates and dice produce the same failures, however they are given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates(BTreeMap<FailureMode, f64>); // Invariant: each rate above 0, their sum 1 at most.

/// Why rates are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RatesError {
    #[error("unknown failure mode {0:?}; `ichido mock-broker --help` lists all modes")]
    Unknown(String),
    #[error("{0} is repeated; set it once")]
    Twice(String),
    #[error("the rate of {0} must be a number from 0 to 1")]
    Rate(String),
    #[error("the sum of the rates is more than 1; lower them")]
    Sum,
}

impl Rates {
    /// No failures.
    pub const NONE: Self = Self(BTreeMap::new());

    /// Ten times 0.1 is slightly more than 1 in binary and must still count as 1.
    const MAX_SUM: f64 = 1.000_001;

    /// Builds rates from names and values, or returns every error.
    pub fn new<'a>(given: impl IntoIterator<Item = (&'a str, Option<f64>)>) -> Result<Self, Vec<RatesError>> {
        let mut rates = BTreeMap::new();
        let mut errors = Vec::new();
        for (name, rate) in given {
            let Some(fault) = FailureMode::parse(name) else {
                errors.push(RatesError::Unknown(name.to_owned()));
                continue;
            };
            match rate.filter(|rate| (0.0..=1.0).contains(rate)) {
                None => errors.push(RatesError::Rate(name.to_owned())),
                Some(rate) => {
                    if rates.insert(fault, rate).is_some() {
                        errors.push(RatesError::Twice(name.to_owned()));
                    }
                }
            }
        }
        if Self::MAX_SUM < rates.values().sum() {
            errors.push(RatesError::Sum);
        }
        rates.retain(|_, rate| 0.0 < *rate);
        if errors.is_empty() { Ok(Self(rates)) } else { Err(errors) }
    }

    /// Picks the failure of one call, if it fails. `dice` is uniform in [0, 1).
    pub fn draw(&self, dice: f64) -> Option<FailureMode> {
        let mut below = 0.0;
        self.0.iter().find_map(|(fault, rate)| {
            below += rate;
            (dice < below).then_some(*fault)
        })
    }

    /// Iterates over every failure mode's name and rate, including zero.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let rate = |fault| self.0.get(fault).copied().unwrap_or(0.0);
        FailureMode::ALL.iter().map(move |(fault, name, _)| (*name, rate(fault)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_drawn_as_often_as_its_rate_says() {
        let rates = Rates::new([("reset_after", Some(0.25)), ("slow", Some(0.5))]).expect("they fit");
        let count = |wanted| (0..1_000).filter(|n| rates.draw(f64::from(*n) / 1_000.0) == wanted).count();
        assert_eq!(count(Some(FailureMode::ResetAfter)), 250);
        assert_eq!(count(Some(FailureMode::Slow)), 500);
        assert_eq!(count(None), 250);
        assert_eq!(Rates::default().draw(0.0), None, "nobody asked for faults");
    }

    #[test]
    fn fault_names_are_unique_and_rates_may_sum_to_one() {
        for (fault, name, _) in FailureMode::ALL {
            assert_eq!(FailureMode::parse(name), Some(fault));
            let always = Rates::new([(name, Some(1.0))]).expect("it fits");
            assert_eq!(always.draw(0.999_999), Some(fault));
        }
        let share = 1.0 / 17.0;
        assert!(Rates::new(FailureMode::ALL.map(|(_, name, _)| (name, Some(share)))).is_ok());
    }

    #[test]
    fn invalid_rates_report_all_errors() {
        let wrong = [
            ("nonsense", Some(0.1)),
            ("slow", Some(0.1)),
            ("slow", Some(0.9)),
            ("no_key", None),
            ("wrong_key", Some(0.2)),
        ];
        let errors = Rates::new(wrong).expect_err("four things");
        assert_eq!(
            errors,
            [
                RatesError::Unknown("nonsense".to_owned()),
                RatesError::Twice("slow".to_owned()),
                RatesError::Rate("no_key".to_owned()),
                RatesError::Sum
            ]
        );
        assert!(Rates::new([("slow", Some(f64::NAN))]).is_err());
    }
}
