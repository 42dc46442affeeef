//! The script: how the server behaves.
//!
//! Guarantee: a script that was read can be played; an invalid one is refused when it is read, with the member that is
//! wrong. The empty script is a provider without faults and without limits.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Deserializer};

use crate::action::ScriptedAction;
use crate::api::Provider;
use crate::pace::{Latency, Limit, RetryAfter};

/// How the server behaves, for all calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The rules: the first one that matches a call and is not used up applies. Without one the call is answered.
    pub rules: Vec<ScriptRule>,
    /// The limits. They are checked before the rules, and a call must pass each that matches.
    pub limits: Vec<Limit>,
    /// The model's latency. A call that is not answered is refused at once, unless its rule says otherwise.
    pub latency: Option<Latency>,
    /// What the model says, instead of a judgement chosen by the item.
    pub answer: Option<String>,
    /// The tokens that the model spends on reasoning before each answer; a quarter of them at low effort. They count
    /// towards the maximum.
    pub reasoning_tokens: u32,
    /// The marker before an item's word in the user's text.
    pub marker: String,
}

/// What to do with some of the calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptRule {
    /// The action.
    #[serde(rename = "do")]
    pub action: ScriptedAction,
    /// Only for this item.
    #[serde(default)]
    pub item: Option<String>,
    /// Only at this endpoint: the path before the API's own, for example `/east`.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// Only for this API.
    #[serde(default)]
    pub api: Option<Provider>,
    /// Only for this many of the matching calls.
    #[serde(default)]
    pub first: Option<u32>,
    /// Only for this many calls of each item.
    #[serde(default)]
    pub first_per_item: Option<u32>,
    /// The latency, whatever the action.
    #[serde(default)]
    pub latency: Option<Latency>,
    /// The retry hint.
    #[serde(default)]
    pub retry_after: Option<RetryAfter>,
    /// Additional headers of the response. They override those of the server.
    #[serde(default, deserialize_with = "headers")]
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// Why a script was refused.
#[derive(Debug, thiserror::Error)]
#[error("invalid script: {0}")]
pub struct ScriptError(#[from] serde_json::Error);

impl Script {
    /// Parses a script from JSON.
    pub fn parse(json: &[u8]) -> Result<Self, ScriptError> {
        Ok(serde_json::from_slice(json)?)
    }
}

impl Default for Script {
    fn default() -> Self {
        Self {
            rules: vec![],
            limits: vec![],
            latency: None,
            answer: None,
            reasoning_tokens: 0,
            marker: "item-".to_owned(),
        }
    }
}

impl ScriptRule {
    /// Creates a rule for all calls.
    pub fn new(action: ScriptedAction) -> Self {
        Self {
            action,
            item: None,
            endpoint: None,
            api: None,
            first: None,
            first_per_item: None,
            latency: None,
            retry_after: None,
            headers: vec![],
        }
    }
}

fn headers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(HeaderName, HeaderValue)>, D::Error> {
    let named = BTreeMap::<String, String>::deserialize(from)?;
    let read = |(name, value): (String, String)| {
        let wrong = |error: &dyn std::fmt::Display| {
            serde::de::Error::custom(format_args!("invalid header `{name}`: {error}"))
        };
        let header = HeaderName::try_from(&name).map_err(|error| wrong(&error))?;
        Ok((header, HeaderValue::try_from(value).map_err(|error| wrong(&error))?))
    };
    named.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_script_members_are_rejected_with_their_line() {
        for (wrong, expected) in [
            (r#"{"rule": []}"#, "unknown field `rule`"),
            (r#"{"rules": [{"do": {"fail": "explode"}}]}"#, "unknown variant `explode`"),
            (r#"{"rules": [{"do": "drop", "time": 3}]}"#, "unknown field `time`"),
            (r#"{"limits": [{"rate": {"window": {"calls": 0, "per_ms": 1}}}]}"#, "nonzero"),
            (r#"{"rules": [{"do": "drop", "headers": {"a b": "c"}}]}"#, "invalid header `a b`"),
        ] {
            let error = Script::parse(wrong.as_bytes()).expect_err(wrong).to_string();
            assert!(error.contains(expected) && error.contains("line 1"), "{error}");
        }
    }
}
