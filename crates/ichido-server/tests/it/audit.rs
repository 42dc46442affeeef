//! The audit trail over HTTP.

// Spec: F5.

use http::Method;
use ichido_core::audit::AuditKey;
use ichido_store::Store;
use ichido_store::audit::AuditSealed;
use ichido_store::message::QueueName;
use ichido_store::testing::{postgres, sqlite, while_busy};
use ichido_store::token::TokenRole;
use serde_json::{Value, json};

use crate::api::{TestApi, configure};
use crate::mounting::{CONFIG, answer, client, foreign_app, token_of};

/// The members of each entry that say who did what to which.
fn summaries(page: &Value) -> Vec<Value> {
    let summary = |entry: &Value| {
        json!([
            entry["actor"],
            entry["kind"],
            entry["about"],
            entry["from"],
            entry["to"],
            entry["sealed"],
            entry["seal"]
        ])
    };
    page["entries"].as_array().unwrap().iter().map(summary).collect()
}

#[tokio::test]
async fn audit_shows_who_did_what_before_and_after_and_its_seal() {
    let (database, file) = (postgres::fresh_database().await, sqlite::fresh_file());
    for url in [&database.url, &file.url] {
        shows_what_was_done(&Store::open(url, 2).await.unwrap()).await;
    }
}

async fn shows_what_was_done(store: &Store) {
    let api = TestApi::new(store, &configure(CONFIG).unwrap());
    let id = api.enqueue("orders", "order-1", "{}").await;
    assert_eq!(api.ask(Method::POST, "/v1/queues/orders/pause", "{}").await.0, 200);
    let key = AuditKey::parse(&[7; 32]).unwrap();
    // Another test's transaction may be older than ours on the same server.
    while while_busy(|| store.audit().seal(Some(&key), 100)).await == AuditSealed::Nothing {
        tokio::task::yield_now().await;
    }
    let cancelled =
        api.ask(Method::POST, &format!("/v1/messages/{id}/cancel"), r#"{"reason":"wrong price"}"#).await;
    assert_eq!(cancelled.0, 200, "{}", cancelled.1);
    let about = format!("message {id}");
    let of_message = json!(["olivia", "cancelled", about, "queued", "cancelled", false, null]);
    let of_queue = json!(["olivia", "paused", "queue orders", "running", "paused", true, 1]);
    let all = api.get("/v1/audit").await;
    assert_eq!(summaries(&all), [of_message.clone(), of_queue.clone()]);
    assert_eq!(
        (&all["entries"][0]["queue"], &all["entries"][0]["detail"]),
        (&json!("orders"), &json!("wrong price"))
    );
    let first = api.get("/v1/audit?limit=1").await;
    let rest = api.get(&format!("/v1/audit?limit=1&cursor={}", first["next"].as_str().unwrap())).await;
    assert_eq!((summaries(&first), summaries(&rest)), (vec![of_message.clone()], vec![of_queue.clone()]));
    let subject = all["entries"][1]["subject"].as_str().unwrap();
    for (filter, expected) in [
        (format!("subject={id}"), vec![&of_message]),
        (format!("subject={subject}"), vec![&of_queue]),
        ("kind=paused".to_owned(), vec![&of_queue]),
        ("actor=olivia".to_owned(), vec![&of_message, &of_queue]),
        ("actor=olivia&kind=cancelled".to_owned(), vec![&of_message]),
        ("actor=pete".to_owned(), vec![]),
    ] {
        let page = api.get(&format!("/v1/audit?{filter}")).await;
        assert_eq!(summaries(&page).iter().collect::<Vec<_>>(), expected, "{filter}");
    }
}

#[tokio::test]
async fn producer_does_not_see_the_audit_trail() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    let url = foreign_app(&store).await;
    let queues = vec![QueueName::parse("orders").unwrap()];
    let producer = token_of(&store, TokenRole::Producer { identity: "ann".to_owned(), queues }).await;
    let viewer = token_of(&store, TokenRole::Viewer).await;
    for (token, status) in [(producer, 403), (viewer, 200)] {
        let read = answer(client(&url, Some(&token)).read("/v1/audit").await.unwrap());
        assert_eq!(read.status, status, "{read:?}");
    }
}
