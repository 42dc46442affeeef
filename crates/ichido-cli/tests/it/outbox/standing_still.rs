//! A worker process stalls past its lease, and then continues.
// Spec: D12.

use std::time::Duration;

use ichido_core::lifecycle::StateName;
use uuid::Uuid;

use super::database::{OutboxDatabase, POLL_EVERY, both_databases};
use super::program::WorkerProcess;
use super::sending::config;
use crate::folder;
use crate::mock_broker::broker::MockBroker;

/// How long a write may take before a stopped process is assumed to hold a lock.
const WRITES_WITHIN: Duration = Duration::from_secs(1);

/// The longest wait before the current state is reported.
const MAX_WAIT: Duration = Duration::from_mins(3);

/// Returns whether the database accepts writes: on SQLite, a process that was stopped inside a transaction blocks all
/// others.
async fn can_be_written(database: &OutboxDatabase) -> bool {
    let probe = database.store.nodes().heartbeat(Uuid::now_v7(), "probe");
    matches!(tokio::time::timeout(WRITES_WITHIN, probe).await, Ok(Ok(_)))
}

/// Stops a worker during a call for its own message, between two writes; returns the message's key and id.
pub(super) async fn stop_during_call(
    worker: &WorkerProcess,
    database: &OutboxDatabase,
    mock: &MockBroker,
) -> (String, Uuid) {
    for number in 0.. {
        let key = format!("k{number}");
        let id = database.put(&key).await;
        while mock.counts(&key).await.1 == 0 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        worker.stop().await;
        if can_be_written(database).await && database.row(id).await.status == StateName::Sending {
            return (key, id);
        }
        // Too late, or at an inconclusive moment.
        worker.signal("CONT");
        database.until_stage(id, StateName::Sent).await;
    }
    unreachable!("numbers do not end")
}

/// Waits for a condition; on a timeout, reports the current state.
async fn until(
    database: &OutboxDatabase,
    id: Uuid,
    workers: [&WorkerProcess; 2],
    is: impl AsyncFn() -> bool,
) {
    let waiting = async {
        while !is().await {
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    if tokio::time::timeout(MAX_WAIT, waiting).await.is_err() {
        let steps = database.store.messages().transitions(id).await.unwrap();
        let [stuck, next] = workers;
        stuck.signal("CONT");
        let pages = [stuck.metrics().await, next.metrics().await].join("\n");
        panic!("{:?}\n{steps:#?}\n{pages}", database.row(id).await);
    }
}

both_databases! {
    /// The worker is stopped during its call, another takes over its message, and then it continues.
    ///
    /// Its settlement is refused, the broker has seen both fences, and there is one effect.
    #[test]
    async fn stuck_worker_cannot_settle_after_rescue(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&["--latency", "1500ms"]));
        let queue = "outbound_key = \"own\"\nlease = \"3s\"\nretry = { base = \"20ms\" }";
        folder.write("ichido.toml", &config(&database, &mock, queue, "total_timeout = \"2s\""));
        let mut stuck = WorkerProcess::start(folder.path(), &[]);
        let (key, id) = stop_during_call(&stuck, &database, &mock).await;
        let next = WorkerProcess::start(folder.path(), &[]);
        mock.put("/mock/faults", r#"{"latency_ms":0}"#).await;
        let is_sent = async || database.row(id).await.status == StateName::Sent;
        until(&database, id, [&stuck, &next], is_sent).await;
        assert_eq!(next.metric("ichido_worker_rescued_total", &[]).await, Some(1.0));

        stuck.signal("CONT");
        let is_fenced = async || stuck.metric("ichido_worker_fenced_total", &[]).await == Some(1.0);
        until(&database, id, [&stuck, &next], is_fenced).await;
        let steps = database.store.messages().transitions(id).await.unwrap();
        let sent: Vec<_> = steps.iter().filter(|step| step.to == StateName::Sent).collect();
        assert_eq!(sent.len(), 1, "{steps:?}");
        assert_eq!(sent[0].node, Some(next.id()), "{steps:?}");
        assert_eq!(database.row(id).await.status, StateName::Sent);
        let seen = mock.effects().await["keys"][&key].clone();
        let fences: Vec<u64> = serde_json::from_value(seen["fences"].clone()).unwrap();
        assert!(fences.len() == 2 && fences[0] < fences[1], "{fences:?}");
        assert_eq!(mock.counts(&key).await, (1, 2));
        stuck.signal("TERM");
        let (code, log) = stuck.wait().await;
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("report arrived after its claim was lost"), "{log}");
    }
}
