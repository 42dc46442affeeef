//! The acceptance tests of the outbox worker.
// Spec: D16.

use std::time::Duration;

use ichido::destination::http::{DeliveryRule, HttpSettings, ResponseMeaning};
use ichido::worker::{DestinationConfig, OutboundKey, Paces, QueueConfig, Worker, WorkerHandle};
use ichido_core::lifecycle::StateName;
use ichido_core::pace::Rate;
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::message::{MessageRow, Transition};

use super::database::{OutboxDatabase, POLL_EVERY, QUEUE, both_databases};
use super::program::{WorkerProcess, run};
use super::sending::config;
use crate::folder;
use crate::mock_broker::broker::{MockBroker, order};

/// Returns the transitions of a message with their reasons.
async fn steps(
    database: &OutboxDatabase,
    row: &MessageRow,
) -> Vec<(String, StateName, Option<String>, Option<u16>)> {
    let steps = database.store.messages().transitions(row.id).await.expect("an answer");
    steps.into_iter().map(|Transition { kind, to, code, status, .. }| (kind, to, code, status)).collect()
}

async fn faults(mock: &MockBroker, kind: &str) {
    let rates = if kind.is_empty() { String::new() } else { format!("\"{kind}\":1") };
    assert_eq!(mock.put("/mock/faults", &format!("{{\"faults\":{{{rates}}}}}")).await.status, 200);
}

/// Starts a worker in this process whose clock can be moved, configured as a user describes the broker.
fn worker(store: &Store, mock: &MockBroker) -> WorkerHandle {
    let conflict = |error: &str, means| DeliveryRule {
        status: "409".to_owned(),
        at: Some(("/error".to_owned(), error.to_owned())),
        means,
    };
    let broker = HttpSettings {
        echoes_key: true,
        rules: vec![
            conflict("already_processed", ResponseMeaning::Processed),
            conflict("in_progress", ResponseMeaning::InProgress),
        ],
        ..HttpSettings::new(
            format!("http://{}/orders", mock.address),
            Guarantee::Keyed { keeps_for: Duration::from_hours(24) },
        )
    };
    let queue = QueueConfig { outbound_key: OutboundKey::Own, ..QueueConfig::new(QUEUE, "broker") };
    let builder = Worker::new(store.clone()).idle_sleep(Duration::from_millis(10)).queue(queue);
    builder.destination(DestinationConfig::new("broker", broker.resolve().unwrap())).start().unwrap()
}

/// How much later than the failure its record may be written. The later waits of the schedule are far longer.
const SETTLE_DELAY_S: f64 = 2.0;

both_databases! {
    /// With processes only: the result of each response, in the audit trail and on the metrics page.
    #[test]
    async fn d16_broker_responses_show_in_audit_and_metrics(database: OutboxDatabase) {
        let (folder, mock) = (folder::fresh(), MockBroker::start(&[]));
        let quick = "outbound_key = \"own\"\nretry = { base = \"20ms\", cap = \"320ms\" }\nmax_retries = 100";
        folder.write("ichido.toml", &config(&database, &mock, quick, "circuit = { failures = 1000 }"));
        let worker = WorkerProcess::start(folder.path(), &[]);

        // The same key enqueued 10 times at once is sent once.
        let body = order("ten").body;
        let sent: Vec<_> = std::thread::scope(|scope| {
            let send = || run(folder.path(), &["send", "orders", "--key", "ten", "--identity", "ann"], &body);
            let sending: Vec<_> = (0..10).map(|_| scope.spawn(send)).collect();
            sending.into_iter().map(|sending| sending.join().expect("it ends")).collect()
        });
        assert!(sent.iter().all(|ended| ended.code == Some(0)), "{sent:?}");
        assert_eq!(sent.iter().filter(|ended| ended.out.starts_with("new ")).count(), 1, "{sent:?}");
        let ten = database.by_key("ten").await;
        database.until_stage(ten.id, StateName::Sent).await;
        assert_eq!(mock.counts("ten").await, (1, 1));

        // Dead at once: 400, 401, and a 409 that is neither processed nor in progress.
        for (kind, code, status) in
            [("bad_request", "BAD_REQUEST", 400), ("unauthorized", "UNAUTHORIZED", 401), ("conflict_other", "BAD_REQUEST", 409)]
        {
            faults(&mock, kind).await;
            let id = database.put(kind).await;
            let row = database.until_stage(id, StateName::Dead).await;
            assert_eq!((row.attempts, row.last_error.as_deref()), (1, Some(code)), "{kind}");
            let last = steps(&database, &row).await.pop().unwrap();
            assert_eq!((last.1, last.2.as_deref(), last.3), (StateName::Dead, Some(code), Some(status)), "{kind}");
            assert_eq!(mock.counts(kind).await.1, 1, "{kind}");
        }
        // A 409 that says processed counts as sent.
        faults(&mock, "conflict_processed").await;
        let id = database.put("conflict_processed").await;
        let row = database.until_stage(id, StateName::Sent).await;
        let last = steps(&database, &row).await.pop().unwrap();
        assert_eq!((last.1, last.2.as_deref(), last.3), (StateName::Sent, Some("CONFLICT_PROCESSED"), Some(409)));
        // Retried until it succeeds: 5xx, no response, 429, and a 409 that says in progress.
        for (kind, code) in [
            ("server_error_before", "BROKER_5XX"),
            ("server_error_after", "BROKER_5XX"),
            ("reset_after", "NETWORK_TIMEOUT"),
            ("conflict_in_progress", "IN_PROGRESS"),
            ("rate_limited", "RATE_LIMITED"),
        ] {
            faults(&mock, kind).await;
            let id = database.put(kind).await;
            database.until(id, |row| 1 <= row.attempts && row.last_error.as_deref() == Some(code)).await;
            faults(&mock, "").await;
            let row = database.until_stage(id, StateName::Sent).await;
            assert!(2 <= row.attempts, "{kind}");
            assert_eq!(mock.counts(kind).await.0, 1, "{kind}");
            let seen = steps(&database, &row).await;
            let failed = seen.iter().find(|step| step.0 == "failed").expect("it failed first");
            assert_eq!((failed.1, failed.2.as_deref()), (StateName::Failed, Some(code)), "{kind}");
        }

        // The counters match what happened. The worker counts an outcome a moment after it is stored.
        while worker.metric("outbox_lag_seconds_count", &[("queue", "orders")]).await != Some(10.0) {
            tokio::time::sleep(POLL_EVERY).await;
        }
        let outcome = async |outcome| worker.metric("outbox_send_total", &[("outcome", outcome)]).await.unwrap();
        assert!((outcome("success").await, outcome("conflict_processed").await) == (6.0, 1.0));
        assert!((outcome("dead").await, outcome("parked").await) == (3.0, 0.0));
        assert!(5.0 <= outcome("retry").await);
        assert_eq!(worker.metric("ichido_worker_replayed_total", &[]).await, Some(1.0));
        assert_eq!(worker.metric("outbox_retry_count_bucket", &[("le", "0")]).await, Some(5.0));
        let calls = mock.effects().await["calls"].as_f64();
        assert_eq!(worker.metric("ichido_worker_executed_total", &[]).await, calls);
        let page = worker.metrics().await;
        for name in [
            "outbox_dequeue_total{",
            "outbox_send_total{",
            "outbox_inflight{",
            "outbox_lag_seconds_bucket{",
            "outbox_oldest_waiting_seconds{",
            "outbox_retry_count_bucket{",
            "ichido_worker_executed_total{",
            "ichido_worker_replayed_total{",
            "ichido_worker_suppressed_total{",
            "ichido_worker_fenced_total{",
            "ichido_worker_unknown_total{",
            "ichido_worker_rescued_total{",
            "ichido_worker_attempts_total{",
            "ichido_destination_circuit{",
            "ichido_destination_paused{",
            "ichido_destination_max_calls_per_second{",
        ] {
            assert!(page.contains(name), "{name}\n{page}");
            let described = name.trim_end_matches('{').trim_end_matches("_bucket");
            assert!(page.contains(&format!("# HELP {described} ")), "{described}\n{page}");
        }
        assert!(!page.contains("conflict_other"), "no key is a label: {page}");
        // The queue gauges are updated periodically.
        while worker.metric("outbox_messages", &[("state", "dead")]).await != Some(3.0) {
            tokio::time::sleep(POLL_EVERY).await;
        }
        assert!(worker.metric("outbox_dead_letter_oldest_seconds", &[("state", "dead")]).await.is_some());
    }

    /// Follows the real schedule, with a moved clock.
    // Spec: D5.
    #[test]
    async fn d16_a_5xx_backs_off_by_the_schedule_and_then_succeeds(database: OutboxDatabase) {
        let mock = MockBroker::start(&["--fault", "server_error_before=1"]);
        let _worker = worker(&database.store, &mock);
        let id = database.put("k").await;
        let mut passed = 0.0;
        for retry in 1..=8_u32 {
            let row = database.until(id, |row| row.status == StateName::Failed && row.attempts == retry).await;
            let waits = row.next_attempt.expect("it is due").since(row.updated_at).as_secs_f64();
            let expected = f64::from(1 << retry);
            // From the failure to the settlement, which a busy machine delays. A claim in flight while the clock was moved may
            // count the move twice.
            let range = expected * 0.85 - SETTLE_DELAY_S..=expected * 1.1 + passed + SETTLE_DELAY_S;
            assert!(range.contains(&waits), "after failure {retry}: {waits} s");
            assert_eq!(mock.counts("k").await.1, u64::from(retry), "no sooner");
            if retry == 8 {
                faults(&mock, "").await;
            }
            passed = expected * 1.1;
            database.store.advance_clock(Duration::from_secs_f64(passed));
        }
        let row = database.until_stage(id, StateName::Sent).await;
        assert_eq!((row.attempts, mock.counts("k").await), (9, (1, 9)));
    }

    /// Two workers: a 429 to one stops both for as long as it asks.
    // Spec: D6.
    #[test]
    async fn d16_a_429_slows_every_worker(database: OutboxDatabase) {
        let mock = MockBroker::start(&["--fault", "rate_limited=1", "--retry-after", "1800s"]);
        let other = Store::open(&database.url, 4).await.unwrap();
        let _workers = [worker(&database.store, &mock), worker(&other, &mock)];
        let refused = database.put("refused").await;
        let row = database.until(refused, |row| row.status == StateName::Failed).await;
        assert_eq!(row.last_error.as_deref(), Some("RATE_LIMITED"));
        faults(&mock, "").await;
        let shared = Paces::new(database.store.clone()).read("broker").await.unwrap();
        assert!(row.updated_at.plus(Duration::from_mins(29)) < shared.pace.paused_until, "{shared:?}");
        assert!(matches!(shared.pace.rate, Rate::Paced(_)), "{shared:?}");
        // Later messages wait as well, whichever worker would claim them.
        let mut waiting = Vec::new();
        for number in 0..8 {
            waiting.push(database.put(&format!("waiting-{number}")).await);
        }
        for _ in 0..20 {
            tokio::time::sleep(POLL_EVERY).await;
            assert_eq!(mock.effects().await["calls"], 1);
        }
        for store in [&database.store, &other] {
            store.advance_clock(Duration::from_mins(40));
        }
        for id in waiting.into_iter().chain([refused]) {
            database.until_stage(id, StateName::Sent).await;
        }
        assert_eq!(mock.effects().await["max_effects"], 1);
    }
}
