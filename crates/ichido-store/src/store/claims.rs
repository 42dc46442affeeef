//! Claims of messages: taken, begun, settled, renewed, rescued.

use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::State;
use uuid::Uuid;

use super::Claims;
use crate::batch::Bounds;
use crate::columns::{Columns, number};
use crate::driver::on;
use crate::error::StoreError;
use crate::message::limits::LEASE_MAX;
use crate::message::{ClaimTerms, LetterState, QueueName, Settlement, Stepped, Work};
use crate::micros;
use crate::placement::storable_note;
use crate::rescue::{RescueTerms, Rescued, UNSERVED_MAX, Unserved, judge};
use crate::rows;
use crate::split_retry::write_all;
use crate::statement::{SqlValue, paired};
use crate::transaction::Transaction;

impl Claims<'_> {
    /// Takes up to `count` messages of a queue, most urgent and oldest first; the example is at [`crate::message`].
    ///
    /// All of one answer are one claim with one fence, so one [`Claims::renew`] keeps them all. There may be more although fewer
    /// came: a message that was held when a worker died is claimed alone. At most [`limits::CLAIM_MAX`] are taken. What is
    /// delayed or waits for its next try comes only after [`Claims::promote`].
    ///
    /// [`limits::CLAIM_MAX`]: crate::message::limits::CLAIM_MAX
    // SPEC E2.
    pub async fn take(
        self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
    ) -> Result<Vec<Work>, StoreError> {
        let terms = ClaimTerms { lease: terms.lease.min(LEASE_MAX), ..terms };
        on!(&*self.0.driver, driver => driver.claim(queue, count, terms, true).await)
    }

    /// The same as [`Claims::take`], but leaves alone the messages that were held when a worker died: for a worker that has one
    /// of them in hand already. Were there two, the next death would be charged to both.
    // SPEC E2.
    pub async fn take_unsuspected(
        self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
    ) -> Result<Vec<Work>, StoreError> {
        let terms = ClaimTerms { lease: terms.lease.min(LEASE_MAX), ..terms };
        on!(&*self.0.driver, driver => driver.claim(queue, count, terms, false).await)
    }

    /// Marks that these calls are about to begin; answers which of them may: not where the claim was lost, and not where an earlier
    /// try has meanwhile proven to have done it, which a report of any kind then settles. For claims with [`ClaimTerms::marks`]; the example is
    /// at [`crate::rescue`].
    pub async fn begin(self, calls: &[(Uuid, Fence)]) -> Result<Vec<bool>, StoreError> {
        on!(&*self.0.driver, driver => driver.begin(calls).await)
    }

    /// Reports what came of a message; the example is at [`crate::message`].
    ///
    /// A report that comes after the claim was lost is refused, unless it is a success: that one is kept as proof, and the message
    /// is sent. Where somebody else is sending it again by then, the success is refused as well, but its proof is kept: however that
    /// try ends, the message is sent. The same success reported twice stands twice.
    pub async fn settle(self, settlement: Settlement) -> Result<Stepped, StoreError> {
        let settlement = Settlement { note: storable_note(settlement.note), ..settlement };
        let bytes = settlement.note.excerpt.as_ref().map_or(0, String::len) + 300;
        let queue = settlement.queue.clone();
        let stepped = self.0.note_write(self.0.write_queues.settlement(settlement, bytes).await)?;
        if matches!(stepped, Stepped::Now(State::Queued { .. })) {
            self.0.queues().wake(&queue);
        }
        Ok(stepped)
    }

    /// Reports what came of many messages; each is answered on its own, in the order they were given.
    pub async fn settle_all(self, settlements: Vec<Settlement>) -> Vec<Result<Stepped, StoreError>> {
        let settlements: Vec<Settlement> = settlements
            .into_iter()
            .map(|settlement| Settlement { note: storable_note(settlement.note), ..settlement })
            .collect();
        let mut stepped = Vec::with_capacity(settlements.len());
        let bytes_of =
            |settlement: &Settlement| settlement.note.excerpt.as_ref().map_or(0, String::len) + 300;
        for part in Bounds::DEFAULT.parts(&settlements, bytes_of) {
            stepped.extend(on!(&*self.0.driver, driver => write_all(&**driver, part).await));
        }
        let back: BTreeSet<&QueueName> = settlements
            .iter()
            .zip(&stepped)
            .filter(|(_, stepped)| matches!(stepped, Ok(Stepped::Now(State::Queued { .. }))))
            .map(|(settlement, _)| &settlement.queue)
            .collect();
        for queue in back {
            self.0.queues().wake(queue);
        }
        stepped
    }

    /// Prolongs claims of messages by so much from now; answers which of them still stand, in the order they were given. Messages
    /// of one [`Claims::take`] share a fence: name it once.
    pub async fn renew(self, fences: &[Fence], lease: Duration) -> Result<Vec<bool>, StoreError> {
        let lease = lease.min(LEASE_MAX);
        let numbers: Vec<i64> = fences.iter().copied().map(number).collect();
        let values = [SqlValue::Numbers(&numbers), micros(lease).into(), SqlValue::Now];
        let rows = self.0.driver.all_changed(paired!("lease_renew"), &values).await?;
        let renewed: HashSet<Fence> = rows.iter().map(Columns::fence).collect::<Result<_, _>>()?;
        on!(&*self.0.driver, driver => driver.renewed(fences, &renewed, lease));
        Ok(fences.iter().map(|fence| renewed.contains(fence)).collect())
    }

    /// Rescues the messages of one lapsed claim; answers how many, or `None` when no claim has lapsed. Call it again until it does;
    /// the example is at [`crate::rescue`].
    pub async fn rescue(
        self,
        terms: impl Fn(&QueueName) -> RescueTerms + Send + Sync,
    ) -> Result<Option<usize>, StoreError> {
        Ok(self.rescue_any(None, &terms).await?.map(|rescued| rescued.count))
    }

    /// The same as [`Claims::rescue`] for the claims of these queues alone: for a node that knows the destinations of some
    /// queues, and must not decide about others.
    pub async fn rescue_of(
        self,
        queues: &[QueueName],
        terms: impl Fn(&QueueName) -> RescueTerms + Send + Sync,
    ) -> Result<Option<Rescued>, StoreError> {
        self.rescue_any(Some(queues), &terms).await
    }

    /// Makes what has come due claimable, at most `limit` messages; answers which queues got how many. Without it nothing that was
    /// delayed, and no second try, is ever claimed: call it often, on any node.
    pub async fn promote(self, limit: u32) -> Result<Vec<(QueueName, u64)>, StoreError> {
        let promoted = on!(&*self.0.driver, driver => driver.promote(limit).await)?;
        for (queue, _) in &promoted {
            self.0.queues().wake(queue);
        }
        Ok(promoted)
    }

    /// Claims of other queues than these that lapsed so long ago, and that nobody has rescued: a node that serves a queue rescues it within
    /// seconds, so nobody serves those. At most 100 queues are told of.
    pub async fn lapsed_elsewhere(
        self,
        queues: &[QueueName],
        ago: Duration,
    ) -> Result<Vec<Unserved>, StoreError> {
        let queues: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
        let (ago, longest) = (micros(ago).into(), micros(LEASE_MAX).into());
        let values = [SqlValue::Texts(Some(&queues)), ago, SqlValue::Now, UNSERVED_MAX.into(), longest];
        self.0.driver.all(paired!("lapsed_elsewhere"), &values).await?.iter().map(rows::unserved).collect()
    }

    async fn rescue_any(
        self,
        queues: Option<&[QueueName]>,
        terms: &(dyn Fn(&QueueName) -> RescueTerms + Send + Sync),
    ) -> Result<Option<Rescued>, StoreError> {
        let work = async |transaction: &mut Transaction<'_>| {
            let Some(lapsed) = transaction.lapsed(queues).await? else { return Ok(None) };
            let mut changes = judge(&lapsed, &terms(&lapsed.queue));
            transaction.apply(&mut changes).await?;
            transaction.lease_over(lapsed.fence).await?;
            let of = |state: LetterState| {
                let letters = changes.letters.iter().filter(|letter| letter.row.state == state.as_str());
                letters.map(|letter| letter.moving.id).collect()
            };
            let (dead, parked) = (of(LetterState::Dead), of(LetterState::Parked));
            let rescued = Rescued { queue: lapsed.queue, count: lapsed.left.len(), dead, parked };
            Ok(Some((lapsed.fence, rescued)))
        };
        let Some((fence, rescued)) = self.0.driver.transact(work).await? else { return Ok(None) };
        on!(&*self.0.driver, driver => driver.rescued(fence, &rescued.queue));
        if 0 < rescued.count {
            self.0.queues().wake(&rescued.queue);
        }
        Ok(Some(rescued))
    }
}
