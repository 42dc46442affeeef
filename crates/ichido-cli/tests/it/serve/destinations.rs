//! Destinations: their state, and how fast they are called.

use std::time::Duration;

use ichido::worker::Paces;
use serde_json::{Value, json};

use super::client::{RawRequest, problem, send};
use super::program::{DatabaseKind, POLL_EVERY, ServeProcess, on_both};
use super::stepping::serve;
use crate::dead::fixture::{StoreFixture, both_databases};
use crate::http_message::HttpMessage;

async fn set(server: &ServeProcess, name: &str, body: &Value) -> HttpMessage {
    let request = RawRequest::new("PUT", &format!("/v1/destinations/{name}/pace"));
    server.send(&request.field("Content-Type", "application/json").body(body.to_string())).await
}

async fn destination(server: &ServeProcess, name: &str) -> Value {
    let listed = server.get("/v1/destinations").await.json();
    let found = listed["destinations"].as_array().expect("a list").iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {listed}")).clone()
}

/// Adds the row of a destination that asked not to be called for half an hour.
pub(crate) async fn paused(fixture: &StoreFixture) {
    let until = fixture.store.now().await.unwrap().plus(Duration::from_mins(30)).as_micros();
    let row = json!({
        "rate": { "free": { "since": 0, "accepted": 0, "accepted_before": 0 } },
        "circuit": { "closed": { "failures": 0 } },
        "last_slot": 0, "wanted_until": 0, "paused_until": until, "asking": true, "max_rate": null,
    });
    let version = fixture.store.paces().read("broker").await.unwrap().map_or(0, |row| row.version);
    assert!(fixture.store.paces().write("broker", version, row.to_string().as_bytes()).await.unwrap());
}

both_databases! {
    #[test]
    async fn rate_changes_are_in_the_audit_trail(fixture: StoreFixture) {
        let server = serve(&fixture).await;
        let before = destination(&server, "broker").await;
        for (member, value) in [
            ("kind", json!("http")),
            ("queues", json!(["orders", "ledger"])),
            ("rate", Value::Null),
            ("rate_set", Value::Null),
            ("slowed", json!(false)),
            ("paused_until", Value::Null),
            ("circuit", json!("closed")),
        ] {
            assert_eq!(before[member], value, "{member} of {before}");
        }
        let answer = set(&server, "broker", &json!({"rate": 2.5})).await;
        assert_eq!((answer.status(), &answer.json()["rate"]), (200, &json!(2.5)), "{answer:?}");
        let after = destination(&server, "broker").await;
        assert_eq!((&after["rate"], &after["rate_set"]), (&json!(2.5), &json!(2.5)));
        assert_eq!((&after["rate_set_by"], after["rate_set_at"].is_string()), (&json!("local"), true));
        assert_eq!(set(&server, "broker", &json!({"rate": null})).await.json()["rate_set"], Value::Null);
        let actions = fixture.store.actions().list(None, 10).await.unwrap();
        let body: Vec<_> = actions
            .iter()
            .filter(|row| row.action.about == "destination broker")
            .map(|row| (row.action.kind.as_str(), row.action.from.as_str(), row.action.to.as_str(), row.action.actor.as_deref()))
            .collect();
        assert_eq!(body, [
            ("pace_cleared", "2.5/s", "as configured", Some("local")),
            ("pace_set", "as configured", "2.5/s", Some("local")),
        ]);
    }

    #[test]
    async fn invalid_rate_is_refused(fixture: StoreFixture) {
        let server = serve(&fixture).await;
        for body in [json!({}), json!({"rate": 0}), json!({"rate": -1}), json!({"rate": 1e9}), json!({"rate": "fast"}), json!({"rate": 1, "burst": 2})] {
            assert_eq!(problem(&set(&server, "broker", &body).await), (422, "body_unexpected".to_owned()), "{body}");
        }
        assert_eq!(problem(&set(&server, "nowhere", &json!({"rate": 1})).await), (404, "destination_unknown".to_owned()));
        let actions = fixture.store.actions().list(None, 10).await.unwrap();
        assert!(actions.iter().all(|row| !row.action.about.starts_with("destination")), "{actions:?}");
    }
}

on_both! {
    /// A pause that a destination asks for is visible.
    async fn destination_that_asks_to_wait_is_shown_as_paused(fixture) {
        let server = fixture.serve(&[]);
        let faults = RawRequest::new("PUT", "/mock/faults").body(r#"{"faults":{"rate_limited":1.0},"retry_after_s":3600}"#);
        assert_eq!(send(server.broker(), &faults).await.status(), 200);
        server.send(&RawRequest::put("k", "{}")).await;
        let slowed = loop {
            let mock = destination(&server, "mock").await;
            if mock["slowed"] == true {
                break mock;
            }
            tokio::time::sleep(POLL_EVERY).await;
        };
        assert!(slowed["rate"].as_f64().is_some_and(|rate| 0.0 < rate), "{slowed}");
        assert!(slowed["paused_until"].is_string(), "{slowed}");
        assert_eq!(slowed["queues"], json!(["demo"]));
    }
}

both_databases! {
    /// A pause is listed with its end, and an operator ends it.
    // Spec: D6.
    #[test]
    async fn pause_is_listed_and_resume_is_in_the_audit_trail(fixture: StoreFixture) {
        let server = serve(&fixture).await;
        let paces = Paces::new(fixture.store.clone());
        let resume = RawRequest::new("POST", "/v1/destinations/broker/resume");
        assert_eq!(server.send(&resume).await.json()["paused_until"], Value::Null, "there is none to lift");
        paused(&fixture).await;
        assert!(destination(&server, "broker").await["paused_until"].is_string());
        let lifted = server.send(&resume).await;
        assert_eq!((lifted.status(), &lifted.json()["paused_until"]), (200, &Value::Null), "{lifted:?}");
        let pace = paces.read("broker").await.unwrap().pace;
        assert!(pace.asking && pace.paused_until < fixture.store.now().await.unwrap(), "one call asks: {pace:?}");
        let nowhere = RawRequest::new("POST", "/v1/destinations/nowhere/resume");
        assert_eq!(problem(&server.send(&nowhere).await), (404, "destination_unknown".to_owned()));
        let mut actions = fixture.store.actions().list(None, 10).await.unwrap();
        actions.retain(|row| row.action.about == "destination broker");
        let body: Vec<_> = actions.iter().map(|row| (row.action.kind.as_str(), row.action.to.as_str())).collect();
        assert_eq!(body, [("pause_lifted", "not paused")]);
        assert!(actions[0].action.from.starts_with("paused until 20"), "{actions:?}");
    }
}

both_databases! {
    /// An operator's pause is listed with who made it; a repeated one changes nothing.
    #[test]
    async fn pause_by_an_operator_is_listed_with_its_author(fixture: StoreFixture) {
        let server = serve(&fixture).await;
        let change = |action| RawRequest::new("POST", &format!("/v1/destinations/broker/{action}"));
        for _ in 0..2 {
            let paused = server.send(&change("pause")).await;
            assert_eq!((paused.status(), &paused.json()["paused"]), (200, &json!(true)), "{paused:?}");
        }
        let broker = destination(&server, "broker").await;
        assert_eq!((&broker["paused_by"], broker["paused_at"].is_string()), (&json!("local"), true), "{broker}");
        let resumed = server.send(&change("resume")).await.json();
        assert_eq!((&resumed["paused"], &resumed["paused_by"]), (&json!(false), &Value::Null), "{resumed}");
        let mut actions = fixture.store.actions().list(None, 10).await.unwrap();
        actions.retain(|row| row.action.about == "destination broker");
        let kinds: Vec<_> = actions.iter().map(|row| (row.action.kind.as_str(), row.action.from.as_str())).collect();
        assert_eq!(kinds, [("pause_lifted", "paused"), ("paused", "not paused")]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_set_paces_and_viewers_see_them() {
    let fixture = super::program::ServerFixture::new(DatabaseKind::Sqlite).await;
    let operator = fixture.token(&["night watch", "--role", "operator"]);
    let viewer = fixture.token(&["screen", "--role", "viewer"]);
    let producer = fixture.token(&["till", "--role", "producer", "--identity", "ann", "--queue", "demo"]);
    let server = fixture.serve(&[]);
    let set = RawRequest::new("PUT", "/v1/destinations/mock/pace").body(r#"{"rate":5}"#);
    let ask = async |request: RawRequest, token: &str| server.send(&request.token(token)).await.status();
    let resume = RawRequest::new("POST", "/v1/destinations/mock/resume");
    for (token, sees, acts) in [(&operator, true, true), (&viewer, true, false), (&producer, false, false)] {
        assert_eq!(ask(RawRequest::get("/v1/destinations"), token).await, if sees { 200 } else { 403 });
        assert_eq!(ask(resume.clone(), token).await, if acts { 200 } else { 403 });
        assert_eq!(ask(set.clone(), token).await, if acts { 200 } else { 403 });
    }
}
