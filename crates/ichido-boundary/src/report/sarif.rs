//! Formats findings as SARIF 2.1.0, which code scanning reads.

use ichido_core::text::{percent_encoded, visible};
use ichido_rules::sarif::{SarifResult, log};
use serde_json::{Value, json};

use super::{Allowed, Findings};
use crate::{Finding, rules};

/// Returns one run with all rules and these findings; `version` is the program's.
///
/// An allowed finding is a result with a suppression.
pub fn sarif(findings: &Findings<'_>, version: &str) -> String {
    let open = findings.open.iter().map(|finding| result(finding, None));
    let allowed = findings.allowed.iter().map(|Allowed { finding, reason }| result(finding, Some(reason)));
    log("ichido check", version, rules().map(|rule| &rule.declared), open.chain(allowed))
}

fn result(finding: &Finding, reason: Option<&String>) -> SarifResult {
    SarifResult {
        rule: &finding.rule.declared,
        message: format!("{}. {}", visible(&finding.what), finding.help),
        location: location(finding),
        justification: reason.map(|reason| visible(reason)),
    }
}

fn location(Finding { place, .. }: &Finding) -> Value {
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&place.file) },
            "region": { "startLine": place.at.line, "startColumn": place.at.column },
        },
    });
    if !place.pointer.is_empty() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": place.pointer }]);
    }
    location
}

/// Returns a file's name as a relative URI, percent-encoded byte by byte.
fn uri(file: &str) -> String {
    percent_encoded(file, b"/-._~")
}
