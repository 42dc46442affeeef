//! Findings as JSON.

use super::counts;
use super::writer::Json;
use crate::boundary::Finding;

/// An object with `files`, `errors`, `warnings` and `findings`; `files` is how many were checked.
pub fn json(findings: &[Finding], files: usize) -> String {
    let (errors, warnings) = counts(findings);
    let all = findings.iter().map(|Finding { rule, place, what, mend }| {
        Json::Object(vec![
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
        ])
    });
    Json::Object(vec![
        ("files", files.into()),
        ("errors", errors.into()),
        ("warnings", warnings.into()),
        ("findings", Json::List(all.collect())),
    ])
    .text()
}
