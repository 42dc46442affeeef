//! Bulk operations on dead messages.
// Spec: D17, E4.

use std::fmt::Write as _;

use serde_json::{Value, json};
use uuid::Uuid;

use super::client::{HUNG, RawRequest, problem};
use super::program::{DatabaseKind, POLL_EVERY, ServeProcess};
use super::stepping::serve;
use crate::dead::fixture::{StoreFixture, both_databases};
use crate::http_message::HttpMessage;

async fn begin(server: &ServeProcess, body: &Value) -> HttpMessage {
    let request = RawRequest::post("/v1/operations").field("Content-Type", "application/json");
    server.send(&request.body(body.to_string())).await
}

/// Starts an operation that runs while its queue is paused: a canary that waits for its first message.
async fn begin_canary(server: &ServeProcess) -> String {
    begin_canary_of(server, "orders").await
}

async fn begin_canary_of(server: &ServeProcess, queue: &str) -> String {
    let body = json!({"action": "requeue", "filter": {"queue": queue}, "canary": true});
    let answer = begin(server, &body).await;
    assert_eq!(answer.status(), 202, "{answer:?}");
    answer.one("location").expect("where it is shown").to_owned()
}

async fn until_state(server: &ServeProcess, href: &str, state: &str) -> Value {
    let reached = async {
        loop {
            let operation = server.get(href).await.json();
            if operation["state"] == state {
                return operation;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    tokio::time::timeout(HUNG, reached).await.expect("the operation comes to its state")
}

/// Returns the result of an ended operation, known a moment after its record says so.
async fn result(server: &ServeProcess, href: &str) -> Value {
    let known = async {
        loop {
            let operation = server.get(href).await.json();
            if operation["result"].is_object() {
                return operation["result"].clone();
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    tokio::time::timeout(HUNG, known).await.expect("its outcome is reported")
}

both_databases! {
    /// Only confirmed messages are changed.
    #[test]
    async fn bulk_operation_skips_letters_newer_than_its_preview(fixture: StoreFixture) {
        fixture.dead("orders", 2).await;
        let server = serve(&fixture).await;
        let mut body = json!({"action": "discard", "all": true, "reason": "test data", "preview": true});
        let preview = begin(&server, &body).await.json()["preview"].clone();
        assert_eq!(preview["eligible"], 2, "{preview}");
        // No worker serves this queue, so the test's own worker takes it.
        fixture.dead("forgotten", 1).await;
        body["as_of"] = preview["as_of"].clone();
        body["preview"] = false.into();
        let begun = begin(&server, &body).await;
        assert_eq!((begun.status(), &begun.json()["preview"]["matched"]), (202, &2.into()), "{begun:?}");
        assert_eq!(result(&server, begun.one("location").unwrap()).await["moved"], 2);
        assert_eq!(fixture.json(&["list"]).len(), 1, "it died later");
    }

    #[test]
    async fn preview_changes_nothing(fixture: StoreFixture) {
        let dead = fixture.dead("orders", 3).await;
        fixture.dead("ledger", 1).await;
        let server = serve(&fixture).await;
        let answer = begin(&server, &json!({"action": "requeue", "all": true, "preview": true})).await;
        let body = answer.json();
        assert_eq!((answer.status(), &body["operation"]), (200, &Value::Null));
        let preview = &body["preview"];
        assert_eq!((&preview["matched"], &preview["eligible"]), (&4.into(), &3.into()), "{preview}");
        assert_eq!(preview["queues"], json!({"orders": 3}));
        assert_eq!(preview["errors"], json!({"BAD_REQUEST": 3}));
        assert_eq!(preview["refused"][0]["reason"], "not_allowed");
        assert_eq!(fixture.status(dead[0]).await, "dead");
        assert_eq!(server.get("/v1/operations").await.json(), json!({"operations": []}));
    }

    #[test]
    async fn bulk_operation_runs_to_completion_and_is_shown(fixture: StoreFixture) {
        let dead = fixture.dead("orders", 3).await;
        let others = fixture.dead("mail", 2).await;
        let server = serve(&fixture).await;
        let answer = begin(&server, &json!({"action": "requeue", "filter": {"queue": "orders"}, "reason": "back"})).await;
        assert_eq!(answer.status(), 202, "{answer:?}");
        let href = answer.one("location").unwrap();
        let operation = until_state(&server, href, "ended").await;
        assert_eq!((&operation["action"], &operation["by"]), (&"requeue".into(), &"local".into()));
        assert!(operation["detail"].as_str().unwrap().contains("moved=3"), "{operation}");
        assert_eq!(
            result(&server, href).await,
            json!({"moved": 3, "gone": 0, "refused": [], "stopped_by": null, "canary": null, "error": null})
        );
        for id in dead {
            assert_eq!(fixture.status(id).await, "queued");
        }
        let body = json!({"action": "discard", "filter": {"queue": "mail"}, "reason": "test data"});
        let discard = begin(&server, &body).await;
        until_state(&server, discard.one("location").unwrap(), "ended").await;
        assert_eq!(fixture.status(others[0]).await, "dead");
        let again = begin(&server, &body).await;
        assert_eq!((again.status(), &again.json()["preview"]["matched"]), (200, &0.into()), "nothing is left to do");
        let listed = server.get("/v1/operations").await.json();
        let ids: Vec<&Value> = listed["operations"].as_array().unwrap().iter().map(|operation| &operation["id"]).collect();
        assert_eq!(ids, [&discard.json()["operation"]["id"], &operation["id"]]);
        let bulks = fixture.json(&["operations"]);
        assert_eq!((&bulks[1]["id"], &bulks[1]["state"]), (&operation["id"], &"ended".into()), "the same for the command");
    }

    #[test]
    async fn bulk_operation_is_watched_and_stopped(fixture: StoreFixture) {
        fixture.dead("orders", 20).await;
        let server = serve(&fixture).await;
        let href = begin_canary(&server).await;
        let watched = loop {
            let progress = server.get(&href).await.json()["progress"].clone();
            if progress["canary"].is_object() {
                break progress;
            }
        };
        let canary = json!({"pending": 1, "succeeded": 0, "failed": 0});
        assert_eq!(watched, json!({"moved": 1, "total": 20, "has_more": false, "canary": canary}));
        let asked = server.post(&format!("{href}/stop")).await;
        assert_eq!(asked.status(), 202);
        let operation = until_state(&server, &href, "stopped").await;
        assert!(operation["detail"].as_str().unwrap().contains("stop requested by local"), "{operation}");
        let result = result(&server, &href).await;
        assert_eq!((&result["moved"], &result["stopped_by"]), (&1.into(), &"local".into()), "{result}");
        assert_eq!(problem(&server.post(&format!("{href}/stop")).await), (409, "operation_refused".to_owned()));
    }

    /// Its work is kept, its record says that it was stopped, and the process ends cleanly.
    #[test]
    async fn stopping_server_halts_its_bulk_operations(fixture: StoreFixture) {
        fixture.dead("orders", 20).await;
        let mut server = serve(&fixture).await;
        begin_canary(&server).await;
        server.signal("TERM");
        let (code, log) = server.wait().await;
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("bulk operation halted for server shutdown"), "{log}");
        assert_eq!(fixture.json(&["operations"])[0]["state"], "stopped");
    }

    #[test]
    async fn bulk_operation_of_killed_server_is_abandoned_and_restartable(fixture: StoreFixture) {
        fixture.dead("orders", 20).await;
        let mut killed = serve(&fixture).await;
        let href = begin_canary(&killed).await;
        let body = json!({"action": "requeue", "all": true});
        let refused = begin(&killed, &body).await;
        assert_eq!(problem(&refused), (409, "operation_refused".to_owned()));
        assert_eq!(refused.json()["operation"], href.as_str(), "it says which one is in the way");
        killed.signal("KILL");
        killed.wait().await;
        let server = serve(&fixture).await;
        assert_eq!(server.get(&href).await.json()["state"], "started", "its server may only be slow");
        until_state(&server, &href, "abandoned").await;
        assert_eq!(problem(&server.post(&format!("{href}/stop")).await), (409, "operation_refused".to_owned()));
        let again = begin(&server, &body).await;
        assert_eq!((again.status(), &again.json()["preview"]["eligible"]), (202, &19.into()), "{again:?}");
        until_state(&server, again.one("location").unwrap(), "ended").await;
        assert_eq!(server.get(&href).await.json()["state"], "abandoned");
    }

    #[test]
    async fn stopping_bulk_operation_of_killed_server_is_stopped(fixture: StoreFixture) {
        fixture.dead("orders", 20).await;
        let mut killed = serve(&fixture).await;
        let href = begin_canary(&killed).await;
        killed.signal("KILL");
        killed.wait().await;
        let server = serve(&fixture).await;
        let asked = server.post(&format!("{href}/stop")).await;
        assert_eq!((asked.status(), &asked.json()["state"]), (202, &"stopping".into()));
        until_state(&server, &href, "stopped").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_bulk_operations_are_limited() {
    let fixture = StoreFixture::on_sqlite().await;
    let queues = ["orders", "trades", "refunds", "bills"];
    let config = fixture.folder().join("ichido.toml");
    let mut text = std::fs::read_to_string(&config).unwrap();
    for queue in queues {
        if queue != "orders" {
            write!(text, "[queues.{queue}]\ndestination = \"broker\"\nrequeue = true\n").unwrap();
        }
        fixture.dead(queue, 20).await;
    }
    std::fs::write(&config, text).unwrap();
    fixture.dead("mail", 1).await;
    let server = serve(&fixture).await;
    let mut running = Vec::new();
    for queue in queues {
        assert_eq!(server.post(&format!("/v1/queues/{queue}/pause")).await.status(), 200);
        running.push(begin_canary_of(&server, queue).await);
    }
    let body = json!({"action": "requeue", "filter": {"queue": "mail"}});
    assert_eq!(problem(&begin(&server, &body).await), (409, "operation_refused".to_owned()));
    assert_eq!(server.post(&format!("{}/stop", running[0])).await.status(), 202);
    until_state(&server, &running[0], "stopped").await;
    while begin(&server, &body).await.status() != 202 {
        tokio::time::sleep(POLL_EVERY).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_bulk_operation_is_refused() {
    let fixture = StoreFixture::on_sqlite().await;
    fixture.dead("orders", 1).await;
    let server = serve(&fixture).await;
    for body in [
        json!({"action": "requeue"}),
        json!({"action": "requeue", "filter": {}}),
        json!({"action": "requeue", "all": true, "filter": {"queue": "orders"}}),
        json!({"action": "discard", "all": true}),
        json!({"action": "discard", "all": true, "reason": "x", "canary": true}),
        json!({"action": "discard", "all": true, "reason": "x", "decision": "done"}),
        json!({"action": "decide", "all": true}),
        json!({"action": "decide", "all": true, "decision": "released"}),
        json!({"action": "decide", "all": true, "decision": "done", "canary": true}),
        json!({"action": "decide", "filter": {"state": "parked", "discarded": true}, "decision": "done"}),
        json!({"action": "delete", "all": true}),
        json!({"action": "requeue", "filter": {"colour": "red"}}),
        json!({"action": "requeue", "filter": {"effect": "perhaps"}}),
        json!({"action": "requeue", "filter": {"discarded": true, "replaced": true}}),
        json!([]),
    ] {
        assert_eq!(problem(&begin(&server, &body).await), (422, "body_unexpected".to_owned()), "{body}");
    }
    for filter in
        [json!({"queue": "no blanks"}), json!({"code": "TEAPOT"}), json!({"since_from": "yesterday"})]
    {
        let body = json!({"action": "requeue", "filter": filter});
        assert_eq!(problem(&begin(&server, &body).await), (400, "parameter_invalid".to_owned()), "{body}");
    }
    let body = json!({"action": "requeue", "all": true, "as_of": "yesterday"});
    assert_eq!(problem(&begin(&server, &body).await), (400, "parameter_invalid".to_owned()));
    assert_eq!(server.get("/v1/operations").await.json(), json!({"operations": []}));
    for (method, target) in [("GET", ""), ("POST", "/stop")] {
        for id in ["4711", &Uuid::now_v7().to_string()] {
            let answer = server.send(&RawRequest::new(method, &format!("/v1/operations/{id}{target}"))).await;
            assert_eq!(problem(&answer), (404, "operation_unknown".to_owned()));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_start_bulk_operations_and_viewers_see_them() {
    let fixture = super::program::ServerFixture::new(DatabaseKind::Sqlite).await;
    let operator = fixture.token(&["night watch", "--role", "operator"]);
    let viewer = fixture.token(&["screen", "--role", "viewer"]);
    let producer = fixture.token(&["till", "--role", "producer", "--identity", "ann", "--queue", "demo"]);
    let server = fixture.serve(&[]);
    let stop = format!("/v1/operations/{}/stop", Uuid::now_v7());
    let body = json!({"action": "requeue", "all": true}).to_string();
    let ask = async |request: RawRequest, token: &str| server.send(&request.token(token)).await.status();
    for (token, sees, acts) in [(&operator, true, true), (&viewer, true, false), (&producer, false, false)] {
        assert_eq!(ask(RawRequest::get("/v1/operations"), token).await, if sees { 200 } else { 403 });
        assert_eq!(
            ask(RawRequest::post("/v1/operations").body(&body), token).await,
            if acts { 200 } else { 403 }
        );
        assert_eq!(ask(RawRequest::post(&stop), token).await, if acts { 404 } else { 403 });
    }
}
