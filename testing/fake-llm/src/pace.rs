//! Rate limits, latencies and retry hints.
//!
//! Guarantee: every limit accepts something, because none of its numbers can be zero; a random latency is determined by
//! its seed.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;

/// A limit on calls or tokens.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// How it counts.
    pub rate: Rate,
    /// Only at this endpoint.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// Whether a refused call gets a retry hint. Bedrock never sends one.
    #[serde(default = "yes")]
    pub hint: bool,
}

/// How a limit counts.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rate {
    /// A bucket of `burst` calls, full at first, that gains `calls` per `per_ms`.
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
    /// A bucket of tokens, filled within `per_ms`. A call takes what it sends and the maximum it may receive.
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
    /// Always this long.
    FixedMs(u32),
    /// A value in between, chosen by the seed and the number of the call.
    UniformMs {
        /// The minimum.
        least: u32,
        /// The maximum.
        most: u32,
        /// The seed.
        seed: u64,
    },
}

/// How a retry hint is sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// `retry-after: 2`
    Seconds(u32),
    /// `retry-after-ms: 250`
    Ms(u32),
    /// `retry-after: Sun, 06 Nov 1994 08:49:37 GMT`, this many seconds from now.
    DateInSeconds(u32),
}

impl Latency {
    /// Returns how long the call of this number takes.
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

#[cfg(test)]
mod tests {
    use super::*;

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
