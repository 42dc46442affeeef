//! An operator's steps on one message over HTTP.
// Spec: D17, E4, F2.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Event, Failure};
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use ichido_store::message::{ClaimOptions, NewMessage, Note, QueueName, Settlement};
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::{RawRequest, problem};
use super::program::{DatabaseKind, ServeProcess};
use crate::dead::fixture::{KEYED, StoreFixture, both_databases};
use crate::http_message::HttpMessage;

/// Starts a server on the fixture's letters, with paused queues so each step is visible.
pub(crate) async fn serve(fixture: &StoreFixture) -> ServeProcess {
    let server = ServeProcess::start(fixture.folder(), &["--store", &fixture.url]);
    for queue in ["orders", "ledger", "mail"] {
        assert_eq!(server.post(&format!("/v1/queues/{queue}/pause")).await.status(), 200);
    }
    server
}

async fn step(server: &ServeProcess, id: Uuid, step: &str, told: &Value) -> HttpMessage {
    let request = RawRequest::post(&format!("/v1/messages/{id}/{step}"));
    let told = if told.is_null() { String::new() } else { told.to_string() };
    server.send(&request.field("Content-Type", "application/json").body(told)).await
}

/// Returns the reason of a refusal, which changed nothing.
async fn refused(server: &ServeProcess, id: Uuid, name: &str, told: &Value) -> String {
    let target = format!("/v1/messages/{id}/events");
    let before = server.get(&target).await.json();
    let answer = step(server, id, name, told).await;
    assert_eq!(problem(&answer), (409, "action_refused".to_owned()), "{name}");
    assert_eq!(server.get(&target).await.json(), before, "nothing was changed");
    answer.json()["reason"].as_str().expect("a reason").to_owned()
}

/// Returns the last entry of a message's history.
async fn last(server: &ServeProcess, id: Uuid) -> Value {
    let events = server.get(&format!("/v1/messages/{id}/events")).await.json();
    events["events"].as_array().expect("a list").last().expect("some").clone()
}

both_databases! {
    #[test]
    async fn dead_message_is_requeued_if_its_queue_allows_it(fixture: StoreFixture) {
        let good = fixture.dead("orders", 1).await[0];
        let forbidden = fixture.dead("ledger", 1).await[0];
        let doubtful = fixture.letters("mail", 1, Failure::Permanent, Effect::Unknown).await[0];
        let done = fixture.letters("mail", 1, Failure::Permanent, Effect::Done).await[0];
        let parked = fixture.letters("mail", 1, Failure::InDoubt, Effect::Unknown).await[0];
        let server = serve(&fixture).await;
        let answer = step(&server, good, "requeue", &json!({"reason": "the broker is back"})).await;
        let message = answer.json();
        assert_eq!((answer.status(), &message["status"], &message["attempts"]), (200, &"queued".into(), &0.into()));
        let entry = last(&server, good).await;
        for (member, value) in [("kind", "requeued"), ("actor", "local"), ("error_text", "the broker is back")] {
            assert_eq!(entry[member], value, "{entry}");
        }
        for (id, reason) in [
            (forbidden, "not_allowed"),
            (doubtful, "effect_unknown"),
            (done, "was_done"),
            (parked, "effect_unknown"),
            (good, "not_dead"),
        ] {
            assert_eq!(refused(&server, id, "requeue", &Value::Null).await, reason);
        }
    }

    #[test]
    async fn failed_message_is_retried_at_once(fixture: StoreFixture) {
        let retry = Failure::Retry { due: Timestamp::from_secs(4_000_000_000) };
        let id = fixture.letters("ledger", 1, retry, Effect::NotDone).await[0];
        let server = serve(&fixture).await;
        let message = server.get(&format!("/v1/messages/{id}")).await.json();
        assert_eq!((&message["status"], &message["attempts"]), (&"failed".into(), &1.into()));
        let answer = step(&server, id, "requeue", &json!({"reason": "the broker is back"})).await;
        let message = answer.json();
        assert_eq!((answer.status(), &message["status"], &message["attempts"]), (200, &"queued".into(), &1.into()));
        let entry = last(&server, id).await;
        for (member, value) in [("kind", "requeued"), ("actor", "local"), ("error_text", "the broker is back")] {
            assert_eq!(entry[member], value, "{entry}");
        }
        assert_eq!(refused(&server, id, "requeue", &Value::Null).await, "not_dead");
    }

    #[test]
    async fn waiting_message_is_cancelled(fixture: StoreFixture) {
        let dead = fixture.dead("orders", 1).await[0];
        let server = serve(&fixture).await;
        let put = server.send(&RawRequest::put("k", "{}").to("/v1/queues/orders/messages")).await.json();
        let id = put["id"].as_str().unwrap().parse().unwrap();
        for _ in 0..2 {
            let answer = step(&server, id, "cancel", &Value::Null).await;
            assert_eq!((answer.status(), &answer.json()["status"]), (200, &"cancelled".into()));
        }
        let events = server.get(&format!("/v1/messages/{id}/events")).await.json();
        let cancels = events["events"].as_array().unwrap().iter().filter(|event| event["kind"] == "cancelled");
        assert_eq!(cancels.count(), 1, "the second one had nothing to do: {events}");
        assert_eq!(refused(&server, dead, "cancel", &Value::Null).await, "wrong_state");
    }

    // Spec: D2, H5.
    #[test]
    async fn message_in_flight_is_asked_to_stop(fixture: StoreFixture) {
        let queue = QueueName::parse("orders").unwrap();
        let new = NewMessage::new(queue.clone(), "alice", IdempotencyKey::parse("k").unwrap(), b"{}".to_vec());
        fixture.store.messages().enqueue(new).await.unwrap();
        let terms = ClaimOptions {
            node: Uuid::nil(),
            lease: Duration::from_hours(1),
            start_marks: false,
            guarantee: KEYED,
            max_time_in_flight: Duration::ZERO,
        };
        let work = fixture.store.claims().claim(&queue, NonZeroU32::MIN, terms).await.unwrap().remove(0);
        let server = serve(&fixture).await;
        for _ in 0..2 {
            let answer = step(&server, work.id, "cancel", &json!({"reason": "ordered twice"})).await;
            let asked = answer.json();
            assert_eq!((answer.status(), &asked["status"]), (202, &"sending".into()));
            let request = &asked["cancel_requested"];
            assert_eq!((&request["actor"], &request["reason"]), (&"local".into(), &"ordered twice".into()), "{asked}");
        }
        let stopped = Event::Stopped { fence: work.fence };
        let _ = fixture.store.claims().settle(Settlement::new(&work, stopped, Note::default())).await.unwrap();
        let answer = step(&server, work.id, "cancel", &Value::Null).await;
        assert_eq!((answer.status(), &answer.json()["status"]), (200, &"cancelled".into()));
    }

    #[test]
    async fn dead_message_is_discarded_with_a_reason(fixture: StoreFixture) {
        let dead = fixture.dead("orders", 1).await[0];
        let parked = fixture.letters("mail", 1, Failure::InDoubt, Effect::Unknown).await[0];
        let server = serve(&fixture).await;
        let answer = step(&server, dead, "discard", &json!({"reason": "test data"})).await;
        assert_eq!((answer.status(), &answer.json()["status"]), (200, &"dead".into()));
        assert_eq!(last(&server, dead).await["kind"], "discarded");
        assert_eq!(refused(&server, parked, "discard", &json!({"reason": "why not"})).await, "wrong_state");
        for told in [Value::Null, json!({}), json!({"reason": 1}), json!({"reason": "a", "more": true}), json!("why"), json!(["why"])] {
            assert_eq!(problem(&step(&server, dead, "discard", &told).await), (422, "body_unexpected".to_owned()), "{told}");
        }
    }

    #[test]
    async fn message_with_unknown_effect_is_decided(fixture: StoreFixture) {
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(fixture.arrived("mail", Failure::InDoubt).await);
        }
        let dead = fixture.arrived("mail", Failure::Permanent).await;
        let travelling = fixture.letters("mail", 1, Failure::InDoubt, Effect::Unknown).await[0];
        let known = fixture.dead("mail", 1).await[0];
        let server = serve(&fixture).await;
        let decision = |word: &str| json!({"decision": word, "reason": "asked the broker"});
        for (id, word, status, effect) in [
            (ids[0], "done", "sent", "done"),
            (ids[1], "not_done", "queued", "not_done"),
            (ids[2], "give_up", "dead", "unknown"),
            (dead, "not_done", "dead", "not_done"),
        ] {
            let answer = step(&server, id, "decide", &decision(word)).await;
            let message = answer.json();
            assert_eq!((answer.status(), &message["status"], &message["effect"]), (200, &status.into(), &effect.into()), "{message}");
            assert_eq!(last(&server, id).await["actor"], "local");
        }
        assert_eq!(refused(&server, travelling, "decide", &decision("not_done")).await, "too_early");
        assert_eq!(refused(&server, known, "decide", &decision("done")).await, "wrong_state");
        assert_eq!(refused(&server, ids[1], "decide", &decision("done")).await, "not_dead");
        let maybe = step(&server, travelling, "decide", &decision("maybe")).await;
        assert_eq!(problem(&maybe), (422, "body_unexpected".to_owned()));
    }

    #[test]
    async fn dead_message_is_replaced_once(fixture: StoreFixture) {
        let dead = fixture.dead("orders", 1).await[0];
        let done = fixture.letters("orders", 1, Failure::Permanent, Effect::Done).await[0];
        let doubtful = fixture.letters("orders", 1, Failure::Permanent, Effect::Unknown).await[0];
        let server = serve(&fixture).await;
        let replace = |id: Uuid, key: &str, body: &str| {
            RawRequest::post(&format!("/v1/messages/{id}/replace")).key(key).body(body)
        };
        let first = server.send(&replace(dead, "new-1", "{\"qty\":2}")).await;
        assert_eq!(first.status(), 201, "{first:?}");
        let again = server.send(&replace(dead, "new-1", "{\"qty\":2}")).await;
        assert_eq!((again.status(), &again.body, again.one("idempotency-replayed")), (201, &first.body, Some("true")));
        let new = server.get(first.one("location").unwrap()).await.json();
        assert_eq!((&new["replacement_of"], &new["status"], &new["identity"]), (&dead.to_string().into(), &"queued".into(), &"alice".into()));
        assert_eq!(last(&server, dead).await["receipt"], new["id"]);
        let other = server.send(&replace(dead, "new-1", "{\"qty\":3}")).await;
        assert_eq!(problem(&other), (409, "key_conflict".to_owned()));
        assert_eq!(refused(&server, dead, "requeue", &Value::Null).await, "has_successor");
        for (id, reason) in [(done, "was_done"), (doubtful, "effect_unknown")] {
            let answer = server.send(&replace(id, "new-2", "{}")).await;
            assert_eq!((problem(&answer).1.as_str(), &answer.json()["reason"]), ("action_refused", &reason.into()));
        }
        let knowingly = replace(done, "new-3", "{}").to(&format!("/v1/messages/{done}/replace?although_done=true"));
        assert_eq!(server.send(&knowingly).await.status(), 201);
        assert_eq!(problem(&server.post(&format!("/v1/messages/{dead}/replace")).await), (400, "key_missing".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_change_messages_and_producers_cancel_their_own() {
    let fixture = super::program::ServerFixture::new(DatabaseKind::Sqlite).await;
    let admin = fixture.token(&["root", "--role", "admin"]);
    let operator = fixture.token(&["night watch", "--role", "operator"]);
    let viewer = fixture.token(&["screen", "--role", "viewer"]);
    let producer = fixture.token(&["till", "--role", "producer", "--identity", "ann", "--queue", "demo"]);
    let other = fixture.token(&["mail", "--role", "producer", "--identity", "ben", "--queue", "demo"]);
    let server = fixture.serve(&[]);
    assert_eq!(server.send(&RawRequest::post("/v1/queues/demo/pause").token(&admin)).await.status(), 200);
    let put = server.send(&RawRequest::put("k", "{}").token(&producer)).await.json();
    let href = put["href"].as_str().unwrap();
    let ask = async |step: &str, token: &str| {
        let answer = server.send(&RawRequest::post(&format!("{href}/{step}")).token(token)).await;
        problem(&answer)
    };
    for step in ["requeue", "discard", "decide", "replace"] {
        for token in [&viewer, &producer] {
            assert_eq!(ask(step, token).await, (403, "role_insufficient".to_owned()), "{step}");
        }
    }
    assert_eq!(ask("cancel", &viewer).await, (403, "role_insufficient".to_owned()));
    assert_eq!(ask("cancel", &other).await, (404, "message_unknown".to_owned()));
    assert_eq!(ask("requeue", &operator).await, (409, "action_refused".to_owned()));
    let cancelled = server.send(&RawRequest::post(&format!("{href}/cancel")).token(&producer)).await;
    assert_eq!(cancelled.json()["status"], "cancelled");
    let events = server.send(&RawRequest::get(&format!("{href}/events")).token(&viewer)).await.json();
    assert_eq!(events["events"].as_array().unwrap().last().unwrap()["actor"], "till");
}

both_databases! {
    /// The new message must satisfy the queue.
    #[test]
    async fn replacement_that_violates_queue_schema_creates_nothing(fixture: StoreFixture) {
        let old = fixture.dead("orders", 1).await[0];
        let file = |name: &str, text: &str| std::fs::write(fixture.folder().join(name), text).unwrap();
        let config = std::fs::read_to_string(fixture.folder().join("ichido.toml")).unwrap();
        file("ichido.toml", &config.replacen("requeue = true", "requeue = true\nschema = \"order.json\"", 1));
        file("order.json", r#"{"properties": {"symbol": {"type": "string"}}}"#);
        let server = serve(&fixture).await;
        let target = format!("/v1/messages/{old}/replace");
        let answer = server.send(&RawRequest::post(&target).key("new").body("{\"symbol\":7}")).await;
        assert_eq!(problem(&answer), (422, "schema_mismatch".to_owned()));
        let answer = server.send(&RawRequest::post(&target).key("new").body("{\"symbol\":\"A\"}")).await;
        assert_eq!(answer.status(), 201, "{}", answer.text());
    }
}
