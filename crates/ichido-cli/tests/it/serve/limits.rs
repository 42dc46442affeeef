//! The bounds, all in force: heads, bodies, connections and their times.

use super::client::{Client, Request, problem};
use super::program::{On, Place};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_does_not_end_is_cut_off() {
    let place = Place::new(On::Sqlite).await;
    let server = place.serve(&["--head-timeout", "50ms"]);
    for bytes in ["", "PRI * HT", "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\n"] {
        let mut client = Client::connect(server.address).await;
        client.write(bytes).await;
        assert!(client.try_answer().await.is_none_or(|answer| answer.status() == 408), "{bytes:?}");
        assert!(client.reader.is_at_end().await, "{bytes:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_end_is_answered_408() {
    let place = Place::new(On::Sqlite).await;
    for flags in [["--body-idle-timeout", "50ms"], ["--body-timeout", "50ms"]] {
        let server = place.serve(&flags);
        let mut client = Client::connect(server.address).await;
        let head = "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Length: 10\r\n\r\nabc";
        client.write(head).await;
        assert_eq!(problem(&client.answer().await), (408, "body_timeout".to_owned()), "{flags:?}");
        assert_eq!(server.queue("demo").await["counts"]["queued"], 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_breaks_off_puts_nothing_in() {
    let place = Place::new(On::Sqlite).await;
    let server = place.serve(&[]);
    let mut client = Client::connect(server.address).await;
    let head = "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write(format!("{head}3\r\nabc\r\nzz\r\n")).await;
    assert_eq!(problem(&client.answer().await), (400, "body_incomplete".to_owned()));
    assert_eq!(server.queue("demo").await["counts"]["queued"], 0);
}

/// One that says how long it is is not waited for; one that does not is read up to the bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_large_is_answered_413() {
    let place = Place::new(On::Sqlite).await;
    let server = place.serve(&[]);
    let head = "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\n";
    let mut client = Client::connect(server.address).await;
    client.write(format!("{head}Content-Length: 4194305\r\n\r\n")).await;
    assert_eq!(problem(&client.answer().await), (413, "body_too_large".to_owned()));
    let mut client = Client::connect(server.address).await;
    client.write(format!("{head}Transfer-Encoding: chunked\r\n\r\n")).await;
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(0x10_0000));
    for _ in 0..5 {
        client.write(&chunk).await;
    }
    assert_eq!(problem(&client.answer().await), (413, "body_too_large".to_owned()));
    // As much as there may be is taken.
    let most = Request::post("/v1/queues/demo/messages").key("k").body("x".repeat(4 << 20));
    assert_eq!(server.send(&most).await.status(), 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_and_too_large_header_fields_are_answered_431() {
    let place = Place::new(On::Sqlite).await;
    let server = place.serve(&[]);
    let many =
        (0..65).fold(Request::get("/livez"), |request, index| request.field(&format!("x-{index}"), "1"));
    assert_eq!(problem(&server.send(&many).await), (431, "head_too_large".to_owned()));
    let large = Request::get("/livez").field("x-large", &"a".repeat(17 * 1024));
    assert_eq!(problem(&server.send(&large).await), (431, "head_too_large".to_owned()));
    // Beyond the bounds of the parser there is the status alone.
    let more =
        (0..150).fold(Request::get("/livez"), |request, index| request.field(&format!("x-{index}"), "1"));
    assert_eq!(server.send(&more).await.status(), 431);
    let larger = Request::get("/livez").field("x-large", &"a".repeat(64 * 1024));
    assert_eq!(server.send(&larger).await.status(), 431);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_connections_than_allowed_wait_for_a_place() {
    let place = Place::new(On::Sqlite).await;
    let server = place.serve(&["--connections-max", "1"]);
    let mut first = Client::connect(server.address).await;
    assert_eq!(first.send(&Request::get("/livez")).await.status(), 200);
    let mut second = Client::connect(server.address).await;
    second.write(Request::put("k", "{}").bytes()).await;
    // The first still has the only place: it is served, and the second is not.
    for _ in 0..3 {
        let queues = first.send(&Request::get("/v1/queues")).await.json();
        let counts = queues["queues"][0]["counts"].as_object().unwrap().clone();
        assert!(counts.values().all(|count| count == 0), "{counts:?}");
    }
    drop(first);
    assert_eq!(second.answer().await.status(), 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_lengths_are_refused_before_anything_is_read() {
    let place = Place::new(On::Sqlite).await;
    let server = place.serve(&[]);
    let mut client = Client::connect(server.address).await;
    let smuggled = "POST /v1/queues/demo/messages HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    client.write(smuggled).await;
    let answer = client.answer().await;
    assert_eq!(problem(&answer), (400, "framing_invalid".to_owned()));
    assert!(answer.json()["detail"].as_str().unwrap().contains("both Content-Length and Transfer-Encoding"));
    assert!(answer.one("x-request-id").is_some() && answer.one("date").is_some(), "{answer:?}");
    assert!(client.reader.is_at_end().await);
    // What came before it on the same connection is answered as ever.
    let mut client = Client::connect(server.address).await;
    client.write([Request::get("/livez").bytes(), smuggled.into()].concat()).await;
    assert_eq!(client.answer().await.status(), 200);
    assert_eq!(problem(&client.answer().await), (400, "framing_invalid".to_owned()));
    for head in
        ["Content-Length: 1, 1", "Transfer-Encoding: gzip", "X-A : b", "X-A: b\r\n c", "X-A: b\nX-B: c"]
    {
        let mut client = Client::connect(server.address).await;
        client.write(format!("POST / HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n")).await;
        assert_eq!(problem(&client.answer().await), (400, "framing_invalid".to_owned()), "{head:?}");
    }
    assert_eq!(server.queue("demo").await["counts"]["queued"], 0);
}

/// What an operator chose under `[serve]` is what holds, and its refusals say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_that_were_chosen_in_the_configuration_are_in_force() {
    let place = Place::new(On::Sqlite).await;
    let chosen = "[serve]\nheaders_max = 8\nhead_bytes_max = \"2 KiB\"\nbody_bytes_max = \"1 KiB\"\nbatch_lines_max = 2\nbatch_bytes_max = \"8 KiB\"\nwaiters_max = 0\nlisteners_max = 1\n[destinations.p]\nkind = \"http\"\nurl = \"http://127.0.0.1:1/\"\n[queues.demo]\ndestination = \"p\"\n";
    std::fs::write(place.folder.path().join("ichido.toml"), chosen).unwrap();
    let server = place.serve(&[]);
    let many =
        (0..8).fold(Request::get("/livez"), |request, index| request.field(&format!("x-{index}"), "1"));
    assert_eq!(problem(&server.send(&many).await), (431, "head_too_large".to_owned()));
    let large = Request::get("/livez").field("x-large", &"a".repeat(2 << 10));
    assert_eq!(problem(&server.send(&large).await), (431, "head_too_large".to_owned()));
    let put = |key: &str, bytes: usize| {
        Request::post("/v1/queues/demo/messages?wait=30s").key(key).body("x".repeat(bytes))
    };
    let refused = server.send(&put("a", 1025)).await;
    assert_eq!(problem(&refused), (413, "body_too_large".to_owned()));
    assert!(refused.json()["detail"].as_str().unwrap().contains("more than 1 KiB"), "{}", refused.json());
    // There is no place to wait at, so that it is told at once that it has not ended.
    assert_eq!(server.send(&put("a", 1024)).await.status(), 202);

    let batch = |lines: &[String]| {
        let batch = Request::post("/v1/queues/demo/messages:batch");
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
    assert!(answer.text().contains("a batch has at most 8 KiB"), "{}", answer.text());

    let mut first = Client::connect(server.address).await;
    first.write(Request::get("/v1/events").bytes()).await;
    assert_eq!(first.reader.head().await.expect("an answer").expect("an answer").status(), 200);
    assert_eq!(problem(&server.send(&Request::get("/v1/events")).await), (503, "feed_full".to_owned()));
}
