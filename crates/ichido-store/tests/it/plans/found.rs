//! Rows that a page needs are found by an index, and counted where they are.

use serde_json::Value;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::{plan_as, rows_read};

/// What decides about the effect of a message with ten thousand attempts is looked up, not searched for.
pub(super) async fn the_first_doubt_is_looked_up(connection: &mut PgConnection) {
    let id = "'00000000-0000-0000-0000-0000000000aa'";
    let attempts = format!(
        "INSERT INTO ichido.events (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, doubt_since, in_flight_until, effect) \
         SELECT {id}, n * 1000, 0, now(), now(), 'sending', 'failed', 'failed', n, 0, CASE WHEN n = 2 THEN '2025-01-01'::timestamptz WHEN 3 < n THEN '2025-01-02'::timestamptz END, \
         CASE WHEN n = 2 OR 3 < n THEN now() END, CASE WHEN n = 2 OR 3 < n THEN 'unknown' ELSE 'not_done' END FROM generate_series(1, 10000) n"
    );
    connection.execute(AssertSqlSafe(attempts)).await.expect("attempts");
    let sql = include_str!("../../../src/sql/event_doubt.sql");
    let doubt = plan_as(
        connection,
        "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off",
        sql,
        id,
    )
    .await;
    doubt.assert_uses_index("events_pkey");
    let plan: Value = serde_json::from_str(&doubt.text).expect("a plan");
    assert_eq!(plan[0]["Plan"]["Actual Rows"].as_f64(), Some(1.0), "{}", doubt.text);
    let rows = rows_read(&plan);
    assert!(rows < 200.0, "{rows} rows for one of ten thousand attempts: {}", doubt.text);
}

/// A preview of a bulk operation reads the letters that match, up to a limit, and returns counts of them alone.
pub(super) async fn letters_are_counted(connection: &mut PgConnection) {
    let how = "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan = off";
    let sql = include_str!("../../../src/postgres/sql/dead_letter_classes.sql");
    let group = "'00000000-0000-0000-0000-000000000007'";
    for (queue, group, max_counted, index, max_rows) in [
        ("'mail'", "NULL", 200_000, "dead_letters_newest", 1_000.0),
        ("NULL", group, 200_000, "dead_letters_group", 143.0),
        ("NULL", "NULL", 200_000, "dead_letters_newest_of_all", 100_049.0),
        ("'mail'", "NULL", 10, "dead_letters_newest", 10.0),
        ("NULL", group, 10, "dead_letters_group", 10.0),
        ("NULL", "NULL", 10, "dead_letters_newest_of_all", 10.0),
    ] {
        let values = format!(
            "'dead', 'open', {queue}, 'infinity', '-infinity', NULL, NULL, NULL, NULL, {group}, now(), now(), 100, ARRAY['mail'], ARRAY[now()], {max_counted}"
        );
        let counts = plan_as(connection, how, sql, &values).await;
        counts.assert_uses_index(index);
        let plan: Value = serde_json::from_str(&counts.text).expect("a plan");
        let rows = rows_read(&plan);
        assert!(0.0 < rows && rows <= max_rows, "{rows} rows for {index}: {}", counts.text);
        assert!(plan[0]["Plan"]["Actual Rows"].as_f64() <= Some(3.0), "{}", counts.text);
    }
}
