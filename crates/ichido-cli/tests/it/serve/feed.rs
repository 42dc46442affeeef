//! The feed of events.

use std::collections::VecDeque;

use serde_json::Value;

use super::client::{HUNG, RawClient, RawRequest, problem};
use super::program::{DatabaseKind, POLL_EVERY, ServeProcess, ServerFixture, on_both};

/// A subscriber.
struct Listener {
    client: RawClient,
    text: String,
    events: VecDeque<(String, Value)>,
}

impl Listener {
    async fn new(server: &ServeProcess, request: &RawRequest) -> Self {
        let mut client = RawClient::connect(server.address).await;
        client.write(request.bytes()).await;
        let head = client.reader.head().await.expect("an answer").expect("an answer");
        assert_eq!((head.status(), head.one("content-type")), (200, Some("text/event-stream")), "{head:?}");
        Self { client, text: String::new(), events: VecDeque::new() }
    }

    async fn at(server: &ServeProcess, query: &str) -> Self {
        Self::new(server, &RawRequest::get(&format!("/v1/events{query}"))).await
    }

    /// Reads more; returns `false` if the stream has ended.
    async fn more(&mut self) -> bool {
        let chunk = self.client.reader.chunk().await.expect("a chunk, or the last one");
        self.text.push_str(std::str::from_utf8(&chunk).expect("text"));
        while let Some(end) = self.text.find("\n\n") {
            let block: String = self.text.drain(..end + 2).collect();
            let line = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            if let (Some(name), Some(data)) = (line("event: "), line("data: ")) {
                self.events.push_back((name.to_owned(), serde_json::from_str(data).expect("JSON")));
            }
        }
        !chunk.is_empty()
    }

    /// Returns the next event; `None` if the stream has ended.
    async fn next(&mut self) -> Option<(String, Value)> {
        while self.events.is_empty() {
            if !self.more().await {
                return None;
            }
        }
        self.events.pop_front()
    }

    async fn until_end(&mut self) {
        let ended = tokio::time::timeout(HUNG, async { while self.next().await.is_some() {} }).await;
        ended.expect("the stream ends");
    }

    /// Returns the first event with a name that matches.
    ///
    /// Events of one poll arrive in any order, so the others are kept.
    async fn until(&mut self, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let found = self.events.iter().position(|(known, data)| known == name && fits(data));
            if let Some((_, data)) = found.and_then(|index| self.events.remove(index)) {
                return data;
            }
            assert!(self.more().await, "the stream goes on");
        }
    }
}

async fn until_listening(server: &ServeProcess, count: usize) {
    let line = format!("ichido_http_listening {count}");
    while !server.get("/metrics").await.text().lines().any(|found| found == line) {
        tokio::time::sleep(POLL_EVERY).await;
    }
}

on_both! {
    async fn feed_sends_full_state_then_changes(fixture) {
        let server = fixture.serve(&[]);
        let mut listener = Listener::at(&server, "").await;
        let queues = listener.until("queues", |_| true).await;
        assert_eq!((&queues["queues"][0]["name"], &queues["queues"][0]["paused"]), (&"demo".into(), &false.into()));
        listener.until("nodes", |nodes| nodes["nodes"][0]["alive"] == true).await;
        let destinations = listener.until("destinations", |_| true).await;
        assert_eq!(destinations["destinations"][0]["circuit"], "closed");
        assert_eq!(listener.until("alerts", |_| true).await["alerts"], serde_json::json!([]));
        assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
        listener.until("queues", |queues| queues["queues"][0]["paused"] == true).await;
        let action = listener.until("actions", |_| true).await;
        for (member, value) in [("about", "queue demo"), ("kind", "paused"), ("to", "paused"), ("actor", "local")] {
            assert_eq!(action[member], value, "{action}");
        }
        server.send(&RawRequest::put("k", "{}")).await;
        let told = listener.until("queues", |queues| queues["queues"][0]["counts"]["queued"] == 1).await;
        assert!(told["queues"][0]["oldest_waiting_at"].is_string(), "{told}");
    }

    /// Each transition arrives once and in order, including earlier ones.
    async fn feed_sends_transitions_of_watched_messages(fixture) {
        let server = fixture.serve(&[]);
        assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
        let mut hrefs = Vec::new();
        for key in ["k1", "k2"] {
            hrefs.push(server.send(&RawRequest::put(key, "{}")).await.one("location").unwrap().to_owned());
        }
        let ids: Vec<&str> = hrefs.iter().map(|href| href.rsplit('/').next().unwrap()).collect();
        let mut listener = Listener::at(&server, &format!("?message={}&message={}", ids[0], ids[1])).await;
        listener.until("destinations", |_| true).await;
        assert_eq!(server.post("/v1/queues/demo/resume").await.status(), 200);
        let mut told: Vec<Vec<Value>> = vec![Vec::new(), Vec::new()];
        while told.iter().any(|events| events.last().is_none_or(|event| event["to"] != "sent")) {
            let mut event = listener.until("message", |_| true).await;
            let id = event.as_object_mut().unwrap().remove("message").unwrap();
            told[ids.iter().position(|known| id == **known).expect("one that is watched")].push(event);
        }
        for (href, told) in hrefs.iter().zip(told) {
            let events = server.get(&format!("{href}/events")).await.json();
            assert_eq!(Value::Array(told), events["events"]);
        }
    }

    /// A valid token continues meanwhile.
    async fn revoked_or_expired_token_ends_the_feed(fixture) {
        let good = fixture.token(&["root", "--role", "admin"]);
        let revoked = fixture.token(&["screen", "--role", "viewer"]);
        // Long enough for a server to start on a busy machine.
        let expires = fixture.token(&["guest", "--role", "viewer", "--expires-in", "20s"]);
        let server = fixture.serve(&[]);
        let mut listeners = Vec::new();
        for token in [&good, &revoked, &expires] {
            let mut listener = Listener::new(&server, &RawRequest::get("/v1/events").token(token)).await;
            listener.until("queues", |_| true).await;
            listeners.push(listener);
        }
        let listed: Value = serde_json::from_str(&fixture.run(&["token", "list", "--json"]).1).unwrap();
        let screen = listed["tokens"].as_array().unwrap().iter().find(|token| token["name"] == "screen").unwrap();
        assert_eq!(fixture.run(&["token", "revoke", screen["id"].as_str().unwrap()]).0, Some(0));
        for mut listener in listeners.drain(1..) {
            listener.until_end().await;
        }
        server.send(&RawRequest::post("/v1/queues/demo/pause").token(&good)).await;
        listeners[0].until("queues", |queues| queues["queues"][0]["paused"] == true).await;
    }

    async fn first_token_ends_anonymous_feeds(fixture) {
        let server = fixture.serve(&[]);
        let mut listener = Listener::at(&server, "").await;
        listener.until("queues", |_| true).await;
        fixture.token(&["root", "--role", "admin"]);
        listener.until_end().await;
    }

    async fn stopping_server_ends_the_feed(fixture) {
        let mut server = fixture.serve(&[]);
        let mut listener = Listener::at(&server, "").await;
        listener.until("queues", |_| true).await;
        server.signal("TERM");
        while listener.next().await.is_some() {}
        assert_eq!(server.wait().await.0, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feed_listeners_are_limited_and_disconnects_release_permits() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let mut listening = Vec::new();
    for _ in 0..64 {
        listening.push(Listener::at(&server, "").await);
    }
    let refused = server.get("/v1/events").await;
    assert_eq!(problem(&refused), (503, "feed_full".to_owned()));
    assert!(refused.one("retry-after").is_some());
    until_listening(&server, 64).await;
    listening.truncate(1);
    until_listening(&server, 1).await;
    Listener::at(&server, "").await.until("queues", |_| true).await;
    listening[0].until("queues", |_| true).await;
    drop(listening);
    until_listening(&server, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_token_cannot_use_all_feed_permits() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let greedy = fixture.token(&["till", "--role", "producer", "--identity", "ann", "--queue", "demo"]);
    let other = fixture.token(&["screen", "--role", "viewer"]);
    let server = fixture.serve(&[]);
    let listen = |token: &str| RawRequest::get("/v1/events").token(token);
    let mut listening = Vec::new();
    for _ in 0..16 {
        listening.push(Listener::new(&server, &listen(&greedy)).await);
    }
    let refused = server.send(&listen(&greedy)).await;
    assert_eq!(problem(&refused), (429, "token_busy".to_owned()));
    assert!(refused.one("retry-after").is_some());
    Listener::new(&server, &listen(&other)).await.until("queues", |_| true).await;
    listening.pop();
    // The next poll notices a client that hangs up.
    while server.send_head(&listen(&greedy)).await != 200 {
        tokio::time::sleep(POLL_EVERY).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listener_receives_only_permitted_events() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let admin = fixture.token(&["root", "--role", "admin"]);
    let producer = fixture.token(&["till", "--role", "producer", "--identity", "ann", "--queue", "demo"]);
    let elsewhere = fixture.token(&["mail", "--role", "producer", "--identity", "ann", "--queue", "mail"]);
    let server = fixture.serve(&[]);
    let put = RawRequest::put("k", "{}").field("Ichido-Identity", "ben").token(&admin);
    let others = server.send(&put).await.json()["id"].as_str().unwrap().to_owned();
    let own = server.send(&RawRequest::put("k", "{}").token(&producer)).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();

    let listen = |token: &str, query: &str| RawRequest::get(&format!("/v1/events{query}")).token(token);
    let mut told = Listener::new(&server, &listen(&producer, &format!("?message={own}"))).await;
    let (name, queues) = told.next().await.unwrap();
    assert_eq!((name.as_str(), queues["queues"].as_array().unwrap().len()), ("queues", 1));
    server.send(&RawRequest::post("/v1/queues/demo/pause").token(&admin)).await;
    loop {
        let (name, data) = told.next().await.unwrap();
        assert!(matches!(name.as_str(), "queues" | "message"), "{name}");
        if data["queues"][0]["paused"] == true {
            break;
        }
    }
    let mut told = Listener::new(&server, &listen(&elsewhere, "")).await;
    assert_eq!(told.next().await.unwrap().1["queues"], serde_json::json!([]));

    let many: Vec<String> = (0..21).map(|_| format!("message={}", uuid::Uuid::now_v7())).collect();
    for (query, status, code) in [
        (format!("?message={others}"), 404, "message_unknown"),
        ("?message=4711".to_owned(), 404, "message_unknown"),
        (format!("?{}", many.join("&")), 400, "parameter_invalid"),
        ("?queue=demo".to_owned(), 400, "parameter_invalid"),
    ] {
        assert_eq!(
            problem(&server.send(&listen(&producer, &query)).await),
            (status, code.to_owned()),
            "{query}"
        );
    }
    assert_eq!(problem(&server.get("/v1/events").await), (401, "token_missing".to_owned()));
}
