//! Settled key records, compared with the lists that seal them. `key_sealing` writes the lists.
//!
//! Records are found in the order of their expiry, so sealing uses the index of the sweep, and a list can be deleted when its
//! last record has expired. Until then a settled record never changes: a claim replaces it, and the sweep deletes it, only when
//! it has expired. An entry of the audit trail has the root of each list, so the seals prove the lists.
// SPEC C5, F5.

use std::collections::HashMap;

use ichido_core::audit::Code;
use ichido_core::audit::key_record::{AuditedRecord, SealedKey};
use ichido_core::audit::request::AuditedRequest;
use ichido_core::audit::verify::Verifier;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::action::{KEYS_DELETED, action_row};
use crate::columns::{Columns as _, Row};
use crate::error::StoreError;
use crate::record::name_of;
use crate::statement::{DbConnection, SqlValue, Statement, paired, shared};
use crate::subject::identity_subject;

/// The maximum number of records examined at once. Records that were settled together stay together, so it may be a few more.
pub const MAX_SEAL_KEYS: u32 = 1_000;

/// The number of records read at once: PostgreSQL hashes their responses, which SQLite reads.
const HASHED_PAGE: usize = 16;
const READ_PAGE: usize = 4;

/// The outcome of sealing key records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeysSealed {
    /// The number of records that were sealed.
    pub records: u64,
    /// Where to continue. `None` if all were examined.
    pub after: Option<Timestamp>,
}

/// Compares every record that was sealed and has not expired, after the entries were judged.
pub(crate) async fn verify(
    connection: &mut DbConnection<'_>,
    verifier: &mut Verifier<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut after = (Timestamp::EPOCH, Timestamp::EPOCH, Uuid::nil());
    let at_once = read_page(matches!(connection, DbConnection::Postgres(..)));
    loop {
        let values = [after.0.into(), after.1.into(), after.2.into(), 1_i64.into()];
        let Some(row) = connection.optional(shared!("sealed_keys_page"), &values).await? else { break };
        after = (row.timestamp("until_at")?, row.timestamp("since_at")?, row.uuid("id")?);
        let keys = verifier.key_list(after.2, after.0, row.bytes("records")?, now);
        for page in keys.chunks(at_once) {
            compare(connection, verifier, page).await?;
        }
    }
    verifier.key_lists_end();
    Ok(())
}

async fn compare(
    connection: &mut DbConnection<'_>,
    verifier: &mut Verifier<'_>,
    keys: &[SealedKey],
) -> Result<(), StoreError> {
    let names: Vec<[u8; 32]> = keys.iter().map(|key| key.name).collect();
    let mut found = HashMap::new();
    for row in connection.all(READ, &[SqlValue::Hashes(&names)]).await? {
        // A record that is not settled any more has no code.
        let code = sealed_key(&row)?.map_or(Code::NONE, |key| key.code);
        found.insert(name_of(&row)?, code);
    }
    for key in keys {
        let code = found.get(&key.name).copied();
        if code == Some(key.code) || !was_deleted(connection, key).await? {
            verifier.key_record(key, code);
        }
    }
    Ok(())
}

/// Returns whether the records of its identity were deleted since it was settled. A new record may be in its place.
async fn was_deleted(connection: &mut DbConnection<'_>, key: &SealedKey) -> Result<bool, StoreError> {
    let subject = identity_subject(&key.identity);
    for row in connection.all(shared!("action_of"), &[subject.into()]).await? {
        let entry = action_row(&row)?;
        if entry.action.kind == KEYS_DELETED && key.completed_at <= entry.at {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) const READ: Statement = paired!("sealed_keys_read");

pub(crate) const fn read_page(is_postgres: bool) -> usize {
    if is_postgres { HASHED_PAGE } else { READ_PAGE }
}

/// Reads what is sealed of a record. `None` if it is not settled.
pub(crate) fn sealed_key(row: &Row) -> Result<Option<SealedKey>, StoreError> {
    let (Some(completed_at), Some(expires_at)) =
        (row.timestamp_or_none("completed_at")?, row.timestamp_or_none("expires_at")?)
    else {
        return Ok(None);
    };
    let hash = |bytes: &[u8]| match row {
        Row::Postgres(_) => bytes.to_vec(),
        Row::Sqlite(_) => AuditedRequest::hash(bytes).to_vec(),
    };
    let (headers, body) = (hash(row.bytes("headers")?), row.bytes_or_none("body")?.map(hash));
    let (claim, message) = (row.uuid("claim_id")?, row.uuid_or_none("message_id")?);
    let (hops, trace) = (row.text_or_none("hops")?, row.text_or_none("trace")?);
    let (operation, identity) = (row.text("operation")?, row.text("identity")?);
    let record = AuditedRecord {
        texts: [operation, identity, row.text("key")?, row.text("guarantee")?, row.text("state")?],
        bytes: [row.bytes("fingerprint")?, row.bytes("request_digest")?, claim.as_bytes(), &headers],
        optional_bytes: [
            body.as_deref(),
            row.bytes_or_none("result_digest")?,
            message.as_ref().map(|id| &id.as_bytes()[..]),
        ],
        optional_texts: [hops.as_deref(), trace.as_deref()],
        fence: row.number("fence")?,
        status: row.small("status")?,
        times: [row.timestamp("created_at")?, row.timestamp("claimed_at")?, completed_at, expires_at],
    };
    let (name, code) = (name_of(row)?, record.code());
    let (operation, identity) = (operation.to_owned(), identity.to_owned());
    Ok(Some(SealedKey { name, completed_at, expires_at, code, operation, identity }))
}
