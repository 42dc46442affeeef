//! The ledger on SQLite.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::ledger::{Phase, RecordName};
use ichido_core::time::Timestamp;
use serde_json::json;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;

use super::json::{self, Payloads};
use super::{Sqlite, Writing};
use crate::columns::{Columns, number, small};
use crate::error::StoreError;
use crate::headers;
use crate::hex;
use crate::ledger::{Began, KeyClaimed, KeyOutcome, KeyRecord, KeySettle, KeySettled, limits};
use crate::record::{
    Attempt, Found, Next, found, name_of, not_settled, page_after, settled_name, state_name,
};

/// How often a claim looks again when another claim of its batch changed the record first. The second look sees the last change.
const ROUNDS_MAX: usize = 3;

/// How much later an expired record is looked at again while a living message uses it.
const LATER: Duration = Duration::from_hours(1);

/// Which claim of which record.
type Named = ([u8; 32], Fence);

impl Sqlite {
    pub(crate) async fn key_claim(&self, attempts: &[Attempt]) -> Result<Vec<KeyClaimed>, StoreError> {
        let mut writing = self.write().await?;
        let mut answers: Vec<Option<KeyClaimed>> = vec![None; attempts.len()];
        insert(&mut writing, attempts, &mut answers).await?;
        for _ in 0..ROUNDS_MAX {
            self.claim_rest(&mut writing, attempts, &mut answers).await?;
        }
        writing.commit().await?;
        for (attempt, answer) in attempts.iter().zip(&answers) {
            if let Some(KeyClaimed::Run { fence, .. }) = answer {
                self.own.hold(*fence, attempt.claim.policy.lease());
            }
        }
        answers.into_iter().map(|answer| answer.ok_or(StoreError::Busy)).collect()
    }

    /// What was not inserted is there already: the core decides what that means.
    async fn claim_rest(
        &self,
        writing: &mut Writing,
        attempts: &[Attempt],
        answers: &mut [Option<KeyClaimed>],
    ) -> Result<(), StoreError> {
        let open: Vec<usize> = (0..attempts.len()).filter(|index| answers[*index].is_none()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let names: Vec<[u8; 32]> = open.iter().map(|index| attempts[*index].claim.name.hash()).collect();
        let now = writing.now;
        let mut found = find_many(writing.connection(), &names, now).await?;
        for found in found.values_mut() {
            self.keep_own(found);
        }
        for (index, name) in open.into_iter().zip(names) {
            if let Some(found) = found.get(&name) {
                answers[index] = claim_found(writing, &attempts[index], &name, found).await?;
            }
        }
        Ok(())
    }

    /// A claim that this process still holds by its own clock has not lapsed, whatever the wall clock says.
    fn keep_own(&self, found: &mut Found) {
        let now = found.now;
        let fence = found.key.record.fence;
        if let Phase::Claimed { lease_until } = &mut found.key.record.phase
            && *lease_until <= now
            && let Some(left) = self.own.left(fence)
        {
            *lease_until = now.plus(left);
        }
    }

    /// All of a batch stands or none of it: an answer is never given for half of it.
    pub(crate) async fn key_settle(
        &self,
        settles: &[KeySettle],
        again: bool,
    ) -> Result<Vec<KeySettled>, StoreError> {
        let mut writing = self.write().await?;
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
                break;
            }
            let rows: Vec<_> = round.iter().map(|index| named[*index]).collect();
            let now = writing.now;
            let stands = settle_round(writing.connection(), now, &rows).await?;
            for index in round {
                let (name, settle) = named[index];
                answers[index] = Some(if stands.contains(&name) {
                    KeySettled::Stands
                } else {
                    let found = find_many(writing.connection(), &[name], now).await?;
                    not_settled(settle, found.get(&name), again)
                });
            }
        }
        writing.commit().await?;
        for settle in settles {
            self.own.release(settle.fence);
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// Prolongs claims; answers which of them still stand.
    pub(crate) async fn key_renew(
        &self,
        claims: &[(RecordName, Fence, Duration)],
    ) -> Result<Vec<bool>, StoreError> {
        let mut writing = self.write().await?;
        let rows = claims.iter().map(|(name, fence, lease)| {
            json!([hex(&name.hash()), number(*fence), writing.now.plus(*lease).as_micros()])
        });
        let rows = json::text(rows);
        let renewed =
            sqlx::query(include_str!("sql/key_renew.sql")).bind(rows).fetch_all(writing.connection()).await?;
        let renewed: HashSet<Named> = renewed.iter().map(named).collect::<Result<_, _>>()?;
        writing.commit().await?;
        let mut stands = Vec::with_capacity(claims.len());
        for (name, fence, lease) in claims {
            let stood = renewed.contains(&(name.hash(), *fence));
            if stood {
                self.own.hold(*fence, *lease);
            }
            stands.push(stood);
        }
        Ok(stands)
    }

    /// A record, and the moment it was looked at.
    pub(crate) async fn key_find(
        &self,
        name: &RecordName,
    ) -> Result<Option<(KeyRecord, Timestamp)>, StoreError> {
        let hash = name.hash();
        let mut reader = self.pool().acquire().await?;
        let now = self.now(&mut reader).await?;
        let mut found = find_many(&mut reader, &[hash], now).await?;
        Ok(found.remove(&hash).map(|found| (found.key, now)))
    }

    pub(crate) async fn key_unknown(
        &self,
        after: Option<(Timestamp, [u8; 32])>,
        limit: u32,
    ) -> Result<Vec<KeyRecord>, StoreError> {
        let (since, name) = page_after(after);
        let rows = sqlx::query(include_str!("sql/key_unknown.sql"))
            .bind(since.as_micros())
            .bind(name)
            .bind(i64::from(limit.min(limits::PAGE_MAX)))
            .fetch_all(self.pool())
            .await?;
        // Nothing is judged here, so no moment is needed.
        rows.iter().map(|row| Ok(found(row, Timestamp::EPOCH)?.key)).collect()
    }

    /// Settles one record within the caller's open transaction.
    pub(crate) async fn settle_in(
        &self,
        connection: &mut SqliteConnection,
        settle: &KeySettle,
    ) -> Result<KeySettled, StoreError> {
        let now = self.now(connection).await?;
        let stands = settle_round(connection, now, &[(settle.name.hash(), settle)]).await?;
        Ok(if stands.len() == 1 { KeySettled::Stands } else { KeySettled::Stale })
    }

    /// A claim was settled in a transaction of the caller's, which is committed.
    pub(crate) fn settled(&self, fence: Fence) {
        self.own.release(fence);
    }

    /// Forgets expired records, at most `limit`; answers how many.
    pub(crate) async fn key_sweep(&self, limit: u32) -> Result<u64, StoreError> {
        let mut writing = self.write().await?;
        let now = writing.now;
        let rows = sqlx::query(include_str!("sql/key_expired.sql"))
            .bind(now.as_micros())
            .bind(i64::from(limit))
            .fetch_all(writing.connection())
            .await?;
        let (mut held, mut over) = (Vec::new(), Vec::new());
        for row in &rows {
            let name = hex(&name_of(row)?);
            if row.truth("held")? { held.push(name) } else { over.push(name) }
        }
        if rows.is_empty() {
            return Ok(0);
        }
        sqlx::query(include_str!("sql/key_later.sql"))
            .bind(json::text(held))
            .bind(now.plus(LATER).as_micros())
            .execute(writing.connection())
            .await?;
        let gone = writing.run(include_str!("sql/key_forget.sql"), json::text(over)).await?;
        writing.commit().await?;
        Ok(gone)
    }
}

async fn insert(
    writing: &mut Writing,
    attempts: &[Attempt],
    answers: &mut [Option<KeyClaimed>],
) -> Result<(), StoreError> {
    let now = writing.now;
    let rows = attempts.iter().map(|Attempt { claim, claim_id }| {
        json!([
            hex(&claim.name.hash()),
            claim.name.operation,
            claim.name.identity,
            claim.name.key.as_str(),
            hex(claim.fingerprint.as_bytes()),
            hex(claim.request_digest.as_bytes()),
            json::id(*claim_id),
            now.plus(claim.policy.lease()).as_micros(),
            claim.hops,
            claim.trace,
        ])
    });
    let inserted = sqlx::query(include_str!("sql/key_claim.sql"))
        .bind(json::text(rows))
        .bind(writing.last)
        .bind(now.as_micros())
        .fetch_all(writing.connection())
        .await?;
    if inserted.is_empty() {
        // No fence was used; a batch of nothing but repetitions writes nothing.
        return Ok(());
    }
    writing.draw(attempts.len());
    let won: HashMap<Uuid, Fence> = inserted
        .iter()
        .map(|row| Ok((row.uuid("claim_id")?, row.fence()?)))
        .collect::<Result<_, sqlx::Error>>()?;
    for (attempt, answer) in attempts.iter().zip(answers) {
        *answer =
            won.get(&attempt.claim_id).map(|fence| KeyClaimed::Run { fence: *fence, began: Began::New });
    }
    Ok(())
}

async fn claim_found(
    writing: &mut Writing,
    attempt: &Attempt,
    name: &[u8; 32],
    found: &Found,
) -> Result<Option<KeyClaimed>, StoreError> {
    Ok(match attempt.next(found)? {
        Next::Answer(answer) => Some(answer),
        Next::Replace { began } => {
            let fence = writing.draw_one()?;
            let (claim, now) = (&attempt.claim, writing.now);
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
                .execute(writing.connection())
                .await?;
            (replaced.rows_affected() == 1).then_some(KeyClaimed::Run { fence, began })
        }
        Next::MarkUnknown { fence } => {
            let marked = sqlx::query(include_str!("sql/key_mark_unknown.sql"))
                .bind(name.as_slice())
                .bind(number(fence))
                .execute(writing.connection())
                .await?;
            (marked.rows_affected() == 1).then_some(KeyClaimed::Unknown { fence })
        }
    })
}

/// Settles records of different names; answers which of them it changed.
async fn settle_round(
    connection: &mut SqliteConnection,
    now: Timestamp,
    rows: &[([u8; 32], &KeySettle)],
) -> Result<HashSet<[u8; 32]>, StoreError> {
    let mut stands = settle_keep(connection, now, rows).await?;
    for (outcome, sql) in [
        (KeyOutcome::Release, include_str!("sql/key_release.sql")),
        (KeyOutcome::Hold, include_str!("sql/key_hold.sql")),
    ] {
        stands.extend(settle_without(connection, rows, &outcome, sql).await?);
    }
    Ok(stands)
}

async fn settle_keep(
    connection: &mut SqliteConnection,
    now: Timestamp,
    settles: &[([u8; 32], &KeySettle)],
) -> Result<HashSet<[u8; 32]>, StoreError> {
    let mut payloads = Payloads::new();
    let mut rows = Vec::new();
    for (name, settle) in settles {
        if let KeyOutcome::Keep { settled, response, result_digest, message_id, ttl } = &settle.outcome {
            let (headers_at, headers_len) = payloads.add(&headers::encode(&response.headers));
            let (body_at, body_len) = payloads.add_or_none(response.body.as_deref());
            rows.push(json!([
                hex(name),
                number(settle.fence),
                settled_name(*settled),
                small(response.status),
                headers_at,
                headers_len,
                body_at,
                body_len,
                result_digest.map(|digest| hex(digest.as_bytes())),
                message_id.map(json::id),
                now.plus(*ttl).as_micros(),
            ]));
        }
    }
    if rows.is_empty() {
        return Ok(HashSet::new());
    }
    let kept = sqlx::query(include_str!("sql/key_settle.sql"))
        .bind(json::text(rows))
        .bind(payloads.into_bytes())
        .bind(now.as_micros())
        .fetch_all(connection)
        .await?;
    kept.iter().map(name_of).collect()
}

async fn settle_without(
    connection: &mut SqliteConnection,
    settles: &[([u8; 32], &KeySettle)],
    outcome: &KeyOutcome,
    sql: &'static str,
) -> Result<HashSet<[u8; 32]>, StoreError> {
    let same = std::mem::discriminant(outcome);
    let rows: Vec<_> = settles
        .iter()
        .filter(|(_, settle)| std::mem::discriminant(&settle.outcome) == same)
        .map(|(name, settle)| json!([hex(name), number(settle.fence)]))
        .collect();
    if rows.is_empty() {
        return Ok(HashSet::new());
    }
    let done = sqlx::query(sql).bind(json::text(rows)).fetch_all(connection).await?;
    done.iter().map(name_of).collect()
}

async fn find_many(
    connection: &mut SqliteConnection,
    names: &[[u8; 32]],
    now: Timestamp,
) -> Result<HashMap<[u8; 32], Found>, StoreError> {
    let rows = sqlx::query(include_str!("sql/key_find.sql"))
        .bind(json::text(names.iter().map(|name| hex(name))))
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| Ok((name_of(row)?, found(row, now)?))).collect()
}

fn named(row: &SqliteRow) -> Result<Named, StoreError> {
    Ok((name_of(row)?, row.fence()?))
}
