//! The demo as a caller: HTTP requests to its own server and broker.

use std::net::SocketAddr;

use http::Method;
use ichido_core::key::IdempotencyKey;
use ichido_server::serve::views::{Accepted, Alert, Alerts};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::expectations::ShownMessage;
use super::order::{DemoOrder, DemoQueue};
use super::scenario::FaultMode;
use crate::api_client::{self, ApiClient};
use crate::exit::Exit;

/// The outcome of an enqueue.
#[derive(Clone, Copy)]
pub(super) enum EnqueueOutcome {
    New { id: Uuid },
    Replayed,
    Conflict,
}

/// What the broker did.
#[derive(Debug, Deserialize)]
pub(super) struct BrokerEffects {
    pub(super) calls: u64,
    pub(super) effects: u64,
    /// The maximum number of effects of one key.
    pub(super) max_effects: u64,
    pub(super) keys: std::collections::BTreeMap<String, KeyEffects>,
}

#[derive(Debug, Deserialize)]
pub(super) struct KeyEffects {
    pub(super) calls: u64,
    pub(super) effects: u64,
}

/// The clients of the server and the broker.
///
/// Each change is sent once: a failure is part of the scenario or a defect of the demo, and retries would hide both.
pub(super) struct DemoClient {
    server: ApiClient,
    broker: ApiClient,
}

impl DemoClient {
    pub(super) fn new(server: SocketAddr, broker: SocketAddr) -> Result<Self, Exit> {
        Ok(Self { server: ApiClient::local(server)?, broker: ApiClient::local(broker)? })
    }

    /// Enqueues an order.
    pub(super) async fn enqueue(&self, order: &DemoOrder) -> Result<EnqueueOutcome, Exit> {
        let target = format!("/v1/queues/{}/messages", order.queue.as_str());
        let key = IdempotencyKey::parse(&order.key).map_err(|error| Exit::Failed(error.to_string()))?;
        let enqueued =
            self.server.submit(&target, key, "application/json", order.body().into_bytes()).await?;
        match enqueued {
            Ok(answer) if answer.is_replay() => Ok(EnqueueOutcome::Replayed),
            Ok(answer) => {
                let Accepted { id, .. } = api_client::decode(&answer)?;
                Ok(EnqueueOutcome::New { id })
            }
            Err(problem) if problem.status() == 409 => Ok(EnqueueOutcome::Conflict),
            Err(problem) => Err(problem.into()),
        }
    }

    pub(super) async fn message(&self, id: Uuid) -> Result<ShownMessage, Exit> {
        api_client::decode(&self.server.get(&format!("/v1/messages/{id}")).await?)
    }

    /// Takes an operator's step on a message.
    pub(super) async fn step(&self, id: Uuid, step: &str, body: Value) -> Result<(), Exit> {
        self.server.post(&format!("/v1/messages/{id}/{step}"), &body).await.map(drop)
    }

    /// Returns the last incident of a rule on a queue.
    pub(super) async fn alert(&self, rule: &str, queue: DemoQueue) -> Result<Option<Alert>, Exit> {
        let Alerts { alerts, .. } = api_client::decode(&self.server.get("/v1/alerts").await?)?;
        let about = format!("queue {}", queue.as_str());
        Ok(alerts.into_iter().find(|alert| alert.rule == rule && alert.about == about))
    }

    /// Sets the faults of the broker.
    pub(super) async fn set_faults(&self, mode: FaultMode) -> Result<(), Exit> {
        let faults: Map<String, Value> =
            mode.faults().iter().map(|(name, rate)| ((*name).to_owned(), json!(rate))).collect();
        let body = json!({ "faults": faults });
        self.broker.change(Method::PUT, "/mock/faults", &body).await.map(drop)
    }

    pub(super) async fn effects(&self) -> Result<BrokerEffects, Exit> {
        api_client::decode(&self.broker.get("/mock/effects").await?)
    }
}
