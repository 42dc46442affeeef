//! Alerts: what is measured, when an incident opens and when it resolves.
//!
//! Guarantee: [`judge`] opens an incident only for a measure with at least as many samples as its terms require, and
//! only once while the incident is open. It resolves the incident only after the measure stayed below its threshold, by
//! a margin, for [`CLEAR_FOR`]. Nothing here reads a clock or a store: readings are passed in with their time.
//!
//! Start at [`AlertRule`], the built-in alerts; [`AlertRules`] holds their terms, [`measure`] turns counts into readings,
//! [`words`] formats them for people.
//!
//! ```
//! use ichido_core::alert::{CLEAR_FOR, Measurement, AlertRule, AlertStatus, AlertStep, judge};
//! use ichido_core::time::Timestamp;
//!
//! let terms = AlertRule::DeadLetters.terms();
//! let now = Timestamp::from_secs(1_800_000_000);
//! assert_eq!(judge(terms, AlertStatus::Quiet, Measurement::of_count(10), now), AlertStep::Stay);
//! assert_eq!(judge(terms, AlertStatus::Quiet, Measurement::of_count(11), now), AlertStep::Open);
//!
//! let firing = AlertStatus::Firing { clear_since: None };
//! assert_eq!(judge(terms, firing, Measurement::of_count(12), now), AlertStep::Stay);
//! assert_eq!(judge(terms, firing, Measurement::of_count(0), now), AlertStep::Clear);
//! let clear = AlertStatus::Firing { clear_since: Some(now) };
//! assert_eq!(judge(terms, clear, Measurement::of_count(0), now.plus(CLEAR_FOR)), AlertStep::Resolve);
//! ```
// SPEC A15, D8, D19, E5.

mod about;
mod incident;
pub mod measure;
mod rule;
mod rules;
#[cfg(test)]
mod tests;
pub mod words;

pub use about::AlertSubject;
pub use incident::{AlertStatus, AlertStep, CLEAR_FOR, CLEAR_SHARE, Measurement, judge};
pub use rule::{AlertRule, AlertTerms, MAX_WINDOW, MIN_WINDOW, MeasureUnit};
pub use rules::{AlertRules, RuleChange, TermsChange};
