//! Formats findings for people and for machines.
//!
//! Guarantee: the same findings give the same text, in their order. Of a file's text only the words that a finding
//! quotes are shown, and those cannot end a line, an annotation or a colour. Accepted findings are shown too, with
//! their reason.

mod drawing;
mod github;
mod machine;
mod paint;
mod people;
mod sarif;

pub use drawing::mermaid;
pub use github::github;
pub use machine::json;
pub use paint::colourized;
pub use people::{people, summary};
pub use sarif::sarif;

use ichido_rules::Severity;

use super::rules::Finding;

/// The contents of a report.
#[derive(Clone, Copy, Debug)]
pub struct Findings<'a> {
    /// The findings to fix.
    pub open: &'a [Finding],
    /// The findings that are accepted.
    pub allowed: &'a [Allowed],
}

/// An accepted finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The finding.
    pub finding: Finding,
    /// Why it is accepted.
    pub reason: String,
}

impl<'a> Findings<'a> {
    /// Creates findings of which none is accepted.
    pub const fn open(open: &'a [Finding]) -> Self {
        Self { open, allowed: &[] }
    }

    /// Returns how many errors and warnings are to be fixed.
    fn counts(&self) -> (usize, usize) {
        let errors = self.open.iter().filter(|finding| finding.rule.severity == Severity::Error).count();
        (errors, self.open.len() - errors)
    }
}

/// Formats JSON for a file or a pipe: indented, with a final line feed.
fn pretty(report: &serde_json::Value) -> String {
    format!("{report:#}\n")
}
