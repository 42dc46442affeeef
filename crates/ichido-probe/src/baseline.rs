//! Accepted deviations: a JSON file that maps the id of a rule to the reason.

use serde_json::Value;

use crate::report::Report;
use crate::rules::rules;
use crate::seen::Verdict;

/// The largest baseline that is read.
pub const MAX_BYTES: usize = 64 * 1024;

/// The deviations that somebody accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline(Vec<(String, String)>);

/// Why a text is not a baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineError(pub String);

impl std::fmt::Display for BaselineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BaselineError {}

impl Baseline {
    /// Parses a file such as `{"ICH-P13": "old clients compare bytes"}`.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let form = "write {\"ICH-P13\": \"the reason\"}";
        let value: Value = serde_json::from_str(text)
            .map_err(|error| BaselineError(format!("is not JSON: {error}; {form}")))?;
        let Value::Object(members) = value else {
            return Err(BaselineError(format!("is not an object; {form}")));
        };
        let entry = |(id, reason): (String, Value)| {
            if !rules().any(|rule| rule.id == id) {
                return Err(BaselineError(format!("names \"{id}\", which is not a rule; see docs/probe")));
            }
            match reason {
                Value::String(reason) if reason.contains(char::is_alphanumeric) => Ok((id, reason)),
                _ => Err(BaselineError(format!("has no reason for {id}; {form}"))),
            }
        };
        members.into_iter().map(entry).collect::<Result<_, _>>().map(Self)
    }

    /// Accepts the broken rules that it lists; returns the ids of those that are not broken.
    pub fn accept(&self, reports: &mut [Report]) -> Vec<&str> {
        let mut unused = Vec::new();
        for (id, reason) in &self.0 {
            let broken = reports.iter_mut().flat_map(|report| &mut report.findings);
            let mut broken: Vec<_> = broken
                .filter(|finding| finding.rule.id == *id && matches!(finding.verdict, Verdict::Fail(_)))
                .collect();
            if broken.is_empty() {
                unused.push(&**id);
            }
            for finding in &mut broken {
                finding.accepted = Some(reason.clone());
            }
        }
        unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_names_rules_with_reasons() {
        assert!(Baseline::parse(r#"{"ICH-P13": "old clients"}"#).is_ok());
        for (text, part) in [
            ("x", "is not JSON"),
            ("[]", "is not an object"),
            (r#"{"ICH-P99": "why"}"#, "not a rule"),
            (r#"{"ICH-P13": " "}"#, "no reason"),
        ] {
            let error = Baseline::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
