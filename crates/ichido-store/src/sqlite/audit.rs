//! Seals of the audit trail, on SQLite.
//!
//! A trigger notes each new entry until it is sealed. Entries are never updated, so they are read and hashed without the
//! writer; its transaction only writes the seal, if nothing has changed in between.

use ichido_core::audit::AuditKey;
use ichido_core::audit::entry::{AuditEntry, EntryId};
use ichido_core::audit::leaf::Leaf;
use ichido_core::audit::seal::SealHead;
use ichido_core::audit::verify::{AuditReport, CheckedSeal, Verifier};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::{Sqlite, without_clock};
use crate::audit::listing::is_for_people;
use crate::audit::{
    AuditSealed, SEALS_PAGE, entries, entry, find_misfits, first_seen, first_seen_in, next_seal, previous,
    stored, trail,
};
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::statement::{SqlValue, sqlite_only};

impl Sqlite {
    pub(crate) async fn audit_seal(
        &self,
        key: Option<&AuditKey>,
        limit: u32,
    ) -> Result<AuditSealed, StoreError> {
        let mut reader = self.pool().acquire().await?;
        let last = trail::last_seal(&mut without_clock(&mut reader)).await?;
        // With another key the chain would prove nothing from here on.
        if last.is_some_and(|last| last.keyed && !last.is_under(key)) {
            return Ok(AuditSealed::KeyNeeded);
        }
        let rows =
            sqlx::query(include_str!("sql/seal_entries.sql")).bind(limit).fetch_all(&mut *reader).await?;
        let entries: Vec<AuditEntry> = rows.iter().map(entry).collect::<Result<_, _>>()?;
        let before = trail::entries_before(&mut without_clock(&mut reader), &entries).await?;
        let requests =
            trail::requests(&mut without_clock(&mut reader), &first_seen(&entries, &before)).await?;
        let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let until = last.map_or(0, |last| last.until).saturating_add(count);
        let now = self.now(&mut reader).await?;
        // Read after the entries: every fence in them had been issued by then.
        let misfits =
            find_misfits(&entries, &before, trail::last_fence(&mut without_clock(&mut reader)).await?);
        drop(reader);
        let previous = previous(&before, requests);
        let Some((seal, leaves)) = next_seal(last.as_ref(), &entries, previous, &misfits, (until, now), key)
        else {
            return Ok(AuditSealed::Nothing);
        };
        let mut tx = self.write().await?;
        let sealed: Vec<EntryId> = leaves.iter().map(|leaf| leaf.id).collect();
        let values = [SqlValue::Rows(&trail::ids(&sealed))];
        let done = tx.db_connection().execute(sqlite_only!("seal_done"), &values).await?;
        if trail::last_seal(&mut tx.db_connection()).await? != last || done != u64::from(seal.count) {
            // Another node has sealed or deleted some of it meanwhile.
            tx.rollback().await?;
            return Err(StoreError::Busy);
        }
        trail::add(&mut tx.db_connection(), &seal, &leaves).await?;
        let listed: Vec<EntryId> =
            entries.iter().filter(|entry| is_for_people(entry)).map(|entry| entry.id).collect();
        if !listed.is_empty() {
            let values = [SqlValue::Rows(&trail::ids(&listed)), seal.number.cast_signed().into()];
            tx.db_connection().execute(sqlite_only!("seal_note"), &values).await?;
        }
        tx.commit().await?;
        let misfits = u32::try_from(misfits.len()).unwrap_or(u32::MAX);
        Ok(AuditSealed::Sealed { head: seal.head(), entries: seal.count, misfits })
    }

    /// Uses its own connection, because it has no time limit and needs one snapshot. The seals' lists go into a temporary
    /// table, which belongs to the connection and may be on disk.
    pub(crate) async fn audit_verify(
        &self,
        key: Option<&AuditKey>,
        head: Option<SealHead>,
    ) -> Result<AuditReport, StoreError> {
        // With the writer's options, because a reader must not write at all; it writes only its own table. It may take long,
        // which is not worth a warning.
        let options = (*self.writer.connect_options()).clone().disable_statement_logging();
        let mut connection =
            SqliteConnection::connect_with(&options).await.map_err(StoreError::Unavailable)?;
        sqlx::query(include_str!("sql/listed_make.sql")).execute(&mut connection).await?;
        let mut snapshot = connection.begin().await?;
        let mut verifier = Verifier::new(key, head);
        let mut after = 0_i64;
        loop {
            let page = trail::seals(&mut without_clock(&mut snapshot), after, SEALS_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.number("number")?;
            for row in &page {
                if let Some(checked) = verifier.seal(stored(row)?) {
                    compare(&mut snapshot, &mut verifier, &checked).await?;
                }
            }
        }
        trail::report_waiting(&mut without_clock(&mut snapshot), &mut verifier, &[]).await?;
        let now = self.now(&mut snapshot).await?;
        let mut snapshot = without_clock(&mut snapshot);
        trail::report_missing(&mut snapshot, &mut verifier).await?;
        trail::report_unlisted(&mut snapshot, &mut verifier, &[]).await?;
        trail::check(&mut snapshot, &mut verifier, now).await?;
        Ok(verifier.finish())
    }
}

/// Compares the entries that a seal lists with the list, and records that they are listed.
async fn compare(
    connection: &mut SqliteConnection,
    verifier: &mut Verifier<'_>,
    checked: &CheckedSeal,
) -> Result<(), StoreError> {
    let listed: Vec<EntryId> = checked.leaves.iter().map(|leaf| leaf.id).collect();
    let listed = [SqlValue::Rows(&trail::ids(&listed))];
    let mut connection = without_clock(connection);
    let found = entries(&connection.all(sqlite_only!("seal_listed"), &listed).await?)?;
    let gone: Vec<Leaf> =
        checked.leaves.iter().filter(|leaf| !found.contains_key(&leaf.id)).copied().collect();
    let forgotten = trail::find_notes(&mut connection, &gone).await?;
    let requests = trail::requests(&mut connection, &first_seen_in(&checked.leaves)).await?;
    verifier.entries(checked, &checked.leaves, &found, &requests, &forgotten);
    connection.execute(sqlite_only!("listed_add"), &listed).await.map(drop)
}
