//! Findings as workflow commands of GitHub Actions, which become annotations on the lines of a change.

use std::fmt::Write as _;

use crate::boundary::Finding;

/// One command a line: `::error file=…,line=…,col=…,title=…::…`.
pub fn github(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { rule, place, what, mend } in findings {
        let (severity, file) = (rule.severity.as_str(), property(&place.file));
        let title = property(&format!("{}: {}", rule.id, rule.title));
        // What is about the whole file has no pointer.
        let pointer = if place.pointer.is_empty() { String::new() } else { format!(" ({})", place.pointer) };
        let message = data(&format!("{what}{pointer}\nMend: {mend}"));
        let (line, column) = (place.at.line, place.at.column);
        // A `String` takes whatever is written to it.
        _ = writeln!(text, "::{severity} file={file},line={line},col={column},title={title}::{message}");
    }
    text
}

/// A message: what would end it is escaped.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property: what would end it is escaped as well.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
