//! Stopping: requests in flight finish, and silenced callers still get no response.

use super::broker::{MockBroker, order};

#[tokio::test]
async fn mock_broker_stops_while_a_caller_waits_forever() {
    for signal in ["TERM", "INT"] {
        let mut mock = MockBroker::start(&["--fault", "silence_after=1"]);
        let address = mock.address;
        let waiting = {
            let request = super::broker::request_of(&order("k"));
            tokio::spawn(async move { send_to(address, request).await })
        };
        while mock.counts("k").await.1 < 1 {}
        mock.signal(signal);
        assert_eq!(mock.wait().await.code(), Some(0), "{signal}");
        assert!(waiting.await.expect("it does not panic").is_none(), "it got no answer");
    }
}

#[tokio::test]
async fn response_in_flight_is_sent_before_exit() {
    let mut mock = MockBroker::start(&["--latency", "300ms"]);
    let address = mock.address;
    let waiting = {
        let request = super::broker::request_of(&order("k"));
        tokio::spawn(async move { send_to(address, request).await })
    };
    while mock.counts("k").await.1 < 1 {}
    mock.signal("TERM");
    assert_eq!(waiting.await.expect("it does not panic"), Some(200));
    assert_eq!(mock.wait().await.code(), Some(0));
}

#[tokio::test]
async fn second_signal_stops_mock_broker_with_code_3() {
    let mut mock = MockBroker::start(&["--latency", "1h"]);
    let address = mock.address;
    let request = super::broker::request_of(&order("k"));
    let waiting = tokio::spawn(async move { send_to(address, request).await });
    while mock.counts("k").await.1 < 1 {}
    mock.signal("TERM");
    while tokio::net::TcpStream::connect(address).await.is_ok() {}
    mock.signal("TERM");
    assert_eq!(mock.wait().await.code(), Some(3));
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
