//! The floors: the least SQL for the same work, run by pgbench, or by a bare loop where batches are bound.

use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::{Executor as _, PgPool, Row as _};
use uuid::Uuid;

use crate::report::{Stopwatch, joined};

/// The server settings of a measurement.
pub(crate) const SERVER: [(&str, &str); 3] =
    [("shared_buffers", "1GB"), ("max_wal_size", "2GB"), ("min_wal_size", "1GB")];

pub(crate) async fn tables(pool: &PgPool) {
    pool.execute(include_str!("../floor/tables.sql")).await.expect("the floor's tables");
}

/// Returns the transactions per second of a prepared script with this many clients.
pub(crate) fn pgbench(url: &str, script: &str, clients: usize, seconds: u32) -> f64 {
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("floor").join(script);
    let output = Command::new("pgbench")
        .args(["-n", "-M", "prepared", "-c", &clients.to_string(), "-j", &clients.min(2).to_string()])
        .args(["-T", &seconds.to_string(), "-f"])
        .arg(script)
        .arg(url)
        .output()
        .expect("pgbench runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let rate =
        text.lines().find_map(|line| line.strip_prefix("tps = ")).and_then(|rest| rest.split(' ').next());
    rate.and_then(|rate| rate.parse().ok()).unwrap_or_else(|| {
        panic!("pgbench printed no rate: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

/// Returns the rows per second of one `INSERT … SELECT FROM unnest` of 1,000 rows per call.
pub(crate) async fn enqueue_bulk(pool: &PgPool, calls: usize) -> f64 {
    let watch = Stopwatch::start();
    for _ in 0..calls {
        let ids: Vec<Uuid> = (0..1_000).map(|_| Uuid::now_v7()).collect();
        let keys: Vec<String> = ids.iter().map(Uuid::to_string).collect();
        sqlx::query(
            "INSERT INTO floor_messages SELECT i.id, i.queue, i.identity, i.key, i.digest, i.content_type, i.request, NULL, i.priority, \
             i.attempts, NULL, NULL, clock_timestamp() FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], \
             $7::bytea[], $8::smallint[], $9::integer[]) AS i (id, queue, identity, key, digest, content_type, request, priority, attempts)",
        )
        .bind(&ids)
        .bind(vec!["orders"; 1_000])
        .bind(vec!["alice"; 1_000])
        .bind(&keys)
        .bind(vec![[7_u8; 32].as_slice(); 1_000])
        .bind(vec!["application/json"; 1_000])
        .bind(vec![[b'x'; 200].as_slice(); 1_000])
        .bind(vec![2_i16; 1_000])
        .bind(vec![9_i32; 1_000])
        .execute(pool)
        .await
        .expect("inserted");
    }
    watch.rate(calls * 1_000)
}

/// Inserts rows one after another, each in its own commit.
pub(crate) async fn enqueue_one(pool: &PgPool, rows: usize) {
    for _ in 0..rows {
        let id = Uuid::now_v7();
        sqlx::query("INSERT INTO floor_messages VALUES ($1, 'orders', 'alice', $2, $3, 'application/json', $4, NULL, 2, 9, NULL, NULL, clock_timestamp())")
            .bind(id)
            .bind(id.to_string())
            .bind([7_u8; 32].as_slice())
            .bind([b'x'; 200].as_slice())
            .execute(pool)
            .await
            .expect("inserted");
    }
}

/// Returns the rows per second of the plain layout: claim by update, finish by update; 1,000 at a time, two clients.
pub(crate) async fn drain_plain(pool: &PgPool, rows: i64) -> f64 {
    sqlx::query("INSERT INTO floor_plain (queue, status, request, created_at) SELECT 'orders', 'queued', convert_to(repeat('x', 200), 'UTF8'), clock_timestamp() FROM generate_series(1, $1)")
        .bind(rows).execute(pool).await.expect("filled");
    pool.execute("VACUUM ANALYZE floor_plain").await.expect("vacuumed");
    drained_by_two(pool, |pool| async move {
        let claimed = sqlx::query("UPDATE floor_plain SET status = 'sending' WHERE id = ANY (ARRAY (SELECT id FROM floor_plain WHERE queue = 'orders' AND status = 'queued' ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED)) RETURNING id, request")
            .fetch_all(&pool).await.expect("claimed");
        let ids: Vec<i64> = claimed.iter().map(|row| row.get("id")).collect();
        if !ids.is_empty() {
            sqlx::query("UPDATE floor_plain SET status = 'sent' WHERE id = ANY ($1)").bind(ids).execute(&pool).await.expect("finished");
        }
        claimed.len()
    })
    .await
}

/// Returns the rows per second of the leanest layout, filled first.
pub(crate) async fn drain_leanest(pool: &PgPool, rows: i64) -> f64 {
    fill_leanest(pool, rows).await;
    empty_leanest(pool).await
}

/// Fills the leanest layout, ready to be drained.
pub(crate) async fn fill_leanest(pool: &PgPool, rows: i64) {
    sqlx::query("WITH body AS (INSERT INTO floor_body SELECT n, convert_to(repeat('x', 200), 'UTF8') FROM generate_series((SELECT coalesce(max(id), 0) + 1 FROM floor_body), (SELECT coalesce(max(id), 0) FROM floor_body) + $1) n RETURNING id) INSERT INTO floor_ready SELECT id FROM body")
        .bind(rows).execute(pool).await.expect("filled");
    pool.execute("VACUUM ANALYZE floor_ready").await.expect("vacuumed");
    pool.execute("VACUUM ANALYZE floor_body").await.expect("vacuumed");
}

/// Drains it: a claim deletes ids and writes one lease row, the finish deletes that row.
pub(crate) async fn empty_leanest(pool: &PgPool) -> f64 {
    drained_by_two(pool, |pool| async move {
        let claimed = sqlx::query("WITH picked AS (DELETE FROM floor_ready WHERE id = ANY (ARRAY (SELECT id FROM floor_ready ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED)) RETURNING id), lease AS (INSERT INTO floor_lease (until, ids) SELECT clock_timestamp() + interval '30 s', array_agg(id) FROM picked HAVING count(*) > 0 RETURNING id) SELECT lease.id AS lease, b.request FROM picked JOIN floor_body b USING (id), lease")
            .fetch_all(&pool).await.expect("claimed");
        if let Some(first) = claimed.first() {
            sqlx::query("DELETE FROM floor_lease WHERE id = $1").bind(first.get::<i64, _>("lease")).execute(&pool).await.expect("finished");
        }
        claimed.len()
    })
    .await
}

/// Returns the rows per second of two clients that each drain in batches until none is left; `batch` returns its size.
async fn drained_by_two<W>(pool: &PgPool, batch: impl Fn(PgPool) -> W + Copy + Send + 'static) -> f64
where
    W: Future<Output = usize> + Send,
{
    let watch = Stopwatch::start();
    let clients = (0..2).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move {
            let mut drained = 0_usize;
            loop {
                match batch(pool.clone()).await {
                    0 => return drained,
                    count => drained += count,
                }
            }
        })
    });
    watch.rate(joined(clients).await.into_iter().sum())
}
