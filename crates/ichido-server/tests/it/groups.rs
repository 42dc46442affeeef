//! Failure groups over HTTP: list, look at, take care of, and act on all letters of one.

// Spec: E3, E4.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use http::Method;
use ichido_client::{Action, Client, Response};
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Event, Failure};
use ichido_core::retry::{Guarantee, Safety};
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::Store;
use ichido_store::facts::QueueFacts;
use ichido_store::message::{ClaimOptions, NewMessage, Note, QueueName, Settlement};
use ichido_store::testing::{postgres, sqlite};
use ichido_store::token::TokenRole;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::mounting::{answer, client, foreign_app, token_of};

const CAUSES: [&str; 3] = ["no such symbol", "not enough money", "the market is closed"];
pub(crate) const LETTERS: usize = 30;
/// The time limit of a case: far beyond it.
pub(crate) const MAX_CASE: Duration = Duration::from_mins(2);

fn queue() -> QueueName {
    QueueName::parse("orders").unwrap()
}

/// Lets messages die, a third of each cause.
pub(crate) async fn die(store: &Store) {
    let new = |number: usize| {
        let key = IdempotencyKey::parse(&format!("order-{number}")).unwrap();
        NewMessage::new(queue(), "ann", key, b"{}".to_vec())
    };
    for put in store.messages().enqueue_all((0..LETTERS).map(new).collect()).await {
        put.unwrap();
    }
    let terms = ClaimOptions {
        node: Uuid::nil(),
        lease: Duration::from_hours(1),
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    };
    let works = store.claims().claim(&queue(), NonZeroU32::new(1_000).unwrap(), terms).await.unwrap();
    assert_eq!(works.len(), LETTERS);
    let died = works.iter().enumerate().map(|(number, work)| {
        let (failure, effect, safety) = (Failure::Permanent, Effect::NotDone, Safety::None);
        let in_flight_until = work.claimed_at;
        let event = Event::Failed { fence: work.fence, failure, effect, safety, in_flight_until };
        let excerpt = Some(format!("order {number}: {} \"secret\"", CAUSES[number % CAUSES.len()]));
        let note = Note { code: Some(ErrorCode::BadRequest), excerpt, ..Note::default() };
        Settlement::new(work, event, note)
    });
    for settled in store.claims().settle_all(died.collect()).await {
        let _ = settled.unwrap();
    }
    while 0 < store.failure_groups().fold(1_000).await.unwrap() {}
}

/// Publishes that the queue's dead letters may be requeued.
pub(crate) async fn publish(store: &Store) {
    let facts = QueueFacts {
        guarantee: Guarantee::Idempotent,
        requeue: true,
        max_attempts: NonZeroU32::MIN,
        retry_horizon: Duration::from_mins(1),
    };
    let node = Uuid::now_v7();
    store.queues().key_kind(&queue(), "derived").await.unwrap();
    store.nodes().heartbeat(node, "web-1").await.unwrap();
    store.facts().publish(node, &[(queue(), facts)]).await.unwrap();
}

pub(crate) async fn get(client: &Client, path: &str) -> Value {
    let response = answer(client.read(path).await.unwrap());
    assert_eq!(response.status, 200, "{path}: {response:?}");
    serde_json::from_slice(&response.body).unwrap()
}

pub(crate) async fn post(client: &Client, path: &str, body: &Value) -> Response {
    let key = IdempotencyKey::parse(&Uuid::now_v7().to_string()).unwrap();
    let action = Action::new(Method::POST, path, key, "application/json", body.to_string()).unwrap();
    answer(client.send(&action).await)
}

fn ids(listed: &Value) -> BTreeSet<String> {
    let letters = listed["dead_letters"].as_array().unwrap();
    letters.iter().map(|letter| letter["id"].as_str().unwrap().to_owned()).collect()
}

async fn case(store: Store) {
    die(&store).await;
    publish(&store).await;
    let url = foreign_app(&store).await;
    let operator = client(&url, Some(&token_of(&store, TokenRole::Operator).await));
    let viewer = client(&url, Some(&token_of(&store, TokenRole::Viewer).await));

    let first = get(&viewer, "/v1/failure-groups?limit=2").await;
    let second =
        get(&viewer, &format!("/v1/failure-groups?limit=2&cursor={}", first["next"].as_str().unwrap())).await;
    assert_eq!(second["next"], Value::Null);
    let pages = [first["failure_groups"].as_array().unwrap(), second["failure_groups"].as_array().unwrap()];
    let groups: Vec<&Value> = pages.into_iter().flatten().collect();
    let templates: BTreeSet<&str> = groups.iter().map(|group| group["template"].as_str().unwrap()).collect();
    assert_eq!(
        templates,
        BTreeSet::from([
            "order #: no such symbol \"…\"",
            "order #: not enough money \"…\"",
            "order #: the market is closed \"…\""
        ])
    );
    assert!(groups.iter().all(|group| group["count"] == 10 && group["state"] == "open"), "{groups:?}");

    let id = groups[1]["id"].as_str().unwrap();
    let path = format!("/v1/failure-groups/{id}");
    let detail = get(&viewer, &path).await;
    assert_eq!((&detail["queue"], detail["sample_ids"].as_array().unwrap().len()), (&json!("orders"), 5));
    let letters = get(&viewer, &format!("/v1/dead-letters?group={id}")).await;
    let of_group = ids(&letters);
    assert_eq!(of_group.len(), 10);
    assert!(letters["dead_letters"].as_array().unwrap().iter().all(|letter| letter["failure_group"] == id));

    for action in ["acknowledge", "resolve"] {
        let refused = post(&viewer, &format!("{path}/{action}"), &json!({})).await;
        assert_eq!(refused.problem().code.as_deref(), Some("role_insufficient"));
        let unknown =
            post(&operator, &format!("/v1/failure-groups/{}/{action}", Uuid::nil()), &json!({})).await;
        assert_eq!((unknown.status, unknown.problem().code.as_deref()), (404, Some("group_unknown")));
        let changed = post(&operator, &format!("{path}/{action}"), &json!({})).await;
        assert_eq!((changed.status, changed.text_at("/changed_by").as_deref()), (200, Some("ops")));
    }
    assert_eq!(get(&viewer, &path).await["state"], "resolved");
    let listed = get(&viewer, "/v1/failure-groups").await;
    assert_eq!(listed["failure_groups"][2]["id"], id, "resolved groups are last");

    requeue(&store, &operator, id, &of_group).await;
    assert_eq!(get(&viewer, &path).await["count"], 0);
}

/// Requeues the letters of a group, and no others.
async fn requeue(store: &Store, operator: &Client, group: &str, of_group: &BTreeSet<String>) {
    let all = get(operator, "/v1/dead-letters?limit=100").await;
    let body = json!({ "action": "requeue", "filter": { "group": group } });
    let begun = post(operator, "/v1/operations", &body).await;
    assert_eq!((begun.status, begun.text_at("/preview/matched")), (202, None), "{begun:?}");
    let operation = format!("/v1/operations/{}", begun.text_at("/operation/id").unwrap());
    while get(operator, &operation).await["state"] != "ended" {}
    let shown = get(operator, &operation).await;
    assert!(shown["detail"].as_str().unwrap().contains(&format!("queue=orders group={group}")), "{shown}");
    let left = ids(&get(operator, "/v1/dead-letters?limit=100").await);
    let expected: BTreeSet<String> = ids(&all).difference(of_group).cloned().collect();
    assert_eq!(left, expected);
    for id in of_group {
        assert_eq!(get(operator, &format!("/v1/messages/{id}")).await["status"], "queued");
    }
    while 0 < store.failure_groups().fold(1_000).await.unwrap() {}
}

#[tokio::test]
async fn operator_takes_care_of_a_failure_group_on_postgres() {
    let database = postgres::fresh_database().await;
    let store = Store::open(&database.url, 4).await.unwrap();
    tokio::time::timeout(MAX_CASE, case(store)).await.unwrap();
}

#[tokio::test]
async fn operator_takes_care_of_a_failure_group_on_sqlite() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 4).await.unwrap();
    tokio::time::timeout(MAX_CASE, case(store)).await.unwrap();
}
