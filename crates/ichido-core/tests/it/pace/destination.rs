//! Destinations that allow a number of calls per second and refuse the rest.

use std::collections::VecDeque;

pub(crate) const SECOND: i64 = 1_000_000;

/// How a destination counts. None of them counts refused calls.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LimitModel {
    /// A token bucket that holds `burst` tokens and refills evenly.
    Bucket { burst: f64 },
    /// A limit from one full second to the next.
    FixedWindow,
    /// A limit in any second.
    SlidingWindow,
    /// It has no limit.
    Unlimited,
}

pub(crate) struct LimitedDestination {
    model: LimitModel,
    pub(crate) limit: u32,
    tokens: f64,
    refilled: i64,
    /// The times of the calls accepted in the last second.
    accepted: VecDeque<i64>,
}

impl LimitedDestination {
    pub(crate) fn new(model: LimitModel, limit: u32) -> Self {
        Self { model, limit, tokens: f64::MAX, refilled: 0, accepted: VecDeque::new() }
    }

    /// Accepts the call, or returns how many microseconds later it would.
    pub(crate) fn call(&mut self, now: i64) -> Result<(), i64> {
        match self.model {
            LimitModel::Bucket { burst } => self.call_bucket(now, burst),
            LimitModel::FixedWindow => self.call_window(now, now - now % SECOND),
            LimitModel::SlidingWindow => self.call_window(now, now - SECOND + 1),
            LimitModel::Unlimited => Ok(()),
        }
    }

    fn call_bucket(&mut self, now: i64, burst: f64) -> Result<(), i64> {
        let refill = f64::from(i32::try_from(now - self.refilled).unwrap()) * f64::from(self.limit) / 1e6;
        // A call that is early by less than the rounding of a microsecond is on time.
        self.tokens = (self.tokens + refill + 1e-5).min(burst);
        self.refilled = now;
        if self.tokens < 1.0 {
            return Err(SECOND / i64::from(self.limit.max(1)));
        }
        self.tokens -= 1.0;
        Ok(())
    }

    fn call_window(&mut self, now: i64, since: i64) -> Result<(), i64> {
        while self.accepted.front().is_some_and(|&moment| moment < since) {
            self.accepted.pop_front();
        }
        if u32::try_from(self.accepted.len()).unwrap() >= self.limit {
            return Err(since + SECOND - now);
        }
        self.accepted.push_back(now);
        Ok(())
    }
}
