//! Searches messages: filters, pages, fields of requests.
// Issue 7.

use std::fmt::Write as _;

use serde_json::Value;

use super::client::{RawClient, RawRequest, problem};
use super::program::{DatabaseKind, POLL_EVERY, ServeProcess, ServerFixture, on_both};

/// Returns the keys on a page, and the cursor of the next one.
async fn page(server: &ServeProcess, query: &str) -> (Vec<String>, Option<String>) {
    let answer = server.get(&format!("/v1/messages?{query}")).await;
    assert_eq!(answer.status(), 200, "{query}: {answer:?}");
    keys(&answer.json())
}

fn keys(page: &Value) -> (Vec<String>, Option<String>) {
    let listed = page["messages"].as_array().expect("a list").iter();
    let keys = listed.map(|message| message["idempotency_key"].as_str().expect("a key").to_owned());
    (keys.collect(), page["next"].as_str().map(str::to_owned))
}

/// Returns the keys of all pages, each of limited size.
async fn all(server: &ServeProcess, query: &str) -> Vec<String> {
    let (mut found, mut next) = page(server, query).await;
    while let Some(cursor) = next {
        let (more, after) = page(server, &format!("{query}&cursor={cursor}")).await;
        found.extend(more);
        next = after;
    }
    found
}

on_both! {
    async fn messages_are_found_by_search_parameters(fixture) {
        let server = fixture.serve(&[]);
        let sent = server.send(&RawRequest::put("first", "{}").to("/v1/queues/demo/messages?wait=30s")).await.json();
        assert_eq!(sent["status"], "sent");
        assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
        for (key, identity, body) in [
            ("k1", "ann", r#"{"symbol":"ACME","qty":10.0}"#),
            ("k2", "ben", r#"{"symbol":"ACME","qty":"10"}"#),
            ("k3", "ann", r#"{"symbol":"OTHER","legs":[{"a":1}]}"#),
            ("k4", "ann", "no JSON"),
        ] {
            let put = RawRequest::post("/v1/queues/demo/messages").key(key).field("Ichido-Identity", identity);
            assert_eq!(server.send(&put.body(body)).await.status(), 201);
        }
        let created = server.get("/v1/messages?key=k3").await.json()["messages"][0]["created_at"].clone();
        let created = created.as_str().unwrap();
        for (query, expected) in [
            ("", vec!["k4", "k3", "k2", "k1", "first"]),
            ("queue=demo&state=queued", vec!["k4", "k3", "k2", "k1"]),
            ("state=sent", vec!["first"]),
            ("state=dead", vec![]),
            ("identity=ann&state=queued", vec!["k4", "k3", "k1"]),
            ("key=k2", vec!["k2"]),
            ("code=BROKER_5XX", vec![]),
            (&format!("created_from={created}"), vec!["k4", "k3"]),
            (&format!("created_before={created}&state=queued"), vec!["k2", "k1"]),
            ("field=/symbol&value=ACME", vec!["k2", "k1"]),
            ("field=/qty&value=10", vec!["k2", "k1"]),
            ("field=/qty&value=1e1&identity=ann", vec!["k1"]),
            ("field=/qty&value=%2210%22", vec!["k2"]),
            ("field=/legs&value=[{%22a%22:1.0}]", vec!["k3"]),
        ] {
            assert_eq!(all(&server, query).await, expected, "{query}");
            let by_two = format!("{query}&limit=2");
            assert_eq!(all(&server, by_two.trim_start_matches('&')).await, expected, "{by_two}");
        }
        let elsewhere = server.get("/v1/messages?queue=elsewhere").await;
        assert_eq!(problem(&elsewhere), (404, "queue_unknown".to_owned()), "nobody knows it");
        let listing = server.get("/v1/messages").await;
        assert!(!listing.text().contains("ACME"), "a listing shows no request: {}", listing.text());
        let shown = &listing.json()["messages"][0];
        assert_eq!((&shown["request_bytes"], &shown["status"]), (&7.into(), &"queued".into()));
        assert_eq!(server.get(shown["href"].as_str().unwrap()).await.json()["id"], shown["id"]);
    }

    /// One request scans a bounded number of messages, and returns where to continue.
    async fn a_rare_field_is_found_page_by_page(fixture) {
        let server = fixture.serve(&[]);
        assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
        let mut lines = r#"{"key":"rare","body":{"symbol":"RARE"}}"#.to_owned();
        for number in 0..1_050 {
            write!(lines, "\n{{\"key\":\"k{number}\",\"body\":{{\"symbol\":\"ACME\"}}}}").unwrap();
        }
        let batch = RawRequest::post("/v1/queues/demo/messages:batch")
            .field("Content-Type", "application/x-ndjson")
            .body(lines);
        assert_eq!(server.send(&batch).await.status(), 200);
        let query = "field=/symbol&value=RARE";
        let first = server.get(&format!("/v1/messages?{query}")).await.json();
        assert_eq!(keys(&first).0, Vec::<String>::new(), "not among the newest");
        assert!(first["searched_back_to"].as_str().is_some_and(|time| time.starts_with("20")), "{first}");
        let (found, next) = page(&server, &format!("{query}&cursor={}", first["next"].as_str().unwrap())).await;
        assert_eq!((found, next), (vec!["rare".to_owned()], None));
    }

    /// A filter without an index examines a bounded number of messages; one with an index finds its message at once.
    async fn rare_message_is_found_at_once_or_the_page_says_how_far_it_searched(fixture) {
        let server = fixture.serve(&[]);
        assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
        let rare = RawRequest::put("rare", "1").field("Ichido-Identity", "ann");
        assert_eq!(server.send(&rare).await.status(), 201);
        for part in 0..3 {
            let mut lines = String::new();
            for number in 0..4_000 {
                writeln!(lines, r#"{{"key":"k{part}-{number}","body":1}}"#).unwrap();
            }
            let batch = RawRequest::post("/v1/queues/demo/messages:batch").field("Content-Type", "application/x-ndjson");
            assert_eq!(server.send(&batch.field("Ichido-Identity", "ben").body(lines)).await.status(), 200);
        }
        for query in ["identity=ann", "key=rare", "key=rare&identity=ann", "key=rare&queue=demo&identity=ann"] {
            assert_eq!(page(&server, query).await, (vec!["rare".to_owned()], None), "{query}");
        }
        let created = server.get("/v1/messages?key=k0-0").await.json()["messages"][0]["created_at"].clone();
        let old = format!("queue=demo&created_before={}", created.as_str().unwrap());
        let first = server.get(&format!("/v1/messages?{old}")).await.json();
        assert_eq!(keys(&first).0, Vec::<String>::new(), "not among the newest");
        assert!(first["searched_back_to"].is_string(), "{first}");
        assert_eq!(all(&server, &old).await, ["rare"]);
        let full = server.get("/v1/messages?queue=demo&state=queued").await.json();
        assert_eq!((keys(&full).0.len(), &full["searched_back_to"]), (50, &Value::Null));
    }

    async fn messages_are_found_by_the_first_digits_of_their_ids(fixture) {
        let server = fixture.serve(&[]);
        let mut ids = Vec::new();
        for key in ["k1", "k2"] {
            let accepted = server.send(&RawRequest::put(key, "{}")).await.json();
            ids.push(accepted["id"].as_str().expect("an id").to_owned());
        }
        for (key, id) in [("k1", &ids[0]), ("k2", &ids[1])] {
            let digits: String = id.chars().filter(|digit| *digit != '-').collect();
            for prefix in [id.as_str(), &id[..id.len() - 1], &digits, &digits.to_uppercase()] {
                let found = page(&server, &format!("id={prefix}")).await;
                assert_eq!(found.0, [key], "{prefix}");
            }
        }
        assert_eq!(page(&server, &format!("id={}", &ids[0][..4])).await.0, ["k2", "k1"], "enqueued within days");
        assert_eq!(page(&server, &format!("id={}&key=k1", &ids[0][..4])).await.0, ["k1"]);
        assert_eq!(page(&server, "id=ffff-ff").await, (vec![], None));
    }

    async fn producer_sees_only_its_own_messages(fixture) {
        let admin = fixture.token(&["root", "--role", "admin"]);
        let viewer = fixture.token(&["screen", "--role", "viewer"]);
        let producer = fixture.token(&["till", "--role", "producer", "--identity", "ann", "--queue", "demo"]);
        let elsewhere = fixture.token(&["mail", "--role", "producer", "--identity", "ann", "--queue", "mail"]);
        let server = fixture.serve(&[]);
        for (key, identity) in [("k1", "ann"), ("k2", "ben")] {
            let put = RawRequest::put(key, "{}").field("Ichido-Identity", identity).token(&admin);
            assert_eq!(server.send(&put).await.status(), 201);
        }
        let ask = async |query: &str, token: &str| {
            server.send(&RawRequest::get(&format!("/v1/messages{query}")).token(token)).await
        };
        for (token, expected) in [(&viewer, vec!["k2", "k1"]), (&producer, vec!["k1"]), (&elsewhere, vec![])] {
            assert_eq!(keys(&ask("", token).await.json()), (expected.iter().map(|key| (*key).to_owned()).collect(), None));
        }
        assert_eq!(keys(&ask("?queue=demo&identity=ann", &producer).await.json()).0, ["k1"]);
        assert_eq!(problem(&ask("?identity=ben", &producer).await), (403, "role_insufficient".to_owned()));
        assert_eq!(problem(&ask("?queue=demo", &elsewhere).await), (404, "queue_unknown".to_owned()));
        assert_eq!(problem(&server.get("/v1/messages").await), (401, "token_missing".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_search_query_is_refused() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    for query in [
        "cursor=",
        "cursor=AAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "cursor=..%2F..",
        "limit=0",
        "limit=201",
        "limit=-1",
        "state=gone",
        "code=TEAPOT",
        "queue=no%20blanks",
        "created_from=yesterday",
        "created_before=2026-13-01T00:00:00Z",
        "field=/a",
        "value=1",
        "field=a&value=1",
        "identity=%00",
        "identity=%ff",
        "%ff=1",
        "state=sent&state=dead",
        "order=oldest",
        "id=",
        "id=01a",
        "id=order-17",
        "id=01a1df2e24dc702a80003798d20b238000",
    ] {
        let answer = server.get(&format!("/v1/messages?{query}")).await;
        assert_eq!(problem(&answer), (400, "parameter_invalid".to_owned()), "{query}");
    }
    let answer = server.get("/v1/messages?limit=1&identity=a%ff").await;
    assert!(
        answer.json()["detail"].as_str().unwrap().contains("character 19"),
        "its location is reported: {answer:?}"
    );
    assert_eq!(problem(&server.get("/v1/events?message=%ff").await), (400, "parameter_invalid".to_owned()));
    let answer = server.get("/v1/messages?key=").await;
    assert_eq!(problem(&answer), (400, "key_invalid".to_owned()));
}

/// Returns how many requests are in flight, including this one.
async fn in_flight(server: &ServeProcess, token: &str) -> usize {
    let page = server.send(&RawRequest::get("/metrics").token(token)).await;
    let line = page.text().lines().find_map(|line| line.strip_prefix("ichido_http_in_flight "));
    line.expect("it is measured").parse().expect("a count")
}

/// Many slow listings of a producer do not delay an operator's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_search_precedes_producer_search() {
    const LISTINGS: usize = 8;
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let producer = fixture.token(&["till", "--role", "producer", "--identity", "shop", "--queue", "demo"]);
    let operator = fixture.token(&["night watch", "--role", "operator"]);
    let server = fixture.serve(&[]);
    let pause = RawRequest::post("/v1/queues/demo/pause").token(&operator);
    assert_eq!(server.send(&pause).await.status(), 200);
    // Each takes a while to parse when a field is searched in it.
    let large = format!("[{}1]", "1,".repeat(500_000));
    for number in 0..32 {
        let put = RawRequest::put(&format!("k-{number}"), &large).token(&producer);
        assert_eq!(server.send(&put).await.status(), 201);
    }
    let slow = RawRequest::get("/v1/messages?field=/symbol&value=none").token(&producer);
    let mut clients = Vec::new();
    for _ in 0..LISTINGS {
        let mut client = RawClient::connect(server.address).await;
        client.write(slow.bytes()).await;
        clients.push(client);
    }
    while in_flight(&server, &operator).await <= LISTINGS {
        tokio::time::sleep(POLL_EVERY).await;
    }
    let listed = server.send(&RawRequest::get("/v1/messages?limit=1").token(&operator)).await;
    assert_eq!(listed.status(), 200);
    // In one line with them it would have started after all others, four at a time, and at most three would be left.
    let left = in_flight(&server, &operator).await - 1;
    assert!(LISTINGS / 2 < left, "{left} of {LISTINGS} have no response yet");
}
