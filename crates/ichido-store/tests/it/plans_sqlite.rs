//! Query plans on SQLite: with a hundred thousand finished messages statements still use their indexes, and an operation costs
//! the same.
//!
//! The statements are the shipped ones, planned twice: on a fresh file, and after `ANALYZE`, which the owner of a file may run
//! at any time. Cost is counted in steps of SQLite's virtual machine, which do not depend on the hardware.

mod found;

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::key::IdempotencyKey;
use ichido_core::ledger::{Class, Policy, PolicyDraft, RecordName, Settled};
use ichido_core::lifecycle::Event;
use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, StoredResponse};
use ichido_store::message::{
    ClaimOptions, ClaimedMessage, Enqueued, NewMessage, Note, QueueName, Settlement,
};
use ichido_store::rescue::RescueOptions;
use ichido_store::testing::sqlite::{SqliteTestFile, fresh_file};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, Row as _};
use uuid::Uuid;

const YOUNG: i64 = 1_000;
const OLD: i64 = 100_000;
const BATCH: u32 = 50;
const LEASE: Duration = Duration::from_secs(30);
const TTL: Duration = Duration::from_hours(72);
/// After the history, before the present: 2025-07-01.
const SINCE_THEN: Timestamp = Timestamp::from_micros(1_751_328_000_000_000);

/// Statements that scan a table of live messages only, or of a few rows, however long the history.
const SMALL: [(&str, &str); 54] = [
    ("begin.sql", "SCAN ichido_fence"),
    ("fence_drawn.sql", "SCAN ichido_fence"),
    ("count_read.sql", "SCAN ichido_counts"),
    // Changes of failure groups, which are folded every few seconds; up to a limit.
    ("group_delta_any.sql", "SCAN ichido_failure_group_deltas"),
    ("group_delta_take.sql", "SCAN ichido_failure_group_deltas"),
    ("node_list.sql", "SCAN ichido_nodes"),
    // The number of queues, times the nodes that served them within an hour.
    ("facts_list.sql", "SCAN f"),
    ("facts_forget.sql", "SCAN ichido_queue_facts"),
    ("facts_end.sql", "SCAN ichido_queue_facts"),
    // The number of queues, and of tokens.
    ("parallelism_list.sql", "SCAN ichido_queue_parallelism"),
    ("queue_list.sql", "SCAN ichido_queues"),
    ("token_list.sql", "SCAN ichido_tokens"),
    // A row for each task.
    ("task_release.sql", "SCAN ichido_singleton_tasks"),
    ("bulk_leases.sql", "SCAN ichido_singleton_tasks"),
    // Queues and their priorities in use; pages of rows; leases.
    ("message_ids_live.sql", "SCAN q"),
    ("message_of_identity.sql", "SCAN q"),
    ("message_ids_live.sql", "SCAN p"),
    ("message_ids_live.sql", "SCAN s"),
    ("message_ids_live.sql", "SCAN l"),
    ("message_ids_live.sql", "SCAN ichido_leases"),
    // The priorities in use.
    ("queue_oldest.sql", "SCAN u"),
    ("queue_oldest_list.sql", "SCAN l"),
    ("queue_oldest_list.sql", "SCAN n"),
    // Its first row.
    ("queue_oldest_list.sql", "SCAN r"),
    // The last events of a message that was claimed before.
    ("work_pick.sql", "SCAN e"),
    ("work_pick_suspect.sql", "SCAN e"),
    // The first row of the index; then the pairs of queue and identity, up to a limit.
    ("message_of_key.sql", "SCAN f USING INDEX sqlite_autoindex_ichido_messages_2"),
    ("message_of_key.sql", "SCAN p"),
    // The newest event, and the halves of a bisection; a bounded number of a message's events.
    ("event_doubt.sql", "SCAN n"),
    ("event_doubt.sql", "SCAN h"),
    ("event_fact.sql", "SCAN f"),
    // Letters that an index found, up to a limit.
    ("dead_letter_classes.sql", "SCAN l"),
    ("step_lease.sql", "SCAN l"), // Leases: one for each batch in flight.
    ("message_holder.sql", "SCAN l"),
    // Requests to cancel messages in flight, up to a limit.
    ("node_beat.sql", "SCAN ichido_cancellations"),
    ("node_beat.sql", "SCAN c"),
    ("lease_lapse.sql", "SCAN ichido_leases"),
    ("seal_entries.sql", "SCAN u"), // Unsealed entries, up to a limit.
    ("unsealed.sql", "SCAN u"),
    ("lease_list.sql", "SCAN l"),
    ("fence_last.sql", "SCAN ichido_fence"),
    // Keys of unknown outcome, up to a limit.
    ("key_unknown_count.sql", "SCAN l USING INDEX ichido_ledger_unknown"),
    ("key_unknown_count.sql", "SCAN u"),
    // Waiting and dead messages, when the whole trail is read anyway.
    (
        "place_orphans.sql",
        "SCAN ichido_dead_letters USING COVERING INDEX sqlite_autoindex_ichido_dead_letters_1",
    ),
    ("place_orphans.sql", "SCAN ichido_scheduled USING COVERING INDEX ichido_scheduled_due"),
    ("place_orphans.sql", "SCAN ichido_ready"),
    // A page of records, or of lists, that a subquery found.
    // At most MAX_SESSIONS.
    (
        "session_prune.sql",
        "SCAN ichido_dashboard_sessions USING COVERING INDEX ichido_dashboard_sessions_expiry",
    ),
    (
        "session_prune_token.sql",
        "SCAN ichido_dashboard_sessions USING INDEX ichido_dashboard_sessions_expiry",
    ),
    ("sealed_keys_find.sql", "SCAN p"),
    ("sealed_keys_over.sql", "SCAN p"),
    // The hour to be rolled up, and a subject's sums of a range.
    ("counter_roll_up.sql", "SCAN f"),
    ("series_hours.sql", "SCAN c"),
    // Not small, but rare: stored keys, when all data of a person is deleted.
    ("key_forget_of.sql", "SCAN l"),
    // The same: stored answers, when a person is about to delete some.
    ("answer_topics.sql", "SCAN ichido_answers USING INDEX ichido_answers_topic"),
];

/// Opens the test's own connection; what it loads need not survive.
async fn connect_beside(file: &SqliteTestFile) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(file.path()).synchronous(SqliteSynchronous::Off);
    // In KiB: the whole history, so loading it does not write pages twice.
    options.pragma("cache_size", "-200000").connect().await.unwrap()
}

/// Adds finished messages with their events, a tenth of them dead letters; waiting messages of a queue that no operation here
/// uses; settled keys, and contents. Ids are from last year.
async fn add_history(connection: &mut SqliteConnection, from: i64, to: i64) {
    let numbers =
        format!("WITH RECURSIVE i (n) AS (SELECT {from} UNION ALL SELECT n + 1 FROM i WHERE n < {to})");
    let id = "unhex(printf('%012x70008%015x', 1735689600000 + n, n))";
    let moment = "(1735689600000 + n) * 1000";
    let statements = [
        format!(
            "INSERT INTO ichido_messages {numbers} SELECT {id}, 'orders', 'alice', 'h' || n, zeroblob(32), 'text/plain', x'01', NULL, 2, 9, \
             NULL, NULL, {moment}, NULL, NULL, NULL FROM i"
        ),
        // The trigger made them claimable.
        "DELETE FROM ichido_ready WHERE queue = 'orders'".to_owned(),
        format!(
            "INSERT INTO ichido_ready (queue, priority, message_id) {numbers} SELECT 'waiting', n % 3, {id} FROM i WHERE n % 5 = 1"
        ),
        format!(
            "INSERT INTO ichido_events (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, effect, code) {numbers} \
             SELECT {id}, n, 0, {moment}, {moment}, 'sending', iif(n % 10 = 0, 'dead', 'sent'), 'ended', 1, 0, 'done', iif(n % 10 = 0, 'BAD_REQUEST', NULL) FROM i"
        ),
        format!(
            "INSERT INTO ichido_dead_letters (message_id, queue, state, effect, code, since, attempts, deaths, group_id) {numbers} \
             SELECT {id}, 'orders', 'dead', 'not_done', 'BAD_REQUEST', {moment}, 1, 0, unhex(printf('%032x', n % 70)) FROM i WHERE n % 10 = 0"
        ),
        format!(
            "INSERT INTO ichido_failure_groups (id, queue, template, count, first_seen, last_seen, state, state_since, urgency) {numbers} \
             SELECT {id}, 'orders', 'no', n / 10 % 2, {moment}, {moment}, 'open', {moment}, 2 FROM i WHERE n % 10 = 0"
        ),
        // They expire long after the test.
        format!(
            "INSERT INTO ichido_ledger (name, operation, identity, key, fingerprint, request_digest, guarantee, state, fence, claim_id, lease_until, status, \
             headers, body, result_digest, message_id, created_at, claimed_at, completed_at, expires_at) {numbers} \
             SELECT randomblob(32), 'op', 'alice', 'h' || n, zeroblob(32), zeroblob(32), 'none', 'applied', n, randomblob(16), NULL, 200, x'01', x'', NULL, NULL, {moment}, {moment}, {moment}, 9000000000000000 + n FROM i"
        ),
        format!(
            "INSERT INTO ichido_contents {numbers} SELECT 'orders', 'alice', randomblob(32), {id}, 9000000000000000 + n FROM i"
        ),
    ];
    for statement in statements {
        connection.execute(AssertSqlSafe(statement)).await.unwrap();
    }
}

/// Returns the lines of a statement's plan. No value is bound: a plan that is good only for some values is not good.
async fn plan(connection: &mut SqliteConnection, sql: &str) -> Vec<String> {
    let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
    connection.fetch_all(explain).await.unwrap().iter().map(|row| row.get("detail")).collect()
}

/// The indexes that a statement must use.
struct ExpectedPlan {
    name: &'static str,
    by: &'static [&'static str],
}

macro_rules! expected {
    ($($name:literal by $by:expr;)+) => {
        [$(ExpectedPlan { name: $name, by: &$by }),+]
    };
}

/// SQLite's own name for the index on a message's id.
const MESSAGE_ID: &str = "INDEX sqlite_autoindex_ichido_messages_1 (id=?)";

const STATEMENTS: [ExpectedPlan; 70] = expected! {
    // The claim.
    "work_pick" by ["SEARCH r USING PRIMARY KEY (queue=?)", MESSAGE_ID, "ichido_events USING PRIMARY KEY (message_id=?)"];
    "work_pick_suspect" by ["SEARCH r USING INDEX ichido_ready_suspect (queue=?)", MESSAGE_ID];
    "work_take" by ["ichido_ready USING PRIMARY KEY (queue=? AND priority=? AND message_id=?)"];
    // The oldest waiting message.
    "queue_oldest" by ["SEARCH r USING PRIMARY KEY (queue=? AND priority>?)", "SEARCH r USING PRIMARY KEY (queue=? AND priority=?)", MESSAGE_ID];
    "dead_letter_oldest" by ["INDEX ichido_dead_letters_newest (state=? AND closed=? AND queue=?)"];
    // Unknown outcomes.
    "key_lapse" by ["USING INDEX ichido_ledger_lapse (lease_until>? AND lease_until<?)", "INDEX sqlite_autoindex_ichido_ledger_1 (name=?)"];
    "key_unknown" by ["SEARCH l USING INDEX ichido_ledger_unknown"];
    // The look-up by key or hash.
    "key_of_hash" by ["ichido_ledger USING INDEX sqlite_autoindex_ichido_ledger_1 (name>? AND name<?)"];
    "message_of_key" by [
        MESSAGE_ID,
        "SEARCH n USING INDEX sqlite_autoindex_ichido_messages_2 (queue=? AND identity>?)",
        "SEARCH n USING INDEX sqlite_autoindex_ichido_messages_2 (queue>?)",
        "SEARCH m USING INDEX sqlite_autoindex_ichido_messages_2 (queue=? AND identity=? AND key=?)",
    ];
    "message_of_identity" by [
        "SEARCH n USING COVERING INDEX sqlite_autoindex_ichido_messages_2 (queue>?)",
        "SEARCH m USING INDEX sqlite_autoindex_ichido_messages_2 (queue=? AND identity=?)",
    ];
    "message_keys" by ["USING INDEX sqlite_autoindex_ichido_messages_1 (id<?)"];
    // The outcome of a key.
    "key_settle" by ["ichido_ledger USING INDEX sqlite_autoindex_ichido_ledger_1 (name=?)"];
    // The sweep.
    "key_expired" by ["USING INDEX ichido_ledger_expiry (expires_at<?)", "SEARCH e USING PRIMARY KEY (message_id=?)"];
    "key_forget" by ["INDEX sqlite_autoindex_ichido_ledger_1 (name=?)"];
    "key_later" by ["INDEX sqlite_autoindex_ichido_ledger_1 (name=?)"];
    "content_sweep" by [
        "INDEX ichido_contents_until (until<?)",
        "ichido_contents USING PRIMARY KEY (queue=? AND identity=? AND content=?)",
    ];
    // The rescue.
    "node_living" by ["USING INDEX ichido_nodes_living (gone=?)"];
    "rescue_find" by ["USING INDEX ichido_leases_lapse (lease_until>? AND lease_until<?)"];
    "rescue_left" by [
        "ichido_leases USING INTEGER PRIMARY KEY (rowid=?)",
        MESSAGE_ID,
        "SEARCH e USING PRIMARY KEY (message_id=? AND fence=? AND step=?)",
        "SEARCH b USING PRIMARY KEY (fence=? AND message_id=?)",
    ];
    // Due messages.
    "promote_find" by ["USING INDEX ichido_scheduled_due (due<?)"];
    "promote_ready" by ["ichido_scheduled USING PRIMARY KEY (message_id=?)"];
    "promote_done" by ["ichido_scheduled USING PRIMARY KEY (message_id=?)"];
    // Retention.
    "retention_find" by [
        "USING INDEX sqlite_autoindex_ichido_messages_1 (id<?)",
        "SEARCH e USING PRIMARY KEY (message_id=? AND fence=? AND step=?)",
    ];
    "retention_events" by ["ichido_events USING PRIMARY KEY (message_id=?)"];
    "retention_messages" by [MESSAGE_ID];
    "retention_unsealed" by ["ichido_unsealed USING PRIMARY KEY (message_id=?)"];
    "forget_find" by [
        "INDEX sqlite_autoindex_ichido_messages_2 (queue=? AND identity=?)",
        "SEARCH e USING PRIMARY KEY (message_id=? AND fence=? AND step=?)",
        "SEARCH l USING INDEX sqlite_autoindex_ichido_dead_letters_1 (message_id=?)",
    ];
    // The audit.
    "seal_last" by ["ichido_seals USING INTEGER PRIMARY KEY (rowid=?)"];
    "seal_page" by ["ichido_seals USING INTEGER PRIMARY KEY (rowid>?)"];
    "seal_entries" by ["SEARCH e USING PRIMARY KEY (message_id=? AND fence=? AND step=?)"];
    "request_find" by ["SEARCH m USING INDEX sqlite_autoindex_ichido_messages_1 (id=?)"];
    "seal_before" by [
        "SEARCH e USING PRIMARY KEY (message_id=? AND fence>?",
        "SEARCH p USING PRIMARY KEY (message_id=? AND (fence,step)<(?,?))",
    ];
    "history_page" by ["SEARCH e USING PRIMARY KEY ((message_id,fence,step)>(?,?,?))", MESSAGE_ID];
    "place_page" by [
        "SEARCH m USING INDEX sqlite_autoindex_ichido_messages_1 (id>?)",
        "SEARCH l USING INDEX sqlite_autoindex_ichido_dead_letters_1 (message_id=?)",
        "SEARCH s USING PRIMARY KEY (message_id=?)",
        "SEARCH r USING PRIMARY KEY (queue=? AND priority=? AND message_id=?)",
        "SEARCH e USING PRIMARY KEY (message_id=? AND fence=? AND step=?)",
    ];
    "seal_listed" by ["SEARCH e USING PRIMARY KEY (message_id=? AND fence=? AND step=?)"];
    "seal_done" by ["ichido_unsealed USING PRIMARY KEY (message_id=?"];
    "unlisted" by ["SEARCH e USING PRIMARY KEY ((message_id,fence,step)>(?,?,?))"];
    "forgotten_find" by ["ichido_forgotten USING PRIMARY KEY (message_id=?)"];
    "forgotten_unlist" by ["SEARCH f USING PRIMARY KEY (message_id=?)"];
    // Sealed key records.
    "sealed_keys_find" by [
        "ichido_ledger USING INDEX ichido_ledger_expiry (expires_at>? AND expires_at<?)",
        "ichido_ledger USING COVERING INDEX ichido_ledger_expiry (expires_at>?)",
    ];
    "sealed_keys_known" by ["ichido_sealed_keys USING INDEX sqlite_autoindex_ichido_sealed_keys_1 (until_at>?)"];
    "sealed_keys_read" by ["SEARCH l USING INDEX sqlite_autoindex_ichido_ledger_1 (name=?)"];
    "sealed_keys_page" by ["INDEX sqlite_autoindex_ichido_sealed_keys_1 ((until_at,since_at,id)>(?,?,?))"];
    "sealed_keys_over" by ["INDEX sqlite_autoindex_ichido_sealed_keys_1 (until_at<?)"];
    // The listings.
    "message_schedule" by [MESSAGE_ID];
    "message_ids" by ["ichido_messages USING COVERING INDEX sqlite_autoindex_ichido_messages_1 (id<?)"];
    "message_ids_trace" by ["INDEX ichido_messages_trace_id (trace_id=? AND id<?)"];
    "message_ids_code" by ["ichido_events USING COVERING INDEX ichido_events_code (code=? AND message_id<?)"];
    "dead_letter_list" by ["INDEX ichido_dead_letters_newest_of_all (state=? AND closed=? AND (since,message_id)<(?,?))", MESSAGE_ID];
    "dead_letter_list_queue" by ["INDEX ichido_dead_letters_newest (state=? AND closed=? AND queue=? AND (since,message_id)<(?,?))", MESSAGE_ID];
    "dead_letter_page" by ["INDEX ichido_dead_letters_newest_of_all (state=? AND closed=? AND since>? AND (since,message_id)<(?,?))", MESSAGE_ID];
    "dead_letter_page_queue" by ["INDEX ichido_dead_letters_newest (state=? AND closed=? AND queue=? AND since>? AND (since,message_id)<(?,?))", MESSAGE_ID];
    "dead_letter_page_code" by ["INDEX ichido_dead_letters_code (state=? AND closed=? AND code=? AND since>? AND (since,message_id)<(?,?))", MESSAGE_ID];
    "dead_letter_page_group" by ["INDEX ichido_dead_letters_group (group_id=? AND state=? AND closed=? AND since>? AND (since,message_id)<(?,?))", MESSAGE_ID];
    "group_list" by ["INDEX ichido_failure_groups_urgent ((urgency,last_seen,id)<(?,?,?))"];
    "group_get" by ["INDEX sqlite_autoindex_ichido_failure_groups_1 (id=?)"];
    "group_write" by ["INDEX sqlite_autoindex_ichido_failure_groups_1 (id=?)"];
    "group_forget" by ["INDEX ichido_failure_groups_empty (last_seen<?)"];
    "dead_letter_find" by ["INDEX sqlite_autoindex_ichido_dead_letters_1 (message_id=?)", MESSAGE_ID];
    "dead_letter_asked" by ["INDEX sqlite_autoindex_ichido_dead_letters_1 (message_id=?)"];
    "dead_letter_take" by ["INDEX sqlite_autoindex_ichido_dead_letters_1 (message_id=?)"];
    "message_stages" by [MESSAGE_ID];
    "event_page" by ["PRIMARY KEY (message_id=? AND (fence,step)<(?,?))"];
    "action_list" by ["INDEX ichido_events_actions (fence<?)"];
    "action_of" by ["ichido_events USING PRIMARY KEY (message_id=?)"];
    "audit_list" by ["INDEX ichido_events_audit ((fence,message_id,step)<(?,?,?))", MESSAGE_ID];
    "audit_list_kind" by ["INDEX ichido_events_audit_kind (kind=? AND (fence,message_id,step)<(?,?,?))", MESSAGE_ID];
    "audit_list_actor" by ["INDEX ichido_events_audit_actor (actor=? AND (fence,message_id,step)<(?,?,?))", MESSAGE_ID];
    "audit_list_subject" by ["PRIMARY KEY (message_id=? AND (fence,step)<(?,?))", MESSAGE_ID];
    "seal_note" by ["PRIMARY KEY (message_id=? AND fence=? AND step=?)"];
};

async fn assert_uses_indexes(connection: &mut SqliteConnection, expected: &ExpectedPlan) {
    for sql in forms(&text(expected.name)) {
        let plan = plan(connection, &sql).await;
        for by in expected.by {
            assert!(plan.iter().any(|line| line.contains(by)), "{}: no {by:?} in {plan:#?}", expected.name);
        }
        // The index has the order, so the first page does not need a sort.
        assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE")), "{} sorts: {plan:#?}", expected.name);
    }
}

/// Returns whether a line of a plan scans a table. A batch, which our statements call `i`, is not a table, and a subquery has
/// its own lines.
fn is_full_scan(line: &str) -> bool {
    let of_a_batch = ["VIRTUAL TABLE", "CONSTANT ROW", "VALUES CLAUSE", "("];
    line.strip_prefix("SCAN ")
        .is_some_and(|what| what != "i" && !of_a_batch.iter().any(|of| what.contains(of)))
}

/// Returns the text of a statement, as the store gives it to SQLite.
fn text(name: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let file = |folder: &str| std::fs::read_to_string(source.join(folder).join(format!("{name}.sql")));
    file("sqlite/sql").or_else(|_| file("sql")).unwrap().replace("ichido.", "ichido_")
}

/// Returns a statement as it ships, and as it runs for a batch: the store repeats its row.
fn forms(sql: &str) -> Vec<String> {
    let mut forms = vec![sql.to_owned()];
    if let Some(row) = sql.lines().find(|line| line.starts_with("(?")) {
        forms.push(sql.replace(row, &vec![row; BATCH as usize].join(",\n")));
    }
    forms
}

async fn growing_tables_are_never_scanned(connection: &mut SqliteConnection) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = 0;
    for entry in
        ["sql", "sqlite/sql"].iter().flat_map(|folder| std::fs::read_dir(source.join(folder)).unwrap())
    {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        for sql in forms(&text(path.file_stem().unwrap().to_str().unwrap())) {
            let plan = plan(connection, &sql).await;
            let is_small = |line: &str| SMALL.contains(&(file, line));
            assert!(!plan.iter().any(|line| is_full_scan(line) && !is_small(line)), "{file}: {plan:#?}");
        }
        files += 1;
    }
    assert!(STATEMENTS.len() < files, "the statements are there: {files}");
}

/// A series reads the rows of its own subject and range, from an index that has all columns; the roll-up reads one hour.
// SPEC E3.
#[tokio::test]
async fn a_series_reads_only_its_own_rows() {
    let file = fresh_file();
    let store = Store::open(&file.url, 1).await.unwrap();
    let mut connection = connect_beside(&file).await;
    let minutes = "USING COVERING INDEX ichido_counters_about (about=? AND minute>? AND minute<?)";
    let latest = "USING COVERING INDEX ichido_counter_hours_hour (hour<?)";
    for (name, expected) in [
        ("series_minutes", &[minutes][..]),
        (
            "series_hours",
            &[minutes, latest, "ichido_counter_hours USING PRIMARY KEY (about=? AND hour>? AND hour<?)"],
        ),
        (
            "counter_roll_up",
            &[
                "ichido_counters USING PRIMARY KEY (minute>?)",
                "SEARCH c USING PRIMARY KEY (minute>? AND minute<?)",
                latest,
            ],
        ),
        // For alerts: all subjects of a window.
        ("counter_sums", &["ichido_counters USING PRIMARY KEY (minute>?)"]),
        ("counter_models", &["USING COVERING INDEX ichido_counters_about (about>? AND about<?)"]),
        (
            "counter_sweep",
            &["ichido_counters USING PRIMARY KEY (minute=?)", "ichido_counters USING PRIMARY KEY (minute<?)"],
        ),
        ("counter_hour_sweep", &["INDEX ichido_counter_hours_hour (hour=?)", latest]),
        ("replay_find", &["SEARCH r USING PRIMARY KEY (about=?)"]),
        (
            "replay_sweep",
            &[
                "ichido_replays USING PRIMARY KEY (about=?)",
                "USING COVERING INDEX ichido_replays_first_at (first_at<?)",
            ],
        ),
    ] {
        let plan = plan(&mut connection, &text(name)).await;
        for by in expected {
            assert!(plan.iter().any(|line| line.contains(by)), "{name}: no {by:?} in {plan:#?}");
        }
    }
    drop(store);
}

/// Each queue and priority in use is one step down the primary key.
#[tokio::test]
async fn the_oldest_of_all_queues_are_found_by_their_index() {
    let file = fresh_file();
    let store = Store::open(&file.url, 1).await.unwrap();
    let mut connection = connect_beside(&file).await;
    let plan = plan(&mut connection, &text("queue_oldest_list")).await;
    for by in [
        "SEARCH r USING PRIMARY KEY (queue>?)",
        "SEARCH r USING PRIMARY KEY (queue=? AND priority>?)",
        "SEARCH r USING PRIMARY KEY (queue=? AND priority=?)",
        MESSAGE_ID,
    ] {
        assert!(plan.iter().any(|line| line.contains(by)), "no {by:?} in {plan:#?}");
    }
    drop(store);
}

/// Messages arrive while a queue is paused, and each of them wakes a worker that claims nothing.
#[tokio::test]
async fn paused_queue_costs_the_same_at_any_size() {
    let file = fresh_file();
    let counted = CountedStore::open(&file).await;
    counted.store.queues().pause(&queue(), true, None).await.unwrap();
    counted.enqueue(Duration::ZERO).await;
    let (of_few, none) = counted.claim().await;
    assert!(none.is_empty(), "{none:?}");
    for _ in 0..20 {
        counted.enqueue(Duration::ZERO).await;
    }
    let (of_many, none) = counted.claim().await;
    assert!(none.is_empty(), "{none:?}");
    assert!(of_many <= of_few, "{of_many} steps, where {of_few} were enough for a twentieth of them");
    counted.store.queues().pause(&queue(), false, None).await.unwrap();
    assert_eq!(counted.claim().await.1.len(), BATCH as usize);
}

#[test]
fn a_scan_of_a_table_is_seen_and_one_of_a_batch_is_not() {
    for line in ["SCAN ichido_messages", "SCAN m", "SCAN ichido_events USING COVERING INDEX x"] {
        assert!(is_full_scan(line), "{line}");
    }
    for line in [
        "SCAN i",
        "SCAN i VIRTUAL TABLE INDEX 1:",
        "SCAN 50-ROW VALUES CLAUSE",
        "SCAN (subquery-3)",
        "SEARCH m USING INDEX x",
    ] {
        assert!(!is_full_scan(line), "{line}");
    }
}

#[tokio::test]
async fn sqlites_statements_go_by_their_indexes_with_history_behind() {
    let file = fresh_file();
    let _store = Store::open(&file.url, 1).await.unwrap();
    let mut connection = connect_beside(&file).await;
    add_history(&mut connection, 1, OLD).await;
    // The audit creates it itself.
    connection.execute(include_str!("../../src/sqlite/sql/listed_make.sql")).await.unwrap();
    for analysed in [false, true] {
        if analysed {
            connection.execute("ANALYZE").await.unwrap();
        }
        for expected in STATEMENTS {
            assert_uses_indexes(&mut connection, &expected).await;
        }
        growing_tables_are_never_scanned(&mut connection).await;
    }
}

/// A store whose virtual-machine steps are counted.
struct CountedStore {
    store: Store,
    steps: Arc<AtomicU64>,
}

impl CountedStore {
    async fn open(file: &SqliteTestFile) -> Self {
        let store = Store::open(&file.url, 1).await.unwrap();
        let steps = Arc::new(AtomicU64::new(0));
        // There is one writer, so this is the connection of every operation that writes.
        let mut writer = store.sqlite_writer().unwrap().acquire().await.unwrap();
        count_into(&steps, &mut writer).await;
        drop(writer);
        Self { store, steps }
    }

    /// Returns how many steps an operation takes, and its result.
    async fn cost<T>(&self, operation: impl Future<Output = T>) -> (u64, T) {
        let before = self.steps.load(Ordering::Relaxed);
        let answer = operation.await;
        (self.steps.load(Ordering::Relaxed) - before, answer)
    }

    async fn enqueue(&self, delay: Duration) -> Vec<Uuid> {
        let messages = (0..BATCH).map(|_| NewMessage { delay, ..message() }).collect();
        let enqueued = self.store.messages().enqueue_all(messages).await;
        enqueued.into_iter().map(|enqueued| new_id(&enqueued.unwrap())).collect()
    }

    async fn cancel(&self, ids: impl IntoIterator<Item = Uuid>) {
        for id in ids {
            let _ = self.store.messages().step(id, |_| Event::Cancelled, &Note::default()).await.unwrap();
        }
    }

    async fn claimed(&self) -> (u64, Vec<ClaimedMessage>) {
        self.enqueue(Duration::ZERO).await;
        let (cost, work) = self.claim().await;
        assert_eq!(work.len(), BATCH as usize);
        (cost, work)
    }

    async fn claim(&self) -> (u64, Vec<ClaimedMessage>) {
        let terms = ClaimOptions {
            node: Uuid::from_u128(1),
            lease: LEASE,
            start_marks: true,
            guarantee: Guarantee::Idempotent,
            max_time_in_flight: Duration::ZERO,
        };
        let (cost, work) =
            self.cost(self.store.claims().claim(&queue(), NonZeroU32::new(BATCH).unwrap(), terms)).await;
        (cost, work.unwrap())
    }

    async fn key(&self) {
        let name = RecordName {
            operation: "op".to_owned(),
            identity: "alice".to_owned(),
            key: IdempotencyKey::parse(&Uuid::now_v7().to_string()).unwrap(),
        };
        let claim = KeyClaim {
            name: name.clone(),
            fingerprint: Fingerprint::from_bytes([1; 32]),
            request_digest: Digest::of_bytes(b"request"),
            policy: Arc::new(Policy::build(PolicyDraft::new(Class::Mutate)).unwrap()),
            hops: None,
            trace: None,
        };
        let KeyClaimed::Run { fence, .. } = self.store.keys().claim(claim).await.unwrap() else {
            panic!("not run")
        };
        let response = StoredResponse { status: 200, headers: Vec::new(), body: None };
        let settled = Settled::Applied;
        let outcome = KeyOutcome::Keep { settled, response, result_digest: None, message_id: None, ttl: TTL };
        let _ = self.store.keys().settle(KeySettle { name, fence, outcome }).await.unwrap();
    }

    /// Measures each operation in turn, each on the same amount as the last time.
    async fn costs(&self) -> Vec<(&'static str, u64)> {
        let (claim, work) = self.claimed().await;
        let settlements = work
            .iter()
            .map(|work| Settlement::new(work, Event::Succeeded { fence: work.fence }, Note::default()));
        let (settle, settled) = self.cost(self.store.claims().settle_all(settlements.collect())).await;
        assert!(settled.iter().all(Result::is_ok));
        let (_, work) = self.claimed().await;
        self.store.advance_clock(LEASE * 2);
        let terms = RescueOptions {
            guarantee: Guarantee::Idempotent,
            wait: Duration::ZERO,
            max_time_in_flight: Duration::ZERO,
        };
        let (rescue, rescued) = self.cost(self.store.claims().rescue(|_| terms)).await;
        assert_eq!(rescued.unwrap(), Some(work.len()));
        self.cancel(work.iter().map(|work| work.id)).await;
        let later = self.enqueue(LEASE).await;
        self.store.advance_clock(LEASE);
        let (promote, promoted) = self.cost(self.store.claims().promote(BATCH)).await;
        assert_eq!(promoted.unwrap(), [(queue(), u64::from(BATCH))]);
        self.cancel(later).await;
        for _ in 0..BATCH {
            self.key().await;
        }
        self.store.advance_clock(TTL * 2);
        let (sweep, swept) = self.cost(self.store.keys().sweep(BATCH)).await;
        assert_eq!(swept.unwrap(), u64::from(BATCH));
        let (retention, forgotten) =
            self.cost(self.store.messages().delete_finished(SINCE_THEN, BATCH)).await;
        assert_eq!(forgotten.unwrap(), u64::from(BATCH));
        vec![
            ("claim", claim),
            ("settle", settle),
            ("rescue", rescue),
            ("promote", promote),
            ("sweep", sweep),
            ("retention", retention),
        ]
    }
}

/// Adds every step of a connection to `steps` from now on.
async fn count_into(steps: &Arc<AtomicU64>, connection: &mut SqliteConnection) {
    let steps = Arc::clone(steps);
    connection.lock_handle().await.unwrap().set_progress_handler(1, move || {
        steps.fetch_add(1, Ordering::Relaxed);
        true
    });
}

/// Measures a page of each listing.
async fn pages(connection: &mut SqliteConnection) -> Vec<(&'static str, u64)> {
    let steps = Arc::new(AtomicU64::new(0));
    count_into(&steps, connection).await;
    let none: Option<&str> = None;
    let ids = |name| sqlx::query(AssertSqlSafe(text(name))).bind(Uuid::max()).bind(BATCH);
    let of_code =
        sqlx::query(AssertSqlSafe(text("dead_letter_page_code"))).bind("dead").bind("open").bind(none);
    let of_code =
        of_code.bind(i64::MAX).bind(Uuid::max()).bind(0).bind("BAD_REQUEST").bind(none).bind(none).bind(none);
    let letters = sqlx::query(AssertSqlSafe(text("dead_letter_list")));
    let of_queue = sqlx::query(AssertSqlSafe(text("dead_letter_list_queue")));
    let letters = [letters, of_queue]
        .map(|query| query.bind("dead").bind(i64::MAX).bind(Uuid::max()).bind(BATCH).bind("orders"));
    let [letters, of_queue] = letters;
    let mut costs = Vec::new();
    for (name, query) in [
        ("messages", ids("message_ids")),
        ("messages with a code", ids("message_ids_code").bind("BAD_REQUEST")),
        ("queued messages of a queue", ids("message_ids_live").bind("queued").bind("waiting")),
        ("queued messages", ids("message_ids_live").bind("queued").bind(none)),
        ("dead messages", ids("message_ids_live").bind("dead").bind("orders")),
        ("letters with a code", of_code.bind(BATCH)),
        ("letters", letters),
        ("letters of a queue", of_queue),
    ] {
        let before = steps.load(Ordering::Relaxed);
        assert_eq!(query.fetch_all(&mut *connection).await.unwrap().len(), BATCH as usize, "{name}");
        costs.push((name, steps.load(Ordering::Relaxed) - before));
    }
    connection.lock_handle().await.unwrap().remove_progress_handler();
    costs
}

fn queue() -> QueueName {
    QueueName::parse("orders").unwrap()
}

fn new_id(enqueued: &Enqueued) -> Uuid {
    let Enqueued::New { id } = enqueued else { panic!("{enqueued:?}") };
    *id
}

fn message() -> NewMessage {
    let key = Uuid::now_v7().to_string();
    NewMessage::new(queue(), "alice", IdempotencyKey::parse(&key).unwrap(), b"request".to_vec())
}

#[tokio::test]
async fn an_operation_on_sqlite_costs_the_same_with_a_hundred_times_the_history() {
    let file = fresh_file();
    let counted = CountedStore::open(&file).await;
    let mut connection = connect_beside(&file).await;
    add_history(&mut connection, 1, YOUNG).await;
    let young = (counted.costs().await, pages(&mut connection).await);
    add_history(&mut connection, YOUNG + 1, OLD).await;
    let old = (counted.costs().await, pages(&mut connection).await);
    let young = [young.0, young.1].concat();
    let old = [old.0, old.1].concat();
    for ((operation, young), (_, old)) in young.into_iter().zip(old) {
        assert!(u64::from(BATCH) < young, "{operation}: {young} steps were counted");
        // The count misses the last few steps of a statement, and retention passes the letters it left behind.
        assert!(
            old <= young + young / 20,
            "{operation}: {young} steps with {YOUNG} behind, {old} with {OLD}"
        );
    }
}
