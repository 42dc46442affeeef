//! Everything that is wrong with a destination's settings, said at once.

use std::fmt;
use std::ops::RangeInclusive;

/// One thing that is wrong with settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The setting, as the destination's settings name it.
    pub place: String,
    /// What is wrong, and how to mend it.
    pub what: String,
}

/// Everything that is wrong with settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Problem { place, what }) in self.0.iter().enumerate() {
            write!(f, "{}{place}: {what}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl Problems {
    pub(crate) fn add(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.0.push(Problem { place: place.into(), what: what.into() });
    }

    pub(crate) fn check<T, E: fmt::Display>(&mut self, place: &str, checked: Result<T, E>) -> Option<T> {
        checked.map_err(|error| self.add(place, error.to_string())).ok()
    }

    pub(crate) fn within<T: PartialOrd + Copy + fmt::Debug>(
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
}
