//! What the stream receives, and what it responds.

use async_nats::HeaderValue;
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use bytes::Bytes;
use ichido_core::verdict::ErrorCode;
use nats_for_tests::{NatsServer, WINDOW};

use super::tried::{
    BEFORE, DONE, NOT_TAKEN, WRONG, connected, order, outcome, settings, shared_settings, tried,
};

#[tokio::test]
async fn a_message_is_published_with_its_key_and_acknowledged() {
    let server = NatsServer::shared().await;
    server.make_stream().await;
    let receipt = format!("{}:1", server.stream());
    let nats = connected(&shared_settings(&server)).await;
    let call = order("ann:order-1");
    let (verdict, note) = tried(&nats, &call).await;
    assert_eq!((verdict.code, verdict.effect, verdict.advice), (None, DONE.1, DONE.2));
    assert_eq!((note.receipt.as_deref(), note.result_digest.is_some()), (Some(receipt.as_str()), true));
    let stored = server.stored().await;
    assert_eq!((stored.len(), stored[0].subject.as_str()), (1, server.subject()));
    assert_eq!(stored[0].payload, call.body);
    for (name, value) in [
        ("Nats-Msg-Id", "ann:order-1"),
        ("Nats-Expected-Stream", server.stream()),
        ("Idempotency-Key", "ann:order-1"),
        ("Ichido-Fence", "42"),
        ("Ichido-Attempt", "3"),
        ("Ichido-Message-Id", "01900000-0000-7000-8000-000000000007"),
        ("Content-Type", "application/json"),
        ("Ichido-Hops", r#"bff;t=1800000000000;r="7f1c""#),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ] {
        let found = stored[0].headers.get(name).map(HeaderValue::as_str);
        assert_eq!(found, Some(value), "{name}");
    }
    assert_eq!(stored[0].headers.len(), 9);
}

#[tokio::test]
async fn the_same_key_again_counts_as_done_before_and_is_stored_once() {
    let server = NatsServer::shared().await;
    server.make_stream().await;
    let receipt = format!("{}:1", server.stream());
    let nats = connected(&shared_settings(&server)).await;
    assert_eq!(outcome(&nats, &order("k1")).await, DONE);
    // Another key in between is another message.
    assert_eq!(outcome(&nats, &order("k2")).await, DONE);
    let (verdict, note) = tried(&nats, &order("k1")).await;
    assert_eq!((verdict.code.map(ErrorCode::as_str), verdict.effect, verdict.advice), BEFORE);
    assert_eq!((note.receipt.as_deref(), note.result_digest), (Some(receipt.as_str()), None));
    // From another process as well.
    let other = connected(&shared_settings(&server)).await;
    assert_eq!(outcome(&other, &order("k2")).await, BEFORE);
    assert_eq!(server.stored().await.len(), 2);
}

#[tokio::test]
async fn message_too_large_for_server_or_stream_is_dead() {
    let server = NatsServer::start_with("jetstream {}\nmax_payload: 2048").await;
    server.make_stream_as(|stream| stream.max_message_size = 1024).await;
    let nats = connected(&settings(server.url())).await;
    for (bytes, says) in [(2048, "max_payload"), (1024, "message size exceeds maximum allowed")] {
        let call =
            ichido::destination::DeliveryAttempt { body: Bytes::from(vec![b'x'; bytes]), ..order("large") };
        assert_eq!(outcome(&nats, &call).await, WRONG, "{bytes}");
        let why = tried(&nats, &call).await.1.excerpt.expect("it says why");
        assert!(why.contains(says), "{why}");
    }
    // The connection is still usable.
    assert_eq!(outcome(&nats, &order("small")).await, DONE);
    assert_eq!(server.stored().await.len(), 1);
}

#[tokio::test]
async fn full_stream_means_not_done_and_retry() {
    let server = NatsServer::shared().await;
    let stream = server
        .make_stream_as(|stream| {
            stream.max_messages = 1;
            stream.discard = DiscardPolicy::New;
        })
        .await;
    let nats = connected(&shared_settings(&server)).await;
    assert_eq!(outcome(&nats, &order("k1")).await, DONE);
    assert_eq!(outcome(&nats, &order("k2")).await, NOT_TAKEN);
    stream.purge().await.expect("it is emptied");
    assert_eq!(outcome(&nats, &order("k2")).await, DONE);
}

#[tokio::test]
async fn without_stream_message_is_not_done() {
    let server = NatsServer::shared().await;
    server.make_stream().await;
    let nats = connected(&shared_settings(&server)).await;
    let admin = server.admin().await;
    admin.delete_stream(server.stream()).await.expect("it is deleted");
    assert_eq!(outcome(&nats, &order("k1")).await, NOT_TAKEN);
    // Another stream, whose window nobody has checked, does not accept it either.
    let name = format!("{}-OTHER", server.stream());
    let subjects = vec![server.subject().to_owned()];
    let other = Config { name: name.clone(), subjects, ..Config::default() };
    let other = admin.create_stream(other).await.expect("it is made");
    assert_eq!(outcome(&nats, &order("k1")).await, NOT_TAKEN);
    assert_eq!(other.get_info().await.expect("it is there").state.messages, 0);
    admin.delete_stream(name).await.expect("it is deleted");
    server.make_stream_as(|stream| stream.duplicate_window = WINDOW).await;
    assert_eq!(outcome(&nats, &order("k1")).await, DONE);
}

#[tokio::test]
async fn invalid_media_type_is_not_sent() {
    let server = NatsServer::shared().await;
    server.make_stream().await;
    let nats = connected(&shared_settings(&server)).await;
    let call = ichido::destination::DeliveryAttempt {
        content_type: "text/plain\r\nNats-Msg-Id: x".to_owned(),
        ..order("k")
    };
    assert_eq!(outcome(&nats, &call).await, WRONG);
    assert_eq!(server.stored().await.len(), 0);
}
