//! Limits of bodies, and bodies that do not arrive.

use ichido_store::Store;
use ichido_store::testing::sqlite::fresh_file;
use serde_json::json;

use super::{adapter, name, numbering, order};
use crate::proxy::client::{ProxyClient, ProxyRequest, send};
use crate::proxy::program::ProxyProcess;
use crate::proxy::service::{FakeService, ReleaseGate, ServiceAction, answer};

#[tokio::test]
async fn oversized_body_claims_no_key() {
    let file = fresh_file();
    let service = numbering().await;
    let proxy = adapter(&service, &file.url, &[]);
    let large = ProxyRequest::post("/orders").key("k").body("x".repeat(1024 * 1024 + 1));
    let refused = send(proxy.address, &large).await;
    assert_eq!((refused.status(), refused.code().as_str()), (413, "body_too_large"));
    let cut = "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n";
    let mut client = ProxyClient::connect(proxy.address).await;
    client.write(cut).await;
    assert_eq!(client.answer().await.code(), "body_incomplete");
    let store = Store::open(&file.url, 2).await.expect("the store");
    assert!(store.keys().get(&name("POST /orders", "k")).await.expect("readable").is_none());
    assert_eq!(service.seen().len(), 0);
}

const MEBIBYTE: usize = 1 << 20;

/// Sends a head that announces 1 MiB, and waits until the proxy starts reading, or refuses.
async fn hold(proxy: &ProxyProcess, key: &str) -> (ProxyClient, u16) {
    let mut client = ProxyClient::connect(proxy.address).await;
    let head = format!(
        "POST /orders HTTP/1.1\r\nHost: a\r\nIdempotency-Key: {key}\r\nContent-Length: {MEBIBYTE}\r\nExpect: 100-continue\r\n\r\n"
    );
    client.write(head).await;
    let head = client.reader.head().await.expect("an answer").expect("an answer");
    (client, head.status())
}

/// The bodies in an adapter's memory, 64 MiB per address, are bounded in bytes while it holds them.
#[tokio::test]
async fn body_bytes_are_limited_until_the_service_responds() {
    let file = fresh_file();
    let gate = ReleaseGate::default();
    let opened = gate.clone();
    let service = FakeService::start(move |_, _| {
        ServiceAction::AnswerWhen(opened.clone(), answer("201 Created", &[], "done"))
    })
    .await;
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
    // A body at the service is still in memory, though its client has gone.
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
async fn stalled_body_returns_408_and_claims_no_key() {
    let file = fresh_file();
    let service = numbering().await;
    for flags in [["--body-idle-timeout", "50ms"], ["--body-timeout", "50ms"]] {
        let proxy = adapter(&service, &file.url, &flags);
        let mut client = ProxyClient::connect(proxy.address).await;
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
