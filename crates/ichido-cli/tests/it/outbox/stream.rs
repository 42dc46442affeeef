//! Messages to a NATS stream, from the configuration alone.
// Spec: D7, F2.

use std::process::Stdio;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use ichido::worker::OutboundKey;
use ichido_core::lifecycle::StateName;
use ichido_store::message::QueueName;
use nats_for_tests::{NatsServer, SUBJECT};
use tokio::net::TcpListener;

use super::database::{OutboxDatabase, POLL_EVERY, both_databases, key};
use super::program::{WorkerProcess, ichido, run};
use crate::folder;

const BODY: &str = r#"{"symbol":"ACME","qty":"10"}"#;
/// Long enough for a busy machine.
const TIMEOUT: &str = "connect_timeout = \"20s\"\ntimeout = \"20s\"\n";

/// The configuration of a queue that delivers to a stream.
fn config(store: &str, url: &str, more: &str) -> String {
    format!(
        "[store]\nurl = \"{store}\"\n[worker]\nidle_sleep = \"20ms\"\n[queues.orders]\ndestination = \"bus\"\n\
         [destinations.bus]\nkind = \"nats\"\nurls = [\"{url}\"]\nsubject = \"{SUBJECT}\"\n{more}\n"
    )
}

/// Returns the key under which the stream knows a message of the command line.
fn outbound(text: &str) -> String {
    let queue = QueueName::parse("orders").unwrap();
    OutboundKey::Derived.key_for(&queue, "local", &key(text)).as_str().to_owned()
}

both_databases! {
    /// A message that the stream already has is in it once, and counts as already done.
    // Spec: D7, D14.
    #[test]
    async fn stream_contains_message_once_and_duplicate_counts_as_done(database: OutboxDatabase) {
        let (folder, server) = (folder::fresh(), NatsServer::start().await);
        server.make_stream().await;
        folder.write("ichido.toml", &config(&database.url, &server.url(), TIMEOUT));
        let checked = run(folder.path(), &["config", "check"], "");
        assert!(checked.code == Some(0) && checked.out.contains("duplicate window of its stream"), "{checked:?}");

        // As left by a worker that died before it got the response.
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, outbound("k2").as_str());
        let admin = server.admin().await;
        admin.publish_with_headers(SUBJECT, headers, BODY.into()).await.unwrap().await.unwrap();

        let mut worker = WorkerProcess::start(folder.path(), &[]);
        assert!(worker.startup_output.iter().any(|line| line.contains("goes to bus at nats://127.0.0.1:")), "{:?}", worker.startup_output);
        for text in ["k1", "k2"] {
            let sent = run(folder.path(), &["send", "orders", "--key", text], BODY);
            assert_eq!(sent.code, Some(0), "{sent:?}");
        }
        while database.count(&[StateName::Sent]).await != 2 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        let stored = server.stored().await;
        let ids: Vec<&str> = stored.iter().map(|message| message.headers.get(NATS_MESSAGE_ID).unwrap().as_str()).collect();
        assert_eq!(ids, [outbound("k2"), outbound("k1")]);
        assert_eq!(&stored[1].payload[..], BODY.as_bytes());
        // The worker counts an outcome a moment after it is stored.
        while worker.metric("outbox_lag_seconds_count", &[("queue", "orders")]).await != Some(2.0) {
            tokio::time::sleep(POLL_EVERY).await;
        }
        for (outcome, count) in [("success", 1.0), ("conflict_processed", 1.0), ("retry", 0.0)] {
            assert_eq!(worker.metric("outbox_send_total", &[("outcome", outcome)]).await, Some(count), "{outcome}");
        }
        assert_eq!(worker.metric("ichido_worker_replayed_total", &[]).await, Some(1.0));
        worker.signal("TERM");
        let (code, log) = worker.wait().await;
        assert_eq!((code, log.contains("forgets keys")), (Some(0), false), "{log}");
    }
}

/// The errors of all destinations are reported at once. The start may succeed later, so the exit code is 1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_reports_stream_errors_and_does_not_start() {
    let (folder, server) = (folder::fresh(), NatsServer::start().await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let away =
        format!("[destinations.away]\nkind = \"nats\"\nurls = [\"nats://{nobody}\"]\nsubject = \"away\"\n");
    folder.write("ichido.toml", &config("sqlite:ichido.db", &server.url(), &format!("{TIMEOUT}{away}")));
    let checked = run(folder.path(), &["config", "check"], "");
    assert_eq!(checked.code, Some(0), "nobody is asked: {checked:?}");
    let refused = run(folder.path(), &["worker"], "");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for part in [
        "cannot start the worker: 2 problems",
        "destinations.bus: no stream at nats://127.0.0.1:",
        "covers the subject orders.placed",
        "destinations.away: ",
        "start the server or fix urls",
    ] {
        assert!(refused.err.contains(part), "no {part} in {}", refused.err);
    }
    assert!(!folder.path().join("ichido.db").exists(), "nothing was begun");

    // A publish may be in flight for the timeout and a minute.
    server.make_stream_as(|stream| stream.duplicate_window = Duration::from_secs(30)).await;
    folder.write("ichido.toml", &config("sqlite:ichido.db", &server.url(), TIMEOUT));
    let refused = run(folder.path(), &["worker"], "");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("stream ORDERS remembers ids for 30s (duplicate_window)"),
        "{}",
        refused.err
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_reports_stream_with_short_duplicate_window() {
    let (folder, server) = (folder::fresh(), NatsServer::start().await);
    // Two minutes, unless it is created with another value.
    server.make_stream_as(|stream| stream.duplicate_window = Duration::ZERO).await;
    folder.write("ichido.toml", &config("sqlite:ichido.db", &server.url(), TIMEOUT));
    let mut worker = WorkerProcess::start(folder.path(), &[]);
    worker.signal("TERM");
    let (code, log) = worker.wait().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("destination forgets keys before the last retry"), "{log}");
    assert!(log.contains("set duplicate_window of stream ORDERS to "), "{log}");
}

/// A silent server does not prevent a stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connecting_worker_stops_on_signal() {
    let folder = folder::fresh();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nats://{}", silent.local_addr().unwrap());
    let patient = "connect_timeout = \"1h\"\ntimeout = \"1h\"\n[queue_defaults]\nlease = \"2h\"\n";
    folder.write("ichido.toml", &config("sqlite:ichido.db", &url, patient));
    let mut command = ichido(folder.path());
    let child = command.arg("worker").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _line = silent.accept().await.unwrap();
    let output = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(output.unwrap().success());
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
}
