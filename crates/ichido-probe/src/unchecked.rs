//! What a run did not check, and why.

use std::fmt;

/// The rules that an incomplete run did not check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unchecked {
    /// Their ids.
    pub rules: Vec<&'static str>,
    /// Why, the first time.
    pub why: String,
    /// Whether somebody stopped the run.
    pub is_stopped: bool,
    /// Why the target cannot be reached any more.
    pub target_is_away: Option<String>,
}

impl Unchecked {
    pub(crate) fn add(&mut self, rule: &'static str, why: &str) {
        if self.rules.is_empty() {
            why.clone_into(&mut self.why);
        }
        self.rules.push(rule);
    }

    /// Returns why no other rule is checked.
    pub(crate) fn ends_run(&self) -> Option<String> {
        let away = self.target_is_away.as_ref().map(|why| format!("the API is away: {why}"));
        away.or_else(|| self.is_stopped.then(|| "the run was stopped".to_owned()))
    }
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.ends_run().unwrap_or_else(|| self.why.clone());
        write!(f, "the run is incomplete: {why}; not checked: ")?;
        match &self.rules[..] {
            [] => f.write_str("whether the API runs again"),
            rules => f.write_str(&rules.join(", ")),
        }
    }
}
