//! Claims of messages: taken, started, settled, renewed, rescued.

use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, StepRefusal};
use uuid::Uuid;

use super::Claims;
use crate::batch::BatchLimits;
use crate::caller_transaction::CallerConnection;
use crate::claim_end::delete_leases;
use crate::claim_tracker::ClaimReport;
use crate::columns::{Columns, number};
use crate::driver::{Driver, on};
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::message::limits::MAX_LEASE;
use crate::message::{ClaimOptions, ClaimedMessage, DeadLetterState, QueueName, Settlement, StepResult};
use crate::micros;
use crate::placement::storable_note;
use crate::rescue::{MAX_UNSERVED, RescueOptions, Rescued, UnservedQueue, judge};
use crate::rows;
use crate::split_retry::write_all;
use crate::statement::{SqlValue, paired};
use crate::transaction::Transaction;

impl<'s> Claims<'s> {
    /// Claims up to `count` messages of a queue, most urgent and oldest first. [`crate::message`] has an example.
    ///
    /// All messages returned form one claim with one fence, so one [`Claims::renew`] renews them all. Fewer than `count` does
    /// not mean that the queue is empty: a message that was held when a worker died is claimed alone. At most
    /// [`limits::MAX_CLAIM`] are claimed. Delayed messages and retries can be claimed only after [`Claims::promote`].
    ///
    /// [`limits::MAX_CLAIM`]: crate::message::limits::MAX_CLAIM
    // SPEC E2.
    pub fn claim(
        self,
        queue: &'s QueueName,
        count: NonZeroU32,
        terms: ClaimOptions,
    ) -> StoreFuture<'s, Vec<ClaimedMessage>> {
        Box::pin(async move {
            let terms = ClaimOptions { lease: terms.lease.min(MAX_LEASE), ..terms };
            on!(&*self.0.driver, driver => driver.claim(queue, count, terms, true).await)
        })
    }

    /// Claims like [`Claims::claim`], but skips messages that were held when a worker died.
    ///
    /// It is for a worker that holds one of them already. With two, the next death would be charged to both.
    // SPEC E2.
    pub fn claim_unsuspected(
        self,
        queue: &'s QueueName,
        count: NonZeroU32,
        terms: ClaimOptions,
    ) -> StoreFuture<'s, Vec<ClaimedMessage>> {
        Box::pin(async move {
            let terms = ClaimOptions { lease: terms.lease.min(MAX_LEASE), ..terms };
            on!(&*self.0.driver, driver => driver.claim(queue, count, terms, false).await)
        })
    }

    /// Marks that these calls are about to start. Returns which of them may.
    ///
    /// A call may not start if the claim was lost, or if an earlier attempt has meanwhile proven to have had its effect; any
    /// report then settles the message. For claims with [`ClaimOptions::start_marks`]; [`crate::rescue`] has an example.
    pub fn mark_started(self, calls: &'s [(Uuid, Fence)]) -> StoreFuture<'s, Vec<bool>> {
        Box::pin(async move { on!(&*self.0.driver, driver => driver.begin(calls).await) })
    }

    /// Reports the outcome of a message. [`crate::message`] has an example.
    ///
    /// A report after the claim was lost is refused, unless it is a success: a success is stored as proof, and the message is
    /// sent. If somebody else is sending it again by then, the success is refused as well, but its proof is stored: however
    /// that attempt ends, the message is sent. Reporting the same success twice gives the same outcome.
    pub fn settle(self, settlement: Settlement) -> StoreFuture<'s, StepResult> {
        Box::pin(async move {
            let settlement = Settlement { note: storable_note(settlement.note), ..settlement };
            let bytes = settlement.note.bytes();
            let queue = settlement.queue.clone();
            let stepped = self.0.note_write(self.0.write_queues.settlement(settlement, bytes).await)?;
            if matches!(stepped, StepResult::Now(State::Queued { .. })) {
                self.0.queues().wake(&queue);
            }
            Ok(stepped)
        })
    }

    /// Reports the outcomes of many messages. Returns one result each, in the same order.
    #[must_use = "a settlement whose result is an error was not stored"]
    pub async fn settle_all(self, settlements: Vec<Settlement>) -> Vec<Result<StepResult, StoreError>> {
        // Boxed, so that its callers do not grow by it.
        Box::pin(async move {
            let settlements: Vec<Settlement> = settlements
                .into_iter()
                .map(|settlement| Settlement { note: storable_note(settlement.note), ..settlement })
                .collect();
            let mut stepped = Vec::with_capacity(settlements.len());
            for part in BatchLimits::DEFAULT.parts(&settlements, |settlement| settlement.note.bytes()) {
                stepped.extend(on!(&*self.0.driver, driver => write_all(&**driver, part).await));
            }
            let back: BTreeSet<&QueueName> = settlements
                .iter()
                .zip(&stepped)
                .filter(|(_, stepped)| matches!(stepped, Ok(StepResult::Now(State::Queued { .. }))))
                .map(|(settlement, _)| &settlement.queue)
                .collect();
            for queue in back {
                self.0.queues().wake(queue);
            }
            stepped
        })
        .await
    }

    /// Reports the outcomes of many messages like [`Claims::settle`], among those that others report at the same time.
    ///
    /// Returns one result each, in the same order. One write ends a claim only if no other write of this process settles its
    /// messages meanwhile, so a worker reports all of them this way.
    #[must_use = "a settlement whose result is an error was not stored"]
    pub async fn settle_together(self, settlements: Vec<Settlement>) -> Vec<Result<StepResult, StoreError>> {
        // Boxed, so that its callers do not grow by it.
        Box::pin(async move {
            // All are submitted before the first is awaited, or each would be a write of its own.
            let submitted: Vec<_> = settlements
                .into_iter()
                .map(|settlement| {
                    let settlement = Settlement { note: storable_note(settlement.note), ..settlement };
                    let (queue, bytes) = (settlement.queue.clone(), settlement.note.bytes());
                    (queue, self.0.write_queues.settlement(settlement, bytes))
                })
                .collect();
            let (mut back, mut all) = (BTreeSet::new(), Vec::with_capacity(submitted.len()));
            for (queue, written) in submitted {
                let written = written.await;
                // One success says as much about the disk as a thousand.
                let is_news = all.is_empty() || written.is_err();
                let stepped = if is_news { self.0.note_write(written) } else { written };
                if matches!(stepped, Ok(StepResult::Now(State::Queued { .. }))) {
                    back.insert(queue);
                }
                all.push(stepped);
            }
            for queue in &back {
                self.0.queues().wake(queue);
            }
            all
        })
        .await
    }

    /// Stores a success within the holder's open transaction: both commit, or neither.
    ///
    /// Call it last, right before the commit, and [`Claims::finish`] after it. If it returns anything but
    /// [`StepResult::Now`], the claim was lost or has expired, or the event is not a success: roll back. On SQLite, begin the
    /// transaction with [`Store::begin_immediate`](crate::Store::begin_immediate).
    // SPEC H1.
    pub async fn settle_in(
        self,
        connection: &mut impl CallerConnection,
        settlement: &Settlement,
    ) -> Result<StepResult, StoreError> {
        let settlement = Settlement { note: storable_note(settlement.note.clone()), ..settlement.clone() };
        let report = match settlement.event {
            Event::Succeeded { .. } => ClaimReport::new(0, &settlement),
            _ => Err(StepRefusal::WrongState),
        };
        match report {
            Ok(report) => self.0.in_transaction(connection)?.settle_success(&report).await,
            Err(why) => Ok(StepResult::Refused(why)),
        }
    }

    /// Deletes claims whose messages were all settled in transactions of their holder.
    ///
    /// Without it they lapse, and a rescue finds nothing to do. A claim that still holds a message is left alone.
    // SPEC H1.
    pub fn finish(self, fences: &'s [Fence]) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let numbers: Vec<i64> = fences.iter().copied().map(number).collect();
            let work = async |transaction: &mut Transaction<'_>| {
                let mut connection = transaction.connection();
                let rows = connection.all(paired!("lease_finished"), &[SqlValue::Numbers(&numbers)]).await?;
                let finished: Result<Vec<i64>, _> = rows.iter().map(|row| row.fence().map(number)).collect();
                delete_leases(&mut connection, &finished?).await?;
                Ok(Some(()))
            };
            let outcome = self.0.driver.transact(work).await;
            // This process does not end them again, whatever came of it.
            for fence in fences {
                on!(&*self.0.driver, driver => driver.claim_ended(*fence));
            }
            outcome.map(drop)
        })
    }

    /// Renews claims of messages for `lease` from now. Returns which are still valid, in the same order.
    ///
    /// A claim that has expired is lost, even if nobody has rescued its messages yet. Messages of one [`Claims::claim`] share a fence: pass it once.
    pub fn renew(self, fences: &'s [Fence], lease: Duration) -> StoreFuture<'s, Vec<bool>> {
        Box::pin(async move {
            let lease = lease.min(MAX_LEASE);
            let numbers: Vec<i64> = fences.iter().copied().map(number).collect();
            let own = match &*self.0.driver {
                Driver::Sqlite(sqlite) => sqlite.valid_claims(),
                Driver::Postgres(_) => Vec::new(),
            };
            let own = SqlValue::Numbers(&own);
            let values = [SqlValue::Numbers(&numbers), micros(lease).into(), SqlValue::Now, own];
            let rows = self.0.driver.write_returning_all(paired!("lease_renew"), &values).await?;
            let renewed: HashSet<Fence> = rows.iter().map(Columns::fence).collect::<Result<_, _>>()?;
            on!(&*self.0.driver, driver => driver.renewed(fences, &renewed, lease));
            Ok(fences.iter().map(|fence| renewed.contains(fence)).collect())
        })
    }

    /// Rescues the messages of one lapsed claim.
    ///
    /// Returns how many, or `None` if no claim has lapsed. Call it until it returns `None`; [`crate::rescue`] has an example.
    pub async fn rescue(
        self,
        terms: impl Fn(&QueueName) -> RescueOptions + Send + Sync,
    ) -> Result<Option<usize>, StoreError> {
        Ok(self.rescue_any(None, &terms).await?.map(|rescued| rescued.count))
    }

    /// Rescues like [`Claims::rescue`], but only claims of these queues.
    ///
    /// It is for a node that knows the destinations of some queues and must not decide about others.
    pub async fn rescue_of(
        self,
        queues: &[QueueName],
        terms: impl Fn(&QueueName) -> RescueOptions + Send + Sync,
    ) -> Result<Option<Rescued>, StoreError> {
        self.rescue_any(Some(queues), &terms).await
    }

    /// Makes at most `limit` due messages claimable. Returns how many per queue.
    ///
    /// Without it no delayed message and no retry is ever claimed: call it often, on any node.
    pub fn promote(self, limit: u32) -> StoreFuture<'s, Vec<(QueueName, u64)>> {
        Box::pin(async move {
            let promoted = on!(&*self.0.driver, driver => driver.promote(limit).await)?;
            for (queue, _) in &promoted {
                self.0.queues().wake(queue);
            }
            Ok(promoted)
        })
    }

    /// Lists claims of other queues that lapsed at least `ago` ago and were not rescued.
    ///
    /// A node that serves a queue rescues its claims within seconds, so nobody serves those queues. At most 100 queues.
    pub fn list_unserved(
        self,
        queues: &'s [QueueName],
        ago: Duration,
    ) -> StoreFuture<'s, Vec<UnservedQueue>> {
        Box::pin(async move {
            let queues: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
            let (ago, longest) = (micros(ago).into(), micros(MAX_LEASE).into());
            let values = [SqlValue::Texts(Some(&queues)), ago, SqlValue::Now, MAX_UNSERVED.into(), longest];
            self.0
                .driver
                .all(paired!("lapsed_elsewhere"), &values)
                .await?
                .iter()
                .map(rows::unserved)
                .collect()
        })
    }

    fn rescue_any(
        self,
        queues: Option<&'s [QueueName]>,
        terms: &'s (dyn Fn(&QueueName) -> RescueOptions + Send + Sync),
    ) -> StoreFuture<'s, Option<Rescued>> {
        Box::pin(async move {
            let work = async |transaction: &mut Transaction<'_>| {
                let Some(lapsed) = transaction.lapsed(queues).await? else { return Ok(None) };
                let mut changes = judge(&lapsed, &terms(&lapsed.queue));
                transaction.apply(&mut changes).await?;
                transaction.delete_lease(lapsed.fence).await?;
                let of = |state: DeadLetterState| {
                    let letters = changes.letters.iter().filter(|letter| letter.row.state == state.as_str());
                    letters.map(|letter| letter.moving.id).collect()
                };
                let (dead, parked) = (of(DeadLetterState::Dead), of(DeadLetterState::Parked));
                let rescued = Rescued { queue: lapsed.queue, count: lapsed.left.len(), dead, parked };
                Ok(Some((lapsed.fence, rescued)))
            };
            let Some((fence, rescued)) = self.0.driver.transact(work).await? else { return Ok(None) };
            on!(&*self.0.driver, driver => driver.claim_ended(fence));
            self.0.driver.note_requeued(&rescued.queue);
            if 0 < rescued.count {
                self.0.queues().wake(&rescued.queue);
            }
            Ok(Some(rescued))
        })
    }
}
