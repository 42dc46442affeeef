//! One call for one question, from its place to what is kept of it.

use std::sync::Arc;
use std::time::Duration;

use ichido::worker::pacing::Clock;
use ichido_core::limits::Limits;
use ichido_core::plan::may_start;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{ErrorCode, NetworkFault, Seen, Table};
use ichido_store::answer::{Answer as Answered, Asking, QuestionId};
use ichido_store::error::StoreError;
use serde_json::Value;

use super::counts::Counting;
use super::memory::Memory;
use super::next::{Failures, Then};
use super::outcome::{Settled, Why};
use super::settings::Settings;
use super::stop::{Stage, Stop};
use super::ways::{Way, Ways};
use crate::models::{Ended, Model, Prompt, Reply, Trial, Trouble};

/// A model that does not end its call in its own time is given up on after this much more.
const LATE_MAX: Duration = Duration::from_secs(1);
/// How often, and how soon, the store is asked again to keep an answer.
const KEEP_AGAIN_MAX: u32 = 30;
const KEEP_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How soon a question that another run asks is looked at again.
const THEIRS_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What all calls of a judge have in common.
pub(super) struct Asker {
    pub(super) model: Arc<dyn Model>,
    pub(super) settings: Settings,
    pub(super) memory: Memory,
    pub(super) ways: Ways,
    pub(super) clock: Arc<Clock>,
    pub(super) counting: Counting,
}

/// One try of one question.
#[derive(Clone)]
pub(super) struct Turn {
    pub(super) id: QuestionId,
    pub(super) prompt: Arc<Prompt>,
    pub(super) failures: Failures,
    /// Calls that were lost before, as far as is known and counted.
    pub(super) lost: u32,
    /// Whether it has just taken its place for the first time.
    pub(super) is_new: bool,
    /// Whether another run had it when it was last looked at.
    pub(super) is_theirs: bool,
    /// Whether an answer of the form can be read.
    pub(super) fits: fn(&Value) -> bool,
}

/// When a run must end.
#[derive(Clone)]
pub(super) struct Bounds {
    /// By our own clock.
    pub(super) deadline: Option<Duration>,
    pub(super) stop: Stop,
}

/// What a turn came to.
pub(super) enum Came {
    Answered(Settled),
    Again { wait: Duration, failures: Failures, lost: u32, is_theirs: bool },
    Never(Why),
}

/// A call is under way for as long as this lives.
struct UnderWay<'a>(&'a Counting);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.ended();
    }
}

impl Bounds {
    /// Waits until the time is over, or for ever.
    pub(super) async fn over(&self, clock: &Clock) {
        match self.deadline {
            Some(deadline) => tokio::time::sleep(deadline.saturating_sub(clock.own())).await,
            None => std::future::pending().await,
        }
    }

    /// Whether a call that takes so long would still be answered in time.
    fn leaves(&self, clock: &Clock, needs: Duration) -> bool {
        let moment = |own| Timestamp::EPOCH.plus(own);
        self.deadline.is_none_or(|deadline| may_start(moment(clock.own()), moment(deadline), needs))
    }
}

impl Asker {
    /// Waits for its moment, makes one call, and keeps what came of it.
    pub(super) async fn turn(&self, turn: &Turn, bounds: &Bounds) -> Result<Came, StoreError> {
        let way = tokio::select! {
            biased;
            () = bounds.over(&self.clock) => return Ok(Came::Never(Why::Deadline)),
            () = bounds.stop.reached(Stage::Finishing) => return Ok(Came::Never(Why::Stopped)),
            moment = self.moment(turn) => match moment? {
                Ok(way) => way,
                Err(came) => return Ok(came),
            },
        };
        let latency = self.counting.counts().latency().unwrap_or_default();
        if !bounds.leaves(&self.clock, latency) {
            return Ok(Came::Never(Why::Deadline));
        }
        let asked = tokio::select! {
            biased;
            asked = self.memory.ask(turn.id) => asked?,
            // It may stand in the store all the same, and is then found as lost though it was not made: that is the safe side.
            () = bounds.over(&self.clock) => return Ok(Came::Never(Why::Deadline)),
            () = bounds.stop.reached(Stage::AtOnce) => return Ok(Came::Never(Why::Stopped)),
        };
        match asked {
            Asking::Answered(answer) => Ok(Came::Answered(Settled { answer, was_known: true })),
            Asking::Theirs { .. } => Ok(theirs(turn)),
            Asking::Ours { lost } => {
                // Another run's, which did not live to count it.
                self.counting.lost(lost.saturating_sub(turn.lost));
                self.call(turn, &way, bounds, lost.max(turn.lost)).await
            }
        }
    }

    /// The breath before a first call, and then a slot (SPEC B4); or what it came to without a call.
    async fn moment(&self, turn: &Turn) -> Result<Result<Way, Came>, StoreError> {
        if turn.is_new {
            tokio::time::sleep(self.settings.interval).await;
        }
        // Looked at first, so that waiting for another run takes no slot from who has something to ask.
        if turn.is_theirs {
            let question = self.memory.find(std::iter::once(turn.id)).await?.remove(&turn.id);
            match question.map(|question| (question.answer, question.held_until)) {
                Some((Some(answer), _)) => {
                    return Ok(Err(Came::Answered(Settled { answer, was_known: true })));
                }
                Some((None, Some(until))) if self.clock.now() < until => return Ok(Err(theirs(turn))),
                _ => (),
            }
        }
        Ok(Ok(self.ways.open(turn.prompt.tokens_max(), turn.failures, fastrand::f64).await))
    }

    async fn call(&self, turn: &Turn, way: &Way, bounds: &Bounds, lost: u32) -> Result<Came, StoreError> {
        self.counting.call(turn.failures.is_fresh());
        let began = self.clock.own();
        let under_way = UnderWay(&self.counting);
        let late = self.model.time_out().saturating_add(LATE_MAX);
        let asked = tokio::time::timeout(late, self.model.ask(way.endpoint, &turn.prompt));
        let trial = tokio::select! {
            biased;
            trial = asked => Ok(trial.unwrap_or_else(|_| too_late())),
            () = bounds.over(&self.clock) => Err(Why::Deadline),
            () = bounds.stop.reached(Stage::AtOnce) => Err(Why::Stopped),
        };
        drop(under_way);
        match trial {
            Ok(Trial { came: Ok(reply), limits }) => {
                self.ways.hear(way, Ok(()), &limits).await;
                self.counting.replied(self.clock.own().saturating_sub(began), reply.usage);
                self.replied(turn, &reply, lost).await
            }
            Ok(Trial { came: Err(trouble), limits }) => {
                self.ways.hear(way, Err(&trouble), &limits).await;
                self.troubled(turn, way, &trouble, lost).await
            }
            Err(why) => {
                self.failed(turn, true).await?;
                Ok(Came::Never(why))
            }
        }
    }

    async fn replied(&self, turn: &Turn, reply: &Reply, lost: u32) -> Result<Came, StoreError> {
        match read(turn, reply) {
            Ok((value, was_mended)) => {
                let answer = self.keep(turn, &value, lost).await?;
                self.counting.answered(was_mended);
                Ok(Came::Answered(Settled { answer, was_known: false }))
            }
            Err(why) => {
                self.failed(turn, false).await?;
                self.counting.unusable();
                let then = match reply.ended {
                    // It would say so again.
                    Ended::Declined => Then::Never(Why::Unusable { why: Arc::from(why) }),
                    Ended::Whole | Ended::CutOff => {
                        turn.failures.after_unusable(&self.settings, &why, fastrand::f64())
                    }
                };
                Ok(came(then, lost))
            }
        }
    }

    /// Keeps what was paid for, though the store be busy or away for a while.
    async fn keep(&self, turn: &Turn, value: &Value, lost: u32) -> Result<Answered, StoreError> {
        let bytes = value.to_string().into_bytes();
        for _ in 0..KEEP_AGAIN_MAX {
            match self.memory.keep(turn.id, bytes.clone(), lost).await {
                Err(error @ (StoreError::Busy | StoreError::Unavailable(_) | StoreError::Unknown(_))) => {
                    tracing::warn!(error = error.in_full(), "an answer could not be kept; trying again");
                    tokio::time::sleep(KEEP_AGAIN_AFTER).await;
                }
                kept => return kept,
            }
        }
        self.memory.keep(turn.id, bytes, lost).await
    }

    async fn troubled(
        &self,
        turn: &Turn,
        way: &Way,
        trouble: &Trouble,
        lost: u32,
    ) -> Result<Came, StoreError> {
        let is_lost = trouble.may_be_billed();
        self.failed(turn, is_lost).await?;
        match trouble.verdict.code {
            Some(ErrorCode::RateLimited) => self.counting.throttled(),
            Some(ErrorCode::AnswerUnusable) => self.counting.unusable(),
            _ => (),
        }
        // Of several endpoints it is the one that asked which is left alone; another may take the item sooner.
        let endpoints = self.model.endpoints().len();
        let hint = trouble.verdict.hint.filter(|_| endpoints == 1);
        let hint = hint.map(|hint| hint.min(self.settings.pace.pause_max));
        let failures = turn.failures.at(way.endpoint, trouble);
        let then = failures.after_trouble(&self.settings, endpoints, trouble, hint, fastrand::f64());
        self.tell(way, trouble, &then);
        Ok(came(then, lost.saturating_add(u32::from(is_lost))))
    }

    /// No answer came of a call.
    async fn failed(&self, turn: &Turn, is_lost: bool) -> Result<(), StoreError> {
        self.counting.lost(u32::from(is_lost));
        self.memory.fail(turn.id, is_lost).await
    }

    /// What a person needs of a call that failed: facts of the limit, and nothing that was said (SPEC B8).
    fn tell(&self, way: &Way, trouble: &Trouble, then: &Then) {
        let endpoint = self.model.endpoints().get(way.endpoint).map(String::as_str);
        let code = trouble.verdict.code.map(ErrorCode::as_str);
        let (status, name, hint) = (trouble.status, trouble.name.as_deref(), trouble.verdict.hint);
        match then {
            Then::Again { wait, failures } => tracing::info!(
                model = self.model.name(),
                endpoint,
                code,
                status,
                name,
                ?hint,
                ?wait,
                failures = failures.calls,
                "a call to a model came to nothing and is made again"
            ),
            Then::Never(_) => tracing::warn!(
                model = self.model.name(),
                endpoint,
                code,
                status,
                name,
                "a call to a model came to nothing and is not made again"
            ),
        }
    }
}

/// Another run asks: it is looked at again, and costs no try.
fn theirs(turn: &Turn) -> Came {
    Came::Again { wait: THEIRS_AGAIN_AFTER, failures: turn.failures, lost: turn.lost, is_theirs: true }
}

fn came(then: Then, lost: u32) -> Came {
    match then {
        Then::Again { wait, failures } => Came::Again { wait, failures, lost, is_theirs: false },
        Then::Never(why) => Came::Never(why),
    }
}

/// What was asked for, out of a model's words; the error shows nothing of them.
fn read(turn: &Turn, reply: &Reply) -> Result<(Value, bool), String> {
    let Some(form) = &turn.prompt.form else {
        return Err("nothing says what an answer looks like".to_owned());
    };
    let read = form.read_reply(reply).map_err(|unusable| unusable.to_string())?;
    if (turn.fits)(&read.value) {
        return Ok((read.value, read.was_mended));
    }
    Err("the answer is of the form that was asked for, and still cannot be read".to_owned())
}

fn too_late() -> Trial {
    // No date is in it.
    let verdict = Table::llm().judge(&Seen::Network(NetworkFault::Timeout), Timestamp::EPOCH);
    let why = "no answer came in time".to_owned();
    Trial { came: Err(Trouble { verdict, status: None, name: None, why }), limits: Limits::default() }
}
