//! Worker processes that die or stall while their lease runs for much longer.
// Spec: D12.

use ichido_core::lifecycle::StateName;
use uuid::Uuid;

use super::database::{OutboxDatabase, POLL_EVERY, in_time};
use super::program::WorkerProcess;
use super::sending::config;
use super::standing_still::stop_during_call;
use crate::folder;
use crate::mock_broker::broker::MockBroker;

/// One call at a time, and a lease that no test reaches.
const LONG_LEASE: &str =
    "outbound_key = \"own\"\nlease = \"10m\"\nparallelism = 1\nretry = { base = \"20ms\" }";

/// The only worker of an SQLite file is killed during a call. The next one sees by its lock that it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_sqlite_workers_message_is_rescued_at_restart() {
    in_time(1, async {
        let database = OutboxDatabase::sqlite().await;
        let (folder, mock) = (folder::fresh(), MockBroker::start(&["--latency", "1500ms"]));
        folder.write("ichido.toml", &config(&database, &mock, LONG_LEASE, "total_timeout = \"2s\""));
        let killed = WorkerProcess::start(folder.path(), &[]);
        let (key, id) = stop_during_call(&killed, &database, &mock).await;
        let holder = database.store.messages().holder(id).await.unwrap().expect("it is held");
        assert_eq!(holder.node, killed.id());
        killed.kill().await;
        mock.put("/mock/faults", r#"{"latency_ms":0}"#).await;
        let next = WorkerProcess::start(folder.path(), &[]);
        database.until_stage(id, StateName::Sent).await;
        assert_eq!(next.metric("ichido_worker_rescued_total", &[]).await, Some(1.0));
        assert_eq!(mock.counts(&key).await, (1, 2));
        let path = std::path::Path::new(database.url.strip_prefix("sqlite:").unwrap());
        let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let locks: Vec<String> = names.filter(|name| name.contains("-node-")).collect();
        assert_eq!(locks, [format!("ichido.db-node-{}", next.id().simple())], "only the living have one");
    })
    .await;
}

/// One of two nodes stalls for longer than its heartbeat's deadline, during a call and with a second message. The other node
/// sends both, and the first makes no call when it continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_node_makes_no_call_after_its_heartbeat_lapsed() {
    in_time(1, async {
        let database = OutboxDatabase::postgres().await;
        let (folder, mock) = (folder::fresh(), MockBroker::start(&["--latency", "1500ms"]));
        folder.write("ichido.toml", &config(&database, &mock, LONG_LEASE, "total_timeout = \"2s\""));
        let mut stuck = WorkerProcess::start(folder.path(), &[]);
        let (ids, waiting) = stop_with_two_messages(&stuck, &database, &mock).await;
        let next = WorkerProcess::start(folder.path(), &[]);
        mock.put("/mock/faults", r#"{"latency_ms":0}"#).await;
        for id in ids {
            database.until_stage(id, StateName::Sent).await;
        }
        assert_eq!(next.metric("ichido_worker_rescued_total", &[]).await, Some(2.0));
        stuck.signal("CONT");
        // It has processed both, and could settle neither.
        while stuck.metric("ichido_worker_fenced_total", &[]).await != Some(2.0) {
            tokio::time::sleep(POLL_EVERY).await;
        }
        stuck.signal("TERM");
        let (code, log) = stuck.wait().await;
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("this node was declared dead; its claims are lost"), "{log}");
        assert_eq!(mock.counts(&waiting).await, (1, 1), "{log}");
    })
    .await;
}

/// Stops a worker during a call, while it holds a second message; returns both, and the key of the second.
async fn stop_with_two_messages(
    worker: &WorkerProcess,
    database: &OutboxDatabase,
    mock: &MockBroker,
) -> ([Uuid; 2], String) {
    for number in 0.. {
        let (called, waiting) = (format!("called-{number}"), format!("waiting-{number}"));
        let ids = [database.put(&called).await, database.put(&waiting).await];
        while mock.counts(&called).await.1 == 0 {
            tokio::time::sleep(POLL_EVERY).await;
        }
        database.until(ids[1], |row| row.status != StateName::Queued).await;
        worker.stop().await;
        let states = [database.row(ids[0]).await.status, database.row(ids[1]).await.status];
        if states == [StateName::Sending; 2] && mock.counts(&waiting).await.1 == 0 {
            return (ids, waiting);
        }
        // Too late.
        worker.signal("CONT");
        for id in ids {
            database.until_stage(id, StateName::Sent).await;
        }
    }
    unreachable!("numbers do not end")
}
