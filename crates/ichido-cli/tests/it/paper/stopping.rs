//! Stopping: requests in flight finish, and silenced callers still get no response.

use super::broker::{MockBroker, order};

#[tokio::test]
async fn it_ends_well_when_told_to_though_a_caller_waits_for_an_answer_that_never_comes() {
    for signal in ["TERM", "INT"] {
        let mut paper = MockBroker::start(&["--fault", "silence_after=1"]);
        let address = paper.address;
        let waiting = {
            let request = super::broker::request_of(&order("k"));
            tokio::spawn(async move { send_to(address, request).await })
        };
        while paper.counts("k").await.1 < 1 {}
        paper.signal(signal);
        assert_eq!(paper.wait().await.code(), Some(0), "{signal}");
        assert!(waiting.await.expect("it does not panic").is_none(), "it got no answer");
    }
}

#[tokio::test]
async fn an_answer_in_flight_is_given_before_it_ends() {
    let mut paper = MockBroker::start(&["--latency", "300ms"]);
    let address = paper.address;
    let waiting = {
        let request = super::broker::request_of(&order("k"));
        tokio::spawn(async move { send_to(address, request).await })
    };
    while paper.counts("k").await.1 < 1 {}
    paper.signal("TERM");
    assert_eq!(waiting.await.expect("it does not panic"), Some(200));
    assert_eq!(paper.wait().await.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_waits_for_nobody_and_the_code_says_so() {
    let mut paper = MockBroker::start(&["--latency", "1h"]);
    let address = paper.address;
    let request = super::broker::request_of(&order("k"));
    let waiting = tokio::spawn(async move { send_to(address, request).await });
    while paper.counts("k").await.1 < 1 {}
    paper.signal("TERM");
    while tokio::net::TcpStream::connect(address).await.is_ok() {}
    paper.signal("TERM");
    assert_eq!(paper.wait().await.code(), Some(3));
    assert!(waiting.await.expect("it does not panic").is_none());
}

/// Returns the status of the response, if there is one.
async fn send_to(
    address: std::net::SocketAddr,
    request: http::Request<http_body_util::Full<bytes::Bytes>>,
) -> Option<u16> {
    let stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await.expect("it speaks");
    tokio::spawn(connection);
    Some(sender.send_request(request).await.ok()?.status().as_u16())
}
