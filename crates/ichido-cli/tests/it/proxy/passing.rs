//! What passes through: headers, streamed bodies, ids, hops, and HTTP/2.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use ichido_core::hops::Hops;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use super::client::{HUNG, ProxyClient, ProxyRequest, send};
use super::program::ProxyProcess;
use super::service::{FakeService, ReleaseGate, ServiceAction, answer};
use crate::folder;
use crate::http_message::{HttpReader, MessageKind};

#[tokio::test]
async fn hop_by_hop_headers_are_not_forwarded() {
    let service = FakeService::start(|_, _| {
        let fields =
            [("connection", "x-private"), ("x-private", "1"), ("keep-alive", "timeout=9"), ("etag", "\"1\"")];
        ServiceAction::Answer(answer("200 OK", &fields, "ok"))
    })
    .await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    let request = ProxyRequest::get("/")
        .field("Connection", "keep-alive, X-Secret")
        .field("X-Secret", "1")
        .field("Keep-Alive", "timeout=5")
        .field("TE", "trailers")
        .field("Proxy-Authorization", "Basic eA==")
        .field("Accept", "text/plain");
    let answer = send(proxy.address, &request).await;
    let seen = service.only();
    for name in ["connection", "x-secret", "keep-alive", "te", "proxy-authorization", "via", "forwarded"] {
        assert_eq!(seen.all(name), Vec::<&str>::new(), "{name}");
    }
    assert_eq!(seen.one("accept"), Some("text/plain"));
    assert_eq!(seen.one("host"), Some(service.address.to_string().as_str()), "the upstream's own");
    assert_eq!(
        (answer.one("x-private"), answer.one("keep-alive"), answer.one("etag")),
        (None, None, Some("\"1\""))
    );
}

#[tokio::test]
async fn identity_headers_from_browsers_are_dropped() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &["--drop-headers", "x-user-id,x-tenant-*"]);
    let request = ProxyRequest::post("/")
        .key("k")
        .field("X-User-Id", "root")
        .field("x-tenant-id", "7")
        .field("cookie", "a");
    assert_eq!(send(proxy.address, &request).await.status(), 200);
    let seen = service.only();
    assert_eq!((seen.one("x-user-id"), seen.one("x-tenant-id"), seen.one("cookie")), (None, None, Some("a")));
}

#[tokio::test]
async fn header_lists_apply_in_both_directions() {
    let service = FakeService::start(|_, _| {
        ServiceAction::Answer(answer("200 OK", &[("server", "x"), ("etag", "1")], "ok"))
    })
    .await;
    let folder = folder::fresh();
    let answers = ["etag", "idempotency-key", "idempotency-replayed", "idempotency-status", "retry-after"];
    let headers = json!({"inbound": {"allow": ["accept", "cookie", "idempotency-key"]}, "bff_response": {"allow": answers}});
    let receiving = folder.boundary("browser_to_bff.json", &json!({"headers": headers}));
    let headers = json!({"bff_outbound": {"allow": null, "drop": ["cookie"]}});
    let sending = folder.boundary("bff_to_gateway.json", &json!({"headers": headers}));
    let flags = ["--boundary", &receiving, "--boundary", &sending, "--allow-headers", "accept,cookie"];
    let proxy = ProxyProcess::start("bff", service.address, &flags);
    let request =
        ProxyRequest::post("/").key("k").field("accept", "*/*").field("cookie", "a").field("x-other", "1");
    let answer = send(proxy.address, &request).await;
    let seen = service.only();
    assert_eq!((seen.one("accept"), seen.one("cookie"), seen.one("x-other")), (Some("*/*"), None, None));
    assert_eq!(seen.one("idempotency-key"), Some("k"), "it passes every list");
    assert!(seen.one("ichido-hops").is_some(), "so do the hops");
    assert_eq!((answer.one("etag"), answer.one("server")), (Some("1"), None));
}

#[tokio::test]
async fn request_id_is_kept_or_generated() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let kept = send(
        proxy.address,
        &ProxyRequest::get("/").field("X-Request-Id", "abc-1").field("traceparent", trace),
    )
    .await;
    assert_eq!(kept.one("x-request-id"), Some("abc-1"));
    assert_eq!(service.seen()[0].one("x-request-id"), Some("abc-1"));
    assert_eq!(service.seen()[0].one("traceparent"), Some(trace));
    let made = send(proxy.address, &ProxyRequest::get("/")).await;
    let id = made.one("x-request-id").expect("one is made").to_owned();
    assert_eq!(service.seen()[1].one("x-request-id"), Some(id.as_str()));
    for bad in ["", "a b", &"x".repeat(200)] {
        let replaced = send(proxy.address, &ProxyRequest::get("/").field("x-request-id", bad)).await;
        assert_ne!(replaced.one("x-request-id"), Some(bad));
    }
    let twice = ProxyRequest::get("/").field("x-request-id", "a").field("x-request-id", "b");
    assert_ne!(send(proxy.address, &twice).await.one("x-request-id"), Some("a"));
}

#[tokio::test]
async fn browsers_request_id_is_replaced_unless_the_file_trusts_it() {
    let service = FakeService::plain().await;
    let folder = folder::fresh();
    let file = |name: &str, request_id: Value| {
        folder.boundary(name, &json!({"observability": {"request_id": request_id}}))
    };
    let silent = file("browser_to_bff.json", Value::Null);
    // What the gateway does is not what the BFF does.
    let below = file("bff_to_gateway.json", json!("keep"));
    let mut cases = vec![(vec![], false), (vec!["--boundary", &below], false)];
    cases.push((vec!["--boundary", &silent, "--boundary", &below], false));
    let other_folder = folder::fresh();
    let trusts = json!({"observability": {"request_id": {"header": "x-request-id", "trust_inbound": true}}});
    let trusting = other_folder.boundary("browser_to_bff.json", &trusts);
    cases.push((vec!["--boundary", &trusting], true));
    for (flags, is_kept) in cases {
        let proxy = ProxyProcess::start("bff", service.address, &flags);
        let request = ProxyRequest::get("/").field("x-request-id", "mine");
        let answer = send(proxy.address, &request).await;
        let id = answer.one("x-request-id").expect("there is one").to_owned();
        assert_eq!(id == "mine", is_kept, "{flags:?}");
        assert_eq!(service.seen().last().and_then(|seen| seen.one("x-request-id")), Some(id.as_str()));
    }
}

/// The files are those of a team, in its own dialect; each thing that they say is done.
#[tokio::test]
async fn proxy_runs_on_a_teams_own_files() {
    let service = FakeService::start(|_, _| {
        let fields = [("location", "/1"), ("server", "x"), ("x-debug-token", "s")];
        ServiceAction::Answer(answer("200 OK", &fields, "ok"))
    })
    .await;
    let folder = folder::fresh();
    let browser = include_str!("../../../../ichido-boundary/tests/it/team/browser_to_bff.json");
    let bff = include_str!("../../../../ichido-boundary/tests/it/team/bff_to_gateway.json");
    let files = [folder.write("browser_to_bff.json", browser), folder.write("bff_to_gateway.json", bff)];
    let proxy =
        ProxyProcess::start("bff", service.address, &["--boundary", &files[0], "--boundary", &files[1]]);
    for method in ["POST", "DELETE"] {
        let missing = send(proxy.address, &ProxyRequest::new(method, "/v1/orders")).await;
        assert_eq!(
            (missing.status(), missing.code().as_str()),
            (400, "IDEMPOTENCY_KEY_REQUIRED"),
            "{method}"
        );
    }
    let request =
        ProxyRequest::post("/v1/orders").field("X-Idempotency-Key", "k").field("x-request-id", "mine");
    let passed = send(proxy.address, &request.field("x-debug-token", "s").field("accept", "*/*")).await;
    let seen = service.only();
    assert_eq!((seen.one("x-idempotency-key"), seen.one("accept")), (Some("k"), Some("*/*")));
    assert_eq!(seen.one("x-debug-token"), None, "the list of hop-by-hop headers names it");
    assert_ne!(seen.one("x-request-id"), Some("mine"), "the file does not trust a browser");
    assert_eq!((passed.status(), passed.one("location")), (200, Some("/1")));
    assert_eq!(
        (passed.one("server"), passed.one("x-debug-token")),
        (None, None),
        "`outbound` does not allow them"
    );
}

#[tokio::test]
async fn each_hop_is_appended_and_client_hops_are_dropped() {
    let service = FakeService::plain().await;
    let gateway = ProxyProcess::start("gateway", service.address, &["--name", "gateway-eu"]);
    let bff = ProxyProcess::start("bff", gateway.address, &["--allow-headers", "accept"]);
    let forged = "bff;t=1;r=\"forged\"";
    let request = ProxyRequest::post("/").key("k").field("Ichido-Hops", forged).field("x-request-id", "r-1");
    assert_eq!(send(bff.address, &request).await.status(), 200);
    let hops = Hops::read(service.only().all("ichido-hops"));
    let told: Vec<_> = hops.iter().map(|hop| (hop.name.as_str(), hop.request_id.as_str())).collect();
    let id = told[0].1;
    assert_eq!(told, [("bff", id), ("gateway-eu", id)]);
    assert_ne!(id, "r-1", "a browser's own id is not trusted");
    let times: Vec<_> = hops.iter().map(|hop| hop.at).collect();
    assert!(times.is_sorted(), "by the clock of one machine: {times:?}");
}

#[tokio::test]
async fn invalid_hops_are_dropped_and_full_ones_pass_unchanged() {
    let service = FakeService::plain().await;
    let gateway = ProxyProcess::start("gateway", service.address, &[]);
    assert_eq!(
        send(gateway.address, &ProxyRequest::get("/").field("Ichido-Hops", "!!,(")).await.status(),
        200
    );
    let hops = Hops::read(service.only().all("ichido-hops"));
    assert_eq!(hops.iter().map(|hop| hop.name.as_str()).collect::<Vec<_>>(), ["gateway"]);
    let full = ["a;t=1;r=\"x\""; 8].join(", ");
    assert_eq!(
        send(gateway.address, &ProxyRequest::get("/").field("Ichido-Hops", &full)).await.status(),
        200
    );
    assert_eq!(service.seen()[1].one("ichido-hops"), Some(full.as_str()));
}

#[tokio::test]
async fn target_and_query_pass_unchanged() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    for target in ["/a//b/../c%2Fd?x=1&x=2&y=%20+", "/?", "/*"] {
        let before = service.seen().len();
        assert_eq!(send(proxy.address, &ProxyRequest::get(target)).await.status(), 200);
        assert_eq!(service.seen()[before].first, format!("GET {target} HTTP/1.1"));
    }
    assert_eq!(send(proxy.address, &ProxyRequest::get("http://example.test/b?c")).await.status(), 200);
    assert_eq!(service.seen()[3].first, "GET /b?c HTTP/1.1");
}

#[tokio::test]
async fn response_streams_before_it_is_complete() {
    let gate = ReleaseGate::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    let opened = gate.clone();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("the proxy");
        let mut reader = HttpReader::new(&mut stream);
        reader.message(MessageKind::Request).await.expect("a request");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
        stream.write_all(head.as_bytes()).await.expect("written");
        opened.opened().await;
        stream.write_all(b"6\r\nsecond\r\n0\r\n\r\n").await.expect("written");
    });
    let proxy = ProxyProcess::start("bff", address, &[]);
    let mut client = ProxyClient::connect(proxy.address).await;
    client.write(ProxyRequest::get("/events").bytes()).await;
    let head = client.reader.head().await.expect("readable").expect("a head");
    assert_eq!(head.one("transfer-encoding"), Some("chunked"));
    assert_eq!(
        client.reader.chunk().await.expect("a chunk"),
        b"first",
        "while the service still holds the rest"
    );
    gate.open();
    assert_eq!(client.reader.chunk().await.expect("a chunk"), b"second");
    assert_eq!(client.reader.chunk().await.expect("a chunk"), b"");
}

#[tokio::test]
async fn body_streams_before_it_is_complete_within_its_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    let proxy = ProxyProcess::start("bff", address, &["--attempts", "3"]);
    // A PUT is never retried, so it is not buffered; a large POST cannot be.
    let beginning = "x".repeat(2 * 1024 * 1024);
    for (head, first, rest) in [
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n", "abc", "def"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 2097155\r\n\r\n",
            &beginning,
            "end",
        ),
    ] {
        let mut client = ProxyClient::connect(proxy.address).await;
        client.write(head).await;
        client.write(first).await;
        let (mut stream, _) = listener.accept().await.expect("the proxy calls before the body is whole");
        let mut reader = HttpReader::new(&mut stream);
        let request = reader.head().await.expect("readable").expect("a head");
        client.write(rest).await;
        let body = reader.body(&request, MessageKind::Request).await.expect("a body");
        assert_eq!(body.len(), first.len() + rest.len());
        stream.write_all(&answer("200 OK", &[], "ok")).await.expect("written");
        assert_eq!(client.answer().await.status(), 200);
    }
}

#[tokio::test]
async fn bodiless_responses_keep_content_length() {
    let service = FakeService::start(|request, _| {
        ServiceAction::Answer(match request.first.split(' ').nth(1) {
            Some("/304") => b"HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\ncontent-length: 9\r\n\r\n".to_vec(),
            Some("/204") => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            _ => b"HTTP/1.1 200 OK\r\ncontent-length: 123\r\n\r\n".to_vec(),
        })
    })
    .await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    let mut client = ProxyClient::connect(proxy.address).await;
    client.write(ProxyRequest::new("HEAD", "/").bytes()).await;
    let head = client.reader.message(MessageKind::AnswerToHead).await.expect("readable").expect("an answer");
    assert_eq!((head.status(), head.one("content-length")), (200, Some("123")));
    assert_eq!(client.send(&ProxyRequest::get("/304")).await.status(), 304);
    assert_eq!(client.send(&ProxyRequest::get("/204")).await.status(), 204);
}

#[tokio::test]
async fn response_version_is_that_of_its_connection() {
    let service = FakeService::start(|_, _| {
        ServiceAction::Cut(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec())
    })
    .await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    let mut client = ProxyClient::connect(proxy.address).await;
    for _ in 0..2 {
        let answer = client.send(&ProxyRequest::get("/")).await;
        assert_eq!((answer.first.as_str(), answer.text()), ("HTTP/1.1 200 OK", "ok"));
    }
}

#[tokio::test]
async fn aborted_upstream_response_is_aborted_downstream() {
    let service = FakeService::start(|_, _| {
        ServiceAction::Cut(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n".to_vec())
    })
    .await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    let mut client = ProxyClient::connect(proxy.address).await;
    client.write(ProxyRequest::get("/").bytes()).await;
    assert!(client.reader.message(MessageKind::Answer).await.is_err(), "it is never made to look whole");
}

#[tokio::test]
async fn stalled_response_is_aborted() {
    let never = ReleaseGate::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    let held = never.clone();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("the proxy");
        HttpReader::new(&mut stream).message(MessageKind::Request).await.expect("a request");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await.expect("written");
        held.opened().await;
    });
    let proxy = ProxyProcess::start("bff", address, &["--body-idle-timeout", "50ms"]);
    let mut client = ProxyClient::connect(proxy.address).await;
    client.write(ProxyRequest::get("/").bytes()).await;
    assert!(client.reader.message(MessageKind::Answer).await.is_err());
}

#[tokio::test]
async fn upstream_connections_are_reused() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("gateway", service.address, &[]);
    for _ in 0..50 {
        assert_eq!(send(proxy.address, &ProxyRequest::post("/").key("k").body("x")).await.status(), 200);
    }
    // A connection returns to the pool a moment after its response was read; an earlier request opens another one.
    assert_eq!(service.seen().len(), 50);
    assert!(service.connections() < 10, "{}", service.connections());
}

async fn http2(address: std::net::SocketAddr) -> hyper::client::conn::http2::SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.expect("somebody listens");
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (sender, connection) = handshake.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

#[tokio::test]
async fn cleartext_http2_is_forwarded_as_http1() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    let mut sender = http2(proxy.address).await;
    let request = |key: Option<&str>| {
        let mut request = http::Request::post(format!("http://{}/v1/orders?a=b", proxy.address));
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        request.body(Full::new(Bytes::from_static(b"body"))).expect("a request")
    };
    let answers =
        futures(vec![sender.send_request(request(Some("k1"))), sender.send_request(request(Some("k2")))])
            .await;
    for answer in answers {
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.into_body().collect().await.expect("a body").to_bytes(), "ok");
    }
    assert_eq!(sender.send_request(request(None)).await.expect("an answer").status(), 400);
    let seen = service.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].first.as_str(), seen[0].text()), ("POST /v1/orders?a=b HTTP/1.1", "body"));
    assert_eq!(seen[0].one("host"), Some(service.address.to_string().as_str()));
}

async fn futures<T>(all: Vec<impl Future<Output = T> + Send + 'static>) -> Vec<T>
where
    T: Send + 'static,
{
    let tasks: Vec<_> = all.into_iter().map(tokio::spawn).collect();
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.expect("it does not panic"));
    }
    done
}

#[tokio::test]
async fn http2_requests_with_fields_of_a_connection_are_refused() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &[]);
    for (name, value) in [
        ("connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "x"),
        ("keep-alive", "1"),
        ("te", "gzip"),
    ] {
        let mut client = ProxyClient::connect(proxy.address).await;
        client.write(http2_bytes(name, value)).await;
        // A stream or connection error instead of a response; what matters is that nothing was forwarded.
        client.write_end().await;
        client.until_end().await;
    }
    assert_eq!(service.seen().len(), 0);
}

/// Returns a connection with one request that our client library would not send.
fn http2_bytes(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x84]; // :method GET, :scheme http, :path /
    block.extend([0x41, 1, b'a']); // :authority a
    block.push(0x00); // a literal field, not indexed, with a new name
    for text in [name, value] {
        block.push(u8::try_from(text.len()).expect("short"));
        block.extend(text.as_bytes());
    }
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]); // SETTINGS
    bytes.extend([0, 0, u8::try_from(block.len()).expect("short"), 1, 0x5, 0, 0, 0, 1]); // HEADERS, END_STREAM, END_HEADERS
    bytes.extend(block);
    bytes
}

#[tokio::test]
async fn trailers_obey_the_header_lists() {
    let trailing = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-secret\r\n\r\n2\r\nok\r\n0\r\nx-secret: 1\r\n\r\n";
    let service = FakeService::start(move |_, _| ServiceAction::Answer(trailing.as_bytes().to_vec())).await;
    let proxy = ProxyProcess::start("bff", service.address, &["--allow-response-headers", "content-type"]);
    let mut sender = http2(proxy.address).await;
    let request = http::Request::get(format!("http://{}/", proxy.address)).header("te", "trailers");
    let answer =
        sender.send_request(request.body(Full::default()).expect("a request")).await.expect("an answer");
    assert_eq!(answer.headers().get("trailer"), None);
    let body = answer.into_body().collect().await.expect("a body");
    assert_eq!(body.trailers(), None);
    assert_eq!(body.to_bytes(), "ok");
}

#[tokio::test]
async fn idle_http2_connection_is_closed_despite_pings() {
    let service = FakeService::plain().await;
    let proxy = ProxyProcess::start("bff", service.address, &["--head-timeout", "100ms"]);
    let stream = TcpStream::connect(proxy.address).await.expect("somebody listens");
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    // The sender is kept alive, so the client has no reason to close; it answers every ping.
    let (_sender, connection): (hyper::client::conn::http2::SendRequest<Full<Bytes>>, _) =
        handshake.expect("HTTP/2");
    let ended = tokio::time::timeout(HUNG, connection).await;
    assert!(ended.is_ok(), "the proxy closes it");
}

/// The body is framed by its encoding; the contradicting length must not be forwarded.
#[tokio::test]
async fn response_with_length_and_encoding_arrives_complete() {
    let both =
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let service = FakeService::start(move |_, _| ServiceAction::Answer(both.into())).await;
    let store = ichido_store::testing::sqlite::fresh_file();
    let adapter = ["--store", &store.url, "--operation", "POST /", "--identity", "single:me"];
    for (role, flags) in [("bff", &[][..]), ("adapter", &adapter)] {
        let proxy = ProxyProcess::start(role, service.address, flags);
        let answer = send(proxy.address, &ProxyRequest::post("/").key("k")).await;
        assert_eq!((answer.status(), answer.text()), (200, "hello"), "{role}");
    }
}
