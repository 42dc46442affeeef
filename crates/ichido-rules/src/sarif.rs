//! Reports in SARIF 2.1.0, which code scanning reads.
//!
//! Guarantee: a report has one run, lists every given rule, and a result names its rule by id and index.

use serde_json::{Value, json};

use crate::RulePage;

/// A result of a run.
#[derive(Clone, Debug)]
pub struct SarifResult {
    /// The rule that is broken.
    pub rule: &'static RulePage,
    /// What is wrong, in plain text.
    pub message: String,
    /// Where it is wrong: one SARIF location.
    pub location: Value,
    /// Why it is accepted, if it is.
    pub justification: Option<String>,
}

/// Returns one run of a tool with all its rules and these results, as indented JSON.
///
/// `version` is the program's. An accepted result has a suppression.
pub fn log<'a>(
    tool: &str,
    version: &str,
    rules: impl Iterator<Item = &'a RulePage>,
    results: impl Iterator<Item = SarifResult>,
) -> String {
    let rules: Vec<&RulePage> = rules.collect();
    let results: Vec<Value> = results.map(|found| result(&found, &rules)).collect();
    let run = json!({
        "tool": { "driver": {
            "name": tool,
            "version": version,
            "rules": rules.iter().map(|rule| descriptor(rule)).collect::<Vec<_>>(),
        } },
        // Columns count characters, not UTF-16 code units.
        "columnKind": "unicodeCodePoints",
        "results": results,
    });
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    });
    format!("{log:#}\n")
}

fn descriptor(rule: &RulePage) -> Value {
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
fn result(found: &SarifResult, rules: &[&RulePage]) -> Value {
    let suppressions: Vec<Value> = found
        .justification
        .iter()
        .map(|reason| json!({ "kind": "external", "justification": reason }))
        .collect();
    json!({
        "ruleId": found.rule.id,
        "ruleIndex": rules.iter().position(|rule| **rule == *found.rule).unwrap_or_default(),
        "level": found.rule.severity.as_str(),
        "message": { "text": found.message },
        "locations": [found.location],
        "suppressions": suppressions,
    })
}
