//! What is left at one endpoint, as far as this process knows.

use std::time::Duration;

use super::{LimitCounter, Limits};
use crate::time::Timestamp;

/// How long a limit takes to refill if the provider has not shown it.
///
/// Limits are per minute.
const WINDOW: Duration = Duration::from_mins(1);

/// The part of a limit that rounding may lose: no call is delayed for that.
const ROUNDING: f64 = 1e-12;

/// What is left at one endpoint: reserved before each call and corrected by each response.
///
/// The next response reveals what other nodes take. Calls in flight when a response arrives count as far as the
/// provider had counted them. A limit only on prompt tokens or only on response tokens is not tracked; refusals must
/// cover it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    requests: Option<Level>,
    tokens: Option<Level>,
}

/// What is left of one limit, and how it refills.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    limit: f64,
    /// What was left at the time `at`.
    left: f64,
    at: Timestamp,
    per_second: f64,
    /// After this long without a response, one call is allowed to get one.
    max_silence: Duration,
    /// When that is.
    listens_at: Timestamp,
}

impl Budget {
    /// The budget of an endpoint that has reported nothing yet.
    pub const NEW: Self = Self { requests: None, tokens: None };

    /// Reserves one call with this many tokens, or returns the earliest time to make it.
    ///
    /// A call larger than the limit itself is allowed when nothing of the limit is taken, instead of being held
    /// forever: the provider may count it differently.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ichido_core::limits::{Budget, LimitCounter, Limits};
    /// use ichido_core::time::Timestamp;
    ///
    /// let now = Timestamp::from_secs(1_800_000_000);
    /// // 1 of 10 is left, and 9 come back in 9 s.
    /// let requests = LimitCounter { limit: 10, remaining: 1, reset: now.plus(Duration::from_secs(9)) };
    /// let said = Limits { requests: Some(requests), ..Limits::default() };
    ///
    /// let budget = Budget::NEW.update(&said, now).take(now, 500)?;
    /// let wait = budget.take(now, 500).expect_err("nothing is left").since(now);
    /// assert!(Duration::from_secs(1) <= wait && wait < Duration::from_millis(1_001));
    /// # Ok::<(), Timestamp>(())
    /// ```
    pub fn take(self, now: Timestamp, tokens: u64) -> Result<Self, Timestamp> {
        let requests = self.requests.map(|level| level.take(now, 1.0)).transpose();
        let tokens = self.tokens.map(|level| level.take(now, as_float(tokens))).transpose();
        match (requests, tokens) {
            (Ok(requests), Ok(tokens)) => Ok(Self { requests, tokens }),
            (Err(first), Err(second)) => Err(first.max(second)),
            (Err(moment), Ok(_)) | (Ok(_), Err(moment)) => Err(moment),
        }
    }

    /// Corrects the budget with a response's values; missing values stay unchanged.
    #[must_use]
    pub fn update(self, limits: &Limits, now: Timestamp) -> Self {
        let level = |before: Option<Level>, counter: Option<LimitCounter>| {
            counter.map(|counter| Level::new(&counter, before, now)).or(before)
        };
        Self {
            requests: level(self.requests, limits.requests),
            tokens: level(self.tokens, limits.tokens_in_all()),
        }
    }
}

impl Level {
    fn new(counter: &LimitCounter, before: Option<Self>, now: Timestamp) -> Self {
        let limit = as_float(counter.limit);
        let resets_in = counter.resets_in(now);
        // A refill due in the past has happened.
        let left = if resets_in.is_zero() { limit } else { as_float(counter.remaining) };
        let observed = (limit - left) / resets_in.as_secs_f64();
        // If nothing was taken of a limit, its refill cannot be observed.
        let assumed = || before.map_or(limit / WINDOW.as_secs_f64(), |before| before.per_second);
        let per_second = if observed.is_finite() && 0.0 < observed { observed } else { assumed() };
        let max_silence = if resets_in.is_zero() { WINDOW } else { resets_in };
        Self { limit, left, at: now, per_second, max_silence, listens_at: now.plus(max_silence) }
    }

    fn take(self, now: Timestamp, wanted: f64) -> Result<Self, Timestamp> {
        let wanted = wanted.min(self.limit);
        let now = now.max(self.at);
        let left = (self.left + self.per_second * now.since(self.at).as_secs_f64()).min(self.limit);
        if wanted <= left + self.limit * ROUNDING {
            return Ok(Self { left: (left - wanted).max(0.0), at: now, ..self });
        }
        if self.listens_at <= now {
            return Ok(Self { left, at: now, listens_at: now.plus(self.max_silence), ..self });
        }
        let wait = Duration::try_from_secs_f64((wanted - left) / self.per_second).unwrap_or(Duration::MAX);
        // Rounded up, so there is enough at that time.
        let enough_at = now.plus(wait).plus(Duration::from_micros(1));
        Err(enough_at.min(self.listens_at))
    }
}

#[expect(clippy::cast_precision_loss, reason = "beyond 2^53 tokens, single ones do not matter")]
fn as_float(number: u64) -> f64 {
    number as f64
}
