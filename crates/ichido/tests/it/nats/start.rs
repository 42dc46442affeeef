//! What is read at startup, and what is refused then.

use std::time::Duration;

use ichido::destination::DeliveryTerms;
use ichido::destination::nats::{MIN_SETTLE_GRACE, NatsSettings, NatsStartError};
use ichido_core::retry::Guarantee;
use nats_for_tests::NatsServer;
use tokio::net::TcpListener;

use super::tried::{connect, connected, settings, shared_settings};

#[tokio::test]
async fn promise_is_duplicate_window_less_time_in_flight() {
    let server = NatsServer::shared().await;
    // Two minutes by default.
    server.make_stream_as(|stream| stream.duplicate_window = Duration::ZERO).await;
    let wanted = NatsSettings::new(server.url(), server.subject());
    let nats = connected(&NatsSettings { connect_timeout: wanted.timeout, ..wanted }).await;
    let promise = DeliveryTerms {
        guarantee: Guarantee::Keyed { keeps_for: Duration::from_mins(2) },
        timeout: Duration::from_secs(10),
        settle_grace: Duration::from_mins(1),
    };
    assert_eq!((nats.terms(), nats.stream()), (promise, server.stream()));
}

#[tokio::test]
async fn duplicate_window_shorter_than_publish_is_refused() {
    let server = NatsServer::shared().await;
    let window = Duration::from_secs(25);
    server.make_stream_as(|stream| stream.duplicate_window = window).await;
    let short = NatsSettings {
        timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        ..shared_settings(&server)
    };
    let error = connect(&short).await.expect_err("it forgets too soon");
    let in_flight = Duration::from_secs(10) + MIN_SETTLE_GRACE;
    assert_eq!(error, NatsStartError::ShortWindow { stream: server.stream().to_owned(), window, in_flight });
    assert!(error.to_string().contains("lengthen duplicate_window"), "{error}");
}

#[tokio::test]
async fn unreachable_server_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    drop(listener);
    let error = connect(&settings(format!("nats://{address}"))).await.expect_err("nothing listens");
    let text = error.to_string();
    assert!(matches!(error, NatsStartError::Unreachable { .. }), "{text}");
    assert!(text.contains(&address.to_string()) && text.contains("start the server or fix urls"), "{text}");
}

#[tokio::test]
async fn reachable_server_is_found_among_several() {
    let server = NatsServer::shared().await;
    server.make_stream().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it listens");
    drop(listener);
    let mut both = shared_settings(&server);
    both.urls.push(format!("nats://{address}"));
    // Which one is tried first is random.
    for _ in 0..8 {
        connected(&both).await;
    }
}

#[tokio::test]
async fn missing_or_unacknowledged_stream_is_refused() {
    let bare = NatsServer::start_with("").await;
    let error = connect(&settings(bare.url())).await.expect_err("there is no JetStream");
    assert!(matches!(error, NatsStartError::NoJetStream { .. }), "{error}");

    let server = NatsServer::shared().await;
    let error = connect(&shared_settings(&server)).await.expect_err("there is no stream");
    assert!(matches!(error, NatsStartError::NoStream { .. }), "{error}");
    assert!(error.to_string().contains(server.subject()), "{error}");

    server.make_stream_as(|stream| stream.no_ack = true).await;
    let error = connect(&shared_settings(&server)).await.expect_err("it does not acknowledge");
    assert_eq!(error, NatsStartError::NoAck { stream: server.stream().to_owned() });
}
