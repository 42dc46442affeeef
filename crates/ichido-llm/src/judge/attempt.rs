//! Makes one call for one question and stores the result.

use std::sync::Arc;
use std::time::Duration;

use ichido::worker::pacing::Clock;
use ichido_core::limits::Limits;
use ichido_core::plan::may_start;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{AttemptResponse, ErrorCode, NetworkFault, PaceReport, VerdictTable};
use ichido_store::answer::{AskOutcome, QuestionId, StoredAnswer as Answered};
use ichido_store::error::StoreError;
use serde_json::Value;

use super::answers::AnswerStore;
use super::counts::CallMetrics;
use super::endpoints::{EndpointPermit, EndpointPool, pace_verdict};
use super::given_up::GivenUpItems;
use super::next::{Failures, JudgeStep};
use super::outcome::{FallbackReason, Settled};
use super::settings::Settings;
use super::stop::{Stop, StopStage};
use crate::models::{CallError, CallReport, FinishReason, Model, Prompt, Reply};

/// Extra time for a model that does not end its call within its own timeout.
const MAX_LATE: Duration = Duration::from_secs(1);
/// How often, and after which delay, storing an answer is retried.
const MAX_STORE_RETRIES: u32 = 30;
const STORE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Delay before looking again at a question that another run asks.
const LOOK_AGAIN_DELAY: Duration = Duration::from_secs(1);

/// What all calls of a judge share.
pub(super) struct Asker {
    pub(super) model: Arc<dyn Model>,
    pub(super) settings: Settings,
    pub(super) answers: AnswerStore,
    pub(super) endpoints: EndpointPool,
    pub(super) clock: Arc<Clock>,
    pub(super) metrics: CallMetrics,
    pub(super) given_up: GivenUpItems,
}

/// One attempt at one question.
#[derive(Clone)]
pub(super) struct Turn {
    pub(super) id: QuestionId,
    pub(super) prompt: Arc<Prompt>,
    pub(super) failures: Failures,
    /// Calls lost earlier, as far as they are known and counted.
    pub(super) lost: u32,
    /// Whether the item has just taken a slot for the first time.
    pub(super) is_new: bool,
    /// Whether another run was asking it at the last look.
    pub(super) is_asked_elsewhere: bool,
    /// Whether its answer may have twice as many tokens from the start, because others needed them.
    pub(super) starts_doubled: bool,
    /// Whether an answer in the requested form can be deserialized.
    pub(super) fits: fn(&Value) -> bool,
}

/// When a run must end.
#[derive(Clone)]
pub(super) struct RunBounds {
    /// On this process's clock.
    pub(super) deadline: Option<Duration>,
    pub(super) stop: Stop,
}

/// The outcome of a turn.
pub(super) enum TurnOutcome {
    Answered(Settled),
    Retry(TurnRetry),
    GiveUp(FallbackReason),
}

/// When and how an item is asked again.
pub(super) struct TurnRetry {
    pub(super) wait: Duration,
    /// Why its call failed; `None` if another run asks it.
    pub(super) why: Option<FallbackReason>,
    pub(super) failures: Failures,
    pub(super) lost: u32,
}

/// Counts a call as in flight until it is dropped.
struct CallInFlight<'a>(&'a CallMetrics);

impl Drop for CallInFlight<'_> {
    fn drop(&mut self) {
        self.0.ended();
    }
}

impl RunBounds {
    /// Waits until the deadline, or forever without one.
    pub(super) async fn expired(&self, clock: &Clock) {
        match self.deadline {
            Some(deadline) => tokio::time::sleep(deadline.saturating_sub(clock.elapsed())).await,
            None => std::future::pending().await,
        }
    }

    /// Returns whether a call of this length would end before the deadline.
    fn leaves_time_for(&self, clock: &Clock, needs: Duration) -> bool {
        let timestamp = |own| Timestamp::EPOCH.plus(own);
        self.deadline.is_none_or(|deadline| may_start(timestamp(clock.elapsed()), timestamp(deadline), needs))
    }
}

impl Turn {
    /// Returns the maximum number of tokens of its answer: twice as many after one that was cut off.
    fn max_tokens(&self) -> u32 {
        self.prompt.max_tokens.saturating_mul(if self.is_doubled() { 2 } else { 1 })
    }

    fn is_doubled(&self) -> bool {
        self.starts_doubled || self.failures.was_cut_off
    }

    /// Returns the prompt of its next call.
    fn prompt(&self) -> Prompt {
        Prompt { max_tokens: self.max_tokens(), ..Prompt::clone(&self.prompt) }
    }
}

impl Asker {
    /// Synchronizes the clock with the store's.
    pub(super) async fn sync_clock(&self) -> Result<(), StoreError> {
        let asked = self.clock.start_query();
        if let Some(now) = self.answers.time().await? {
            self.clock.record_reading(asked, now);
        }
        Ok(())
    }

    /// Waits for a permit, makes one call, and stores the result.
    pub(super) async fn turn(&self, turn: &Turn, bounds: &RunBounds) -> Result<TurnOutcome, StoreError> {
        let permit = tokio::select! {
            biased;
            () = bounds.expired(&self.clock) => return Ok(TurnOutcome::GiveUp(FallbackReason::Deadline)),
            () = bounds.stop.reached(StopStage::Finishing) => return Ok(TurnOutcome::GiveUp(FallbackReason::Stopped)),
            permit = self.wait_for_permit(turn) => match permit? {
                Ok(permit) => permit,
                Err(outcome) => return Ok(outcome),
            },
        };
        let latency = self.metrics.counts().latency().unwrap_or_default();
        if !bounds.leaves_time_for(&self.clock, latency) {
            return Ok(TurnOutcome::GiveUp(FallbackReason::Deadline));
        }
        let asked = tokio::select! {
            biased;
            asked = self.answers.ask(turn.id) => asked?,
            // It may be recorded in the store all the same and then count as lost, though no call was made. That is the
            // safe side.
            () = bounds.expired(&self.clock) => return Ok(TurnOutcome::GiveUp(FallbackReason::Deadline)),
            () = bounds.stop.reached(StopStage::AtOnce) => return Ok(TurnOutcome::GiveUp(FallbackReason::Stopped)),
        };
        match asked {
            AskOutcome::Replay(answer) => Ok(TurnOutcome::Answered(Settled { answer, was_known: true })),
            AskOutcome::InFlight { .. } => Ok(asked_elsewhere(turn)),
            AskOutcome::Run { lost } => {
                // Another run made these calls and died before it counted them.
                self.metrics.lost(lost.saturating_sub(turn.lost));
                self.call(turn, &permit, bounds, lost.max(turn.lost)).await
            }
        }
    }

    /// Waits the interval of a first call, then for a permit; or returns an outcome without a call.
    // SPEC B4.
    async fn wait_for_permit(&self, turn: &Turn) -> Result<Result<EndpointPermit, TurnOutcome>, StoreError> {
        if turn.is_new {
            tokio::time::sleep(self.settings.interval).await;
        }
        // Checked first, so waiting for another run takes no slot from a question that can be asked.
        if turn.is_asked_elsewhere {
            let question = self.answers.find(std::iter::once(turn.id)).await?.remove(&turn.id);
            match question.map(|question| (question.answer, question.held_until)) {
                Some((Some(answer), _)) => {
                    return Ok(Err(TurnOutcome::Answered(Settled { answer, was_known: true })));
                }
                Some((None, Some(until))) if self.clock.now() < until => {
                    return Ok(Err(asked_elsewhere(turn)));
                }
                _ => (),
            }
        }
        Ok(Ok(self.endpoints.acquire(turn.prompt().max_tokens(), turn.failures, fastrand::f64).await))
    }

    async fn call(
        &self,
        turn: &Turn,
        permit: &EndpointPermit,
        bounds: &RunBounds,
        lost: u32,
    ) -> Result<TurnOutcome, StoreError> {
        self.metrics.call(turn.failures.is_fresh());
        let began = self.clock.elapsed();
        let in_flight = CallInFlight(&self.metrics);
        let late = self.model.timeout().saturating_add(MAX_LATE);
        let prompt = turn.prompt();
        let asked = tokio::time::timeout(late, self.model.ask(permit.endpoint, &prompt));
        let report = tokio::select! {
            biased;
            report = asked => Ok(report.unwrap_or_else(|_| too_late())),
            () = bounds.expired(&self.clock) => Err(FallbackReason::Deadline),
            () = bounds.stop.reached(StopStage::AtOnce) => Err(FallbackReason::Stopped),
        };
        drop(in_flight);
        match report {
            Ok(CallReport { outcome: Ok(reply), limits }) => {
                self.endpoints.record_outcome(permit, Ok(()), &limits).await;
                self.metrics.replied(self.clock.elapsed().saturating_sub(began), reply.usage);
                self.handle_reply(turn, &reply, lost).await
            }
            Ok(CallReport { outcome: Err(call_error), limits }) => {
                self.endpoints.record_outcome(permit, Err(&call_error), &limits).await;
                self.handle_error(turn, permit, &call_error, lost).await
            }
            Err(why) => {
                self.failed(turn, true).await?;
                Ok(TurnOutcome::GiveUp(why))
            }
        }
    }

    async fn handle_reply(&self, turn: &Turn, reply: &Reply, lost: u32) -> Result<TurnOutcome, StoreError> {
        match read(turn, reply) {
            Ok((value, was_repaired)) => {
                let answer = self.keep(turn, &value, lost).await?;
                self.metrics.answered(was_repaired);
                Ok(TurnOutcome::Answered(Settled { answer, was_known: false }))
            }
            Err(why) => {
                self.failed(turn, false).await?;
                self.metrics.unusable();
                let next = match reply.finish_reason {
                    // The model would decline again.
                    FinishReason::Declined => {
                        JudgeStep::GiveUp(FallbackReason::Unusable { why: Arc::from(why) })
                    }
                    FinishReason::CutOff => {
                        self.metrics.cut_off();
                        turn.failures.after_cut_off(turn.max_tokens(), turn.is_doubled())
                    }
                    FinishReason::Whole => {
                        turn.failures.after_unusable(&self.settings, &why, fastrand::f64())
                    }
                };
                Ok(turn_outcome(next, lost))
            }
        }
    }

    /// Stores an answer that was paid for, even if the store is busy or away for a while.
    async fn keep(&self, turn: &Turn, value: &Value, lost: u32) -> Result<Answered, StoreError> {
        let bytes = value.to_string().into_bytes();
        for _ in 0..MAX_STORE_RETRIES {
            match self.answers.keep(turn.id, bytes.clone(), lost).await {
                Err(error @ (StoreError::Busy | StoreError::Unavailable(_) | StoreError::Unknown(_))) => {
                    tracing::warn!(error = error.with_causes(), "failed to store an answer; retrying");
                    tokio::time::sleep(STORE_RETRY_DELAY).await;
                }
                kept => return kept,
            }
        }
        self.answers.keep(turn.id, bytes, lost).await
    }

    async fn handle_error(
        &self,
        turn: &Turn,
        permit: &EndpointPermit,
        call_error: &CallError,
        lost: u32,
    ) -> Result<TurnOutcome, StoreError> {
        let is_lost = call_error.may_be_billed();
        self.failed(turn, is_lost).await?;
        match call_error.verdict.code {
            Some(ErrorCode::RateLimited) => self.metrics.throttled(),
            Some(ErrorCode::AnswerUnusable) => self.metrics.unusable(),
            _ => (),
        }
        let endpoints = self.model.endpoints().len();
        let pace = &self.settings.pace;
        // A long wait is a pause of the endpoint, which a person can end.
        let pauses =
            pace_verdict(call_error.verdict, pace.long_pause).pace_report() == Some(PaceReport::Throttled);
        let hint = call_error.verdict.hint.filter(|hint| !pauses || *hint < pace.long_pause);
        let hint = hint.map(|hint| hint.min(pace.max_pause));
        let now = self.clock.now();
        let failures = turn.failures.at(permit.endpoint, call_error, hint.map(|hint| now.plus(hint)));
        // An endpoint that did not refuse the item may take it sooner.
        let hint = failures.all_wait(endpoints).then(|| failures.wait_until.since(now));
        let next = failures.after_error(&self.settings, endpoints, call_error, hint, fastrand::f64());
        self.log_failure(permit, call_error, &next);
        Ok(turn_outcome(next, lost.saturating_add(u32::from(is_lost))))
    }

    /// Records a call without an answer.
    async fn failed(&self, turn: &Turn, is_lost: bool) -> Result<(), StoreError> {
        self.metrics.lost(u32::from(is_lost));
        self.answers.fail(turn.id, is_lost).await
    }

    /// Logs a failed call: the facts of the limit, and nothing of the prompt or answer.
    // SPEC B8.
    fn log_failure(&self, permit: &EndpointPermit, call_error: &CallError, next: &JudgeStep) {
        let endpoint = self.model.endpoints().get(permit.endpoint).map(String::as_str);
        let code = call_error.verdict.code.map(ErrorCode::as_str);
        let (status, name, hint) = (call_error.status, call_error.name.as_deref(), call_error.verdict.hint);
        match next {
            JudgeStep::Retry { wait, failures, .. } => tracing::info!(
                model = self.model.name(),
                endpoint,
                code,
                status,
                name,
                ?hint,
                ?wait,
                failures = failures.calls,
                "call to a model failed; retrying"
            ),
            JudgeStep::GiveUp(_) => tracing::warn!(
                model = self.model.name(),
                endpoint,
                code,
                status,
                name,
                "call to a model failed; not retrying"
            ),
        }
    }
}

/// Another run asks the question: look again later, without counting an attempt.
fn asked_elsewhere(turn: &Turn) -> TurnOutcome {
    TurnOutcome::Retry(TurnRetry {
        wait: LOOK_AGAIN_DELAY,
        why: None,
        failures: turn.failures,
        lost: turn.lost,
    })
}

fn turn_outcome(next: JudgeStep, lost: u32) -> TurnOutcome {
    match next {
        JudgeStep::Retry { wait, failures, why } => {
            TurnOutcome::Retry(TurnRetry { wait, why: Some(why), failures, lost })
        }
        JudgeStep::GiveUp(why) => TurnOutcome::GiveUp(why),
    }
}

/// Reads the answer from a reply; the error shows nothing of the reply.
fn read(turn: &Turn, reply: &Reply) -> Result<(Value, bool), String> {
    let Some(form) = &turn.prompt.form else {
        return Err("the prompt has no form for its answer".to_owned());
    };
    let read = form.read_reply(reply).map_err(|unusable| unusable.to_string())?;
    if (turn.fits)(&read.value) {
        return Ok((read.value, read.was_repaired));
    }
    Err("the answer has the requested form but cannot be read".to_owned())
}

fn too_late() -> CallReport {
    // The verdict does not depend on the time.
    let verdict =
        VerdictTable::llm().judge(&AttemptResponse::Network(NetworkFault::Timeout), Timestamp::EPOCH);
    let why = "no response arrived in time".to_owned();
    CallReport {
        outcome: Err(CallError { verdict, status: None, name: None, why }),
        limits: Limits::default(),
    }
}
