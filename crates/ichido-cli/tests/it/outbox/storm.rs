//! The storm: a broker that fails in every possible way, and workers that are killed over and over.
//!
//! Each message ends as its errors say, and no key takes effect twice.
// Spec: D2, D9, D12, E1, F2, F4.

use std::time::Duration;

use ichido::worker::{DestinationConfig, QueueConfig, Worker};
use ichido_core::lifecycle::StateName;
use ichido_store::message::{MessageFilter, MessageRow, Transition};
use serde_json::Value;

use super::database::{OutboxDatabase, POLL_EVERY, QUEUE, in_time, order};
use super::program::WorkerProcess;
use crate::folder;
use crate::mock_broker::broker::MockBroker;

/// How many messages; the variable sets more.
const MESSAGES: usize = 800;
const MESSAGES_VARIABLE: &str = "ICHIDO_STORM_MESSAGES";
/// With this many messages, the rarest fault of [`FAULTS`] occurs: fewer than one run in a thousand lacks it.
const EVERY_FAULT_FROM: usize = 2_000;
/// A worker is killed once per this many messages.
const MESSAGES_PER_KILL: i64 = 200;
const WORKERS: usize = 3;
/// Three of ten calls fail, in every possible way.
const FAULTS: &str = r#"{"slow_ms":150,"faults":{
    "server_error_before":0.04, "server_error_after":0.04, "reset_before":0.03, "reset_after":0.04,
    "silence_before":0.01, "silence_after":0.015, "cut_after":0.03, "rate_limited":0.004, "slow":0.02,
    "conflict_processed":0.02, "conflict_in_progress":0.02, "conflict_other":0.005, "bad_request":0.005,
    "unauthorized":0.005, "malformed":0.005, "wrong_key":0.005, "no_key":0.006}}"#;

fn messages() -> usize {
    std::env::var(MESSAGES_VARIABLE).map_or(MESSAGES, |text| text.parse().expect("a number of messages"))
}

/// The workers' configuration: short schedules, and the broker's guarantee.
fn config(database: &OutboxDatabase, mock: &MockBroker, deduplicates: bool) -> String {
    let address = mock.address;
    let guarantee = if deduplicates {
        "guarantee = \"keyed\"\nkeeps_keys_for = \"24h\""
    } else {
        // Reconciliation is impossible too, so an unknown effect needs a person.
        "guarantee = \"none\""
    };
    format!(
        r#"
[store]
url = "{url}"
[worker]
idle_sleep = "20ms"
[queues.orders]
destination = "broker"
outbound_key = "own"
parallelism = 16
batch_size = 16
lease = "3s"
retry = {{ base = "20ms", factor = 2, cap = "320ms" }}
[destinations.broker]
kind = "http"
url = "http://{address}/orders"
total_timeout = "600ms"
settle_grace = "100ms"
echoes_key = true
receipt_pointer = "/broker_order_id"
min_rate = 300
circuit = {{ failures = 1000 }}
rules = [
  {{ status = "409", at = "/error", is = "already_processed", means = "processed" }},
  {{ status = "409", at = "/error", is = "in_progress", means = "in_progress" }},
]
{guarantee}
"#,
        url = database.url
    )
}

/// The final state of a message.
struct StormResult {
    row: MessageRow,
    steps: Vec<Transition>,
    effects: u64,
}

/// Runs the storm over many messages; returns the final state of each.
async fn storm(database: &OutboxDatabase, deduplicates: bool) -> Vec<StormResult> {
    let count = messages();
    let flag = format!("--deduplicates={deduplicates}");
    let (folder, mock) = (folder::fresh(), MockBroker::start(&[&flag]));
    assert_eq!(mock.put("/mock/faults", FAULTS).await.status, 200);
    folder.write("ichido.toml", &config(database, &mock, deduplicates));
    let orders: Vec<_> = (0..count).map(|number| order(&format!("k{number}"))).collect();
    for part in orders.chunks(500) {
        for put in database.store.messages().enqueue_all(part.to_vec()).await {
            put.expect("it is enqueued");
        }
    }
    let mut workers: Vec<WorkerProcess> =
        (0..WORKERS).map(|_| WorkerProcess::start(folder.path(), &["--log", "error"])).collect();
    let left = [StateName::Queued, StateName::Failed, StateName::Sending];
    let whole = i64::try_from(count).expect("not so many");
    let max_kills = whole / MESSAGES_PER_KILL;
    let part = whole / (max_kills + 1);
    let mut kills = 0;
    loop {
        let left = database.count(&left).await;
        if left == 0 {
            break;
        }
        if part * (kills + 1) < whole - left && kills < max_kills {
            kills += 1;
            workers.remove(0).kill().await;
            workers.push(WorkerProcess::start(folder.path(), &["--log", "error"]));
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
    // While a worker starts, the others go on, and may be done before the last kills.
    assert!(max_kills / 2 <= kills, "{kills} of {max_kills} kills");
    for worker in &mut workers {
        worker.signal("TERM");
        let (code, log) = worker.wait().await;
        assert_eq!(code, Some(0), "{log}");
    }
    if deduplicates {
        reconcile_parked_messages(database, &mock).await;
    }
    // The audit trail follows the rules. Spec: F5.
    let report = database.store.audit().verify(None, None).await.expect("it can be read");
    assert_eq!(report.findings, [], "an audit finds nothing");
    let effects = mock.effects().await;
    if EVERY_FAULT_FROM <= count {
        every_fault_was_made(&effects);
    }
    ended(database, &effects).await
}

fn every_fault_was_made(effects: &Value) {
    let faults = effects["faults"].as_object().expect("the faults");
    assert_eq!(faults.len(), 17);
    for (kind, made) in faults {
        assert_ne!(made, 0, "{kind} was never made: {faults:?}");
    }
}

/// Starts a worker in this process, whose clock can be moved, to reconcile with the broker.
async fn reconcile_parked_messages(database: &OutboxDatabase, mock: &MockBroker) {
    use ichido::destination::http::{HttpSettings, ReconcileMeaning, ReconcileRule, ReconcileSettings};
    use ichido_core::retry::Guarantee;
    assert_eq!(mock.put("/mock/faults", r#"{"faults":{}}"#).await.status, 200);
    let found = |status: &str, means| ReconcileRule { status: status.to_owned(), at: None, means };
    let broker = HttpSettings {
        reconcile: Some(ReconcileSettings {
            url: format!("http://{}/orders/by-key/{{key}}", mock.address),
            rules: vec![found("200", ReconcileMeaning::Done), found("404", ReconcileMeaning::NotDone)],
        }),
        ..HttpSettings::new(
            format!("http://{}/orders", mock.address),
            Guarantee::Keyed { keeps_for: Duration::from_hours(24) },
        )
    };
    let queue =
        QueueConfig { outbound_key: ichido::worker::OutboundKey::Own, ..QueueConfig::new(QUEUE, "broker") };
    let target = DestinationConfig::new("broker", broker.resolve().unwrap());
    database.store.advance_clock(Duration::from_mins(5));
    let builder = Worker::new(database.store.clone()).idle_sleep(Duration::from_millis(20));
    let worker = builder.destination(target).queue(queue).start().unwrap();
    while database.count(&[StateName::Parked, StateName::Queued, StateName::Failed, StateName::Sending]).await
        != 0
    {
        tokio::time::sleep(POLL_EVERY).await;
        database.store.advance_clock(Duration::from_secs(5));
    }
    worker.stop();
    worker.ended().await;
}

async fn ended(database: &OutboxDatabase, effects: &Value) -> Vec<StormResult> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let filter = MessageFilter { after, ..MessageFilter::default() };
        let rows = database.store.messages().list(&filter, 1_000).await.unwrap();
        let Some(last) = rows.last() else { break };
        after = Some(last.id);
        for row in rows {
            let steps = database.store.messages().transitions(row.id).await.unwrap();
            let effects = effects["keys"][row.key.as_str()]["effects"].as_u64().unwrap_or(0);
            all.push(StormResult { row, steps, effects });
        }
    }
    assert_eq!(all.len(), messages());
    assert!(
        all.iter().any(|one| one.steps.iter().any(|step| step.kind == "worker_died")),
        "no worker died holding work"
    );
    all
}

/// Returns whether its last failure cannot be retried, its attempts are used up, or two workers died with it.
fn is_dead_as_its_errors_require(one: &StormResult) -> bool {
    let codes = ["BAD_REQUEST", "UNAUTHORIZED"];
    let deaths = one.steps.iter().filter(|step| step.kind == "worker_died").count();
    let last = one.steps.iter().rev().find_map(|step| step.code.as_deref());
    last.is_some_and(|code| codes.contains(&code)) || one.row.attempts == one.row.max_attempts || 2 <= deaths
}

async fn storm_with_deduplicating_broker(database: OutboxDatabase) {
    for one in storm(&database, true).await {
        let what = format!("{:?} after {:?}", one.row, one.steps);
        assert!(one.effects <= 1, "took effect {} times: {what}", one.effects);
        match one.row.status {
            StateName::Sent => assert_eq!(one.effects, 1, "{what}"),
            StateName::Dead => assert!(is_dead_as_its_errors_require(&one), "{what}"),
            _ => panic!("neither sent nor dead: {what}"),
        }
    }
}

async fn storm_with_broker_without_keys(database: OutboxDatabase) {
    let all = storm(&database, false).await;
    assert!(all.iter().any(|one| one.row.status == StateName::Parked && one.effects == 1));
    assert!(all.iter().any(|one| one.row.status == StateName::Parked && one.effects == 0));
    for one in all {
        let what = format!("{:?} after {:?}", one.row, one.steps);
        assert!(one.effects <= 1, "took effect {} times: {what}", one.effects);
        match one.row.status {
            StateName::Sent => assert_eq!(one.effects, 1, "{what}"),
            StateName::Dead => assert!(is_dead_as_its_errors_require(&one), "{what}"),
            StateName::Parked => assert_eq!(one.row.effect, ichido_core::verdict::Effect::Unknown, "{what}"),
            _ => panic!("neither sent, dead nor parked: {what}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storm_with_deduplicating_broker_on_postgres() {
    in_time(5, storm_with_deduplicating_broker(OutboxDatabase::durable_postgres().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storm_with_deduplicating_broker_on_sqlite() {
    in_time(5, storm_with_deduplicating_broker(OutboxDatabase::sqlite().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storm_with_broker_without_keys_on_postgres() {
    in_time(5, storm_with_broker_without_keys(OutboxDatabase::durable_postgres().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storm_with_broker_without_keys_on_sqlite() {
    in_time(5, storm_with_broker_without_keys(OutboxDatabase::sqlite().await)).await;
}
