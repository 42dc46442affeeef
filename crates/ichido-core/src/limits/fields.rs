//! The header fields in which providers report what is left.

use std::time::Duration;

use super::{LimitCounter, Limits};
use crate::retry::MAX_WAIT;
use crate::time::Timestamp;

/// The longest value that is read.
const MAX_VALUE_BYTES: usize = 1024;
/// The maximum number of such lines that is read.
const MAX_LINES: usize = 64;

/// The fields that may report limits.
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(super) fn new<N, V>(headers: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        let ours = headers.into_iter().filter_map(|(name, value)| {
            let name = name.as_ref().to_ascii_lowercase();
            let value = std::str::from_utf8(value.as_ref()).ok()?.trim();
            (name.contains("ratelimit") && value.len() <= MAX_VALUE_BYTES).then(|| (name, value.to_owned()))
        });
        Self(ours.take(MAX_LINES).collect())
    }

    pub(super) fn limits(&self, now: Timestamp) -> Limits {
        let openai = |what: &str| self.counter(|part| format!("x-ratelimit-{part}-{what}"), now);
        let anthropic = |what: &str| self.counter(|part| format!("anthropic-ratelimit-{what}-{part}"), now);
        Limits {
            requests: tightest([openai("requests"), anthropic("requests"), self.ietf_draft("requests", now)]),
            tokens: tightest([openai("tokens"), anthropic("tokens"), self.ietf_draft("tokens", now)]),
            input_tokens: anthropic("input-tokens"),
            output_tokens: anthropic("output-tokens"),
        }
    }

    /// Reads a counter from three fields.
    ///
    /// Without one of them nothing is known: some providers send -1 or 0 for what they do not count.
    fn counter(&self, name: impl Fn(&str) -> String, now: Timestamp) -> Option<LimitCounter> {
        let value = |part: &str| self.value(&name(part));
        let reset = moment(value("reset")?, now)?;
        LimitCounter::new(value("limit")?.parse().ok()?, value("remaining")?.parse().ok()?, reset, now)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Reads a counter of the IETF draft: `RateLimit: "day";r=50;t=30` with `RateLimit-Policy:
    /// "day";q=100;w=60;qu="requests"`.
    fn ietf_draft(&self, unit: &str, now: Timestamp) -> Option<LimitCounter> {
        let policies = self.list("ratelimit-policy");
        let unit_of = |policy: &sfv::Item| {
            policy.params.get("qu").map_or("requests".to_owned(), |unit| {
                unit.as_string().map(|unit| unit.as_str().to_owned()).unwrap_or_default()
            })
        };
        let counters = self.list("ratelimit").into_iter().map(|state| {
            let policy = policies.iter().find(|policy| policy.bare_item == state.bare_item)?;
            if unit_of(policy) != unit {
                return None;
            }
            let reset = now.plus(Duration::from_secs(number(&state, "t")?).min(MAX_WAIT));
            LimitCounter::new(number(policy, "q")?, number(&state, "r")?, reset, now)
        });
        tightest(counters)
    }

    fn list(&self, name: &str) -> Vec<sfv::Item> {
        let lines: Vec<&str> =
            self.0.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str()).collect();
        let list: sfv::List = sfv::Parser::new(&lines.join(", ")).parse().unwrap_or_default();
        let item = |entry| match entry {
            sfv::ListEntry::Item(item) => Some(item),
            sfv::ListEntry::InnerList(_) => None,
        };
        list.into_iter().filter_map(item).collect()
    }
}

fn number(item: &sfv::Item, name: &str) -> Option<u64> {
    u64::try_from(i64::from(item.params.get(name)?.as_integer()?)).ok()
}

fn tightest(counters: impl IntoIterator<Item = Option<LimitCounter>>) -> Option<LimitCounter> {
    counters.into_iter().flatten().reduce(LimitCounter::tighter)
}

/// Parses when a counter resets: an RFC 3339 time, a duration such as `6m0s`, or seconds.
fn moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let utc = text.strip_suffix("+00:00").map(|moment| format!("{moment}Z"));
    Timestamp::parse(utc.as_deref().unwrap_or(text)).or_else(|| duration(text).map(|wait| now.plus(wait)))
}

/// Parses `12ms`, `1s`, `6m0s`, `1h30m2.5s`, or seconds without a unit; values too large are [`MAX_WAIT`].
fn duration(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let (mut rest, mut secs) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|character: char| character.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let is_alone = number.len() == text.len();
        secs += decimal(number)? * secs_of(unit, is_alone)?;
        rest = next;
    }
    Some(Duration::try_from_secs_f64(secs).unwrap_or(MAX_WAIT).min(MAX_WAIT))
}

fn decimal(text: &str) -> Option<f64> {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit()) && !text.ends_with('.');
    text.parse().ok().filter(|_| is_number)
}

/// Returns the seconds of a unit, as Go writes durations.
fn secs_of(unit: &str, is_alone: bool) -> Option<f64> {
    Some(match unit {
        "d" => 86_400.0,
        "h" => 3_600.0,
        "m" => 60.0,
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" | "μs" => 1e-6,
        "ns" => 1e-9,
        "" if is_alone => 1.0,
        _ => return None,
    })
}
