//! Requests in flight: waiting duplicates, clients that hang up, and an adapter that stops.

use ichido_store::testing::sqlite::fresh_file;

use super::{adapter, order};
use crate::proxy::client::{ProxyClient, send};
use crate::proxy::service::{FakeService, ReleaseGate, ServiceAction, answer};

#[tokio::test]
async fn duplicate_in_flight_waits_then_returns_processing() {
    let file = fresh_file();
    let gate = ReleaseGate::default();
    let opened = gate.clone();
    let service = FakeService::start(move |_, _| {
        ServiceAction::AnswerWhen(opened.clone(), answer("201 Created", &[], "late"))
    })
    .await;
    let proxy = adapter(&service, &file.url, &[]);
    let mut first = ProxyClient::connect(proxy.address).await;
    first.write(order("k").bytes()).await;
    service.until_seen(1).await;
    let processing = send(proxy.address, &order("k")).await;
    assert_eq!((processing.status(), processing.one("idempotency-status")), (202, Some("processing")));
    assert!(processing.one("retry-after").is_some());
    let waiting = tokio::spawn({
        let address = proxy.address;
        async move { send(address, &order("k")).await }
    });
    gate.open();
    assert_eq!(first.answer().await.text(), "late");
    let waited = waiting.await.expect("it ends");
    assert_eq!((waited.text(), waited.one("idempotency-replayed")), ("late", Some("true")));
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn client_disconnect_does_not_cancel_the_request() {
    let file = fresh_file();
    let gate = ReleaseGate::default();
    let opened = gate.clone();
    let service = FakeService::start(move |_, _| {
        ServiceAction::AnswerWhen(opened.clone(), answer("201 Created", &[], "done"))
    })
    .await;
    let proxy = adapter(&service, &file.url, &[]);
    let mut impatient = ProxyClient::connect(proxy.address).await;
    impatient.write(order("k").bytes()).await;
    service.until_seen(1).await;
    drop(impatient);
    gate.open();
    let again = send(proxy.address, &order("k")).await;
    assert_eq!((again.status(), again.text()), (201, "done"));
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn stopping_adapter_awaits_abandoned_requests() {
    let file = fresh_file();
    let gate = ReleaseGate::default();
    let opened = gate.clone();
    let service = FakeService::start(move |_, _| {
        ServiceAction::AnswerWhen(opened.clone(), answer("201 Created", &[], "done"))
    })
    .await;
    let mut proxy = adapter(&service, &file.url, &[]);
    let mut impatient = ProxyClient::connect(proxy.address).await;
    impatient.write(order("k").bytes()).await;
    service.until_seen(1).await;
    drop(impatient);
    proxy.signal("TERM");
    crate::proxy::stopping::until_refused(proxy.address).await;
    gate.open();
    assert_eq!(proxy.wait().await.code(), Some(0));
    let next = adapter(&service, &file.url, &[]);
    let again = send(next.address, &order("k")).await;
    assert_eq!((again.text(), again.one("idempotency-replayed")), ("done", Some("true")));
}

#[tokio::test]
async fn abandoned_requests_are_limited_too() {
    let file = fresh_file();
    let gate = ReleaseGate::default();
    let opened = gate.clone();
    let service = FakeService::start(move |_, _| {
        ServiceAction::AnswerWhen(opened.clone(), answer("201 Created", &[], "done"))
    })
    .await;
    let proxy = adapter(&service, &file.url, &["--max-connections", "2"]);
    for index in 0..2 {
        let mut impatient = ProxyClient::connect(proxy.address).await;
        impatient.write(order(&format!("k{index}")).bytes()).await;
        service.until_seen(index + 1).await;
    }
    let busy = send(proxy.address, &order("k2")).await;
    assert_eq!(
        (busy.status(), busy.code().as_str(), busy.one("retry-after")),
        (503, "adapter_busy", Some("1"))
    );
    gate.open();
    // Both keys are settled eventually, and then there is space.
    let mut answered = send(proxy.address, &order("k2")).await;
    while answered.status() == 503 {
        answered = send(proxy.address, &order("k2")).await;
    }
    assert_eq!(answered.status(), 201);
}
