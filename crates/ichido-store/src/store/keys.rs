//! Keys: claimed, settled, looked up, resolved.

use std::collections::HashSet;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::ledger::limits::LEASE_MAX;
use ichido_core::ledger::{self, Phase, Policy, RecordName, Resolution, resolve};
use ichido_core::time::Timestamp;
use sqlx::PgConnection;
use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::Keys;
use crate::action::Action;
use crate::check;
use crate::columns::{Columns as _, number};
use crate::driver::{Driver, on, retry_read};
use crate::error::StoreError;
use crate::ledger::{
    KeyClaim, KeyClaimed, KeyOutcome, KeyRecord, KeyResolved, KeySettle, KeySettled, Response, limits,
};
use crate::message::limits::EXCERPT_BYTES_MAX;
use crate::micros;
use crate::postgres::wake::Topic;
use crate::record::{ClaimAttempt, name_of, page_after, read_record};
use crate::statement::{SqlValue, column, paired, shared};
use crate::transaction::Transaction;

/// How often a finding about a record looks again when the record changes under its eyes.
const RESOLVE_ROUNDS_MAX: usize = 3;

impl Keys<'_> {
    /// Claims a key for a request, or says what stands in its way. The example is at [`crate::ledger`].
    ///
    /// An expired key counts as new. It expires by the clock of retention ([`Keys::sweep`]), not by the wall clock alone.
    ///
    /// Whoever is told to run it must settle it, and renew it ([`Keys::renew`]) before the policy's lease is over.
    pub async fn claim(self, claim: KeyClaim) -> Result<KeyClaimed, StoreError> {
        claim.check()?;
        let bytes = claim.name.operation.len()
            + claim.name.identity.len()
            + claim.hops.as_ref().map_or(0, String::len)
            + 400;
        self.0.note_write(
            self.0.write_queues.claim(ClaimAttempt { claim, claim_id: Uuid::now_v7() }, bytes).await,
        )
    }

    /// Reports what came of a claim; the example is at [`crate::ledger`].
    ///
    /// It is heard for as long as nobody else took the key over, even after its lease, and after the outcome was marked unknown.
    /// `ichido_core::ledger::settle` decides what to report, `resolve` in the case of an unknown outcome: neither is asked here.
    pub async fn settle(self, settle: KeySettle) -> Result<KeySettled, StoreError> {
        settle.check()?;
        let bytes = settle.bytes();
        let topic = Topic::key(&settle.name);
        let settled = self.0.note_write(self.0.write_queues.settle(settle.bounded(), bytes).await)?;
        if settled == KeySettled::Stands {
            self.0.wakes.wake(topic);
        }
        Ok(settled)
    }

    /// Settles a claim within the caller's open PostgreSQL transaction: its writes and the outcome commit together, or not at all.
    /// Unless the answer is that it stands, roll back. Call [`Keys::wake`] after the commit.
    pub async fn settle_in_postgres(
        self,
        connection: &mut PgConnection,
        settle: &KeySettle,
    ) -> Result<KeySettled, StoreError> {
        settle.check()?;
        self.0.postgres()?.settle_in(connection, &settle.clone().bounded()).await
    }

    /// The same within the caller's open SQLite transaction, begun by [`Store::begin_immediate`](crate::Store::begin_immediate).
    pub async fn settle_in_sqlite(
        self,
        connection: &mut SqliteConnection,
        settle: &KeySettle,
    ) -> Result<KeySettled, StoreError> {
        settle.check()?;
        self.0.sqlite()?.settle_in(connection, &settle.clone().bounded()).await
    }

    /// Wakes those who wait for a key: to be called after the commit of a transaction that settled it.
    pub fn wake(self, name: &RecordName, fence: Fence) {
        if let Driver::Sqlite(sqlite) = &*self.0.driver {
            sqlite.settled(fence);
        }
        self.0.wakes.wake(Topic::key(name));
    }

    /// Waits until a claimed key is settled, at most so long; answers whether something happened. A hint that makes the next look
    /// sooner: on SQLite it comes from this process only. It does not end with the lease: wait no longer than `lease_until`, and claim
    /// again whatever the answer.
    pub async fn wait(self, name: &RecordName, at_most: Duration) -> bool {
        let settled = async || match self.get(name).await {
            Ok(Some(found)) => !matches!(found.record.phase, Phase::Claimed { .. }),
            Ok(None) => true,
            // Whoever looks again is told.
            Err(_) => false,
        };
        self.0.wakes.wait(&Topic::key(name), at_most, settled).await
    }

    /// Prolongs claims by so much from now; answers which of them still stand, in the order they were given.
    pub async fn renew(self, claims: &[(RecordName, Fence, Duration)]) -> Result<Vec<bool>, StoreError> {
        let claims: Vec<([u8; 32], Fence, Duration)> = claims
            .iter()
            .map(|(name, fence, lease)| (name.hash(), *fence, (*lease).min(LEASE_MAX)))
            .collect();
        // In one order, so that two nodes never wait crosswise.
        let mut rows: Vec<_> = claims.iter().collect();
        rows.sort_by_key(|(name, ..)| *name);
        let rows = [
            column(&rows, |(name, ..)| &name[..]),
            column(&rows, |(_, fence, _)| number(*fence)),
            column(&rows, |(.., lease)| micros(*lease)),
        ];
        let renewed =
            self.0.driver.all_changed(paired!("key_renew"), &[SqlValue::Rows(&rows), SqlValue::Now]).await?;
        let renewed: HashSet<([u8; 32], Fence)> =
            renewed.iter().map(|row| Ok((name_of(row)?, row.fence()?))).collect::<Result<_, StoreError>>()?;
        let still_holds = |(name, fence, lease): &([u8; 32], Fence, Duration)| {
            let holds = renewed.contains(&(*name, *fence));
            if let (true, Driver::Sqlite(sqlite)) = (holds, &*self.0.driver) {
                sqlite.holds(*fence, *lease);
            }
            holds
        };
        Ok(claims.iter().map(still_holds).collect())
    }

    /// What is stored under a key; an expired record is there until it is swept.
    pub async fn get(self, name: &RecordName) -> Result<Option<KeyRecord>, StoreError> {
        let found =
            retry_read(|| async { on!(&*self.0.driver, driver => driver.key_find(name).await) }).await?;
        Ok(found.map(|(record, _)| record))
    }

    /// Records of unknown outcome, oldest first; `after` is when the last one of the page before was first claimed, and the
    /// hash of its name.
    // SPEC F2.
    pub async fn list_unknown(
        self,
        after: Option<(Timestamp, [u8; 32])>,
        limit: u32,
    ) -> Result<Vec<KeyRecord>, StoreError> {
        let (since, name) = page_after(after);
        let values = [since.into(), (&*name).into(), i64::from(limit.min(limits::PAGE_MAX)).into()];
        let rows = self.0.driver.all(shared!("key_unknown"), &values).await?;
        // Nothing is judged here, so no moment is needed.
        rows.iter().map(|row| Ok(read_record(row, Timestamp::EPOCH.into())?.key)).collect()
    }

    /// Marks at most `limit` claims of these operations as of unknown outcome whose leases are over, so that a person sees them
    /// though nobody asks for them again; answers how many. Name no operation that is transactional: what was lost there
    /// was rolled back, and the next request runs it again.
    // SPEC F2.
    pub async fn lapse(self, operations: &[String], limit: u32) -> Result<u64, StoreError> {
        on!(&*self.0.driver, driver => driver.key_lapse(operations, limit).await)
    }

    /// Settles an action of unknown outcome by what a reconcile call found out. A person does it by [`Keys::decide`], which
    /// records who did. The response is what its requests get from now on; without one they are told that it was done and that its
    /// response was not kept.
    // SPEC F2.
    pub async fn resolve(
        self,
        name: &RecordName,
        resolution: Resolution,
        response: Option<Response>,
        policy: &Policy,
    ) -> Result<KeyResolved, StoreError> {
        for _ in 0..RESOLVE_ROUNDS_MAX {
            let settle = match self.resolution(name, resolution, response.clone(), policy).await? {
                Ok(settle) => settle,
                Err(answer) => return Ok(answer),
            };
            if self.settle(settle).await? == KeySettled::Stands {
                return Ok(KeyResolved::Stands);
            }
        }
        Err(StoreError::Busy)
    }

    /// The same as [`Keys::resolve`] by a person, recorded with what it changes, in one transaction.
    pub async fn decide(
        self,
        name: &RecordName,
        resolution: Resolution,
        response: Option<Response>,
        policy: &Policy,
        by: &str,
    ) -> Result<KeyResolved, StoreError> {
        check::text("the name of who decides", by, EXCERPT_BYTES_MAX)?;
        for _ in 0..RESOLVE_ROUNDS_MAX {
            let settle = match self.resolution(name, resolution, response.clone(), policy).await? {
                Ok(settle) => settle,
                Err(answer) => return Ok(answer),
            };
            settle.check()?;
            let to = match &settle.outcome {
                KeyOutcome::Keep { settled, .. } => settled.as_str(),
                KeyOutcome::Release => "released",
                KeyOutcome::Hold => "unknown",
            };
            let (settle, action) = (settle.bounded(), Action::decision(name, to, by));
            let work = async |transaction: &mut Transaction<'_>| match transaction.settle(&settle).await? {
                KeySettled::Stands => transaction.record(&action).await.map(Some),
                _ => Ok(None),
            };
            if self.0.driver.transact(work).await?.is_some() {
                self.wake(name, settle.fence);
                return Ok(KeyResolved::Stands);
            }
        }
        Err(StoreError::Busy)
    }

    /// What to settle a record by, as it is now, or why not. The settle fails when its owner reports or somebody takes it over in the
    /// meantime: then look again.
    async fn resolution(
        self,
        name: &RecordName,
        resolution: Resolution,
        response: Option<Response>,
        policy: &Policy,
    ) -> Result<Result<KeySettle, KeyResolved>, StoreError> {
        let looking = retry_read(|| async { on!(&*self.0.driver, driver => driver.key_find(name).await) });
        let Some((found, now)) = looking.await? else { return Ok(Err(KeyResolved::Missing)) };
        Ok(match resolve(&found.record, resolution, policy, now) {
            Ok(settlement) => {
                let outcome = resolved_outcome(settlement, resolution, response, policy);
                Ok(KeySettle { name: name.clone(), fence: found.record.fence, outcome })
            }
            Err(error) => Err(KeyResolved::Refused(error)),
        })
    }

    /// Looks at `limit` expired keys at most and forgets them, less those that a living message still uses; answers how
    /// many were forgotten. Fewer than `limit` may still mean that there is more. None is forgotten while the wall clock disagrees
    /// with the time that has passed here, and at most a day's worth in an hour: a clock that is set ahead must not make keys new.
    // SPEC A5.
    pub async fn sweep(self, limit: u32) -> Result<u64, StoreError> {
        let Some(now) = self.0.forget_until().await? else { return Ok(0) };
        on!(&*self.0.driver, driver => driver.key_sweep(now.until, limit).await)
    }

    /// Forgets at most `limit` keys of an identity with their answers, whatever their age, those of unknown outcome too, less those that are
    /// being worked on and those that a living message still uses; answers how many. It is for programs that must leave nothing behind of somebody who has gone: a request that comes again under
    /// a forgotten key is done again.
    pub async fn forget_of(self, identity: &str, limit: u32) -> Result<u64, StoreError> {
        check::no_nul("the identity", identity)?;
        let values = [identity.into(), i64::from(limit).into(), SqlValue::Now];
        self.0.driver.execute(paired!("key_forget_of"), &values).await
    }
}

fn resolved_outcome(
    settlement: ledger::Settlement,
    resolution: Resolution,
    response: Option<Response>,
    policy: &Policy,
) -> KeyOutcome {
    /// What is told of an action whose response nobody has.
    const APPLIED_STATUS: u16 = 200;
    const REFUSED_STATUS: u16 = 400;
    let status = if resolution == Resolution::Refused { REFUSED_STATUS } else { APPLIED_STATUS };
    let response = response.unwrap_or(Response { status, headers: Vec::new(), body: None });
    match settlement {
        ledger::Settlement::Keep { outcome: settled, .. } => {
            KeyOutcome::Keep { settled, response, result_digest: None, message_id: None, ttl: policy.ttl() }
        }
        ledger::Settlement::Release => KeyOutcome::Release,
        ledger::Settlement::Hold => KeyOutcome::Hold,
    }
}
