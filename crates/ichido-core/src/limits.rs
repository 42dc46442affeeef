//! The rate limits that model APIs report, and calling no faster than that.
//!
//! Guarantee: unreadable or invalid values are ignored. A [`Budget`] without information holds nothing back, and one
//! with information holds nothing back forever: at the time it names, the call is allowed. Nothing here reads a clock,
//! panics or overflows.
//!
//! Start at [`Limits::read`], which knows the headers of OpenAI, Anthropic and the IETF draft, and at [`Budget::take`],
//! which a caller asks before each call. The [pace](crate::pace) learns from refusals; this learns from responses,
//! before there is a refusal.
// SPEC B10.

mod budget;
mod fields;

pub use budget::Budget;

use std::time::Duration;

use crate::retry::MAX_WAIT;
use crate::time::Timestamp;

/// What a response says is left at its endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The limit on requests.
    pub requests: Option<LimitCounter>,
    /// The limit on tokens, prompts and responses together.
    pub tokens: Option<LimitCounter>,
    /// The limit on prompt tokens.
    pub input_tokens: Option<LimitCounter>,
    /// The limit on response tokens.
    pub output_tokens: Option<LimitCounter>,
}

/// What is left of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitCounter {
    /// The limit; at least 1.
    pub limit: u64,
    /// What is left; at most the limit.
    pub remaining: u64,
    /// When the whole limit is available again, if nothing more is taken.
    pub reset: Timestamp,
}

impl Limits {
    /// Reads a response's header fields.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ichido_core::limits::{LimitCounter, Limits};
    /// use ichido_core::time::Timestamp;
    ///
    /// let now = Timestamp::from_secs(1_800_000_000);
    /// let limits = Limits::read(
    ///     [
    ///         ("x-ratelimit-limit-requests", "60"),
    ///         ("x-ratelimit-remaining-requests", "59"),
    ///         ("x-ratelimit-reset-requests", "1s"),
    ///         ("x-ratelimit-limit-tokens", "-1"),
    ///     ],
    ///     now,
    /// );
    /// let reset = now.plus(Duration::from_secs(1));
    /// assert_eq!(limits.requests, Some(LimitCounter { limit: 60, remaining: 59, reset }));
    /// assert_eq!(limits.tokens, None, "-1 is no limit");
    /// ```
    pub fn read<N, V>(headers: impl IntoIterator<Item = (N, V)>, now: Timestamp) -> Self
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        fields::Fields::new(headers).limits(now)
    }

    /// Returns when something of every exhausted limit is left again; `None` if none is exhausted.
    ///
    /// A provider that refuses a call without a wait says it with this.
    pub fn spent_until(&self) -> Option<Timestamp> {
        let all = [self.requests, self.tokens, self.input_tokens, self.output_tokens];
        all.into_iter().flatten().filter(|counter| counter.remaining == 0).map(|counter| counter.reset).max()
    }

    /// Returns the limit on all tokens: if only its parts are given, their sum.
    fn tokens_in_all(&self) -> Option<LimitCounter> {
        let sum = |input: LimitCounter, output: LimitCounter| LimitCounter {
            limit: input.limit.saturating_add(output.limit),
            remaining: input.remaining.saturating_add(output.remaining),
            reset: input.reset.max(output.reset),
        };
        match (self.tokens, self.input_tokens, self.output_tokens) {
            (Some(tokens), _, _) => Some(tokens),
            (None, Some(input), Some(output)) => Some(sum(input, output)),
            (None, input, output) => input.or(output),
        }
    }
}

impl LimitCounter {
    /// Returns a counter if the values are valid.
    fn new(limit: u64, remaining: u64, reset: Timestamp, now: Timestamp) -> Option<Self> {
        let reset = reset.min(now.plus(MAX_WAIT));
        (0 < limit).then(|| Self { limit, remaining: remaining.min(limit), reset })
    }

    /// Returns the one with less left.
    fn tighter(self, other: Self) -> Self {
        if other.remaining < self.remaining { other } else { self }
    }

    fn resets_in(&self, now: Timestamp) -> Duration {
        self.reset.since(now)
    }
}

#[cfg(test)]
mod tests;
