//! The script: how the server is to behave.
//!
//! Guarantee: a script that was read can be played; what it cannot mean is refused when it is read, with the
//! member that is wrong. The empty script is a provider without faults and without limits.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Deserializer};

use crate::api::Api;

/// How the server is to behave, for all calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// What is done with a call: the first rule that matches it and is not used up. Without one it is answered.
    pub rules: Vec<Rule>,
    /// How many calls are let in. They are asked before the rules, and a call must pass each that matches.
    pub limits: Vec<Limit>,
    /// How long the model takes. A call that is not answered is refused at once, unless its rule says otherwise.
    pub latency: Option<Latency>,
    /// What the model says, instead of a judgement chosen by the item.
    pub answer: Option<String>,
    /// What stands before an item's word in the user's text.
    pub marker: String,
}

/// What is done with some of the calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What is done.
    #[serde(rename = "do")]
    pub action: Action,
    /// Only for this item.
    #[serde(default)]
    pub item: Option<String>,
    /// Only at this endpoint: the path before the API's own, for example `/east`.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// Only for this API.
    #[serde(default)]
    pub api: Option<Api>,
    /// Only for so many calls of those that match.
    #[serde(default)]
    pub first: Option<u32>,
    /// Only for so many calls of each item.
    #[serde(default)]
    pub first_per_item: Option<u32>,
    /// How long it takes, whatever is done.
    #[serde(default)]
    pub latency: Option<Latency>,
    /// When the client may come again.
    #[serde(default)]
    pub retry_after: Option<RetryAfter>,
    /// More headers of the response. They win over those that the server would send by itself.
    #[serde(default, deserialize_with = "headers")]
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// What is done with a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The model answers, well or badly.
    Answer(Shape),
    /// The model says just this.
    Say(String),
    /// The provider's own error. Nothing is billed.
    Fail(Fault),
    /// The connection ends after the whole request was read. Nothing is billed.
    Drop,
    /// The connection ends after the model has done its work, which is billed.
    DropCompleted,
}

/// How the model's text comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// As it should be.
    Whole,
    /// It ends in the middle, for the tokens were spent.
    CutOff,
    /// Words before and after it.
    Prose,
    /// Inside a code fence.
    Fence,
    /// JSON, but none that was asked for.
    SchemaMiss,
    /// Held back by the provider's filter.
    Filtered,
}

/// An error of the provider, in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Too many calls.
    Throttle,
    /// 503.
    Unavailable,
    /// 500.
    Internal,
    /// 529, where the provider has it.
    Overloaded,
    /// The model took too long.
    TimedOut,
    /// The model is still being loaded.
    NotReady,
    /// The model failed with this status.
    ModelError(u16),
    /// The money or the quota is spent.
    SpendLimit,
    /// The caller may not.
    Denied,
    /// The request is refused for what it says.
    Invalid,
    /// There is no such model.
    NotFound,
    /// An error that nobody has heard of: 418.
    Unknown,
    /// 502 from something in between, in HTML.
    BadGateway,
}

/// How many calls, or tokens, are let in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// How it counts.
    pub rate: Rate,
    /// Only at this endpoint.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// Whether a refused call is told when to come again. Bedrock never tells.
    #[serde(default = "yes")]
    pub hint: bool,
}

/// How a limit counts.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rate {
    /// A bucket that holds `burst` calls, full at first, and is filled by `calls` in `per_ms`.
    Bucket {
        /// How many calls it gains.
        calls: NonZeroU32,
        /// In which time.
        per_ms: NonZeroU32,
        /// How many it holds.
        burst: NonZeroU32,
    },
    /// At most `calls` in any `per_ms`.
    Window {
        /// How many calls.
        calls: NonZeroU32,
        /// In which time.
        per_ms: NonZeroU32,
    },
    /// A bucket of tokens, filled within `per_ms`. A call takes what it sends and the most it may receive.
    Tokens {
        /// How many tokens.
        tokens: NonZeroU32,
        /// In which time.
        per_ms: NonZeroU32,
    },
}

/// How long something takes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Latency {
    /// Always so long.
    FixedMs(u32),
    /// Something between, chosen by the seed and the number of the call.
    UniformMs {
        /// At least.
        least: u32,
        /// At most.
        most: u32,
        /// What the choice comes from.
        seed: u64,
    },
}

/// How a client is told when to come again.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// `retry-after: 2`
    Seconds(u32),
    /// `retry-after-ms: 250`
    Ms(u32),
    /// `retry-after: Sun, 06 Nov 1994 08:49:37 GMT`, so many seconds from now.
    DateInSeconds(u32),
}

/// Why a script was refused.
#[derive(Debug, thiserror::Error)]
#[error("the script cannot be played: {0}")]
pub struct ScriptError(#[from] serde_json::Error);

impl Script {
    /// Reads a script from JSON.
    pub fn parse(json: &[u8]) -> Result<Self, ScriptError> {
        Ok(serde_json::from_slice(json)?)
    }
}

impl Default for Script {
    fn default() -> Self {
        Self { rules: vec![], limits: vec![], latency: None, answer: None, marker: "item-".to_owned() }
    }
}

impl Rule {
    /// A rule for all calls.
    pub fn of(action: Action) -> Self {
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

impl Latency {
    /// How long the call of this number takes.
    pub(crate) fn of_call(self, number: u64) -> Duration {
        let ms = match self {
            Self::FixedMs(ms) => ms,
            Self::UniformMs { least, most, seed } => {
                let mut dice = fastrand::Rng::with_seed(seed.wrapping_add(number));
                least.saturating_add(dice.u32(0..=most.saturating_sub(least)))
            }
        };
        Duration::from_millis(ms.into())
    }
}

fn yes() -> bool {
    true
}

fn headers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(HeaderName, HeaderValue)>, D::Error> {
    let named = BTreeMap::<String, String>::deserialize(from)?;
    let read = |(name, value): (String, String)| {
        let wrong = |error: &dyn std::fmt::Display| {
            serde::de::Error::custom(format_args!("the header `{name}` cannot be sent: {error}"))
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
    fn a_script_that_says_what_is_not_known_is_refused_with_the_place() {
        for (wrong, expected) in [
            (r#"{"rule": []}"#, "unknown field `rule`"),
            (r#"{"rules": [{"do": {"fail": "explode"}}]}"#, "unknown variant `explode`"),
            (r#"{"rules": [{"do": "drop", "time": 3}]}"#, "unknown field `time`"),
            (r#"{"limits": [{"rate": {"window": {"calls": 0, "per_ms": 1}}}]}"#, "nonzero"),
            (r#"{"rules": [{"do": "drop", "headers": {"a b": "c"}}]}"#, "the header `a b` cannot be sent"),
        ] {
            let error = Script::parse(wrong.as_bytes()).expect_err(wrong).to_string();
            assert!(error.contains(expected) && error.contains("line 1"), "{error}");
        }
    }

    #[test]
    fn a_latency_between_two_bounds_comes_from_its_seed_and_stays_between_them() {
        let latency = |seed| Latency::UniformMs { least: 5, most: 9, seed };
        let drawn = |seed| (0..200).map(|call| latency(seed).of_call(call)).collect::<Vec<_>>();
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        for ms in 5..=9 {
            assert!(drawn(1).contains(&Duration::from_millis(ms)), "{ms} ms");
        }
        let bounds = Duration::from_millis(5)..=Duration::from_millis(9);
        assert!(drawn(1).iter().all(|latency| bounds.contains(latency)));
    }
}
