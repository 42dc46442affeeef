//! The audit trail's seals, on SQLite.
//!
//! A trigger notes each new entry until it is sealed. Entries are never updated, so they are read and hashed beside the one
//! writer; its transaction only writes the seal, if nothing has come between.

use std::collections::HashMap;

use ichido_core::audit::AuditKey;
use ichido_core::audit::entry::{Entry, EntryId};
use ichido_core::audit::leaf::{self, Leaf};
use ichido_core::audit::request::{Request, RequestCodes};
use ichido_core::audit::seal::{Forgotten, Head, Seal};
use ichido_core::audit::verify::{Checked, Issued, Report, Verifier};
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use uuid::Uuid;

use super::{Sqlite, Writing, json as batch};
use crate::audit::place::{judge_orphans, judge_page};
use crate::audit::{
    self, AuditPruned, AuditSealed, BEFORE_MAX, ENTRIES_PAGE, FIRST_ENTRY, SEALS_PAGE, all_forgotten, begun,
    begun_in, entries, entry, entry_id, firsts, forgotten, in_order, messages_of, misfits, next_seal,
    previous, request, stored,
};
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::hex;

/// How many requests are read at once, to be hashed: each may have [`REQUEST_BYTES_MAX`](crate::message::limits::REQUEST_BYTES_MAX).
const REQUESTS_PAGE: usize = 16;

impl Sqlite {
    pub(crate) async fn audit_seal(
        &self,
        key: Option<&AuditKey>,
        limit: u32,
    ) -> Result<AuditSealed, StoreError> {
        let mut reader = self.pool().acquire().await?;
        let last = last_seal(&mut reader).await?;
        // Under another key the chain would prove nothing to anybody from here on.
        if last.is_some_and(|last| last.keyed && !last.is_under(key)) {
            return Ok(AuditSealed::KeyNeeded);
        }
        let rows =
            sqlx::query(include_str!("sql/seal_entries.sql")).bind(limit).fetch_all(&mut *reader).await?;
        let entries: Vec<Entry> = rows.iter().map(entry).collect::<Result<_, _>>()?;
        let before = before(&mut reader, &entries).await?;
        let requests = requests(&mut reader, &begun(&entries, &before)).await?;
        let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let until = last.map_or(0, |last| last.until).saturating_add(count);
        let now = self.now(&mut reader).await?;
        // Read after the entries: whatever they were written under had been issued.
        let misfits = misfits(&entries, &before, fence_last(&mut reader).await?);
        drop(reader);
        let previous = previous(&before, requests);
        let Some((seal, leaves)) = next_seal(last.as_ref(), &entries, previous, &misfits, (until, now), key)
        else {
            return Ok(AuditSealed::Nothing);
        };
        let mut writing = self.write().await?;
        let done = writing.run(include_str!("sql/seal_done.sql"), named(&leaves)).await?;
        if last_seal(writing.connection()).await? != last || done != u64::from(seal.count) {
            // Another node has sealed or forgotten some of it meanwhile.
            writing.rollback().await?;
            return Err(StoreError::Busy);
        }
        add(writing.connection(), &seal, &leaves).await?;
        writing.commit().await?;
        let misfits = u32::try_from(misfits.len()).unwrap_or(u32::MAX);
        Ok(AuditSealed::Sealed { head: seal.head(), entries: seal.count, misfits })
    }

    pub(crate) async fn audit_head(&self) -> Result<Option<Head>, StoreError> {
        let mut reader = self.pool().acquire().await?;
        Ok(last_seal(&mut reader).await?.map(|seal| seal.head()))
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
            let page = sqlx::query(include_str!("sql/seal_page.sql"))
                .bind(after)
                .bind(SEALS_PAGE)
                .fetch_all(&mut *snapshot)
                .await?;
            let Some(last) = page.last() else { break };
            after = last.number("number")?;
            for row in &page {
                if let Some(checked) = verifier.seal(stored(row)?) {
                    compare(&mut snapshot, &mut verifier, &checked).await?;
                }
            }
        }
        beside(&mut snapshot, &mut verifier).await?;
        let leases = sqlx::query(include_str!("sql/lease_list.sql")).fetch_all(&mut *snapshot).await?;
        let issued = audit::issued(fence_last(&mut snapshot).await?, &leases)?;
        histories(&mut snapshot, &mut verifier, &issued).await?;
        places(&mut snapshot, &mut verifier, &issued).await?;
        Ok(verifier.finish())
    }

    pub(crate) async fn audit_prune(
        &self,
        key: Option<&AuditKey>,
        after: u64,
        limit: u32,
    ) -> Result<AuditPruned, StoreError> {
        let mut writing = self.write().await?;
        let page = sqlx::query(include_str!("sql/seal_page.sql"))
            .bind(i64::try_from(after).unwrap_or(i64::MAX))
            .bind(limit)
            .fetch_all(writing.connection())
            .await?;
        let mut pruned = AuditPruned { seals: 0, after: None };
        for row in &page {
            let stored = stored(row)?;
            pruned.after = Some(stored.seal.number);
            let Some(leaves) = stored.leaves else { continue };
            pruned.seals += u64::from(prune(&mut writing, &stored.seal, leaves, key).await?);
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

async fn last_seal(connection: &mut SqliteConnection) -> Result<Option<Seal>, StoreError> {
    let row = sqlx::query(include_str!("sql/seal_last.sql")).fetch_optional(connection).await?;
    row.as_ref().map(audit::seal).transpose()
}

/// The last entries before the first ones of each message, in order.
async fn before(connection: &mut SqliteConnection, entries: &[Entry]) -> Result<Vec<Entry>, StoreError> {
    let firsts = batch::text(firsts(entries).into_iter().map(name));
    let query = sqlx::query(include_str!("sql/seal_before.sql")).bind(firsts).bind(BEFORE_MAX);
    in_order(&query.fetch_all(connection).await?)
}

/// The last fence that was issued.
async fn fence_last(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let row = sqlx::query(include_str!("sql/fence_last.sql")).fetch_one(connection).await?;
    Ok(row.number("fence")?)
}

/// Judges every entry by the rules, message by message.
async fn histories(
    connection: &mut SqliteConnection,
    verifier: &mut Verifier<'_>,
    issued: &Issued,
) -> Result<(), StoreError> {
    let mut last = FIRST_ENTRY;
    loop {
        let page = sqlx::query(include_str!("sql/history_page.sql"))
            .bind(last.message)
            .bind(last.fence)
            .bind(last.step)
            .bind(ENTRIES_PAGE)
            .fetch_all(&mut *connection)
            .await?;
        let Some(row) = page.last() else { break };
        last = entry_id(row)?;
        verifier.histories(&in_order(&page)?, issued);
    }
    verifier.histories_end(issued);
    Ok(())
}

/// Judges whether every message is where its last entry says.
async fn places(
    connection: &mut SqliteConnection,
    verifier: &mut Verifier<'_>,
    issued: &Issued,
) -> Result<(), StoreError> {
    let mut after = Some(Uuid::nil());
    while let Some(last) = after {
        let query = sqlx::query(include_str!("sql/place_page.sql")).bind(last).bind(ENTRIES_PAGE);
        after = judge_page(verifier, &query.fetch_all(&mut *connection).await?, issued)?;
    }
    let query = sqlx::query(include_str!("sql/place_orphans.sql")).bind(ENTRIES_PAGE);
    judge_orphans(verifier, &query.fetch_all(&mut *connection).await?)
}

/// The codes of what these messages asked for.
async fn requests(
    connection: &mut SqliteConnection,
    messages: &[Uuid],
) -> Result<HashMap<Uuid, RequestCodes>, StoreError> {
    let mut requests = HashMap::with_capacity(messages.len());
    for page in messages.chunks(REQUESTS_PAGE) {
        let ids = batch::text(page.iter().copied().map(batch::id));
        let query = sqlx::query(include_str!("sql/request_find.sql")).bind(ids);
        for row in query.fetch_all(&mut *connection).await? {
            let (message, codes) = request(&row, Request::hash(row.bytes("request")?))?;
            requests.insert(message, codes);
        }
    }
    Ok(requests)
}

async fn add(connection: &mut SqliteConnection, seal: &Seal, leaves: &[Leaf]) -> Result<(), StoreError> {
    sqlx::query(include_str!("sql/seal_add.sql"))
        .bind(seal.number.cast_signed())
        .bind(seal.since)
        .bind(seal.until)
        .bind(seal.sealed_at.as_micros())
        .bind(seal.first_at.as_micros())
        .bind(seal.last_at.as_micros())
        .bind(seal.count)
        .bind(seal.total.cast_signed())
        .bind(&seal.root.as_bytes()[..])
        .bind(&seal.previous.as_bytes()[..])
        .bind(seal.keyed)
        .bind(&seal.mac.as_bytes()[..])
        .bind(leaf::write(leaves))
        .execute(connection)
        .await?;
    Ok(())
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
    let forgotten = notes(connection, &gone).await?;
    let requests = requests(connection, &begun_in(&checked.leaves)).await?;
    verifier.entries(checked, &checked.leaves, &found, &requests, &forgotten);
    sqlx::query(include_str!("sql/listed_add.sql")).bind(listed).execute(connection).await?;
    Ok(())
}

/// What no seal lists: what waits for the next, what should wait and is gone, and what nobody noted.
async fn beside(connection: &mut SqliteConnection, verifier: &mut Verifier<'_>) -> Result<(), StoreError> {
    let row = sqlx::query(include_str!("sql/unsealed.sql")).fetch_one(&mut *connection).await?;
    verifier.unsealed(row.number("count")?.unsigned_abs(), row.moment_or_none("since")?);
    for (sql, is_gone) in
        [(include_str!("sql/unsealed_gone.sql"), true), (include_str!("sql/listed_not.sql"), false)]
    {
        let mut last = FIRST_ENTRY;
        loop {
            let page = sqlx::query(sql)
                .bind(last.message)
                .bind(last.fence)
                .bind(last.step)
                .bind(ENTRIES_PAGE)
                .fetch_all(&mut *connection)
                .await?;
            let Some(row) = page.last() else { break };
            last = entry_id(row)?;
            for row in &page {
                if is_gone {
                    verifier.removed_unsealed(entry_id(row)?);
                } else {
                    verifier.inserted(None, entry_id(row)?, row.moment("at")?);
                }
            }
        }
    }
    Ok(())
}

/// Why entries are missing, by their messages.
async fn notes(
    connection: &mut SqliteConnection,
    gone: &[Leaf],
) -> Result<HashMap<Uuid, Forgotten>, StoreError> {
    if gone.is_empty() {
        return Ok(HashMap::new());
    }
    let messages = batch::text(messages_of(gone).into_iter().map(batch::id));
    let query = sqlx::query(include_str!("sql/forgotten_find.sql")).bind(messages);
    forgotten(&query.fetch_all(connection).await?)
}

/// Lets a seal's list go if all of it is forgotten.
async fn prune(
    writing: &mut Writing,
    seal: &Seal,
    leaves: &[u8],
    key: Option<&AuditKey>,
) -> Result<bool, StoreError> {
    let listed = leaf::read(leaves).unwrap_or_default();
    let forgotten = notes(writing.connection(), &listed).await?;
    let Some(counts) = all_forgotten(leaves, &forgotten, key) else { return Ok(false) };
    sqlx::query(include_str!("sql/seal_prune.sql"))
        .bind(seal.number.cast_signed())
        .bind(&seal.pruned(key).as_bytes()[..])
        .execute(writing.connection())
        .await?;
    let fewer = batch::text(counts.iter().map(|(message, count)| json!([batch::id(*message), count])));
    writing.run(include_str!("sql/forgotten_unlist.sql"), fewer.clone()).await?;
    writing.run(include_str!("sql/forgotten_over.sql"), fewer).await?;
    Ok(true)
}

/// Entries as a statement finds them.
fn named(leaves: &[Leaf]) -> String {
    batch::text(leaves.iter().map(|leaf| name(leaf.id)))
}

fn name(id: EntryId) -> Value {
    json!([batch::id(id.message), id.fence, id.step])
}
