//! The ledger on SQLite.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use ichido_core::clock::{Now, lease_has_lapsed};
use ichido_core::fence::Fence;
use ichido_core::ledger::limits::MAX_LEASE;
use ichido_core::ledger::{RecordName, RecordPhase};
use ichido_core::time::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::{Sqlite, WriteTransaction, values, without_clock};
use crate::action::{self, AuditAction};
use crate::columns::{Columns, Row, fence_from, number, small};
use crate::error::StoreError;
use crate::headers;
use crate::ledger::{
    ClaimOrigin, KeyClaimed, KeyLookup, KeyOutcome, KeyRecord, KeyRecorded, KeyRecording, KeySettle,
    KeySettled, KeySweep,
};
use crate::record::{
    ClaimAttempt, ClaimDecision, FoundRecord, LookupJob, name_of, outcome_if_unchanged, read_record,
    record_in, state_name, unknown_entries,
};
use crate::rescue::lapsed_ends;
use crate::split_retry::{BatchWriter, WriteMode};
use crate::statement::{DbConnection, SqlValue, sqlite_only};

/// How often a claim retries when another claim of its batch changed the record first. The second read sees the last change.
const MAX_ROUNDS: usize = 3;

/// How much later to check an expired record again while a live message uses it.
const LATER: Duration = Duration::from_hours(1);

impl Sqlite {
    /// Claims keys. The caller commits and then calls [`Sqlite::key_claimed`].
    pub(super) async fn key_claim(
        &self,
        tx: &mut WriteTransaction,
        attempts: &[&ClaimAttempt],
    ) -> Result<Vec<KeyClaimed>, StoreError> {
        let before = tx.last;
        let inserted = insert(tx, attempts).await?;
        if inserted == attempts.len() {
            let fences = (before..).skip(1).map(fence_from);
            let run = |fence: Result<Fence, sqlx::Error>| {
                Ok(KeyClaimed::Run { fence: fence?, began: ClaimOrigin::New })
            };
            return fences.take(inserted).map(run).collect();
        }
        // Some existed before. This also finds the new ones; their claim ids identify them.
        let mut answers: Vec<Option<KeyClaimed>> = vec![None; attempts.len()];
        for _ in 0..MAX_ROUNDS {
            self.claim_existing(tx, attempts, &mut answers).await?;
        }
        answers.into_iter().map(|answer| answer.ok_or(StoreError::Busy)).collect()
    }

    /// Tracks the claims of this process, after the commit.
    pub(super) fn key_claimed(&self, attempts: &[&ClaimAttempt], answers: &[KeyClaimed]) {
        for (attempt, answer) in attempts.iter().zip(answers) {
            if let KeyClaimed::Run { fence, .. } = answer {
                self.own_claims.hold(*fence, attempt.claim.policy.lease());
            }
        }
    }

    /// Handles the existing records: the core decides what they mean for each claim.
    async fn claim_existing(
        &self,
        tx: &mut WriteTransaction,
        attempts: &[&ClaimAttempt],
        answers: &mut [Option<KeyClaimed>],
    ) -> Result<(), StoreError> {
        let open: Vec<usize> = (0..attempts.len()).filter(|index| answers[*index].is_none()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let names: Vec<[u8; 32]> = open.iter().map(|index| attempts[*index].claim.name.hash()).collect();
        let now = tx.now;
        let mut found = find_many(tx.connection(), &names, self.skew.now(now)).await?;
        for found in found.values_mut() {
            self.keep_own(found);
        }
        for (index, name) in open.into_iter().zip(names) {
            if let Some(found) = found.get(&name) {
                answers[index] = claim_found(tx, attempts[index], &name, found).await?;
            }
        }
        Ok(())
    }

    /// Extends a lapsed claim that this process still holds by its own clock.
    fn keep_own(&self, found: &mut FoundRecord) {
        let now = found.now.wall;
        let fence = found.key.record.fence;
        if let RecordPhase::Claimed { lease_until } = &mut found.key.record.phase
            && lease_has_lapsed(*lease_until, now, MAX_LEASE)
            && let Some(left) = self.own_claims.time_left(fence)
        {
            *lease_until = now.plus(left);
        }
    }

    /// Begins a transaction by settling keys. The caller commits it and then calls [`Sqlite::key_settled`].
    ///
    /// The whole batch applies or none of it: no outcome is given for half of it.
    pub(super) async fn key_settle(
        &self,
        settles: &[&KeySettle],
        again: bool,
    ) -> Result<(WriteTransaction, Vec<KeySettled>), StoreError> {
        let mut tx = self.write().await?;
        if settle_together(&mut tx, settles).await? {
            return Ok((tx, vec![KeySettled::Settled; settles.len()]));
        }
        // One of them came too late, and it is unknown which: settle each alone, in the order they came.
        tx.rollback().await?;
        let mut tx = self.write().await?;
        let mut answers = Vec::with_capacity(settles.len());
        for settle in settles {
            let (name, now) = (settle.name.hash(), tx.now);
            let (stands, unknown) = settle_alone(tx.connection(), now, &name, settle).await?;
            tx.record(unknown.as_slice()).await?;
            answers.push(if stands {
                KeySettled::Settled
            } else {
                let found = find_many(tx.connection(), &[name], now.into()).await?;
                outcome_if_unchanged(settle, found.get(&name), again)
            });
        }
        Ok((tx, answers))
    }

    /// Stops tracking claims of this process that are settled, after the commit.
    pub(super) fn key_settled(&self, settles: &[&KeySettle]) {
        for settle in settles {
            self.own_claims.release(settle.fence);
        }
    }

    /// Notes that a claim of this process was renewed.
    pub(crate) fn holds(&self, fence: Fence, lease: Duration) {
        self.own_claims.hold(fence, lease);
    }

    /// Finds a record. Returns it with the time of the read.
    pub(crate) async fn key_find(
        &self,
        name: &RecordName,
    ) -> Result<Option<(KeyRecord, Timestamp)>, StoreError> {
        let hash = name.hash();
        let mut reader = self.pool().acquire().await?;
        let now = self.now(&mut reader).await?;
        let mut found = find_many(&mut reader, &[hash], now.into()).await?;
        Ok(found.remove(&hash).map(|found| (found.key, now)))
    }

    /// Marks at most `limit` lapsed claims of these operations. Returns how many.
    pub(crate) async fn key_lapse(&self, operations: &[String], limit: u32) -> Result<u64, StoreError> {
        let mut tx = self.write().await?;
        let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
        let (alive, mut marked) = (self.own_claims.valid_claims(), 0);
        for (from, to) in lapsed_ends(tx.now, MAX_LEASE) {
            let left = i64::from(limit).saturating_sub_unsigned(marked);
            let (operations, alive) = (SqlValue::Texts(Some(&operations)), SqlValue::Numbers(&alive));
            let values = [from.into(), operations, alive, left.into(), to.into()];
            let unknown =
                unknown_entries(&tx.db_connection().all(sqlite_only!("key_lapse"), &values).await?)?;
            tx.record(&unknown).await?;
            marked += unknown.len() as u64;
        }
        tx.commit().await?;
        Ok(marked)
    }

    /// Settles one record within the caller's open transaction.
    pub(crate) async fn settle_in(
        &self,
        connection: &mut SqliteConnection,
        settle: &KeySettle,
    ) -> Result<KeySettled, StoreError> {
        self.files.check()?;
        let now = self.now(connection).await?;
        let (stands, unknown) = settle_alone(connection, now, &settle.name.hash(), settle).await?;
        if unknown.is_some() {
            let next: i64 = sqlx::query(include_str!("sql/fence_next.sql"))
                .fetch_one(&mut *connection)
                .await?
                .try_get("last")?;
            let mut connection = DbConnection::Sqlite(connection, now);
            action::record(&mut connection, unknown.as_slice(), next - 1).await?;
        }
        Ok(if stands { KeySettled::Settled } else { KeySettled::Stale })
    }

    /// Records an outcome within the caller's open transaction, unless its key has a record.
    pub(crate) async fn record_in(
        &self,
        connection: &mut SqliteConnection,
        recording: &KeyRecording,
    ) -> Result<KeyRecorded, StoreError> {
        self.files.check()?;
        record_in(&mut without_clock(connection), recording, self.skew(), false).await
    }

    /// Returns whether a caller's connection leads to the store's file.
    pub(crate) async fn is_database_of(&self, connection: &mut SqliteConnection) -> Result<bool, StoreError> {
        let row = sqlx::query(include_str!("sql/database_identity.sql")).fetch_one(connection).await?;
        let file = Path::new(row.try_get::<&str, _>("file")?).canonicalize();
        Ok(file.is_ok_and(|file| file == self.path))
    }

    /// Notes that a claim was settled in a caller's transaction, after its commit.
    pub(crate) fn settled(&self, fence: Fence) {
        self.own_claims.release(fence);
    }

    /// Checks at most `limit` records that had expired at a time, and deletes those that no live message uses.
    pub(crate) async fn key_sweep(&self, now: Timestamp, limit: u32) -> Result<KeySweep, StoreError> {
        let mut tx = self.write().await?;
        let values = [now.into(), i64::from(limit).into()];
        let rows = tx.db_connection().all(sqlite_only!("key_expired"), &values).await?;
        let (mut held, mut over) = (Vec::new(), Vec::new());
        for row in &rows {
            if row.truth("held")? { held.push(name_of(row)?) } else { over.push(name_of(row)?) }
        }
        if rows.is_empty() {
            return Ok(KeySweep::default());
        }
        let values = [SqlValue::Hashes(&held), now.plus(LATER).into()];
        tx.db_connection().execute(sqlite_only!("key_later"), &values).await?;
        let deleted =
            tx.db_connection().execute(sqlite_only!("key_forget"), &[SqlValue::Hashes(&over)]).await?;
        tx.commit().await?;
        Ok(KeySweep { deleted, checked: rows.len() as u64 })
    }
}

/// Looks up keys for requests that share the read.
impl BatchWriter<LookupJob, KeyLookup> for Sqlite {
    const BUSY_FOR_ALL: bool = true;

    async fn write(&self, jobs: &[LookupJob], _manner: WriteMode) -> Result<Vec<KeyLookup>, StoreError> {
        self.files.refuse_if_lost()?;
        let names: Vec<_> = jobs.iter().map(|job| job.name).collect();
        let mut reader = self.pool().acquire().await?;
        // Most keys are new. Only a record needs the time.
        let rows = find_rows(&mut reader, &names).await?;
        if rows.is_empty() {
            return Ok(vec![KeyLookup::Free; jobs.len()]);
        }
        let mut found = read_found(&rows, self.skew.now(self.now(&mut reader).await?))?;
        for found in found.values_mut() {
            self.keep_own(found);
        }
        jobs.iter().map(|job| job.result(found.get(&job.name))).collect()
    }
}

/// Inserts the claims of new names. Returns how many.
async fn insert(tx: &mut WriteTransaction, attempts: &[&ClaimAttempt]) -> Result<usize, StoreError> {
    let now = tx.now;
    let mut fence = tx.last;
    let mut inserted = 0;
    for part in values::parts(attempts) {
        let mut query = sqlx::query(values::repeated(include_str!("sql/key_claim.sql"), part.len()));
        for ClaimAttempt { claim, claim_id } in part {
            fence = fence.saturating_add(1);
            query = query
                .bind(claim.name.hash().as_slice())
                .bind(&claim.name.operation)
                .bind(&claim.name.identity)
                .bind(claim.name.key.as_str())
                .bind(claim.fingerprint.as_bytes().as_slice())
                .bind(claim.request_digest.as_bytes().as_slice())
                .bind(fence)
                .bind(claim_id)
                .bind(now.plus(claim.policy.lease()).as_micros())
                .bind(now.as_micros())
                .bind(now.as_micros())
                .bind(claim.hops.as_deref())
                .bind(claim.trace.as_deref())
                .bind(claim.policy.guarantee().as_str());
        }
        inserted += query.execute(tx.connection()).await?.rows_affected();
    }
    if 0 < inserted {
        // Fences of existing names stay unused. A batch of repetitions only issues none, and writes nothing.
        tx.draw(attempts.len());
    }
    Ok(usize::try_from(inserted).unwrap_or(usize::MAX))
}

async fn claim_found(
    tx: &mut WriteTransaction,
    attempt: &ClaimAttempt,
    name: &[u8; 32],
    found: &FoundRecord,
) -> Result<Option<KeyClaimed>, StoreError> {
    Ok(match attempt.decide(found)? {
        ClaimDecision::Answer(answer) => Some(answer),
        ClaimDecision::Replace { began, mode } => {
            let fence = tx.draw_one()?;
            let (claim, now) = (&attempt.claim, tx.now);
            let replaced = sqlx::query(include_str!("sql/key_replace.sql"))
                .bind(name.as_slice())
                .bind(number(found.key.record.fence))
                .bind(state_name(&found.key.record.phase))
                .bind(number(fence))
                .bind(attempt.claim_id)
                .bind(claim.fingerprint.as_bytes().as_slice())
                .bind(claim.request_digest.as_bytes().as_slice())
                .bind(now.plus(claim.policy.lease()).as_micros())
                .bind(now.as_micros())
                .bind(claim.hops.as_deref())
                .bind(claim.trace.as_deref())
                .bind(mode.as_str())
                .execute(tx.connection())
                .await?;
            (replaced.rows_affected() == 1).then_some(KeyClaimed::Run { fence, began })
        }
        ClaimDecision::MarkUnknown { fence } => {
            let marked = sqlx::query(include_str!("sql/key_mark_unknown.sql"))
                .bind(name.as_slice())
                .bind(number(fence))
                .execute(tx.connection())
                .await?;
            let unknown = (marked.rows_affected() == 1).then(|| AuditAction::unknown(&attempt.claim.name));
            tx.record(unknown.as_slice()).await?;
            unknown.map(|_| KeyClaimed::Unknown { fence })
        }
    })
}

/// Settles many records. Returns whether all were applied; if not, the transaction must be rolled back.
async fn settle_together(tx: &mut WriteTransaction, settles: &[&KeySettle]) -> Result<bool, StoreError> {
    let mut names = HashSet::with_capacity(settles.len());
    let mut unknown = Vec::new();
    let mut kept = Vec::with_capacity(settles.len());
    for settle in settles {
        let name = settle.name.hash();
        if !names.insert(name) {
            // Two settles of one record are distinguished by their order.
            return Ok(false);
        }
        match &settle.outcome {
            KeyOutcome::Keep { .. } => kept.push((name, *settle)),
            KeyOutcome::Release | KeyOutcome::Hold | KeyOutcome::HoldAnswered => {
                let now = tx.now;
                let (stands, entry) = settle_alone(tx.connection(), now, &name, settle).await?;
                if !stands {
                    return Ok(false);
                }
                unknown.extend(entry);
            }
        }
    }
    for part in values::parts(&kept) {
        let now = tx.now;
        if keep(tx.connection(), now, part).await? < part.len() {
            return Ok(false);
        }
    }
    tx.record(&unknown).await?;
    Ok(true)
}

/// Settles one record. Returns whether it was applied, and an entry for the audit trail if its outcome became unknown.
async fn settle_alone(
    connection: &mut SqliteConnection,
    now: Timestamp,
    name: &[u8; 32],
    settle: &KeySettle,
) -> Result<(bool, Option<AuditAction>), StoreError> {
    let mut change = async |sql: &'static str| {
        let query = sqlx::query(sql).bind(name.as_slice()).bind(number(settle.fence));
        query.execute(&mut *connection).await.map(|done| done.rows_affected() == 1)
    };
    Ok(match &settle.outcome {
        KeyOutcome::Keep { .. } => (keep(connection, now, &[(*name, settle)]).await? == 1, None),
        KeyOutcome::Release => (change(include_str!("sql/key_release.sql")).await?, None),
        outcome @ (KeyOutcome::Hold | KeyOutcome::HoldAnswered) => {
            let held = if change(include_str!("sql/key_mark_unknown.sql")).await? {
                (true, Some(AuditAction::unknown(&settle.name)))
            } else {
                // It may be unknown already.
                (change(include_str!("sql/key_hold.sql")).await?, None)
            };
            if matches!(outcome, KeyOutcome::HoldAnswered) {
                let query = sqlx::query(include_str!("sql/key_answered.sql")).bind(name.as_slice());
                query.bind(number(settle.fence)).bind(now.as_micros()).execute(connection).await?;
            }
            held
        }
    })
}

/// Stores outcomes of different names. Returns how many were applied.
async fn keep(
    connection: &mut SqliteConnection,
    now: Timestamp,
    settles: &[([u8; 32], &KeySettle)],
) -> Result<usize, StoreError> {
    let mut query = sqlx::query(values::repeated(include_str!("sql/key_settle.sql"), settles.len()));
    for (name, settle) in settles {
        if let KeyOutcome::Keep { settled, response, result_digest, message_id, ttl } = &settle.outcome {
            query = query
                .bind(name.as_slice())
                .bind(number(settle.fence))
                .bind(settled.as_str())
                .bind(small(response.status))
                .bind(headers::encode(&response.headers))
                .bind(response.body.as_deref())
                .bind(result_digest.map(|digest| digest.as_bytes().to_vec()))
                .bind(*message_id)
                .bind(now.as_micros())
                .bind(now.plus(*ttl).as_micros());
        }
    }
    let kept = query.execute(connection).await?.rows_affected();
    Ok(usize::try_from(kept).unwrap_or(usize::MAX))
}

async fn find_many(
    connection: &mut SqliteConnection,
    names: &[[u8; 32]],
    now: Now,
) -> Result<HashMap<[u8; 32], FoundRecord>, StoreError> {
    read_found(&find_rows(connection, names).await?, now)
}

async fn find_rows(connection: &mut SqliteConnection, names: &[[u8; 32]]) -> Result<Vec<Row>, StoreError> {
    without_clock(connection).all(sqlite_only!("key_find"), &[SqlValue::Hashes(names)]).await
}

fn read_found(rows: &[Row], now: Now) -> Result<HashMap<[u8; 32], FoundRecord>, StoreError> {
    rows.iter().map(|row| Ok((name_of(row)?, read_record(row, now)?))).collect()
}
