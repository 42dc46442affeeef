//! Seals of the audit trail, on PostgreSQL.
//!
//! An entry's position is the number of the transaction that wrote it. Below the oldest running transaction all have ended, so
//! nothing more can appear there. Spans of positions are sealed, independent of clocks.

use ichido_core::audit::AuditKey;
use ichido_core::audit::entry::AuditEntry;
use ichido_core::audit::leaf::Leaf;
use ichido_core::audit::seal::SealHead;
use ichido_core::audit::verify::{AuditReport, CheckedSeal, Verifier};
use ichido_core::time::Timestamp;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use uuid::Uuid;

use super::Postgres;
use crate::audit::{
    AuditSealed, SEALS_PAGE, entries, entry, find_misfits, first_seen, first_seen_in, next_seal, previous,
    stored, trail,
};
use crate::columns::Columns as _;
use crate::error::StoreError;

/// The maximum size of the requests hashed for one seal, which has a time limit. If there are more, the seal has fewer entries.
const REQUEST_BYTES_PER_SEAL: i64 = 256 << 20;

/// The end of what can be sealed, the first position of future transactions, and the time.
struct SealHorizon {
    ended_below: i64,
    following: i64,
    now: Timestamp,
}

impl Postgres {
    pub(crate) async fn audit_seal(
        &self,
        key: Option<&AuditKey>,
        limit: u32,
    ) -> Result<AuditSealed, StoreError> {
        self.calls
            .with_connection(async |connection| {
                let mut transaction = connection.begin().await?;
                sqlx::query(include_str!("sql/seal_lock.sql")).execute(&mut *transaction).await?;
                let sealed = self.seal_next(&mut transaction, key, limit).await?;
                transaction.commit().await?;
                Ok(sealed)
            })
            .await
    }

    async fn seal_next(
        &self,
        connection: &mut PgConnection,
        key: Option<&AuditKey>,
        limit: u32,
    ) -> Result<AuditSealed, StoreError> {
        let last = trail::last_seal(&mut self.connection(connection)).await?;
        // With another key the chain would prove nothing from here on.
        if last.is_some_and(|last| last.keyed && !last.is_under(key)) {
            return Ok(AuditSealed::KeyNeeded);
        }
        let SealHorizon { ended_below, now, .. } = self.horizon(connection).await?;
        let since = last.map_or(i64::MIN, |last| last.until);
        let mut limit = i64::from(limit);
        let (until, entries, before, first_seen) = loop {
            let Some(until) = span(connection, since, ended_below, limit).await? else {
                return Ok(AuditSealed::Nothing);
            };
            let entries = entries_of(connection, since, until).await?;
            let before = trail::entries_before(&mut self.connection(connection), &entries).await?;
            let first_seen = first_seen(&entries, &before);
            if limit == 1 || request_bytes(connection, &first_seen).await? <= REQUEST_BYTES_PER_SEAL {
                break (until, entries, before, first_seen);
            }
            limit /= 2;
        };
        let mut connection = self.connection(connection);
        let requests = trail::requests(&mut connection, &first_seen).await?;
        let previous = previous(&before, requests);
        // Read after the entries: every fence in them had been issued by then.
        let misfits = find_misfits(&entries, &before, trail::last_fence(&mut connection).await?);
        let Some((seal, leaves)) = next_seal(last.as_ref(), &entries, previous, &misfits, (until, now), key)
        else {
            return Ok(AuditSealed::Nothing);
        };
        trail::add(&mut connection, &seal, &leaves).await?;
        let misfits = u32::try_from(misfits.len()).unwrap_or(u32::MAX);
        Ok(AuditSealed::Sealed { head: seal.head(), entries: seal.count, misfits })
    }

    /// Uses its own connection, because it has no time limit and needs one snapshot.
    pub(crate) async fn audit_verify(
        &self,
        key: Option<&AuditKey>,
        head: Option<SealHead>,
    ) -> Result<AuditReport, StoreError> {
        // It may take long, which is not worth a warning.
        let options = self.options.clone().options([("statement_timeout", "0")]).disable_statement_logging();
        let mut connection = PgConnection::connect_with(&options).await.map_err(StoreError::Unavailable)?;
        let mut snapshot = connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY").await?;
        let mut verifier = Verifier::new(key, head);
        let mut until = i64::MIN;
        let mut after = 0_i64;
        loop {
            let page = trail::seals(&mut self.connection(&mut snapshot), after, SEALS_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.number("number")?;
            for row in &page {
                let stored = stored(row)?;
                let checked = verifier.seal(stored);
                // From the end of the previous seal, not from what this seal claims: there must be no gap between two seals.
                let since = until;
                until = until.max(stored.seal.until);
                let span = (stored.seal.number, since, until);
                self.compare(&mut snapshot, &mut verifier, span, checked).await?;
            }
        }
        let SealHorizon { following, now, .. } = self.horizon(&mut snapshot).await?;
        let mut snapshot = self.connection(&mut snapshot);
        trail::report_waiting(&mut snapshot, &mut verifier, &[until.into(), following.into()]).await?;
        trail::report_unlisted(&mut snapshot, &mut verifier, &[until.max(following).into()]).await?;
        trail::check(&mut snapshot, &mut verifier, now).await?;
        Ok(verifier.finish())
    }

    /// Compares the entries of one span with the seal's list.
    async fn compare(
        &self,
        connection: &mut PgConnection,
        verifier: &mut Verifier<'_>,
        (number, since, until): (u64, i64, i64),
        checked: Option<CheckedSeal>,
    ) -> Result<(), StoreError> {
        let query = sqlx::query(include_str!("sql/seal_entries.sql")).bind(since).bind(until);
        let mut found = entries(&query.fetch_all(&mut *connection).await?)?;
        if let Some(checked) = &checked {
            let mut connection = self.connection(connection);
            let gone: Vec<Leaf> =
                checked.leaves.iter().filter(|leaf| !found.contains_key(&leaf.id)).copied().collect();
            let forgotten = trail::find_notes(&mut connection, &gone).await?;
            let requests = trail::requests(&mut connection, &first_seen_in(&checked.leaves)).await?;
            verifier.entries(checked, &checked.leaves, &found, &requests, &forgotten);
            for leaf in &checked.leaves {
                found.remove(&leaf.id);
            }
        }
        let mut extra: Vec<&AuditEntry> = found.values().collect();
        extra.sort_unstable_by_key(|entry| entry.id);
        for entry in extra {
            verifier.inserted(Some(number), entry.id, entry.at);
        }
        Ok(())
    }

    async fn horizon(&self, connection: &mut PgConnection) -> Result<SealHorizon, StoreError> {
        let query = sqlx::query(include_str!("sql/seal_horizon.sql")).bind(self.skew());
        let row = query.fetch_one(connection).await?;
        Ok(SealHorizon {
            ended_below: row.number("ended_below")?,
            following: row.number("following")?,
            now: row.timestamp("now")?,
        })
    }
}

/// Returns the end of the next span. It is before the horizon, and the span has about `limit` entries. Returns `None` if there
/// are none. The entries of one transaction stay together.
async fn span(
    connection: &mut PgConnection,
    since: i64,
    horizon: i64,
    limit: i64,
) -> Result<Option<i64>, StoreError> {
    match count(connection, since, horizon, limit + 1).await? {
        0 => return Ok(None),
        entries if entries <= limit => return Ok(Some(horizon)),
        _ => (),
    }
    // There are more. Positions say nothing about the number of entries, so the span doubles until it has enough, starting at
    // the first one that has any.
    let (mut from, mut width, mut until) = (since.max(0), 1_i64, None);
    loop {
        let end = from.saturating_add(width).min(horizon);
        match count(connection, since, end, limit + 1).await? {
            0 => {
                // Everything so far is empty and need not be read again.
                (from, width) = (end, width.saturating_mul(2));
            }
            entries if entries <= limit => (until, width) = (Some(end), width.saturating_mul(2)),
            _ if until.is_none() && 1 < width => width = 1,
            _ => return Ok(until.or(Some(end))),
        }
    }
}

async fn count(connection: &mut PgConnection, since: i64, until: i64, most: i64) -> Result<i64, StoreError> {
    let query = sqlx::query(include_str!("sql/seal_count.sql")).bind(since).bind(until).bind(most);
    Ok(query.fetch_one(connection).await?.number("count")?)
}

async fn entries_of(
    connection: &mut PgConnection,
    since: i64,
    until: i64,
) -> Result<Vec<AuditEntry>, StoreError> {
    let query = sqlx::query(include_str!("sql/seal_entries.sql")).bind(since).bind(until);
    query.fetch_all(connection).await?.iter().map(entry).collect()
}

/// Returns the total size of these messages' requests, which the server knows without reading them.
async fn request_bytes(connection: &mut PgConnection, messages: &[Uuid]) -> Result<i64, StoreError> {
    let query = sqlx::query(include_str!("sql/request_bytes.sql")).bind(messages);
    Ok(query.fetch_one(connection).await?.number("bytes")?)
}
