//! Rules and their pages: a rule is declared by its page in `docs/rules`.
//!
//! Only the page says what a rule requires and why; `ichido check --explain` prints it. A page that lacks a part does
//! not compile.

use super::rules::RuleCheck;

/// One rule.
pub struct BoundaryRule {
    /// Its id, such as `ICH-B020`. The meaning of an id never changes.
    pub id: &'static str,
    /// How severe a violation is.
    pub severity: Severity,
    /// What must hold, in one sentence.
    pub title: &'static str,
    /// What goes wrong otherwise.
    pub why: &'static str,
    /// How to fix it.
    pub help: &'static str,
    /// The whole page, in Markdown.
    pub page: &'static str,
    pub(super) check: RuleCheck,
}

ichido_core::words! {
    /// How severe a violation of a rule is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Severity {
        /// The work could be done twice, or the key could get lost.
        ///
        /// A proxy does not start.
        Error = "error",
        /// Something is harder to see or to use than it should be.
        Warning = "warning",
    }
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
        let (_, rest) = split(page, "# ");
        let (id, rest) = split(rest, ": ");
        let (title, rest) = split(rest, "\n\nSeverity: ");
        let (severity, rest) = split(rest, "\n\n## Why\n\n");
        let severity = match severity.as_bytes() {
            b"error" => Severity::Error,
            b"warning" => Severity::Warning,
            _ => panic!("the severity of a rule is `error` or `warning`"),
        };
        let (why, rest) = split(rest, "\n\n## How to fix\n\n");
        let (help, _) = split(rest, "\n\n## Example\n\n");
        Self { id, severity, title, why, help, page, check }
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

/// Splits a text at the first `mark`, which must exist.
const fn split(text: &'static str, mark: &str) -> (&'static str, &'static str) {
    let mut at = 0;
    while !begins(text.as_bytes(), at, mark.as_bytes()) {
        at += 1;
    }
    let (before, rest) = text.split_at(at);
    (before, rest.split_at(mark.len()).1)
}

/// Returns whether `mark` is at this position of the text, which must not end before it.
const fn begins(text: &[u8], at: usize, mark: &[u8]) -> bool {
    assert!(at + mark.len() <= text.len(), "a part of a rule page is missing or out of order");
    let mut index = 0;
    while index < mark.len() && text[at + index] == mark[index] {
        index += 1;
    }
    index == mark.len()
}

/// Two rules are equal if they have the same id.
impl PartialEq for BoundaryRule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for BoundaryRule {}

impl std::fmt::Debug for BoundaryRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rule({})", self.id)
    }
}
