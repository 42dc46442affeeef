//! Messages that wait for their destination's pace while their worker is killed.
// Spec: E2.

use ichido_core::lifecycle::StateName;

use super::database::{OutboxDatabase, both_databases};
use super::program::WorkerProcess;
use super::sending::config;
use crate::folder;
use crate::mock_broker::broker::MockBroker;

both_databases! {
    /// The message was accepted and never called, so it is neither dead nor parked, and is delivered when the pace
    /// allows.
    #[test]
    async fn message_waiting_for_pace_survives_every_kill(database: OutboxDatabase) {
        const KILLS: usize = 3;
        let (folder, mock) = (folder::fresh(), MockBroker::start(&[]));
        let queue = "outbound_key = \"own\"\nlease = \"3s\"\nretry = { base = \"20ms\" }\n\
                     [queues.other]\ndestination = \"elsewhere\"\noutbound_key = \"own\"";
        let slow = |rate: &str| {
            let elsewhere = format!("[destinations.elsewhere]\nkind = \"mock\"\nurl = \"http://{}/orders\"", mock.address);
            config(&database, &mock, queue, &format!("total_timeout = \"2s\"\nmin_rate = 0.0001\nmax_rate = {rate}\n{elsewhere}"))
        };
        folder.write("ichido.toml", &slow("0.001"));
        let first = WorkerProcess::start(folder.path(), &[]);
        let sent = database.put("first").await;
        database.until_stage(sent, StateName::Sent).await;
        // The first worker may have begun to claim before it knew of its own slot, so it does not see the message.
        first.kill().await;
        let waits = database.put("waits").await;
        for kill in 0..KILLS {
            let worker = WorkerProcess::start(folder.path(), &[]);
            // Messages of another queue are sent meanwhile, so the worker had time to claim the waiting one.
            for number in 0..5 {
                let other = database.put_in("other", &format!("other-{kill}-{number}")).await;
                database.until_stage(other, StateName::Sent).await;
            }
            worker.kill().await;
            let row = database.row(waits).await;
            assert_eq!((row.status, row.attempts), (StateName::Queued, 0), "{row:?}");
        }
        assert_eq!(mock.counts("waits").await, (0, 0));
        folder.write("ichido.toml", &slow("1000"));
        let _worker = WorkerProcess::start(folder.path(), &[]);
        database.until_stage(waits, StateName::Sent).await;
        assert_eq!(mock.counts("waits").await, (1, 1));
    }
}
