//! When a message is first sent, and before which others.
// Spec: H5.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::message::{ClaimOptions, QueueName};
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::{RawRequest, problem};
use super::program::on_both;

const HOUR: Duration = Duration::from_hours(1);

/// Returns a request with this query.
fn put(key: &str, query: &str) -> RawRequest {
    RawRequest::put(key, "{}").to(&format!("/v1/queues/demo/messages?{query}"))
}

fn moment(text: &Value) -> Timestamp {
    text.as_str().and_then(Timestamp::parse).unwrap_or_else(|| panic!("{text} is not a time"))
}

on_both! {
    #[test]
    async fn a_delayed_message_is_sent_when_due(fixture) {
        let server = fixture.serve(&[]);
        let first = server.send(&put("k-1", "delay=1h")).await;
        assert_eq!(first.status(), 201, "{first:?}");
        let (accepted, href) = (first.json(), first.one("location").unwrap());
        let shown = server.get(href).await.json();
        assert_eq!((&shown["status"], &shown["attempts"], &shown["priority"]), (&json!("queued"), &json!(0), &json!(2)));
        assert_eq!(moment(&shown["next_attempt_at"]), moment(&shown["created_at"]).plus(HOUR));
        assert_eq!((&accepted["run_at"], &accepted["priority"]), (&shown["next_attempt_at"], &json!(2)), "{accepted}");
        let listed = server.get("/v1/messages?state=queued").await.json();
        assert_eq!(listed["messages"][0]["next_attempt_at"], accepted["run_at"], "{listed}");
        // Another process whose clock is an hour ahead promotes the message, and the server sends it.
        let store = Store::open(&fixture.url, 2).await.unwrap();
        assert_eq!(store.claims().promote(10).await.unwrap(), []);
        store.advance_clock(HOUR);
        assert_eq!(store.claims().promote(10).await.unwrap().len(), 1);
        server.until_status(href, "sent").await;
        let again = server.send(&put("k-1", "delay=1h")).await;
        assert_eq!((again.status(), &again.body), (201, &first.body), "the same after it was sent");
    }

    #[test]
    async fn run_at_is_kept_to_the_microsecond_and_the_past_means_now(fixture) {
        let server = fixture.serve(&[]);
        let run_at = Store::open(&fixture.url, 2).await.unwrap().now().await.unwrap().plus(HOUR);
        let accepted = server.send(&put("k-1", &format!("run_at={run_at}"))).await;
        assert_eq!(moment(&accepted.json()["run_at"]), run_at);
        let shown = server.get(accepted.one("location").unwrap()).await.json();
        assert_eq!(moment(&shown["next_attempt_at"]), run_at);
        let past = server.send(&put("k-2", "run_at=2020-01-01T00:00:00Z&wait=30s")).await;
        assert_eq!((past.status(), &past.json()["status"]), (200, &json!("sent")), "{past:?}");
    }

    #[test]
    async fn priority_orders_the_next_claim(fixture) {
        let server = fixture.serve(&[]);
        assert_eq!(server.post("/v1/queues/demo/pause").await.status(), 200);
        for (key, query) in [("default", "wait=0s"), ("last", "priority=255"), ("first", "priority=0"), ("second", "priority=1")] {
            assert!(server.send(&put(key, query)).await.status() < 300, "{key}");
        }
        drop(server);
        let store = Store::open(&fixture.url, 2).await.unwrap();
        let queue = QueueName::parse("demo").unwrap();
        store.queues().pause(&queue, false, None).await.unwrap();
        let options = ClaimOptions {
            node: Uuid::now_v7(),
            lease: HOUR,
            start_marks: false,
            guarantee: Guarantee::Idempotent,
            max_time_in_flight: HOUR,
        };
        let claimed = store.claims().claim(&queue, NonZeroU32::new(10).unwrap(), options).await.unwrap();
        let keys: Vec<&str> = claimed.iter().map(|message| message.key.as_str()).collect();
        assert_eq!(keys, ["first", "second", "default", "last"]);
    }

    #[test]
    async fn lines_of_a_batch_have_their_own_schedule(fixture) {
        let server = fixture.serve(&[]);
        let run_at = Store::open(&fixture.url, 2).await.unwrap().now().await.unwrap().plus(HOUR);
        let lines = [
            r#"{"key":"a","body":1,"delay":"1h","priority":7}"#.to_owned(),
            format!(r#"{{"key":"b","body":1,"run_at":"{run_at}"}}"#),
            r#"{"key":"c","body":1,"priority":0}"#.to_owned(),
            r#"{"key":"d","body":1,"priority":256}"#.to_owned(),
            format!(r#"{{"key":"d","body":1,"delay":"1h","run_at":"{run_at}"}}"#),
            r#"{"key":"d","body":1,"delay":3600}"#.to_owned(),
        ];
        let batch = RawRequest::post("/v1/queues/demo/messages:batch").field("Content-Type", "application/x-ndjson");
        let answer = server.send(&batch.body(lines.join("\n"))).await;
        let results: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut shown = Vec::new();
        for result in &results[..3] {
            shown.push(server.get(result["href"].as_str().unwrap()).await.json());
        }
        assert_eq!(moment(&shown[0]["next_attempt_at"]), moment(&shown[0]["created_at"]).plus(HOUR));
        assert_eq!(moment(&shown[1]["next_attempt_at"]), run_at);
        let priorities: Vec<&Value> = shown.iter().map(|message| &message["priority"]).collect();
        assert_eq!(priorities, [&json!(7), &json!(2), &json!(0)]);
        server.until_status(results[2]["href"].as_str().unwrap(), "sent").await;
        for (result, part) in results[3..].iter().zip(["priority must be", "both given", "delay is not a string"]) {
            assert_eq!((&result["status"], &result["code"]), (&json!(400), &json!("line_invalid")), "{result}");
            assert!(result["detail"].as_str().unwrap().contains(part), "{result}");
        }
        let listed = server.get("/v1/messages").await.json();
        assert_eq!(listed["messages"].as_array().unwrap().len(), 3, "nothing else was written");
    }

    #[test]
    async fn a_duplicate_keeps_the_first_schedule(fixture) {
        let server = fixture.serve(&[]);
        let first = server.send(&put("k-1", "delay=1h&priority=1")).await;
        let href = first.one("location").unwrap();
        // A client that retries may compute its time anew.
        for query in ["delay=1h&priority=1", "delay=2h", "run_at=2020-01-01T00:00:00Z&priority=0"] {
            let again = server.send(&put("k-1", query)).await;
            assert_eq!((again.status(), again.one("idempotency-replayed")), (201, Some("true")), "{query}");
            assert_eq!(again.body, first.body, "{query}: it shows the schedule that applies");
        }
        let plain = server.send(&RawRequest::put("k-1", "{}")).await;
        assert_eq!((plain.status(), &plain.json()["id"]), (201, &first.json()["id"]));
        let shown = server.get(href).await.json();
        assert_eq!((&shown["next_attempt_at"], &shown["priority"]), (&first.json()["run_at"], &json!(1)));
        let other = server.send(&put("k-1", "delay=1h").body("{\"other\":1}")).await;
        assert_eq!(problem(&other), (409, "key_conflict".to_owned()));
    }

    #[test]
    async fn bad_schedules_are_refused_and_enqueue_nothing(fixture) {
        let server = fixture.serve(&[]);
        for (query, part) in [
            ("priority=256", "priority must be a whole number from 0"),
            ("priority=-1", "priority must be"),
            ("priority=", "priority must be"),
            ("priority=%2B1", "priority must be"),
            ("delay=soon", "delay is not a duration"),
            ("delay=30", "delay is not a duration"),
            ("delay=367d", "delay is longer than 366d"),
            ("delay=99999d", "delay is longer than 366d"),
            ("run_at=tomorrow", "run_at is not a time"),
            ("run_at=2026-11-15T03:00:00%2B01:00", "run_at is not a time in UTC"),
            ("run_at=9999-01-01T00:00:00Z", "run_at is more than 366d ahead"),
            ("delay=1s&run_at=2020-01-01T00:00:00Z", "delay and run_at are both given"),
            ("delay=1s&delay=2s", "the parameter delay is repeated"),
        ] {
            let refused = server.send(&put("k", query)).await;
            assert_eq!(problem(&refused), (400, "parameter_invalid".to_owned()), "{query}");
            let detail = refused.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains(part), "{query}: {detail}");
        }
        assert_eq!(server.get("/v1/messages").await.json()["messages"], json!([]));
    }

    #[test]
    async fn a_delayed_message_can_be_cancelled(fixture) {
        let server = fixture.serve(&[]);
        let accepted = server.send(&put("k-1", "delay=1h")).await;
        let href = accepted.one("location").unwrap();
        assert_eq!(server.post(&format!("{href}/cancel")).await.status(), 200);
        let shown = server.get(href).await.json();
        assert_eq!((&shown["status"], &shown["next_attempt_at"]), (&json!("cancelled"), &Value::Null));
        let store = Store::open(&fixture.url, 2).await.unwrap();
        store.advance_clock(HOUR);
        assert_eq!(store.claims().promote(10).await.unwrap(), [], "it is never sent");
    }
}
