//! Findings as SARIF 2.1.0, which code scanning reads.

use std::fmt::Write as _;

use ichido_core::text::visible;

use super::writer::Json;
use super::{Allowed, Findings};
use crate::{Finding, Rule, rules};

/// One run with all rules and these findings; `version` is the program's. What is allowed is a result with a suppression.
pub fn sarif(findings: &Findings<'_>, version: &str) -> String {
    let open = findings.open.iter().map(|finding| result(finding, Vec::new()));
    let allowed = findings.allowed.iter().map(|Allowed { finding, reason }| {
        let suppression = vec![("kind", "external".into()), ("justification", visible(reason).into())];
        result(finding, vec![Json::Object(suppression)])
    });
    let driver = Json::Object(vec![
        ("name", "ichido check".into()),
        ("version", version.into()),
        ("rules", Json::List(rules().map(descriptor).collect())),
    ]);
    let run = Json::Object(vec![
        ("tool", Json::Object(vec![("driver", driver)])),
        // Columns count characters, not UTF-16 code units.
        ("columnKind", "unicodeCodePoints".into()),
        ("results", Json::List(open.chain(allowed).collect())),
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
    let help = Json::Object(vec![("text", rule.mend.into()), ("markdown", rule.page.into())]);
    Json::Object(vec![
        ("id", rule.id.into()),
        ("shortDescription", message(rule.title)),
        ("fullDescription", message(rule.why)),
        ("help", help),
        ("defaultConfiguration", level),
    ])
}

/// The suppressions are there even if there are none: the standard wants them with all results of a run or with no one.
fn result(Finding { rule, place, what, mend }: &Finding, suppressions: Vec<Json>) -> Json {
    let region =
        Json::Object(vec![("startLine", place.at.line.into()), ("startColumn", place.at.column.into())]);
    let artifact = Json::Object(vec![("uri", uri(&place.file).into())]);
    let physical = Json::Object(vec![("artifactLocation", artifact), ("region", region)]);
    let mut location = vec![("physicalLocation", physical)];
    if !place.pointer.is_empty() {
        let logical = Json::Object(vec![("fullyQualifiedName", place.pointer.as_str().into())]);
        location.push(("logicalLocations", Json::List(vec![logical])));
    }
    let index = rules().position(|one| one == *rule).unwrap_or_default();
    Json::Object(vec![
        ("ruleId", rule.id.into()),
        ("ruleIndex", index.into()),
        ("level", rule.severity.as_str().into()),
        ("message", message(format!("{}. {mend}", visible(what)))),
        ("locations", Json::List(vec![Json::Object(location)])),
        ("suppressions", Json::List(suppressions)),
    ])
}

/// A file's name as a relative URI: whatever is not plain is percent-encoded, byte by byte.
fn uri(file: &str) -> String {
    let mut uri = String::new();
    for byte in file.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            // A `String` takes whatever is written to it.
            byte => _ = write!(uri, "%{byte:02X}"),
        }
    }
    uri
}
