//! Which of a model's endpoints a message is asked at.
//!
//! Guarantee: an endpoint that refused calls, or seems down, is not called while it rests, as long as another is free. A message that was
//! refused by one is not sent there again while another is free. What is said of one is no news of the destination as a whole while
//! another is free.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ichido_core::limits::{Budget, Limits};
use ichido_core::pace::{Choice, EndpointSet, Opening, choose_avoiding};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{PaceReport, Verdict};
use uuid::Uuid;

/// How long an endpoint rests that did not say for how long.
const REST: Duration = Duration::from_secs(2);
/// The longest that one is left alone, whatever it says.
const REST_MAX: Duration = Duration::from_mins(10);

/// The most messages of which it is known who refused them; beyond that the oldest are forgotten, and may go anywhere.
const REFUSED_MAX: usize = 10_000;

pub(super) struct Endpoints(Mutex<Known>);

struct Known {
    endpoints: Vec<Endpoint>,
    /// Which endpoints refused a message, or failed. Ids are ordered by time, so the first is the oldest.
    refused: BTreeMap<Uuid, EndpointSet>,
}

#[derive(Clone, Copy)]
struct Endpoint {
    /// What it says is left of its limits.
    budget: Budget,
    rests_until: Timestamp,
}

impl Endpoints {
    pub(super) fn new(count: usize) -> Self {
        let endpoint = Endpoint { budget: Budget::NEW, rests_until: Timestamp::EPOCH };
        Self(Mutex::new(Known { endpoints: vec![endpoint; count], refused: BTreeMap::new() }))
    }

    /// Reserves a call of so many tokens at one of them, or says when the first is free.
    pub(super) fn open(
        &self,
        message: Uuid,
        tokens: u64,
        now: Timestamp,
        dice: f64,
    ) -> Result<usize, Timestamp> {
        let known = &mut *self.known();
        let openings: Vec<Opening> =
            known.endpoints.iter().map(|endpoint| endpoint.opening(tokens, now)).collect();
        let avoided = known.refused.get(&message).copied().unwrap_or_default();
        match choose_avoiding(&openings, avoided, dice) {
            Choice::AllRest { until } => Err(until),
            Choice::Endpoint(index) => {
                if let Some(endpoint) = known.endpoints.get_mut(index) {
                    endpoint.budget = endpoint.budget.take(now, tokens)?;
                }
                Ok(index)
            }
        }
    }

    /// What a call told of its endpoint; back comes what it tells of the destination.
    pub(super) fn hear(
        &self,
        message: Uuid,
        index: usize,
        verdict: &Verdict,
        limits: &Limits,
        now: Timestamp,
    ) -> Verdict {
        let known = &mut *self.known();
        let is_only = known.endpoints.len() == 1;
        let Some(endpoint) = known.endpoints.get_mut(index) else { return *verdict };
        endpoint.budget = endpoint.budget.hear(limits, now);
        match verdict.tells_pace() {
            // The pace of the destination is that of its only endpoint.
            _ if is_only => return *verdict,
            Some(PaceReport::Success) | None => {
                known.refused.remove(&message);
                return *verdict;
            }
            Some(PaceReport::Throttled | PaceReport::Failure) => {
                endpoint.rests_until = now.plus(verdict.hint.unwrap_or(REST).min(REST_MAX));
                known.note_refused(message, index);
            }
        }
        let Verdict { code, effect, advice, .. } = *verdict;
        match known.endpoints.iter().map(|endpoint| endpoint.rests_until).min() {
            Some(first) if now < first => {
                Verdict::said(code, effect, advice, Some(first.since(now)), verdict.tells_pace())
            }
            _ => Verdict::said(code, effect, advice, None, None),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // A panic in here leaves what is whole: each change of it is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note_refused(&mut self, message: Uuid, index: usize) {
        let refused = self.refused.entry(message).or_default();
        *refused = refused.with(index);
        if REFUSED_MAX < self.refused.len() {
            self.refused.pop_first();
        }
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
    const ONE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);
    const NOTHING: Limits = Limits { requests: None, tokens: None, input_tokens: None, output_tokens: None };

    fn throttled(secs: &[u8]) -> Verdict {
        let headers: [(&str, &[u8]); 1] = [("retry-after", secs)];
        let answer = Answer { status: 429, headers: &headers, body: b"", echo: Echo::Absent };
        Table::llm().judge(&Seen::Answer(answer), NOW)
    }

    #[test]
    fn one_that_refuses_rests_while_another_is_free() {
        let endpoints = Endpoints::new(2);
        let heard = endpoints.hear(ONE, 0, &throttled(b"30"), &NOTHING, NOW);
        assert_eq!((heard.hint, heard.tells_pace()), (None, None), "the other is free");
        assert_eq!(heard.code, throttled(b"30").code);
        for dice in [0.0, 0.5, 0.99] {
            assert_eq!(endpoints.open(OTHER, 1, NOW, dice), Ok(1));
        }
        let heard = endpoints.hear(ONE, 1, &throttled(b"10"), &NOTHING, NOW);
        let wait = Duration::from_secs(10);
        assert_eq!(
            (heard.hint, heard.tells_pace()),
            (Some(wait), Some(PaceReport::Throttled)),
            "none is free"
        );
        assert_eq!(endpoints.open(OTHER, 1, NOW, 0.0), Err(NOW.plus(wait)));
        assert_eq!(endpoints.open(OTHER, 1, NOW.plus(wait), 0.0), Ok(1));
    }

    #[test]
    fn a_message_that_one_refused_goes_to_another_after_the_rest_too() {
        let endpoints = Endpoints::new(2);
        endpoints.hear(ONE, 0, &throttled(b""), &NOTHING, NOW);
        let rested = NOW.plus(REST);
        for dice in [0.0, 0.5, 0.99] {
            assert_eq!(endpoints.open(ONE, 1, rested, dice), Ok(1));
        }
        assert_eq!(endpoints.open(OTHER, 1, rested, 0.0), Ok(0), "another message may ask there");
        endpoints.hear(OTHER, 1, &throttled(b"60"), &NOTHING, rested);
        assert_eq!(endpoints.open(ONE, 1, rested, 0.0), Ok(0), "the other one rests");
    }

    #[test]
    fn what_is_known_of_messages_is_bounded() {
        let endpoints = Endpoints::new(2);
        for number in 1..=u128::try_from(REFUSED_MAX).unwrap() + 1 {
            endpoints.hear(Uuid::from_u128(number), 0, &throttled(b""), &NOTHING, NOW);
        }
        assert_eq!(endpoints.known().refused.len(), REFUSED_MAX);
        assert_eq!(endpoints.open(ONE, 1, NOW.plus(REST), 0.0), Ok(0), "the oldest is forgotten");
    }

    #[test]
    fn the_only_one_is_left_to_the_pace_of_the_destination() {
        let endpoints = Endpoints::new(1);
        assert_eq!(endpoints.hear(ONE, 0, &throttled(b"30"), &NOTHING, NOW), throttled(b"30"));
        assert_eq!(endpoints.open(OTHER, 1, NOW, 0.0), Ok(0));
    }

    #[test]
    fn what_is_left_of_a_limit_is_not_overdrawn() {
        let endpoints = Endpoints::new(1);
        let reset = NOW.plus(Duration::from_mins(1));
        let limits = Limits { tokens: Some(Counter { limit: 1_000, remaining: 600, reset }), ..NOTHING };
        endpoints.hear(ONE, 0, &Table::llm().judge(&Seen::UnusableAnswer, NOW), &limits, NOW);
        assert_eq!(endpoints.open(OTHER, 500, NOW, 0.0), Ok(0));
        assert!(endpoints.open(OTHER, 500, NOW, 0.0).is_err_and(|until| NOW < until && until <= reset));
    }
}
