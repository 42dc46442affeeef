//! Findings, for people and for machines.
//!
//! Guarantee: the same findings give the same text, in the order in which they come; nothing of a file's text is shown
//! but the words that a finding quotes, and those cannot end a line, an annotation or a colour. What is accepted is told
//! as well, with its reason.

mod drawing;
mod github;
mod machine;
mod people;
mod sarif;

pub use drawing::mermaid;
pub use github::github;
pub use machine::json;
pub use people::{people, summary};
pub use sarif::sarif;

use super::page::Severity;
use super::rules::Finding;

/// What a report tells of.
#[derive(Clone, Copy, Debug)]
pub struct Findings<'a> {
    /// What is to be mended.
    pub open: &'a [Finding],
    /// What is accepted although a rule finds it.
    pub allowed: &'a [Allowed],
}

/// A finding that is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The finding.
    pub finding: Finding,
    /// Why it is accepted.
    pub reason: String,
}

impl<'a> Findings<'a> {
    /// Findings of which none is accepted.
    pub const fn open(open: &'a [Finding]) -> Self {
        Self { open, allowed: &[] }
    }

    /// How many errors and how many warnings are to be mended.
    fn counts(&self) -> (usize, usize) {
        let errors = self.open.iter().filter(|finding| finding.rule.severity == Severity::Error).count();
        (errors, self.open.len() - errors)
    }
}

/// JSON for a file or a pipe: indented, with a line feed at its end.
fn pretty(report: &serde_json::Value) -> String {
    format!("{report:#}\n")
}
