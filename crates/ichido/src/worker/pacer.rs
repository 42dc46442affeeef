//! The pace of a destination on this node.
//!
//! All nodes share what they know of it in one row of the store.
//!
//! Guarantee: no call is made while the row says that the destination is paused or down; it is read at every claim and is
//! at most [`FRESH_FOR`] old. Under a rate limit, every call has a slot that no other node has. A throttled call is in the
//! row before its message is settled.

mod row;
mod shared;
mod status;
mod storage;

pub use row::PaceChange;
pub use shared::{DestinationPace, Paces};

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_core::pace::Opening;
use ichido_core::pace::{Circuit, Grant, Pace, PaceSettings, PauseReason, PerSecond, Rate};
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{PaceReport, Verdict};
use ichido_store::Store;
use ichido_store::error::StoreError;
use tokio::sync::oneshot;

use crate::clock::Clock;
use row::Row;
use status::StatusReporter;
use storage::PaceStorage;

/// How long a read row is trusted while calls are made.
///
/// Successes wait as long to be reported.
pub const FRESH_FOR: Duration = Duration::from_secs(1);
/// The most attempts of an update while other nodes are faster.
const MAX_ROUNDS: usize = 16;
/// The most throttles and failures waiting to be reported; more would add nothing.
const MAX_PENDING: usize = 1_000;

/// The pace of one destination on this node.
pub struct Pacer {
    name: String,
    settings: PaceSettings,
    storage: PaceStorage,
    clock: Arc<Clock>,
    /// The row as last read or written, and when.
    known: Mutex<(Row, Option<Duration>)>,
    status: StatusReporter,
    pending: Mutex<PendingReports>,
    waiters: Mutex<Vec<SlotRequest>>,
    /// Serialises reads and updates; later requests join the next one.
    update_lock: tokio::sync::Mutex<()>,
}

/// Reports about the destination that are not in the row yet.
#[derive(Default)]
struct PendingReports {
    successes: u32,
    throttles: Vec<(Timestamp, Option<Duration>)>,
    failures: Vec<(Timestamp, CallKind)>,
}

/// The kind of call: what its failure says about the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// For a message without a failed attempt.
    First,
    /// For a message that failed before, and may be bad itself.
    // Spec: E2.
    Retry,
}

/// A request for a slot.
struct SlotRequest {
    caller: CallKind,
    sender: oneshot::Sender<Slot>,
}

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// At this moment, and not sooner.
    At(Timestamp),
    /// Not before this moment.
    NotBefore(Timestamp, PauseReason),
}

impl Pacer {
    /// Creates the pace of `name`, shared through the store.
    ///
    /// Without a store, local to this process.
    pub fn new(name: String, settings: PaceSettings, store: Option<&Store>, clock: Arc<Clock>) -> Self {
        Self {
            status: StatusReporter::new(&name),
            name,
            settings,
            storage: store.map_or_else(PaceStorage::alone, |store| PaceStorage::Shared(store.clone())),
            clock,
            known: Mutex::new((Row::NEW, None)),
            pending: Mutex::default(),
            waiters: Mutex::default(),
            update_lock: tokio::sync::Mutex::new(()),
        }
    }

    /// Returns the time of one call.
    pub async fn slot(&self, caller: CallKind) -> Slot {
        if let Some(slot) = self.free_slot(self.clock.elapsed()) {
            return slot;
        }
        // Boxed because it is rare, and every attempt's future would carry its size.
        Box::pin(self.request_slot(caller)).await
    }

    async fn request_slot(&self, caller: CallKind) -> Slot {
        // Perhaps the row is only stale.
        self.refresh(self.clock.elapsed().saturating_sub(FRESH_FOR)).await;
        if let Some(slot) = self.free_slot(self.clock.elapsed()) {
            return slot;
        }
        let (sender, mut receiver) = oneshot::channel();
        lock(&self.waiters).push(SlotRequest { caller, sender });
        let _update = self.update_lock.lock().await;
        if let Ok(slot) = receiver.try_recv() {
            return slot;
        }
        self.grant_slots().await;
        // No slot means that the row could not be read or updated: the store is unreachable, and settling would fail too.
        receiver
            .try_recv()
            .unwrap_or_else(|_| Slot::NotBefore(self.clock.now().plus(FRESH_FOR), PauseReason::Rate))
    }

    /// Returns the known pace and the effective settings.
    fn pace(&self) -> (Pace, PaceSettings) {
        let (row, _) = &*lock(&self.known);
        (row.pace, row.settings(&self.settings))
    }

    /// Returns why and until when nothing may be sent, as far as is known here.
    pub fn stopped(&self) -> Option<(Timestamp, PauseReason)> {
        let (pace, settings) = self.pace();
        pace.stopped(&settings, self.clock.now())
    }

    /// Returns the rate that was learned from refusals, as far as is known here.
    pub fn learned_rate(&self) -> Option<PerSecond> {
        let (pace, settings) = self.pace();
        matches!(pace.rate, Rate::Paced(_)).then(|| pace.rate.limit(&settings)).flatten()
    }

    /// Returns the longest pause that the destination may request.
    pub(crate) fn max_pause(&self) -> Duration {
        self.settings.max_pause
    }

    /// Returns when to claim the next message, if not now, as known here.
    pub(crate) fn closed_until(&self) -> Option<Timestamp> {
        let (pace, settings) = self.pace();
        pace.closed_until(&settings, self.clock.now())
    }

    /// Returns when it can accept a call, to choose among several destinations.
    pub fn opening(&self) -> Opening {
        let (pace, settings) = self.pace();
        pace.opening(&settings, self.clock.now())
    }

    /// Returns how many of `count` messages to claim.
    ///
    /// About one second's worth at the current pace.
    pub(crate) fn claim_size(&self, count: NonZeroU32) -> NonZeroU32 {
        let (pace, settings) = self.pace();
        let Some(limit) = pace.limit(&settings) else { return count };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is from 0 to 100,000"
        )]
        let in_a_second = limit.get().ceil() as u32;
        NonZeroU32::new(in_a_second.min(count.get())).unwrap_or(NonZeroU32::MIN)
    }

    /// Records a call's verdict.
    ///
    /// A throttle or failure is in the row when this returns, if the store was reachable.
    pub async fn record_verdict(&self, verdict: &Verdict, sent: Timestamp, caller: CallKind) {
        {
            let pending = &mut *lock(&self.pending);
            match verdict.pace_report() {
                None => return,
                Some(PaceReport::Success) => {
                    pending.successes = pending.successes.saturating_add(1);
                    return;
                }
                Some(PaceReport::Throttled) if pending.throttles.len() < MAX_PENDING => {
                    pending.throttles.push((sent, verdict.hint));
                }
                Some(PaceReport::Failure) if pending.failures.len() < MAX_PENDING => {
                    pending.failures.push((sent, caller));
                }
                Some(PaceReport::Throttled | PaceReport::Failure) => (),
            }
        }
        // Boxed for the same reason.
        Box::pin(self.report()).await;
    }

    /// Records calls that succeeded, to be reported with the next read.
    pub(super) fn record_successes(&self, count: u32) {
        let pending = &mut *lock(&self.pending);
        pending.successes = pending.successes.saturating_add(count);
    }

    /// Reads the row, unless it was read since that local time.
    pub async fn refresh(&self, since: Duration) {
        let _update = self.update_lock.lock().await;
        if lock(&self.known).1.is_some_and(|read| since <= read) {
            return;
        }
        if let Err(error) = self.read().await {
            self.warn(&error, "failed to read the pace of a destination");
        }
    }

    /// Reports the destination's status in metrics and logs, as far as is known here.
    pub(crate) fn report_status(&self) {
        self.status.report(&self.name, &self.settings, || {
            let row = lock(&self.known).0.clone();
            (row, self.clock.now())
        });
    }

    /// Writes pending reports to the row.
    pub async fn report(&self) {
        let _update = self.update_lock.lock().await;
        if lock(&self.pending).is_empty() {
            return;
        }
        if let Err(error) = self.change(|pace, _, _| (pace, ())).await {
            self.warn(&error, "failed to write the pace of a destination; retrying");
        }
    }

    /// Returns a slot at this local time without a query, if unlimited and the row is fresh.
    pub(super) fn free_slot(&self, at: Duration) -> Option<Slot> {
        let (row, read) = &*lock(&self.known);
        let settings = row.settings(&self.settings);
        let is_fresh = at.saturating_sub((*read)?) < FRESH_FOR;
        let is_closed = matches!(row.pace.circuit, Circuit::Closed { .. });
        if !is_fresh || !is_closed || row.pace.limit(&settings).is_some() {
            return None;
        }
        let now = self.clock.at(at);
        Some(match row.pace.stopped(&settings, now) {
            None => Slot::At(now),
            Some((until, why)) => Slot::NotBefore(until, why),
        })
    }

    /// Reserves as many slots as requested and grants them in order.
    ///
    /// While the circuit is not closed, calls without a failed attempt come first.
    async fn grant_slots(&self) {
        let mut waiters = std::mem::take(&mut *lock(&self.waiters));
        waiters.retain(|waiter| !waiter.sender.is_closed());
        let again = waiters.iter().filter(|waiter| waiter.caller == CallKind::Retry).count();
        let counts = [non_zero(waiters.len()), non_zero(waiters.len() - again), non_zero(again)];
        let [Some(all), fresh, again] = counts else { return };
        let reserve = |pace: Pace, settings: &PaceSettings, now| {
            if matches!(pace.circuit, Circuit::Closed { .. }) {
                let (pace, grant) = pace.reserve(settings, now, all);
                return (pace, Granted::ToAll(grant));
            }
            let (pace, fresh) = reserve_some(fresh, pace, |pace, count| pace.reserve(settings, now, count));
            let (pace, again) =
                reserve_some(again, pace, |pace, count| pace.reserve_again(settings, now, count));
            (pace, Granted::Apart { fresh, again })
        };
        match self.change(reserve).await {
            Ok(Granted::ToAll(grant)) => deliver_slots(waiters, Some(grant)),
            Ok(Granted::Apart { fresh, again }) => {
                let (first, others) =
                    waiters.into_iter().partition(|waiter| waiter.caller == CallKind::First);
                deliver_slots(first, fresh);
                deliver_slots(others, again);
            }
            Err(error) => self.warn(&error, "failed to reserve call slots; retrying"),
        }
    }

    fn warn(&self, error: &StoreError, what: &str) {
        tracing::warn!(error = error.with_causes(), destination = self.name, "{what}");
    }

    /// Applies pending reports and then `ask` to the row, by compare-and-swap.
    async fn change<T>(
        &self,
        ask: impl Fn(Pace, &PaceSettings, Timestamp) -> (Pace, T),
    ) -> Result<T, StoreError> {
        let pending = std::mem::take(&mut *lock(&self.pending));
        let mut changed = Err(StoreError::Busy);
        for _ in 0..MAX_ROUNDS {
            match self.change_once(&pending, &ask).await {
                Ok(None) => (),
                Ok(Some(answer)) => return Ok(answer),
                Err(error) => {
                    changed = Err(error);
                    break;
                }
            }
        }
        lock(&self.pending).add(pending);
        changed
    }

    /// Returns `None` if another node was faster.
    async fn change_once<T>(
        &self,
        pending: &PendingReports,
        ask: impl Fn(Pace, &PaceSettings, Timestamp) -> (Pace, T),
    ) -> Result<Option<T>, StoreError> {
        let row = self.read().await?;
        let (settings, now) = (row.settings(&self.settings), self.clock.now());
        let (pace, answer) = ask(pending.apply(row.pace, &settings, now), &settings, now);
        if pace == row.pace {
            return Ok(Some(answer));
        }
        let next = Row { pace, ..row };
        let asked_at = self.clock.elapsed();
        if !self.storage.write(&self.name, &next).await? {
            return Ok(None);
        }
        *lock(&self.known) = (Row { version: next.version + 1, ..next }, Some(asked_at));
        self.report_status();
        Ok(Some(answer))
    }

    async fn read(&self) -> Result<Row, StoreError> {
        let asked_at = self.clock.elapsed();
        let row = self.storage.read(&self.name).await?;
        *lock(&self.known) = (row.clone(), Some(asked_at));
        self.report_status();
        Ok(row)
    }
}

/// The grants for the waiting requests.
enum Granted {
    ToAll(Grant),
    Apart { fresh: Option<Grant>, again: Option<Grant> },
}

fn non_zero(count: usize) -> Option<NonZeroU32> {
    u32::try_from(count).ok().and_then(NonZeroU32::new)
}

/// Reserves slots, if any are requested.
fn reserve_some(
    count: Option<NonZeroU32>,
    pace: Pace,
    ask: impl FnOnce(Pace, NonZeroU32) -> (Pace, Grant),
) -> (Pace, Option<Grant>) {
    let Some(count) = count else { return (pace, None) };
    let (pace, grant) = ask(pace, count);
    (pace, Some(grant))
}

/// Sends each request its slot.
fn deliver_slots(waiters: Vec<SlotRequest>, grant: Option<Grant>) {
    match grant {
        Some(Grant::Slots(slots)) => {
            let after = Slot::NotBefore(slots.last(), PauseReason::Rate);
            let mut moments = slots.moments();
            for waiter in waiters {
                let _sent = waiter.sender.send(moments.next().map_or(after, Slot::At));
            }
        }
        Some(Grant::Wait { until, why }) => {
            for waiter in waiters {
                let _sent = waiter.sender.send(Slot::NotBefore(until, why));
            }
        }
        None => (),
    }
}

impl PendingReports {
    fn is_empty(&self) -> bool {
        self.successes == 0 && self.throttles.is_empty() && self.failures.is_empty()
    }

    /// Applies successes first: a throttle after a success is news about the limit.
    fn apply(&self, mut pace: Pace, settings: &PaceSettings, now: Timestamp) -> Pace {
        if let Some(count) = NonZeroU32::new(self.successes) {
            pace = pace.on_success(settings, now, count);
        }
        for (sent, hint) in &self.throttles {
            pace = pace.on_throttled(settings, now, *sent, *hint);
        }
        for (sent, caller) in &self.failures {
            pace = match caller {
                CallKind::First => pace.on_failure(settings, now, *sent),
                CallKind::Retry => pace.on_failure_again(settings, now, *sent),
            };
        }
        pace
    }

    fn add(&mut self, other: Self) {
        self.successes = self.successes.saturating_add(other.successes);
        self.throttles.extend(other.throttles);
        self.throttles.truncate(MAX_PENDING);
        self.failures.extend(other.failures);
        self.failures.truncate(MAX_PENDING);
    }
}
