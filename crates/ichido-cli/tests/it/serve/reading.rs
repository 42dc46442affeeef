//! Reads messages, queues, nodes and the server's own state.
// Spec: D1, D13, D18, E6.

use super::client::{RawRequest, problem, send};
use super::program::{DatabaseKind, POLL_EVERY, ServerFixture, on_both};

on_both! {
    async fn message_is_shown_with_its_outcome(fixture) {
        let server = fixture.serve(&[]);
        let body = r#"{"symbol":"ACME","intent":"buy","qty":"10"}"#;
        let put = server.send(&RawRequest::put("order-1", body).field("Ichido-Identity", "ann")).await;
        let href = put.one("location").unwrap();
        let message = server.until_status(href, "sent").await;
        for (member, value) in [
            ("id", put.json()["id"].clone()),
            ("queue", "demo".into()),
            ("identity", "ann".into()),
            ("idempotency_key", "order-1".into()),
            ("content_type", "application/json".into()),
            ("request_bytes", body.len().into()),
            ("request_digest", put.json()["request_digest"].clone()),
            ("effect", "done".into()),
            ("attempts", 1.into()),
            ("max_attempts", 9.into()),
            ("next_attempt_at", serde_json::Value::Null),
            ("last_error", serde_json::Value::Null),
        ] {
            assert_eq!(message[member], value, "{member}");
        }
        assert_eq!((&message["result"]["receipt"], &message["result"]["status"]), (&"mock-1".into(), &200.into()));
        assert!(message["result"]["result_digest"].as_str().unwrap().starts_with("sha256:"));
        let events = server.get(&format!("{href}/events")).await.json();
        let kinds: Vec<_> = events["events"].as_array().unwrap().iter().map(|event| event["to"].as_str().unwrap()).collect();
        assert_eq!(kinds.last(), Some(&"sent"), "{events}");
        let nodes = server.get("/v1/nodes").await.json();
        let node = events["events"].as_array().unwrap().iter().find_map(|event| event["node"].as_str());
        assert_eq!((&nodes["nodes"][0]["id"], &nodes["nodes"][0]["alive"]), (&node.unwrap().into(), &true.into()));
    }

    /// The first entry of the trail is the acceptance, and every entry has the key and the request's correlation id.
    // Spec: D13.
    #[test]
    async fn trail_begins_with_the_acceptance(fixture) {
        let server = fixture.serve(&[]);
        let traceparent = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let put = RawRequest::put("order-1", r#"{"trace_id":"t-1"}"#).field("traceparent", traceparent);
        let put = server.send(&put).await;
        server.send(&RawRequest::put("order-2", r#"{"trace_id":"t-2"}"#)).await;
        let href = put.one("location").unwrap();
        let message = server.until_status(href, "sent").await;
        let events = server.get(&format!("{href}/events")).await.json();
        let events = events["events"].as_array().unwrap();
        let steps: Vec<_> = events.iter().map(|event| (event["from"].as_str(), event["to"].as_str().unwrap())).collect();
        assert_eq!(steps, [(None, "queued"), (Some("queued"), "sending"), (Some("sending"), "sent")]);
        assert_eq!((&events[0]["at"], &events[0]["kind"]), (&message["created_at"], &"accepted".into()));
        for event in events {
            assert_eq!((&event["idempotency_key"], &event["trace_id"]), (&"order-1".into(), &"t-1".into()), "{event}");
            assert_eq!(event["traceparent"], traceparent);
        }
        let found = server.get("/v1/messages?trace_id=t-1").await.json();
        let found: Vec<_> = found["messages"].as_array().unwrap().iter().map(|message| &message["id"]).collect();
        assert_eq!(found, [&message["id"]]);
        assert_eq!(message["trace_id"], "t-1");
    }

    /// The result of the earlier call is unknown, and a fixed word replaces it.
    // Spec: D7.
    #[test]
    async fn already_processed_message_is_sent_without_digest(fixture) {
        let server = fixture.serve(&[]);
        let faults = RawRequest::new("PUT", "/mock/faults").body(r#"{"faults":{"conflict_processed":1.0}}"#);
        assert_eq!(send(server.broker(), &faults).await.status(), 200);
        let put = server.send(&RawRequest::put("order-1", "{}")).await;
        let href = put.one("location").unwrap();
        let message = server.until_status(href, "sent").await;
        let result = &message["result"];
        assert_eq!((&result["status"], &result["result_digest"]), (&409.into(), &"sha256:from-conflict".into()));
        let events = server.get(&format!("{href}/events")).await.json();
        let of = |index: usize| (&events["events"][index]["to"], &events["events"][index]["result_digest"]);
        assert_eq!(of(1), (&"sending".into(), &serde_json::Value::Null));
        assert_eq!(of(2), (&"sent".into(), &"sha256:from-conflict".into()));
    }

    /// Without a restart; the answer says what the file says, and who set what.
    async fn parallelism_of_a_queue_is_set_and_restored(fixture) {
        let server = fixture.serve(&[]);
        let put = async |queue: &str, body: &str| {
            let request = RawRequest::new("PUT", &format!("/v1/queues/{queue}/parallelism"));
            server.send(&request.body(body)).await
        };
        let set = put("demo", r#"{"parallelism":3}"#).await;
        let parallelism = &set.json()["parallelism"];
        assert_eq!((set.status(), &parallelism["set"], &parallelism["set_by"]), (200, &3.into(), &"local".into()));
        assert!(parallelism["configured"].is_u64() && parallelism["set_at"].is_string(), "{parallelism}");
        for (wrong, why) in [(r#"{"parallelism":0}"#, "from 1 to 100000"), ("{}", "parallelism")] {
            let refused = put("demo", wrong).await;
            assert_eq!(refused.status(), 422);
            assert!(refused.json()["detail"].as_str().is_some_and(|detail| detail.contains(why)), "{}", refused.json());
        }
        assert_eq!(put("nowhere", r#"{"parallelism":3}"#).await.status(), 404);
        let restored = put("demo", r#"{"parallelism":null}"#).await.json();
        assert_eq!((&restored["parallelism"]["set"], &restored["parallelism"]["set_by"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    }

    /// A pause applies on every node, and names who paused; messages are still accepted.
    async fn a_queue_is_paused_and_resumed(fixture) {
        let server = fixture.serve(&[]);
        let paused = server.post("/v1/queues/demo/pause").await;
        assert_eq!((paused.status(), &paused.json()["paused"]), (200, &true.into()));
        let put = server.send(&RawRequest::put("k", "{}")).await;
        let queue = server.queue("demo").await;
        assert_eq!((&queue["paused"], &queue["paused_by"], &queue["counts"]["queued"]), (&true.into(), &"local".into(), &1.into()));
        assert!(queue["oldest_waiting_seconds"].as_f64().is_some_and(|age| 0.0 <= age), "{queue}");
        assert!(queue["paused_at"].is_string());
        let resumed = server.post("/v1/queues/demo/resume").await.json();
        assert_eq!((&resumed["paused"], &resumed["paused_by"]), (&false.into(), &serde_json::Value::Null));
        server.until_status(put.one("location").unwrap(), "sent").await;
        while server.queue("demo").await["counts"]["sent"] != 1 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        let nowhere = server.post("/v1/queues/nowhere/pause").await;
        assert_eq!(problem(&nowhere), (404, "queue_unknown".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_is_returned_as_a_download() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let page = "<script>alert(1)</script>";
    let put =
        RawRequest::post("/v1/queues/demo/messages").key("k").field("Content-Type", "text/html").body(page);
    let href = server.send(&put).await.one("location").unwrap().to_owned();
    let given = server.get(&format!("{href}/request")).await;
    assert_eq!((given.status(), given.text(), given.one("content-type")), (200, page, Some("text/html")));
    assert_eq!(given.one("x-content-type-options"), Some("nosniff"));
    assert_eq!(given.one("content-disposition"), Some("attachment"));
    assert!(given.one("content-security-policy").unwrap().contains("sandbox"));
}

/// Anybody who gets a problem can open its type, with a token or without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_type_of_a_problem_is_a_page() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    fixture.token(&["ops", "--role", "admin"]);
    let server = fixture.serve(&[]);
    let refused = server.send(&RawRequest::get("/v1/messages")).await;
    assert_eq!(refused.json()["type"], "/errors/token_missing");
    let page = server.send(&RawRequest::get("/errors/token_missing")).await;
    assert_eq!((page.status(), page.one("content-type")), (200, Some("text/markdown; charset=utf-8")));
    assert!(page.text().starts_with("# `token_missing` (401)\n"), "{}", page.text());
    let browser = RawRequest::get("/errors/token_missing").field("Accept", "text/html,*/*;q=0.8");
    let page = server.send(&browser).await;
    assert!(page.text().contains("<h1><code>token_missing</code> (401)</h1>"), "{}", page.text());
    assert_eq!(page.one("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.one("cache-control"), Some("public, max-age=3600"));
    let index = server.send(&RawRequest::get("/errors")).await;
    assert!(index.status() == 200 && index.text().contains("(token_missing.md)"), "{}", index.text());
    let unknown = server.send(&RawRequest::get("/errors/nonsense")).await;
    assert_eq!(problem(&unknown), (404, "route_unknown".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn browsers_do_not_guess_the_type_of_a_response() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    assert_eq!(server.send(&RawRequest::put("k", "{}")).await.one("x-content-type-options"), Some("nosniff"));
    for target in
        ["/", "/v1/messages", "/v1/queues", "/v1/nothing", "/livez", "/metrics", "/openapi.json", "/errors"]
    {
        let answer = server.get(target).await;
        assert_eq!(answer.one("x-content-type-options"), Some("nosniff"), "{target}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_resource_is_a_problem() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    let nobody = format!("/v1/messages/{}", uuid::Uuid::now_v7());
    for (method, target, status, code) in [
        ("GET", nobody.as_str(), 404, "message_unknown"),
        ("GET", &format!("{nobody}/events"), 404, "message_unknown"),
        ("GET", &format!("{nobody}/request"), 404, "message_unknown"),
        ("GET", "/v1/messages/4711", 404, "message_unknown"),
        ("GET", "/v1/nothing", 404, "route_unknown"),
        ("GET", "/v1/queues?limit=1", 400, "parameter_invalid"),
        ("DELETE", "/v1/queues", 405, "method_not_allowed"),
        ("GET", "/v1/queues/demo/messages", 405, "method_not_allowed"),
        ("POST", "/livez", 405, "method_not_allowed"),
    ] {
        let answer = server.send(&RawRequest::new(method, target)).await;
        assert_eq!(problem(&answer), (status, code.to_owned()), "{method} {target}");
        assert_eq!(answer.one("allow").is_some(), status == 405, "{method} {target}");
        assert!(answer.one("x-request-id").is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_endpoints_report_the_server_state() {
    let fixture = ServerFixture::new(DatabaseKind::Sqlite).await;
    let server = fixture.serve(&[]);
    assert_eq!(server.get("/livez").await.text(), "ok\n");
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status(), ready.json()), (200, serde_json::json!({"status": "ready"})));
    let verbose = server.get("/readyz?verbose").await.json();
    let names: Vec<_> =
        verbose["checks"].as_array().unwrap().iter().map(|check| (&check["name"], &check["ok"])).collect();
    assert_eq!(names, [(&"store".into(), &true.into()), (&"worker".into(), &true.into())]);
    server.send(&RawRequest::put("k", "{}").to("/v1/queues/demo/messages?wait=30s")).await;
    let metrics = server.get("/metrics").await;
    for line in [
        "outbox_send_total{queue=\"demo\",outcome=\"success\"} 1",
        "ichido_http_requests_total{method=\"POST\",status=\"200\"} 1",
    ] {
        assert!(metrics.text().lines().any(|found| found == line), "{line} in {}", metrics.text());
    }
    let page = server.get("/").await;
    assert!(page.one("content-type").unwrap().starts_with("text/html"));
    for link in page.text().split("href=\"").skip(1) {
        let target = link.split(['"', '#']).next().unwrap();
        if !target.is_empty() {
            assert_eq!(server.get(target).await.status(), 200, "{target}");
        }
    }
    let description = server.get("/openapi.json").await;
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    assert_eq!(description.text(), std::fs::read_to_string(kept).unwrap());
}
