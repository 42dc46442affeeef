//! The ledger on PostgreSQL.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::ledger::RecordName;
use ichido_core::time::Timestamp;
use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use super::Postgres;
use super::moment::Moment;
use crate::columns::{Columns, number, small};
use crate::error::StoreError;
use crate::headers;
use crate::ledger::{Began, KeyClaimed, KeyOutcome, KeyRecord, KeySettle, KeySettled, limits};
use crate::micros;
use crate::record::{
    Attempt, Found, Next, found, name_of, not_settled, page_after, settled_name, state_name,
};

/// How often a claim looks again when the record changes under its eyes. Each round somebody else got ahead.
const ROUNDS_MAX: usize = 8;

impl Postgres {
    pub(crate) async fn key_claim(&self, attempts: &[Attempt]) -> Result<Vec<KeyClaimed>, StoreError> {
        let mut answers: Vec<Option<KeyClaimed>> = vec![None; attempts.len()];
        // In a storm of retries most keys are known, and a look is cheaper than an insert that finds so.
        if self.mostly_known.load(Ordering::Relaxed) {
            self.claim_rest(attempts, &mut answers).await?;
        }
        let mut new = 0;
        for _ in 0..ROUNDS_MAX {
            let open: Vec<usize> = (0..attempts.len()).filter(|index| answers[*index].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let won = self.claim_insert(attempts, &open).await?;
            new += won.len();
            for index in &open {
                if let Some(fence) = won.get(&attempts[*index].claim_id) {
                    answers[*index] = Some(KeyClaimed::Run { fence: *fence, began: Began::New });
                }
            }
            self.claim_rest(attempts, &mut answers).await?;
        }
        self.mostly_known.store(new * 2 < attempts.len(), Ordering::Relaxed);
        // Somebody else got ahead in every round: the caller may come again.
        answers.into_iter().map(|answer| answer.ok_or(StoreError::Busy)).collect()
    }

    async fn claim_insert(
        &self,
        attempts: &[Attempt],
        open: &[usize],
    ) -> Result<HashMap<Uuid, Fence>, StoreError> {
        let mut rows: Vec<([u8; 32], &Attempt)> =
            open.iter().map(|index| (attempts[*index].claim.name.hash(), &attempts[*index])).collect();
        rows.sort_by_key(|(name, _)| *name);
        let claims = || rows.iter().map(|(_, attempt)| &attempt.claim);
        let inserted = self
            .batches
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
                    .bind(self.skew()),
            )
            .await?;
        inserted.iter().map(|row| Ok((row.uuid("claim_id")?, row.fence()?))).collect()
    }

    /// What was not inserted is there already: the core decides what that means.
    async fn claim_rest(
        &self,
        attempts: &[Attempt],
        answers: &mut [Option<KeyClaimed>],
    ) -> Result<(), StoreError> {
        let open: Vec<usize> = (0..attempts.len()).filter(|index| answers[*index].is_none()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let names: Vec<[u8; 32]> = open.iter().map(|index| attempts[*index].claim.name.hash()).collect();
        let found = self.find_many(&names).await?;
        for (index, name) in open.into_iter().zip(names) {
            // Gone again between the insert and the look: the next round inserts.
            let Some(found) = found.get(&name) else { continue };
            answers[index] = self.claim_found(&attempts[index], &name, found).await?;
        }
        Ok(())
    }

    async fn claim_found(
        &self,
        attempt: &Attempt,
        name: &[u8; 32],
        found: &Found,
    ) -> Result<Option<KeyClaimed>, StoreError> {
        Ok(match attempt.next(found)? {
            Next::Answer(answer) => Some(answer),
            Next::Replace { began } => {
                self.claim_replace(attempt, name, found).await?.map(|fence| KeyClaimed::Run { fence, began })
            }
            Next::MarkUnknown { fence } => {
                let marked = self
                    .batches
                    .execute(
                        sqlx::query(include_str!("sql/key_mark_unknown.sql"))
                            .bind(name.as_slice())
                            .bind(number(fence))
                            .bind(self.skew()),
                    )
                    .await?;
                // Not marked: it was renewed or settled meanwhile, and the next round sees it.
                (marked.rows_affected() == 1).then_some(KeyClaimed::Unknown { fence })
            }
        })
    }

    async fn claim_replace(
        &self,
        attempt: &Attempt,
        name: &[u8; 32],
        found: &Found,
    ) -> Result<Option<Fence>, StoreError> {
        let row = self
            .batches
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
                    .bind(self.skew()),
            )
            .await?;
        row.as_ref().map(Columns::fence).transpose().map_err(Into::into)
    }

    pub(crate) async fn key_settle(
        &self,
        settles: &[KeySettle],
        again: bool,
    ) -> Result<Vec<KeySettled>, StoreError> {
        let named: Vec<([u8; 32], &KeySettle)> =
            settles.iter().map(|settle| (settle.name.hash(), settle)).collect();
        let mut answers = vec![None; settles.len()];
        loop {
            // One settle of a name at a time, in the order they came, so that each is answered for itself.
            let mut taken = HashSet::new();
            let round: Vec<usize> = (0..named.len())
                .filter(|index| answers[*index].is_none() && taken.insert(named[*index].0))
                .collect();
            if round.is_empty() {
                return Ok(answers.into_iter().flatten().collect());
            }
            let mut rows: Vec<_> = round.iter().map(|index| named[*index]).collect();
            rows.sort_by_key(|(name, _)| *name);
            let stands = self.settle_round(&rows).await?;
            for index in round {
                let (name, settle) = named[index];
                answers[index] = Some(if stands.contains(&name) {
                    KeySettled::Stands
                } else {
                    not_settled(settle, self.find_many(&[name]).await?.get(&name), again)
                });
            }
        }
    }

    /// Settles records of different names; answers which of them it changed.
    async fn settle_round(&self, rows: &[([u8; 32], &KeySettle)]) -> Result<HashSet<[u8; 32]>, StoreError> {
        let mut stands = self.settle_keep(rows).await?;
        stands.extend(
            self.settle_without(rows, &KeyOutcome::Release, include_str!("sql/key_release.sql")).await?,
        );
        stands.extend(self.settle_without(rows, &KeyOutcome::Hold, include_str!("sql/key_hold.sql")).await?);
        Ok(stands)
    }

    async fn settle_keep(&self, rows: &[([u8; 32], &KeySettle)]) -> Result<HashSet<[u8; 32]>, StoreError> {
        let mut names = Vec::new();
        let mut fences = Vec::new();
        let mut states = Vec::new();
        let mut statuses = Vec::new();
        let mut header_blobs = Vec::new();
        let mut bodies = Vec::new();
        let mut digests = Vec::new();
        let mut messages = Vec::new();
        let mut ttls = Vec::new();
        for (name, settle) in rows {
            if let KeyOutcome::Keep { settled, response, result_digest, message_id, ttl } = &settle.outcome {
                names.push(name.as_slice());
                fences.push(number(settle.fence));
                states.push(settled_name(*settled));
                statuses.push(small(response.status));
                header_blobs.push(headers::encode(&response.headers));
                bodies.push(response.body.as_deref());
                digests.push(result_digest.map(|digest| digest.as_bytes().to_vec()));
                messages.push(*message_id);
                ttls.push(micros(*ttl));
            }
        }
        if names.is_empty() {
            return Ok(HashSet::new());
        }
        let kept = self
            .batches
            .all(
                sqlx::query(include_str!("sql/key_settle.sql"))
                    .bind(names)
                    .bind(fences)
                    .bind(states)
                    .bind(statuses)
                    .bind(header_blobs)
                    .bind(bodies)
                    .bind(digests)
                    .bind(messages)
                    .bind(ttls)
                    .bind(self.skew()),
            )
            .await?;
        kept.iter().map(name_of).collect()
    }

    /// Settles one record within the caller's open transaction.
    pub(crate) async fn settle_in(
        &self,
        connection: &mut PgConnection,
        settle: &KeySettle,
    ) -> Result<KeySettled, StoreError> {
        let (name, fence) = (settle.name.hash(), number(settle.fence));
        let without = async |connection: &mut PgConnection, sql: &'static str| {
            let query = sqlx::query(sql).bind(vec![name.to_vec()]).bind(vec![fence]);
            query.execute(connection).await.map(|done| done.rows_affected() == 1)
        };
        let stands = match &settle.outcome {
            KeyOutcome::Keep { settled, response, result_digest, message_id, ttl } => {
                sqlx::query(include_str!("sql/key_settle_in.sql"))
                    .bind(name.to_vec())
                    .bind(fence)
                    .bind(settled_name(*settled))
                    .bind(small(response.status))
                    .bind(headers::encode(&response.headers))
                    .bind(response.body.as_deref())
                    .bind(result_digest.map(|digest| digest.as_bytes().to_vec()))
                    .bind(*message_id)
                    .bind(micros(*ttl))
                    .bind(self.skew())
                    .fetch_one(connection)
                    .await?
                    .try_get("stands")?
            }
            KeyOutcome::Release => without(connection, include_str!("sql/key_release.sql")).await?,
            KeyOutcome::Hold => without(connection, include_str!("sql/key_hold.sql")).await?,
        };
        Ok(if stands { KeySettled::Stands } else { KeySettled::Stale })
    }

    async fn settle_without(
        &self,
        rows: &[([u8; 32], &KeySettle)],
        outcome: &KeyOutcome,
        sql: &'static str,
    ) -> Result<Vec<[u8; 32]>, StoreError> {
        let same = std::mem::discriminant(outcome);
        let these = || rows.iter().filter(|(_, settle)| std::mem::discriminant(&settle.outcome) == same);
        if these().next().is_none() {
            return Ok(Vec::new());
        }
        let done = self
            .batches
            .all(
                sqlx::query(sql)
                    .bind(these().map(|(name, _)| name.as_slice()).collect::<Vec<_>>())
                    .bind(these().map(|(_, settle)| number(settle.fence)).collect::<Vec<_>>()),
            )
            .await?;
        done.iter().map(name_of).collect()
    }

    /// Prolongs claims; answers which of them still stand.
    pub(crate) async fn key_renew(
        &self,
        claims: &[(RecordName, Fence, Duration)],
    ) -> Result<Vec<bool>, StoreError> {
        let mut rows: Vec<([u8; 32], Fence, Duration)> =
            claims.iter().map(|(name, fence, lease)| (name.hash(), *fence, *lease)).collect();
        rows.sort_by_key(|(name, ..)| *name);
        let renewed = self
            .calls
            .all(
                sqlx::query(include_str!("sql/key_renew.sql"))
                    .bind(rows.iter().map(|(name, ..)| name.as_slice()).collect::<Vec<_>>())
                    .bind(rows.iter().map(|(_, fence, _)| number(*fence)).collect::<Vec<_>>())
                    .bind(rows.iter().map(|(.., lease)| micros(*lease)).collect::<Vec<_>>())
                    .bind(self.skew()),
            )
            .await?;
        let renewed: HashSet<([u8; 32], Fence)> =
            renewed.iter().map(|row| Ok((name_of(row)?, row.fence()?))).collect::<Result<_, StoreError>>()?;
        Ok(claims.iter().map(|(name, fence, _)| renewed.contains(&(name.hash(), *fence))).collect())
    }

    /// A record, and the moment it was looked at.
    pub(crate) async fn key_find(
        &self,
        name: &RecordName,
    ) -> Result<Option<(KeyRecord, Timestamp)>, StoreError> {
        let hash = name.hash();
        Ok(self.find_many(&[hash]).await?.remove(&hash).map(|found| (found.key, found.now)))
    }

    pub(crate) async fn key_unknown(
        &self,
        after: Option<(Timestamp, [u8; 32])>,
        limit: u32,
    ) -> Result<Vec<KeyRecord>, StoreError> {
        let (since, name) = page_after(after);
        let rows = self
            .calls
            .all(
                sqlx::query(include_str!("sql/key_unknown.sql"))
                    .bind(Moment(since))
                    .bind(name)
                    .bind(i64::from(limit.min(limits::PAGE_MAX))),
            )
            .await?;
        // Nothing is judged here, so no moment is needed.
        rows.iter().map(|row| Ok(found(row, Timestamp::EPOCH)?.key)).collect()
    }

    /// Forgets expired records, at most `limit`; answers how many.
    pub(crate) async fn key_sweep(&self, limit: u32) -> Result<u64, StoreError> {
        let row = self
            .calls
            .one(sqlx::query(include_str!("sql/key_sweep.sql")).bind(i64::from(limit)).bind(self.skew()))
            .await?;
        Ok(row.try_get::<i64, _>(0)?.unsigned_abs())
    }

    async fn find_many(&self, names: &[[u8; 32]]) -> Result<HashMap<[u8; 32], Found>, StoreError> {
        let rows = self
            .calls
            .all(
                sqlx::query(include_str!("sql/key_find.sql"))
                    .bind(names.iter().map(<[u8; 32]>::as_slice).collect::<Vec<_>>())
                    .bind(self.skew()),
            )
            .await?;
        rows.iter().map(|row| Ok((name_of(row)?, found(row, row.moment("now")?)?))).collect()
    }
}
