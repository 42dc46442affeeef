//! Keys: claiming, settling, finding, resolving.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::KeyHash;
use ichido_core::ledger::limits::MAX_LEASE;
use ichido_core::ledger::{self, KeyEntry, Policy, Record, RecordName, RecordPhase, Resolution, resolve};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::Keys;
use crate::action::AuditAction;
use crate::caller_transaction::CallerConnection;
use crate::check;
use crate::columns::{Columns as _, number};
use crate::driver::{Driver, on, retry_read};
use crate::error::StoreError;
use crate::future::{BoxFuture, StoreFuture};
use crate::ledger::{
    KeyClaim, KeyClaimed, KeyLookup, KeyOutcome, KeyRecord, KeyRecorded, KeyRecording, KeyResolved,
    KeySettle, KeySettled, StoredResponse, UnknownCount, limits,
};
use crate::message::limits::MAX_EXCERPT_BYTES;
use crate::micros;
use crate::postgres::wake::Topic;
use crate::record::{ClaimAttempt, LookupJob, name_of, page_after, read_record, record_name};
use crate::statement::{SqlValue, column, paired, shared};
use crate::subject::key_subject;
use crate::transaction::Transaction;

/// How often to retry a resolution when the record changes concurrently.
const MAX_RESOLVE_ROUNDS: usize = 3;

/// The most statements of one sweep: keys in use may fill whole batches.
const MAX_SWEEP_STATEMENTS: usize = 20;

/// The size of a look-up in a batch: a response may come back, but only names go out.
const LOOKUP_BYTES: usize = 64;

impl<'s> Keys<'s> {
    /// Claims a key for a request, or returns why it cannot run. [`crate::ledger`] has an example.
    ///
    /// An expired key counts as new. It expires by the retention clock ([`Keys::sweep`]), not by the wall clock alone.
    ///
    /// A caller that gets `Run` must settle the claim, and renew it ([`Keys::renew`]) before the policy's lease expires.
    pub fn claim(self, claim: KeyClaim) -> StoreFuture<'s, KeyClaimed> {
        Box::pin(async move {
            claim.check()?;
            let bytes = claim.name.operation.len()
                + claim.name.identity.len()
                + claim.hops.as_ref().map_or(0, String::len)
                + 400;
            self.0.note_write(
                self.0.write_queues.claim(ClaimAttempt { claim, claim_id: Uuid::now_v7() }, bytes).await,
            )
        })
    }

    /// Reports the outcome of a claim. [`crate::ledger`] has an example.
    ///
    /// It counts as long as nobody else took over the key, even after its lease, and after the outcome was marked unknown.
    /// `ichido_core::ledger::settle` decides what to report, and `resolve` for an unknown outcome: this method calls neither.
    pub fn settle(self, settle: KeySettle) -> StoreFuture<'s, KeySettled> {
        Box::pin(async move {
            settle.check()?;
            let bytes = settle.bytes();
            let topic = Topic::key(&settle.name);
            let settled = self.0.note_write(self.0.write_queues.settle(settle.bounded(), bytes).await)?;
            if settled == KeySettled::Settled {
                self.0.wake_ups.wake(topic);
            }
            Ok(settled)
        })
    }

    /// Settles a claim within the caller's open transaction.
    ///
    /// The caller's writes and the outcome commit together, or not at all. Unless it returns [`KeySettled::Settled`], roll back.
    /// Call [`Keys::wake`] after the commit. On SQLite, begin the transaction with
    /// [`Store::begin_immediate`](crate::Store::begin_immediate).
    pub async fn settle_in(
        self,
        connection: &mut impl CallerConnection,
        settle: &KeySettle,
    ) -> Result<KeySettled, StoreError> {
        settle.check()?;
        self.0.in_transaction(connection)?.settle(&settle.clone().bounded()).await
    }

    /// Looks up what a claim would find under a key, and writes nothing. Requests that arrive together share a read.
    ///
    /// A key that is free may have a record a moment later. If an attempt runs without a claim, its transaction must record
    /// the outcome with [`Keys::record_in`], which finds out.
    pub fn look_up(
        self,
        name: &'s RecordName,
        fingerprint: Fingerprint,
        policy: &'s Arc<Policy>,
    ) -> StoreFuture<'s, KeyLookup> {
        Box::pin(async move {
            let job = LookupJob { name: name.hash(), fingerprint, policy: Arc::clone(policy) };
            self.0.lookups.submit(job, LOOKUP_BYTES).await
        })
    }

    /// Records an outcome within the caller's open transaction, for a key that has no record. Make it the last statement.
    ///
    /// The caller's writes and the outcome commit together, or not at all. [`KeyRecorded::Taken`] means that another request
    /// with the key took effect: roll back, and look the key up again. On PostgreSQL it waits for another transaction
    /// that records the same key. On SQLite, begin the transaction with [`Store::begin_immediate`](crate::Store::begin_immediate).
    pub async fn record_in(
        self,
        connection: &mut impl CallerConnection,
        recording: &KeyRecording,
    ) -> Result<KeyRecorded, StoreError> {
        recording.check()?;
        self.0.in_transaction(connection)?.record(recording).await
    }

    /// Wakes those who wait for a key. Call it after the commit of a transaction that settled it.
    pub fn wake(self, name: &RecordName, fence: Fence) {
        if let Driver::Sqlite(sqlite) = &*self.0.driver {
            sqlite.settled(fence);
        }
        self.0.wake_ups.wake(Topic::key(name));
    }

    /// Waits up to `at_most` for a claimed key to be settled. Returns whether something happened.
    ///
    /// It is a hint that shortens the wait: on SQLite it comes from this process only. It does not end with the lease: wait no
    /// longer than `lease_until`, and claim again in any case.
    pub fn wait(self, name: &'s RecordName, at_most: Duration) -> BoxFuture<'s, bool> {
        Box::pin(async move {
            let settled = async || match self.get(name).await {
                Ok(Some(found)) => !matches!(found.record.phase, RecordPhase::Claimed { .. }),
                Ok(None) => true,
                // The caller's next claim gets the error.
                Err(_) => false,
            };
            self.0.wake_ups.wait(&Topic::key(name), at_most, settled).await
        })
    }

    /// Renews claims, each for its duration from now. Returns which are still valid, in the same order.
    pub fn renew(self, claims: &'s [(RecordName, Fence, Duration)]) -> StoreFuture<'s, Vec<bool>> {
        Box::pin(async move {
            let claims: Vec<([u8; 32], Fence, Duration)> = claims
                .iter()
                .map(|(name, fence, lease)| (name.hash(), *fence, (*lease).min(MAX_LEASE)))
                .collect();
            // In one order, so two nodes never deadlock.
            let mut rows: Vec<_> = claims.iter().collect();
            rows.sort_by_key(|(name, ..)| *name);
            let rows = [
                column(&rows, |(name, ..)| &name[..]),
                column(&rows, |(_, fence, _)| number(*fence)),
                column(&rows, |(.., lease)| micros(*lease)),
            ];
            let renewed = self
                .0
                .driver
                .write_returning_all(paired!("key_renew"), &[SqlValue::Rows(&rows), SqlValue::Now])
                .await?;
            let renewed: HashSet<([u8; 32], Fence)> = renewed
                .iter()
                .map(|row| Ok((name_of(row)?, row.fence()?)))
                .collect::<Result<_, StoreError>>()?;
            let still_holds = |(name, fence, lease): &([u8; 32], Fence, Duration)| {
                let holds = renewed.contains(&(*name, *fence));
                if let (true, Driver::Sqlite(sqlite)) = (holds, &*self.0.driver) {
                    sqlite.holds(*fence, *lease);
                }
                holds
            };
            Ok(claims.iter().map(still_holds).collect())
        })
    }

    /// Finds the record of a key. An expired record exists until it is swept.
    pub fn get(self, name: &'s RecordName) -> StoreFuture<'s, Option<KeyRecord>> {
        Box::pin(async move {
            let found =
                retry_read(|| async { on!(&*self.0.driver, driver => driver.key_find(name).await) }).await?;
            Ok(found.map(|(record, _)| record))
        })
    }

    /// Names the records of a key's hash, whatever their operation and identity. At most [`limits::MAX_PAGE`].
    ///
    /// Their names begin with the hash, so they are one range of the primary key.
    // SPEC C5, D10.
    pub fn list_of_hash(self, hash: KeyHash, limit: u32) -> StoreFuture<'s, Vec<RecordName>> {
        Box::pin(async move {
            let (first, last) = RecordName::range(hash);
            let limit = i64::from(limit.min(limits::MAX_PAGE));
            let values = [(&first[..]).into(), (&last[..]).into(), limit.into()];
            self.0.driver.all(shared!("key_of_hash"), &values).await?.iter().map(record_name).collect()
        })
    }

    /// Returns the history of a record, oldest first: what follows from it, and what the audit trail has about it.
    // SPEC C5, F1.
    pub fn history(self, of: &'s KeyRecord) -> StoreFuture<'s, Vec<KeyEntry>> {
        Box::pin(async move {
            let recorded =
                self.0.actions().of(key_subject(&of.name)).await?.into_iter().map(|row| KeyEntry {
                    at: row.at,
                    kind: row.action.kind,
                    from: row.action.from,
                    to: row.action.to,
                    fence: None,
                    actor: row.action.actor,
                });
            Ok(ledger::history(&of.record, of.completed_at, recorded))
        })
    }

    /// Lists records of unknown outcome, oldest first.
    ///
    /// `after` is when the last one of the previous page was first claimed, and the hash of its name.
    // SPEC F2.
    pub fn list_unknown(
        self,
        after: Option<(Timestamp, [u8; 32])>,
        limit: u32,
    ) -> StoreFuture<'s, Vec<KeyRecord>> {
        Box::pin(async move {
            let (since, name) = page_after(after);
            let values = [since.into(), (&*name).into(), i64::from(limit.min(limits::MAX_PAGE)).into()];
            let rows = self.0.driver.all(shared!("key_unknown"), &values).await?;
            // Nothing is judged here, so the time does not matter.
            rows.iter().map(|row| Ok(read_record(row, Timestamp::EPOCH.into())?.key)).collect()
        })
    }

    /// Counts keys of unknown outcome that wait for a person, by operation.
    ///
    /// A key that its next request may run again counts only after [`limits::RETRIED_WITHIN`]: until then its caller
    /// retries. `now` is the store's time.
    // SPEC F2.
    pub fn count_unknown(self, now: Timestamp) -> StoreFuture<'s, Vec<UnknownCount>> {
        Box::pin(async move {
            let retried_since = now.as_micros().saturating_sub(micros(limits::RETRIED_WITHIN));
            let values =
                [Timestamp::from_micros(retried_since).into(), i64::from(limits::MAX_UNKNOWN_COUNTED).into()];
            let rows = self.0.driver.all(shared!("key_unknown_count"), &values).await?;
            let counts = rows.iter().map(|row| {
                let (operation, oldest) = (row.text("operation")?.to_owned(), row.timestamp("oldest")?);
                let count = u64::try_from(row.number("count")?).unwrap_or_default();
                Ok(UnknownCount { operation, count, oldest })
            });
            counts.collect()
        })
    }

    /// Marks at most `limit` lapsed claims of these operations as unknown. Returns how many.
    ///
    /// A person then sees them although nobody requests them again. Do not pass a transactional operation: its lost work was
    /// rolled back, and the next request runs it again.
    // SPEC F2.
    pub fn mark_lapsed_unknown(self, operations: &'s [String], limit: u32) -> StoreFuture<'s, u64> {
        Box::pin(async move { on!(&*self.0.driver, driver => driver.key_lapse(operations, limit).await) })
    }

    /// Settles an action of unknown outcome with the finding of a reconcile call.
    ///
    /// "Nothing was done" counts only when the call cannot be in transit, even if it was answered: what it handed on may be.
    /// A person uses [`Keys::decide`], which records the actor. Its requests get the response from now on; without one they
    /// learn that it was done and that its response was not stored.
    // SPEC F2.
    pub fn resolve(
        self,
        name: &'s RecordName,
        resolution: Resolution,
        response: Option<StoredResponse>,
        policy: &'s Policy,
    ) -> StoreFuture<'s, KeyResolved> {
        Box::pin(async move {
            let entry = |to: &str| AuditAction::reconciled(name, to);
            let ignored = |record: Record| Record { answered_at: None, ..record };
            self.resolve_recorded(name, (resolution, response), policy, ignored, entry).await
        })
    }

    /// Resolves like [`Keys::resolve`], by a person, and records it in the same transaction.
    pub fn decide(
        self,
        name: &'s RecordName,
        resolution: Resolution,
        response: Option<StoredResponse>,
        policy: &'s Policy,
        by: &'s str,
    ) -> StoreFuture<'s, KeyResolved> {
        Box::pin(async move {
            check::text("the actor", by, MAX_EXCERPT_BYTES)?;
            let entry = |to: &str| AuditAction::decided(name, to, by);
            self.resolve_recorded(name, (resolution, response), policy, |record| record, entry).await
        })
    }

    /// Settles an unknown outcome, with an entry of the audit trail in the same transaction.
    async fn resolve_recorded(
        self,
        name: &RecordName,
        (resolution, response): (Resolution, Option<StoredResponse>),
        policy: &Policy,
        view: impl Fn(Record) -> Record,
        entry: impl Fn(&str) -> AuditAction,
    ) -> Result<KeyResolved, StoreError> {
        for _ in 0..MAX_RESOLVE_ROUNDS {
            let settle = match self.resolution(name, (resolution, response.clone()), policy, &view).await? {
                Ok(settle) => settle,
                Err(answer) => return Ok(answer),
            };
            settle.check()?;
            let entry = entry(match &settle.outcome {
                KeyOutcome::Keep { settled, .. } => settled.as_str(),
                KeyOutcome::Release => "released",
                KeyOutcome::Hold | KeyOutcome::HoldAnswered => "unknown",
            });
            let settle = settle.bounded();
            let work = async |transaction: &mut Transaction<'_>| match transaction.settle(&settle).await? {
                KeySettled::Settled => transaction.record(&entry).await.map(Some),
                _ => Ok(None),
            };
            if self.0.driver.transact(work).await?.is_some() {
                self.wake(name, settle.fence);
                return Ok(KeyResolved::Resolved);
            }
        }
        Err(StoreError::Busy)
    }

    /// Returns the settle for a record as it is now, or why there is none. If the settle fails because the record changed
    /// meanwhile, try again.
    async fn resolution(
        self,
        name: &RecordName,
        (resolution, response): (Resolution, Option<StoredResponse>),
        policy: &Policy,
        view: impl Fn(Record) -> Record,
    ) -> Result<Result<KeySettle, KeyResolved>, StoreError> {
        let looking = retry_read(|| async { on!(&*self.0.driver, driver => driver.key_find(name).await) });
        let Some((found, now)) = looking.await? else { return Ok(Err(KeyResolved::Missing)) };
        Ok(match resolve(&view(found.record), resolution, policy, now) {
            Ok(settlement) => {
                let outcome = resolved_outcome(settlement, resolution, response, policy);
                Ok(KeySettle { name: name.clone(), fence: found.record.fence, outcome })
            }
            Err(error) => Err(KeyResolved::Refused(error)),
        })
    }

    /// Deletes at most `limit` expired keys, except those that a live message still uses. Returns how many.
    ///
    /// Keys in use are checked again after an hour; they do not count towards the limit. None is deleted while the wall clock disagrees with the time that
    /// has passed here, and at most a day's worth in an hour: a clock that is set ahead must not make keys new.
    // SPEC A5.
    pub fn sweep(self, limit: u32) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let Some(now) = self.0.forget_until().await? else { return Ok(0) };
            let mut deleted = 0;
            for _ in 0..MAX_SWEEP_STATEMENTS {
                let rest = limit.saturating_sub(u32::try_from(deleted).unwrap_or(u32::MAX));
                let sweep = on!(&*self.0.driver, driver => driver.key_sweep(now.until, rest).await)?;
                deleted += sweep.deleted;
                // Keys in use may fill a whole batch, and others may be behind them.
                if sweep.checked < u64::from(rest) || sweep.checked == sweep.deleted {
                    break;
                }
            }
            Ok(deleted)
        })
    }

    /// Deletes at most `limit` keys of an identity with their responses, whatever their age. Returns how many.
    ///
    /// This includes keys of unknown outcome, but not those in flight or used by a live message. It is for programs that must
    /// delete all data of a person: a repeated request under a deleted key runs again. An entry of the audit trail explains why
    /// the records are missing.
    pub fn delete_of_identity(self, identity: &'s str, limit: u32) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            check::no_nul("the identity", identity)?;
            let values = [identity.into(), i64::from(limit).into(), SqlValue::Now];
            let work = async |transaction: &mut Transaction<'_>| {
                let deleted = transaction.connection().execute(paired!("key_forget_of"), &values).await?;
                if 0 < deleted {
                    transaction.record(&AuditAction::keys_deleted(identity)).await?;
                }
                Ok(Some(deleted))
            };
            Ok(self.0.driver.transact(work).await?.unwrap_or(0))
        })
    }
}

fn resolved_outcome(
    settlement: ledger::Settlement,
    resolution: Resolution,
    response: Option<StoredResponse>,
    policy: &Policy,
) -> KeyOutcome {
    /// The status of an action whose response nobody has.
    const APPLIED_STATUS: u16 = 200;
    const REFUSED_STATUS: u16 = 400;
    let status = if resolution == Resolution::Refused { REFUSED_STATUS } else { APPLIED_STATUS };
    let response = response.unwrap_or(StoredResponse { status, headers: Vec::new(), body: None });
    match settlement {
        ledger::Settlement::Keep { outcome: settled, .. } => {
            KeyOutcome::Keep { settled, response, result_digest: None, message_id: None, ttl: policy.ttl() }
        }
        ledger::Settlement::Release => KeyOutcome::Release,
        ledger::Settlement::Hold => KeyOutcome::Hold,
    }
}
