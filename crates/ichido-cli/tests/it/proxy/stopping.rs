//! Stopping: what is in flight ends, and nothing new begins.

use tokio::net::TcpStream;

use super::client::{Client, Request};
use super::program::Proxy;
use super::service::{Act, Gate, Service, answer};

struct Held {
    service: Service,
    gate: Gate,
    proxy: Proxy,
    client: Client,
}

/// A request in flight that the service holds back, and an idle connection.
async fn held(flags: &[&str]) -> Held {
    let gate = Gate::default();
    let opened = gate.clone();
    let service =
        Service::start(move |_, _| Act::AnswerWhen(opened.clone(), answer("200 OK", &[], "late"))).await;
    let proxy = Proxy::start("gateway", service.address, flags);
    let mut client = Client::connect(proxy.address).await;
    client.write(Request::post("/").key("k").body("x").bytes()).await;
    service.until_seen(1).await;
    Held { service, gate, proxy, client }
}

/// Polls until nobody listens there any more.
pub(crate) async fn until_refused(address: std::net::SocketAddr) {
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn after_a_signal_the_request_in_flight_ends_and_new_connections_are_refused() {
    for signal in ["TERM", "INT"] {
        let mut held = held(&[]).await;
        held.proxy.signal(signal);
        until_refused(held.proxy.address).await;
        held.gate.open();
        let answer = held.client.answer().await;
        assert_eq!((answer.status(), answer.text()), (200, "late"));
        assert!(held.client.reader.is_at_end().await, "its connection is closed after it");
        assert_eq!(held.proxy.wait().await.code(), Some(0), "{signal}");
        assert_eq!(held.service.seen().len(), 1);
    }
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_end() {
    let service = Service::plain().await;
    let mut proxy = Proxy::start("bff", service.address, &[]);
    let mut used = Client::connect(proxy.address).await;
    assert_eq!(used.send(&Request::get("/")).await.status(), 200);
    let _unused = Client::connect(proxy.address).await;
    proxy.signal("TERM");
    assert_eq!(proxy.wait().await.code(), Some(0));
    assert!(used.reader.is_at_end().await);
}

#[tokio::test]
async fn what_does_not_end_in_time_is_cut_and_the_exit_code_says_so() {
    let mut held = held(&["--drain-timeout", "50ms"]).await;
    held.proxy.signal("TERM");
    assert_eq!(held.proxy.wait().await.code(), Some(3));
    assert!(held.client.try_answer().await.is_none());
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    let mut held = held(&["--drain-timeout", "1h"]).await;
    held.proxy.signal("TERM");
    until_refused(held.proxy.address).await;
    held.proxy.signal("TERM");
    assert_eq!(held.proxy.wait().await.code(), Some(3));
    assert!(held.client.try_answer().await.is_none());
}
