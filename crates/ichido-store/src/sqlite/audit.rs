//! The audit trail's seals, on SQLite.
//!
//! A trigger notes each new entry until it is sealed. Entries are never updated, so they are read and hashed beside the one
//! writer; its transaction only writes the seal, if nothing has come between.

use std::collections::BTreeMap;

use ichido_core::audit::AuditKey;
use ichido_core::audit::entry::{Entry, EntryId};
use ichido_core::audit::leaf::Leaf;
use ichido_core::audit::seal::{Forgotten, Head};
use ichido_core::audit::verify::{Checked, Report, Verifier};
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use uuid::Uuid;

use super::{Sqlite, Writing, looking};
use crate::audit::{
    AuditPruned, AuditSealed, BEFORE_MAX, ENTRIES_PAGE, FIRST_ENTRY, SEALS_PAGE, begun, begun_in, entries,
    entry, entry_id, firsts, in_order, misfits, next_seal, previous, stored, trail,
};
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::hex;
use crate::json as batch;

impl Sqlite {
    pub(crate) async fn audit_seal(
        &self,
        key: Option<&AuditKey>,
        limit: u32,
    ) -> Result<AuditSealed, StoreError> {
        let mut reader = self.pool().acquire().await?;
        let last = trail::last_seal(&mut looking(&mut reader)).await?;
        // Under another key the chain would prove nothing to anybody from here on.
        if last.is_some_and(|last| last.keyed && !last.is_under(key)) {
            return Ok(AuditSealed::KeyNeeded);
        }
        let rows =
            sqlx::query(include_str!("sql/seal_entries.sql")).bind(limit).fetch_all(&mut *reader).await?;
        let entries: Vec<Entry> = rows.iter().map(entry).collect::<Result<_, _>>()?;
        let before = before(&mut reader, &entries).await?;
        let requests = trail::requests(&mut looking(&mut reader), &begun(&entries, &before)).await?;
        let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let until = last.map_or(0, |last| last.until).saturating_add(count);
        let now = self.now(&mut reader).await?;
        // Read after the entries: whatever they were written under had been issued.
        let misfits = misfits(&entries, &before, trail::fence_last(&mut looking(&mut reader)).await?);
        drop(reader);
        let previous = previous(&before, requests);
        let Some((seal, leaves)) = next_seal(last.as_ref(), &entries, previous, &misfits, (until, now), key)
        else {
            return Ok(AuditSealed::Nothing);
        };
        let mut writing = self.write().await?;
        let done = writing.run(include_str!("sql/seal_done.sql"), named(&leaves)).await?;
        if trail::last_seal(&mut writing.either()).await? != last || done != u64::from(seal.count) {
            // Another node has sealed or forgotten some of it meanwhile.
            writing.rollback().await?;
            return Err(StoreError::Busy);
        }
        trail::add(&mut writing.either(), &seal, &leaves).await?;
        writing.commit().await?;
        let misfits = u32::try_from(misfits.len()).unwrap_or(u32::MAX);
        Ok(AuditSealed::Sealed { head: seal.head(), entries: seal.count, misfits })
    }

    /// Over a connection of its own, because it takes the time that it takes, and all in one snapshot. What the seals list goes into a
    /// temporary table, which is the connection's own and may go to the disk.
    pub(crate) async fn audit_verify(
        &self,
        key: Option<&AuditKey>,
        head: Option<Head>,
    ) -> Result<Report, StoreError> {
        // As the writer's, because a reader may write nothing at all; it writes nothing but its own table.
        // It may take long, and nobody need be warned of that.
        let options = (*self.writer.connect_options()).clone().disable_statement_logging();
        let mut connection =
            SqliteConnection::connect_with(&options).await.map_err(StoreError::Unavailable)?;
        sqlx::query(include_str!("sql/listed_make.sql")).execute(&mut connection).await?;
        let mut snapshot = connection.begin().await?;
        let mut verifier = Verifier::new(key, head);
        let mut after = 0_i64;
        loop {
            let page = trail::seals(&mut looking(&mut snapshot), after, SEALS_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.number("number")?;
            for row in &page {
                if let Some(checked) = verifier.seal(stored(row)?) {
                    compare(&mut snapshot, &mut verifier, &checked).await?;
                }
            }
        }
        trail::waiting(&mut looking(&mut snapshot), &mut verifier, &[]).await?;
        gone(&mut snapshot, &mut verifier).await?;
        let mut snapshot = looking(&mut snapshot);
        trail::unlisted(&mut snapshot, &mut verifier, &[]).await?;
        trail::judge(&mut snapshot, &mut verifier).await?;
        Ok(verifier.finish())
    }

    pub(crate) async fn audit_prune(
        &self,
        key: Option<&AuditKey>,
        after: u64,
        limit: u32,
    ) -> Result<AuditPruned, StoreError> {
        let mut writing = self.write().await?;
        let from = i64::try_from(after).unwrap_or(i64::MAX);
        let page = trail::seals(&mut writing.either(), from, i64::from(limit)).await?;
        let mut pruned = AuditPruned { seals: 0, after: None };
        for row in &page {
            let stored = stored(row)?;
            pruned.after = Some(stored.seal.number);
            let Some(leaves) = stored.leaves else { continue };
            if let Some(counts) = trail::prune(&mut writing.either(), &stored.seal, leaves, key).await? {
                unlist(&mut writing, &counts).await?;
                pruned.seals += 1;
            }
        }
        writing.commit().await?;
        Ok(pruned)
    }
}

/// Notes why the sealed entries of these messages will be missing.
pub(super) async fn note_forgotten(
    writing: &mut Writing,
    key: Option<&AuditKey>,
    ids: &str,
) -> Result<(), StoreError> {
    let now = writing.now;
    let rows = sqlx::query(include_str!("sql/forgotten_count.sql"))
        .bind(ids)
        .fetch_all(writing.connection())
        .await?;
    if rows.is_empty() {
        return Ok(());
    }
    let mut notes = Vec::with_capacity(rows.len());
    for row in &rows {
        let (message, entries) = (row.uuid("message_id")?, row.positive("entries")?);
        let note = Forgotten::signed(message, now, entries, key);
        notes.push(json!([batch::id(message), entries, hex(note.mac.as_bytes())]));
    }
    sqlx::query(include_str!("sql/forgotten_add.sql"))
        .bind(batch::text(notes))
        .bind(now.as_micros())
        .execute(writing.connection())
        .await?;
    Ok(())
}

/// The last entries before the first ones of each message, in order.
async fn before(connection: &mut SqliteConnection, entries: &[Entry]) -> Result<Vec<Entry>, StoreError> {
    let firsts = batch::text(firsts(entries).into_iter().map(name));
    let query = sqlx::query(include_str!("sql/seal_before.sql")).bind(firsts).bind(BEFORE_MAX);
    in_order(&query.fetch_all(connection).await?)
}

/// Compares the entries that a seal lists with the list, and remembers that they are listed.
async fn compare(
    connection: &mut SqliteConnection,
    verifier: &mut Verifier<'_>,
    checked: &Checked,
) -> Result<(), StoreError> {
    let listed = named(&checked.leaves);
    let query = sqlx::query(include_str!("sql/seal_listed.sql")).bind(&listed);
    let found = entries(&query.fetch_all(&mut *connection).await?)?;
    let gone: Vec<Leaf> =
        checked.leaves.iter().filter(|leaf| !found.contains_key(&leaf.id)).copied().collect();
    let forgotten = trail::notes(&mut looking(connection), &gone).await?;
    let requests = trail::requests(&mut looking(connection), &begun_in(&checked.leaves)).await?;
    verifier.entries(checked, &checked.leaves, &found, &requests, &forgotten);
    sqlx::query(include_str!("sql/listed_add.sql")).bind(listed).execute(connection).await?;
    Ok(())
}

/// Tells the verifier of entries that should wait for a seal and are gone.
async fn gone(connection: &mut SqliteConnection, verifier: &mut Verifier<'_>) -> Result<(), StoreError> {
    let mut last = FIRST_ENTRY;
    loop {
        let page = sqlx::query(include_str!("sql/unsealed_gone.sql"))
            .bind(last.message)
            .bind(last.fence)
            .bind(last.step)
            .bind(ENTRIES_PAGE)
            .fetch_all(&mut *connection)
            .await?;
        let Some(row) = page.last() else { return Ok(()) };
        last = entry_id(row)?;
        for row in &page {
            verifier.removed_unsealed(entry_id(row)?);
        }
    }
}

/// A seal lists so many entries of these messages no more.
async fn unlist(writing: &mut Writing, counts: &BTreeMap<Uuid, u32>) -> Result<(), StoreError> {
    let fewer = batch::text(counts.iter().map(|(message, count)| json!([batch::id(*message), count])));
    writing.run(include_str!("sql/forgotten_unlist.sql"), fewer.clone()).await?;
    writing.run(include_str!("sql/forgotten_over.sql"), fewer).await?;
    Ok(())
}

/// Entries as a statement finds them.
fn named(leaves: &[Leaf]) -> String {
    batch::text(leaves.iter().map(|leaf| name(leaf.id)))
}

fn name(id: EntryId) -> Value {
    json!([batch::id(id.message), id.fence, id.step])
}
