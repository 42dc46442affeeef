//! The page of a rule, and what it declares.

/// What the page of a rule declares.
///
/// Two pages are equal if they have the same id.
pub struct RulePage {
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

impl RulePage {
    /// Reads a page, at compile time: a page of another form panics there. Its sections are the title with the id, the severity, why, how to fix, and one that `next` names.
    #[expect(clippy::missing_panics_doc, reason = "it runs at compile time")]
    pub const fn new(page: &'static str, next: &str) -> Self {
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
        let (help, rest) = split(rest, "\n\n## ");
        assert!(begins(rest.as_bytes(), 0, next.as_bytes()), "the page's next section is another");
        Self { id, severity, title, why, help, page }
    }
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

impl PartialEq for RulePage {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for RulePage {}

impl std::fmt::Debug for RulePage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rule({})", self.id)
    }
}
