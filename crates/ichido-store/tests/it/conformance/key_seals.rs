//! Settled key records are sealed: one that was changed, or removed before it expired, is found and named.
// SPEC C5, F5.

use std::time::Duration;

use ichido_core::audit::verify::{AuditReport, Kind};
use ichido_core::ledger::{OperationGuarantee, Resolution};
use ichido_store::ledger::{KeyOutcome, KeyResolved, KeySettled};
use ichido_store::testing::while_busy;

use super::audit::{assert_whole, named, seal, verify, write};
use super::ledger::{TTL, name, policy};
use crate::both_databases;
use crate::fixture::StoreFixture;

const MODE: OperationGuarantee = OperationGuarantee::None;
const SECOND: Duration = Duration::from_secs(1);

impl StoreFixture {
    async fn settle_keys(&self, keys: &[&str]) {
        for key in keys {
            self.settled(key, MODE, b"ok").await;
            self.pass(SECOND);
        }
    }

    /// Seals records, this many at a time, and then the entries. Returns how many records each round sealed.
    async fn seal_keys(&self, limit: u32) -> Vec<u64> {
        let (mut rounds, mut after) = (Vec::new(), None);
        loop {
            let sealed = while_busy(|| self.store.audit().seal_keys(after, limit)).await;
            rounds.push(sealed.records);
            after = sealed.after;
            if after.is_none() {
                break;
            }
        }
        seal(&self.store, 100).await;
        rounds
    }
}

/// Returns the findings about key records, and that there are no others.
fn wrong_keys(report: &AuditReport) -> Vec<(Kind, String)> {
    assert_eq!(report.found, report.keys.len() as u64, "{:?}", report.findings);
    let mut found: Vec<_> = report
        .keys
        .iter()
        .map(|finding| {
            assert_eq!((finding.operation.as_str(), finding.identity.as_str()), ("orders.create", "alice"));
            (finding.kind, finding.key.to_string())
        })
        .collect();
    found.sort_by(|one, other| one.1.cmp(&other.1));
    found
}

fn hashes(kind: Kind, keys: &[&str]) -> Vec<(Kind, String)> {
    let mut hashes: Vec<_> = keys.iter().map(|key| (kind, name(key).key.log_hash())).collect();
    hashes.sort_by(|one, other| one.1.cmp(&other.1));
    hashes
}

both_databases! {
    #[test]
    async fn changed_key_record_is_named(fixture: StoreFixture) {
        let changes = [
            ("k1", "status = 500"),
            ("k2", "body = headers"),
            ("k3", "identity = 'mallory'"),
            ("k4", "trace = 'forged'"),
            ("k5", "claimed_at = expires_at"),
            ("k6", "result_digest = request_digest"),
            ("k7", "state = 'refused'"),
        ];
        let keys = changes.map(|(key, _)| key);
        fixture.settle_keys(&keys).await;
        fixture.settle_keys(&["same"]).await;
        assert_eq!(fixture.seal_keys(3).await.iter().sum::<u64>(), 8);
        assert_eq!(assert_whole(&fixture).await.key_records, 8);
        for (key, change) in changes {
            let sql = format!("UPDATE {{t}}ledger SET {change} WHERE key = '{key}'");
            assert_eq!(write(&fixture, &sql).await, 1);
        }
        assert_eq!(wrong_keys(&verify(&fixture).await), hashes(Kind::Changed, &keys));
    }

    #[test]
    async fn removed_key_record_is_named(fixture: StoreFixture) {
        fixture.settle_keys(&["gone", "again", "same"]).await;
        fixture.seal_keys(10).await;
        for key in ["gone", "again"] {
            assert_eq!(write(&fixture, &format!("DELETE FROM {{t}}ledger WHERE key = '{key}'")).await, 1);
        }
        assert_eq!(wrong_keys(&verify(&fixture).await), hashes(Kind::Removed, &["gone", "again"]));
        fixture.settled("again", MODE, b"ok").await;
        write(&fixture, "DELETE FROM {t}ledger WHERE key = 'gone'").await;
        let found = wrong_keys(&verify(&fixture).await);
        assert!(found.contains(&hashes(Kind::Changed, &["again"])[0]), "another request ran: {found:?}");
    }

    #[test]
    async fn list_of_key_records_is_proven_by_the_trail(fixture: StoreFixture) {
        fixture.settle_keys(&["k1", "k2"]).await;
        fixture.seal_keys(10).await;
        let empty = if fixture.store.is_sqlite() { "x''" } else { "''::bytea" };
        assert_eq!(write(&fixture, &format!("UPDATE {{t}}sealed_keys SET records = {empty}")).await, 1);
        let report = verify(&fixture).await;
        let list = report.findings[0].message.unwrap();
        assert_eq!((report.found, report.findings[0].kind), (1, Kind::Changed));
        assert_eq!(write(&fixture, "DELETE FROM {t}sealed_keys").await, 1);
        let report = verify(&fixture).await;
        assert_eq!((report.found, report.findings[0].kind), (1, Kind::Removed));
        assert_eq!(write(&fixture, "DELETE FROM {t}events WHERE kind = 'keys_sealed'").await, 1);
        assert_eq!(named(&verify(&fixture).await), [(Kind::Removed, list)], "its entry is sealed, too");
    }

    #[test]
    async fn swept_and_reused_key_records_are_not_reported(fixture: StoreFixture) {
        fixture.touch();
        fixture.settle_keys(&["swept", "reused"]).await;
        fixture.seal_keys(10).await;
        fixture.pass(TTL);
        assert_eq!(fixture.store.keys().sweep(10).await.unwrap(), 2);
        assert_eq!(assert_whole(&fixture).await.key_records, 0, "they have expired");
        fixture.settle_keys(&["reused"]).await;
        assert_whole(&fixture).await;
        assert_eq!(fixture.seal_keys(10).await, [1]);
        assert_eq!(assert_whole(&fixture).await.key_records, 1);
        assert_eq!(write(&fixture, "DELETE FROM {t}sealed_keys").await, 1, "the expired list was deleted");
    }

    #[test]
    async fn decided_key_record_is_sealed_with_its_outcome(fixture: StoreFixture) {
        fixture.touch();
        let fence = fixture.run("k1", MODE).await;
        assert_eq!(fixture.report("k1", fence, KeyOutcome::Hold).await, KeySettled::Settled);
        assert_eq!(fixture.seal_keys(10).await, [0], "it is not settled");
        let (keys, name, policy) = (fixture.store.keys(), name("k1"), policy(MODE));
        let decided = keys.decide(&name, Resolution::Applied, None, &policy, "ann").await.unwrap();
        assert_eq!(decided, KeyResolved::Resolved);
        assert_whole(&fixture).await;
        assert_eq!(fixture.seal_keys(10).await, [1]);
        assert_eq!(assert_whole(&fixture).await.key_records, 1);
    }

    #[test]
    async fn deleted_identity_explains_missing_key_records(fixture: StoreFixture) {
        fixture.settle_keys(&["k1", "k2"]).await;
        fixture.seal_keys(10).await;
        assert_eq!(fixture.store.keys().delete_of_identity("alice", 10).await.unwrap(), 2);
        fixture.pass(SECOND);
        assert_whole(&fixture).await;
        fixture.settle_keys(&["k3"]).await;
        fixture.seal_keys(10).await;
        write(&fixture, "DELETE FROM {t}ledger").await;
        assert_eq!(wrong_keys(&verify(&fixture).await), hashes(Kind::Removed, &["k3"]));
    }

    #[test]
    async fn sealing_of_key_records_is_bounded_and_done_once(fixture: StoreFixture) {
        fixture.touch();
        fixture.settle_keys(&["k1", "k2", "k3", "k4", "k5"]).await;
        assert_eq!(fixture.seal_keys(2).await, [2, 2, 1]);
        assert_eq!(fixture.seal_keys(2).await, [0, 0, 0], "each is sealed once");
        fixture.settle_keys(&["k6"]).await;
        assert_eq!(fixture.seal_keys(10).await, [1]);
        assert_eq!(assert_whole(&fixture).await.key_records, 6);
        let listed = fixture.store.actions().list(None, 10).await.unwrap();
        assert!(listed.is_empty(), "these entries are not actions of people: {listed:?}");
    }
}
