//! The limits in force: heads, bodies, connections and their timeouts.

use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::client::{RawClient, RawRequest, problem};
use super::program::{DatabaseKind, POLL_EVERY, ServeProcess, ServerFixture};
use crate::http_message::{HttpMessage, MessageKind};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_request_head_is_cut_off() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&["--head-timeout", "50ms"]);
    for bytes in ["", "PRI * HT", "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\n"] {
        let mut client = RawClient::connect(server.address).await;
        client.write(bytes).await;
        assert!(client.try_answer().await.is_none_or(|answer| answer.status() == 408), "{bytes:?}");
        assert!(client.reader.is_at_end().await, "{bytes:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_body_returns_408() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    for flags in [["--body-idle-timeout", "50ms"], ["--body-timeout", "50ms"]] {
        let server = fixture.serve(&flags);
        let mut client = RawClient::connect(server.address).await;
        let head = "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Length: 10\r\n\r\nabc";
        client.write(head).await;
        assert_eq!(problem(&client.answer().await), (408, "body_timeout".to_owned()), "{flags:?}");
        assert_eq!(server.queue("demo").await["counts"]["queued"], 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_body_enqueues_nothing() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let mut client = RawClient::connect(server.address).await;
    let head = "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write(format!("{head}3\r\nabc\r\nzz\r\n")).await;
    assert_eq!(problem(&client.answer().await), (400, "body_incomplete".to_owned()));
    assert_eq!(server.queue("demo").await["counts"]["queued"], 0);
}

/// A body with a declared length is refused at once; one without is read up to the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_large_body_returns_413() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let head = "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\n";
    let mut client = RawClient::connect(server.address).await;
    client.write(format!("{head}Content-Length: 4194305\r\n\r\n")).await;
    assert_eq!(problem(&client.answer().await), (413, "body_too_large".to_owned()));
    let mut client = RawClient::connect(server.address).await;
    client.write(format!("{head}Transfer-Encoding: chunked\r\n\r\n")).await;
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(0x10_0000));
    for _ in 0..5 {
        client.write(&chunk).await;
    }
    assert_eq!(problem(&client.answer().await), (413, "body_too_large".to_owned()));
    // A body of the maximum size is accepted.
    let most = RawRequest::post("/v1/queues/demo/messages").key("k").body("x".repeat(4 << 20));
    assert_eq!(server.send(&most).await.status(), 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_or_large_header_fields_return_431() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let many =
        (0..65).fold(RawRequest::get("/livez"), |request, index| request.field(&format!("x-{index}"), "1"));
    assert_eq!(problem(&server.send(&many).await), (431, "head_too_large".to_owned()));
    let large = RawRequest::get("/livez").field("x-large", &"a".repeat(17 * 1024));
    assert_eq!(problem(&server.send(&large).await), (431, "head_too_large".to_owned()));
    // Beyond the parser's limits too, on a new connection and on one that was used.
    let more =
        (0..150).fold(RawRequest::get("/livez"), |request, index| request.field(&format!("x-{index}"), "1"));
    assert_eq!(problem(&server.send(&more).await), (431, "head_too_large".to_owned()));
    let mut client = RawClient::connect(server.address).await;
    assert_eq!(client.send(&RawRequest::get("/livez")).await.status(), 200);
    assert_eq!(problem(&client.send(&more).await), (431, "head_too_large".to_owned()));
    let larger = RawRequest::get("/livez").field("x-large", &"a".repeat(64 * 1024));
    assert_eq!(problem(&server.send(&larger).await), (431, "head_too_large".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_not_http_gets_a_problem() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    for head in ["GET /livez\r\n\r\n", "G\u{7}T / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHo st: a\r\n\r\n"] {
        let mut client = RawClient::connect(server.address).await;
        client.write(head).await;
        let answer = client.answer().await;
        assert_eq!(problem(&answer), (400, "framing_invalid".to_owned()), "{head:?}");
        assert!(answer.one("x-request-id").is_some(), "{answer:?}");
    }
}

/// Sends a head that announces this many bytes, and waits until the server starts to read and asks for them.
async fn hold(server: &ServeProcess, request: &str, bytes: usize) -> Result<RawClient, HttpMessage> {
    let mut client = RawClient::connect(server.address).await;
    let head = format!("{request}Content-Length: {bytes}\r\nExpect: 100-continue\r\n\r\n");
    client.write(head).await;
    let head = client.reader.head().await.expect("an answer").expect("an answer");
    if head.status() == 100 {
        return Ok(client);
    }
    let body = client.reader.body(&head, MessageKind::Answer).await.expect("a whole answer");
    Err(HttpMessage { body, ..head })
}

/// Returns a message with a token, or without one.
fn held_put(key: &str, token: Option<&str>) -> String {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    format!("POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: {key}\r\n{token}")
}

/// One caller may hold 64 MiB of bodies, and all together 256 MiB; released bytes are free again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_in_flight_are_limited_per_token_and_in_total() {
    const LARGEST: usize = 4 << 20;
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let tokens: Vec<String> = (0..5)
        .map(|number| {
            let name = format!("till {number}");
            let identity = format!("shop-{number}");
            fixture.token(&[&name, "--role", "producer", "--identity", &identity, "--queue", "demo"])
        })
        .collect();
    let server = fixture.serve(&[]);
    let put = |number: usize| held_put(&format!("k-{number}"), Some(&tokens[number / 16]));
    let before = server.send(&RawRequest::put("before", "{}").token(&tokens[0])).await;
    let message =
        RawRequest::get(&format!("{}/request", before.one("location").expect("a message"))).token(&tokens[0]);
    assert_eq!(server.send(&message).await.text(), "{}");
    let mut held = Vec::new();
    for number in 0..16 {
        held.push(hold(&server, &put(number), LARGEST).await.expect("within its own limit"));
    }
    assert_eq!(problem(&server.send(&message).await), (429, "token_busy".to_owned()), "on its way out, too");
    let one_more = hold(&server, &put(15), LARGEST).await.err().expect("over its own limit");
    assert_eq!(problem(&one_more), (429, "token_busy".to_owned()));
    assert_eq!(one_more.one("retry-after"), Some("1"));
    let small = RawRequest::put("small", "{}").token(&tokens[0]);
    assert_eq!(problem(&server.send(&small).await), (429, "token_busy".to_owned()));
    for number in 16..64 {
        held.push(hold(&server, &put(number), LARGEST).await.expect("each has its own limit"));
    }
    let one_more = hold(&server, &put(64), LARGEST).await.err().expect("over the limit of all");
    assert_eq!(problem(&one_more), (503, "bodies_full".to_owned()));
    assert_eq!(one_more.one("retry-after"), Some("1"));
    assert_eq!(server.get("/livez").await.status(), 200);
    // A complete body is no longer in flight.
    held[0].write(vec![b'x'; LARGEST]).await;
    assert_eq!(held[0].answer().await.status(), 201);
    held[1].write(vec![b'x'; LARGEST]).await;
    assert_eq!(held[1].answer().await.status(), 201);
    held.push(hold(&server, &put(64), LARGEST).await.expect("what was given back"));
    assert_eq!(server.send(&small).await.status(), 201, "and its own, too");
    // Neither is one whose client has gone.
    held.clear();
    while hold(&server, &put(65), LARGEST).await.is_err() {
        tokio::time::sleep(POLL_EVERY).await;
    }
}

/// Without tokens everybody is one caller, which has the whole limit; a body without a length is counted as it
/// arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn body_without_length_is_counted_as_it_arrives() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let mut holding = Vec::new();
    for number in 0..64 {
        let put = held_put(&format!("k-{number}"), None);
        // All but 1 KiB of the limit.
        let bytes = if number == 0 { (4 << 20) - 1024 } else { 4 << 20 };
        holding.push(hold(&server, &put, bytes).await.expect("within the limit"));
    }
    let chunked = async |key: &str, bytes: usize| {
        let mut client = RawClient::connect(server.address).await;
        let head = format!("{}Transfer-Encoding: chunked\r\n\r\n", held_put(key, None));
        client.write(format!("{head}{bytes:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(bytes))).await;
        client.answer().await
    };
    assert_eq!(problem(&chunked("large", 2048).await), (503, "bodies_full".to_owned()));
    assert_eq!(chunked("small", 1024).await.status(), 201);
}

/// An idle connection gives up its permit; one with a request in flight keeps it, and the next waits or is told why
/// not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_server_closes_idle_connections_first() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&["--max-connections", "1"]);
    let mut first = RawClient::connect(server.address).await;
    assert_eq!(first.send(&RawRequest::get("/v1/queues")).await.status(), 200);
    let mut second = hold(&server, &held_put("k", None), 3).await.expect("the place of the idle one");
    assert!(first.reader.is_at_end().await, "it was idle");
    for target in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(server.get(target).await.status(), 200, "{target} needs no place");
    }
    let mut third = RawClient::connect(server.address).await;
    third.write(RawRequest::get("/v1/queues").bytes()).await;
    second.write("abc").await;
    assert_eq!(second.answer().await.status(), 201);
    assert_eq!(third.answer().await.status(), 200, "it was waiting");
    let _busy = hold(&server, &held_put("k-2", None), 3).await.expect("the place of an idle one");
    let refused = server.get("/v1/queues").await;
    assert_eq!(problem(&refused), (503, "server_busy".to_owned()));
    assert_eq!(refused.one("retry-after"), Some("1"));
}

/// This once filled the server without a token: silent connections, opened again all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_do_not_block_others() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&["--max-connections", "8"]);
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(RawClient::connect(server.address).await);
    }
    for target in ["/livez", "/readyz", "/metrics", "/v1/queues"] {
        assert_eq!(server.get(target).await.status(), 200, "{target}");
    }
}

/// One HTTP/2 connection carries as many requests as are allowed in total; none blocks the health check.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_http2_connection_does_not_block_health_checks() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&["--max-connections", "2"]);
    assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let ask = |target: &str| {
        let target = format!("http://localhost{target}");
        let mut request = http::Request::get(target).body(Empty::<Bytes>::new()).unwrap();
        *request.version_mut() = http::Version::HTTP_2;
        sender.clone().send_request(request)
    };
    // Feeds of events have no end.
    let mut feeds = Vec::new();
    for _ in 0..2 {
        feeds.push(ask("/v1/events").await.unwrap());
    }
    let waiting = tokio::spawn(ask("/v1/queues"));
    assert_eq!(ask("/livez").await.unwrap().status(), 200);
    assert_eq!(server.get("/livez").await.status(), 200);
    assert!(!waiting.is_finished(), "all requests are taken");
    feeds.clear();
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_content_length_is_refused_before_reading() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let mut client = RawClient::connect(server.address).await;
    let smuggled = "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    client.write(smuggled).await;
    let answer = client.answer().await;
    assert_eq!(problem(&answer), (400, "framing_invalid".to_owned()));
    assert!(answer.json()["detail"].as_str().unwrap().contains("both Content-Length and Transfer-Encoding"));
    assert!(answer.one("x-request-id").is_some() && answer.one("date").is_some(), "{answer:?}");
    assert!(client.reader.is_at_end().await);
    // An earlier request on the same connection is answered as usual.
    let mut client = RawClient::connect(server.address).await;
    client.write([RawRequest::get("/livez").bytes(), smuggled.into()].concat()).await;
    assert_eq!(client.answer().await.status(), 200);
    assert_eq!(problem(&client.answer().await), (400, "framing_invalid".to_owned()));
    for head in
        ["Content-Length: 1, 1", "Transfer-Encoding: gzip", "X-A : b", "X-A: b\r\n c", "X-A: b\nX-B: c"]
    {
        let mut client = RawClient::connect(server.address).await;
        client.write(format!("POST / HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n")).await;
        assert_eq!(problem(&client.answer().await), (400, "framing_invalid".to_owned()), "{head:?}");
    }
    assert_eq!(server.queue("demo").await["counts"]["queued"], 0);
}

/// The settings under `[serve]` are in force, and refusals name them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configured_limits_apply() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let chosen = "[serve]\nmax_headers = 8\nmax_head_bytes = \"2 KiB\"\nmax_body_bytes = \"1 KiB\"\nmax_batch_lines = 2\nmax_batch_bytes = \"8 KiB\"\nmax_waiters = 0\nmax_listeners = 1\n[destinations.p]\nkind = \"http\"\nurl = \"http://127.0.0.1:1/\"\nguarantee = \"none\"\n[queues.demo]\ndestination = \"p\"\n";
    std::fs::write(fixture.folder.path().join("ichido.toml"), chosen).unwrap();
    let server = fixture.serve(&[]);
    let many =
        (0..8).fold(RawRequest::get("/livez"), |request, index| request.field(&format!("x-{index}"), "1"));
    assert_eq!(problem(&server.send(&many).await), (431, "head_too_large".to_owned()));
    let large = RawRequest::get("/livez").field("x-large", &"a".repeat(2 << 10));
    assert_eq!(problem(&server.send(&large).await), (431, "head_too_large".to_owned()));
    let put = |key: &str, bytes: usize| {
        RawRequest::post("/v1/queues/demo/messages?wait=30s").key(key).body("x".repeat(bytes))
    };
    let refused = server.send(&put("a", 1025)).await;
    assert_eq!(problem(&refused), (413, "body_too_large".to_owned()));
    assert!(refused.json()["detail"].as_str().unwrap().contains("more than 1 KiB"), "{}", refused.json());
    // There is no permit for waiting, so the response says at once that it has not ended.
    assert_eq!(server.send(&put("a", 1024)).await.status(), 202);

    let batch = |lines: &[String]| {
        let batch = RawRequest::post("/v1/queues/demo/messages:batch");
        batch.field("Content-Type", "application/x-ndjson").body(lines.join("\n"))
    };
    let line = |key: &str, bytes: usize| format!("{{\"key\":\"{key}\",\"body\":\"{}\"}}", "x".repeat(bytes));
    let statuses = |text: &str| -> Vec<(u64, String)> {
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        lines
            .map(|line| {
                (line["status"].as_u64().unwrap(), line["code"].as_str().unwrap_or_default().to_owned())
            })
            .collect()
    };
    let answer = server.send(&batch(&[line("b", 9), line("c", 1023), line("d", 9)])).await;
    assert_eq!(
        statuses(answer.text()),
        [(201, String::new()), (413, "body_too_large".to_owned()), (413, "batch_too_large".to_owned())]
    );
    let answer = server.send(&batch(&[line("e", 9), line("f", 9 << 10)])).await;
    assert!(answer.text().contains("the batch is larger than 8 KiB"), "{}", answer.text());

    let mut first = RawClient::connect(server.address).await;
    first.write(RawRequest::get("/v1/events").bytes()).await;
    assert_eq!(first.reader.head().await.expect("an answer").expect("an answer").status(), 200);
    assert_eq!(problem(&server.send(&RawRequest::get("/v1/events")).await), (503, "feed_full".to_owned()));
}
