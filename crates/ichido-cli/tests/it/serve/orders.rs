//! An order and its response, as the specification has them, with the files of the example.
// Spec: D9, D13, D18.

use http_for_tests::{Receiver, ServerAction, json, with};
use ichido_core::digest::{BodyRules, Digest};
use serde_json::Value;

use super::client::RawRequest;
use super::program::{ServeProcess, ServerFixture, ichido, on_both};

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/orders/ichido.toml");
const KEY: &str = "01JABCXYZ-ULID-5678";
const ORDER: &str = r#"{"idempotency_key":"01JABCXYZ-ULID-5678","symbol":"USDJPY","intent":"BUY","qty":10000,"limit_price":145.001,"trace_id":"do-outbox-01JB4A","meta":{"source":"DoLayer"}}"#;
const RESPONSE: &str = r#"{"broker_order_id":"brk-8842-01","accepted_at":"2025-08-24T03:40:10Z","status":"accepted","fills":[],"idempotency_key":"01JABCXYZ-ULID-5678"}"#;

/// Starts a server with the example's files, for another broker.
fn serve(fixture: &ServerFixture, broker: &Receiver, settings: &[(&str, &str)]) -> ServeProcess {
    let mut command = ichido(fixture.folder.path());
    command.args(["serve", "--store", &fixture.url, "--listen", "127.0.0.1:0"]);
    command.env("ICHIDO_CONFIG", CONFIG);
    command.env("ICHIDO__DESTINATIONS__BROKER__URL", broker.url("/orders"));
    command.env("ICHIDO__DESTINATIONS__BROKER__RECONCILE__URL", broker.url("/orders/by-key/{key}"));
    command.envs(settings.iter().copied());
    ServeProcess::spawn(&mut command)
}

fn order() -> RawRequest {
    RawRequest::put(KEY, ORDER).to("/v1/queues/orders/messages?wait=30s")
}

fn digest() -> String {
    Digest::of_body("application/json", RESPONSE.as_bytes(), &BodyRules::default()).expect("JSON").to_string()
}

on_both! {
    #[test]
    async fn order_gets_the_whole_response_at_once_and_later(fixture) {
        let broker = Receiver::answering(json("200 OK", RESPONSE)).await;
        let server = serve(&fixture, &broker, &[]);
        let sent = server.send(&order()).await;
        let message = sent.json();
        assert_eq!((sent.status(), &message["status"]), (200, &"sent".into()), "{message}");
        assert_eq!(broker.seen()[0].body, ORDER.as_bytes(), "the broker gets the caller's bytes");
        let shown = server.get(sent.one("location").unwrap()).await;
        for answer in [&sent, &shown] {
            let text = String::from_utf8(answer.body.clone()).expect("text");
            assert!(text.contains(&format!("\"body\":{RESPONSE}")), "{text}");
        }
        let result = &message["result"];
        assert_eq!((&result["receipt"], &result["result_digest"]), (&"brk-8842-01".into(), &digest().into()));
        assert_eq!((&result["response"]["kept"], &result["response"]["bytes"]), (&true.into(), &RESPONSE.len().into()));
        assert_eq!(message["last_error"], Value::Null, "a success is not an error");
        let events = server.get(&format!("{}/events", sent.one("location").unwrap())).await.json();
        for event in events["events"].as_array().unwrap() {
            assert_eq!(event["error_text"], Value::Null, "{event}");
        }
        let id = message["id"].as_str().unwrap();
        let (code, out, err) = fixture.run(&["messages", "show", id]);
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains(&format!("response     {RESPONSE}\n")), "{out}");
        assert!(out.contains("trace id     do-outbox-01JB4A\n"), "{out}");
    }

    #[test]
    async fn response_above_the_limit_leaves_size_and_digest(fixture) {
        let broker = Receiver::answering(json("200 OK", RESPONSE)).await;
        let limit = (RESPONSE.len() - 1).to_string();
        let server = serve(&fixture, &broker, &[("ICHIDO__QUEUES__ORDERS__KEEP_RESPONSE", &limit)]);
        let message = server.send(&order()).await.json();
        let (result, response) = (&message["result"], &message["result"]["response"]);
        assert_eq!((&message["status"], &result["result_digest"]), (&"sent".into(), &digest().into()), "{message}");
        assert_eq!((&response["kept"], &response["body"]), (&false.into(), &Value::Null));
        assert_eq!(response["bytes"], RESPONSE.len());
        let (_, out, _) = fixture.run(&["messages", "show", message["id"].as_str().unwrap()]);
        assert!(out.contains("not kept: larger than the queue's keep_response"), "{out}");
    }

    #[test]
    async fn response_that_is_not_read_to_its_end_has_more_bytes(fixture) {
        let broker = Receiver::answering(with("200 OK", &[("Content-Type", "text/plain")], &"x".repeat(2_000))).await;
        let config = format!(
            "[destinations.b]\nkind = \"http\"\nurl = \"{}\"\nguarantee = \"idempotent\"\nmax_response_bytes = 1000\n[queues.orders]\ndestination = \"b\"\n",
            broker.url("/orders")
        );
        std::fs::write(fixture.folder.path().join("ichido.toml"), config).unwrap();
        let server = fixture.serve(&[]);
        let message = server.send(&order()).await.json();
        let response = &message["result"]["response"];
        assert_eq!((&response["bytes"], &response["has_more"], &response["kept"]), (&1000.into(), &true.into(), &false.into()), "{message}");
        let (_, out, _) = fixture.run(&["messages", "show", message["id"].as_str().unwrap()]);
        assert!(out.contains("more than 1000 bytes, text/plain; not kept: larger than the destination's max_response_bytes"), "{out}");
    }

    /// The broker deduplicates by key, so an order whose response cannot be read is sent again.
    #[test]
    async fn unreadable_response_is_retried_and_never_a_success(fixture) {
        let broker = Receiver::start(|before, _| {
            ServerAction::Answer(json("200 OK", if before == 0 { "<html>Sign in</html>" } else { RESPONSE }))
        }).await;
        let retry = r#"{ base = "20ms", factor = 2, cap = "1s", jitter = "none" }"#;
        let server = serve(&fixture, &broker, &[("ICHIDO__QUEUES__ORDERS__RETRY", retry)]);
        let sent = server.send(&order()).await;
        let message = sent.json();
        assert_eq!((&message["status"], &message["attempts"]), (&"sent".into(), &2.into()), "{message}");
        let events = server.get(&format!("{}/events", sent.one("location").unwrap())).await.json();
        let codes: Vec<_> = events["events"].as_array().unwrap().iter().filter_map(|event| event["error_code"].as_str()).collect();
        assert_eq!(codes, ["UNKNOWN"], "{events}");
    }
}
