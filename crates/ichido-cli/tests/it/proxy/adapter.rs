//! The adapter: idempotency in front of any service (SPEC C2 to C7, D11, F1, F2).

mod bodies;
mod in_flight;
mod outcomes;
mod records;
mod replays;
mod settings;

use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::RecordName;

use super::client::Request;
use super::program::Proxy;
use super::service::{Act, Service, answer};

/// Starts an adapter with one caller and the operations `POST /orders` and `POST /orders/{id}`.
fn adapter(service: &Service, store: &str, flags: &[&str]) -> Proxy {
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
    Proxy::start("adapter", service.address, &all)
}

async fn numbering() -> Service {
    Service::start(|_, before| {
        let fields = [
            ("location", "/orders/1"),
            ("link", "a"),
            ("link", "b"),
            ("set-cookie", "s=1"),
            ("content-type", "text/plain"),
        ];
        Act::Answer(answer("201 Created", &fields, &format!("order {before}")))
    })
    .await
}

fn order(key: &str) -> Request {
    Request::post("/orders?lang=en").key(key).field("Content-Type", "application/json").body("{\"qty\": 1}")
}

fn name(operation: &str, key: &str) -> RecordName {
    let key = IdempotencyKey::parse(key).expect("a key");
    RecordName { operation: operation.to_owned(), identity: "shop".to_owned(), key }
}
