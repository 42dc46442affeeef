//! The demo as a caller: requests to its own server and to its broker, over HTTP as anybody's.

use std::net::SocketAddr;

use http::Method;
use ichido_core::key::IdempotencyKey;
use ichido_server::serve::shown::{Accepted, Alert, Alerts};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::order::{Order, Queue};
use super::sight::Message;
use super::story::Mood;
use crate::exit::Exit;
use crate::reach::{self, Reach};

/// What came of putting something in.
#[derive(Clone, Copy)]
pub(super) enum Put {
    New { id: Uuid },
    Again,
    Conflict,
}

/// What the broker did.
#[derive(Debug, Deserialize)]
pub(super) struct Book {
    pub(super) calls: u64,
    pub(super) effects: u64,
    /// The most of one key.
    pub(super) effects_max: u64,
    pub(super) keys: std::collections::BTreeMap<String, OfKey>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OfKey {
    pub(super) calls: u64,
    pub(super) effects: u64,
}

/// The two that are called. Each change is asked for once: what fails is a sight of the story or a fault of the demo, and neither is to
/// be smoothed over.
pub(super) struct Called {
    server: Reach,
    broker: Reach,
}

impl Called {
    pub(super) fn new(server: SocketAddr, broker: SocketAddr) -> Result<Self, Exit> {
        Ok(Self { server: Reach::beside(server)?, broker: Reach::beside(broker)? })
    }

    /// Puts an order in.
    pub(super) async fn put(&self, order: &Order) -> Result<Put, Exit> {
        let target = format!("/v1/queues/{}/messages", order.queue.as_str());
        let key = IdempotencyKey::parse(&order.key).map_err(|error| Exit::Failed(error.to_string()))?;
        let put = self.server.put_in(&target, key, "application/json", order.body().into_bytes()).await?;
        match put {
            Ok(answer) if answer.is_replay() => Ok(Put::Again),
            Ok(answer) => {
                let Accepted { id, .. } = reach::read(&answer)?;
                Ok(Put::New { id })
            }
            Err(refusal) if refusal.status() == 409 => Ok(Put::Conflict),
            Err(refusal) => Err(refusal.into()),
        }
    }

    pub(super) async fn message(&self, id: Uuid) -> Result<Message, Exit> {
        reach::read(&self.server.get(&format!("/v1/messages/{id}")).await?)
    }

    /// Takes an operator's step about a message.
    pub(super) async fn step(&self, id: Uuid, step: &str, told: Value) -> Result<(), Exit> {
        self.server.post(&format!("/v1/messages/{id}/{step}"), &told).await.map(drop)
    }

    /// The last incident of a rule about a queue.
    pub(super) async fn alert(&self, rule: &str, queue: Queue) -> Result<Option<Alert>, Exit> {
        let Alerts { alerts, .. } = reach::read(&self.server.get("/v1/alerts").await?)?;
        let about = format!("queue {}", queue.as_str());
        Ok(alerts.into_iter().find(|alert| alert.rule == rule && alert.about == about))
    }

    /// Has the broker behave.
    pub(super) async fn behave(&self, mood: Mood) -> Result<(), Exit> {
        let faults: Map<String, Value> =
            mood.faults().iter().map(|(name, rate)| ((*name).to_owned(), json!(rate))).collect();
        let told = json!({ "faults": faults });
        self.broker.change(Method::PUT, "/paper/faults", &told).await.map(drop)
    }

    pub(super) async fn book(&self) -> Result<Book, Exit> {
        reach::read(&self.broker.get("/paper/effects").await?)
    }
}
