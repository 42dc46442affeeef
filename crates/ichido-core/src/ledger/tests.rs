mod admission;
mod history;
mod policy;
mod settlement;

use std::time::Duration;

use super::*;
use crate::fence::Fence;
use crate::fingerprint::Fingerprint;
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_secs(1_000_000);
const SAME: Fingerprint = Fingerprint::from_bytes([1; 32]);
const OTHER: Fingerprint = Fingerprint::from_bytes([2; 32]);
const HOUR: Duration = Duration::from_hours(1);

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn policy(mode: OperationGuarantee) -> Policy {
    Policy::build(PolicyDraft { guarantee: Some(mode), ..PolicyDraft::new(Class::Mutate) }).unwrap()
}

fn modes() -> [Policy; 3] {
    [OperationGuarantee::Transactional, OperationGuarantee::Keyed, OperationGuarantee::None].map(policy)
}

fn record(phase: RecordPhase) -> Record {
    let (first_claimed_at, claimed_at) = (at(-60), at(-30));
    Record {
        fingerprint: SAME,
        fence: fence(7),
        first_claimed_at,
        claimed_at,
        answered_at: None,
        mode: OperationGuarantee::Transactional,
        phase,
    }
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(NOW.as_micros() + secs * 1_000_000)
}

fn settled(outcome: Settled, kept: StoredBody, expiry: Expiry) -> Record {
    record(RecordPhase::Settled { outcome, kept, expiry })
}
