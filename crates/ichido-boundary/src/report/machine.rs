//! Findings as JSON.

use super::writer::Json;
use super::{Allowed, Findings};
use crate::Finding;

/// An object with `files`, `errors`, `warnings`, `findings` and `allowed`; `files` is how many were checked. What is
/// allowed has its `reason`, and does not count as an error or a warning.
pub fn json(findings: &Findings<'_>, files: usize) -> String {
    let (errors, warnings) = findings.counts();
    let open = findings.open.iter().map(|finding| Json::Object(members(finding)));
    let allowed = findings.allowed.iter().map(|Allowed { finding, reason }| {
        let mut members = members(finding);
        members.push(("reason", reason.as_str().into()));
        Json::Object(members)
    });
    Json::Object(vec![
        ("files", files.into()),
        ("errors", errors.into()),
        ("warnings", warnings.into()),
        ("findings", Json::List(open.collect())),
        ("allowed", Json::List(allowed.collect())),
    ])
    .text()
}

fn members(Finding { rule, place, what, mend }: &Finding) -> Vec<(&'static str, Json)> {
    vec![
        ("rule", rule.id.into()),
        ("severity", rule.severity.as_str().into()),
        ("file", place.file.as_str().into()),
        ("line", place.at.line.into()),
        ("column", place.at.column.into()),
        ("pointer", place.pointer.as_str().into()),
        ("what", what.as_str().into()),
        ("title", rule.title.into()),
        ("why", rule.why.into()),
        ("mend", mend.as_str().into()),
    ]
}
