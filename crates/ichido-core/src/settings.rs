//! Settings as people write them, and all their errors together.
//!
//! Guarantee: a text has one meaning or none. Ambiguous text is refused, and so are values that nobody can have meant.
//!
//! ```
//! use ichido_core::settings::{ConfigErrors, duration, size};
//!
//! let mut faults = ConfigErrors::default();
//! let timeout = faults.check("timeout", duration::parse("3s"));
//! let limit = faults.check("limit", size::parse("64 KB"));
//! assert!(timeout.is_some() && limit.is_none());
//! assert!(faults.to_string().starts_with("1 problem\n  limit: \"64 KB\" is ambiguous: 64000"));
//! ```

pub mod duration;
pub mod size;

use std::fmt;
use std::ops::RangeInclusive;

use crate::text::visible;

/// All configuration errors, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

/// One configuration error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The setting, by the name it was given under.
    pub place: String,
    /// What is wrong, and how to fix it.
    pub what: String,
}

impl ConfigErrors {
    /// Creates a single error: the setting, and what is wrong and how to fix it.
    pub fn one(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self(vec![ConfigError { place: place.into(), what: what.into() }])
    }

    /// Adds an error: the setting, and what is wrong and how to fix it.
    ///
    /// Duplicates are ignored.
    pub fn add(&mut self, place: impl Into<String>, what: impl Into<String>) {
        let fault = ConfigError { place: place.into(), what: what.into() };
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// Returns the value, or adds an error and returns `None`.
    pub fn check<T, E: fmt::Display>(&mut self, place: &str, checked: Result<T, E>) -> Option<T> {
        checked.map_err(|error| self.add(place, error.to_string())).ok()
    }

    /// Adds the errors of another part of the settings.
    pub fn join(&mut self, others: Self) {
        for ConfigError { place, what } in others.0 {
            self.add(place, what);
        }
    }

    /// Adds an error if a value is out of range.
    pub fn within<T: PartialOrd + Copy + fmt::Debug>(
        &mut self,
        place: &str,
        value: T,
        range: RangeInclusive<T>,
    ) {
        if !range.contains(&value) {
            let (first, last) = range.into_inner();
            self.add(place, format!("is {value:?}; it must be from {first:?} to {last:?}"));
        }
    }

    /// Returns the value if there are no errors.
    pub fn or<T>(self, built: Option<T>) -> Result<T, Self> {
        match built {
            Some(built) if self.0.is_empty() => Ok(built),
            _ => Err(self),
        }
    }
}

impl std::error::Error for ConfigErrors {}

/// Formats `2 problems` and a line for each.
impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "{count} {}", if count == 1 { "problem" } else { "problems" })?;
        for ConfigError { place, what } in &self.0 {
            // Multi-line text keeps its lines, indented. Both may quote files and paths, which must not control a
            // terminal.
            let lines: Vec<String> = what.split('\n').map(visible).collect();
            write!(f, "\n  {}: {}", visible(place), lines.join("\n    "))?;
        }
        Ok(())
    }
}
