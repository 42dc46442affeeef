//! What the service's response, or none, means for the key.

use ichido_store::testing::sqlite::fresh_file;
use tokio::net::TcpListener;

use super::{adapter, order};
use crate::http_message::{HttpReader, MessageKind};
use crate::proxy::client::{ProxyClient, ProxyRequest, send};
use crate::proxy::program::ProxyProcess;
use crate::proxy::service::{FakeService, ServiceAction, answer};

#[tokio::test]
async fn failed_connection_releases_the_key() {
    let file = fresh_file();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let flags = ["--store", &file.url, "--identity", "single:shop", "--operation", "POST /orders"];
    let proxy = ProxyProcess::start("adapter", address, &flags);
    let failed = send(proxy.address, &order("k")).await;
    assert_eq!((failed.status(), failed.code().as_str()), (502, "upstream_unreachable"));
    assert_eq!(failed.json()["effect"], "not_done");
    // The service starts, and the same key runs, even with another body: nothing is stored for it.
    let listener = TcpListener::bind(address).await.expect("the port is free");
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("the adapter");
        HttpReader::new(&mut stream).message(MessageKind::Request).await.expect("a request");
        tokio::io::AsyncWriteExt::write_all(&mut stream, &answer("201 Created", &[], "made"))
            .await
            .expect("written");
    });
    let made = send(proxy.address, &ProxyRequest::post("/orders").key("k").body("another")).await;
    assert_eq!((made.status(), made.text()), (201, "made"));
    serving.await.expect("it ends");
}

#[tokio::test]
async fn service_response_decides_the_stored_outcome() {
    let file = fresh_file();
    // 429 proves that nothing was done, 400 is final, 500 proves nothing.
    for (status, again, asked) in [
        ("429 Too Many Requests", 429, 2),
        ("400 Bad Request", 400, 1),
        ("500 Internal Server Error", 409, 1),
    ] {
        let service = FakeService::start(move |_, _| ServiceAction::status(status)).await;
        let proxy = adapter(&service, &file.url, &[]);
        let key = &status[..3];
        assert_eq!(send(proxy.address, &order(key)).await.status().to_string(), key);
        assert_eq!(send(proxy.address, &order(key)).await.status(), again, "{status}");
        assert_eq!(service.seen().len(), asked, "{status}");
    }
}

#[tokio::test]
async fn lost_response_is_retried_if_service_deduplicates() {
    let file = fresh_file();
    let service = FakeService::start(|_, before| {
        if before == 0 { ServiceAction::Cut(Vec::new()) } else { ServiceAction::ok("known") }
    })
    .await;
    let proxy = adapter(&service, &file.url, &["--guarantee", "keyed"]);
    let lost = send(proxy.address, &order("k")).await;
    assert_eq!((lost.status(), lost.code().as_str()), (502, "upstream_lost"));
    let other = ProxyRequest::post("/orders?lang=en").key("k").body("another");
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
async fn idempotent_operation_is_not_held_after_a_failure() {
    let file = fresh_file();
    let service = FakeService::start(|_, before| match before {
        0 => ServiceAction::Cut(Vec::new()),
        1 => ServiceAction::status("503 Service Unavailable"),
        _ => ServiceAction::ok("done"),
    })
    .await;
    let proxy = adapter(&service, &file.url, &["--guarantee", "idempotent"]);
    let lost = send(proxy.address, &order("k")).await;
    assert_eq!((lost.status(), lost.code().as_str()), (502, "upstream_lost"));
    let down = send(proxy.address, &order("k")).await;
    assert_eq!((down.status(), down.one("idempotency-status")), (503, None));
    assert_eq!(send(proxy.address, &order("k")).await.text(), "done");
    assert_eq!(send(proxy.address, &order("k")).await.one("idempotency-replayed"), Some("true"));
    assert_eq!(service.seen().len(), 3);
}

#[tokio::test]
async fn lost_response_says_what_a_retry_will_get() {
    let file = fresh_file();
    for (guarantee, advice, held) in [
        ("none", "gets 409 outcome_unknown", Some("unknown")),
        ("keyed", "send it again with the same key", None),
    ] {
        let service = FakeService::start(|_, _| ServiceAction::Cut(Vec::new())).await;
        let proxy = adapter(&service, &file.url, &["--guarantee", guarantee]);
        let lost = send(proxy.address, &order(guarantee)).await;
        assert_eq!((lost.status(), lost.code().as_str()), (502, "upstream_lost"));
        assert_eq!(lost.json()["effect"], "unknown");
        assert!(lost.json()["detail"].as_str().expect("a text").contains(advice), "{}", lost.text());
        assert_eq!(lost.one("idempotency-status"), held, "{guarantee}");
    }
}

#[tokio::test]
async fn lost_response_is_unknown_if_service_ignores_keys() {
    let file = fresh_file();
    for act in [
        ServiceAction::Cut(Vec::new()),
        ServiceAction::Cut(b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nhalf".to_vec()),
    ] {
        let service = FakeService::start(move |_, _| act.clone()).await;
        let proxy = adapter(&service, &file.url, &[]);
        let key = service.address.to_string();
        let mut client = ProxyClient::connect(proxy.address).await;
        client.write(order(&key).bytes()).await;
        // Cut before its start, the response becomes a problem; cut inside, it is cut here too, and never looks
        // complete.
        let first = client.try_answer().await;
        assert!(first.is_none_or(|first| first.code() == "upstream_lost"));
        let again = send(proxy.address, &order(&key)).await;
        assert_eq!((again.status(), again.code().as_str()), (409, "outcome_unknown"));
        assert_eq!(service.seen().len(), 1);
    }
}

/// A service may have an idempotency layer of its own, which knows nothing of the caller's key.
#[tokio::test]
async fn reports_of_the_service_about_its_own_keys_are_not_passed_on() {
    let file = fresh_file();
    let reports = [
        ("idempotency-replayed", "true"),
        ("idempotent-replayed", "true"),
        ("idempotency-status", "unknown"),
    ];
    let service =
        FakeService::start(move |_, _| ServiceAction::Answer(answer("201 Created", &reports, "made"))).await;
    let proxy = adapter(&service, &file.url, &["--guarantee", "keyed"]);
    let first = send(proxy.address, &order("k")).await;
    let read = send(proxy.address, &ProxyRequest::get("/orders/1")).await;
    for (name, _) in reports {
        assert_eq!((first.status(), first.one(name), read.one(name)), (201, None, None), "{name}");
    }
    let again = send(proxy.address, &order("k")).await;
    assert_eq!((again.one("idempotency-replayed"), again.one("idempotency-status")), (Some("true"), None));
    assert_eq!(again.text(), "made");
}

#[tokio::test]
async fn in_progress_response_is_not_an_outcome() {
    let file = fresh_file();
    let processing =
        answer("202 Accepted", &[("idempotency-status", "processing"), ("retry-after", "1")], "");
    let service = FakeService::start(move |_, before| {
        if before == 0 { ServiceAction::Answer(processing.clone()) } else { ServiceAction::ok("done") }
    })
    .await;
    let proxy = adapter(&service, &file.url, &["--guarantee", "keyed"]);
    let first = send(proxy.address, &order("k")).await;
    assert_eq!((first.status(), first.one("idempotency-status")), (202, Some("processing")));
    assert_eq!(send(proxy.address, &order("k")).await.text(), "done");
}

#[tokio::test]
async fn different_callers_get_different_outbound_keys() {
    let file = fresh_file();
    // It echoes the key it was given, as many services do.
    let service = FakeService::start(|request, _| {
        let key = request.one("idempotency-key").expect("a key");
        ServiceAction::Answer(answer("201 Created", &[("idempotency-key", key)], "made"))
    })
    .await;
    let flags = [
        "--store",
        &file.url,
        "--identity",
        "header:x-user-id",
        "--operation",
        "POST /orders",
        "--guarantee",
        "keyed",
    ];
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
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
    // With one caller, or a service that scopes keys itself, the client's own key is sent.
    let flags = [&flags[..], &["--service-key", "client"]].concat();
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
    let made = send(proxy.address, &order("\"k2\"").field("x-user-id", "alice")).await;
    assert_eq!((made.status(), made.one("idempotency-key")), (201, Some("k2")), "one spelling of the key");
    assert_eq!(service.seen()[2].one("idempotency-key"), Some("k2"));
}
