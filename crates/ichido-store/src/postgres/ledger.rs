//! The ledger on PostgreSQL.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Admission, Expiry, Kept, Phase, Record, RecordName, Settled, admit};
use ichido_core::time::Timestamp;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::moment::Moment;
use super::{Postgres, micros};
use crate::error::StoreError;
use crate::headers;
use crate::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeyRecord, KeySettle, KeySettled, Response};

/// How often a claim looks again when the record changes under its eyes. Each round somebody else got ahead.
const ROUNDS_MAX: usize = 8;

/// A claim with the id by which it knows its own insert again.
pub(crate) struct Attempt {
    pub(crate) claim: KeyClaim,
    pub(crate) claim_id: Uuid,
}

impl Postgres {
    pub(crate) async fn key_claim(&self, attempts: &[Attempt]) -> Result<Vec<KeyClaimed>, StoreError> {
        let mut answers: Vec<Option<KeyClaimed>> = vec![None; attempts.len()];
        for _ in 0..ROUNDS_MAX {
            let open: Vec<usize> = (0..attempts.len()).filter(|index| answers[*index].is_none()).collect();
            if open.is_empty() {
                break;
            }
            let won = self.claim_insert(attempts, &open).await?;
            for index in &open {
                if let Some(fence) = won.get(&attempts[*index].claim_id) {
                    answers[*index] = Some(KeyClaimed::Run { fence: *fence });
                }
            }
            self.claim_rest(attempts, &mut answers).await?;
        }
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
        let inserted = sqlx::query(include_str!("sql/key_claim.sql"))
            .bind(rows.iter().map(|(name, _)| name.as_slice()).collect::<Vec<_>>())
            .bind(claims().map(|claim| claim.name.operation.as_str()).collect::<Vec<_>>())
            .bind(claims().map(|claim| claim.name.identity.as_str()).collect::<Vec<_>>())
            .bind(claims().map(|claim| claim.name.key.as_str()).collect::<Vec<_>>())
            .bind(claims().map(|claim| claim.fingerprint.as_bytes().as_slice()).collect::<Vec<_>>())
            .bind(claims().map(|claim| claim.request_digest.as_bytes().as_slice()).collect::<Vec<_>>())
            .bind(rows.iter().map(|(_, attempt)| attempt.claim_id).collect::<Vec<_>>())
            .bind(claims().map(|claim| micros(claim.policy.lease())).collect::<Vec<_>>())
            .bind(self.skew())
            .fetch_all(self.pool())
            .await?;
        inserted.iter().map(|row| Ok((row.try_get("claim_id")?, fence(row)?))).collect()
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
        let fence = found.key.record.fence;
        if found.claim_id == attempt.claim_id && matches!(found.key.record.phase, Phase::Claimed { .. }) {
            // Our own claim, whose answer was lost on the way.
            return Ok(Some(KeyClaimed::Run { fence }));
        }
        let claim = &attempt.claim;
        Ok(match admit(Some(&found.key.record), claim.fingerprint, &claim.policy, found.now) {
            Admission::Run { .. } | Admission::TakeOver { .. } => {
                self.claim_replace(attempt, name, found).await?.map(|fence| KeyClaimed::Run { fence })
            }
            Admission::Replay => found.key.response.clone().map(KeyClaimed::Replay),
            Admission::ReplayNotKept => found
                .key
                .response
                .as_ref()
                .map(|response| KeyClaimed::ReplayNotKept { status: response.status }),
            Admission::Wait { lease_until } => Some(KeyClaimed::InFlight { lease_until }),
            Admission::Mismatch => Some(KeyClaimed::Mismatch),
            Admission::MarkUnknown { fence } => {
                let marked = sqlx::query(include_str!("sql/key_mark_unknown.sql"))
                    .bind(name.as_slice())
                    .bind(number(fence))
                    .bind(self.skew())
                    .execute(self.pool())
                    .await?;
                // Not marked: it was renewed or settled meanwhile, and the next round sees it.
                (marked.rows_affected() == 1).then_some(KeyClaimed::Unknown { fence })
            }
            Admission::Unknown => Some(KeyClaimed::Unknown { fence }),
        })
    }

    async fn claim_replace(
        &self,
        attempt: &Attempt,
        name: &[u8; 32],
        found: &Found,
    ) -> Result<Option<Fence>, StoreError> {
        let row = sqlx::query(include_str!("sql/key_replace.sql"))
            .bind(name.as_slice())
            .bind(number(found.key.record.fence))
            .bind(state_name(&found.key.record.phase))
            .bind(attempt.claim_id)
            .bind(attempt.claim.fingerprint.as_bytes().as_slice())
            .bind(attempt.claim.request_digest.as_bytes().as_slice())
            .bind(micros(attempt.claim.policy.lease()))
            .bind(self.skew())
            .fetch_optional(self.pool())
            .await?;
        row.as_ref().map(fence).transpose().map_err(Into::into)
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
                    self.settle_refused(settle, &name, again).await?
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
                states.push(match settled {
                    Settled::Applied => "applied",
                    Settled::Refused => "refused",
                });
                statuses.push(i16::try_from(response.status).unwrap_or(i16::MAX));
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
        let kept = sqlx::query(include_str!("sql/key_settle.sql"))
            .bind(names)
            .bind(fences)
            .bind(states)
            .bind(statuses)
            .bind(header_blobs)
            .bind(bodies)
            .bind(digests)
            .bind(messages)
            .bind(ttls)
            .bind(self.skew())
            .fetch_all(self.pool())
            .await?;
        kept.iter().map(name_of).collect()
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
        let done = sqlx::query(sql)
            .bind(these().map(|(name, _)| name.as_slice()).collect::<Vec<_>>())
            .bind(these().map(|(_, settle)| number(settle.fence)).collect::<Vec<_>>())
            .fetch_all(self.pool())
            .await?;
        done.iter().map(name_of).collect()
    }

    /// Nothing was changed: because somebody else owns it, or because an earlier run of ours did it and its answer was lost.
    async fn settle_refused(
        &self,
        settle: &KeySettle,
        name: &[u8; 32],
        again: bool,
    ) -> Result<KeySettled, StoreError> {
        let found = self.find_many(&[*name]).await?;
        Ok(match found.get(name) {
            Some(found) if found.key.record.fence == settle.fence => match &settle.outcome {
                KeyOutcome::Keep { .. } if again => KeySettled::Stands,
                _ => KeySettled::AlreadySettled,
            },
            None if again && matches!(settle.outcome, KeyOutcome::Release) => KeySettled::Stands,
            _ => KeySettled::Stale,
        })
    }

    /// Prolongs claims; answers which of them still stand.
    pub(crate) async fn key_renew(
        &self,
        claims: &[(RecordName, Fence, Duration)],
    ) -> Result<Vec<bool>, StoreError> {
        let mut rows: Vec<([u8; 32], Fence, Duration)> =
            claims.iter().map(|(name, fence, lease)| (name.hash(), *fence, *lease)).collect();
        rows.sort_by_key(|(name, ..)| *name);
        let renewed = sqlx::query(include_str!("sql/key_renew.sql"))
            .bind(rows.iter().map(|(name, ..)| name.as_slice()).collect::<Vec<_>>())
            .bind(rows.iter().map(|(_, fence, _)| number(*fence)).collect::<Vec<_>>())
            .bind(rows.iter().map(|(.., lease)| micros(*lease)).collect::<Vec<_>>())
            .bind(self.skew())
            .fetch_all(self.pool())
            .await?;
        let renewed: HashSet<([u8; 32], Fence)> =
            renewed.iter().map(|row| Ok((name_of(row)?, fence(row)?))).collect::<Result<_, StoreError>>()?;
        Ok(claims.iter().map(|(name, fence, _)| renewed.contains(&(name.hash(), *fence))).collect())
    }

    pub(crate) async fn key_look_up(&self, name: &RecordName) -> Result<Option<KeyRecord>, StoreError> {
        let hash = name.hash();
        Ok(self.find_many(&[hash]).await?.remove(&hash).map(|found| found.key))
    }

    /// Forgets expired records, at most `limit`; answers how many.
    pub(crate) async fn key_sweep(&self, limit: u32) -> Result<u64, StoreError> {
        let row = sqlx::query(include_str!("sql/key_sweep.sql"))
            .bind(i64::from(limit))
            .bind(self.skew())
            .fetch_one(self.pool())
            .await?;
        Ok(row.try_get::<i64, _>(0)?.unsigned_abs())
    }

    async fn find_many(&self, names: &[[u8; 32]]) -> Result<HashMap<[u8; 32], Found>, StoreError> {
        let rows = sqlx::query(include_str!("sql/key_find.sql"))
            .bind(names.iter().map(<[u8; 32]>::as_slice).collect::<Vec<_>>())
            .bind(self.skew())
            .fetch_all(self.pool())
            .await?;
        rows.iter().map(|row| Ok((name_of(row)?, found(row)?))).collect()
    }
}

/// A record with what the claim needs to know beside it.
struct Found {
    key: KeyRecord,
    claim_id: Uuid,
    now: Timestamp,
}

fn found(row: &PgRow) -> Result<Found, StoreError> {
    let corrupt = |detail: &str| StoreError::Corrupt { table: "ledger", detail: detail.to_owned() };
    let moment = |column: &str| -> Result<Option<Timestamp>, sqlx::Error> {
        Ok(row.try_get::<Option<Moment>, _>(column)?.map(|moment| moment.0))
    };
    let hash = |column: &str| -> Result<[u8; 32], StoreError> {
        row.try_get::<&[u8], _>(column)?.try_into().map_err(|_| corrupt("a hash is not 32 bytes long"))
    };
    let status: Option<i16> = row.try_get("status")?;
    let response = match (status, row.try_get::<Option<&[u8]>, _>("headers")?) {
        (Some(status), Some(blob)) => Some(Response {
            status: u16::try_from(status).map_err(|_| corrupt("the status is negative"))?,
            headers: headers::decode(blob).ok_or_else(|| corrupt("the headers cannot be read"))?,
            body: row.try_get("body")?,
        }),
        _ => None,
    };
    let held: bool = row.try_get("held")?;
    let phase =
        match (row.try_get::<&str, _>("state")?, moment("lease_until")?, moment("expires_at")?, &response) {
            ("claimed", Some(lease_until), ..) => Phase::Claimed { lease_until },
            ("unknown", ..) => Phase::Unknown,
            (state @ ("applied" | "refused"), _, Some(expires_at), Some(response)) => Phase::Settled {
                outcome: if state == "applied" { Settled::Applied } else { Settled::Refused },
                kept: if response.body.is_some() { Kept::Whole } else { Kept::WithoutBody },
                expiry: if held { Expiry::HeldByMessage } else { Expiry::At(expires_at) },
            },
            _ => return Err(corrupt("the state does not go with the other columns")),
        };
    let key = IdempotencyKey::parse(row.try_get("key")?).map_err(|error| corrupt(&error.to_string()))?;
    Ok(Found {
        key: KeyRecord {
            name: RecordName {
                operation: row.try_get("operation")?,
                identity: row.try_get("identity")?,
                key,
            },
            record: Record {
                fingerprint: Fingerprint::from_bytes(hash("fingerprint")?),
                fence: fence(row)?,
                first_claimed_at: row.try_get::<Moment, _>("created_at")?.0,
                claimed_at: row.try_get::<Moment, _>("claimed_at")?.0,
                phase,
            },
            request_digest: Digest::from_bytes(hash("request_digest")?),
            response,
            result_digest: match row.try_get::<Option<&[u8]>, _>("result_digest")? {
                Some(_) => Some(Digest::from_bytes(hash("result_digest")?)),
                None => None,
            },
            message_id: row.try_get("message_id")?,
            completed_at: moment("completed_at")?,
        },
        claim_id: row.try_get("claim_id")?,
        now: row.try_get::<Moment, _>("now")?.0,
    })
}

const fn state_name(phase: &Phase) -> &'static str {
    match phase {
        Phase::Claimed { .. } => "claimed",
        Phase::Unknown => "unknown",
        Phase::Settled { outcome: Settled::Applied, .. } => "applied",
        Phase::Settled { outcome: Settled::Refused, .. } => "refused",
    }
}

fn name_of(row: &PgRow) -> Result<[u8; 32], StoreError> {
    row.try_get::<&[u8], _>("name")?.try_into().map_err(|_| StoreError::Corrupt {
        table: "ledger",
        detail: "a name is not 32 bytes long".to_owned(),
    })
}

/// A fence as a column holds it.
pub(super) fn number(fence: Fence) -> i64 {
    // Invariant of `Fence`: it fits.
    i64::try_from(fence.get()).unwrap_or(i64::MAX)
}

/// The fence in a row's column of that name.
pub(super) fn fence(row: &PgRow) -> Result<Fence, sqlx::Error> {
    fence_from(row.try_get("fence")?)
}

pub(super) fn fence_from(number: i64) -> Result<Fence, sqlx::Error> {
    u64::try_from(number)
        .ok()
        .and_then(Fence::new)
        .ok_or_else(|| sqlx::Error::Decode("a fence is negative".into()))
}
