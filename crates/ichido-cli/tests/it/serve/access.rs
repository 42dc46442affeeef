//! Access control.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::client::{RawClient, RawRequest, problem};
use super::program::{DatabaseKind, POLL_EVERY, ServeProcess, ServerFixture, ichido, on_both};

async fn refusal(server: &ServeProcess, request: &RawRequest) -> (u16, String) {
    problem(&server.send(request).await)
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

on_both! {
    /// Each role, and what it may do.
    async fn token_grants_the_permissions_of_its_role(fixture) {
        let admin = fixture.token(&["root", "--role", "admin"]);
        let operator = fixture.token(&["night watch", "--role", "operator"]);
        let viewer = fixture.token(&["screen", "--role", "viewer"]);
        let producer = fixture.token(&["till 3", "--role", "producer", "--identity", "shop-3", "--queue", "demo"]);
        let elsewhere = fixture.token(&["till 4", "--role", "producer", "--identity", "shop-4", "--queue", "other"]);
        let same_queue = fixture.token(&["till 5", "--role", "producer", "--identity", "shop-5", "--queue", "demo", "--queue", "other"]);
        let server = fixture.serve(&[]);
        assert!(!server.startup_output.contains("no tokens"), "{}", server.startup_output);
        let put = |token: &str| RawRequest::put("k", "{}").token(token);
        let status = async |request: RawRequest, token: &str| server.send(&request.token(token)).await.status();

        let message = server.send(&put(&producer)).await;
        assert_eq!(message.status(), 201, "{message:?}");
        let href = message.one("location").unwrap();
        assert_eq!(refusal(&server, &put(&producer).field("Ichido-Identity", "shop-4")).await, refused(403, "role_insufficient"));
        assert_eq!(refusal(&server, &put(&elsewhere)).await, refused(404, "queue_unknown"));
        let near = server.send(&put(&elsewhere).to("/v1/queues/demos/messages")).await.json();
        assert!(!near["detail"].as_str().unwrap().contains("did you mean"), "names of others are secret: {near}");
        for token in [&viewer, &operator] {
            assert_eq!(refusal(&server, &put(token)).await, refused(403, "role_insufficient"));
        }
        assert_eq!(server.send(&put(&admin)).await.status(), 201);
        let shown = server.send(&RawRequest::get(href).token(&viewer)).await.json();
        assert_eq!(shown["identity"], "shop-3", "the token's, for every caller");

        for part in ["", "/events", "/request"] {
            let target = format!("{href}{part}");
            for token in [&admin, &operator, &viewer, &producer] {
                assert_eq!(status(RawRequest::get(&target), token).await, 200, "{target}");
            }
            for token in [&elsewhere, &same_queue] {
                assert_eq!(refusal(&server, &RawRequest::get(&target).token(token)).await, refused(404, "message_unknown"));
            }
        }
        for target in ["/v1/nodes", "/v1/alerts", "/metrics"] {
            for token in [&admin, &operator, &viewer] {
                assert_eq!(status(RawRequest::get(target), token).await, 200);
            }
            assert_eq!(refusal(&server, &RawRequest::get(target).token(&producer)).await, refused(403, "role_insufficient"));
        }
        let queues = async |token: &str| {
            let listed = server.send(&RawRequest::get("/v1/queues").token(token)).await.json();
            listed["queues"].as_array().unwrap().len()
        };
        assert_eq!((queues(&viewer).await, queues(&producer).await, queues(&elsewhere).await), (1, 1, 0));
        let seen = server.send(&RawRequest::get("/v1/queues").token(&producer)).await.json()["queues"][0].clone();
        assert_eq!((&seen["name"], &seen["served_here"], &seen["paused"]), (&"demo".into(), &true.into(), &false.into()));
        for member in ["counts", "oldest_waiting_at", "oldest_waiting_seconds", "paused_by"] {
            assert!(seen.get(member).is_some_and(serde_json::Value::is_null), "{member} is of others, too: {seen}");
        }
        let mut command = ichido(fixture.folder.path());
        command.args(["queues", "list", "--server", &format!("http://{}", server.address)]);
        let listed = command.env("ICHIDO_TOKEN", &producer).output().unwrap();
        let out = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.status.success() && out.lines().nth(1).is_some_and(|line| line.starts_with("demo") && line.ends_with("no")), "{out}");
        for (token, may) in [(&admin, true), (&operator, true), (&viewer, false), (&producer, false)] {
            for action in ["pause", "resume"] {
                let answer = server.send(&RawRequest::post(&format!("/v1/queues/demo/{action}")).token(token)).await;
                assert_eq!(answer.status(), if may { 200 } else { 403 });
            }
        }
        server.send(&RawRequest::post("/v1/queues/demo/pause").token(&operator)).await;
        let queue = server.send(&RawRequest::get("/v1/queues").token(&viewer)).await.json();
        assert_eq!(queue["queues"][0]["paused_by"], "night watch", "the token's name is in the audit");
    }

    /// A proxy in front may have checked the other one.
    async fn request_with_two_tokens_is_refused(fixture) {
        let token = fixture.token(&["root", "--role", "admin"]);
        let server = fixture.serve(&[]);
        let ask = RawRequest::get("/v1/queues").token(&token);
        assert_eq!(server.send(&ask).await.status(), 200);
        for second in [format!("Bearer {token}"), "Bearer other".to_owned(), "Basic YTpi".to_owned()] {
            let both = ask.clone().field("authorization", &second);
            assert_eq!(refusal(&server, &both).await, refused(401, "token_invalid"), "{second}");
        }
    }

    async fn revoked_token_is_refused(fixture) {
        let token = fixture.token(&["root", "--role", "admin"]);
        let server = fixture.serve(&[]);
        let ask = RawRequest::get("/v1/queues").token(&token);
        assert_eq!(server.send(&ask).await.status(), 200);
        let (code, listed, _) = fixture.run(&["token", "list", "--json"]);
        assert_eq!(code, Some(0));
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let id = listed["tokens"][0]["id"].as_str().unwrap();
        assert_eq!(listed["tokens"][0]["standing"], "live");
        assert_eq!(fixture.run(&["token", "revoke", "root"]).0, Some(0), "its name is enough");
        while server.send(&ask).await.status() == 200 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        assert_eq!(refusal(&server, &ask).await, refused(401, "token_invalid"));
        // It was the last token, and revoking it does not open the server.
        assert_eq!(refusal(&server, &RawRequest::get("/v1/queues")).await, refused(401, "token_missing"));
        let (code, _, err) = fixture.run(&["token", "revoke", id]);
        assert_eq!(code, Some(1), "{err}");
        assert!(fixture.run(&["token", "list"]).1.contains("revoked"));
        for _ in 0..2 {
            fixture.token(&["twin", "--role", "viewer"]);
        }
        let (code, _, err) = fixture.run(&["token", "revoke", "twin"]);
        assert!(code == Some(1) && err.contains("2 active tokens are named twin; pass the id"), "{err}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valid_token_is_required() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let token = fixture.token(&["root", "--role", "admin"]);
    let server = fixture.serve(&["--log", "debug"]);
    let ask = || RawRequest::get("/v1/queues");
    let missing = server.send(&ask()).await;
    assert_eq!(
        (problem(&missing), missing.one("www-authenticate")),
        (refused(401, "token_missing"), Some("Bearer"))
    );
    let (known, secret) = token.rsplit_once('_').unwrap();
    let guessed = format!("{known}_{}", "0".repeat(secret.len()));
    let unknown = format!("ichido_{}_{secret}", uuid::Uuid::now_v7().simple());
    for wrong in ["", "ichido", &guessed, &unknown, &token[..token.len() - 1], &format!("{token}0")] {
        assert_eq!(refusal(&server, &ask().token(wrong)).await, refused(401, "token_invalid"), "{wrong}");
    }
    let basic = ask().field("Authorization", &format!("Basic {token}"));
    assert_eq!(refusal(&server, &basic).await, refused(401, "token_invalid"));
    assert_eq!(server.send(&ask().token(&token)).await.status(), 200);
    // With a token the host does not matter: no browser sends it automatically.
    assert_eq!(server.send(&ask().token(&token).field("Host", "ichido.example")).await.status(), 200);
    assert_eq!(server.get("/").await.status(), 303, "a browser is sent to the sign-in page");
    for public in ["/livez", "/readyz", "/openapi.json", "/errors", "/errors/key_missing"] {
        assert_eq!(server.get(public).await.status(), 200, "{public}");
    }
    let mut server = server;
    server.signal("TERM");
    let (code, log) = server.wait().await;
    assert_eq!(code, Some(0));
    assert!(!log.contains(secret), "no secret is logged");
}

/// The first token requires authentication at once, without a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_token_ends_open_access() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    assert!(
        server.startup_output.contains("no tokens exist: every local user has full access"),
        "{}",
        server.startup_output
    );
    assert_eq!(server.get("/v1/queues").await.status(), 200);
    let token = fixture.token(&["root", "--role", "admin"]);
    while server.get("/v1/queues").await.status() == 200 {
        tokio::time::sleep(POLL_EVERY).await;
    }
    assert_eq!(refusal(&server, &RawRequest::get("/v1/queues")).await, refused(401, "token_missing"));
    assert_eq!(server.send(&RawRequest::get("/v1/queues").token(&token)).await.status(), 200);
}

#[tokio::test]
async fn new_token_is_the_only_output_and_says_how_to_use_it() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let (code, out, err) = fixture.run(&["token", "create", "ops", "--role", "admin"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out.lines().count(), 1, "a script reads the token from the output: {out}");
    assert!(err.contains("only once") && err.contains("ICHIDO_TOKEN") && err.contains("Bearer"), "{err}");
    assert!(err.lines().all(|line| line.len() <= 80), "short lines: {err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn public_address_requires_a_token_to_start() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let refused_start = |address: &str| {
        let mut command = ichido(fixture.folder.path());
        command.args(["serve", "--listen", address, "--store", &fixture.url]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
        if printed.next().is_some() {
            // It serves after all.
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        err
    };
    for address in ["0.0.0.0:0", "[::]:0"] {
        let err = refused_start(address);
        assert!(err.contains("ichido token create"), "{err}");
    }
    let files = std::fs::read_dir(fixture.folder.path()).unwrap();
    assert_eq!(files.count(), 0, "a refused start leaves nothing behind");
    // A revoked token is as good as none.
    fixture.token(&["gone", "--role", "admin"]);
    fixture.token(&["short", "--role", "admin", "--expires-in", "1ms"]);
    let listed: serde_json::Value =
        serde_json::from_str(&fixture.run(&["token", "list", "--json"]).1).unwrap();
    let gone = listed["tokens"].as_array().unwrap().iter().find(|token| token["name"] == "gone").unwrap();
    assert_eq!(fixture.run(&["token", "revoke", gone["id"].as_str().unwrap()]).0, Some(0));
    let err = refused_start("0.0.0.0:0");
    assert!(err.contains("is revoked or expired") && err.contains("ichido token create"), "{err}");
    assert!(
        !fixture.serve(&[]).startup_output.contains("no tokens exist"),
        "nor does that open this machine"
    );
    let token = fixture.token(&["root", "--role", "admin"]);
    let err = refused_start("0.0.0.0:0");
    assert!(err.contains("nothing encrypts its tokens") && err.contains("`public_url`"), "{err}");
    std::fs::write(fixture.folder.path().join(".env"), "ICHIDO__SERVE__PUBLIC_URL=https://ichido.example\n")
        .unwrap();
    let server = fixture.serve(&["--listen", "0.0.0.0:0"]);
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], server.address.port()));
    let mut client = RawClient::connect(address).await;
    assert_eq!(client.send(&RawRequest::get("/v1/queues").token(&token)).await.status(), 200);
    assert_eq!(problem(&client.send(&RawRequest::get("/v1/queues")).await), refused(401, "token_missing"));
}

/// DNS rebinding and CSRF: a browser on this machine must not give access.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_tokens_foreign_hosts_and_pages_are_refused() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    for host in ["evil.example", &format!("evil.example:{}", server.address.port())] {
        for request in
            [RawRequest::put("k", "{}"), RawRequest::get("/v1/queues"), RawRequest::get("/metrics")]
        {
            assert_eq!(
                refusal(&server, &request.field("Host", host)).await,
                refused(403, "host_not_allowed")
            );
        }
    }
    let here = format!("http://localhost:{}", server.address.port());
    let host = format!("localhost:{}", server.address.port());
    let page = |origin: &str| RawRequest::put("k", "{}").field("Host", &host).field("Origin", origin);
    for origin in ["http://evil.example", "null", "http://localhost:3000"] {
        assert_eq!(refusal(&server, &page(origin)).await, refused(403, "origin_not_allowed"), "{origin}");
    }
    let form = RawRequest::post("/v1/queues/demo/pause").field("Sec-Fetch-Site", "cross-site");
    assert_eq!(refusal(&server, &form).await, refused(403, "origin_not_allowed"));
    assert_eq!(server.queue("demo").await["counts"]["queued"], 0);
    assert_eq!(server.send(&page(&here)).await.status(), 201, "its own page may");
}

/// HTTP/2 has no Host header: the target names it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_same_origin_pages_may_call_over_http2() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let stream = TcpStream::connect(server.address).await.unwrap();
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.unwrap();
    tokio::spawn(connection);
    for (origin, status) in
        [(format!("http://{}", server.address), 200), ("http://evil.example".to_owned(), 403)]
    {
        let request = http::Request::post(format!("http://{}/v1/queues/demo/pause", server.address));
        let request = request.header("origin", origin).header("sec-fetch-site", "same-origin");
        let answer = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), status);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_token_settings_are_refused() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    for (arguments, part) in [
        (&["till", "--role", "producer"][..], "--identity"),
        (&["till", "--role", "producer", "--identity", "a", "--queue", "no blanks"], "--queue"),
        (&["till", "--role", "viewer", "--identity", "a"], "--role"),
        (&["till", "--role", "viewer", "--expires-in", "soon"], "--expires-in"),
        (&["", "--role", "viewer"], "NAME"),
    ] {
        let (code, out, err) = fixture.run(&[&["token", "create"], arguments].concat());
        assert_eq!((code, out.as_str(), err.contains(part)), (Some(2), "", true), "{err}");
    }
    let (code, _, err) = fixture.run(&["token", "list"]);
    assert_eq!((code, err.contains("no store at")), (Some(3), true), "reading creates none: {err}");
}
