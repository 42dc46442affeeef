//! Connections: malformed requests, limits, and timeouts.

use super::client::{ProxyClient, ProxyRequest, send, send_bytes};
use super::program::ProxyProcess;
use super::service::{FakeService, ReleaseGate, ServiceAction, answer};

/// Sends the bytes to a proxy; checks that the proxy refuses them and nothing reaches the service.
async fn is_refused(bytes: &str) -> u16 {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    let mut client = ProxyClient::connect(proxy.address).await;
    client.write(bytes).await;
    let answer = client.answer().await;
    assert!(client.reader.is_at_end().await, "the connection is closed: {bytes:?}");
    assert_eq!(service.seen().len(), 0, "{bytes:?}");
    assert_eq!(answer.code(), "request_malformed", "{bytes:?}");
    answer.status()
}

/// The rest of a request, which is read as another one if the first is cut elsewhere.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn content_length_beside_transfer_encoding_is_refused() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n";
    let both = format!("{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}");
    assert_eq!(is_refused(&both).await, 400);
    let turned = format!("{head}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{SMUGGLED}");
    assert_eq!(is_refused(&turned).await, 400);
}

#[tokio::test]
async fn content_lengths_that_differ_are_refused() {
    let request =
        format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 38\r\n\r\n{SMUGGLED}");
    assert_eq!(is_refused(&request).await, 400);
    assert_eq!(is_refused("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc").await, 400);
    assert_eq!(is_refused("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc").await, 400);
}

#[tokio::test]
async fn transfer_encodings_other_than_chunked_are_refused() {
    for encoding in ["gzip, chunked", "identity", "chunked, identity", "xchunked", "chunked;q=1"] {
        let request =
            format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {encoding}\r\n\r\n0\r\n\r\n{SMUGGLED}");
        assert_eq!(is_refused(&request).await, 400, "{encoding}");
    }
    let old = "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(is_refused(old).await, 400, "HTTP/1.0 has no such thing");
}

#[tokio::test]
async fn folded_lines_and_space_before_a_colon_are_refused() {
    assert_eq!(is_refused("POST / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c\r\n\r\n").await, 400);
    assert_eq!(
        is_refused("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n").await,
        400
    );
    assert_eq!(is_refused("POST / HTTP/1.1\r\nHost: a\r\nX-A: b\nContent-Length: 3\r\n\r\nabc").await, 400);
}

#[tokio::test]
async fn malformed_chunks_are_refused() {
    for chunks in [
        "zz\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "-1\r\n\r\n",
        "0x3\r\nabc\r\n",
    ] {
        let service = FakeService::plain().await;
        let proxy = ProxyProcess::start("gateway", service.address, &["--attempts", "2"]);
        let head = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n";
        let answer = send_bytes(proxy.address, format!("{head}{chunks}")).await.expect("an answer");
        assert_eq!((answer.status(), answer.code().as_str()), (400, "body_incomplete"), "{chunks:?}");
        assert_eq!(answer.json()["effect"], "not_done");
        assert_eq!(service.seen().len(), 0);
    }
}

#[tokio::test]
async fn malformed_chunk_never_completes_a_request() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = send_bytes(proxy.address, format!("{head}3\r\nabc\r\nzz\r\n\r\n")).await.expect("an answer");
    assert_eq!((answer.status(), answer.code().as_str()), (400, "body_incomplete"));
    assert_eq!(service.seen().len(), 0, "the service got no end of it");
}

#[tokio::test]
async fn missing_or_duplicate_host_is_refused() {
    for request in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let service = FakeService::plain().await;
        let proxy = ProxyProcess::start("gateway", service.address, &[]);
        let answer = send_bytes(proxy.address, request).await.expect("an answer");
        assert_eq!((answer.status(), answer.code().as_str()), (400, "request_malformed"), "{request:?}");
        assert_eq!(service.seen().len(), 0);
    }
}

/// Many services read `post` as POST: it would bypass the key and the ledger.
#[tokio::test]
async fn lower_case_methods_are_refused() {
    let service = FakeService::plain().await;
    let store = ichido_store::testing::sqlite::fresh_file();
    let adapter = ["--store", &store.url, "--operation", "POST /orders", "--identity", "single:me"];
    for (role, flags) in [("bff", &[][..]), ("gateway", &[]), ("adapter", &adapter)] {
        let proxy = ProxyProcess::start(role, service.address, flags);
        for method in ["post", "Post", "pATCH"] {
            let answer = send(proxy.address, &ProxyRequest::new(method, "/orders").body("{}")).await;
            assert_eq!(
                (answer.status(), answer.code().as_str()),
                (400, "request_malformed"),
                "{role} {method}"
            );
        }
    }
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn websockets_and_tunnels_are_refused_with_reason() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    let upgrade = ProxyRequest::get("/ws").field("Connection", "Upgrade").field("Upgrade", "websocket");
    let answer = send(proxy.address, &upgrade).await;
    assert_eq!((answer.status(), answer.code().as_str()), (501, "upgrade_unsupported"));
    assert!(answer.text().contains("WebSocket"), "{}", answer.text());
    let tunnel = send_bytes(proxy.address, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n").await;
    assert_eq!(tunnel.expect("an answer").status(), 501);
    assert_eq!(service.seen().len(), 0);
}

/// Java's client and `curl --http2` send this with the first request to a host.
#[tokio::test]
async fn http2_upgrade_offer_is_ignored() {
    let service = FakeService::plain().await;
    let store = ichido_store::testing::sqlite::fresh_file();
    let adapter = ["--store", &store.url, "--operation", "POST /orders", "--identity", "single:me"];
    for (role, flags) in [("bff", &[][..]), ("gateway", &[]), ("adapter", &adapter)] {
        let proxy = ProxyProcess::start(role, service.address, flags);
        let mut client = ProxyClient::connect(proxy.address).await;
        // Twice on one connection, which an ignored offer does not change.
        for key in ["k1", "k2"] {
            let order = ProxyRequest::post("/orders").key(&format!("{role}-{key}")).body("{}");
            let order = order
                .field("Connection", "Upgrade, HTTP2-Settings")
                .field("Upgrade", "h2c")
                .field("HTTP2-Settings", "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA");
            let answer = client.send(&order).await;
            assert_eq!((answer.status(), answer.text()), (200, "ok"), "{role}");
        }
    }
    for seen in service.seen() {
        for name in ["upgrade", "http2-settings"] {
            assert_eq!(seen.one(name), None, "{seen:?}");
        }
    }
    assert_eq!(service.seen().len(), 6);
}

#[tokio::test]
async fn curl_with_http2_gets_a_response() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    let url = format!("http://{}/orders", proxy.address);
    for protocol in ["--http2", "--http2-prior-knowledge", "--http1.1"] {
        let curl = tokio::process::Command::new("curl")
            .args(["-fsS", "--noproxy", "*", protocol, &url, "-H", "Idempotency-Key: k", "--data", "{}"])
            .output()
            .await
            .expect("curl is there");
        let (out, err) = (String::from_utf8_lossy(&curl.stdout), String::from_utf8_lossy(&curl.stderr));
        assert!(curl.status.success() && out == "ok", "{protocol}: {out} {err}");
    }
    assert_eq!(service.seen().len(), 3);
}

/// A service that reads headers like CGI takes `X_User_Id` for `X-User-Id`.
#[tokio::test]
async fn a_dropped_header_does_not_come_back_under_another_name() {
    let service = FakeService::plain().await;
    let store = ichido_store::testing::sqlite::fresh_file();
    let adapter = ["--store", &store.url, "--operation", "POST /orders", "--identity", "single:me"];
    for (role, flags) in [("bff", &[][..]), ("gateway", &[]), ("adapter", &adapter)] {
        let flags = [flags, &["--drop-headers", "x-user-id"]].concat();
        let proxy = ProxyProcess::start(role, service.address, &flags);
        for request in [ProxyRequest::post("/orders").key(role).body("{}"), ProxyRequest::get("/orders")] {
            let names = [
                "X-User-Id",
                "X_User_Id",
                "X-User_Id",
                "x.user.id",
                "X~User~Id",
                "Idempotency_Key",
                "Ichido_Hops",
            ];
            let request = names.iter().fold(request, |request, name| request.field(name, "admin"));
            let request = request.field("X-User-Name", "ann");
            assert_eq!(send(proxy.address, &request).await.status(), 200, "{role}");
        }
    }
    assert_eq!(service.seen().len(), 6);
    for seen in service.seen() {
        assert_eq!(seen.one("x-user-name"), Some("ann"));
        assert!(!seen.fields.iter().any(|(_, value)| value == "admin"), "{seen:?}");
    }
    // A key under such a name is not a key.
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    let bare = ProxyRequest::post("/orders").field("Idempotency_Key", "k").body("{}");
    assert_eq!(send(proxy.address, &bare).await.code(), "key_missing");
}

#[tokio::test]
async fn duplicate_authorization_is_refused() {
    let service = FakeService::plain().await;
    let store = ichido_store::testing::sqlite::fresh_file();
    let adapter = ["--store", &store.url, "--operation", "POST /orders", "--identity", "single:me"];
    for (role, flags) in [("bff", &[][..]), ("gateway", &[]), ("adapter", &adapter)] {
        let proxy = ProxyProcess::start(role, service.address, flags);
        let two = ProxyRequest::post("/orders")
            .key("k")
            .field("Authorization", "Bearer a")
            .field("authorization", "Bearer b");
        let answer = send(proxy.address, &two.body("{}")).await;
        assert_eq!((answer.status(), answer.code().as_str()), (400, "request_malformed"), "{role}");
    }
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn the_connection_header_cannot_strip_the_key() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    let request = ProxyRequest::post("/").key("k").field("Connection", "close, Idempotency-Key");
    let answer = send(proxy.address, &request).await;
    assert_eq!((answer.status(), answer.code().as_str()), (400, "request_malformed"));
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn too_many_or_large_headers_return_431() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    let many =
        (0..150).fold(ProxyRequest::get("/"), |request, index| request.field(&format!("x-{index}"), "1"));
    let answer = send(proxy.address, &many).await;
    assert_eq!((answer.status(), answer.code().as_str()), (431, "head_too_large"));
    let large = ProxyRequest::get("/").field("x-large", &"a".repeat(64 * 1024));
    let answer = send(proxy.address, &large).await;
    assert_eq!((answer.status(), answer.code().as_str()), (431, "head_too_large"));
    assert!(answer.one("x-request-id").is_some(), "{answer:?}");
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn unfinished_request_head_closes_the_connection() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &["--head-timeout", "50ms"]);
    // Nothing, the start of the HTTP/2 preface, and half a head: each has its own timeout.
    for bytes in ["", "PRI * HT", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        let mut client = ProxyClient::connect(proxy.address).await;
        client.write(bytes).await;
        assert!(client.try_answer().await.is_none_or(|answer| answer.status() == 408), "{bytes:?}");
        assert!(client.reader.is_at_end().await, "{bytes:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let service = FakeService::plain().await;
    // We have as long to send the first request, on a slow machine too.
    let proxy = ProxyProcess::start("bff", service.address, &["--head-timeout", "1s"]);
    let mut client = ProxyClient::connect(proxy.address).await;
    assert_eq!(client.send(&ProxyRequest::get("/")).await.status(), 200);
    assert!(client.try_answer().await.is_none_or(|answer| answer.status() == 408));
    assert!(client.reader.is_at_end().await);
}

#[tokio::test]
async fn stalled_body_returns_408() {
    let service = FakeService::plain().await;
    for flags in [["--body-idle-timeout", "50ms"], ["--body-timeout", "50ms"]] {
        let proxy = ProxyProcess::start("bff", service.address, &flags);
        let head = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 10\r\n\r\nabc";
        let answer = send_bytes(proxy.address, head).await.expect("an answer");
        assert_eq!((answer.status(), answer.code().as_str()), (408, "body_timeout"), "{flags:?}");
        assert_eq!(service.seen().len(), 0, "the service never got the whole of it");
    }
}

#[tokio::test]
async fn full_server_closes_idle_connections_first() {
    let gate = ReleaseGate::default();
    let opened = gate.clone();
    let service = FakeService::start(move |_, before| match before {
        1 => ServiceAction::AnswerWhen(opened.clone(), answer("200 OK", &[], "second")),
        _ => ServiceAction::ok("another"),
    })
    .await;
    let proxy = ProxyProcess::start("bff", service.address, &["--max-connections", "1"]);
    let mut first = ProxyClient::connect(proxy.address).await;
    assert_eq!(first.send(&ProxyRequest::get("/first")).await.status(), 200);
    let mut second = ProxyClient::connect(proxy.address).await;
    second.write(ProxyRequest::get("/second").bytes()).await;
    service.until_seen(2).await;
    assert!(first.reader.is_at_end().await, "it was idle");
    let refused = send(proxy.address, &ProxyRequest::get("/third")).await;
    assert_eq!((refused.status(), refused.code().as_str()), (503, "proxy_busy"));
    assert_eq!(refused.one("retry-after"), Some("1"));
    assert!(refused.one("x-request-id").is_some());
    assert_eq!(service.seen().len(), 2, "what is refused does not reach the service");
    gate.open();
    assert_eq!(second.answer().await.text(), "second");
    assert_eq!(send(proxy.address, &ProxyRequest::get("/fourth")).await.status(), 200);
}

#[tokio::test]
async fn an_idle_http2_connection_is_closed() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &["--head-timeout", "50ms"]);
    let mut client = ProxyClient::connect(proxy.address).await;
    // The preface, empty settings, and the acknowledgement of the server's; then the start of a head that never ends.
    client.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    client.write([0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0]).await;
    client.write([0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82]).await;
    client.until_end().await;
    assert_eq!(service.seen().len(), 0);
}

#[tokio::test]
async fn unread_response_closes_the_connection() {
    let body = "x".repeat(64 * 1024 * 1024);
    let service = FakeService::start(move |_, _| ServiceAction::ok(&body)).await;
    let flags = ["--max-connections", "1", "--body-idle-timeout", "100ms"];
    let proxy = ProxyProcess::start("bff", service.address, &flags);
    let mut deaf = ProxyClient::connect(proxy.address).await;
    deaf.write(ProxyRequest::get("/").bytes()).await;
    service.until_seen(1).await;
    // There is one permit, and the deaf client has it until it is cut off.
    let mut next = ProxyClient::connect(proxy.address).await;
    next.write(ProxyRequest::get("/").bytes()).await;
    service.until_seen(2).await;
}

/// The client gives its streams no window, and is otherwise alive: no write ever stalls.
#[tokio::test]
async fn unread_http2_response_releases_its_permit() {
    let service = FakeService::plain().await;
    // Only the timeout for responses is short.
    let flags = ["--max-connections", "2", "--body-idle-timeout", "100ms", "--head-timeout", "1h"];
    let proxy = ProxyProcess::start("bff", service.address, &flags);
    let mut deaf = ProxyClient::connect(proxy.address).await;
    // The preface, settings with an initial window of zero, and the acknowledgement of the server's.
    deaf.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    deaf.write([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0]).await;
    for stream in [1, 3] {
        // A complete GET / for the authority "a": both request permits are taken.
        deaf.write([0, 0, 6, 1, 5, 0, 0, 0, stream, 0x82, 0x86, 0x84, 0x41, 1, b'a']).await;
    }
    service.until_seen(2).await;
    let answer = send(proxy.address, &ProxyRequest::get("/")).await;
    assert_eq!((answer.status(), service.seen().len()), (200, 3));
}
