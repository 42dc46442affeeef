//! The adapter: idempotency in front of any service.
// Spec: C2 to C7, D11, F1, F2.

mod bodies;
mod in_flight;
mod outcomes;
mod records;
mod replays;
mod settings;

use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::RecordName;

use super::client::ProxyRequest;
use super::program::ProxyProcess;
use super::service::{FakeService, ServiceAction, answer};

/// Starts an adapter with one caller and the operations `POST /orders` and `POST /orders/{id}`.
fn adapter(service: &FakeService, store: &str, flags: &[&str]) -> ProxyProcess {
    let mut all = vec![
        "--store",
        store,
        "--identity",
        "single:shop",
        "--operation",
        "POST /orders",
        "--operation",
        "POST /orders/{id}",
    ];
    all.extend(flags);
    ProxyProcess::start("adapter", service.address, &all)
}

async fn numbering() -> FakeService {
    FakeService::start(|_, before| {
        let fields = [
            ("location", "/orders/1"),
            ("link", "a"),
            ("link", "b"),
            ("set-cookie", "s=1"),
            ("content-type", "text/plain"),
        ];
        ServiceAction::Answer(answer("201 Created", &fields, &format!("order {before}")))
    })
    .await
}

fn order(key: &str) -> ProxyRequest {
    ProxyRequest::post("/orders?lang=en")
        .key(key)
        .field("Content-Type", "application/json")
        .body("{\"qty\": 1}")
}

fn name(operation: &str, key: &str) -> RecordName {
    let key = IdempotencyKey::parse(key).expect("a key");
    RecordName { operation: operation.to_owned(), identity: "shop".to_owned(), key }
}
