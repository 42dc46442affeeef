//! Reads and writes of the trail that are the same on both databases.

use std::collections::{BTreeMap, HashMap};

use ichido_core::audit::AuditKey;
use ichido_core::audit::entry::{AuditEntry, EntryId};
use ichido_core::audit::leaf::{self, Leaf};
use ichido_core::audit::request::{AuditedRequest, RequestCodes};
use ichido_core::audit::seal::{Forgotten, Seal};
use ichido_core::audit::verify::{Issued, Verifier};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use super::location::{check_orphans, check_page};
use super::{
    AuditPruned, ENTRIES_PAGE, FIRST_ENTRY, MAX_BEFORE, all_forgotten, entry_id, first_entries, forgotten,
    issued, keys, messages_of, read_ordered, request, seal, stored,
};
use crate::columns::{Columns as _, Row, count};
use crate::error::StoreError;
use crate::statement::{Column, DbConnection, SqlValue, Statement, column, paired, shared, sqlite_only};

/// The number of requests that PostgreSQL hashes in one statement, which has a time limit.
const HASHED_PAGE: usize = 64;

/// The number of requests read at once from SQLite for hashing. Each may have
/// [`MAX_REQUEST_BYTES`](crate::message::limits::MAX_REQUEST_BYTES).
const READ_PAGE: usize = 16;

pub(crate) async fn last_seal(connection: &mut DbConnection<'_>) -> Result<Option<Seal>, StoreError> {
    let row = connection.optional(shared!("seal_last"), &[]).await?;
    row.as_ref().map(seal).transpose()
}

/// Reads the seals after a number, in order.
pub(crate) async fn seals(
    connection: &mut DbConnection<'_>,
    after: i64,
    limit: i64,
) -> Result<Vec<Row>, StoreError> {
    connection.all(shared!("seal_page"), &[after.into(), limit.into()]).await
}

pub(crate) async fn add(
    connection: &mut DbConnection<'_>,
    seal: &Seal,
    leaves: &[Leaf],
) -> Result<(), StoreError> {
    let leaves = leaf::write(leaves);
    let values = [
        seal.number.cast_signed().into(),
        seal.since.into(),
        seal.until.into(),
        seal.sealed_at.into(),
        seal.first_at.into(),
        seal.last_at.into(),
        i64::from(seal.count).into(),
        seal.total.cast_signed().into(),
        SqlValue::from(&seal.root.as_bytes()[..]),
        SqlValue::from(&seal.previous.as_bytes()[..]),
        seal.keyed.into(),
        SqlValue::from(&seal.mac.as_bytes()[..]),
        SqlValue::from(&*leaves),
    ];
    connection.execute(shared!("seal_add"), &values).await.map(drop)
}

/// Deletes the lists of seals after a number if everything they list is deleted.
pub(crate) async fn prune(
    connection: &mut DbConnection<'_>,
    key: Option<&AuditKey>,
    after: u64,
    limit: u32,
) -> Result<AuditPruned, StoreError> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let mut pruned = AuditPruned { seals: 0, after: None };
    for row in &seals(connection, after, i64::from(limit)).await? {
        let stored = stored(row)?;
        pruned.after = Some(stored.seal.number);
        let Some(leaves) = stored.leaves else { continue };
        if let Some(counts) = prune_one(connection, &stored.seal, leaves, key).await? {
            unlist(connection, &counts).await?;
            pruned.seals += 1;
        }
    }
    Ok(pruned)
}

/// Lowers the number of listed entries of these messages.
async fn unlist(connection: &mut DbConnection<'_>, counts: &BTreeMap<Uuid, u32>) -> Result<(), StoreError> {
    let fewer = [counts.keys().copied().collect(), counts.values().map(|fewer| count(*fewer)).collect()];
    connection.execute(paired!("forgotten_unlist"), &[SqlValue::Rows(&fewer)]).await?;
    if let DbConnection::Sqlite(..) = connection {
        connection.execute(sqlite_only!("forgotten_over"), &[SqlValue::Rows(&fewer)]).await?;
    }
    Ok(())
}

/// Notes why sealed entries of these messages are missing.
pub(crate) async fn note_forgotten(
    connection: &mut DbConnection<'_>,
    key: Option<&AuditKey>,
    now: Timestamp,
    sealed: &[(Uuid, i32)],
) -> Result<(), StoreError> {
    if sealed.is_empty() {
        return Ok(());
    }
    let signed =
        |(message, entries): &(Uuid, i32)| Forgotten::signed(*message, now, entries.unsigned_abs(), key).mac;
    let codes: Vec<_> = sealed.iter().map(signed).collect();
    let rows = [
        column(sealed, |(message, _)| *message),
        column(sealed, |(_, entries)| *entries),
        column(&codes, |code| &code.as_bytes()[..]),
    ];
    connection.execute(paired!("forgotten_add"), &[SqlValue::Rows(&rows), now.into()]).await.map(drop)
}

/// Deletes a seal's list if everything in it is deleted. Returns how many entries of each message it listed.
async fn prune_one(
    connection: &mut DbConnection<'_>,
    seal: &Seal,
    leaves: &[u8],
    key: Option<&AuditKey>,
) -> Result<Option<BTreeMap<Uuid, u32>>, StoreError> {
    let listed = leaf::read(leaves).unwrap_or_default();
    let forgotten = find_notes(connection, &listed).await?;
    let Some(counts) = all_forgotten(leaves, &forgotten, key) else { return Ok(None) };
    let pruned = seal.pruned(key);
    let values = [seal.number.cast_signed().into(), SqlValue::from(&pruned.as_bytes()[..])];
    connection.execute(shared!("seal_prune"), &values).await?;
    Ok(Some(counts))
}

/// Reads why entries are missing, by message.
pub(crate) async fn find_notes(
    connection: &mut DbConnection<'_>,
    gone: &[Leaf],
) -> Result<HashMap<Uuid, Forgotten>, StoreError> {
    if gone.is_empty() {
        return Ok(HashMap::new());
    }
    forgotten(&connection.all(paired!("forgotten_find"), &[SqlValue::Ids(&messages_of(gone))]).await?)
}

/// Reads the last entries before the first ones of each message, in order.
pub(crate) async fn entries_before(
    connection: &mut DbConnection<'_>,
    entries: &[AuditEntry],
) -> Result<Vec<AuditEntry>, StoreError> {
    let first_entries = first_entries(entries);
    let values = [SqlValue::Rows(&ids(&first_entries)), i64::from(MAX_BEFORE).into()];
    read_ordered(&connection.all(paired!("seal_before"), &values).await?)
}

/// Returns entry ids as statement columns.
pub(crate) fn ids(entries: &[EntryId]) -> [Column<'_>; 3] {
    [
        column(entries, |entry| entry.message),
        column(entries, |entry| entry.fence),
        column(entries, |entry| entry.step),
    ]
}

/// Reads the codes of these messages' requests. PostgreSQL hashes the bytes itself, so they are not transferred.
pub(crate) async fn requests(
    connection: &mut DbConnection<'_>,
    messages: &[Uuid],
) -> Result<HashMap<Uuid, RequestCodes>, StoreError> {
    let at_once = match connection {
        DbConnection::Postgres(..) => HASHED_PAGE,
        DbConnection::Sqlite(..) => READ_PAGE,
    };
    let mut requests = HashMap::with_capacity(messages.len());
    for page in messages.chunks(at_once) {
        for row in connection.all(paired!("request_find"), &[page.into()]).await? {
            let hash = match &row {
                Row::Postgres(row) => row.hash("request_hash")?,
                Row::Sqlite(row) => AuditedRequest::hash(row.bytes("request")?),
            };
            let (message, codes) = request(&row, hash)?;
            requests.insert(message, codes);
        }
    }
    Ok(requests)
}

/// Reads the last fence that was issued.
pub(crate) async fn last_fence(connection: &mut DbConnection<'_>) -> Result<i64, StoreError> {
    Ok(connection.one(paired!("fence_last"), &[]).await?.number("fence")?)
}

/// Reports entries that wait for a seal to the verifier. On PostgreSQL these are in a span of positions, on SQLite they are
/// noted.
pub(crate) async fn report_waiting(
    connection: &mut DbConnection<'_>,
    verifier: &mut Verifier<'_>,
    span: &[SqlValue<'_>],
) -> Result<(), StoreError> {
    let row = connection.one(paired!("unsealed"), span).await?;
    verifier.unsealed(row.number("count")?.unsigned_abs(), row.timestamp_or_none("since")?);
    Ok(())
}

/// Reports entries that are neither sealed nor waiting. On PostgreSQL these are from a position on, on SQLite they are not
/// noted.
pub(crate) async fn report_unlisted(
    connection: &mut DbConnection<'_>,
    verifier: &mut Verifier<'_>,
    from: &[SqlValue<'_>],
) -> Result<(), StoreError> {
    for_each_page(connection, paired!("unlisted"), from, |page| {
        for row in page {
            verifier.inserted(None, entry_id(row)?, row.timestamp("at")?);
        }
        Ok(())
    })
    .await
}

/// Reports entries that should wait for a seal but are gone. Only SQLite notes these.
pub(crate) async fn report_missing(
    connection: &mut DbConnection<'_>,
    verifier: &mut Verifier<'_>,
) -> Result<(), StoreError> {
    for_each_page(connection, sqlite_only!("unsealed_gone"), &[], |page| {
        for row in page {
            verifier.removed_unsealed(entry_id(row)?);
        }
        Ok(())
    })
    .await
}

/// Checks every entry against the rules, that every message is where its last entry says, and sealed key records.
pub(crate) async fn check(
    connection: &mut DbConnection<'_>,
    verifier: &mut Verifier<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let leases = connection.all(paired!("lease_list"), &[]).await?;
    let issued = issued(last_fence(connection).await?, &leases, now)?;
    for_each_page(connection, shared!("history_page"), &[], |page| {
        verifier.histories(&read_ordered(page)?, &issued);
        Ok(())
    })
    .await?;
    verifier.histories_end(&issued);
    check_locations(connection, verifier, &issued).await?;
    keys::verify(connection, verifier, now).await
}

async fn check_locations(
    connection: &mut DbConnection<'_>,
    verifier: &mut Verifier<'_>,
    issued: &Issued,
) -> Result<(), StoreError> {
    let mut after = Some(Uuid::nil());
    while let Some(last) = after {
        let page = connection.all(paired!("place_page"), &[last.into(), ENTRIES_PAGE.into()]).await?;
        after = check_page(verifier, &page, issued)?;
    }
    check_orphans(verifier, &connection.all(shared!("place_orphans"), &[ENTRIES_PAGE.into()]).await?)
}

/// Reads entries page by page. The statement takes the last entry before the page, the page size, and then the values.
async fn for_each_page(
    connection: &mut DbConnection<'_>,
    statement: Statement,
    values: &[SqlValue<'_>],
    mut look: impl FnMut(&[Row]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut last = FIRST_ENTRY;
    loop {
        let mut at = vec![last.message.into(), last.fence.into(), last.step.into(), ENTRIES_PAGE.into()];
        at.extend_from_slice(values);
        let page = connection.all(statement, &at).await?;
        let Some(row) = page.last() else { return Ok(()) };
        last = entry_id(row)?;
        look(&page)?;
    }
}
