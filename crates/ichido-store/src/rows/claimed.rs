//! Reads claimed messages, by the position of their columns.
//!
//! Every other row is read by name. A claim returns up to a thousand rows of 22 columns, and a name is hashed for each of them.

use ichido_core::digest::Digest;
use ichido_core::lifecycle::{History, StartMark};
use ichido_core::time::Timestamp;

use super::{allowed, corrupt, doubt, key_of, priority_of};
use crate::columns::{Columns, fence_from};
use crate::db_timestamp::DbTimestamp;
use crate::error::StoreError;
use crate::message::{ClaimOptions, ClaimedMessage, QueueName};

/// Declares the columns in the order in which the claiming statements of both databases list them.
macro_rules! columns {
    ($($column:ident: $name:literal,)+) => {
        #[derive(Clone, Copy)]
        enum ClaimColumn {
            $($column,)+
        }

        #[cfg(test)]
        const NAMES: &[&str] = &[$($name,)+];
    };
}

columns! {
    Id: "id",
    Identity: "identity",
    Key: "key",
    ContentType: "content_type",
    Request: "request",
    Digest: "digest",
    Hops: "hops",
    Trace: "trace",
    TraceId: "trace_id",
    Item: "item",
    Priority: "priority",
    MaxAttempts: "max_attempts",
    CreatedAt: "created_at",
    Due: "due",
    Suspect: "suspect",
    Attempts: "attempts",
    Deaths: "deaths",
    DoubtSince: "doubt_since",
    InFlightUntil: "in_flight_until",
    Fence: "fence",
    ClaimedAt: "claimed_at",
    RequeuedAt: "requeued_at",
}

/// Reads a message that was just claimed.
pub(crate) fn work(
    queue: &QueueName,
    terms: ClaimOptions,
    row: &impl Columns,
) -> Result<ClaimedMessage, StoreError> {
    let text = |column: ClaimColumn| row.at::<&str>(column as usize);
    let text_or_none = |column: ClaimColumn| row.at::<Option<String>>(column as usize);
    let count = |column: ClaimColumn| row.at::<i32>(column as usize);
    let at = |column: ClaimColumn| Ok::<_, sqlx::Error>(row.at::<DbTimestamp>(column as usize)?.0);
    let at_or_none = |column: ClaimColumn| {
        let moment = row.at::<Option<DbTimestamp>>(column as usize)?;
        Ok::<Option<Timestamp>, sqlx::Error>(moment.map(|moment| moment.0))
    };
    let positive = |column| u32::try_from(count(column)?).map_err(|_| corrupt("a count is negative"));
    let fence = fence_from(row.at(ClaimColumn::Fence as usize)?)?;
    let suspect: bool = row.at(ClaimColumn::Suspect as usize)?;
    let history = History {
        attempts: positive(ClaimColumn::Attempts)?.saturating_add(1),
        max_attempts: allowed(count(ClaimColumn::MaxAttempts)?)?,
        deaths: positive(ClaimColumn::Deaths)?,
        suspect,
        doubt: doubt(at_or_none(ClaimColumn::DoubtSince)?, at_or_none(ClaimColumn::InFlightUntil)?)?,
        last_fence: Some(fence),
    };
    let digest = row.at::<&[u8]>(ClaimColumn::Digest as usize)?.try_into();
    Ok(ClaimedMessage {
        id: row.at(ClaimColumn::Id as usize)?,
        queue: queue.clone(),
        identity: text(ClaimColumn::Identity)?.to_owned(),
        key: key_of(text(ClaimColumn::Key)?)?,
        content_type: text(ClaimColumn::ContentType)?.to_owned(),
        request: row.at::<&[u8]>(ClaimColumn::Request as usize)?.to_vec(),
        digest: Digest::from_bytes(digest.map_err(|_| corrupt("a hash is not 32 bytes long"))?),
        hops: text_or_none(ClaimColumn::Hops)?,
        trace: text_or_none(ClaimColumn::Trace)?,
        trace_id: text_or_none(ClaimColumn::TraceId)?,
        item: text_or_none(ClaimColumn::Item)?,
        priority: priority_of(row.at(ClaimColumn::Priority as usize)?),
        created_at: at(ClaimColumn::CreatedAt)?,
        run_at: at_or_none(ClaimColumn::Due)?,
        requeued_at: at_or_none(ClaimColumn::RequeuedAt)?,
        claimed_at: at(ClaimColumn::ClaimedAt)?,
        fence,
        start_mark: if terms.start_marks || suspect { StartMark::NotYet } else { StartMark::NotTracked },
        history,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claiming_statements_list_the_columns_in_this_order() {
        for sql in [
            include_str!("../postgres/sql/work_claim.sql"),
            include_str!("../postgres/sql/work_claim_suspect.sql"),
            include_str!("../sqlite/sql/work_pick.sql"),
            include_str!("../sqlite/sql/work_pick_suspect.sql"),
        ] {
            let (_, listed) = sql.rsplit_once("SELECT m.").expect("the rows of a claim");
            let (listed, _) = listed.split_once("\nFROM").expect("their tables");
            let names: Vec<&str> =
                listed.split(',').filter_map(|column| column.trim().rsplit(['.', ' ']).next()).collect();
            assert_eq!(names, NAMES, "{sql}");
        }
    }
}
