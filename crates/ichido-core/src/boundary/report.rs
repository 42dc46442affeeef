//! Findings, for people and for machines.
//!
//! Guarantee: the same findings give the same text, in the order in which they come; nothing of a file's text is shown
//! but the words that a finding quotes.

mod drawing;
mod github;
mod machine;
mod people;
mod sarif;
mod writer;

pub use drawing::mermaid;
pub use github::github;
pub use machine::json;
pub use people::people;
pub use sarif::sarif;

use super::rules::{Finding, Severity};

/// How many errors and how many warnings there are.
fn counts(findings: &[Finding]) -> (usize, usize) {
    let errors = findings.iter().filter(|finding| finding.rule.severity == Severity::Error).count();
    (errors, findings.len() - errors)
}
