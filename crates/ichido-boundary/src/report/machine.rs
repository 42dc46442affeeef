//! Formats findings as JSON.

use serde_json::{Value, json};

use super::{Allowed, Findings, pretty};
use crate::Finding;

/// Returns an object with `files`, `errors`, `warnings`, `findings` and `allowed`.
///
/// `files` is the number of checked files. An allowed finding has its `reason` and does not count as an error or a
/// warning.
pub fn json(findings: &Findings<'_>, files: usize) -> String {
    let (errors, warnings) = findings.counts();
    let allowed = findings.allowed.iter().map(|Allowed { finding, reason }| {
        let mut value = to_json(finding);
        value["reason"] = reason.as_str().into();
        value
    });
    pretty(&json!({
        "files": files,
        "errors": errors,
        "warnings": warnings,
        "findings": findings.open.iter().map(to_json).collect::<Vec<_>>(),
        "allowed": allowed.collect::<Vec<_>>(),
    }))
}

fn to_json(Finding { rule, place, what, help }: &Finding) -> Value {
    json!({
        "rule": rule.id,
        "severity": rule.severity.as_str(),
        "file": place.file,
        "line": place.at.line,
        "column": place.at.column,
        "pointer": place.pointer,
        "what": what,
        "title": rule.title,
        "why": rule.why,
        "help": help,
    })
}
