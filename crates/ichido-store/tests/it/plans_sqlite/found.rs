//! Rows that a page needs are found by an index, and counted where they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ichido_store::Store;
use ichido_store::testing::sqlite::fresh_file;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::{OLD, add_history, connect_beside, count_into, plan, text};

/// What decides about a message's effect is looked up, not searched for among all its attempts.
// SPEC H9.
#[tokio::test]
async fn the_first_doubt_among_ten_thousand_attempts_is_looked_up() {
    let file = fresh_file();
    let store = Store::open(&file.url, 1).await.unwrap();
    let mut connection = connect_beside(&file).await;
    let id = Uuid::from_u128(7);
    // The doubt of the second attempt was resolved; that of the fourth lasts.
    let attempts = "WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 10000) \
         INSERT INTO ichido_events (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, doubt_since, in_flight_until, effect) \
         SELECT ?1, n * 1000, 0, n, n, 'sending', 'failed', 'failed', n, 0, CASE WHEN n = 2 THEN 2 WHEN 3 < n THEN 4 END, CASE WHEN n = 2 OR 3 < n THEN n END, \
         CASE WHEN n = 2 OR 3 < n THEN 'unknown' ELSE 'not_done' END FROM i";
    sqlx::query(attempts).bind(id).execute(&mut connection).await.unwrap();
    let steps = Arc::new(AtomicU64::new(0));
    count_into(&steps, &mut connection).await;
    let found =
        sqlx::query(AssertSqlSafe(text("event_doubt"))).bind(id).fetch_one(&mut connection).await.unwrap();
    assert_eq!((found.get::<i64, _>("fence"), found.get::<i64, _>("attempts")), (4_000, 4));
    let looked_up = steps.load(Ordering::Relaxed);
    assert!(0 < looked_up && looked_up < 10_000, "{looked_up} steps for one of ten thousand attempts");
    connection.lock_handle().await.unwrap().remove_progress_handler();
    drop(store);
}

/// A preview of a bulk operation counts letters where an index finds them, up to a limit; the counts are sorted, the letters are not.
// SPEC E4.
#[tokio::test]
async fn letters_of_a_bulk_operation_are_counted_by_their_indexes() {
    let file = fresh_file();
    let store = Store::open(&file.url, 1).await.unwrap();
    let mut connection = connect_beside(&file).await;
    let plan = plan(&mut connection, &text("dead_letter_classes")).await;
    for by in [
        "INDEX ichido_dead_letters_group (group_id=? AND state=? AND closed=? AND since>? AND since<?)",
        "INDEX ichido_dead_letters_code (state=? AND closed=? AND code=? AND since>? AND since<?)",
        "INDEX ichido_dead_letters_newest (state=? AND closed=? AND queue=? AND since>? AND since<?)",
        "INDEX ichido_dead_letters_newest_of_all (state=? AND closed=? AND since>? AND since<?)",
        "SEARCH l USING INTEGER PRIMARY KEY (rowid=?)",
    ] {
        assert!(plan.iter().any(|line| line.contains(by)), "no {by:?} in {plan:#?}");
    }
    let sorts: Vec<&String> = plan.iter().filter(|line| line.contains("TEMP B-TREE")).collect();
    assert_eq!(sorts, ["USE TEMP B-TREE FOR GROUP BY"]);
    add_history(&mut connection, 1, OLD).await;
    let steps = Arc::new(AtomicU64::new(0));
    count_into(&steps, &mut connection).await;
    let none: Option<&str> = None;
    let counting = async |connection: &mut SqliteConnection,
                          group: Option<Uuid>,
                          queue: Option<&str>,
                          text_found: Option<&str>,
                          max_counted: i64| {
        let sql = AssertSqlSafe(text("dead_letter_classes"));
        let query = sqlx::query(sql).bind("dead").bind("open").bind(queue).bind(i64::MAX).bind(i64::MIN);
        let query = query
            .bind(none)
            .bind(none)
            .bind(none)
            .bind(text_found)
            .bind(group)
            .bind(0)
            .bind(0)
            .bind(100)
            .bind("[]")
            .bind(max_counted);
        let before = steps.load(Ordering::Relaxed);
        let rows = query.fetch_all(connection).await.unwrap();
        (
            rows.iter().map(|row| row.get::<i64, _>("count")).sum::<i64>(),
            steps.load(Ordering::Relaxed) - before,
        )
    };
    let (of_queue, _) = counting(&mut connection, None, Some("orders"), None, i64::MAX).await;
    assert!(OLD / 20 < of_queue, "{of_queue} letters");
    let (of_nobody, steps) = counting(&mut connection, Some(Uuid::max()), None, None, i64::MAX).await;
    assert_eq!(of_nobody, 0);
    assert!(steps < 1_000, "{steps} steps for no letter among {of_queue}");
    for (group, queue) in [(None, Some("orders")), (None, None), (Some(Uuid::from_u128(30)), None)] {
        let (some, steps) = counting(&mut connection, group, queue, None, 10).await;
        assert_eq!(some, 10, "of {group:?} and {queue:?}");
        assert!(steps < 2_000, "{steps} steps for ten letters among {of_queue}");
    }
    // The limit is one of letters that match: the only one is found behind all others.
    sqlx::query("UPDATE ichido_dead_letters SET error = 'rare' WHERE rowid = 1")
        .execute(&mut connection)
        .await
        .unwrap();
    assert_eq!(counting(&mut connection, None, None, Some("rare"), 10).await.0, 1);
    connection.lock_handle().await.unwrap().remove_progress_handler();
    drop(store);
}
