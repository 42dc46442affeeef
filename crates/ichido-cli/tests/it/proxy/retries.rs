//! When a hop retries, and its response if the outcome is unknown.
// Spec: C4.

use std::net::SocketAddr;

use serde_json::json;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::client::{ProxyClient, ProxyRequest, send};
use super::program::{ProxyProcess, run};
use super::service::{FakeService, ReleaseGate, ServiceAction, answer};
use crate::folder;

/// Starts a service that fails with `act` until the last attempt, which succeeds.
async fn failing(times: usize, act: ServiceAction) -> FakeService {
    FakeService::start(move |_, before| if before < times { act.clone() } else { ServiceAction::ok("done") })
        .await
}

const THRICE: [&str; 4] = ["--attempts", "3", "--backoff", "1ms"];

#[tokio::test]
async fn keyed_post_is_retried_after_502_503_or_504() {
    for status in ["502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"] {
        let service = failing(2, ServiceAction::status(status)).await;
        let proxy = ProxyProcess::start("bff", service.address, &THRICE);
        let answer = send(proxy.address, &ProxyRequest::post("/a?b").key("\"k\"").body("body")).await;
        assert_eq!((answer.status(), answer.text()), (200, "done"), "{status}");
        let seen = service.seen();
        assert_eq!(seen.len(), 3);
        for request in &seen {
            assert_eq!((request.first.as_str(), request.text()), ("POST /a?b HTTP/1.1", "body"));
            assert_eq!(request.one("idempotency-key"), Some("\"k\""), "the same key on every try");
            assert_eq!(request.one("x-request-id"), seen[0].one("x-request-id"));
        }
    }
}

#[tokio::test]
async fn keyed_post_is_retried_after_a_lost_response() {
    let service = failing(2, ServiceAction::Cut(b"HTTP/1.1 200".to_vec())).await;
    let proxy = ProxyProcess::start("gateway", service.address, &THRICE);
    assert_eq!(send(proxy.address, &ProxyRequest::post("/").key("k").body("body")).await.text(), "done");
    assert_eq!(service.seen().len(), 3);
}

#[tokio::test]
async fn other_statuses_are_not_retried() {
    for status in [
        "500 Internal Server Error",
        "501 Not Implemented",
        "429 Too Many Requests",
        "408 Request Timeout",
        "409 Conflict",
    ] {
        let service = failing(1, ServiceAction::status(status)).await;
        let proxy = ProxyProcess::start("bff", service.address, &THRICE);
        let answer = send(proxy.address, &ProxyRequest::post("/").key("k")).await;
        assert_eq!(answer.status().to_string(), status[..3]);
        assert_eq!(service.seen().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn only_keyed_posts_are_retried() {
    let service = FakeService::start(|_, _| ServiceAction::Cut(Vec::new())).await;
    let proxy = ProxyProcess::start(
        "bff",
        service.address,
        &["--attempts", "3", "--backoff", "1ms", "--key-on", "PATCH"],
    );
    let requests = [
        ProxyRequest::post("/").body("x"),
        ProxyRequest::new("PATCH", "/").key("k").body("x"),
        ProxyRequest::new("PUT", "/").key("k").body("x"),
        ProxyRequest::new("DELETE", "/").key("k"),
        ProxyRequest::get("/").key("k"),
    ];
    for (index, request) in requests.iter().enumerate() {
        let answer = send(proxy.address, request).await;
        assert_eq!((answer.status(), answer.code().as_str()), (502, "upstream_lost"), "{request:?}");
        assert_eq!(answer.json()["effect"], "unknown");
        assert_eq!(service.seen().len(), index + 1, "{request:?}");
    }
}

#[tokio::test]
async fn a_file_cannot_allow_what_c4_forbids() {
    let service = FakeService::start(|_, _| ServiceAction::status("500 Internal Server Error")).await;
    let folder = folder::fresh();
    let retry = json!({"apply_to_methods": ["POST", "PATCH", "GET"], "retry_on_status": [500, 503]});
    let file = folder.boundary("bff_to_gateway.json", &json!({"http": {"retry": retry}}));
    let upstream = format!("http://{}", service.address);
    let (code, _, err) = run(&["proxy", "--role", "bff", "--upstream", &upstream, "--boundary", &file]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("error ICH-B021: ") && err.contains("error ICH-B022: "), "{err}");
    let fits = folder.boundary("bff_to_gateway.json", &json!({"http": {"retry": {"backoff_ms": 1}}}));
    let proxy = ProxyProcess::start("bff", service.address, &["--boundary", &fits]);
    for request in
        [ProxyRequest::post("/").key("k"), ProxyRequest::new("PATCH", "/").key("k"), ProxyRequest::get("/")]
    {
        let before = service.seen().len();
        assert_eq!(send(proxy.address, &request).await.status(), 500);
        assert_eq!(service.seen().len(), before + 1, "{request:?}");
    }
}

#[tokio::test]
async fn last_response_passes_when_retries_end() {
    let service = FakeService::start(|_, _| {
        ServiceAction::Answer(answer("503 Service Unavailable", &[("retry-after", "60")], "busy"))
    })
    .await;
    let proxy = ProxyProcess::start("bff", service.address, &["--attempts", "3", "--timeout", "5s"]);
    let answer = send(proxy.address, &ProxyRequest::post("/").key("k")).await;
    assert_eq!((answer.status(), answer.text(), answer.one("retry-after")), (503, "busy", Some("60")));
    assert_eq!(service.seen().len(), 1, "Retry-After exceeds its limit");
    let spent = FakeService::start(|_, _| ServiceAction::status("502 Bad Gateway")).await;
    let proxy = ProxyProcess::start("bff", spent.address, &THRICE);
    assert_eq!(send(proxy.address, &ProxyRequest::post("/").key("k")).await.status(), 502);
    assert_eq!(spent.seen().len(), 3);
}

#[tokio::test]
async fn a_large_body_is_sent_once() {
    let service = FakeService::start(|_, _| ServiceAction::status("503 Service Unavailable")).await;
    let proxy = ProxyProcess::start("bff", service.address, &THRICE);
    let large = "x".repeat(1024 * 1024 + 1);
    assert_eq!(send(proxy.address, &ProxyRequest::post("/").key("k").body(large)).await.status(), 503);
    assert_eq!(service.seen().len(), 1);
    let fits = "x".repeat(1024 * 1024);
    assert_eq!(send(proxy.address, &ProxyRequest::post("/").key("k").body(fits)).await.status(), 503);
    assert_eq!(service.seen().len(), 4);
}

/// Returns an address at which nobody listens.
async fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    listener.local_addr().expect("an address")
}

#[tokio::test]
async fn refused_upstream_connection_is_not_done() {
    let proxy = ProxyProcess::start("gateway", nobody().await, &THRICE);
    for request in [
        ProxyRequest::post("/").key("k").body("x"),
        ProxyRequest::get("/"),
        ProxyRequest::new("PATCH", "/").key("k").body("x"),
    ] {
        let answer = send(proxy.address, &request).await;
        assert_eq!((answer.status(), answer.code().as_str()), (502, "upstream_unreachable"), "{request:?}");
        assert_eq!(answer.json()["effect"], "not_done");
    }
}

#[tokio::test]
async fn upstream_timeout_has_unknown_effect() {
    let never = ReleaseGate::default();
    let service = FakeService::start(move |_, _| ServiceAction::AnswerWhen(never.clone(), Vec::new())).await;
    let proxy = ProxyProcess::start(
        "gateway",
        service.address,
        // The proxy has as long to send a request, on a slow machine too.
        &["--attempt-timeout", "1s", "--attempts", "2", "--backoff", "1ms"],
    );
    let answer = send(proxy.address, &ProxyRequest::post("/").key("k").body("x")).await;
    assert_eq!((answer.status(), answer.code().as_str()), (504, "upstream_timeout"));
    assert_eq!(answer.json()["effect"], "unknown");
    // The service may read a request later than the proxy gives it up.
    service.until_seen(2).await;
    let streamed = send(proxy.address, &ProxyRequest::new("PUT", "/").body("x")).await;
    service.until_seen(3).await;
    assert_eq!((streamed.status(), service.seen().len()), (504, 3));
}

#[tokio::test]
async fn unknown_effect_stays_unknown_after_failed_retry() {
    // The first attempt is lost; then nobody listens any more.
    let service = FakeService::start(|_, _| ServiceAction::Cut(Vec::new())).await;
    let proxy = ProxyProcess::start("gateway", service.address, &["--attempts", "2", "--backoff", "400ms"]);
    let request = ProxyRequest::post("/").key("k").body("x");
    let sending = tokio::spawn({
        let address = proxy.address;
        async move { send(address, &request).await }
    });
    service.until_seen(1).await;
    drop(service);
    let answer = sending.await.expect("it ends");
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["effect"], "unknown", "{}", answer.text());
}

#[tokio::test]
async fn dying_reused_connection_sends_post_once() {
    // A connection returns to the pool a moment after its response was read, so the second request may find none to
    // reuse.
    for _ in 0..20 {
        if second_request_is_cut().await == 1 {
            return;
        }
    }
    panic!("no connection was used again");
}

/// Cuts the connection after reading its second request; returns how many connections there were.
///
/// The client library would silently resend the request on another connection if it could.
async fn second_request_is_cut() -> usize {
    let service = FakeService::start(|request, _| match request.one("x-nth") {
        Some("2") => ServiceAction::Cut(Vec::new()),
        _ => ServiceAction::ok("ok"),
    })
    .await;
    let proxy = ProxyProcess::start("gateway", service.address, &["--key-on", "PATCH"]);
    let nth = |nth: &str| ProxyRequest::post("/").field("x-nth", nth).body("x");
    assert_eq!(send(proxy.address, &nth("1")).await.status(), 200);
    let lost = send(proxy.address, &nth("2")).await;
    assert_eq!((lost.status(), lost.code().as_str()), (502, "upstream_lost"));
    assert_eq!(lost.json()["effect"], "unknown");
    let seconds = service.seen().iter().filter(|request| request.one("x-nth") == Some("2")).count();
    assert_eq!(seconds, 1);
    service.connections()
}

#[tokio::test]
async fn closed_idle_connection_loses_no_request() {
    // Every connection is closed silently after its response.
    //
    // Whether or not the proxy has noticed by the next request, an unwritten request goes out on another connection,
    // and a written one does not.
    let service = FakeService::start(|_, _| ServiceAction::Cut(answer("200 OK", &[], "ok"))).await;
    let proxy = ProxyProcess::start("gateway", service.address, &["--key-on", "PATCH"]);
    let mut lost = 0;
    for index in 0..50 {
        let answer = send(proxy.address, &ProxyRequest::post(&format!("/{index}")).body("x")).await;
        lost += usize::from(answer.status() == 502);
    }
    for index in 0..50 {
        let target = format!("POST /{index} HTTP/1.1");
        let times = service.seen().iter().filter(|request| request.first == target).count();
        assert!(times <= 1, "{target} was seen {times} times");
    }
    assert!(lost < 50, "some get through");
}

#[tokio::test]
async fn unaccepted_upstream_connection_is_not_done() {
    // A backlog of one that nobody accepts from: further connections get no response from the system.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("loopback");
    let listener = socket.listen(1).expect("it listens");
    let address = listener.local_addr().expect("an address");
    let fill: Vec<_> = (0..16).map(|_| tokio::spawn(TcpStream::connect(address))).collect();
    let proxy = ProxyProcess::start("gateway", address, &["--connect-timeout", "100ms"]);
    let mut answer = send(proxy.address, &ProxyRequest::post("/").key("k").body("x")).await;
    // The first calls may still fit into the backlog, and then wait for a response that never arrives.
    while answer.code() != "upstream_unreachable" {
        answer = send(proxy.address, &ProxyRequest::post("/").key("k").body("x")).await;
    }
    assert_eq!((answer.status(), &answer.json()["effect"]), (504, &serde_json::json!("not_done")));
    for waiting in fill {
        waiting.abort();
    }
}

#[tokio::test]
async fn protocol_switch_is_not_a_response() {
    let switching = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n".to_vec();
    let service = FakeService::start(move |_, _| ServiceAction::Answer(switching.clone())).await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    let answer = send(proxy.address, &ProxyRequest::get("/")).await;
    assert_eq!((answer.status(), answer.code().as_str()), (502, "upstream_lost"));
}

#[tokio::test]
async fn response_timeout_starts_after_the_body() {
    let (slow, never) = (ReleaseGate::default(), ReleaseGate::default());
    let opened = slow.clone();
    let service = FakeService::start(move |request, _| match request.first.split(' ').nth(1) {
        Some("/slow") => ServiceAction::AnswerWhen(opened.clone(), answer("200 OK", &[], "slow")),
        Some("/never") => ServiceAction::AnswerWhen(never.clone(), Vec::new()),
        _ => ServiceAction::ok("ok"),
    })
    .await;
    let flags = ["--attempts", "2", "--timeout", "3s", "--attempt-timeout", "3s"];
    let proxy = ProxyProcess::start("gateway", service.address, &flags);
    let mut client = ProxyClient::connect(proxy.address).await;
    let head = "POST /slow HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n";
    client.write(format!("{head}\r\na")).await;
    // The total time of all attempts passes.
    let late = send(proxy.address, &ProxyRequest::post("/never").key("n")).await;
    assert_eq!(late.status(), 504);
    client.write("b").await;
    service.until_seen(2).await;
    // And a little more than no time at all.
    for _ in 0..3 {
        assert_eq!(send(proxy.address, &ProxyRequest::get("/")).await.status(), 200);
    }
    slow.open();
    assert_eq!(client.answer().await.text(), "slow");
}

/// A hop without memory to buffer a body sends it once, as it arrives.
#[tokio::test]
async fn unbuffered_body_is_sent_once() {
    let service = FakeService::start(|_, _| ServiceAction::status("503 Service Unavailable")).await;
    let proxy = ProxyProcess::start("gateway", service.address, &["--attempts", "2", "--backoff", "1ms"]);
    let request = |key: &str| ProxyRequest::post("/").key(key).body("abc");
    assert_eq!(send(proxy.address, &request("first")).await.status(), 503);
    assert_eq!(service.seen().len(), 2, "it was held, and sent again");
    let mut holding = Vec::new();
    for index in 0..64 {
        let mut client = ProxyClient::connect(proxy.address).await;
        let head = format!(
            "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k{index}\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            1 << 20
        );
        client.write(head).await;
        assert_eq!(client.reader.head().await.expect("an answer").expect("an answer").status(), 100);
        holding.push(client);
    }
    assert_eq!(send(proxy.address, &request("second")).await.status(), 503);
    assert_eq!(service.seen().len(), 3, "it was sent once");
}
