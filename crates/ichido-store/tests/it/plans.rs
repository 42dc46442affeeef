//! Query plans on PostgreSQL: with a long history (a million messages in `cargo xtask soak`) statements still use their
//! indexes, and a claim costs the same.

mod found;
mod listed;

use ichido_store::Store;
use ichido_store::message::{Note, Settlement};
use ichido_store::testing::postgres::fresh_database;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _};

use crate::fixture::{many, message, queue, succeeded, terms};

/// The number of finished messages; the environment can change it.
fn history() -> i64 {
    std::env::var("ICHIDO_PLANS_HISTORY").ok().and_then(|rows| rows.parse().ok()).unwrap_or(100_000)
}

const CLAIM: i64 = 100;

/// Adds finished messages with their events, and settled keys, with one statement each. Ids are from last year.
async fn add_history(connection: &mut PgConnection, from: i64, to: i64) {
    let id = "(lpad(to_hex(1735689600000 + n), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid";
    let moment = "'2025-01-01'::timestamptz + n * interval '1 ms'";
    let statements = [
        format!(
            "INSERT INTO ichido.messages SELECT {id}, 'orders', 'alice', 'h' || n, sha256('x'), 'text/plain', 'x', NULL, 2, 9, NULL, NULL, \
             {moment} FROM generate_series({from}, {to}) n"
        ),
        format!(
            "INSERT INTO ichido.events (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, effect) \
             SELECT {id}, n, 0, {moment}, {moment}, 'sending', 'sent', 'succeeded', 1, 0, 'done' FROM generate_series({from}, {to}) n"
        ),
        format!(
            "INSERT INTO ichido.ledger SELECT sha256(convert_to('h' || n, 'UTF8')), 'op', 'alice', 'h' || n, sha256('f'), sha256('f'), 'none', 'applied', n, \
             gen_random_uuid(), NULL, 200, '\\x01', '', NULL, NULL, {moment}, {moment}, {moment}, now() + interval '1 day' + n * interval '1 ms' \
             FROM generate_series({from}, {to}) n"
        ),
    ];
    for statement in statements {
        connection.execute(AssertSqlSafe(statement)).await.expect("history");
    }
    for table in ["messages", "events", "ledger", "ready", "leases", "dead_letters", "scheduled", "contents"]
    {
        connection.execute(AssertSqlSafe(format!("VACUUM ANALYZE ichido.{table}"))).await.expect("vacuumed");
    }
}

/// Adds a few waiting messages, one lapsed lease, one letter, one scheduled message.
async fn add_present(connection: &mut PgConnection) {
    let id = "(lpad(to_hex(1767225600000 + n), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid";
    let statements = [
        format!(
            "INSERT INTO ichido.messages SELECT {id}, 'orders', 'alice', 'p' || n, sha256('x'), 'text/plain', 'x', NULL, 2, 9, NULL, NULL, now() \
             FROM generate_series(1, 1000) n"
        ),
        format!(
            "INSERT INTO ichido.ready (queue, priority, message_id) SELECT 'orders', 2, {id} FROM generate_series(1, 900) n"
        ),
        format!(
            "INSERT INTO ichido.contents (queue, identity, content, message_id, until) SELECT 'orders', 'alice', sha256(convert_to('c' || n, 'UTF8')), {id}, now() + n * interval '1 s' FROM generate_series(1, 10000) n"
        ),
        format!(
            "INSERT INTO ichido.scheduled (message_id, queue, priority, state, due, suspect, attempts, deaths) SELECT {id}, 'orders', 2, 'failed', now(), false, 1, 0 FROM generate_series(901, 950) n"
        ),
        format!(
            "INSERT INTO ichido.dead_letters (message_id, queue, state, effect, code, error, since, attempts, deaths) SELECT {id}, 'orders', 'dead', 'not_done', 'BAD_REQUEST', 'no', now(), 1, 0 FROM generate_series(951, 999) n"
        ),
        format!(
            "INSERT INTO ichido.leases (fence, queue, node, claimed_at, lease_until, start_marks, suspect, guarantee, max_time_in_flight, message_ids) SELECT nextval('ichido.fence'), 'orders', gen_random_uuid(), now(), now() - interval '1 s', false, false, 'none', 0, ARRAY[{id}] FROM generate_series(1000, 1000) n"
        ),
    ];
    for statement in statements {
        connection.execute(AssertSqlSafe(statement)).await.expect("the present");
    }
}

/// Adds what people did, nine in ten a requeue by one of them, and seals.
async fn add_actions(connection: &mut PgConnection) {
    for statement in [
        "INSERT INTO ichido.events (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, effect, actor, position) \
         SELECT gen_random_uuid(), 1000000 + n, 0, now(), 'dead', 'queued', CASE WHEN n % 10 = 0 THEN 'decided' ELSE 'requeued' END, 0, 0, \
         'not_done', CASE WHEN n % 100 = 0 THEN 'pete' ELSE 'olivia' END, n FROM generate_series(1, 20000) n",
        "INSERT INTO ichido.seals SELECT n, n, n + 1, now(), now(), now(), 1, n, sha256('x'), sha256('x'), false, sha256('x'), '', NULL \
         FROM generate_series(1, 20000) n",
        "VACUUM ANALYZE ichido.events",
        "VACUUM ANALYZE ichido.seals",
    ] {
        connection.execute(statement).await.expect("actions");
    }
}

async fn audit_lists_go_by_their_indexes(connection: &mut PgConnection) {
    add_actions(connection).await;
    let before = "1019000, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 0";
    let subject = "'ffffffff-ffff-ffff-ffff-ffffffffffff', 1019000, 0, 50".to_owned();
    for (sql, page, index) in [
        (include_str!("../../src/sql/audit_list.sql"), format!("{before}, 50"), "events_audit"),
        (
            include_str!("../../src/sql/audit_list_kind.sql"),
            format!("{before}, 50, 'decided'"),
            "events_audit_kind",
        ),
        (
            include_str!("../../src/sql/audit_list_actor.sql"),
            format!("{before}, 50, 'pete'"),
            "events_audit_actor",
        ),
        (include_str!("../../src/sql/event_page.sql"), subject.clone(), "events_pkey"),
        (include_str!("../../src/sql/audit_list_subject.sql"), subject, "events_pkey"),
    ] {
        let anew = "SET LOCAL plan_cache_mode = force_custom_plan";
        let listed = plan_as(connection, anew, sql, &page).await;
        listed.assert_uses_index(index);
        assert!(listed.buffers < 500, "{index}: {} pages: {}", listed.buffers, listed.text);
    }
    let entries = "ARRAY['019b76da-a800-7000-8000-0000000003e8']::uuid[], ARRAY[1000007], ARRAY[0]";
    let seals = plan(connection, include_str!("../../src/postgres/sql/audit_seals.sql"), entries).await;
    seals.assert_uses_index("seals_until");
}

/// Adds old dead letters, which are kept.
async fn add_letters(connection: &mut PgConnection) {
    let id = "(lpad(to_hex(1735689600000 + n), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid";
    let letters = format!(
        "INSERT INTO ichido.dead_letters (message_id, queue, state, effect, since, attempts, deaths, group_id) SELECT {id}, CASE WHEN n % 100 = 0 THEN 'mail' ELSE 'orders' END, 'dead', 'not_done', '2025-01-01'::timestamptz + n * interval '1 ms', 1, 0, lpad(to_hex(n % 700), 32, '0')::uuid FROM generate_series(1, 100000) n"
    );
    connection.execute(AssertSqlSafe(letters)).await.expect("letters");
    let groups = format!(
        "INSERT INTO ichido.failure_groups (id, queue, template, count, first_seen, last_seen, state, state_since, urgency) SELECT {id}, 'orders', 'no', n % 2, '2025-01-01', '2025-01-01'::timestamptz + n * interval '1 ms', 'open', '2025-01-01', 2 FROM generate_series(1, 20000) n"
    );
    connection.execute(AssertSqlSafe(groups)).await.expect("groups");
    connection.execute("VACUUM ANALYZE ichido.dead_letters").await.expect("vacuumed");
    connection.execute("VACUUM ANALYZE ichido.failure_groups").await.expect("vacuumed");
}

struct QueryPlan {
    text: String,
    buffers: i64,
}

/// Runs a statement with a cached plan, rolls it back, and returns its plan.
async fn plan(connection: &mut PgConnection, sql: &'static str, arguments: &str) -> QueryPlan {
    plan_as(connection, "SET LOCAL plan_cache_mode = force_generic_plan", sql, arguments).await
}

async fn plan_as(
    connection: &mut PgConnection,
    how: &'static str,
    sql: &'static str,
    arguments: &str,
) -> QueryPlan {
    let mut transaction = connection.begin().await.expect("begun");
    transaction.execute(how).await.expect("set");
    transaction.execute(AssertSqlSafe(format!("PREPARE s AS {sql}"))).await.expect("prepared");
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE s ({arguments})");
    let row = transaction.fetch_one(AssertSqlSafe(explain)).await.expect("explained");
    let text = row.get_unchecked::<String, _>(0);
    transaction.rollback().await.expect("rolled back");
    connection.execute("DEALLOCATE ALL").await.expect("forgotten");
    let json: Value = serde_json::from_str(&text).expect("a plan");
    let count = |name: &str| json[0]["Plan"][name].as_i64().unwrap_or(0);
    QueryPlan { buffers: count("Shared Hit Blocks") + count("Shared Read Blocks"), text }
}

impl QueryPlan {
    /// Asserts that no table that grows with history is scanned.
    fn assert_uses_index(&self, index: &str) {
        assert!(
            self.text.contains(&format!("\"Index Name\": \"{index}\"")),
            "{index} is not used: {}",
            self.text
        );
        for table in ["messages", "events", "ledger"] {
            let json: Value = serde_json::from_str(&self.text).expect("a plan");
            assert!(!scans(&json, table), "{table} is read from end to end: {}", self.text);
        }
    }
}

fn scans(plan: &Value, table: &str) -> bool {
    match plan {
        Value::Object(node) => {
            let here = node.get("Node Type").is_some_and(|kind| kind == "Seq Scan")
                && node.get("Relation Name").is_some_and(|name| name == table)
                && node.get("Actual Loops").is_some_and(|loops| loops.as_f64() != Some(0.0));
            here || node.values().any(|value| scans(value, table))
        }
        Value::Array(nodes) => nodes.iter().any(|node| scans(node, table)),
        _ => false,
    }
}

const CLAIM_SQL: &str = include_str!("../../src/postgres/sql/work_claim.sql");

fn claim_arguments() -> String {
    let nothing = "00000000-0000-0000-0000-000000000000";
    format!("'orders', '{nothing}', -32768, '{nothing}', {CLAIM}, 30000000, false, 0, 'none', NULL, 0")
}

async fn claim(connection: &mut PgConnection) -> QueryPlan {
    plan(connection, CLAIM_SQL, &claim_arguments()).await
}

/// A queue that grew since the last ANALYZE looks small to the planner, and a connection's first plans are for the values at hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claim_from_a_queue_without_statistics_reads_its_batch_alone() {
    let database = fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    let waiting = "INSERT INTO ichido.ready (queue, priority, message_id) SELECT 'orders', 2, gen_random_uuid() FROM generate_series(1, 20000) n";
    connection.execute(waiting).await.expect("waiting messages");
    for how in [
        "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan = off",
        "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off",
    ] {
        let claim = plan_as(&mut connection, how, CLAIM_SQL, &claim_arguments()).await;
        let rows = rows_read(&serde_json::from_str(&claim.text).expect("a plan"));
        // Each of the 100 is chosen, found again and deleted.
        assert!(rows <= 400.0, "{rows} rows for {CLAIM} messages, {how}: {}", claim.text);
    }
    drop(store);
}

/// A page of failure groups, and those to delete, are found with an index.
async fn letters_and_groups_are_found(connection: &mut PgConnection) {
    found::letters_are_counted(connection).await;
    found::the_first_doubt_is_looked_up(connection).await;
    let list = include_str!("../../src/sql/group_list.sql");
    for page in ["255, 'infinity'", "2, now()"] {
        let page = format!("{page}, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 50");
        let groups = plan(connection, list, &page).await;
        groups.assert_uses_index("failure_groups_urgent");
        assert!(groups.buffers < 200, "{} pages of groups: {}", groups.buffers, groups.text);
    }
    let forget = include_str!("../../src/postgres/sql/group_forget.sql");
    plan(connection, forget, "'2025-01-01', 100").await.assert_uses_index("failure_groups_empty");
}

/// Planning these takes longer than running them. PostgreSQL plans a statement for each execution if the plan for the values at hand
/// looks cheaper, and a short array looks cheaper than one of unknown length.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_of_each_request_are_cached() {
    /// PostgreSQL considers a cached plan from the sixth execution on.
    const EXECUTIONS: usize = 8;
    let database = fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    add_history(&mut connection, 1, 20_000).await;
    connection.execute("SET enable_seqscan = off").await.expect("set");
    let name = "ARRAY['\\x0011223344556677']::bytea[]";
    let (claim_id, bytes, nothing) =
        ("ARRAY[gen_random_uuid()]", "ARRAY['\\x01']::bytea[]", "ARRAY[NULL]::text[]");
    for (sql, arguments) in [
        (include_str!("../../src/postgres/sql/key_find.sql"), format!("{name}, 0")),
        (
            include_str!("../../src/postgres/sql/key_claim.sql"),
            format!(
                "{name}, ARRAY['op'], ARRAY['alice'], ARRAY['k'], {bytes}, {bytes}, {claim_id}, ARRAY[1], {nothing}, {nothing}, ARRAY['none'], 0"
            ),
        ),
        (
            include_str!("../../src/postgres/sql/key_settle.sql"),
            format!(
                "{name}, ARRAY[1], ARRAY['applied'], ARRAY[200], {bytes}, {bytes}, {bytes}, ARRAY[NULL]::uuid[], ARRAY[1], 0"
            ),
        ),
        (CLAIM_SQL, claim_arguments()),
    ] {
        connection.execute(AssertSqlSafe(format!("PREPARE s AS {sql}"))).await.expect("prepared");
        for _ in 0..EXECUTIONS {
            connection.execute(AssertSqlSafe(format!("EXECUTE s ({arguments})"))).await.expect("executed");
        }
        let cached = "SELECT generic_plans FROM pg_prepared_statements WHERE name = 's'";
        let cached = connection.fetch_one(cached).await.expect("counted").get::<i64, _>(0);
        assert!(0 < cached, "planned for each execution: {sql}");
        connection.execute("DEALLOCATE s").await.expect("forgotten");
    }
    drop(store);
}

/// Both halves: leases that have expired, and those that end later than any lease can.
async fn lapsed_leases_go_by_their_indexes(connection: &mut PgConnection) {
    for ends_too_late in [false, true] {
        let lapse = format!("ARRAY['op'], 100, 0, {ends_too_late}, 3600000000");
        plan(connection, include_str!("../../src/postgres/sql/key_lapse.sql"), &lapse)
            .await
            .assert_uses_index("ledger_lapse");
    }
    let rescue = include_str!("../../src/postgres/sql/rescue_lock.sql");
    for ends_too_late in [false, true] {
        // As on the store's own connections: the few leases of this test would otherwise be scanned.
        let how = "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off";
        let arguments = format!("0, ARRAY['orders'], {ends_too_late}, 86400000000");
        let rescue = plan_as(connection, how, rescue, &arguments).await;
        rescue.assert_uses_index("leases_lapse");
        assert!(!scans(&serde_json::from_str(&rescue.text).expect("a plan"), "messages"));
    }
}

/// However many nodes there were, the search for dead ones reads those that may live.
async fn dead_nodes_are_found_among_the_living(connection: &mut PgConnection) {
    let nodes = "INSERT INTO ichido.nodes (id, name, started_at, seen_at, gone) \
        SELECT gen_random_uuid(), 'web', now(), now(), n % 1000 <> 0 FROM generate_series(1, 10000) n";
    connection.execute(nodes).await.expect("nodes");
    connection.execute("VACUUM ANALYZE ichido.nodes").await.expect("vacuumed");
    let living = plan(connection, include_str!("../../src/postgres/sql/node_living.sql"), "0, 1000").await;
    living.assert_uses_index("nodes_living");
    assert!(living.buffers < 50, "{} pages: {}", living.buffers, living.text);
}

/// Sealing uses the index of the sweep, and verification the names.
async fn sealed_keys_go_by_their_indexes(connection: &mut PgConnection) {
    let find = plan(connection, include_str!("../../src/sql/sealed_keys_find.sql"), "now(), 100").await;
    find.assert_uses_index("ledger_expiry");
    assert!(find.buffers < 500, "{} pages: {}", find.buffers, find.text);
    plan(
        connection,
        include_str!("../../src/postgres/sql/sealed_keys_read.sql"),
        "ARRAY['\\x0011223344556677']::bytea[]",
    )
    .await
    .assert_uses_index("ledger_pkey");
}

/// No index is there for them alone.
async fn look_ups_by_key_go_by_their_indexes(connection: &mut PgConnection) {
    let records = "'\\x0011223344556677', '\\x0011223344556678', 100";
    plan(connection, include_str!("../../src/sql/key_of_hash.sql"), records)
        .await
        .assert_uses_index("ledger_pkey");
    let messages =
        plan(connection, include_str!("../../src/sql/message_of_key.sql"), "'h7', 10000, 100").await;
    messages.assert_uses_index("messages_once");
    assert!(messages.buffers < 100, "{} pages: {}", messages.buffers, messages.text);
    plan(
        connection,
        include_str!("../../src/sql/message_keys.sql"),
        "'ffffffff-ffff-ffff-ffff-ffffffffffff', 100",
    )
    .await
    .assert_uses_index("messages_pkey");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_go_by_their_indexes_with_a_long_history_behind() {
    let database = fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    add_present(&mut connection).await;
    add_history(&mut connection, 1, 1_000).await;
    // A small table would rather be scanned; the same plan must be compared.
    connection
        .execute("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
        .await
        .expect("set");
    let young = claim(&mut connection).await;
    connection
        .execute("RESET enable_seqscan; RESET enable_hashjoin; RESET enable_mergejoin")
        .await
        .expect("reset");
    add_history(&mut connection, 1_001, history()).await;
    let old = claim(&mut connection).await;
    old.assert_uses_index("ready_pkey");
    // Reading a claimed message by its id may take one more page, because that index is a level deeper; nothing else may.
    assert!(
        old.buffers <= young.buffers + CLAIM,
        "a claim touched {} pages with 1,000 messages behind it, and {} with the whole history",
        young.buffers,
        old.buffers
    );
    let sweep =
        plan(&mut connection, include_str!("../../src/postgres/sql/key_sweep.sql"), "100, now()").await;
    sweep.assert_uses_index("ledger_expiry");
    sealed_keys_go_by_their_indexes(&mut connection).await;
    dead_nodes_are_found_among_the_living(&mut connection).await;
    lapsed_leases_go_by_their_indexes(&mut connection).await;
    let unknown = "now(), '\\x00', 50";
    plan(&mut connection, include_str!("../../src/sql/key_unknown.sql"), unknown)
        .await
        .assert_uses_index("ledger_unknown");
    plan(&mut connection, include_str!("../../src/sql/key_unknown_count.sql"), "now(), 10000")
        .await
        .assert_uses_index("ledger_unknown");
    look_ups_by_key_go_by_their_indexes(&mut connection).await;
    let contents =
        plan(&mut connection, include_str!("../../src/postgres/sql/content_sweep.sql"), "100, now()").await;
    contents.assert_uses_index("contents_until");
    let oldest = include_str!("../../src/sql/queue_oldest.sql");
    let oldest = plan(&mut connection, oldest, "'orders'").await;
    oldest.assert_uses_index("ready_pkey");
    assert!(!scans(&serde_json::from_str(&oldest.text).expect("a plan"), "messages"));
    let oldest = include_str!("../../src/sql/queue_oldest_list.sql");
    let oldest = plan(&mut connection, oldest, "100").await;
    oldest.assert_uses_index("ready_pkey");
    assert!(oldest.buffers < 50, "{} pages: {}", oldest.buffers, oldest.text);
    let oldest = include_str!("../../src/sql/dead_letter_oldest.sql");
    let oldest = plan(&mut connection, oldest, "'dead', 'mail'").await;
    oldest.assert_uses_index("dead_letters_newest");
    assert!(oldest.buffers < 50, "{} pages: {}", oldest.buffers, oldest.text);
    let left = "ARRAY['019b76da-a800-7000-8000-0000000003e8']::uuid[], 1, false";
    plan(&mut connection, include_str!("../../src/postgres/sql/rescue_left.sql"), left)
        .await
        .assert_uses_index("messages_pkey");
    audit_lists_go_by_their_indexes(&mut connection).await;
    // Planned for each query, because an unset filter must not count.
    let anew = "SET LOCAL plan_cache_mode = force_custom_plan";
    add_letters(&mut connection).await;
    let before = "now(), 'ffffffff-ffff-ffff-ffff-ffffffffffff'";
    let after_all = "'infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff'";
    let (all, of_queue) = (
        include_str!("../../src/sql/dead_letter_list.sql"),
        include_str!("../../src/sql/dead_letter_list_queue.sql"),
    );
    for (sql, page, index) in [
        (all, format!("'dead', {after_all}, 50"), "dead_letters_newest_of_all"),
        (all, format!("'dead', {before}, 50"), "dead_letters_newest_of_all"),
        (of_queue, format!("'dead', {after_all}, 50, 'mail'"), "dead_letters_newest"),
        (of_queue, format!("'dead', {before}, 50, 'mail'"), "dead_letters_newest"),
    ] {
        let letters = plan_as(&mut connection, anew, sql, &page).await;
        assert!(letters.buffers < 5_000, "{page} touched {} pages: {}", letters.buffers, letters.text);
        letters.assert_uses_index("messages_pkey");
        letters.assert_uses_index(index);
    }
    let group = "'00000000-0000-0000-0000-000000000007'";
    for (filter, group, index) in [
        (format!("NULL, {before}, '-infinity'"), "NULL", "dead_letters_newest_of_all"),
        (format!("NULL, {after_all}, now() - interval '1 hour'"), "NULL", "dead_letters_newest_of_all"),
        (format!("'mail', {before}, '-infinity'"), "NULL", "dead_letters_newest"),
        (format!("NULL, {before}, '-infinity'"), group, "dead_letters_group"),
        (format!("'orders', {before}, '-infinity'"), group, "dead_letters_group"),
    ] {
        let sql = include_str!("../../src/postgres/sql/dead_letter_page.sql");
        let arguments = format!("'dead', 'open', {filter}, NULL, NULL, NULL, NULL, 50, {group}");
        let letters = plan_as(&mut connection, anew, sql, &arguments).await;
        assert!(letters.buffers < 5_000, "{filter} touched {} pages: {}", letters.buffers, letters.text);
        letters.assert_uses_index(index);
    }
    letters_and_groups_are_found(&mut connection).await;
    let sql = include_str!("../../src/postgres/sql/dead_letter_counts.sql");
    let span = "ARRAY['orders', 'mail'], now() - interval '1 hour', now(), 10000";
    let counts = plan(&mut connection, sql, span).await;
    counts.assert_uses_index("dead_letters_newest");
    assert!(counts.buffers < 200, "{} pages for deaths of an hour: {}", counts.buffers, counts.text);
    let promote = plan(&mut connection, include_str!("../../src/postgres/sql/promote.sql"), "100, 0").await;
    assert!(!scans(&serde_json::from_str(&promote.text).expect("a plan"), "messages"));
    spans_are_found(&mut connection).await;
    drop(store);
}

/// Counters for alerts are read by the minute, however many hours are stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_counts_of_a_window_are_found_among_many() {
    let database = fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    let minutes = "INSERT INTO ichido.counters SELECT now() - n / 100 * interval '1 minute', 'queue q' || n % 100, 'arrived', 0, 1, 0 FROM generate_series(0, 99999) n";
    connection.execute(minutes).await.expect("counts");
    connection.execute("VACUUM ANALYZE ichido.counters").await.expect("vacuumed");
    connection.execute("SET enable_seqscan = off").await.expect("set");
    for (sql, arguments) in [
        (include_str!("../../src/postgres/sql/counter_sums.sql"), "300000000, 0, 1000"),
        (include_str!("../../src/postgres/sql/counter_sweep.sql"), "300000000, 0"),
    ] {
        let found = plan(&mut connection, sql, arguments).await;
        found.assert_uses_index("counters_pkey");
        assert!(found.buffers < 200, "{} pages: {}", found.buffers, found.text);
    }
    drop(store);
}

/// A series reads the rows of its own subject and range; the roll-up reads one hour.
// SPEC E3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_series_reads_only_its_own_rows() {
    let database = fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    // A hundred queues: 1,000 minutes each, and 1,000 hours that end three hours ago.
    for statement in [
        "INSERT INTO ichido.counters SELECT date_trunc('minute', now()) - n / 100 * interval '1 minute', 'queue q' || n % 100, 'sent', 0, 1, 0 FROM generate_series(0, 99999) n",
        "INSERT INTO ichido.counter_hours SELECT 'queue q' || n % 100, date_trunc('hour', now(), 'UTC') - (n / 100 + 3) * interval '1 hour', 'sent', 0, 60, 0 FROM generate_series(0, 99999) n",
        "VACUUM ANALYZE ichido.counters",
        "VACUUM ANALYZE ichido.counter_hours",
        "INSERT INTO ichido.replays SELECT md5(n::text)::uuid, 1, now() - n * interval '1 minute', now() FROM generate_series(1, 10000) n",
        "VACUUM ANALYZE ichido.replays",
        "SET enable_seqscan = off",
    ] {
        connection.execute(statement).await.expect("counts");
    }
    let minutes = include_str!("../../src/postgres/sql/series_minutes.sql");
    let models = include_str!("../../src/postgres/sql/counter_models.sql");
    let hours = include_str!("../../src/postgres/sql/series_hours.sql");
    let roll_up = include_str!("../../src/postgres/sql/counter_roll_up.sql");
    let sweep = include_str!("../../src/postgres/sql/counter_sweep.sql");
    let hour_sweep = include_str!("../../src/postgres/sql/counter_hour_sweep.sql");
    let replays = include_str!("../../src/postgres/sql/replay_find.sql");
    let replay_sweep = include_str!("../../src/postgres/sql/replay_sweep.sql");
    let two = "ARRAY[md5('7')::uuid, md5('8')::uuid]";
    let of_q7 = "'queue q7', now() - interval '1 hour', now(), 300000000, 200001";
    let day_of_q7 = "'queue q7', date_trunc('hour', now()) - interval '1 day', now(), 3600000000, 200001, 0";
    for (sql, arguments, index, max_rows) in [
        (minutes, of_q7, "counters_about", 61.0),
        // None of these rows is of a model.
        (models, "86400000000, 0, 1000", "counters_about", 2.0),
        // Those of 24 hours, the latest hour, and the minutes since then.
        (hours, day_of_q7, "counters_about", 25.0 + 2.0 + 180.0),
        (hours, day_of_q7, "counter_hours_pkey", 25.0 + 2.0 + 180.0),
        // An hour of all subjects, and its sums.
        (roll_up, "3660000000, 0", "counters_pkey", 6_000.0 + 2.0),
        (roll_up, "3660000000, 0", "counter_hours_hour", 6_000.0 + 2.0),
        (sweep, "3660000000, 0", "counters_pkey", 2.0 + 2.0 * 100.0),
        (hour_sweep, "3660000000, 0", "counter_hours_hour", 1.0 + 2.0 * 100.0),
        (replays, two, "replays_pkey", 2.0),
        (replay_sweep, "3660000000, 0, 100", "replays_first_at", 4.0 * 100.0),
    ] {
        let found = plan(&mut connection, sql, arguments).await;
        found.assert_uses_index(index);
        let rows = rows_read(&serde_json::from_str(&found.text).expect("a plan"));
        assert!(rows <= max_rows, "{rows} rows for {arguments}: {}", found.text);
    }
    drop(store);
}

/// Adds 6,000 messages: of six, one is queued, one failed, one dead, and three were sent. Most failures have one code.
async fn add_messages_of_all_states(connection: &mut PgConnection) {
    let id = "(lpad(to_hex(1735689600000 + n), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid";
    let all = "generate_series(1, 6000) n";
    let code =
        "CASE WHEN n % 6 IN (1, 2) THEN CASE WHEN n < 100 THEN 'BAD_REQUEST' ELSE 'BROKER_5XX' END END";
    let state = "CASE n % 6 WHEN 1 THEN 'failed' WHEN 2 THEN 'dead' ELSE 'sent' END";
    for statement in [
        format!(
            "INSERT INTO ichido.messages SELECT {id}, 'orders', 'u' || n % 7, 'h' || n, sha256('x'), 'text/plain', 'x', NULL, 2, 9, NULL, NULL, now() FROM {all}"
        ),
        format!(
            "INSERT INTO ichido.ready (queue, priority, message_id) SELECT 'orders', n % 4, {id} FROM {all} WHERE n % 6 = 0"
        ),
        format!(
            "INSERT INTO ichido.scheduled (message_id, queue, priority, state, due, suspect, attempts, deaths) SELECT {id}, 'orders', 2, 'failed', now(), false, 1, 0 FROM {all} WHERE n % 6 = 1"
        ),
        format!(
            "INSERT INTO ichido.dead_letters (message_id, queue, state, effect, code, since, attempts, deaths) SELECT {id}, 'orders', 'dead', 'not_done', {code}, now(), 1, 0 FROM {all} WHERE n % 6 = 2"
        ),
        format!(
            "INSERT INTO ichido.events (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, effect, code) SELECT {id}, n, 0, now(), now(), 'sending', {state}, 'ended', 1, 0, 'done', {code} FROM {all} WHERE n % 6 > 0"
        ),
    ] {
        connection.execute(AssertSqlSafe(statement)).await.expect("messages");
    }
    for table in ["messages", "events", "ready", "dead_letters", "scheduled"] {
        connection.execute(AssertSqlSafe(format!("VACUUM ANALYZE ichido.{table}"))).await.expect("vacuumed");
    }
}

/// Returns how many rows of tables a plan read, those included that a filter removed.
fn rows_read(plan: &Value) -> f64 {
    match plan {
        Value::Object(node) => {
            let number = |name: &str| node.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            let is_table = node.contains_key("Relation Name");
            let rows = number("Actual Rows") + number("Rows Removed by Filter");
            let here = if is_table { rows * number("Actual Loops") } else { 0.0 };
            here + node.values().map(rows_read).sum::<f64>()
        }
        Value::Array(nodes) => nodes.iter().map(rows_read).sum(),
        _ => 0.0,
    }
}

/// A search reads ids from an index and then their messages: its cost depends on its page, not on the store or the filter.
// SPEC D13, E3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_reads_no_more_rows_than_it_asks_for() {
    let database = fresh_database().await;
    let store = Store::open(&database.url, 2).await.expect("the store opens");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    add_messages_of_all_states(&mut connection).await;
    // With the settings of the store's own connections.
    let how = "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan = off";
    let ids = include_str!("../../src/sql/message_ids.sql");
    let trace = include_str!("../../src/sql/message_ids_trace.sql");
    let code = include_str!("../../src/sql/message_ids_code.sql");
    let live = include_str!("../../src/postgres/sql/message_ids_live.sql");
    // In `ready` one page of each priority is read.
    for (sql, filter, index, max_rows) in [
        (ids, "", "messages_pkey", 50.0),
        (trace, ", 't-1'", "messages_trace_id", 50.0),
        (code, ", 'BROKER_5XX'", "events_code", 51.0),
        (code, ", 'BAD_REQUEST'", "events_code", 51.0),
        (live, ", 'queued', 'orders'", "ready_pkey", 300.0),
        (live, ", 'queued', NULL", "ready_pkey", 300.0),
        (live, ", 'queued', 'mail'", "ready_pkey", 60.0),
        (live, ", 'failed', NULL", "scheduled_pkey", 60.0),
        (live, ", 'dead', 'mail'", "dead_letters_pkey", 60.0),
    ] {
        let arguments = format!("'ffffffff-ffff-ffff-ffff-ffffffffffff', 50{filter}");
        let found = plan_as(&mut connection, how, sql, &arguments).await;
        found.assert_uses_index(index);
        let rows = rows_read(&serde_json::from_str(&found.text).expect("a plan"));
        assert!(rows <= max_rows, "{rows} rows for {arguments}: {}", found.text);
    }
    let of_identity = include_str!("../../src/postgres/sql/message_of_identity.sql");
    for arguments in ["'u1', NULL, 100", "'u1', 'orders', 100", "'nobody', NULL, 100"] {
        let found = plan_as(&mut connection, how, of_identity, arguments).await;
        found.assert_uses_index("messages_once");
        let rows = rows_read(&serde_json::from_str(&found.text).expect("a plan"));
        assert!(rows <= 102.0, "{rows} rows for {arguments}: {}", found.text);
    }
    let list = include_str!("../../src/postgres/sql/message_list.sql");
    let newest =
        "SELECT array_agg(id)::text FROM (SELECT id FROM ichido.messages ORDER BY id DESC LIMIT 50) i";
    let of_50 = connection.fetch_one(newest).await.expect("ids").get::<String, _>(0);
    let list = plan_as(
        &mut connection,
        "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off",
        list,
        &format!("NULL, NULL, 'nobody', NULL, NULL, NULL, NULL, '{of_50}', 50, NULL, NULL"),
    )
    .await;
    list.assert_uses_index("messages_pkey");
    let rows = rows_read(&serde_json::from_str(&list.text).expect("a plan"));
    assert!(rows <= 50.0 * 7.0, "{rows} rows for 50 messages: {}", list.text);
    let letters = include_str!("../../src/postgres/sql/dead_letter_page.sql");
    let rare = "'dead', 'open', NULL, 'infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '-infinity', 'BAD_REQUEST', NULL, NULL, NULL, 50, NULL";
    let letters = plan_as(&mut connection, how, letters, rare).await;
    letters.assert_uses_index("dead_letters_code");
    drop(store);
}

/// Entries to seal are found by the block summaries, without reading what was sealed long ago.
// SPEC F5.
async fn spans_are_found(connection: &mut PgConnection) {
    // With the settings of the store's own connections.
    connection.execute("SET enable_seqscan = off").await.expect("set");
    connection.execute("INSERT INTO ichido.events SELECT message_id, fence, 1, claimed_at, at, from_state, to_state, kind, attempts, deaths, NULL, NULL, effect FROM ichido.events LIMIT 100").await.expect("new entries");
    let last = "(SELECT max(position) FROM ichido.events)";
    let row = connection.fetch_one(AssertSqlSafe(format!("SELECT {last}"))).await.expect("the last");
    let last = row.get::<i64, _>(0);
    for (sql, arguments) in [
        (include_str!("../../src/postgres/sql/seal_count.sql"), format!("{last}, {}, 4096", last + 1)),
        (include_str!("../../src/postgres/sql/seal_entries.sql"), format!("{last}, {}", last + 1)),
        (include_str!("../../src/postgres/sql/unsealed.sql"), format!("{last}, {}", last + 1)),
    ] {
        let span = plan(connection, sql, &arguments).await;
        span.assert_uses_index("events_position");
        assert!(span.buffers < 2_000, "a span of 100 entries touched {} pages", span.buffers);
    }
}

/// Events are written in the order of their index, also with a cached plan and whatever the order of the reports: its pages fill
/// up, and it is half as large as one that is filled backwards.
#[tokio::test]
async fn events_are_written_in_the_order_of_their_index() {
    /// From the sixth execution on, a statement's plan is cached.
    const BATCHES: u32 = 8;
    const MESSAGES: u32 = 100;
    let database = fresh_database().await;
    // One connection, so all executions are of one prepared statement.
    let store = Store::open(&database.url, 1).await.expect("the store opens");
    for batch in 0..BATCHES {
        let messages = (0..MESSAGES).map(|number| message(&format!("{batch}-{number}"))).collect();
        assert!(store.messages().enqueue_all(messages).await.iter().all(Result::is_ok));
        let mut work = store.claims().claim(&queue(), many(MESSAGES), terms()).await.expect("claimed");
        work.reverse();
        let report = |work| Settlement::new(work, succeeded(work), Note::default());
        let settled = store.claims().settle_all(work.iter().map(report).collect()).await;
        assert!(settled.iter().all(Result::is_ok), "{settled:?}");
    }
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    let backwards = "SELECT count(*), count(*) FILTER (WHERE message_id < before) \
                     FROM (SELECT message_id, lag(message_id) OVER (ORDER BY ctid) AS before FROM ichido.events) AS e";
    let row = connection.fetch_one(backwards).await.expect("counted");
    assert_eq!((row.get::<i64, _>(0), row.get::<i64, _>(1)), (i64::from(BATCHES * MESSAGES), 0));
}
