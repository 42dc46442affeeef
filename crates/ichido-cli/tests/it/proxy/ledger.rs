//! `ichido keys` shows unknown outcomes to a person, who decides them.
// Spec: F2.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, RecordPhase, Settled};
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, StoredResponse};
use ichido_store::testing::postgres::fresh_database;
use ichido_store::testing::sqlite::fresh_file;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use super::client::{HUNG, ProxyClient, ProxyRequest, send};
use super::program::{ProxyProcess, run};
use super::service::{FakeService, ReleaseGate, ServiceAction};

/// Adds an action of unknown outcome to the ledger.
pub(crate) async fn add_unknown(store: &Store, operation: &str, identity: &str, key: &str) {
    add(store, (operation, identity, key), KeyOutcome::Hold).await;
}

/// Adds an action with this outcome to the ledger.
async fn add(store: &Store, (operation, identity, key): (&str, &str, &str), outcome: KeyOutcome) {
    let key = IdempotencyKey::parse(key).expect("a key");
    let name = RecordName { operation: operation.to_owned(), identity: identity.to_owned(), key };
    let policy = Arc::new(Policy::build(PolicyDraft::new(Class::ExternalEffect)).expect("a policy"));
    let claim = KeyClaim {
        name: name.clone(),
        fingerprint: Fingerprint::from_bytes([7; 32]),
        request_digest: Digest::of_bytes(b"secret"),
        policy,
        hops: None,
        trace: None,
    };
    let KeyClaimed::Run { fence, .. } = store.keys().claim(claim).await.expect("claimed") else {
        panic!("it is new")
    };
    let _ = store.keys().settle(KeySettle { name, fence, outcome }).await.expect("settled");
}

#[tokio::test]
async fn unknown_outcomes_are_listed_with_escaped_text() {
    let file = fresh_file();
    let store = Store::open(&file.url, 2).await.expect("the store");
    let (code, out, err) = run(&["keys", "unknown", "--store", &file.url]);
    assert_eq!((code, out.as_str()), (Some(0), "no unknown outcomes\n"), "{err}");
    add_unknown(&store, "POST /orders", "alice", "k-1").await;
    add_unknown(&store, "POST /orders/{id}", "bob\u{1b}[2J", "k-2").await;
    let (code, out, _) = run(&["keys", "--store", &file.url, "unknown"]);
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert!(lines[0].starts_with("SINCE") && lines[0].ends_with("KEY"), "{out}");
    assert!(lines[1].contains("POST /orders ") && lines[1].ends_with("k-1"), "the oldest first: {out}");
    assert!(lines[2].contains("bob\\u{1b}[2J") && !out.contains('\u{1b}'), "{out}");
    assert!(!out.contains("secret"));
}

#[tokio::test]
async fn a_decision_names_one_action_whose_outcome_is_unknown() {
    let file = fresh_file();
    let store = Store::open(&file.url, 2).await.expect("the store");
    add_unknown(&store, "orders.create", "alice", "k-1").await;
    let decide = |key: &str, identity: &str| {
        let named =
            ["--operation", "orders.create", "--identity", identity, "--key", key, "--store", &file.url];
        run(&[&["keys", "decide", "give-up"], &named[..]].concat())
    };
    for (key, identity) in [("k-2", "alice"), ("k-1", "bob")] {
        let (code, _, err) = decide(key, identity);
        assert_eq!(code, Some(1));
        assert!(err.contains("no key record exists for this operation"), "{err}");
    }
    let (code, out, err) = decide("k-1", "alice");
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("decided: its effect stays unknown"), "{out}");
    let (code, _, err) = decide("k-1", "alice");
    assert_eq!(code, Some(4), "it conflicts with the current state");
    assert!(err.contains("already known"), "{err}");
}

#[tokio::test]
async fn replay_reports_the_decision() {
    let file = fresh_file();
    let service = FakeService::start(|_, _| ServiceAction::status("500 Oh")).await;
    let adapter = adapter(&service, &file.url);
    for (finding, status, word, value) in
        [("done", 200, "status", "done"), ("give-up", 400, "code", "decided_refused")]
    {
        let order = ProxyRequest::post("/orders").key(finding).body("x");
        send(adapter.address, &order).await;
        let named = ["--operation", "POST /orders", "--identity", "shop", "--key", finding];
        let (code, _, err) = run(&[&["keys", "decide", finding, "--store", &file.url], &named[..]].concat());
        assert_eq!(code, Some(0), "{err}");
        let replay = send(adapter.address, &order).await;
        assert_eq!((replay.status(), replay.json()[word].as_str()), (status, Some(value)));
    }
    assert_eq!(service.seen().len(), 2, "neither request is sent a second time");
}

#[tokio::test]
async fn adapter_reports_what_happened_under_a_key() {
    let (file, database) = (fresh_file(), fresh_database().await);
    for url in [&file.url, &database.url] {
        let service = FakeService::start(|_, count| match count {
            0 => ServiceAction::ok("thanks"),
            _ => ServiceAction::status("500 Oh"),
        })
        .await;
        let adapter = adapter(&service, url);
        for key in ["done", "lost"] {
            send(adapter.address, &ProxyRequest::post("/orders").key(key).body("x")).await;
        }
        let named = ["--operation", "POST /orders", "--identity", "shop", "--key", "lost", "--store", url];
        let (code, _, err) = run(&[&["keys", "decide", "give-up"], &named[..]].concat());
        assert_eq!(code, Some(0), "{err}");
        for (key, steps) in [
            ("done", &["none → claimed (claimed)", "claimed → applied (settled)"][..]),
            (
                "lost",
                &[
                    "none → claimed (claimed)",
                    "claimed → unknown (unknown)",
                    "unknown → refused (decided by ",
                ],
            ),
        ] {
            let (code, out, err) = run(&["keys", "find", "--key", key, "--store", url]);
            assert_eq!(code, Some(0), "{err}");
            let found: Vec<&str> = out.lines().filter(|line| line.contains(" → ")).collect();
            assert_eq!(found.len(), steps.len(), "{out}");
            assert!(found.iter().zip(steps).all(|(line, step)| line.contains(step)), "{out}");
        }
    }
}

/// No worker runs on the store. An adapter seals when it starts, and then periodically.
#[tokio::test]
async fn adapter_seals_key_records_and_the_audit_names_one_that_was_removed() {
    let file = fresh_file();
    let store = Store::open(&file.url, 2).await.expect("the store");
    let outcome = KeyOutcome::Keep {
        settled: Settled::Applied,
        response: StoredResponse { status: 201, headers: Vec::new(), body: None },
        result_digest: None,
        message_id: None,
        ttl: Duration::from_hours(1),
    };
    add(&store, ("POST /orders", "shop", "k-1"), outcome).await;
    let service = FakeService::plain().await;
    let _adapter = adapter(&service, &file.url);
    while store.audit().verify(None, None).await.expect("a report").key_records == 0 {
        tokio::task::yield_now().await;
    }
    let verify = ["audit", "verify", "--store", &file.url];
    let (code, out, err) = run(&verify);
    assert_eq!(code, Some(0), "{out}{err}");
    let mut connection = SqliteConnection::connect(&file.url).await.expect("connected");
    connection.execute("DELETE FROM ichido_ledger").await.expect("removed");
    let (code, out, _) = run(&verify);
    let hash = IdempotencyKey::parse("k-1").expect("a key").log_hash();
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains(&format!("removed: key {hash} of POST /orders for shop, of ")), "{out}");
    assert!(!out.contains("k-1"), "the key itself is not shown: {out}");
}

#[test]
fn invalid_keys_arguments_are_refused() {
    let (code, _, err) = run(&["keys", "unknown"]);
    assert_eq!(code, Some(3));
    assert!(err.contains("no server or store found"), "{err}");
    let named = [
        "--operation",
        "a",
        "--identity",
        "b",
        "--key",
        "schlüssel",
        "--settle-grace",
        "soon",
        "--store",
        "sqlite:x",
    ];
    let (code, _, err) = run(&[&["keys", "decide", "done"], &named[..]].concat());
    assert_eq!(code, Some(2));
    assert!(
        err.contains("2 problems") && err.contains("--key: ") && err.contains("--settle-grace: "),
        "{err}"
    );
    assert!(!err.contains("schl"), "the key is not repeated: {err}");
    let (code, _, err) = run(&["keys", "unknown", "--store", "mysql://x"]);
    assert_eq!(code, Some(1), "{err}");
}

fn adapter(service: &FakeService, store: &str) -> ProxyProcess {
    let flags =
        ["--store", store, "--identity", "single:shop", "--operation", "POST /orders", "--lease", "1s"];
    ProxyProcess::start("adapter", service.address, &flags)
}

/// Waits until the lease of the only claim has expired.
async fn until_lapsed(store: &Store, name: &RecordName) {
    loop {
        let record = store.keys().get(name).await.expect("an answer").expect("a claim").record;
        let RecordPhase::Claimed { lease_until } = record.phase else { panic!("{record:?}") };
        if lease_until <= store.now().await.expect("the time") {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// The adapter is killed during its call, and the client does not retry.
#[tokio::test]
async fn crashed_requests_are_listed_without_a_retry() {
    let (file, database) = (fresh_file(), fresh_database().await);
    for url in [&file.url, &database.url] {
        let never = ReleaseGate::default();
        let service =
            FakeService::start(move |_, _| ServiceAction::AnswerWhen(never.clone(), Vec::new())).await;
        let killed = adapter(&service, url);
        let mut client = ProxyClient::connect(killed.address).await;
        client.write(ProxyRequest::post("/orders").key("k-1").body("x").bytes()).await;
        service.until_seen(1).await;
        killed.kill().await;
        let store = Store::open(url, 2).await.expect("the store");
        let key = IdempotencyKey::parse("k-1").expect("a key");
        let name = RecordName { operation: "POST /orders".to_owned(), identity: "shop".to_owned(), key };
        until_lapsed(&store, &name).await;
        assert!(
            store.keys().list_unknown(None, 1).await.expect("a page").is_empty(),
            "it was not listed yet"
        );
        let _next = adapter(&service, url);
        let listed = async {
            while store.keys().list_unknown(None, 1).await.expect("a page").is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(HUNG, listed).await.expect("it is listed");
        let (_, out, err) = run(&["keys", "unknown", "--store", url]);
        assert!(out.contains("k-1"), "{out}{err}");
        let named = ["--operation", "POST /orders", "--identity", "shop", "--key", "k-1", "--store", url];
        let (code, out, err) = run(&[&["keys", "decide", "done"], &named[..]].concat());
        assert_eq!(code, Some(0), "{out}{err}");
        assert_eq!(service.seen().len(), 1);
    }
}
