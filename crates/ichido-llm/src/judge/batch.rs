//! Schedules a run: assigns slots to items and decides when the run ends.
//!
//! A slot is held for a call, not for an item. An item waits its interval inside its slot, but the backoff of a retry
//! outside: the slot goes to the next item, and an item whose retry is due comes before a new one. So an item that is
//! throttled to the end delays nothing, and a run with few slots does not stop while all its items wait.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ichido_core::verdict::ErrorCode;
use ichido_store::answer::QuestionId;
use ichido_store::error::StoreError;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use super::answers::RENEW_EVERY;
use super::attempt::{Asker, RunBounds, Turn, TurnOutcome, TurnRetry};
use super::next::Failures;
use super::outcome::{FallbackReason, JudgeEnd, Settled, Unread};
use super::stop::{Stop, StopStage};
use crate::models::Prompt;

/// How long a run that must end waits for pending store writes, and the timeout of each renewal.
const GRACE: Duration = Duration::from_millis(500);
/// Items in a row that failed for one reason, after which a run that got no answer asks no more.
const MAX_FAILED_IN_A_ROW: u32 = 5;
/// The same for answers that did not fit, in a run that got answers.
const MAX_CUT_OFF_IN_A_ROW: u32 = 10;
/// Calls that all failed in one way, after which a run asks no more, if fewer are in flight at once.
const MAX_FAILED_CALLS: u32 = 15;
/// Answers that fitted only with twice the tokens, after which new items start with those.
const MAX_FITTED_LATE: u32 = 5;

pub(super) struct BatchRun {
    asker: Arc<Asker>,
    /// Each question once.
    items: Vec<BatchItem>,
    /// The index in `items` of each prompt.
    order: Vec<usize>,
    /// Items that have not had a slot yet.
    fresh: VecDeque<usize>,
    /// Items that wait for their next attempt, by due time.
    again: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Why no more slots are assigned.
    closed: Option<FallbackReason>,
    /// The store error that closed the run, if any.
    broken: Option<StoreError>,
    /// The items in a row that failed for a reason that may hold for all, and how a run ends for it.
    failed_in_a_row: Option<(JudgeEnd, u32)>,
    /// The answers that fitted only with twice the tokens.
    fitted_late: u32,
    /// The calls so far, and how a run ends in which all fail as they did; `None` once one did otherwise.
    failed_calls: Option<(Option<JudgeEnd>, u32)>,
    /// The failure that holds for all items, if it closed the run.
    failed_all: Option<JudgeEnd>,
}

struct BatchItem {
    /// The next attempt.
    turn: Turn,
    /// The index of its first prompt.
    prompt: usize,
    /// Why its last attempt failed.
    last: Option<FallbackReason>,
    outcome: Option<Result<Settled, FallbackReason>>,
}

type Turns = JoinSet<(usize, Result<TurnOutcome, StoreError>)>;

impl BatchRun {
    pub(super) fn new(
        asker: Arc<Asker>,
        questions: impl Iterator<Item = (QuestionId, Prompt)>,
        fits: fn(&Value) -> bool,
    ) -> Self {
        let (mut items, mut order, mut indexes) = (Vec::new(), Vec::new(), HashMap::new());
        for (id, prompt) in questions {
            let index = *indexes.entry(id).or_insert_with(|| {
                let (failures, prompt) = (Failures::default(), Arc::new(prompt));
                let (is_asked_elsewhere, starts_doubled) = (false, false);
                let turn = Turn {
                    id,
                    prompt,
                    failures,
                    lost: 0,
                    is_new: true,
                    is_asked_elsewhere,
                    starts_doubled,
                    fits,
                };
                items.push(BatchItem { turn, prompt: order.len(), last: None, outcome: None });
                items.len() - 1
            });
            order.push(index);
        }
        Self {
            asker,
            items,
            order,
            fresh: VecDeque::new(),
            again: BinaryHeap::new(),
            closed: None,
            broken: None,
            failed_in_a_row: None,
            fitted_late: 0,
            failed_calls: Some((None, 0)),
            failed_all: None,
        }
    }

    pub(super) async fn run(mut self, stop: &Stop) -> Result<Unread, StoreError> {
        let asker = Arc::clone(&self.asker);
        let counted = asker.metrics.counts();
        let began = asker.clock.elapsed();
        self.look().await?;
        let deadline = asker.settings.deadline.map(|deadline| began.saturating_add(deadline));
        let bounds = RunBounds { deadline, stop: stop.clone() };
        let mut turns = Turns::new();
        // When the run stops waiting for calls in flight.
        let mut cut_at = None;
        let mut renew = tokio::time::interval_at(Instant::now() + RENEW_EVERY, RENEW_EVERY);
        renew.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.fill(&mut turns, &bounds);
            if turns.is_empty() && self.again.is_empty() {
                break;
            }
            let due = self.again.peek().map(|Reverse((due, _))| *due);
            let has_room = turns.len() < self.parallel();
            tokio::select! {
                Some(turn) = turns.join_next() => match turn {
                    Ok((index, outcome)) => self.settle(index, outcome),
                    Err(error) => if let Ok(panic) = error.try_into_panic() { std::panic::resume_unwind(panic) },
                },
                () = sleep_until(due), if has_room => (),
                () = bounds.expired(&asker.clock), if cut_at.is_none() => {
                    self.close(FallbackReason::Deadline);
                    cut_at = Some(Instant::now() + GRACE);
                }
                () = stop.reached(StopStage::AtOnce), if cut_at.is_none() => {
                    self.close(FallbackReason::Stopped);
                    cut_at = Some(Instant::now() + GRACE);
                }
                // The store does not respond: what it has recorded stays, and the rest is lost.
                () = sleep_until(cut_at) => {
                    turns.shutdown().await;
                    self.abandon();
                }
                () = stop.reached(StopStage::Finishing), if self.closed.is_none() => self.close(FallbackReason::Stopped),
                _ = renew.tick() => {
                    // No call is possible before the deadline, so waiting for it only costs time.
                    if cut_at.is_none() && self.is_paused_beyond(&bounds) {
                        self.close(FallbackReason::Paused);
                        cut_at = Some(Instant::now());
                    }
                    self.renew().await;
                    drop(tokio::time::timeout(GRACE, asker.metrics.flush()).await);
                }
            }
        }
        // The run does not wait to share what a pace has learned, or its counts.
        drop(tokio::time::timeout(GRACE, asker.endpoints.report()).await);
        drop(tokio::time::timeout(GRACE, asker.metrics.flush()).await);
        let (counts, endpoints) = (asker.metrics.counts().since(&counted), asker.endpoints.status());
        match self.broken.take() {
            Some(error) => Err(error),
            None => Ok(Unread { ended: self.ended(), outcomes: self.outcomes(), counts, endpoints }),
        }
    }

    fn parallel(&self) -> usize {
        usize::try_from(self.asker.settings.parallel.get()).unwrap_or(usize::MAX)
    }

    /// Finds the questions that already have an answer.
    async fn look(&mut self) -> Result<(), StoreError> {
        self.asker.sync_clock().await?;
        let mut found = self.asker.answers.find(self.items.iter().map(|item| item.turn.id)).await?;
        for (index, item) in self.items.iter_mut().enumerate() {
            let question = found.remove(&item.turn.id);
            item.turn.lost = question.as_ref().map_or(0, |question| question.lost);
            match question.and_then(|question| question.answer) {
                Some(answer) => item.outcome = Some(Ok(Settled { answer, was_known: true })),
                None => self.fresh.push_back(index),
            }
        }
        let missing = self.fresh.len();
        self.asker.metrics.batch(missing, self.items.len() - missing);
        Ok(())
    }

    /// Returns whether the provider asked for a pause that ends after the deadline, and no call is in flight.
    fn is_paused_beyond(&self, bounds: &RunBounds) -> bool {
        let Asker { endpoints, metrics, clock, .. } = &*self.asker;
        let ends = endpoints.paused().map(|pause| clock.elapsed().saturating_add(pause.left));
        metrics.counts().in_flight == 0
            && ends.zip(bounds.deadline).is_some_and(|(ends, deadline)| deadline < ends)
    }

    /// Assigns free slots, first to items whose next attempt is due, so none waits behind the whole batch.
    fn fill(&mut self, turns: &mut Turns, bounds: &RunBounds) {
        while turns.len() < self.parallel() {
            let due = self.again.peek().is_some_and(|Reverse((due, _))| *due <= Instant::now());
            let next = due.then(|| self.again.pop()).flatten().map(|Reverse((_, index))| index);
            let Some(index) = next.or_else(|| self.fresh.pop_front()) else { return };
            let Some(item) = self.items.get_mut(index) else { return };
            item.turn.starts_doubled |= item.turn.is_new && MAX_FITTED_LATE <= self.fitted_late;
            let turn = item.turn.clone();
            item.turn.is_new = false;
            let (asker, bounds) = (Arc::clone(&self.asker), bounds.clone());
            turns.spawn(async move { (index, asker.turn(&turn, &bounds).await) });
        }
    }

    fn settle(&mut self, index: usize, outcome: Result<TurnOutcome, StoreError>) {
        let outcome = match outcome {
            Err(error) => {
                self.broken.get_or_insert(error);
                self.close(FallbackReason::Stopped);
                Err(FallbackReason::Stopped)
            }
            Ok(TurnOutcome::Answered(settled)) => {
                (self.failed_in_a_row, self.failed_calls) = (None, None);
                let was_cut_off = self.items.get(index).is_some_and(|item| item.turn.failures.was_cut_off);
                self.fitted_late += u32::from(was_cut_off && !settled.was_known);
                Ok(settled)
            }
            Ok(TurnOutcome::GiveUp(why)) => {
                if let Some(item) = self.items.get(index).filter(|_| self.closed.is_none()) {
                    self.asker.given_up.add(item.prompt, &why);
                }
                self.given_up(&why);
                Err(why)
            }
            Ok(TurnOutcome::Retry(retry)) => {
                self.note_call(&retry);
                let Some(closed) = &self.closed else {
                    self.wait(index, retry);
                    return;
                };
                Err(closed.of_waiting(retry.why.as_ref()))
            }
        };
        self.end(index, outcome);
    }

    /// Puts an item among those that wait for their next attempt.
    fn wait(&mut self, index: usize, retry: TurnRetry) {
        let TurnRetry { wait, why, failures, lost } = retry;
        if let Some(item) = self.items.get_mut(index) {
            let is_asked_elsewhere = why.is_none();
            item.turn = Turn { failures, lost, is_asked_elsewhere, ..item.turn.clone() };
            item.last = why.or(item.last.take());
            self.again.push(Reverse((Instant::now() + wait, index)));
        }
    }

    /// Closes the run if all its calls failed in the same way, so that it does not wait for the retries of its items:
    /// nothing listens there, connections break, or the answers have another form.
    fn note_call(&mut self, retry: &TurnRetry) {
        // The second answer may fit.
        let Some(why) = retry.why.as_ref().filter(|why| !matches!(why, FallbackReason::CutOff { .. })) else {
            return;
        };
        let (Some(end), Some((before, count))) = (JudgeEnd::of_many(why), self.failed_calls.take()) else {
            return;
        };
        if before.is_some_and(|before| !before.is_same(&end)) {
            return;
        }
        let is_nobody_there = matches!(why, FallbackReason::Unreached { code: ErrorCode::ConnectFailed, .. });
        let max_count = if is_nobody_there { MAX_FAILED_IN_A_ROW } else { self.max_failed_calls() };
        let count = count + 1;
        self.failed_calls = Some((Some(end.clone()), count));
        if max_count <= count && (!why.is_of_endpoints() || self.asker.endpoints.have_all_failed()) {
            self.close_for_all(end);
        }
    }

    /// Returns after how many calls that all failed in the same way a run ends: what is in flight at one moment is too
    /// little.
    fn max_failed_calls(&self) -> u32 {
        MAX_FAILED_CALLS.max(self.asker.settings.parallel.get().saturating_mul(2))
    }

    /// Closes the run if a failure holds for all items: access denied to the first ones is denied to all, a spent quota
    /// is spent, where no answer fits, the next one will not, and the same refusal is not about the items.
    fn given_up(&mut self, why: &FallbackReason) {
        let Some(end) = JudgeEnd::of_many(why) else {
            self.failed_in_a_row = None;
            return;
        };
        let before = self.failed_in_a_row.take().filter(|(before, _)| before.is_same(&end));
        let count = before.map_or(0, |(_, count)| count) + 1;
        let max_count = match &end {
            _ if !self.has_answered() => MAX_FAILED_IN_A_ROW,
            JudgeEnd::SetUp { code: ErrorCode::QuotaSpent, .. } => MAX_FAILED_IN_A_ROW,
            JudgeEnd::CutOff { .. } => MAX_CUT_OFF_IN_A_ROW,
            _ => u32::MAX,
        };
        self.failed_in_a_row = Some((end.clone(), count));
        if max_count <= count && (!why.is_of_endpoints() || self.asker.endpoints.have_all_failed()) {
            self.close_for_all(end);
        }
    }

    /// Returns whether this run got an answer.
    fn has_answered(&self) -> bool {
        self.items.iter().any(|item| matches!(&item.outcome, Some(Ok(settled)) if !settled.was_known))
    }

    /// Closes the run for a reason that holds for all items.
    fn close_for_all(&mut self, end: JudgeEnd) {
        if self.closed.is_none() {
            self.close(end.of_others());
            self.failed_all = Some(end);
        }
    }

    /// Assigns no more slots; calls in flight finish on their own.
    fn close(&mut self, why: FallbackReason) {
        if self.closed.is_some() {
            return;
        }
        let waiting: Vec<usize> =
            self.fresh.drain(..).chain(self.again.drain().map(|Reverse((_, index))| index)).collect();
        for index in waiting {
            let last = self.items.get(index).and_then(|item| item.last.as_ref());
            let why = why.of_waiting(last);
            self.end(index, Err(why));
        }
        self.closed = Some(why);
    }

    /// Ends every item that still has a slot.
    fn abandon(&mut self) {
        let why = self.closed.clone().unwrap_or(FallbackReason::Stopped);
        for index in 0..self.items.len() {
            if self.items.get(index).is_some_and(|item| item.outcome.is_none()) {
                self.end(index, Err(why.clone()));
            }
        }
    }

    fn end(&mut self, index: usize, outcome: Result<Settled, FallbackReason>) {
        if outcome.is_err() {
            self.asker.metrics.fallback();
        }
        if let Some(item) = self.items.get_mut(index) {
            item.outcome = Some(outcome);
        }
    }

    /// Renews the lease and synchronizes the clock.
    async fn renew(&mut self) {
        let renewing = async { self.asker.answers.renew().await.and(self.asker.sync_clock().await) };
        let why = match tokio::time::timeout(GRACE, renewing).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.with_causes(),
            Err(_) => "the store did not respond in time".to_owned(),
        };
        tracing::warn!(error = why, "failed to renew this run's lease; retrying");
    }

    fn ended(&self) -> JudgeEnd {
        let whys = || self.items.iter().filter_map(|item| item.outcome.as_ref()?.as_ref().err());
        let fails_for_all = |why: &FallbackReason| {
            matches!(why, FallbackReason::SetUp { .. }) || JudgeEnd::of_all(why).is_some()
        };
        if let Some(end) = &self.failed_all {
            return end.clone();
        }
        match whys().find_map(JudgeEnd::of_all) {
            // Too few items to end the run early.
            Some(end) if !self.has_answered() && whys().all(fails_for_all) => end,
            _ if whys().any(|why| *why == FallbackReason::Stopped) => JudgeEnd::Stopped,
            _ if whys().any(|why| why.as_str() == FallbackReason::Deadline.as_str()) => JudgeEnd::Deadline,
            _ => JudgeEnd::Whole,
        }
    }

    fn outcomes(self) -> Vec<Result<Settled, FallbackReason>> {
        // Every question has an outcome: the run ends only when each one has ended.
        let outcome = |index: usize| self.items.get(index).and_then(|item| item.outcome.clone());
        self.order.iter().map(|index| outcome(*index).unwrap_or(Err(FallbackReason::Stopped))).collect()
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
