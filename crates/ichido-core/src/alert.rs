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
//! use ichido_core::alert::{CLEAR_FOR, Reading, Rule, Standing, AlertStep, judge};
//! use ichido_core::time::Timestamp;
//!
//! let terms = Rule::DeadLetters.terms();
//! let now = Timestamp::from_secs(1_800_000_000);
//! assert_eq!(judge(terms, Standing::Quiet, Reading::of_count(10), now), AlertStep::Stay);
//! assert_eq!(judge(terms, Standing::Quiet, Reading::of_count(11), now), AlertStep::Open);
//!
//! let firing = Standing::Firing { clear_since: None };
//! assert_eq!(judge(terms, firing, Reading::of_count(12), now), AlertStep::Stay);
//! assert_eq!(judge(terms, firing, Reading::of_count(0), now), AlertStep::Clear);
//! let clear = Standing::Firing { clear_since: Some(now) };
//! assert_eq!(judge(terms, clear, Reading::of_count(0), now.plus(CLEAR_FOR)), AlertStep::Resolve);
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
