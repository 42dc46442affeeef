//! Formats findings for a person at a terminal.

use std::fmt::Write as _;

use ichido_core::text::visible;

use super::{Allowed, Findings};
use crate::{Boundary, Finding, Name, Severity, hop_chains, rules};

/// Writes each finding with its location, its reason and how to fix it.
///
/// Errors come first, and allowed findings with their reasons last.
pub fn people(findings: &Findings<'_>) -> String {
    let mut text = String::new();
    for severity in [Severity::Error, Severity::Warning] {
        for finding in findings.open.iter().filter(|finding| finding.rule.severity == severity) {
            // A `String` takes whatever is written to it.
            _ = writeln!(text, "{} {}", severity.as_str(), head(finding));
            _ = writeln!(text, "  help:  {}\n", finding.help);
        }
    }
    for Allowed { finding, reason } in findings.allowed {
        _ = writeln!(text, "allowed {}\n  reason: {}\n", head(finding), visible(reason));
    }
    text
}

fn head(Finding { rule, place, what, .. }: &Finding) -> String {
    let (id, title, file, at) = (rule.id, rule.title, visible(&place.file), place.at);
    let pointer = match visible(&place.pointer) {
        pointer if pointer.is_empty() => "the file".to_owned(),
        pointer => pointer,
    };
    format!("{id}: {title}\n  where: {file}:{at} ({pointer})\n  what:  {}", visible(what))
}

/// Returns a one-line summary: what was checked, and how many findings there are.
pub fn summary(findings: &Findings<'_>, files: &[Boundary]) -> String {
    let judged = format!("{} ({})", number(files.len(), "file"), hops(files));
    let allowed = match findings.allowed.len() {
        0 => String::new(),
        count => format!(", {count} allowed"),
    };
    match findings.counts() {
        (0, 0) => format!("{judged}, {} rules: no findings{allowed}\n", rules().count()),
        (errors, warnings) => {
            format!("{judged}: {}, {}{allowed}\n", number(errors, "error"), number(warnings, "warning"))
        }
    }
}

/// Lists the checked boundaries, and those without a file.
fn hops(files: &[Boundary]) -> String {
    let is_judged = |name: &Name| files.iter().any(|file| file.name() == *name);
    let (judged, missing): (Vec<Name>, Vec<Name>) = Name::ALL.into_iter().partition(is_judged);
    let joined = |names: &[Name]| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    let mut words = joined(&judged);
    if !judged.is_empty() && !missing.is_empty() {
        _ = write!(words, "; no file for {}", joined(&missing));
    }
    match hop_chains(files).len() {
        0 | 1 => words,
        count => format!("{count} hop chains; {words}"),
    }
}

fn number(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
