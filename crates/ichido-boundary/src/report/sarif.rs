//! Formats findings as SARIF 2.1.0, which code scanning reads.

use ichido_core::text::{percent_encoded, visible};
use serde_json::{Value, json};

use super::{Allowed, Findings, pretty};
use crate::{BoundaryRule, Finding, rules};

/// Returns one run with all rules and these findings; `version` is the program's.
///
/// An allowed finding is a result with a suppression.
pub fn sarif(findings: &Findings<'_>, version: &str) -> String {
    let open = findings.open.iter().map(|finding| result(finding, &json!([])));
    let allowed = findings.allowed.iter().map(|Allowed { finding, reason }| {
        result(finding, &json!([{ "kind": "external", "justification": visible(reason) }]))
    });
    let rules: Vec<Value> = rules().map(descriptor).collect();
    let run = json!({
        "tool": { "driver": { "name": "ichido check", "version": version, "rules": rules } },
        // Columns count characters, not UTF-16 code units.
        "columnKind": "unicodeCodePoints",
        "results": open.chain(allowed).collect::<Vec<_>>(),
    });
    pretty(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }))
}

fn descriptor(rule: &BoundaryRule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.title },
        "fullDescription": { "text": rule.why },
        "help": { "text": rule.help, "markdown": rule.page },
        "defaultConfiguration": { "level": rule.severity.as_str() },
    })
}

/// Suppressions are written even if there are none.
///
/// The standard requires them for all results of a run or for none.
fn result(Finding { rule, place, what, help }: &Finding, suppressions: &Value) -> Value {
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&place.file) },
            "region": { "startLine": place.at.line, "startColumn": place.at.column },
        },
    });
    if !place.pointer.is_empty() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": place.pointer }]);
    }
    json!({
        "ruleId": rule.id,
        "ruleIndex": rules().position(|one| one == *rule).unwrap_or_default(),
        "level": rule.severity.as_str(),
        "message": { "text": format!("{}. {help}", visible(what)) },
        "locations": [location],
        "suppressions": suppressions,
    })
}

/// Returns a file's name as a relative URI, percent-encoded byte by byte.
fn uri(file: &str) -> String {
    percent_encoded(file, b"/-._~")
}
