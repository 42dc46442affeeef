//! Findings for a person at a terminal.

use std::fmt::Write as _;

use super::counts;
use crate::boundary::{Finding, rules};

/// Each finding with its place, its reason and its mend, and a line that sums up; `files` is how many were checked.
pub fn people(findings: &[Finding], files: usize) -> String {
    let mut text = String::new();
    for Finding { rule, place, what, mend } in findings {
        let (severity, id, title) = (rule.severity.as_str(), rule.id, rule.title);
        // Names in a pointer are the file's own; a terminal must not obey them.
        let pointer = match place.pointer.escape_debug().to_string() {
            pointer if pointer.is_empty() => "the file".to_owned(),
            pointer => pointer,
        };
        // A `String` takes whatever is written to it.
        _ = writeln!(text, "{severity} {id}: {title}");
        _ = writeln!(text, "  where: {}:{} ({pointer})", place.file, place.at);
        _ = writeln!(text, "  what:  {what}");
        _ = writeln!(text, "  mend:  {mend}\n");
    }
    let files = number(files, "file");
    match counts(findings) {
        (0, 0) => _ = writeln!(text, "{files}, {} rules, nothing to mend", rules().count()),
        (errors, warnings) => {
            _ = writeln!(text, "{files}: {}, {}", number(errors, "error"), number(warnings, "warning"));
        }
    }
    text
}

fn number(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
