//! Looks up unknown effects at destinations that support it.
//!
//! It waits until no call can still be in flight.
//!
//! The result decides about a parked message. A dead letter stays dead, and its effect becomes known: that decides whether
//! it may be requeued or replaced.
// Spec: F2, D17.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::lifecycle::{Reconciled, State};
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use ichido_store::dead_letter::{DeadLetterFilter, DeadLetterRow};
use ichido_store::message::{DeadLetterState, Note, StepResult};
use ichido_store::node::SingletonTask;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::maintenance::{PeriodicTask, ok_or_log};
use super::metrics::{self, Outcome};
use super::node::{ServedQueue, WorkerNode};
use super::resolved::{Resolution, record_resolution};
use super::settings::limits;
use super::settle::named;
use crate::destination::ReconcileOutcome;

/// The time between checks for letters that can be looked up for the first time, and whether a pass is due.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// The most letters of a queue per round.
const PAGE: u32 = 100;
/// The most concurrent lookups per destination.
const ASK_AT_ONCE: usize = 8;

pub(super) struct Reconciler {
    node: Arc<WorkerNode>,
    passes: Vec<ReconcilePass>,
}

/// A pass over the letters of one queue whose effect is unknown.
struct ReconcilePass {
    served: Arc<ServedQueue>,
    filter: DeadLetterFilter,
    /// The last letter that was checked.
    after: Option<(Timestamp, Uuid)>,
    /// When the next pass begins, by the local clock.
    next_pass_at: Duration,
    /// When it last checked for letters, by the store's clock.
    checked_at: Timestamp,
    /// The newest letters that were looked up, at most a page.
    asked: HashSet<Uuid>,
}

impl PeriodicTask for Reconciler {
    const EVERY: Duration = CHECK_EVERY;

    /// Processes one page of each queue.
    async fn run_once(&mut self) {
        for pass in &mut self.passes {
            let may_ask = pass.served.dispatcher.pacer.stopped().is_none();
            if !may_ask || !self.node.has(SingletonTask::Parked(&pass.served.name)).await {
                continue;
            }
            if self.node.clock.elapsed() < pass.next_pass_at {
                pass.ask_new(&self.node).await;
            } else {
                pass.run_once(&self.node).await;
            }
        }
    }
}

impl Reconciler {
    pub(super) fn new(node: Arc<WorkerNode>) -> Self {
        let askable = node.queues.values().filter(|served| served.dispatcher.destination.can_reconcile());
        let passes_for = |served: &Arc<ServedQueue>| {
            [DeadLetterState::Parked, DeadLetterState::Dead].map(|state| ReconcilePass::new(served, state))
        };
        let passes = askable.flat_map(passes_for).collect();
        Self { node, passes }
    }
}

impl ReconcilePass {
    fn new(served: &Arc<ServedQueue>, state: DeadLetterState) -> Self {
        let filter = DeadLetterFilter {
            state,
            queue: Some(served.name.clone()),
            effect: Some(Effect::Unknown),
            ..DeadLetterFilter::default()
        };
        Self {
            served: Arc::clone(served),
            filter,
            after: None,
            next_pass_at: Duration::ZERO,
            checked_at: Timestamp::EPOCH,
            asked: HashSet::new(),
        }
    }

    /// Looks up the letters that became ready since the last check, so nobody waits for the next pass.
    ///
    /// The newest ones, at most a page: a pass finds the others.
    async fn ask_new(&mut self, node: &Arc<WorkerNode>) {
        let now = node.clock.now();
        // The local estimate of the store's clock may be ahead a little.
        let window = self.served.dispatcher.max_time_in_flight() + CHECK_EVERY;
        let window = i64::try_from(window.as_micros()).unwrap_or(i64::MAX);
        let since_from = Timestamp::from_micros(self.checked_at.as_micros().saturating_sub(window));
        let recent = DeadLetterFilter { since_from: Some(since_from), ..self.filter.clone() };
        let letters = node.store.dead_letters().page(&recent, None, PAGE).await;
        let Some(mut letters) = ok_or_log("failed to list messages of unknown effect", letters) else {
            return;
        };
        letters.retain(|letter| ready_at(letter) <= now);
        let asked = self.remember(&letters, now);
        letters.retain(|letter| !asked.contains(&letter.id));
        self.ask_all(node, letters).await;
    }

    /// Remembers the newest letters that are looked up. Returns those remembered before.
    fn remember(&mut self, letters: &[DeadLetterRow], now: Timestamp) -> HashSet<Uuid> {
        self.checked_at = now;
        std::mem::replace(&mut self.asked, letters.iter().map(|letter| letter.id).collect())
    }

    /// Looks up a page of a pass over all letters.
    async fn run_once(&mut self, node: &Arc<WorkerNode>) {
        let now = node.clock.now();
        let letters = node.store.dead_letters().page(&self.filter, self.after, PAGE).await;
        let Some(mut letters) = ok_or_log("failed to list messages of unknown effect", letters) else {
            return;
        };
        let (is_first, is_last) = (self.after.is_none(), letters.len() < PAGE as usize);
        self.after = letters.last().map(|letter| (letter.since, letter.id)).filter(|_| !is_last);
        if is_last {
            let every = match self.filter.state {
                DeadLetterState::Parked => limits::ASK_PARKED_EVERY,
                DeadLetterState::Dead => limits::ASK_DEAD_EVERY,
            };
            self.next_pass_at = node.clock.elapsed() + every;
        }
        letters.retain(|letter| ready_at(letter) <= now);
        if is_first {
            self.remember(&letters, now);
        }
        self.ask_all(node, letters).await;
    }

    async fn ask_all(&self, node: &Arc<WorkerNode>, letters: Vec<DeadLetterRow>) {
        let mut letters = letters.into_iter();
        let mut asking = JoinSet::new();
        let mut unknown = Vec::new();
        loop {
            while asking.len() < ASK_AT_ONCE {
                let Some(letter) = letters.next() else { break };
                asking.spawn(ask(Arc::clone(node), Arc::clone(&self.served), letter));
            }
            let Some(asked) = asking.join_next().await else { break };
            unknown.extend(asked.ok().flatten());
        }
        if !unknown.is_empty() {
            let noted = node.store.dead_letters().note_asked(&unknown).await;
            ok_or_log("failed to note which messages were looked up", noted);
        }
    }
}

/// Returns when a letter can be looked up: once no call can still be in transit.
fn ready_at(letter: &DeadLetterRow) -> Timestamp {
    letter.history.doubt.map_or(letter.since, |doubt| doubt.in_flight_until.max(letter.since))
}

/// Returns from when on "not done" counts. A receiver that answered with an error may have handed the work on before, so its
/// record of it may appear later; a person who knows better can decide at once.
fn not_done_from(in_flight_until: Timestamp, since: Timestamp, max_time_in_flight: Duration) -> Timestamp {
    let is_answered = in_flight_until <= since;
    if is_answered { since.plus(max_time_in_flight) } else { in_flight_until }
}

/// Looks up one message and records the result. Returns its id if its effect is still unknown.
async fn ask(node: Arc<WorkerNode>, served: Arc<ServedQueue>, letter: DeadLetterRow) -> Option<Uuid> {
    let key = served.outbound(&letter.identity, &letter.key);
    let failure = NonZeroU32::new(letter.history.attempts).unwrap_or(NonZeroU32::MIN);
    let wait = served.settings.retry.wait(failure, fastrand::f64(), None);
    let asked = served.dispatcher.destination.reconcile(&key).await;
    let (queue, id, key) = (served.name.as_str(), letter.id, letter.key.log_hash());
    let state = letter.state.as_str();
    tracing::info!(queue, message_id = %id, key, state, ?asked, "looked up a message of unknown effect");
    let (was_done, evidence) = match asked {
        ReconcileOutcome::Done { note } => (true, note),
        // The next pass asks again.
        ReconcileOutcome::NotDone { .. }
            if letter.history.doubt.is_some_and(|doubt| {
                let max_time_in_flight = served.dispatcher.max_time_in_flight();
                node.clock.now() < not_done_from(doubt.in_flight_until, letter.since, max_time_in_flight)
            }) =>
        {
            return Some(id);
        }
        ReconcileOutcome::NotDone { note } => (false, note),
        ReconcileOutcome::Unknown { .. } => return Some(id),
    };
    let excerpt = evidence.excerpt.or_else(|| Some("looked up by key at the destination".to_owned()));
    // The request is not at hand; a look-up carries only its key.
    let evidence = served.stored(Note { excerpt, ..evidence }, None);
    let due = node.clock.now().plus(wait);
    let found = if was_done { Reconciled::Done } else { Reconciled::NotDone { due } };
    let stepped = node.store.messages().reconcile(id, found, &evidence).await;
    let stepped = ok_or_log("failed to store the looked-up effect of a message", stepped);
    let Some(StepResult::Now(state)) = stepped else { return None };
    let State::Dead { effect, .. } = state else {
        record_resolution(&served.name, Resolution::Reconciled, letter.since, node.clock.now());
        return None;
    };
    // Still a letter, for a person to decide.
    match letter.state {
        DeadLetterState::Parked => {
            metrics::count_outcome(queue, Outcome::Dead);
            node.store.counters().dead(queue, None);
            let (item, error) = named(letter.item.as_deref(), evidence.excerpt.as_deref());
            tracing::warn!(queue, message_id = %id, key, item, error, ?effect, "dead_letter: message not done, no attempts left");
        }
        DeadLetterState::Dead => {
            tracing::info!(queue, message_id = %id, key, ?effect, "effect of a dead letter became known");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_done_counts_when_nothing_can_happen_any_more() {
        let (since, max_time_in_flight) = (Timestamp::from_secs(100), Duration::from_mins(1));
        let lost = Timestamp::from_secs(130);
        assert_eq!(not_done_from(lost, since, max_time_in_flight), lost);
        for answered in [Timestamp::from_secs(90), since] {
            assert_eq!(not_done_from(answered, since, max_time_in_flight), Timestamp::from_secs(160));
        }
    }
}
