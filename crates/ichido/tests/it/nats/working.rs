//! Workers whose messages go to a stream.
// Spec: D7, D12, F2.

use std::time::Duration;

use ichido::destination::nats::{Nats, NatsSettings};
use ichido::worker::{DestinationConfig, QueueConfig, Worker};
use ichido_core::lifecycle::StateName;
use ichido_core::verdict::Effect;
use nats_for_tests::{NatsServer, SUBJECT, WINDOW};

use super::proxy::{Mode, NatsProxy};
use super::tried::connected;
use crate::warnings::WarningCapture;
use crate::worker::fixture::{AFTER_LEASE, BACKOFF, LEASE, QUEUE, WorkerFixture, backoff, both_databases};

/// Shorter than the lease, and long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

async fn stream_at(url: String, subject: &str) -> Nats {
    let settings = NatsSettings::new(url, subject);
    connected(&NatsSettings { connect_timeout: TIMEOUT, timeout: TIMEOUT, ..settings }).await
}

fn builder(fixture: &WorkerFixture, nats: Nats) -> Worker {
    let queue = QueueConfig { lease: LEASE, retry: backoff(), ..QueueConfig::new(QUEUE, QUEUE) };
    fixture.builder().destination(DestinationConfig::new(QUEUE, nats)).queue(queue)
}

both_databases! {
    /// A worker dies after its publish was stored and before it received the acknowledgement; the next one finds it done.
    // Spec: D7, D12.
    #[test]
    async fn a_message_of_a_dead_worker_is_in_the_stream_once(fixture: WorkerFixture) {
        let server = NatsServer::start().await;
        server.make_stream().await;
        let proxy = NatsProxy::before(server.address).await;
        let worker = builder(&fixture, stream_at(proxy.url(), SUBJECT).await).start().expect("a worker");
        proxy.set(Mode::Silence);
        let id = fixture.put("k1").await;
        server.until_stored(1).await;
        drop(worker);
        let other = fixture.another_node().await;
        other.pass(AFTER_LEASE);
        let _worker = builder(&other, stream_at(server.url(), SUBJECT).await).start().expect("a worker");
        let row = other.until(id, StateName::Failed).await;
        assert_eq!((row.attempts, row.effect), (1, Effect::Unknown));
        other.pass(BACKOFF);
        other.until(id, StateName::Sent).await;
        let steps = other.transitions(id).await;
        assert_eq!(steps.last().and_then(|step| step.receipt.as_deref()), Some("ORDERS:1"));
        let stored = server.stored().await;
        assert_eq!(stored.len(), 1);
        assert_eq!(&stored[0].payload[..], b"{\"n\":\"k1\"}");
    }
}

/// At startup, the worker warns that the stream forgets ids before the last retry, and how to fix it.
// Spec: F2.
#[tokio::test]
async fn window_shorter_than_retries_is_logged_at_startup() {
    let server = NatsServer::shared().await;
    let mut stream = server.make_stream_as(|stream| stream.duplicate_window = Duration::ZERO).await;
    let fixture = WorkerFixture::sqlite().await;
    let warnings = WarningCapture::default();
    let start = async |warnings: &WarningCapture| {
        let builder = builder(&fixture, stream_at(server.url(), server.subject()).await);
        let _worker =
            tracing::subscriber::with_default(warnings.clone(), || builder.start().expect("a worker"));
        warnings.take()
    };
    let said = start(&warnings).await.join("\n");
    assert!(said.contains("forgets keys before the last retry"), "{said}");
    let advice = format!("set duplicate_window of stream {} to", server.stream());
    assert!(said.contains(&advice), "{said}");
    // As advised: all retries, and the time in flight.
    let mut config = stream.info().await.expect("it is there").config.clone();
    config.duplicate_window = WINDOW;
    server.admin().await.update_stream(config).await.expect("it is changed");
    assert_eq!(start(&warnings).await, Vec::<String>::new());
}
