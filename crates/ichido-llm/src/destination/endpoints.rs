//! Chooses the endpoint of a model for each message.
//!
//! Guarantee: an endpoint that refused calls or seems down is not called while it rests, as long as another is free. A
//! message that one endpoint refused is not sent there again while another is free. A message refused for lack of
//! access or quota is tried at the other endpoints before it is given up. One endpoint's failure does not affect the
//! destination's pace while another is free.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ichido_core::limits::{Budget, Limits};
use ichido_core::pace::{
    CallOutcome, Choice, EndpointRecord, EndpointSet, Opening, choose_avoiding, left_out,
};
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Advice, Verdict};
use uuid::Uuid;

use crate::models::{CallError, accepted};

/// How long an endpoint rests if it did not say.
const REST: Duration = Duration::from_secs(2);
/// Maximum rest of an endpoint, whatever it asks for.
const MAX_REST: Duration = Duration::from_mins(10);

/// Maximum number of messages whose refusals are remembered; beyond it the oldest are forgotten and may go anywhere.
const MAX_REFUSED: usize = 10_000;

pub(super) struct Endpoints(Mutex<EndpointStates>);

struct EndpointStates {
    endpoints: Vec<EndpointState>,
    /// The endpoints that refused a message, or failed. Ids are ordered by time, so the first is the oldest.
    refused: BTreeMap<Uuid, EndpointSet>,
}

#[derive(Clone, Copy)]
struct EndpointState {
    /// What the endpoint says is left of its limits.
    budget: Budget,
    rests_until: Timestamp,
    record: EndpointRecord,
}

impl Endpoints {
    pub(super) fn new(count: usize) -> Self {
        let endpoint =
            EndpointState { budget: Budget::NEW, rests_until: Timestamp::EPOCH, record: EndpointRecord::NEW };
        Self(Mutex::new(EndpointStates { endpoints: vec![endpoint; count], refused: BTreeMap::new() }))
    }

    /// Reserves a call of this many tokens at an endpoint, or returns when the first one is free.
    pub(super) fn acquire(
        &self,
        message: Uuid,
        tokens: u64,
        now: Timestamp,
        dice: f64,
    ) -> Result<usize, Timestamp> {
        let states = &mut *self.states();
        let openings: Vec<Opening> =
            states.endpoints.iter().map(|endpoint| endpoint.opening(tokens, now)).collect();
        let records: Vec<EndpointRecord> = states.endpoints.iter().map(|endpoint| endpoint.record).collect();
        let refused_by = states.refused.get(&message).copied().unwrap_or_default();
        let left_out = left_out(&records, refused_by != EndpointSet::EMPTY, now);
        match choose_avoiding(&openings, left_out, refused_by, dice) {
            Choice::AllRest { until } => Err(until),
            Choice::Endpoint(index) => {
                if let Some(endpoint) = states.endpoints.get_mut(index) {
                    endpoint.budget = endpoint.budget.take(now, tokens)?;
                }
                Ok(index)
            }
        }
    }

    /// Records a call's outcome for its endpoint and returns the verdict for the destination.
    pub(super) fn record_outcome(
        &self,
        message: Uuid,
        index: usize,
        outcome: Result<(), &CallError>,
        limits: &Limits,
        now: Timestamp,
    ) -> Verdict {
        let states = &mut *self.states();
        let count = states.endpoints.len();
        let verdict = outcome.map_or_else(|call_error| call_error.verdict, |()| accepted());
        let Some(endpoint) = states.endpoints.get_mut(index) else { return verdict };
        endpoint.budget = endpoint.budget.update(limits, now);
        let end = outcome.map_or_else(CallError::call_end, |()| Some(CallOutcome::Answered));
        if let Some(end) = end {
            endpoint.record = endpoint.record.after(end, now);
        }
        let Verdict { code, effect, advice, .. } = verdict;
        match end {
            // With one endpoint, the destination's pace is that of the endpoint.
            _ if count == 1 => return verdict,
            Some(CallOutcome::Answered) | None => {
                states.refused.remove(&message);
                return verdict;
            }
            Some(CallOutcome::Refused) => {
                let is_refused_by_all = states.note_refused(message, index).has_all(count);
                let elsewhere = Verdict::declared(code, effect, Advice::Retry, None, None);
                return if is_refused_by_all { verdict } else { elsewhere };
            }
            Some(CallOutcome::Failed) => {
                endpoint.rests_until = now.plus(verdict.hint.unwrap_or(REST).min(MAX_REST));
                states.note_refused(message, index);
            }
        }
        match states.endpoints.iter().map(|endpoint| endpoint.rests_until).min() {
            Some(first) if now < first => {
                Verdict::declared(code, effect, advice, Some(first.since(now)), verdict.pace_report())
            }
            _ => Verdict::declared(code, effect, advice, None, None),
        }
    }

    fn states(&self) -> MutexGuard<'_, EndpointStates> {
        // A panic leaves the state consistent: each change is one assignment.
        lock(&self.0)
    }
}

impl EndpointStates {
    /// Returns the endpoints that have refused the message so far.
    fn note_refused(&mut self, message: Uuid, index: usize) -> EndpointSet {
        let refused = self.refused.entry(message).or_default();
        *refused = refused.with(index);
        let refused = *refused;
        if MAX_REFUSED < self.refused.len() {
            self.refused.pop_first();
        }
        refused
    }
}

impl EndpointState {
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
    use ichido_core::limits::LimitCounter;
    use ichido_core::verdict::{AttemptResponse, Echo, HttpResponse, PaceReport, VerdictTable};

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
    const ONE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);
    const NOTHING: Limits = Limits { requests: None, tokens: None, input_tokens: None, output_tokens: None };

    fn refused(status: u16, headers: &[(&str, &[u8])]) -> CallError {
        let answer = HttpResponse { status, headers, body: b"", echo: Echo::Absent };
        let verdict = VerdictTable::llm().judge(&AttemptResponse::Http(answer), NOW);
        CallError { verdict, status: Some(status), name: None, why: String::new() }
    }

    fn throttled(secs: &[u8]) -> CallError {
        refused(429, &[("retry-after", secs)])
    }

    #[test]
    fn refusing_endpoint_rests_while_another_is_free() {
        let endpoints = Endpoints::new(2);
        let verdict = endpoints.record_outcome(ONE, 0, Err(&throttled(b"30")), &NOTHING, NOW);
        assert_eq!((verdict.hint, verdict.pace_report()), (None, None), "the other is free");
        assert_eq!(verdict.code, throttled(b"30").verdict.code);
        for dice in [0.0, 0.5, 0.99] {
            assert_eq!(endpoints.acquire(OTHER, 1, NOW, dice), Ok(1));
        }
        let verdict = endpoints.record_outcome(ONE, 1, Err(&throttled(b"10")), &NOTHING, NOW);
        let wait = Duration::from_secs(10);
        assert_eq!(
            (verdict.hint, verdict.pace_report()),
            (Some(wait), Some(PaceReport::Throttled)),
            "none is free"
        );
        assert_eq!(endpoints.acquire(OTHER, 1, NOW, 0.0), Err(NOW.plus(wait)));
        assert_eq!(endpoints.acquire(OTHER, 1, NOW.plus(wait), 0.0), Ok(1));
    }

    #[test]
    fn refused_message_avoids_endpoint_even_after_its_rest() {
        let endpoints = Endpoints::new(2);
        endpoints.record_outcome(ONE, 0, Err(&throttled(b"")), &NOTHING, NOW);
        let rested = NOW.plus(REST);
        for dice in [0.0, 0.5, 0.99] {
            assert_eq!(endpoints.acquire(ONE, 1, rested, dice), Ok(1));
        }
        assert_eq!(endpoints.acquire(OTHER, 1, rested, 0.0), Ok(0), "another message may ask there");
        endpoints.record_outcome(OTHER, 1, Err(&throttled(b"60")), &NOTHING, rested);
        assert_eq!(endpoints.acquire(ONE, 1, rested, 0.0), Ok(0), "the other one rests");
    }

    /// No message is lost to one of several endpoints that has no quota or lacks the model.
    // SPEC B10.
    #[test]
    fn message_is_dead_only_when_all_endpoints_denied_it() {
        for status in [401, 402, 403, 404] {
            let endpoints = Endpoints::new(2);
            let denied = refused(status, &[]);
            let verdict = endpoints.record_outcome(ONE, 0, Err(&denied), &NOTHING, NOW);
            assert_eq!((verdict.advice, verdict.code), (Advice::Retry, denied.verdict.code), "{status}");
            assert_eq!((verdict.hint, verdict.pace_report()), (None, None), "the other is free");
            for message in [ONE, OTHER] {
                assert_eq!(endpoints.acquire(message, 1, NOW, 0.0), Ok(1), "{status}");
            }
            assert_eq!(endpoints.record_outcome(ONE, 1, Err(&denied), &NOTHING, NOW), denied.verdict);
            let alone = Endpoints::new(1);
            assert_eq!(alone.record_outcome(ONE, 0, Err(&denied), &NOTHING, NOW), denied.verdict);
        }
        let invalid = refused(400, &[]);
        let verdict = Endpoints::new(2).record_outcome(ONE, 0, Err(&invalid), &NOTHING, NOW);
        assert_eq!(verdict, invalid.verdict, "the other would say the same");
    }

    #[test]
    fn memory_of_refused_messages_is_bounded() {
        let endpoints = Endpoints::new(2);
        for number in 1..=u128::try_from(MAX_REFUSED).unwrap() + 1 {
            endpoints.record_outcome(Uuid::from_u128(number), 0, Err(&throttled(b"")), &NOTHING, NOW);
        }
        assert_eq!(endpoints.states().refused.len(), MAX_REFUSED);
        assert_eq!(endpoints.acquire(ONE, 1, NOW.plus(REST), 0.0), Ok(0), "the oldest is forgotten");
    }

    #[test]
    fn single_endpoint_is_paced_by_destination() {
        let endpoints = Endpoints::new(1);
        assert_eq!(
            endpoints.record_outcome(ONE, 0, Err(&throttled(b"30")), &NOTHING, NOW),
            throttled(b"30").verdict
        );
        assert_eq!(endpoints.acquire(OTHER, 1, NOW, 0.0), Ok(0));
    }

    #[test]
    fn remaining_limit_is_not_exceeded() {
        let endpoints = Endpoints::new(1);
        let reset = NOW.plus(Duration::from_mins(1));
        let limits = Limits { tokens: Some(LimitCounter { limit: 1_000, remaining: 600, reset }), ..NOTHING };
        endpoints.record_outcome(ONE, 0, Ok(()), &limits, NOW);
        assert_eq!(endpoints.acquire(OTHER, 500, NOW, 0.0), Ok(0));
        assert!(endpoints.acquire(OTHER, 500, NOW, 0.0).is_err_and(|until| NOW < until && until <= reset));
    }
}
