//! The adapter: idempotency in front of any service (SPEC C2 to C7, D11, F1, F2).

use std::sync::Arc;
use std::time::Duration;

use ichido_core::hops::Hops;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, Phase, Policy, PolicyDraft, RecordName, Settled};
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, Response};
use ichido_store::testing::postgres::fresh_database;
use ichido_store::testing::sqlite::fresh_file;
use serde_json::json;
use tokio::net::TcpListener;

use super::client::{Client, HUNG, Request, send};
use super::program::{Proxy, run};
use super::service::{Act, Gate, Service, answer};
use crate::folder;
use crate::http_message::{Kind, Reader};

/// Starts an adapter with one caller and the operations `POST /orders` and `POST /orders/{id}`.
fn adapter(service: &Service, store: &str, flags: &[&str]) -> Proxy {
    let mut all = vec![
        "--store",
        store,
        "--identity",
        "single:shop",
        "--operation",
        "POST /orders",
        "--operation",
        "POST /orders/{id}",
    ];
    all.extend(flags);
    Proxy::start("adapter", service.address, &all)
}

async fn numbering() -> Service {
    Service::start(|_, before| {
        let fields = [
            ("location", "/orders/1"),
            ("link", "a"),
            ("link", "b"),
            ("set-cookie", "s=1"),
            ("content-type", "text/plain"),
        ];
        Act::Answer(answer("201 Created", &fields, &format!("order {before}")))
    })
    .await
}

fn order(key: &str) -> Request {
    Request::post("/orders?lang=en").key(key).field("Content-Type", "application/json").body("{\"qty\": 1}")
}

#[tokio::test]
async fn a_duplicate_gets_the_first_answer_and_the_service_is_not_asked_again() {
    let database = fresh_database().await;
    let file = fresh_file();
    for url in [&file.url, &database.url] {
        let service = numbering().await;
        let proxy = adapter(&service, url, &[]);
        let first = send(proxy.address, &order("k")).await;
        assert_eq!((first.status(), first.text(), first.one("idempotency-replayed")), (201, "order 0", None));
        let respelled = Request::post("/orders?lang=en")
            .key("\"k\"")
            .field("Content-Type", "application/json")
            .body("{ \"qty\": 1.0 }");
        let again = send(proxy.address, &respelled).await;
        assert_eq!(
            (again.status(), again.text(), again.one("idempotency-replayed")),
            (201, "order 0", Some("true"))
        );
        assert_eq!((again.one("location"), again.all("link")), (Some("/orders/1"), vec!["a", "b"]));
        assert_eq!((first.one("set-cookie"), again.one("set-cookie")), (Some("s=1"), None));
        assert_ne!(first.one("x-request-id"), again.one("x-request-id"));
        assert_eq!(service.seen().len(), 1);
    }
}

#[tokio::test]
async fn another_request_under_the_same_key_is_refused() {
    let file = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &file.url, &[]);
    assert_eq!(send(proxy.address, &order("k")).await.status(), 201);
    let json = |target: &str, body: &str| {
        Request::post(target).key("k").field("Content-Type", "application/json").body(body)
    };
    for other in [
        json("/orders?lang=en", "{\"qty\": 2}"),
        json("/orders?lang=de", "{\"qty\": 1}"),
        json("/orders", "{\"qty\": 1}"),
    ] {
        let refused = send(proxy.address, &other).await;
        assert_eq!((refused.status(), refused.code().as_str()), (409, "key_conflict"), "{other:?}");
        assert!(!refused.text().contains("order 0"));
    }
    assert_eq!(service.seen().len(), 1);
    // Another operation is another action (SPEC C3): its name is the route's pattern, not the path.
    assert_eq!(send(proxy.address, &json("/orders/7", "{\"qty\": 1}")).await.status(), 201);
    let same_pattern = send(proxy.address, &json("/orders/8", "{\"qty\": 1}")).await;
    assert_eq!((same_pattern.status(), same_pattern.code().as_str()), (409, "key_conflict"));
    assert_eq!(service.seen().len(), 2);
}

#[tokio::test]
async fn the_key_is_needed_and_must_agree_with_the_body() {
    let file = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &file.url, &[]);
    assert_eq!(send(proxy.address, &Request::post("/orders").body("x")).await.code(), "key_missing");
    assert_eq!(send(proxy.address, &Request::post("/orders").key("a b")).await.code(), "key_invalid");
    let body = "{\"idempotency_key\": \"other\"}";
    let disagrees = Request::post("/orders").key("k").field("content-type", "application/json").body(body);
    let refused = send(proxy.address, &disagrees).await;
    assert_eq!((refused.status(), refused.code().as_str()), (422, "key_disagrees"));
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn what_belongs_to_no_operation_is_refused_or_passes_by_what_it_does() {
    let file = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &file.url, &[]);
    let unknown = send(proxy.address, &Request::post("/elsewhere").key("k")).await;
    assert_eq!((unknown.status(), unknown.code().as_str()), (404, "operation_unknown"));
    assert_eq!(service.seen().len(), 0);
    assert_eq!(send(proxy.address, &Request::get("/orders")).await.status(), 201);
    assert_eq!(send(proxy.address, &Request::get("/orders")).await.status(), 201);
    assert_eq!(service.seen().len(), 2, "reads are not deduplicated (SPEC C11)");
}

#[tokio::test]
async fn a_duplicate_in_flight_waits_and_is_then_told_that_it_is_processing() {
    let file = fresh_file();
    let gate = Gate::default();
    let opened = gate.clone();
    let service =
        Service::start(move |_, _| Act::AnswerWhen(opened.clone(), answer("201 Created", &[], "late"))).await;
    let proxy = adapter(&service, &file.url, &[]);
    let mut first = Client::connect(proxy.address).await;
    first.write(order("k").bytes()).await;
    service.until_seen(1).await;
    let processing = send(proxy.address, &order("k")).await;
    assert_eq!((processing.status(), processing.one("idempotency-status")), (202, Some("processing")));
    assert!(processing.one("retry-after").is_some());
    let waiting = tokio::spawn({
        let address = proxy.address;
        async move { send(address, &order("k")).await }
    });
    gate.open();
    assert_eq!(first.answer().await.text(), "late");
    let waited = waiting.await.expect("it ends");
    assert_eq!((waited.text(), waited.one("idempotency-replayed")), ("late", Some("true")));
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn a_client_that_hangs_up_does_not_stop_the_work() {
    let file = fresh_file();
    let gate = Gate::default();
    let opened = gate.clone();
    let service =
        Service::start(move |_, _| Act::AnswerWhen(opened.clone(), answer("201 Created", &[], "done"))).await;
    let proxy = adapter(&service, &file.url, &[]);
    let mut impatient = Client::connect(proxy.address).await;
    impatient.write(order("k").bytes()).await;
    service.until_seen(1).await;
    drop(impatient);
    gate.open();
    let again = send(proxy.address, &order("k")).await;
    assert_eq!((again.status(), again.text()), (201, "done"));
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn work_whose_client_is_gone_is_waited_for_when_the_adapter_stops() {
    let file = fresh_file();
    let gate = Gate::default();
    let opened = gate.clone();
    let service =
        Service::start(move |_, _| Act::AnswerWhen(opened.clone(), answer("201 Created", &[], "done"))).await;
    let mut proxy = adapter(&service, &file.url, &[]);
    let mut impatient = Client::connect(proxy.address).await;
    impatient.write(order("k").bytes()).await;
    service.until_seen(1).await;
    drop(impatient);
    proxy.signal("TERM");
    super::stopping::until_refused(proxy.address).await;
    gate.open();
    assert_eq!(proxy.wait().await.code(), Some(0));
    let next = adapter(&service, &file.url, &[]);
    let again = send(next.address, &order("k")).await;
    assert_eq!((again.text(), again.one("idempotency-replayed")), ("done", Some("true")));
}

#[tokio::test]
async fn a_connection_that_could_not_be_made_leaves_the_key_free() {
    let file = fresh_file();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let flags = ["--store", &file.url, "--identity", "single:shop", "--operation", "POST /orders"];
    let proxy = Proxy::start("adapter", address, &flags);
    let failed = send(proxy.address, &order("k")).await;
    assert_eq!((failed.status(), failed.code().as_str()), (502, "upstream_unreachable"));
    assert_eq!(failed.json()["effect"], "not_done");
    // The service comes up, and the same key runs, even with another body: nothing holds it.
    let listener = TcpListener::bind(address).await.expect("the port is free");
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("the adapter");
        Reader::new(&mut stream).message(Kind::Request).await.expect("a request");
        tokio::io::AsyncWriteExt::write_all(&mut stream, &answer("201 Created", &[], "made"))
            .await
            .expect("written");
    });
    let made = send(proxy.address, &Request::post("/orders").key("k").body("another")).await;
    assert_eq!((made.status(), made.text()), (201, "made"));
    serving.await.expect("it ends");
}

#[tokio::test]
async fn what_a_service_says_decides_what_is_kept() {
    let file = fresh_file();
    // 429 proves that nothing was done, 400 is refused for good, 500 proves nothing.
    for (status, again, asked) in [
        ("429 Too Many Requests", 429, 2),
        ("400 Bad Request", 400, 1),
        ("500 Internal Server Error", 409, 1),
    ] {
        let service = Service::start(move |_, _| Act::status(status)).await;
        let proxy = adapter(&service, &file.url, &[]);
        let key = &status[..3];
        assert_eq!(send(proxy.address, &order(key)).await.status().to_string(), key);
        assert_eq!(send(proxy.address, &order(key)).await.status(), again, "{status}");
        assert_eq!(service.seen().len(), asked, "{status}");
    }
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_where_the_service_honours_keys() {
    let file = fresh_file();
    let service =
        Service::start(|_, before| if before == 0 { Act::Cut(Vec::new()) } else { Act::ok("known") }).await;
    let proxy = adapter(&service, &file.url, &["--effect", "keyed"]);
    let lost = send(proxy.address, &order("k")).await;
    assert_eq!((lost.status(), lost.code().as_str()), (502, "upstream_lost"));
    let other = Request::post("/orders?lang=en").key("k").body("another");
    assert_eq!(
        send(proxy.address, &other).await.code(),
        "key_conflict",
        "the key stays bound to its request"
    );
    assert_eq!(send(proxy.address, &order("k")).await.text(), "known");
    let seen = service.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].one("idempotency-key"), seen[1].one("idempotency-key"));
}

#[tokio::test]
async fn a_lost_answer_is_held_where_it_does_not() {
    let file = fresh_file();
    for act in
        [Act::Cut(Vec::new()), Act::Cut(b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nhalf".to_vec())]
    {
        let service = Service::start(move |_, _| act.clone()).await;
        let proxy = adapter(&service, &file.url, &[]);
        let key = service.address.to_string();
        let mut client = Client::connect(proxy.address).await;
        client.write(order(&key).bytes()).await;
        // Cut before the answer began it is a problem; cut inside, it is cut here too, and never looks whole.
        let first = client.try_answer().await;
        assert!(first.is_none_or(|first| first.code() == "upstream_lost"));
        let again = send(proxy.address, &order(&key)).await;
        assert_eq!((again.status(), again.code().as_str()), (409, "outcome_unknown"));
        assert_eq!(service.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_service_that_is_still_at_it_is_no_outcome() {
    let file = fresh_file();
    let processing =
        answer("202 Accepted", &[("idempotency-status", "processing"), ("retry-after", "1")], "");
    let service = Service::start(
        move |_, before| if before == 0 { Act::Answer(processing.clone()) } else { Act::ok("done") },
    )
    .await;
    let proxy = adapter(&service, &file.url, &["--effect", "keyed"]);
    let first = send(proxy.address, &order("k")).await;
    assert_eq!((first.status(), first.one("idempotency-status")), (202, Some("processing")));
    assert_eq!(send(proxy.address, &order("k")).await.text(), "done");
}

#[tokio::test]
async fn callers_with_the_same_key_never_meet_at_a_service_that_honours_keys() {
    let file = fresh_file();
    // It echoes the key it was given, as many do.
    let service = Service::start(|request, _| {
        let key = request.one("idempotency-key").expect("a key");
        Act::Answer(answer("201 Created", &[("idempotency-key", key)], "made"))
    })
    .await;
    let flags = [
        "--store",
        &file.url,
        "--identity",
        "header:x-user-id",
        "--operation",
        "POST /orders",
        "--effect",
        "keyed",
    ];
    let proxy = Proxy::start("adapter", service.address, &flags);
    for user in ["alice", "bob"] {
        let made = send(proxy.address, &order("k").field("x-user-id", user)).await;
        assert_eq!(
            (made.status(), made.one("idempotency-key")),
            (201, None),
            "a key that the client never sent"
        );
    }
    let seen = service.seen();
    let keys =
        [seen[0].one("idempotency-key").expect("a key"), seen[1].one("idempotency-key").expect("a key")];
    assert_ne!(keys[0], keys[1]);
    assert!(!keys.contains(&"k"), "the client's key stays here");
    // One caller, or a service that scopes keys by itself, gets the client's own.
    let flags = [&flags[..], &["--service-key", "client"]].concat();
    let proxy = Proxy::start("adapter", service.address, &flags);
    let made = send(proxy.address, &order("\"k2\"").field("x-user-id", "alice")).await;
    assert_eq!((made.status(), made.one("idempotency-key")), (201, Some("\"k2\"")));
    assert_eq!(service.seen()[2].one("idempotency-key"), Some("\"k2\""));
}

fn name(operation: &str, key: &str) -> RecordName {
    let key = IdempotencyKey::parse(key).expect("a key");
    RecordName { operation: operation.to_owned(), identity: "shop".to_owned(), key }
}

#[tokio::test]
async fn the_ledger_keeps_the_route_the_hops_and_the_trace() {
    let file = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &file.url, &[]);
    let gateway = Proxy::start("gateway", proxy.address, &["--allow-headers", "content-type,traceparent"]);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request =
        Request::post("/orders/7").key("k").field("traceparent", trace).field("x-request-id", "r-1");
    assert_eq!(send(gateway.address, &request).await.status(), 201);
    let store = Store::open(&file.url, 2).await.expect("the store");
    let record =
        store.keys().get(&name("POST /orders/{id}", "k")).await.expect("readable").expect("a record");
    let hops = Hops::read(record.hops.as_deref());
    let told: Vec<_> = hops.iter().map(|hop| (hop.name.as_str(), hop.request_id.as_str())).collect();
    assert_eq!(told, [("gateway", "r-1"), ("adapter", "r-1")]);
    assert_eq!(record.trace.as_deref(), Some(trace));
}

#[tokio::test]
async fn expired_keys_are_forgotten_in_the_background() {
    let database = fresh_database().await;
    let file = fresh_file();
    for url in [&file.url, &database.url] {
        let store = Store::open(url, 2).await.expect("the store");
        let name = name("POST /orders", "old");
        let policy = Arc::new(Policy::build(PolicyDraft::of(Class::Mutate)).expect("a policy"));
        let claim = KeyClaim {
            name: name.clone(),
            fingerprint: ichido_core::fingerprint::Fingerprint::from_bytes([1; 32]),
            request_digest: ichido_core::digest::Digest::of_bytes(b""),
            policy,
            hops: None,
            trace: None,
        };
        let KeyClaimed::Run { fence, .. } = store.keys().claim(claim).await.expect("claimed") else {
            panic!("it is new")
        };
        let response = Response { status: 201, headers: Vec::new(), body: Some(Vec::new()) };
        let outcome = KeyOutcome::Keep {
            settled: Settled::Applied,
            response,
            result_digest: None,
            message_id: None,
            ttl: Duration::from_micros(1),
        };
        store.keys().settle(KeySettle { name: name.clone(), fence, outcome }).await.expect("settled");
        let found = store.keys().get(&name).await.expect("readable").expect("it is still there");
        assert!(matches!(found.record.phase, Phase::Settled { .. }));
        let service = numbering().await;
        let _proxy = adapter(&service, url, &[]);
        let forgotten = async {
            while store.keys().get(&name).await.expect("readable").is_some() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(HUNG, forgotten).await.expect("it is forgotten");
    }
}

#[tokio::test]
async fn an_adapter_can_be_told_everything_by_its_files() {
    let store = fresh_file();
    let folder = folder::fresh();
    let enabled = json!({
        "fingerprint": {
            "include": ["identity", "route.operation", "idempotency-key", "method", "path", "query", "body_hash"],
            "body_hash": {"input": {"leave_out": ["/trace_id"]}},
        },
        "inflight_lock": {"status_on_lock_conflict": 409},
        "conflict_rule": {"same_key_different_fingerprint": {"status": 422}},
        "response_replay": {
            "on_duplicate_while_inflight": {"wait_up_to_ms": 0, "on_timeout": {"status": 409}},
            "response_headers_subset_allowlist": ["content-type", "location"],
        },
        "storage": {"ttl": {"days": 7}},
    });
    let inbound = json!({"allow": ["content-type", "ichido-hops", "idempotency-key", "x-user-id"]});
    let receiving = folder.boundary(
        "gateway_to_adapter.json",
        &json!({
            "http": {"idempotency": {"enabled": enabled}},
            "headers": {"adapter_inbound": inbound, "gateway_outbound": inbound},
        }),
    );
    let day = json!({"days": 1});
    let sending = folder.boundary(
        "adapter.json",
        &json!({"identity": {"source": "header", "name": "x-user-id"}, "operations": {
            "orders.create": {"path": "/orders", "class": "mutate", "effect": "keyed", "upstream_keeps_keys_for": day, "ttl": null},
            "orders.search": {"methods": ["POST"], "path": "/orders/search", "class": "read", "effect": "opaque"},
            "profiles.update": null}}),
    );
    let service = numbering().await;
    let flags = ["--store", &store.url, "--boundary", &receiving, "--boundary", &sending];
    let proxy = Proxy::start("adapter", service.address, &flags);
    let json = |trace: &str, qty: u32| {
        let body = format!("{{\"trace_id\": \"{trace}\", \"qty\": {qty}}}");
        Request::post("/orders")
            .key("k")
            .field("x-user-id", "alice")
            .field("content-type", "application/json")
            .body(body)
    };
    let first = send(proxy.address, &json("t1", 1)).await;
    assert_eq!((first.status(), first.one("idempotency-key")), (201, Some("k")));
    let replay = send(proxy.address, &json("t2", 1)).await;
    assert_eq!((replay.status(), replay.one("idempotency-replayed")), (201, Some("true")));
    assert_eq!(
        (replay.one("location"), replay.all("link")),
        (Some("/orders/1"), vec![]),
        "as the file lists"
    );
    assert_eq!(send(proxy.address, &json("t1", 2)).await.status(), 422, "the IETF's number");
    for _ in 0..2 {
        assert_eq!(send(proxy.address, &Request::post("/orders/search").body("{}")).await.status(), 201);
    }
    assert_eq!(service.seen().len(), 3, "a read passes, without a key and every time");
    let record = Store::open(&store.url, 2).await.expect("the store");
    let key = IdempotencyKey::parse("k").expect("a key");
    let name = RecordName { operation: "orders.create".to_owned(), identity: "alice".to_owned(), key };
    assert!(record.keys().get(&name).await.expect("readable").is_some(), "under the file's name");
}

#[tokio::test]
async fn a_body_over_the_bound_is_refused_and_claims_nothing() {
    let file = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &file.url, &[]);
    let large = Request::post("/orders").key("k").body("x".repeat(1024 * 1024 + 1));
    let refused = send(proxy.address, &large).await;
    assert_eq!((refused.status(), refused.code().as_str()), (413, "body_too_large"));
    let cut = "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n";
    let mut client = Client::connect(proxy.address).await;
    client.write(cut).await;
    assert_eq!(client.answer().await.code(), "body_incomplete");
    let store = Store::open(&file.url, 2).await.expect("the store");
    assert!(store.keys().get(&name("POST /orders", "k")).await.expect("readable").is_none());
    assert_eq!(service.seen().len(), 0);
}

/// Sends a head that says that 1 MiB follows, and waits until the proxy begins to read it, or says why not.
async fn hold(proxy: &Proxy, key: &str) -> (Client, u16) {
    let mut client = Client::connect(proxy.address).await;
    let head = format!(
        "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: {key}\r\nContent-Length: {MEBIBYTE}\r\nExpect: 100-continue\r\n\r\n"
    );
    client.write(head).await;
    let head = client.reader.head().await.expect("an answer").expect("an answer");
    (client, head.status())
}

const MEBIBYTE: usize = 1 << 20;

/// What an adapter has in memory, 64 MiB of one address, is bounded by its bytes, for as long as it has it.
#[tokio::test]
async fn bodies_are_bounded_in_bytes_until_the_service_has_answered() {
    let file = fresh_file();
    let gate = Gate::default();
    let opened = gate.clone();
    let service =
        Service::start(move |_, _| Act::AnswerWhen(opened.clone(), answer("201 Created", &[], "done"))).await;
    let proxy = adapter(&service, &file.url, &[]);
    let mut held = Vec::new();
    for index in 0..64 {
        let (client, status) = hold(&proxy, &format!("k{index}")).await;
        assert_eq!(status, 100, "{index}");
        held.push(client);
    }
    let refused = send(proxy.address, &order("other")).await;
    assert_eq!((refused.status(), refused.code().as_str()), (429, "bodies_full"));
    assert_eq!((refused.one("retry-after"), &refused.json()["effect"]), (Some("1"), &json!("not_done")));
    // One that is with the service is still in memory, though its client has gone.
    let mut first = held.remove(0);
    first.write(vec![b'x'; MEBIBYTE]).await;
    service.until_seen(1).await;
    drop(first);
    assert_eq!(send(proxy.address, &order("other")).await.code(), "bodies_full");
    gate.open();
    let mut answered = send(proxy.address, &order("other")).await;
    while answered.status() == 429 {
        answered = send(proxy.address, &order("other")).await;
    }
    assert_eq!(answered.status(), 201);
}

#[tokio::test]
async fn a_body_that_stops_is_answered_408_and_claims_nothing() {
    let file = fresh_file();
    let service = numbering().await;
    for flags in [["--body-idle-timeout", "50ms"], ["--body-timeout", "50ms"]] {
        let proxy = adapter(&service, &file.url, &flags);
        let mut client = Client::connect(proxy.address).await;
        client
            .write("POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 9\r\n\r\nabc")
            .await;
        let answer = client.answer().await;
        assert_eq!((answer.status(), answer.code().as_str()), (408, "body_timeout"), "{flags:?}");
        assert_eq!(answer.json()["effect"], "not_done");
    }
    let store = Store::open(&file.url, 2).await.expect("the store");
    assert!(store.keys().get(&name("POST /orders", "k")).await.expect("readable").is_none());
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn work_that_nobody_waits_for_is_bounded_too() {
    let file = fresh_file();
    let gate = Gate::default();
    let opened = gate.clone();
    let service =
        Service::start(move |_, _| Act::AnswerWhen(opened.clone(), answer("201 Created", &[], "done"))).await;
    let proxy = adapter(&service, &file.url, &["--connections-max", "2"]);
    for index in 0..2 {
        let mut impatient = Client::connect(proxy.address).await;
        impatient.write(order(&format!("k{index}")).bytes()).await;
        service.until_seen(index + 1).await;
    }
    let busy = send(proxy.address, &order("k2")).await;
    assert_eq!(
        (busy.status(), busy.code().as_str(), busy.one("retry-after")),
        (503, "adapter_busy", Some("1"))
    );
    gate.open();
    // The keys of the two are settled by and by, and then there is room.
    let mut answered = send(proxy.address, &order("k2")).await;
    while answered.status() == 503 {
        answered = send(proxy.address, &order("k2")).await;
    }
    assert_eq!(answered.status(), 201);
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_is_a_failure_that_tells_no_password() {
    let service = numbering().await;
    let url = "postgres://user:hunter2@127.0.0.1:1/none";
    let upstream = format!("http://{}", service.address);
    let flags =
        ["proxy", "--role", "adapter", "--upstream", &upstream, "--listen", "127.0.0.1:0", "--store", url];
    let flags = [&flags[..], &["--identity", "single:shop", "--operation", "POST /orders"]].concat();
    let (code, _, err) = run(&flags);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("the store cannot be opened") && !err.contains("hunter2"), "{err}");
}

#[tokio::test]
async fn what_tells_who_asks_need_not_reach_the_service() {
    let store = fresh_file();
    let folder = folder::fresh();
    let sending = folder.boundary(
        "adapter.json",
        &json!({
            "identity": {"source": "header", "name": "x-user-id"},
            "headers": {"adapter_outbound": {"drop": ["x-user-id"]}},
            "operations": {"orders.create": {"path": "/orders"}, "profiles.update": null},
        }),
    );
    let passing = ["accept", "authorization", "content-type", "ichido-hops", "idempotency-key", "x-user-id"];
    let inbound = json!({ "allow": passing });
    let headers = json!({"adapter_inbound": inbound, "gateway_outbound": inbound});
    let receiving = folder.boundary("gateway_to_adapter.json", &json!({"headers": headers}));
    let service = numbering().await;
    let flags = ["--store", &store.url, "--boundary", &sending, "--boundary", &receiving];
    let flags = [&flags[..], &["--drop-headers", "authorization"]].concat();
    let proxy = Proxy::start("adapter", service.address, &flags);
    let request =
        order("k").field("x-user-id", "alice").field("authorization", "Bearer secret").field("accept", "*/*");
    assert_eq!(send(proxy.address, &request).await.status(), 201);
    let seen = service.only();
    assert_eq!(
        (seen.one("x-user-id"), seen.one("authorization"), seen.one("accept")),
        (None, None, Some("*/*"))
    );
}
