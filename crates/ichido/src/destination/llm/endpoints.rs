//! Which of a model's endpoints a message is asked at.
//!
//! Guarantee: an endpoint that refused calls, or seems down, is not called while it rests, as long as another is free. What is said of one
//! is no news of the destination as a whole while another is free.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ichido_core::limits::{Budget, Limits};
use ichido_core::pace::{Choice, Opening, choose};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{PaceReport, Verdict};

/// How long an endpoint rests that did not say for how long.
const REST: Duration = Duration::from_secs(2);
/// The longest that one is left alone, whatever it says.
const REST_MAX: Duration = Duration::from_mins(10);

pub(super) struct Endpoints(Mutex<Vec<Endpoint>>);

#[derive(Clone, Copy)]
struct Endpoint {
    /// What it says is left of its limits.
    budget: Budget,
    rests_until: Timestamp,
}

impl Endpoints {
    pub(super) fn new(count: usize) -> Self {
        let endpoint = Endpoint { budget: Budget::NEW, rests_until: Timestamp::EPOCH };
        Self(Mutex::new(vec![endpoint; count]))
    }

    /// Reserves a call of so many tokens at one of them, or says when the first is free.
    pub(super) fn open(&self, tokens: u64, now: Timestamp, dice: f64) -> Result<usize, Timestamp> {
        let mut endpoints = self.endpoints();
        let openings: Vec<Opening> = endpoints.iter().map(|endpoint| endpoint.opening(tokens, now)).collect();
        match choose(&openings, dice) {
            Choice::AllRest { until } => Err(until),
            Choice::Endpoint(index) => {
                if let Some(endpoint) = endpoints.get_mut(index) {
                    endpoint.budget = endpoint.budget.take(now, tokens)?;
                }
                Ok(index)
            }
        }
    }

    /// What a call told of its endpoint; back comes what it tells of the destination.
    pub(super) fn hear(&self, index: usize, verdict: &Verdict, limits: &Limits, now: Timestamp) -> Verdict {
        let mut endpoints = self.endpoints();
        let is_only = endpoints.len() == 1;
        let Some(endpoint) = endpoints.get_mut(index) else { return *verdict };
        endpoint.budget = endpoint.budget.hear(limits, now);
        match verdict.tells_pace() {
            // The pace of the destination is that of its only endpoint.
            _ if is_only => return *verdict,
            Some(PaceReport::Success) | None => return *verdict,
            Some(PaceReport::Throttled | PaceReport::Failure) => {
                endpoint.rests_until = now.plus(verdict.hint.unwrap_or(REST).min(REST_MAX));
            }
        }
        let Verdict { code, effect, advice, .. } = *verdict;
        match endpoints.iter().map(|endpoint| endpoint.rests_until).min() {
            Some(first) if now < first => {
                Verdict::said(code, effect, advice, Some(first.since(now)), verdict.tells_pace())
            }
            _ => Verdict::said(code, effect, advice, None, None),
        }
    }

    fn endpoints(&self) -> MutexGuard<'_, Vec<Endpoint>> {
        // A panic in here leaves a list that is whole: each change of it is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoint {
    fn opening(&self, tokens: u64, now: Timestamp) -> Opening {
        let enough_at = self.budget.take(now, tokens).err().unwrap_or(now);
        match self.rests_until.max(enough_at) {
            until if now < until => Opening::Resting { until },
            _ => Opening::At(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use ichido_core::limits::Counter;
    use ichido_core::verdict::{Answer, Echo, Seen, Table};

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
    const NOTHING: Limits = Limits { requests: None, tokens: None, input_tokens: None, output_tokens: None };

    fn throttled(secs: &[u8]) -> Verdict {
        let headers: [(&str, &[u8]); 1] = [("retry-after", secs)];
        let answer = Answer { status: 429, headers: &headers, body: b"", echo: Echo::Absent };
        Table::llm().judge(&Seen::Answer(answer), NOW)
    }

    #[test]
    fn one_that_refuses_rests_while_another_is_free() {
        let endpoints = Endpoints::new(2);
        let heard = endpoints.hear(0, &throttled(b"30"), &NOTHING, NOW);
        assert_eq!((heard.hint, heard.tells_pace()), (None, None), "the other is free");
        assert_eq!(heard.code, throttled(b"30").code);
        for dice in [0.0, 0.5, 0.99] {
            assert_eq!(endpoints.open(1, NOW, dice), Ok(1));
        }
        let heard = endpoints.hear(1, &throttled(b"10"), &NOTHING, NOW);
        let wait = Duration::from_secs(10);
        assert_eq!(
            (heard.hint, heard.tells_pace()),
            (Some(wait), Some(PaceReport::Throttled)),
            "none is free"
        );
        assert_eq!(endpoints.open(1, NOW, 0.0), Err(NOW.plus(wait)));
        assert_eq!(endpoints.open(1, NOW.plus(wait), 0.0), Ok(1));
    }

    #[test]
    fn the_only_one_is_left_to_the_pace_of_the_destination() {
        let endpoints = Endpoints::new(1);
        assert_eq!(endpoints.hear(0, &throttled(b"30"), &NOTHING, NOW), throttled(b"30"));
        assert_eq!(endpoints.open(1, NOW, 0.0), Ok(0));
    }

    #[test]
    fn what_is_left_of_a_limit_is_not_overdrawn() {
        let endpoints = Endpoints::new(1);
        let reset = NOW.plus(Duration::from_mins(1));
        let limits = Limits { tokens: Some(Counter { limit: 1_000, remaining: 600, reset }), ..NOTHING };
        endpoints.hear(0, &Table::llm().judge(&Seen::UnusableAnswer, NOW), &limits, NOW);
        assert_eq!(endpoints.open(500, NOW, 0.0), Ok(0));
        assert!(endpoints.open(500, NOW, 0.0).is_err_and(|until| NOW < until && until <= reset));
    }
}
