//! Chooses which of the model's endpoints takes the next call, and when.
//!
//! Each endpoint has its own pace. One that refuses calls is called more slowly or left alone for a while, and the
//! others take as many calls as they can.
//!
//! A long `Retry-After` pauses the endpoint that sent it, for every caller of this model. A short one holds back the refused
//! item at this endpoint. The item may go to another endpoint meanwhile.
//!
//! A new endpoint starts slowly, because a batch with many slots would flood it before the first response: at 20 calls
//! a second, and at most twice what it accepted in a second, until its first refusal. Workers start without a limit,
//! because most destinations never refuse.
// SPEC B10.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido::worker::pacing::{CallKind, Clock, FRESH_FOR, Pacer, Slot};
use ichido_core::limits::{Budget, Limits};
use ichido_core::pace::{
    CallOutcome, Choice, EndpointRecord, Opening, PaceSettings, PauseReason, PerSecond, choose_avoiding,
    left_out,
};
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{PaceReport, Verdict};
use ichido_http::clock;
use ichido_store::Store;

use super::JudgePause;
use super::next::Failures;
use crate::models::{CallError, Model, accepted};

/// How long to wait before checking whether another endpoint became free. Shorter than the horizon of slots, or all of
/// them would be used up before anyone asks for more.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Minimum wait, to avoid a busy loop.
const MIN_WAIT: Duration = Duration::from_millis(1);

/// What is known of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointStatus {
    /// Its name, such as the base URL.
    pub name: String,
    /// The calls of this judge.
    pub calls: u64,
    /// Of these, the calls without an answer.
    pub failed: u64,
    /// The pause that it asked for.
    pub pause: Option<JudgePause>,
    /// Whether it does not respond.
    pub is_away: bool,
}

pub(super) struct EndpointPool {
    clock: Arc<Clock>,
    endpoints: Vec<PacedEndpoint>,
    /// A wait of this length or more that an endpoint asks for is a pause of all calls to it.
    long_pause: Duration,
}

struct PacedEndpoint {
    name: String,
    /// All calls that have ended, and those without an answer.
    calls: Mutex<(u64, u64)>,
    /// The last wait that it asked for.
    requested: Mutex<Option<Duration>>,
    /// The pace learned from its refusals, shared with all callers.
    pacer: Pacer,
    /// What the endpoint says is left of its limits.
    budget: Mutex<Budget>,
    record: Mutex<EndpointRecord>,
}

/// Permission to make a call.
pub(super) struct EndpointPermit {
    /// The endpoint to call.
    pub(super) endpoint: usize,
    sent: Timestamp,
    caller: CallKind,
}

impl EndpointPool {
    pub(super) fn new(
        model: &dyn Model,
        settings: PaceSettings,
        store: Option<&Store>,
        clock: &Arc<Clock>,
    ) -> Self {
        let paced = |endpoint: &String| {
            let pacer = Pacer::new(pace_name(model.name(), endpoint), settings, store, Arc::clone(clock));
            PacedEndpoint {
                name: endpoint.clone(),
                calls: Mutex::default(),
                requested: Mutex::default(),
                pacer,
                budget: Mutex::new(Budget::NEW),
                record: Mutex::new(EndpointRecord::NEW),
            }
        };
        let endpoints = model.endpoints().iter().map(paced).collect();
        Self { clock: Arc::clone(clock), endpoints, long_pause: settings.long_pause }
    }

    /// Waits until a call of this many tokens may be made to one of the endpoints.
    ///
    /// Avoids endpoints that refused the item before, while another is free.
    pub(super) async fn acquire(
        &self,
        tokens: u64,
        failures: Failures,
        dice: impl Fn() -> f64,
    ) -> EndpointPermit {
        let caller = if failures.is_fresh() { CallKind::First } else { CallKind::Retry };
        loop {
            let openings = self.endpoints.iter().enumerate();
            let openings: Vec<Opening> = openings
                .map(|(index, endpoint)| failures.opening(index, endpoint.opening(tokens, &self.clock)))
                .collect();
            let records: Vec<EndpointRecord> =
                self.endpoints.iter().map(|endpoint| *lock(&endpoint.record)).collect();
            let left_out = left_out(&records, caller == CallKind::Retry, self.clock.now());
            let wait_until = match choose_avoiding(&openings, left_out, failures.refused_by, dice()) {
                Choice::AllRest { until } => {
                    // What is known of them may be outdated.
                    for endpoint in &self.endpoints {
                        endpoint.pacer.refresh(self.clock.elapsed().saturating_sub(FRESH_FOR)).await;
                    }
                    until
                }
                Choice::Endpoint(endpoint) => match self.slot(endpoint, tokens, caller).await {
                    Ok(sent) => return EndpointPermit { endpoint, sent, caller },
                    Err(until) => until,
                },
            };
            let wait = wait_until.since(self.clock.now()).clamp(MIN_WAIT, LOOK_AGAIN_AFTER);
            tokio::time::sleep(wait).await;
        }
    }

    /// Waits for a slot at one endpoint; `Err` holds the earliest time of the next try.
    async fn slot(&self, endpoint: usize, tokens: u64, caller: CallKind) -> Result<Timestamp, Timestamp> {
        let Some(PacedEndpoint { pacer, budget, .. }) = self.endpoints.get(endpoint) else {
            return Err(Timestamp::MAX);
        };
        let moment = match pacer.slot(caller).await {
            Slot::NotBefore(until, _) => return Err(until),
            Slot::At(moment) => moment,
        };
        tokio::time::sleep(moment.since(self.clock.now())).await;
        if let Some((until, _)) = pacer.stopped() {
            return Err(until);
        }
        let (mut budget, now) = (lock(budget), clock::now());
        // Taken last, because the next response is what returns a reservation.
        *budget = budget.take(now, tokens).map_err(|until| self.clock.now().plus(until.since(now)))?;
        Ok(moment)
    }

    /// Reads what others know of the endpoints.
    pub(super) async fn refresh(&self) {
        for endpoint in &self.endpoints {
            endpoint.pacer.refresh(self.clock.elapsed()).await;
        }
    }

    /// Returns the first pause to end if every endpoint is paused, as far as is known here.
    pub(super) fn paused(&self) -> Option<JudgePause> {
        let all: Option<Vec<_>> =
            self.endpoints.iter().map(|endpoint| endpoint.paused(&self.clock)).collect();
        all?.into_iter().min_by_key(|pause| pause.left)
    }

    /// Returns what is known of each endpoint.
    pub(super) fn status(&self) -> Vec<EndpointStatus> {
        let status = |endpoint: &PacedEndpoint| {
            let (calls, failed) = *lock(&endpoint.calls);
            let is_away = matches!(endpoint.pacer.stopped(), Some((_, PauseReason::Circuit)));
            let pause = endpoint.paused(&self.clock);
            EndpointStatus { name: endpoint.name.clone(), calls, failed, pause, is_away }
        };
        self.endpoints.iter().map(status).collect()
    }

    /// Returns the time between two calls that was learned from refusals; `None` if an endpoint has no learned pace.
    pub(super) fn learned_spacing(&self) -> Option<Duration> {
        let rates = self.endpoints.iter().map(|endpoint| endpoint.pacer.learned_rate());
        let rates: Option<Vec<f64>> = rates.map(|rate| rate.map(PerSecond::get)).collect();
        Some(PerSecond::clamped(rates?.into_iter().sum()).spacing())
    }

    /// Records a call's outcome for its endpoint.
    pub(super) async fn record_outcome(
        &self,
        permit: &EndpointPermit,
        outcome: Result<(), &CallError>,
        limits: &Limits,
    ) {
        let Some(PacedEndpoint { pacer, budget, record, calls, requested, .. }) =
            self.endpoints.get(permit.endpoint)
        else {
            return;
        };
        {
            let (calls, failed) = &mut *lock(calls);
            *calls += 1;
            *failed += u64::from(outcome.is_err());
        }
        if let Some(hint) = outcome.err().and_then(|call_error| call_error.verdict.hint) {
            *lock(requested) = Some(hint);
        }
        {
            let mut budget = lock(budget);
            *budget = budget.update(limits, clock::now());
        }
        if let Some(end) = outcome.map_or_else(CallError::call_end, |()| Some(CallOutcome::Answered)) {
            let mut record = lock(record);
            *record = record.after(end, self.clock.now());
        }
        let verdict = outcome.map_or_else(|call_error| call_error.verdict, |()| accepted());
        pacer.record_verdict(&pace_verdict(verdict, self.long_pause), permit.sent, permit.caller).await;
    }

    /// Returns whether the last call to each endpoint failed.
    pub(super) fn have_all_failed(&self) -> bool {
        self.endpoints.iter().all(|endpoint| lock(&endpoint.record).has_failed())
    }

    /// Shares what was learned and is not yet written.
    pub(super) async fn report(&self) {
        for endpoint in &self.endpoints {
            endpoint.pacer.report().await;
        }
    }
}

/// Returns what a verdict says about the pace. An endpoint that fails and asks for a long wait asks for a pause, as with 503.
pub(super) fn pace_verdict(verdict: Verdict, long_pause: Duration) -> Verdict {
    let asks = verdict.hint.is_some_and(|hint| long_pause <= hint);
    if !asks || verdict.pace_report() != Some(PaceReport::Failure) {
        return verdict;
    }
    let Verdict { code, effect, advice, hint, .. } = verdict;
    Verdict::declared(code, effect, advice, hint, Some(PaceReport::Throttled))
}

/// Returns the name of a model's pace at an endpoint. Providers limit each model separately.
fn pace_name(model: &str, endpoint: &str) -> String {
    format!("{PACE_OF_MODEL}{model}{AT}{endpoint}")
}

/// The parts of the name of a model's pace. No name of a queue or destination has a space.
const PACE_OF_MODEL: &str = "model ";
const AT: &str = " at ";

/// Returns the model whose pace has this name; `None` if it is not the pace of a model.
///
/// ```
/// use ichido_llm::judge::paced_model;
///
/// assert_eq!(paced_model("model gpt-5-mini at https://api.openai.com/v1"), Some("gpt-5-mini"));
/// assert_eq!(paced_model("orders"), None);
/// ```
pub fn paced_model(pace: &str) -> Option<&str> {
    pace.strip_prefix(PACE_OF_MODEL)?.split_once(AT).map(|(model, _)| model)
}

impl PacedEndpoint {
    /// Returns how long the provider asked not to call it, or says that nothing is left of its limits.
    fn paused(&self, own: &Clock) -> Option<JudgePause> {
        let asked = self.pacer.stopped().filter(|(_, why)| *why == PauseReason::Paused);
        let asked = asked.map(|(until, _)| until.since(own.now()));
        let now = clock::now();
        let spent = lock(&self.budget).take(now, 1).err().map(|until| until.since(now));
        let left = asked.max(spent).filter(|left| !left.is_zero())?;
        Some(JudgePause::new(left, *lock(&self.requested)))
    }

    /// Returns when the endpoint can take a call of this many tokens.
    fn opening(&self, tokens: u64, own: &Clock) -> Opening {
        let now = clock::now();
        match (self.pacer.opening(), lock(&self.budget).take(now, tokens)) {
            (opening, Ok(_)) => opening,
            (opening, Err(until)) => {
                Opening::Resting { until: opening.moment().max(own.now().plus(until.since(now))) }
            }
        }
    }
}
