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
/// Failures in a row, for reasons unrelated to the items, after which a run asks no more.
const MAX_FAILED_IN_A_ROW: u32 = 5;

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
    /// Items in a row that failed for a reason that may hold for all.
    failed_in_a_row: u32,
    /// The calls that found nobody; `None` once a call reached somebody.
    unreached: Option<u32>,
    /// The failure that holds for all items, if it closed the run.
    failed_all: Option<JudgeEnd>,
}

struct BatchItem {
    /// The next attempt.
    turn: Turn,
    /// Whether the provider asked for the wait before it.
    is_wait_requested: bool,
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
                let turn =
                    Turn { id, prompt, failures, lost: 0, is_new: true, is_asked_elsewhere: false, fits };
                items.push(BatchItem { turn, is_wait_requested: false, outcome: None });
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
            failed_in_a_row: 0,
            unreached: Some(0),
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
            asker.requested_wait.set(due.filter(|_| turns.is_empty() && self.waits_as_requested()));
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
                        self.close(FallbackReason::Deadline);
                        cut_at = Some(Instant::now());
                    }
                    self.renew().await;
                    drop(tokio::time::timeout(GRACE, asker.metrics.flush()).await);
                }
            }
        }
        asker.requested_wait.set(None);
        // The run does not wait to share what a pace has learned, or its counts.
        drop(tokio::time::timeout(GRACE, asker.endpoints.report()).await);
        drop(tokio::time::timeout(GRACE, asker.metrics.flush()).await);
        let counts = asker.metrics.counts().since(&counted);
        match self.broken.take() {
            Some(error) => Err(error),
            None => Ok(Unread { ended: self.ended(), outcomes: self.outcomes(), counts }),
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
        let ends = endpoints.paused().map(|left| clock.elapsed().saturating_add(left));
        metrics.counts().in_flight == 0
            && ends.zip(bounds.deadline).is_some_and(|(ends, deadline)| deadline < ends)
    }

    /// Returns whether the provider asked the next item that waits to wait.
    fn waits_as_requested(&self) -> bool {
        let next = self.again.peek().and_then(|Reverse((_, index))| self.items.get(*index));
        next.is_some_and(|item| item.is_wait_requested)
    }

    /// Assigns free slots, first to items whose next attempt is due, so none waits behind the whole batch.
    fn fill(&mut self, turns: &mut Turns, bounds: &RunBounds) {
        while turns.len() < self.parallel() {
            let due = self.again.peek().is_some_and(|Reverse((due, _))| *due <= Instant::now());
            let next = due.then(|| self.again.pop()).flatten().map(|Reverse((_, index))| index);
            let Some(index) = next.or_else(|| self.fresh.pop_front()) else { return };
            let Some(item) = self.items.get_mut(index) else { return };
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
                (self.failed_in_a_row, self.unreached) = (0, None);
                Ok(settled)
            }
            Ok(TurnOutcome::GiveUp(why)) => {
                self.given_up(&why);
                Err(why)
            }
            Ok(TurnOutcome::Retry(retry)) => {
                self.note_call(&retry);
                let Some(why) = self.closed.clone() else {
                    self.wait(index, &retry);
                    return;
                };
                Err(why)
            }
        };
        self.end(index, outcome);
    }

    /// Puts an item among those that wait for their next attempt.
    fn wait(&mut self, index: usize, retry: &TurnRetry) {
        let TurnRetry { wait, is_requested, failures, lost, is_asked_elsewhere, .. } = *retry;
        if let Some(item) = self.items.get_mut(index) {
            item.turn = Turn { failures, lost, is_asked_elsewhere, ..item.turn.clone() };
            item.is_wait_requested = is_requested;
            self.again.push(Reverse((Instant::now() + wait, index)));
        }
    }

    /// Closes the run if nothing listens there: the first calls found nobody, and no call did better.
    fn note_call(&mut self, retry: &TurnRetry) {
        let (Some(count), false) = (&mut self.unreached, retry.is_asked_elsewhere) else { return };
        let Some(why) = &retry.unreached else {
            self.unreached = None;
            return;
        };
        *count += 1;
        if MAX_FAILED_IN_A_ROW <= *count && self.asker.endpoints.have_all_failed() {
            let (code, why) = (ErrorCode::ConnectFailed, Arc::clone(why));
            self.close_for_all(JudgeEnd::SetUp { code, why });
        }
    }

    /// Closes the run if a failure holds for all items: access denied to the first ones is denied to all, a spent quota
    /// is spent, and where no answer fits, the next one will not.
    fn given_up(&mut self, why: &FallbackReason) {
        let Some(end) = JudgeEnd::of_all(why) else {
            self.failed_in_a_row = 0;
            return;
        };
        self.failed_in_a_row += 1;
        let is_spent = end.code() == Some(ErrorCode::QuotaSpent);
        let is_of_endpoints = matches!(end, JudgeEnd::SetUp { .. });
        if MAX_FAILED_IN_A_ROW <= self.failed_in_a_row
            && (is_spent || !self.has_answered())
            && (!is_of_endpoints || self.asker.endpoints.have_all_failed())
        {
            self.close_for_all(end);
        }
    }

    /// Returns whether this run got an answer.
    fn has_answered(&self) -> bool {
        self.items.iter().any(|item| matches!(&item.outcome, Some(Ok(settled)) if !settled.was_known))
    }

    /// Closes the run for a reason that holds for all items.
    fn close_for_all(&mut self, end: JudgeEnd) {
        if let (Some(code), None) = (end.code(), &self.closed) {
            self.failed_all = Some(end);
            self.close(FallbackReason::SetUp { code });
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
            self.end(index, Err(why.clone()));
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
            _ if whys().any(|why| *why == FallbackReason::Deadline) => JudgeEnd::Deadline,
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
