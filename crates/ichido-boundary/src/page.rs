//! Rules and their pages: a rule is declared by its page in `docs/rules`.
//!
//! Only the page says what a rule requires and why; `ichido check --explain` prints it.

use std::ops::Deref;

use ichido_rules::RulePage;

use super::rules::RuleCheck;

/// One rule: its page, and a check.
pub struct BoundaryRule {
    pub(super) declared: RulePage,
    pub(super) check: RuleCheck,
}

/// A change to the starting set that breaks a rule, and one that satisfies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The file.
    pub file: &'static str,
    /// The JSON pointer to the value that is replaced; empty for the whole file.
    pub pointer: &'static str,
    /// A value that breaks the rule; `null` if the file is left out.
    pub failing: &'static str,
    /// A value that satisfies it.
    pub fixed: &'static str,
    /// A file of the starting set that is missing in both cases.
    pub without: Option<&'static str>,
}

impl BoundaryRule {
    /// Creates the rule that a page declares.
    pub(super) const fn new(page: &'static str, check: RuleCheck) -> Self {
        Self { declared: RulePage::new(page, "Example\n\n"), check }
    }

    /// Returns the example of its page; `None` if the page has a different format.
    pub fn example(&self) -> Option<Example> {
        let (location, values) = self.page.split_once("\nThis fails (")?.1.split_once("):\n\n")?;
        let (failing, fixed) = values.split_once("\nThis passes (")?;
        let mut names = location.split('`').skip(1).step_by(2).peekable();
        let pointer = names.next_if(|name| name.starts_with('/')).unwrap_or_default();
        let file = names.next()?;
        Some(Example { file, pointer, failing: value(failing), fixed: value(fixed), without: names.next() })
    }
}

/// Returns the JSON in a part of a page.
fn value(part: &'static str) -> &'static str {
    let json = part.split_once("```json\n").and_then(|(_, json)| json.split_once("\n```"));
    json.map_or("null", |(json, _)| json)
}

/// A rule has what its page declares.
impl Deref for BoundaryRule {
    type Target = RulePage;

    fn deref(&self) -> &RulePage {
        &self.declared
    }
}

/// Two rules are equal if they have the same id.
impl PartialEq for BoundaryRule {
    fn eq(&self, other: &Self) -> bool {
        self.declared == other.declared
    }
}

impl Eq for BoundaryRule {}

impl std::fmt::Debug for BoundaryRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.declared.fmt(f)
    }
}
