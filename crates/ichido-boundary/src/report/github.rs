//! Formats findings as workflow commands of GitHub Actions, which become annotations on the lines of a change.

use ichido_core::text::visible;

use super::{Allowed, Findings};
use crate::Finding;

/// Writes one command per line: `::error file=…,line=…,col=…,title=…::…`. An allowed finding is a `notice`.
pub fn github(findings: &Findings<'_>) -> String {
    let open = findings.open.iter().map(|finding| {
        command(finding.rule.severity.as_str(), "", finding, &format!("Help: {}", finding.help))
    });
    let allowed = findings.allowed.iter().map(|Allowed { finding, reason }| {
        command("notice", "allowed ", finding, &format!("Allowed: {}", visible(reason)))
    });
    open.chain(allowed).collect()
}

fn command(kind: &str, before: &str, Finding { rule, place, what, .. }: &Finding, last: &str) -> String {
    let file = property(&place.file);
    let title = property(&format!("{before}{}: {}", rule.id, rule.title));
    // A finding about the whole file has no pointer.
    let pointer = match visible(&place.pointer) {
        pointer if pointer.is_empty() => pointer,
        pointer => format!(" ({pointer})"),
    };
    let message = data(&format!("{}{pointer}\n{last}", visible(what)));
    let (line, column) = (place.at.line, place.at.column);
    format!("::{kind} file={file},line={line},col={column},title={title}::{message}\n")
}

/// Escapes a message, so nothing in it can end it.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    // The log of a run is a terminal too.
    visible(&text)
}

/// Escapes a property, so nothing in it can end it.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
