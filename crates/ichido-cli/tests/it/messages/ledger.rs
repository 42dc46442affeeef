//! Actions of unknown outcome, at a server and on the store.

use std::sync::Arc;

use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName};
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle};

use super::fixture::{ServerAndStore, objects};
use crate::dead::fixture::{StoreFixture, both_databases};

/// Adds an action of unknown outcome to the ledger.
async fn add_unknown(store: &Store, key: &str) {
    let key = IdempotencyKey::parse(key).unwrap();
    let name = RecordName { operation: "orders.create".to_owned(), identity: "alice".to_owned(), key };
    let claim = KeyClaim {
        name: name.clone(),
        fingerprint: Fingerprint::from_bytes([7; 32]),
        request_digest: Digest::of_bytes(b"secret"),
        policy: Arc::new(Policy::build(PolicyDraft::new(Class::ExternalEffect)).unwrap()),
        hops: None,
        trace: None,
    };
    let KeyClaimed::Run { fence, .. } = store.keys().claim(claim).await.unwrap() else { panic!("it is new") };
    let _ = store.keys().settle(KeySettle { name, fence, outcome: KeyOutcome::Hold }).await.unwrap();
}

fn decide<'a>(finding: &'a str, key: &'a str) -> Vec<&'a str> {
    vec!["keys", "decide", finding, "--operation", "orders.create", "--identity", "alice", "--key", key]
}

both_databases! {
    #[test]
    async fn unknown_key_records_are_listed_and_decided(fixture: StoreFixture) {
        let targets = ServerAndStore::on(fixture);
        assert_eq!(targets.success_output(&["keys", "unknown"]), "no unknown outcomes\n");
        // One more than a page has.
        for nth in 0..=100 {
            add_unknown(&targets.fixture.store, &format!("k-{nth}")).await;
        }
        let listed = targets.json(&["keys", "unknown"]);
        assert_eq!((listed.len(), &listed[0]["idempotency_key"]), (101, &"k-0".into()), "the oldest first");
        assert_eq!(targets.success_output(&["keys", "unknown"]).lines().count(), 102);
        let there = targets.at_server(&decide("done", "k-0"));
        let here = targets.at_store(&decide("done", "k-1"));
        assert_eq!((there.code, &there.out), (Some(0), &here.out), "{there:?} {here:?}");
        assert_eq!(here.code, Some(0));
        let object = targets.at_server(&[&decide("give-up", "k-2")[..], &["--json"]].concat());
        assert_eq!(objects(&object.out)[0]["record"]["state"], "refused", "{object:?}");
        assert_eq!(targets.json(&["keys", "unknown"]).len(), 98);
        for (key, finding, code, why) in [
            ("k-0", "done", 4, "already known"),
            ("k-3", "not-done", 4, "may still take effect"),
            ("of-nobody", "done", 1, "no key record exists"),
        ] {
            let left = targets.both(&decide(finding, key));
            assert!(left.code == Some(code) && left.err.contains(why), "{left:?}");
        }
    }

    #[test]
    async fn keys_are_found_by_key_and_by_hash(fixture: StoreFixture) {
        let targets = ServerAndStore::on(fixture);
        add_unknown(&targets.fixture.store, "order-4711").await;
        for flags in [["--key", "order-4711"], ["--hash", "173d0ddbff034193"]] {
            let out = targets.success_output(&[&["keys", "find"], &flags[..]].concat());
            for part in ["order-4711", "173d0ddbff034193", "orders.create", "alice", "claimed → unknown (unknown)"] {
                assert!(out.contains(part), "{part}: {out}");
            }
        }
        let none = targets.success_output(&["keys", "find", "--key", "order-4712"]);
        assert_eq!(none, "no request or message has this key\n");
        let wrong = targets.both(&["keys", "find", "--hash", "order-4711"]);
        assert!(wrong.code == Some(2) && wrong.err.contains("--hash: "), "{wrong:?}");
    }
}
