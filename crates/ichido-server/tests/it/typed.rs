//! Typed messages through every door: a transaction, the pool, and HTTP.

// Spec: D1, H4.

use ichido::client::ClientExt as _;
use ichido::prelude::*;
use ichido_store::StoreDatabase;
use ichido_store::message::QueueName;
use ichido_store::testing::{postgres, sqlite};
use ichido_store::token::TokenRole;
use serde::{Deserialize, Serialize};

use crate::mounting::{client, foreign_app, token_of};

#[derive(Serialize, Deserialize)]
struct TypedOrder {
    symbol: String,
    qty: u32,
}

#[derive(Serialize, Deserialize)]
struct TurnedOrder {
    qty: f64,
    symbol: String,
}

fn order(qty: u32) -> TypedOrder {
    TypedOrder { symbol: "ACME".to_owned(), qty }
}

/// The same payload with its members in another order, and its number written in another way.
fn turned() -> TurnedOrder {
    TurnedOrder { qty: 1.0, symbol: "ACME".to_owned() }
}

impl Message for TypedOrder {
    const QUEUE: &str = "orders";

    fn key(&self) -> Option<String> {
        Some("order-1".to_owned())
    }
}

impl Message for TurnedOrder {
    const QUEUE: &str = "orders";

    fn key(&self) -> Option<String> {
        Some("order-1".to_owned())
    }
}

#[tokio::test]
async fn payload_is_the_same_message_through_every_door() {
    let (database, file) = (postgres::fresh_database().await, sqlite::fresh_file());
    through_every_door(Ichido::<Postgres>::connect(&database.url).await.unwrap()).await;
    through_every_door(Ichido::<Sqlite>::connect(&file.url).await.unwrap()).await;
}

async fn through_every_door<DB: StoreDatabase>(ichido: Ichido<DB>) {
    let admin = token_of(ichido.store(), TokenRole::Admin).await;
    let client = client(&foreign_app(ichido.store()).await, Some(&admin));
    let mut tx = ichido.begin().await.unwrap();
    let Enqueued::New { id } = tx.enqueue(&order(1)).await.unwrap() else { panic!("it is new") };
    tx.commit().await.unwrap();
    assert_eq!(ichido.enqueue(&turned()).await.unwrap(), Enqueued::Replay { id });
    assert_eq!(client.enqueue(&turned()).await.unwrap(), Enqueued::Replay { id });
    assert_eq!(client.enqueue_many([&order(1), &order(1)]).await.unwrap(), [Enqueued::Replay { id }; 2]);

    let refused = client.enqueue(&order(2)).await;
    assert!(matches!(refused, Err(EnqueueError::KeyConflict { id: first }) if first == id), "{refused:?}");
    // The other way round: first over HTTP.
    let second = Draft::new(&order(1)).key("order-2").identity("ann").priority(0);
    let Enqueued::New { id } = client.enqueue(second).await.unwrap() else { panic!("it is new") };
    let again = Draft::new(&turned()).key("order-2").identity("ann");
    assert_eq!(ichido.enqueue(again).await.unwrap(), Enqueued::Replay { id });
    assert_eq!(ichido.store().messages().get(id).await.unwrap().unwrap().priority, 0);
}

#[tokio::test]
async fn message_of_another_identity_than_the_tokens_is_refused() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    let queues = vec![QueueName::parse("orders").unwrap()];
    let role = TokenRole::Producer { identity: "ann".to_owned(), queues };
    let token = token_of(&store, role).await;
    let client = client(&foreign_app(&store).await, Some(&token));
    let refused = client.enqueue(Draft::new(&order(1)).identity("bob")).await;
    let code = Some("role_insufficient".to_owned());
    assert!(
        matches!(&refused, Err(EnqueueError::Refused { code: found, .. }) if *found == code),
        "{refused:?}"
    );
    let id = client.enqueue(Draft::new(&order(1)).identity("ann")).await.unwrap().id();
    assert_eq!(client.enqueue(&order(1)).await.unwrap(), Enqueued::Replay { id }, "the token names ann");
}
