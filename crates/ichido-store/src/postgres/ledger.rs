//! The ledger on PostgreSQL.
//!
//! A claim inserts first and looks up what existed already. If most keys of the last batch existed, as in a retry storm, the
//! next one looks up first and inserts the rest. Both orders give the same outcomes.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use ichido_core::fence::Fence;
use ichido_core::ledger::limits::MAX_LEASE;
use ichido_core::ledger::{OperationGuarantee, RecordName};
use ichido_core::time::Timestamp;
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::Postgres;
use super::connections::ConnectionPool;
use crate::action::{self, AuditAction};
use crate::columns::{Columns, Row, number, small};
use crate::db_timestamp::DbTimestamp;
use crate::error::StoreError;
use crate::headers;
use crate::ledger::{
    ClaimOrigin, KeyClaimed, KeyLookup, KeyOutcome, KeyRecord, KeyRecorded, KeyRecording, KeySettle,
    KeySettled, KeySweep,
};
use crate::micros;
use crate::record::{
    CLAIMED, ClaimAttempt, ClaimDecision, FoundRecord, LookupJob, name_of, outcome_if_unchanged, read_record,
    record_in, state_name, unknown_entries,
};
use crate::split_retry::{BatchWriter, WriteMode};
use crate::statement::{DbConnection, SqlValue, Statement, column, postgres_only};
use crate::transaction_state::TransactionState;

/// How often a claim retries when the record changes concurrently. In each round somebody else was faster.
const MAX_ROUNDS: usize = 8;

impl Postgres {
    pub(crate) async fn key_claim(
        &self,
        attempts: &[ClaimAttempt],
        manner: WriteMode,
    ) -> Result<Vec<KeyClaimed>, StoreError> {
        let pool = self.pool_for(manner);
        let mut answers: Vec<Option<KeyClaimed>> = vec![None; attempts.len()];
        // In a retry storm most keys exist, and a lookup is cheaper than a failing insert.
        if self.mostly_known.load(Ordering::Relaxed) {
            self.claim_existing(pool, attempts, &mut answers).await?;
        }
        let mut new = 0;
        for _ in 0..MAX_ROUNDS {
            let open: Vec<usize> = (0..attempts.len()).filter(|index| answers[*index].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let won = self.claim_insert(pool, attempts, &open).await?;
            new += won.len();
            for index in &open {
                if let Some(fence) = won.get(&attempts[*index].claim_id) {
                    answers[*index] = Some(KeyClaimed::Run { fence: *fence, began: ClaimOrigin::New });
                }
            }
            self.claim_existing(pool, attempts, &mut answers).await?;
        }
        self.mostly_known.store(new * 2 < attempts.len(), Ordering::Relaxed);
        // Somebody else was faster in every round: the caller may retry.
        answers.into_iter().map(|answer| answer.ok_or(StoreError::Busy)).collect()
    }

    async fn claim_insert(
        &self,
        pool: &ConnectionPool,
        attempts: &[ClaimAttempt],
        open: &[usize],
    ) -> Result<HashMap<Uuid, Fence>, StoreError> {
        let mut rows: Vec<([u8; 32], &ClaimAttempt)> =
            open.iter().map(|index| (attempts[*index].claim.name.hash(), &attempts[*index])).collect();
        rows.sort_by_key(|(name, _)| *name);
        let claims = || rows.iter().map(|(_, attempt)| &attempt.claim);
        let inserted = pool
            .all(
                sqlx::query(include_str!("sql/key_claim.sql"))
                    .bind(rows.iter().map(|(name, _)| name.as_slice()).collect::<Vec<_>>())
                    .bind(claims().map(|claim| claim.name.operation.as_str()).collect::<Vec<_>>())
                    .bind(claims().map(|claim| claim.name.identity.as_str()).collect::<Vec<_>>())
                    .bind(claims().map(|claim| claim.name.key.as_str()).collect::<Vec<_>>())
                    .bind(claims().map(|claim| claim.fingerprint.as_bytes().as_slice()).collect::<Vec<_>>())
                    .bind(
                        claims().map(|claim| claim.request_digest.as_bytes().as_slice()).collect::<Vec<_>>(),
                    )
                    .bind(rows.iter().map(|(_, attempt)| attempt.claim_id).collect::<Vec<_>>())
                    .bind(claims().map(|claim| micros(claim.policy.lease())).collect::<Vec<_>>())
                    .bind(claims().map(|claim| claim.hops.as_deref()).collect::<Vec<_>>())
                    .bind(claims().map(|claim| claim.trace.as_deref()).collect::<Vec<_>>())
                    .bind(claims().map(|claim| claim.policy.guarantee().as_str()).collect::<Vec<_>>())
                    .bind(self.skew()),
            )
            .await?;
        inserted.iter().map(|row| Ok((row.uuid("claim_id")?, row.fence()?))).collect()
    }

    /// Handles the keys that exist already: the core decides what that means.
    async fn claim_existing(
        &self,
        pool: &ConnectionPool,
        attempts: &[ClaimAttempt],
        answers: &mut [Option<KeyClaimed>],
    ) -> Result<(), StoreError> {
        let open: Vec<usize> = (0..attempts.len()).filter(|index| answers[*index].is_none()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let names: Vec<[u8; 32]> = open.iter().map(|index| attempts[*index].claim.name.hash()).collect();
        let found = self.find_many(pool, &names).await?;
        for (index, name) in open.into_iter().zip(names) {
            // Deleted between the insert and the lookup: the next round inserts.
            let Some(found) = found.get(&name) else { continue };
            answers[index] = self.claim_found(pool, &attempts[index], &name, found).await?;
        }
        Ok(())
    }

    async fn claim_found(
        &self,
        pool: &ConnectionPool,
        attempt: &ClaimAttempt,
        name: &[u8; 32],
        found: &FoundRecord,
    ) -> Result<Option<KeyClaimed>, StoreError> {
        Ok(match attempt.decide(found)? {
            ClaimDecision::Answer(answer) => Some(answer),
            ClaimDecision::Replace { began, mode } => self
                .claim_replace(pool, attempt, name, found, mode)
                .await?
                .map(|fence| KeyClaimed::Run { fence, began }),
            ClaimDecision::MarkUnknown { fence } => {
                let marked = pool.with_connection(async |connection: &mut PgConnection| {
                    let mut transaction = connection.begin().await?;
                    let marked = sqlx::query(include_str!("sql/key_mark_unknown.sql"))
                        .bind(name.as_slice())
                        .bind(number(fence))
                        .bind(self.skew())
                        .bind(micros(MAX_LEASE))
                        .execute(&mut *transaction)
                        .await?;
                    // Not marked: it was renewed or settled meanwhile, and the next round sees that.
                    let unknown =
                        (marked.rows_affected() == 1).then(|| AuditAction::unknown(&attempt.claim.name));
                    action::record(&mut self.connection(&mut transaction), unknown.as_slice(), 0).await?;
                    transaction.commit().await?;
                    Ok(unknown.is_some())
                });
                marked.await?.then_some(KeyClaimed::Unknown { fence })
            }
        })
    }

    async fn claim_replace(
        &self,
        pool: &ConnectionPool,
        attempt: &ClaimAttempt,
        name: &[u8; 32],
        found: &FoundRecord,
        mode: OperationGuarantee,
    ) -> Result<Option<Fence>, StoreError> {
        let row = pool
            .optional(
                sqlx::query(include_str!("sql/key_replace.sql"))
                    .bind(name.as_slice())
                    .bind(number(found.key.record.fence))
                    .bind(state_name(&found.key.record.phase))
                    .bind(attempt.claim_id)
                    .bind(attempt.claim.fingerprint.as_bytes().as_slice())
                    .bind(attempt.claim.request_digest.as_bytes().as_slice())
                    .bind(micros(attempt.claim.policy.lease()))
                    .bind(attempt.claim.hops.as_deref())
                    .bind(attempt.claim.trace.as_deref())
                    .bind(mode.as_str())
                    .bind(self.skew())
                    .bind(micros(MAX_LEASE))
                    .bind(DbTimestamp(found.now.retention)),
            )
            .await?;
        row.as_ref().map(Columns::fence).transpose().map_err(Into::into)
    }

    pub(crate) async fn key_settle(
        &self,
        settles: &[KeySettle],
        manner: WriteMode,
    ) -> Result<Vec<KeySettled>, StoreError> {
        let named: Vec<NamedSettle<'_>> = settles.iter().map(|settle| (settle.name.hash(), settle)).collect();
        let settling = async |connection: &mut PgConnection| {
            if takes_one_statement(&named) {
                return self.settle_named(connection, &named, manner.is_retry).await;
            }
            // All or nothing: on a retry, a partly written batch could not be told from another owner's settle.
            let mut transaction = connection.begin().await?;
            sqlx::query(include_str!("sql/key_lock.sql"))
                .bind(named.iter().map(|(name, _)| name.as_slice()).collect::<Vec<_>>())
                .execute(&mut *transaction)
                .await?;
            let answers = self.settle_named(&mut transaction, &named, manner.is_retry).await?;
            transaction.commit().await?;
            Ok(answers)
        };
        self.pool_for(manner).with_connection(settling).await
    }

    async fn settle_named(
        &self,
        connection: &mut PgConnection,
        named: &[NamedSettle<'_>],
        again: bool,
    ) -> Result<Vec<KeySettled>, StoreError> {
        let mut answers = vec![None; named.len()];
        loop {
            // One settle per name at a time, in the order they came, so each gets its own outcome.
            let mut taken = HashSet::new();
            let round: Vec<usize> = (0..named.len())
                .filter(|index| answers[*index].is_none() && taken.insert(named[*index].0))
                .collect();
            if round.is_empty() {
                return Ok(answers.into_iter().flatten().collect());
            }
            let mut rows: Vec<_> = round.iter().map(|index| named[*index]).collect();
            rows.sort_by_key(|(name, _)| *name);
            let stands = self.settle_round(connection, &rows).await?;
            let others: Vec<_> =
                rows.iter().map(|(name, _)| *name).filter(|name| !stands.contains(name)).collect();
            let found = self.find_over(connection, &others).await?;
            for index in round {
                let (name, settle) = named[index];
                answers[index] = Some(if stands.contains(&name) {
                    KeySettled::Settled
                } else {
                    outcome_if_unchanged(settle, found.get(&name), again)
                });
            }
        }
    }

    /// Settles records of different names. Returns which of them it changed.
    async fn settle_round(
        &self,
        connection: &mut PgConnection,
        rows: &[NamedSettle<'_>],
    ) -> Result<HashSet<[u8; 32]>, StoreError> {
        let mut stands = self.settle_keep(connection, rows).await?;
        let mut connection = self.connection(connection);
        let release = postgres_only!("key_release");
        for row in settle_without_response(&mut connection, rows, &KeyOutcome::Release, release).await? {
            stands.insert(name_of(&row)?);
        }
        let hold = postgres_only!("key_hold");
        let mut unknown = HashSet::new();
        for outcome in [KeyOutcome::Hold, KeyOutcome::HoldAnswered] {
            for row in settle_without_response(&mut connection, rows, &outcome, hold).await? {
                stands.insert(name_of(&row)?);
                if row.text("was")? == CLAIMED {
                    unknown.insert(name_of(&row)?);
                }
            }
        }
        let answered = rows.iter().filter(|(_, settle)| matches!(settle.outcome, KeyOutcome::HoldAnswered));
        let answered: Vec<_> = answered.collect();
        if !answered.is_empty() {
            let columns = [
                column(&answered, |(name, _)| &name[..]),
                column(&answered, |(_, settle)| number(settle.fence)),
            ];
            let values = [SqlValue::Rows(&columns), SqlValue::Now];
            connection.execute(postgres_only!("key_answered"), &values).await?;
        }
        let unknown = rows.iter().filter(|(name, _)| unknown.contains(name));
        let unknown: Vec<_> = unknown.map(|(_, settle)| AuditAction::unknown(&settle.name)).collect();
        action::record(&mut connection, &unknown, 0).await?;
        Ok(stands)
    }

    async fn settle_keep(
        &self,
        connection: &mut PgConnection,
        rows: &[NamedSettle<'_>],
    ) -> Result<HashSet<[u8; 32]>, StoreError> {
        let kept: Vec<_> = rows
            .iter()
            .filter_map(|(name, settle)| match &settle.outcome {
                KeyOutcome::Keep { settled, response, result_digest, message_id, ttl } => {
                    let headers = headers::encode(&response.headers);
                    Some((name, settle.fence, *settled, response, headers, result_digest, message_id, *ttl))
                }
                KeyOutcome::Release | KeyOutcome::Hold | KeyOutcome::HoldAnswered => None,
            })
            .collect();
        if kept.is_empty() {
            return Ok(HashSet::new());
        }
        let columns = [
            column(&kept, |(name, ..)| &name[..]),
            column(&kept, |(_, fence, ..)| number(*fence)),
            column(&kept, |(_, _, settled, ..)| settled.as_str()),
            column(&kept, |(_, _, _, response, ..)| small(response.status)),
            column(&kept, |(.., headers, _, _, _)| &headers[..]),
            column(&kept, |(_, _, _, response, ..)| response.body.as_deref()),
            column(&kept, |(.., digest, _, _)| digest.as_ref().map(|digest| &digest.as_bytes()[..])),
            column(&kept, |(.., message_id, _)| **message_id),
            column(&kept, |(.., ttl)| micros(*ttl)),
        ];
        let values = [SqlValue::Rows(&columns), SqlValue::Now];
        let kept = self.connection(connection).all(postgres_only!("key_settle"), &values).await?;
        kept.iter().map(name_of).collect()
    }

    /// Settles one record within the caller's open transaction.
    pub(crate) async fn settle_in(
        &self,
        connection: &mut PgConnection,
        settle: &KeySettle,
        is_marked: bool,
    ) -> Result<KeySettled, StoreError> {
        let (name, fence) = (settle.name.hash(), number(settle.fence));
        let without = async |connection: &mut PgConnection, sql: &'static str| {
            let query = sqlx::query(sql).bind(vec![name.to_vec()]).bind(vec![fence]);
            query.execute(connection).await.map(|done| done.rows_affected() == 1)
        };
        let stands = match &settle.outcome {
            KeyOutcome::Keep { settled, response, result_digest, message_id, ttl } => {
                let row = sqlx::query(include_str!("sql/key_settle_in.sql"))
                    .bind(name.to_vec())
                    .bind(fence)
                    .bind(settled.as_str())
                    .bind(small(response.status))
                    .bind(headers::encode(&response.headers))
                    .bind(response.body.as_deref())
                    .bind(result_digest.map(|digest| digest.as_bytes().to_vec()))
                    .bind(*message_id)
                    .bind(micros(*ttl))
                    .bind(self.skew())
                    .bind(is_marked)
                    .fetch_optional(connection)
                    .await?;
                row.map_or(Ok(false), |row| row.try_get("stands"))?
            }
            // The others are rare, and ask first.
            _ if is_marked && TransactionState::on_postgres(connection).await == TransactionState::Ended => {
                false
            }
            KeyOutcome::Release => without(connection, include_str!("sql/key_release.sql")).await?,
            outcome @ (KeyOutcome::Hold | KeyOutcome::HoldAnswered) => {
                let query = sqlx::query(include_str!("sql/key_hold.sql")).bind(vec![name.to_vec()]);
                let held = query.bind(vec![fence]).fetch_optional(&mut *connection).await?;
                let was = held.as_ref().map(|row| row.text("was")).transpose()?;
                let unknown = (was == Some(CLAIMED)).then(|| AuditAction::unknown(&settle.name));
                if matches!(outcome, KeyOutcome::HoldAnswered) {
                    let query = sqlx::query(include_str!("sql/key_answered.sql")).bind(vec![name.to_vec()]);
                    query.bind(vec![fence]).bind(self.skew()).execute(&mut *connection).await?;
                }
                action::record(&mut self.connection(connection), unknown.as_slice(), 0).await?;
                held.is_some()
            }
        };
        Ok(if stands { KeySettled::Settled } else { KeySettled::Stale })
    }

    /// Records an outcome within the caller's open transaction, unless its key has a record.
    pub(crate) async fn record_in(
        &self,
        connection: &mut PgConnection,
        recording: &KeyRecording,
        is_marked: bool,
    ) -> Result<KeyRecorded, StoreError> {
        record_in(&mut self.connection(connection), recording, self.skew(), is_marked).await
    }

    /// Returns whether a caller's connection leads to the store's database.
    pub(crate) async fn is_database_of(&self, connection: &mut PgConnection) -> Result<bool, StoreError> {
        let identity =
            |row: &PgRow| Ok::<_, StoreError>((row.number("database")?, row.timestamp("started")?));
        let query = || sqlx::query(include_str!("sql/database_identity.sql"));
        let theirs = identity(&query().fetch_one(connection).await?)?;
        Ok(theirs == identity(&self.calls.one(query()).await?)?)
    }

    /// Finds a record. Returns it with the time of the read.
    pub(crate) async fn key_find(
        &self,
        name: &RecordName,
    ) -> Result<Option<(KeyRecord, Timestamp)>, StoreError> {
        let hash = name.hash();
        Ok(self.find_many(&self.calls, &[hash]).await?.remove(&hash).map(|found| (found.key, found.now.wall)))
    }

    /// Marks at most `limit` lapsed claims of these operations. Returns how many.
    pub(crate) async fn key_lapse(&self, operations: &[String], limit: u32) -> Result<u64, StoreError> {
        let mut marked = 0;
        for ends_too_late in [false, true] {
            let left = i64::from(limit).saturating_sub_unsigned(marked);
            let lapsing = async |connection: &mut PgConnection| {
                let mut transaction = connection.begin().await?;
                let rows = sqlx::query(include_str!("sql/key_lapse.sql"))
                    .bind(operations)
                    .bind(left)
                    .bind(self.skew())
                    .bind(ends_too_late)
                    .bind(micros(MAX_LEASE))
                    .fetch_all(&mut *transaction)
                    .await?;
                let unknown = unknown_entries(&rows)?;
                action::record(&mut self.connection(&mut transaction), &unknown, 0).await?;
                transaction.commit().await?;
                Ok(unknown.len() as u64)
            };
            marked += self.calls.with_connection(lapsing).await?;
        }
        Ok(marked)
    }

    /// Checks at most `limit` records that had expired at a time, and deletes those that no live message uses.
    pub(crate) async fn key_sweep(&self, now: Timestamp, limit: u32) -> Result<KeySweep, StoreError> {
        let query =
            sqlx::query(include_str!("sql/key_sweep.sql")).bind(i64::from(limit)).bind(DbTimestamp(now));
        let row = self.calls.one(query).await?;
        let count = |column| Ok::<_, StoreError>(row.try_get::<i64, _>(column)?.unsigned_abs());
        Ok(KeySweep { deleted: count("deleted")?, checked: count("checked")? })
    }

    async fn find_many(
        &self,
        pool: &ConnectionPool,
        names: &[[u8; 32]],
    ) -> Result<HashMap<[u8; 32], FoundRecord>, StoreError> {
        pool.with_connection(async |connection| self.find_over(connection, names).await).await
    }

    async fn find_over(
        &self,
        connection: &mut PgConnection,
        names: &[[u8; 32]],
    ) -> Result<HashMap<[u8; 32], FoundRecord>, StoreError> {
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query(include_str!("sql/key_find.sql"))
            .bind(names.iter().map(<[u8; 32]>::as_slice).collect::<Vec<_>>())
            .bind(self.skew())
            .fetch_all(connection)
            .await?;
        rows.iter()
            .map(|row| Ok((name_of(row)?, read_record(row, self.skew.now(row.timestamp("now")?))?)))
            .collect()
    }
}

/// Looks up keys for requests that share the read.
impl BatchWriter<LookupJob, KeyLookup> for Postgres {
    const BUSY_FOR_ALL: bool = false;

    fn about(job: &LookupJob) -> u64 {
        subject_of(&job.name)
    }

    async fn write(&self, jobs: &[LookupJob], manner: WriteMode) -> Result<Vec<KeyLookup>, StoreError> {
        let names: Vec<_> = jobs.iter().map(|job| job.name).collect();
        let found = self.find_many(self.pool_for(manner), &names).await?;
        jobs.iter().map(|job| job.result(found.get(&job.name))).collect()
    }
}

/// Returns the subject of jobs about one record: a part of its name, which is a hash.
fn subject_of(name: &[u8; 32]) -> u64 {
    name.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

/// A settle with the hash that names its record.
type NamedSettle<'a> = ([u8; 32], &'a KeySettle);

/// Returns whether all settles have the same kind of outcome and no name repeats. An unknown outcome is also an entry of the
/// audit trail.
fn takes_one_statement(named: &[NamedSettle<'_>]) -> bool {
    let (mut seen, mut outcomes) = (HashSet::new(), HashSet::new());
    named.iter().all(|(name, settle)| {
        outcomes.insert(std::mem::discriminant(&settle.outcome));
        let is_held = matches!(settle.outcome, KeyOutcome::Hold | KeyOutcome::HoldAnswered);
        seen.insert(name) && outcomes.len() == 1 && !is_held
    })
}

/// Settles records with an outcome that stores nothing. Returns a row for each that it changed.
async fn settle_without_response(
    connection: &mut DbConnection<'_>,
    rows: &[NamedSettle<'_>],
    outcome: &KeyOutcome,
    statement: Statement,
) -> Result<Vec<Row>, StoreError> {
    let same = std::mem::discriminant(outcome);
    let these = rows.iter().filter(|(_, settle)| std::mem::discriminant(&settle.outcome) == same);
    let these: Vec<_> = these.collect();
    if these.is_empty() {
        return Ok(Vec::new());
    }
    let columns = [column(&these, |(name, _)| &name[..]), column(&these, |(_, settle)| number(settle.fence))];
    connection.all(statement, &[SqlValue::Rows(&columns)]).await
}
