//! Seals settled key records in lists, in the order of their expiry.
// SPEC C5, F5.

use std::collections::HashSet;

use ichido_core::audit::key_record::{self, KeyList, SealedKey};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::action::AuditAction;
use crate::audit::keys::{KeysSealed, READ, read_page, sealed_key};
use crate::columns::Columns as _;
use crate::driver::Driver;
use crate::error::StoreError;
use crate::record::name_of;
use crate::statement::{SqlValue, shared};
use crate::transaction::Transaction;

/// The most expired lists deleted at once.
const MAX_LISTS_DELETED: i64 = 100;

/// Seals settled records that expire after a moment and are in no list yet. Without a moment, it also deletes expired lists.
pub(crate) async fn seal(
    driver: &Driver,
    after: Option<Timestamp>,
    now: Timestamp,
    limit: u32,
) -> Result<KeysSealed, StoreError> {
    if after.is_none() {
        driver.execute(shared!("sealed_keys_over"), &[now.into(), MAX_LISTS_DELETED.into()]).await?;
    }
    let values = [after.map_or(now, |after| after.max(now)).into(), i64::from(limit).into()];
    let mut found = Vec::new();
    for row in driver.all(shared!("sealed_keys_find"), &values).await? {
        found.push((name_of(&row)?, row.timestamp("expires_at")?));
    }
    let times = || found.iter().map(|(_, expires_at)| *expires_at);
    let (Some(first), Some(last)) = (times().min(), times().max()) else {
        return Ok(KeysSealed { records: 0, after: None });
    };
    let next = (usize::try_from(limit).unwrap_or(usize::MAX) <= found.len()).then_some(last);
    let mut known = HashSet::new();
    for row in driver.all(shared!("sealed_keys_known"), &[first.into(), last.into()]).await? {
        let keys = key_record::read(row.bytes("records")?).unwrap_or_default();
        known.extend(keys.into_iter().map(|key| (key.name, key.expires_at)));
    }
    let names: Vec<[u8; 32]> =
        found.iter().filter(|key| !known.contains(*key)).map(|(name, _)| *name).collect();
    let mut keys = Vec::with_capacity(names.len());
    for page in names.chunks(read_page(matches!(driver, Driver::Postgres(_)))) {
        for row in driver.all(READ, &[SqlValue::Hashes(page)]).await? {
            keys.extend(sealed_key(&row)?);
        }
    }
    add(driver, &keys).await?;
    Ok(KeysSealed { records: keys.len() as u64, after: next })
}

/// Adds a list with its entry.
async fn add(driver: &Driver, keys: &[SealedKey]) -> Result<(), StoreError> {
    let times = || keys.iter().map(|key| key.expires_at);
    let (Some(first), Some(last)) = (times().min(), times().max()) else { return Ok(()) };
    let (id, written) = (Uuid::now_v7(), key_record::write(keys));
    let entry = AuditAction::keys_sealed(id, &KeyList::new(last, &written));
    let work = async |transaction: &mut Transaction<'_>| {
        let values = [last.into(), first.into(), id.into(), (&*written).into()];
        transaction.connection().execute(shared!("sealed_keys_add"), &values).await?;
        transaction.record(&entry).await.map(Some)
    };
    driver.transact(work).await.map(drop)
}
