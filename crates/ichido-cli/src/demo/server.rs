//! The demo as a caller: requests to its own server and to its broker, over HTTP as anybody's.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use http::Method;
use ichido_client::{Action, Answer, Client, ClientSettings, Last, Outcome};
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Retry;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::order::{Order, Queue};
use super::sight::Message;
use super::story::Mood;
use crate::exit::Exit;
use crate::reach::gave_up;

/// An incident as the API shows it.
#[derive(Debug, Deserialize)]
pub(super) struct Alert {
    pub(super) rule: String,
    pub(super) about: String,
    pub(super) state: String,
    /// Since when what was measured is well again.
    pub(super) clear_since: Option<String>,
    pub(super) text: String,
}

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

#[derive(Deserialize)]
struct Alerts {
    alerts: Vec<Alert>,
}

#[derive(Deserialize)]
struct Accepted {
    id: Uuid,
}

/// The two that are called.
pub(super) struct Called {
    server: Client,
    broker: Client,
}

impl Called {
    pub(super) fn new(server: SocketAddr, broker: SocketAddr) -> Result<Self, Exit> {
        Ok(Self { server: client(server)?, broker: client(broker)? })
    }

    /// Puts an order in.
    pub(super) async fn put(&self, order: &Order) -> Result<Put, Exit> {
        let target = format!("/v1/queues/{}/messages", order.queue.name());
        let answer = send(&self.server, Method::POST, &target, &order.key, order.body()).await?;
        match answer.status {
            201 if answer.is_replay() => Ok(Put::Again),
            201 => {
                let Accepted { id } = read(&answer)?;
                Ok(Put::New { id })
            }
            409 => Ok(Put::Conflict),
            _ => Err(unexpected(&answer)),
        }
    }

    pub(super) async fn message(&self, id: Uuid) -> Result<Message, Exit> {
        read(&get(&self.server, &format!("/v1/messages/{id}")).await?)
    }

    /// Takes an operator's step about a message.
    pub(super) async fn step(&self, id: Uuid, step: &str, told: Value) -> Result<(), Exit> {
        let target = format!("/v1/messages/{id}/{step}");
        let key = Uuid::now_v7().to_string();
        let answer = send(&self.server, Method::POST, &target, &key, told.to_string()).await?;
        if answer.status == 200 { Ok(()) } else { Err(unexpected(&answer)) }
    }

    /// The last incident of a rule about a queue.
    pub(super) async fn alert(&self, rule: &str, queue: Queue) -> Result<Option<Alert>, Exit> {
        let Alerts { alerts } = read(&get(&self.server, "/v1/alerts").await?)?;
        let about = format!("queue {}", queue.name());
        Ok(alerts.into_iter().find(|alert| alert.rule == rule && alert.about == about))
    }

    /// Has the broker behave.
    pub(super) async fn behave(&self, mood: Mood) -> Result<(), Exit> {
        let faults: Map<String, Value> =
            mood.faults().iter().map(|(name, rate)| ((*name).to_owned(), json!(rate))).collect();
        let told = json!({ "faults": faults }).to_string();
        let key = Uuid::now_v7().to_string();
        let answer = send(&self.broker, Method::PUT, "/paper/faults", &key, told).await?;
        if answer.status == 200 { Ok(()) } else { Err(unexpected(&answer)) }
    }

    pub(super) async fn book(&self) -> Result<Book, Exit> {
        read(&get(&self.broker, "/paper/effects").await?)
    }
}

fn client(address: SocketAddr) -> Result<Client, Exit> {
    // What fails is a sight of the story or a fault of the demo: neither is to be smoothed over.
    let retry = Retry { tries: NonZeroU32::MIN, ..Retry::CLIENT };
    let settings = ClientSettings { retry, ..ClientSettings::new(format!("http://{address}")) };
    settings.resolve().map_err(|problems| Exit::Failed(format!("the demo cannot call {address}: {problems}")))
}

async fn send(
    client: &Client,
    method: Method,
    target: &str,
    key: &str,
    body: String,
) -> Result<Answer, Exit> {
    let failed = |error: &dyn std::fmt::Display| Exit::Failed(error.to_string());
    let key = IdempotencyKey::parse(key).map_err(|error| failed(&error))?;
    let action =
        Action::new(method, target, key, "application/json", body).map_err(|error| failed(&error))?;
    answer(client.send(&action).await)
}

async fn get(client: &Client, target: &str) -> Result<Answer, Exit> {
    answer(client.read(target).await.map_err(|error| Exit::Failed(error.to_string()))?)
}

fn answer(outcome: Outcome) -> Result<Answer, Exit> {
    match outcome {
        Outcome::Done { answer, .. }
        | Outcome::Refused { answer, .. }
        | Outcome::GaveUp { last: Last::Answer(answer), .. } => Ok(answer),
        Outcome::GaveUp { why, last, .. } => Err(Exit::Failed(gave_up(why, &last))),
    }
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Exit> {
    serde_json::from_slice(&answer.body).map_err(|_| unexpected(answer))
}

fn unexpected(answer: &Answer) -> Exit {
    let said = answer.problem().detail.unwrap_or_default();
    Exit::Failed(format!("the demo was answered {} where it was not to be: {said}", answer.status))
}
