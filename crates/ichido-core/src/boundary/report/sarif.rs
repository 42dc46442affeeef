//! Findings as SARIF 2.1.0, which code scanning reads.

use std::fmt::Write as _;

use super::writer::Json;
use crate::boundary::{Finding, Rule, rules};

/// One run with all rules and these findings; `version` is the program's.
pub fn sarif(findings: &[Finding], version: &str) -> String {
    let driver = Json::Object(vec![
        ("name", "ichido check".into()),
        ("version", version.into()),
        ("rules", Json::List(rules().map(descriptor).collect())),
    ]);
    let run = Json::Object(vec![
        ("tool", Json::Object(vec![("driver", driver)])),
        // Columns count characters, not UTF-16 code units.
        ("columnKind", "unicodeCodePoints".into()),
        ("results", Json::List(findings.iter().map(result).collect())),
    ]);
    Json::Object(vec![
        ("$schema", "https://json.schemastore.org/sarif-2.1.0.json".into()),
        ("version", "2.1.0".into()),
        ("runs", Json::List(vec![run])),
    ])
    .text()
}

fn message(text: impl Into<Json>) -> Json {
    Json::Object(vec![("text", text.into())])
}

fn descriptor(rule: &Rule) -> Json {
    let level = Json::Object(vec![("level", rule.severity.as_str().into())]);
    let help = Json::Object(vec![("text", rule.mend.into()), ("markdown", rule.page().into())]);
    Json::Object(vec![
        ("id", rule.id.into()),
        ("shortDescription", message(rule.title)),
        ("fullDescription", message(rule.why)),
        ("help", help),
        ("defaultConfiguration", level),
    ])
}

fn result(finding: &Finding) -> Json {
    let Finding { rule, place, what, mend } = finding;
    let region =
        Json::Object(vec![("startLine", place.at.line.into()), ("startColumn", place.at.column.into())]);
    let artifact = Json::Object(vec![("uri", uri(&place.file).into())]);
    let physical = Json::Object(vec![("artifactLocation", artifact), ("region", region)]);
    let logical = Json::Object(vec![("fullyQualifiedName", place.pointer.as_str().into())]);
    let location =
        Json::Object(vec![("physicalLocation", physical), ("logicalLocations", Json::List(vec![logical]))]);
    let index = rules().position(|one| one == *rule).unwrap_or_default();
    Json::Object(vec![
        ("ruleId", rule.id.into()),
        ("ruleIndex", index.into()),
        ("level", rule.severity.as_str().into()),
        ("message", message(format!("{what}. {mend}"))),
        ("locations", Json::List(vec![location])),
    ])
}

/// A file's name as a relative URI.
fn uri(file: &str) -> String {
    let mut uri = String::new();
    for byte in file.replace('\\', "/").bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            // A `String` takes whatever is written to it.
            byte => _ = write!(uri, "%{byte:02X}"),
        }
    }
    uri
}
