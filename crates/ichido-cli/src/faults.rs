//! Everything that is wrong with a configuration, said at once.

use std::fmt;

use ichido_core::text::visible;
use serde_json::{Value, json};

/// What is wrong, one finding after another.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

#[derive(Debug, PartialEq, Eq)]
struct Fault {
    place: String,
    what: String,
}

impl Faults {
    /// Adds one: where, and what is wrong and how to mend it. What was said already is not said again.
    pub(crate) fn add(&mut self, place: impl Into<String>, what: impl Into<String>) {
        let fault = Fault { place: place.into(), what: what.into() };
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// The value, or a finding and nothing.
    pub(crate) fn check<T, E: fmt::Display>(&mut self, place: &str, checked: Result<T, E>) -> Option<T> {
        checked.map_err(|error| self.add(place, error.to_string())).ok()
    }

    /// Adds what another part of the settings found.
    pub(crate) fn join(&mut self, others: Self) {
        for Fault { place, what } in others.0 {
            self.add(place, what);
        }
    }

    /// For programs: each with its place.
    pub(crate) fn for_programs(&self) -> Value {
        let problem = |Fault { place, what }: &Fault| json!({ "place": place, "what": what });
        json!({ "problems": self.0.iter().map(problem).collect::<Vec<_>>() })
    }

    /// What was built, if nothing is wrong with it.
    pub(crate) fn or<T>(self, built: Option<T>) -> Result<T, Self> {
        match built {
            Some(built) if self.0.is_empty() => Ok(built),
            _ => Err(self),
        }
    }
}

/// `2 problems`, and a line for each.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "{count} {}", if count == 1 { "problem" } else { "problems" })?;
        for Fault { place, what } in &self.0 {
            // What has lines of its own keeps them, further in. Both quote files and paths, which a terminal must not obey.
            let lines: Vec<String> = what.split('\n').map(visible).collect();
            write!(f, "\n  {}: {}", visible(place), lines.join("\n    "))?;
        }
        Ok(())
    }
}
