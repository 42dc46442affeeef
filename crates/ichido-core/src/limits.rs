//! What a model's API says is left of its limits, and calling no faster than that.
//!
//! Guarantee: what cannot be read, or makes no sense, is as if it were not said. A [`Budget`] that was told nothing holds nobody back,
//! and one that was told something holds nobody back for ever: at the moment it names, the call is let through. Nothing here reads a
//! clock, panics or overflows.
//!
//! Start at [`Limits::read`], which knows the fields of OpenAI, of Anthropic and of the IETF's draft, and at [`Budget::take`], which is
//! asked before each call. The [pace](crate::pace) is learned from refusals; this is learned from answers, before there is one.
// SPEC B10.

mod budget;
mod fields;

pub use budget::Budget;

use std::time::Duration;

use crate::retry::WAIT_MAX;
use crate::time::Timestamp;

/// What an answer says is left at its endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Of requests.
    pub requests: Option<Counter>,
    /// Of tokens, those of prompts and those of answers together.
    pub tokens: Option<Counter>,
    /// Of the tokens of prompts.
    pub input_tokens: Option<Counter>,
    /// Of the tokens of answers.
    pub output_tokens: Option<Counter>,
}

/// What is left of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// As much as there can be; at least 1.
    pub limit: u64,
    /// What is left of it; at most all of it.
    pub remaining: u64,
    /// When all of it is there again, if nothing more is taken.
    pub reset: Timestamp,
}

impl Limits {
    /// What an answer's header fields say.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ichido_core::limits::{Counter, Limits};
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
    /// assert_eq!(limits.requests, Some(Counter { limit: 60, remaining: 59, reset }));
    /// assert_eq!(limits.tokens, None, "-1 is no limit");
    /// ```
    pub fn read<N, V>(headers: impl IntoIterator<Item = (N, V)>, now: Timestamp) -> Self
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        fields::Fields::of(headers).limits(now)
    }

    /// When there is something left again of all that is spent; `None` where nothing is.
    ///
    /// A provider that refuses a call and does not say for how long says it with this.
    pub fn spent_until(&self) -> Option<Timestamp> {
        let all = [self.requests, self.tokens, self.input_tokens, self.output_tokens];
        all.into_iter().flatten().filter(|counter| counter.remaining == 0).map(|counter| counter.reset).max()
    }

    /// The limit of tokens as a whole: where only its parts are said, their sum.
    fn tokens_in_all(&self) -> Option<Counter> {
        let sum = |input: Counter, output: Counter| Counter {
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

impl Counter {
    /// A counter that makes sense, of what was read.
    fn new(limit: u64, remaining: u64, reset: Timestamp, now: Timestamp) -> Option<Self> {
        let reset = reset.min(now.plus(WAIT_MAX));
        (0 < limit).then(|| Self { limit, remaining: remaining.min(limit), reset })
    }

    /// Of two, the one of which less is left.
    fn tighter(self, other: Self) -> Self {
        if other.remaining < self.remaining { other } else { self }
    }

    fn resets_in(&self, now: Timestamp) -> Duration {
        self.reset.since(now)
    }
}

#[cfg(test)]
mod tests;
