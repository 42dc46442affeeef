//! Queues with a JSON Schema refuse a mismatch with the location of each error, however it arrives.

use serde_json::{Value, json};

use super::client::{RawRequest, problem};
use super::program::{ServeProcess, ServerFixture, on_both};

const SCHEMA: &str = r#"{
  "type": "object",
  "required": ["symbol"],
  "properties": { "symbol": { "type": "string" }, "qty": { "type": "string", "pattern": "^[0-9]+$" } }
}"#;

/// Starts a server with a paused queue that has a schema, so its messages stay.
async fn serve(fixture: &ServerFixture) -> ServeProcess {
    let server = serve_with(fixture, SCHEMA);
    assert_eq!(server.post("/v1/queues/orders/pause").await.status(), 200);
    server
}

fn serve_with(fixture: &ServerFixture, schema: &str) -> ServeProcess {
    fixture.folder.write("order.json", schema);
    fixture.folder.write(
        "ichido.toml",
        "[destinations.p]\nkind = \"mock\"\n[queues.orders]\ndestination = \"p\"\nschema = \"order.json\"\n",
    );
    fixture.serve(&[])
}

fn put(key: &str, body: &str) -> RawRequest {
    RawRequest::put(key, body).to("/v1/queues/orders/messages")
}

async fn queued(server: &ServeProcess) -> Value {
    server.queue("orders").await["counts"]["queued"].clone()
}

on_both! {
    async fn schema_violations_are_listed_and_leave_the_key_free(fixture) {
        let server = serve(&fixture).await;
        let answer = server.send(&put("k", r#"{"symbol":7,"qty":"s3cret"}"#)).await;
        assert_eq!(problem(&answer), (422, "schema_mismatch".to_owned()));
        let faults = answer.json()["faults"].clone();
        let expected = json!([
            {"pointer": "/qty", "detail": "the value does not match \"^[0-9]+$\""},
            {"pointer": "/symbol", "detail": "the value is not of type \"string\""},
        ]);
        assert_eq!(faults, expected);
        assert!(!answer.text().contains("s3cret"), "{}", answer.text());
        for (body, code) in [("{\"symbol\":\"A\",\"symbol\":\"B\"}", "body_invalid"), ("", "body_invalid")] {
            assert_eq!(problem(&server.send(&put("k", body)).await).1, code);
        }
        let text = RawRequest::post("/v1/queues/orders/messages").key("k").field("Content-Type", "text/plain").body("hi");
        assert_eq!(problem(&server.send(&text).await), (415, "media_type_unsupported".to_owned()));
        // The key is checked first.
        assert_eq!(problem(&server.send(&put("k k", "[]")).await), (400, "key_invalid".to_owned()));
        assert_eq!(queued(&server).await, 0);
        assert_eq!(server.send(&put("k", r#"{"symbol":"ACME","qty":"10"}"#)).await.status(), 201);
        // A large body is checked on another thread, and its first error reported.
        let large = format!("{{\"symbol\":7,\"more\":\"{}\"}}", "x".repeat(100_000));
        let answer = server.send(&put("k2", &large)).await;
        assert_eq!((problem(&answer).0, &answer.json()["faults"][0]["pointer"]), (422, &json!("/symbol")));
        assert_eq!(queued(&server).await, 1);
    }

    async fn each_batch_line_is_validated_separately(fixture) {
        let server = serve(&fixture).await;
        let lines = "{\"key\":\"a\",\"body\":{\"symbol\":\"A\"}}\n{\"key\":\"b\",\"body\":{\"symbol\":7}}\n{\"key\":\"c\",\"body\":{\"symbol\":\"C\"}}\n";
        let batch = RawRequest::post("/v1/queues/orders/messages:batch").field("Content-Type", "application/x-ndjson");
        let answer = server.send(&batch.body(lines)).await;
        let results: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let statuses: Vec<u64> = results.iter().map(|result| result["status"].as_u64().unwrap()).collect();
        assert_eq!(statuses, [201, 422, 201]);
        assert_eq!(results[1]["code"], "schema_mismatch");
        assert!(results[1]["detail"].as_str().unwrap().contains("at /symbol: the value is not of type"), "{results:?}");
        assert_eq!(queued(&server).await, 2);
    }

    #[test]
    async fn ignored_member_does_not_change_the_digest(fixture) {
        fixture.folder.write(
            "ichido.toml",
            "[destinations.p]\nkind = \"mock\"\n[queues.orders]\ndestination = \"p\"\ndigest_without = [\"/trace_id\"]\n",
        );
        let server = fixture.serve(&[]);
        let first = server.send(&put("k", r#"{"symbol":"ACME","trace_id":"t-1"}"#)).await;
        let again = server.send(&put("k", r#"{"symbol":"ACME","trace_id":"t-2"}"#)).await;
        assert_eq!((first.status(), again.status()), (201, 201));
        assert_eq!(first.json()["id"], again.json()["id"]);
        let other = server.send(&put("k", r#"{"symbol":"EMCA","trace_id":"t-1"}"#)).await;
        assert_eq!(problem(&other), (409, "key_conflict".to_owned()));
        // On the store it is the same message too.
        fixture.folder.write("lines", "{\"key\":\"k\",\"body\":{\"symbol\":\"ACME\",\"trace_id\":\"t-3\"}}\n");
        let (code, out, err) = fixture.run(&["send", "orders", "--ndjson", "lines"]);
        assert_eq!((code, err.contains("0 new, 1 same, 0 refused")), (Some(0), true), "{out}{err}");
    }

    async fn direct_store_access_applies_the_schema(fixture) {
        let server = serve(&fixture).await;
        fixture.folder.write("lines", "{\"key\":\"a\",\"body\":{\"symbol\":\"A\"}}\n{\"key\":\"b\",\"body\":{}}\n");
        let (code, out, err) = fixture.run(&["send", "orders", "--ndjson", "lines"]);
        assert_eq!((code, err.contains("1 new, 0 same, 1 refused")), (Some(1), true), "{out}{err}");
        assert!(out.contains("refused line 2: schema_mismatch: the body does not match") && out.contains("\"symbol\" is a required property"), "{out}");
        assert_eq!(queued(&server).await, 1);
    }

    #[test]
    async fn replay_ignores_later_schema_changes(fixture) {
        let server = serve(&fixture).await;
        let first = server.send(&put("k", r#"{"symbol":"ACME"}"#)).await;
        assert_eq!(first.status(), 201);
        drop(server);
        // From now on it accepts only numbers.
        let server = serve_with(&fixture, &SCHEMA.replace("\"string\" }", "\"number\" }"));
        let again = server.send(&put("k", r#"{ "symbol" : "ACME" }"#)).await;
        assert_eq!((again.status(), again.one("idempotency-replayed")), (201, Some("true")), "{again:?}");
        assert_eq!(again.body, first.body);
        // Another request under the key is a conflict, not a mismatch; an unused key is free for a valid body.
        assert_eq!(problem(&server.send(&put("k", r#"{"symbol":"B"}"#)).await), (409, "key_conflict".to_owned()));
        assert_eq!(problem(&server.send(&put("k2", r#"{"symbol":"ACME"}"#)).await), (422, "schema_mismatch".to_owned()));
        let lines = "{\"key\":\"k\",\"body\":{\"symbol\":\"ACME\"}}\n{\"key\":\"k2\",\"body\":{\"symbol\":\"ACME\"}}\n{\"key\":\"k3\",\"body\":{\"symbol\":3}}\n";
        let batch = RawRequest::post("/v1/queues/orders/messages:batch").field("Content-Type", "application/x-ndjson");
        let answer = server.send(&batch.body(lines)).await;
        let results: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&results[0]["status"], &results[0]["replayed"], &results[0]["id"]), (&json!(201), &json!(true), &first.json()["id"]));
        assert_eq!((&results[1]["code"], &results[2]["replayed"]), (&json!("schema_mismatch"), &json!(false)));
        fixture.folder.write("lines", lines);
        let (code, out, err) = fixture.run(&["send", "orders", "--ndjson", "lines"]);
        assert_eq!((code, err.contains("0 new, 2 same, 1 refused")), (Some(1), true), "{out}{err}");
        assert_eq!(queued(&server).await, 2);
    }
}
