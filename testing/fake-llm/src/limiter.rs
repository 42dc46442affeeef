//! Counts one limit.
//!
//! Guarantee: times are passed in, so the same calls at the same times get the same result. A refused call takes
//! nothing.

use std::collections::VecDeque;
use std::time::Duration;

use crate::pace::Rate;

/// The state of one limit.
#[derive(Debug)]
pub(crate) enum Limiter {
    Bucket(Bucket),
    Window { calls: usize, span: Duration, admitted: VecDeque<Duration> },
}

/// A bucket of calls or of tokens.
#[derive(Debug)]
pub(crate) struct Bucket {
    of: LimitUnit,
    per_second: f64,
    size: f64,
    level: f64,
    /// When the level was last updated.
    at: Duration,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitUnit {
    Requests,
    Tokens,
}

impl LimitUnit {
    /// Returns the word used in headers.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
        }
    }
}

/// What is left of a limit, as providers report it in headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitCounter {
    pub(crate) of: LimitUnit,
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// How long until the limit is completely unused.
    pub(crate) reset: Duration,
}

impl Limiter {
    pub(crate) fn new(rate: Rate) -> Self {
        let bucket = |of, calls: f64, per_ms: u32, size: f64| {
            let per_second = calls * 1000.0 / f64::from(per_ms);
            Self::Bucket(Bucket { of, per_second, size, level: size, at: Duration::ZERO })
        };
        match rate {
            Rate::Bucket { calls, per_ms, burst } => {
                bucket(LimitUnit::Requests, calls.get().into(), per_ms.get(), burst.get().into())
            }
            Rate::Tokens { tokens, per_ms } => {
                bucket(LimitUnit::Tokens, tokens.get().into(), per_ms.get(), tokens.get().into())
            }
            Rate::Window { calls, per_ms } => Self::Window {
                calls: calls.get() as usize,
                span: Duration::from_millis(per_ms.get().into()),
                admitted: VecDeque::new(),
            },
        }
    }

    /// Returns how long a call of this many tokens must wait: zero if it is accepted now.
    pub(crate) fn wait(&mut self, tokens: u32, now: Duration) -> Duration {
        match self {
            Self::Bucket(bucket) => {
                bucket.fill(now);
                // A call larger than the bucket would never be accepted; it waits for a full one.
                let lacks = bucket.cost(tokens).min(bucket.size) - bucket.level;
                if lacks <= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(lacks / bucket.per_second) }
            }
            Self::Window { calls, span, admitted } => {
                forget(admitted, *span, now);
                let oldest = admitted.front().filter(|_| *calls <= admitted.len());
                oldest.map_or(Duration::ZERO, |oldest| (*oldest + *span).saturating_sub(now))
            }
        }
    }

    /// Takes a call of this many tokens.
    pub(crate) fn take(&mut self, tokens: u32, now: Duration) {
        match self {
            Self::Bucket(bucket) => {
                bucket.fill(now);
                bucket.level = (bucket.level - bucket.cost(tokens)).max(0.0);
            }
            Self::Window { admitted, .. } => admitted.push_back(now),
        }
    }

    /// Returns what is left.
    #[expect(clippy::cast_possible_truncation, reason = "a limit fits in 32 bits, and a part of it too")]
    #[expect(clippy::cast_sign_loss, reason = "a level is never below zero")]
    pub(crate) fn counter(&mut self, now: Duration) -> LimitCounter {
        match self {
            Self::Bucket(bucket) => {
                bucket.fill(now);
                let reset = Duration::from_secs_f64((bucket.size - bucket.level) / bucket.per_second);
                let (limit, remaining) = (bucket.size as u32, bucket.level as u32);
                LimitCounter { of: bucket.of, limit, remaining, reset }
            }
            Self::Window { calls, span, admitted } => {
                forget(admitted, *span, now);
                let reset =
                    admitted.back().map_or(Duration::ZERO, |last| (*last + *span).saturating_sub(now));
                let remaining = calls.saturating_sub(admitted.len()) as u32;
                LimitCounter { of: LimitUnit::Requests, limit: *calls as u32, remaining, reset }
            }
        }
    }
}

impl Bucket {
    fn cost(&self, tokens: u32) -> f64 {
        match self.of {
            LimitUnit::Requests => 1.0,
            LimitUnit::Tokens => tokens.into(),
        }
    }

    fn fill(&mut self, now: Duration) {
        let gained = now.saturating_sub(self.at).as_secs_f64() * self.per_second;
        self.level = (self.level + gained).min(self.size);
        self.at = self.at.max(now);
    }
}

fn forget(admitted: &mut VecDeque<Duration>, span: Duration, now: Duration) {
    while admitted.front().is_some_and(|oldest| *oldest + span <= now) {
        admitted.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn count(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    /// Returns whether a call at each time is accepted.
    fn judged(rate: Rate, moments: &[u64]) -> Vec<bool> {
        let mut limiter = Limiter::new(rate);
        let judge = |moment: &u64| {
            let may = limiter.wait(1, ms(*moment)).is_zero();
            if may {
                limiter.take(1, ms(*moment));
            }
            may
        };
        moments.iter().map(judge).collect()
    }

    #[test]
    fn bucket_allows_its_burst_and_then_its_rate() {
        let rate = Rate::Bucket { calls: count(10), per_ms: count(1000), burst: count(2) };
        let moments = [0, 0, 0, 99, 100, 150, 200, 10_000, 10_000, 10_000];
        let expected = [true, true, false, false, true, false, true, true, true, false];
        assert_eq!(judged(rate, &moments), expected);
    }

    #[test]
    fn a_window_slides_and_does_not_count_what_it_refused() {
        let rate = Rate::Window { calls: count(2), per_ms: count(100) };
        let moments = [0, 60, 61, 99, 100, 159, 160, 199, 200];
        let expected = [true, true, false, false, true, false, true, false, true];
        assert_eq!(judged(rate, &moments), expected);
    }

    #[test]
    fn large_call_waits_for_a_full_token_bucket() {
        let mut limiter = Limiter::new(Rate::Tokens { tokens: count(600), per_ms: count(60_000) });
        limiter.take(500, ms(0));
        assert_eq!(limiter.wait(100, ms(0)), ms(0));
        assert_eq!(limiter.wait(200, ms(0)), ms(10_000));
        assert_eq!(limiter.wait(9_999, ms(0)), ms(50_000));
        let left = LimitCounter { of: LimitUnit::Tokens, limit: 600, remaining: 110, reset: ms(49_000) };
        assert_eq!(limiter.counter(ms(1_000)), left);
    }

    #[test]
    fn window_reports_its_rest_and_reset_time() {
        let mut limiter = Limiter::new(Rate::Window { calls: count(3), per_ms: count(100) });
        limiter.take(1, ms(0));
        limiter.take(1, ms(40));
        let left = LimitCounter { of: LimitUnit::Requests, limit: 3, remaining: 1, reset: ms(90) };
        assert_eq!(limiter.counter(ms(50)), left);
        limiter.take(1, ms(50));
        assert_eq!(limiter.wait(1, ms(50)), ms(50));
    }
}
