//! Stopping: requests in flight finish, and nothing new starts.

use tokio::net::TcpStream;

use super::client::{ProxyClient, ProxyRequest};
use super::program::ProxyProcess;
use super::service::{FakeService, ReleaseGate, ServiceAction, answer};

struct InFlightCall {
    service: FakeService,
    gate: ReleaseGate,
    proxy: ProxyProcess,
    client: ProxyClient,
}

/// Starts a request that the service holds back.
async fn in_flight(flags: &[&str]) -> InFlightCall {
    let gate = ReleaseGate::default();
    let opened = gate.clone();
    let service = FakeService::start(move |_, _| {
        ServiceAction::AnswerWhen(opened.clone(), answer("200 OK", &[], "late"))
    })
    .await;
    let proxy = ProxyProcess::start("gateway", service.address, flags);
    let mut client = ProxyClient::connect(proxy.address).await;
    client.write(ProxyRequest::post("/").key("k").body("x").bytes()).await;
    service.until_seen(1).await;
    InFlightCall { service, gate, proxy, client }
}

/// Polls until nobody listens there any more.
pub(crate) async fn until_refused(address: std::net::SocketAddr) {
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn signal_finishes_requests_in_flight_and_refuses_connections() {
    for signal in ["TERM", "INT"] {
        let mut in_flight = in_flight(&[]).await;
        in_flight.proxy.signal(signal);
        until_refused(in_flight.proxy.address).await;
        in_flight.gate.open();
        let answer = in_flight.client.answer().await;
        assert_eq!((answer.status(), answer.text()), (200, "late"));
        assert!(in_flight.client.reader.is_at_end().await, "its connection is closed after it");
        assert_eq!(in_flight.proxy.wait().await.code(), Some(0), "{signal}");
        assert_eq!(in_flight.service.seen().len(), 1);
    }
}

#[tokio::test]
async fn idle_connections_do_not_delay_shutdown() {
    let service = FakeService::plain().await;
    let mut proxy = ProxyProcess::start("bff", service.address, &[]);
    let mut used = ProxyClient::connect(proxy.address).await;
    assert_eq!(used.send(&ProxyRequest::get("/")).await.status(), 200);
    let _unused = ProxyClient::connect(proxy.address).await;
    proxy.signal("TERM");
    assert_eq!(proxy.wait().await.code(), Some(0));
    assert!(used.reader.is_at_end().await);
}

#[tokio::test]
async fn drain_timeout_closes_connections_with_code_3() {
    let mut in_flight = in_flight(&["--drain-timeout", "50ms"]).await;
    in_flight.proxy.signal("TERM");
    assert_eq!(in_flight.proxy.wait().await.code(), Some(3));
    assert!(in_flight.client.try_answer().await.is_none());
}

#[tokio::test]
async fn second_signal_stops_proxy_immediately() {
    let mut in_flight = in_flight(&["--drain-timeout", "1h"]).await;
    in_flight.proxy.signal("TERM");
    until_refused(in_flight.proxy.address).await;
    in_flight.proxy.signal("TERM");
    assert_eq!(in_flight.proxy.wait().await.code(), Some(3));
    assert!(in_flight.client.try_answer().await.is_none());
}
