//! Reads ledger records from rows of both databases, decides claims and settles, and records outcomes without a claim.

use std::sync::Arc;

use ichido_core::clock::Now;
use ichido_core::fence::Fence;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::{IdempotencyKey, KeySyntax};
use ichido_core::ledger::{
    Admission, Expiry, OperationGuarantee, Policy, Record, RecordName, RecordPhase, Settled, StoredBody,
    admit,
};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::action::AuditAction;
use crate::columns::{Columns, small};
use crate::error::StoreError;
use crate::headers;
use crate::ledger::{
    ClaimOrigin, KeyClaim, KeyClaimed, KeyLookup, KeyOutcome, KeyRecord, KeyRecorded, KeyRecording,
    KeySettle, KeySettled, StoredResponse,
};
use crate::micros;
use crate::statement::{DbConnection, SqlValue, paired};

/// A claim with the id by which it recognises its own insert.
pub(crate) struct ClaimAttempt {
    pub(crate) claim: KeyClaim,
    pub(crate) claim_id: Uuid,
}

/// A record with what a claim needs to know about it.
pub(crate) struct FoundRecord {
    pub(crate) key: KeyRecord,
    pub(crate) now: Now,
}

/// What to do for a claim that found a record.
pub(crate) enum ClaimDecision {
    /// Nothing: this is the outcome.
    Answer(KeyClaimed),
    /// Replace the record, if it is unchanged.
    Replace {
        began: ClaimOrigin,
        /// The mode to store.
        mode: OperationGuarantee,
    },
    /// Mark its outcome as unknown, if it is unchanged.
    MarkUnknown { fence: Fence },
}

impl ClaimAttempt {
    /// Decides what the existing record means for this claim; the core makes the decision.
    pub(crate) fn decide(&self, found: &FoundRecord) -> Result<ClaimDecision, StoreError> {
        let record = &found.key.record;
        if found.key.attempt == self.claim_id && matches!(record.phase, RecordPhase::Claimed { .. }) {
            // Our own claim, whose answer was lost.
            let is_later = record.first_claimed_at < record.claimed_at;
            let began =
                if is_later { ClaimOrigin::TakenOver { from: record.mode } } else { ClaimOrigin::New };
            return Ok(ClaimDecision::Answer(KeyClaimed::Run { fence: record.fence, began }));
        }
        decide(found, self.claim.fingerprint, &self.claim.policy)
    }
}

fn decide(
    found: &FoundRecord,
    fingerprint: Fingerprint,
    policy: &Policy,
) -> Result<ClaimDecision, StoreError> {
    let record = &found.key.record;
    let response = || found.key.response.clone().ok_or_else(|| corrupt("a settled record has no response"));
    let mode = policy.guarantee();
    Ok(match admit(Some(record), fingerprint, policy, found.now) {
        Admission::Run { .. } => ClaimDecision::Replace { began: ClaimOrigin::Expired, mode },
        Admission::TakeOver { .. } => ClaimDecision::Replace {
            began: ClaimOrigin::TakenOver { from: record.mode },
            mode: record.mode.stricter(mode),
        },
        Admission::MarkUnknown { fence } => ClaimDecision::MarkUnknown { fence },
        Admission::Replay => ClaimDecision::Answer(KeyClaimed::Replay(response()?)),
        Admission::ReplayNotKept => {
            ClaimDecision::Answer(KeyClaimed::ReplayNotStored { status: response()?.status })
        }
        Admission::Wait { lease_until } => ClaimDecision::Answer(KeyClaimed::InFlight { lease_until }),
        Admission::Mismatch => ClaimDecision::Answer(KeyClaimed::Conflict),
        Admission::Unknown => ClaimDecision::Answer(KeyClaimed::Unknown { fence: record.fence }),
    })
}

/// A look-up of a request's key. Many share one read.
pub(crate) struct LookupJob {
    pub(crate) name: [u8; 32],
    pub(crate) fingerprint: Fingerprint,
    pub(crate) policy: Arc<Policy>,
}

impl LookupJob {
    /// Returns what the record means for the request; a claim would decide the same.
    pub(crate) fn result(&self, found: Option<&FoundRecord>) -> Result<KeyLookup, StoreError> {
        let Some(found) = found else { return Ok(KeyLookup::Free) };
        Ok(match decide(found, self.fingerprint, &self.policy)? {
            ClaimDecision::Answer(claimed) => KeyLookup::Blocked(claimed),
            ClaimDecision::Replace { .. } | ClaimDecision::MarkUnknown { .. } => KeyLookup::NeedsClaim,
        })
    }
}

/// Returns the outcome of a settle that changed nothing.
///
/// Either somebody else owns the record, or an earlier run of ours settled it and its answer was lost.
pub(crate) fn outcome_if_unchanged(
    settle: &KeySettle,
    found: Option<&FoundRecord>,
    again: bool,
) -> KeySettled {
    match found {
        Some(found) if found.key.record.fence == settle.fence => match &settle.outcome {
            KeyOutcome::Keep { .. } if again => KeySettled::Settled,
            _ => KeySettled::AlreadySettled,
        },
        None if again && matches!(settle.outcome, KeyOutcome::Release) => KeySettled::Settled,
        _ => KeySettled::Stale,
    }
}

/// Records an outcome, unless its key has a record. `is_marked` concerns only PostgreSQL.
pub(crate) async fn record_in(
    connection: &mut DbConnection<'_>,
    recording: &KeyRecording,
    skew: i64,
    is_marked: bool,
) -> Result<KeyRecorded, StoreError> {
    let KeyRecording { request, response, .. } = recording;
    let (name, headers) = (request.name.hash(), headers::encode(&response.headers));
    let values = [
        name.as_slice().into(),
        request.name.operation.as_str().into(),
        request.name.identity.as_str().into(),
        request.name.key.as_str().into(),
        request.fingerprint.as_bytes().as_slice().into(),
        request.request_digest.as_bytes().as_slice().into(),
        request.policy.guarantee().as_str().into(),
        recording.settled.as_str().into(),
        recording.attempt.into(),
        small(response.status).into(),
        headers.as_slice().into(),
        response.body.as_deref().into(),
        recording.result_digest.as_ref().map(|digest| digest.as_bytes().as_slice()).into(),
        SqlValue::Id(recording.message_id),
        request.hops.as_deref().into(),
        request.trace.as_deref().into(),
        skew.into(),
        micros(recording.ttl).into(),
        is_marked.into(),
    ];
    let recorded = connection.execute(paired!("key_record_in"), &values).await?;
    Ok(if recorded == 1 { KeyRecorded::Recorded } else { KeyRecorded::Taken })
}

/// Reads the record in a row, judged at this time.
pub(crate) fn read_record(row: &impl Columns, now: Now) -> Result<FoundRecord, StoreError> {
    let status = row.small_or_none("status")?;
    let response = match (status, row.bytes_or_none("headers")?) {
        (Some(status), Some(blob)) => Some(StoredResponse {
            status: u16::try_from(status).map_err(|_| corrupt("the status is negative"))?,
            headers: headers::decode(blob).ok_or_else(|| corrupt("the headers cannot be read"))?,
            body: row.bytes_or_none("body")?.map(<[u8]>::to_vec),
        }),
        _ => None,
    };
    let phase = phase(row, response.as_ref())?;
    // Of an unknown outcome, the time is that of the answer.
    let completed_at = row.timestamp_or_none("completed_at")?;
    let is_unknown = phase == RecordPhase::Unknown;
    let record = Record {
        fingerprint: Fingerprint::from_bytes(row.hash("fingerprint")?),
        fence: row.fence()?,
        first_claimed_at: row.timestamp("created_at")?,
        claimed_at: row.timestamp("claimed_at")?,
        answered_at: completed_at.filter(|_| is_unknown),
        mode: mode(row.text("guarantee")?)?,
        phase,
    };
    Ok(FoundRecord {
        key: KeyRecord {
            name: record_name(row)?,
            record,
            request_digest: row.digest("request_digest")?,
            hops: row.text_or_none("hops")?,
            trace: row.text_or_none("trace")?,
            response,
            result_digest: row.digest_or_none("result_digest")?,
            message_id: row.uuid_or_none("message_id")?,
            completed_at: completed_at.filter(|_| !is_unknown),
            attempt: row.uuid("claim_id")?,
        },
        now,
    })
}

/// Reads operation, identity and key.
pub(crate) fn record_name(row: &impl Columns) -> Result<RecordName, StoreError> {
    let key = IdempotencyKey::parse_as(row.text("key")?, KeySyntax::AnyString)
        .map_err(|error| corrupt(&error.to_string()))?;
    Ok(RecordName {
        operation: row.text("operation")?.to_owned(),
        identity: row.text("identity")?.to_owned(),
        key,
    })
}

fn phase(row: &impl Columns, response: Option<&StoredResponse>) -> Result<RecordPhase, StoreError> {
    let (lease_until, expires_at) =
        (row.timestamp_or_none("lease_until")?, row.timestamp_or_none("expires_at")?);
    Ok(match (row.text("state")?, lease_until, expires_at, response) {
        (CLAIMED, Some(lease_until), ..) => RecordPhase::Claimed { lease_until },
        ("unknown", ..) => RecordPhase::Unknown,
        (state @ ("applied" | "refused"), _, Some(expires_at), Some(response)) => RecordPhase::Settled {
            outcome: if state == "applied" { Settled::Applied } else { Settled::Refused },
            kept: if response.body.is_some() { StoredBody::Whole } else { StoredBody::WithoutBody },
            expiry: if row.truth("held")? { Expiry::HeldByMessage } else { Expiry::At(expires_at) },
        },
        _ => return Err(corrupt("the state does not match the other columns")),
    })
}

fn mode(name: &str) -> Result<OperationGuarantee, StoreError> {
    OperationGuarantee::parse(name).ok_or_else(|| corrupt("unknown mode"))
}

/// Returns the entries of the audit trail about records that were marked as unknown.
pub(crate) fn unknown_entries<C: Columns>(marked: &[C]) -> Result<Vec<AuditAction>, StoreError> {
    marked.iter().map(|row| Ok(AuditAction::unknown(&record_name(row)?))).collect()
}

/// The name of the phase of a claimed record.
pub(crate) const CLAIMED: &str = "claimed";

/// Returns a phase's name in its column.
pub(crate) const fn state_name(phase: &RecordPhase) -> &'static str {
    match phase {
        RecordPhase::Claimed { .. } => CLAIMED,
        RecordPhase::Unknown => "unknown",
        RecordPhase::Settled { outcome, .. } => outcome.as_str(),
    }
}

/// Returns where a page begins: after the last record of the previous page, or at the start.
pub(crate) fn page_after(last: Option<(Timestamp, [u8; 32])>) -> (Timestamp, Vec<u8>) {
    last.map_or((Timestamp::EPOCH, Vec::new()), |(since, name)| (since, name.to_vec()))
}

/// Reads the hash that names a record.
pub(crate) fn name_of(row: &impl Columns) -> Result<[u8; 32], StoreError> {
    row.bytes("name")?.try_into().map_err(|_| corrupt("a name is not 32 bytes long"))
}

fn corrupt(detail: &str) -> StoreError {
    StoreError::Corrupt { table: "ledger", detail: detail.to_owned() }
}
