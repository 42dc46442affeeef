//! An endpoint with one INSERT: bare, and behind the layer, in one process and one run.

mod by_hand;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use ichido::once::{Class, Guarantee, LeaseKeeper, Once, OnceLayer, Tx};
use ichido_store::Store;
use ichido_store::testing::postgres::Cluster;
use ichido_store::testing::sqlite::fresh_file;
use sqlx::Postgres;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{Sqlite, SqlitePool};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::floor::SERVER;
use crate::floor_sqlite;
use crate::load::{LoadTarget, quantile};
use crate::report::median;

const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(4);
/// Keys whose outcomes are replayed.
const REPLAYED: usize = 1_000;
/// The service's own connections: more than the machine's cores, fewer than the callers.
const CONNECTIONS: u32 = 16;

const TABLE: &str = "CREATE TABLE bookmarks (id TEXT PRIMARY KEY, url TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO bookmarks (id, url) VALUES ($1, $2)";

pub(crate) async fn on_postgres() {
    let cluster = Cluster::start(&SERVER).expect("a PostgreSQL server");
    let database = cluster.database().await.expect("a database");
    println!("PostgreSQL");
    measure(served_by_postgres(&database.url).await).await;
}

pub(crate) async fn on_sqlite() {
    let file = fresh_file();
    println!("SQLite");
    measure(served_by_sqlite(&file.url).await).await;
}

pub(crate) async fn served_by_postgres(url: &str) -> SocketAddr {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await.expect("a pool");
    sqlx::query(TABLE).execute(&pool).await.expect("a table");
    sqlx::query(by_hand::TABLE).execute(&pool).await.expect("a table");
    let keeper = LeaseKeeper::new(Store::open(url, 8).await.expect("the store opens"));
    let by_hand = Router::new().route("/by-hand", post(by_hand::create)).with_state(pool.clone());
    serve(postgres::router(&keeper, pool).merge(by_hand)).await
}

async fn served_by_sqlite(url: &str) -> SocketAddr {
    let store = Store::open(url, 8).await.expect("the store opens");
    let pool = floor_sqlite::pool(url, TABLE).await;
    serve(sqlite::router(&LeaseKeeper::new(store), pool)).await
}

/// The endpoints on one database: the same INSERT in each.
macro_rules! endpoints {
    ($name:ident, $database:ty, $pool:ty, |$of:ident| $begin:expr) => {
        mod $name {
            use super::*;

            async fn autocommit(State(pool): State<$pool>, body: String) -> (StatusCode, String) {
                let id = Uuid::now_v7().to_string();
                sqlx::query(INSERT).bind(&id).bind(body).execute(&pool).await.expect("inserted");
                (StatusCode::CREATED, id)
            }

            async fn explicit(State($of): State<$pool>, body: String) -> (StatusCode, String) {
                let id = Uuid::now_v7().to_string();
                let mut open = $begin.await.expect("begun");
                sqlx::query(INSERT).bind(&id).bind(body).execute(&mut *open).await.expect("inserted");
                open.commit().await.expect("committed");
                (StatusCode::CREATED, id)
            }

            async fn in_transaction(tx: Tx<$database>, body: String) -> (StatusCode, String) {
                let id = Uuid::now_v7().to_string();
                let mut open = tx.lock().await.expect("open");
                sqlx::query(INSERT).bind(&id).bind(body).execute(&mut *open).await.expect("inserted");
                (StatusCode::CREATED, id)
            }

            pub(super) fn router(keeper: &LeaseKeeper, pool: $pool) -> Router {
                let transactional =
                    layer(keeper, "transactional", Guarantee::Transactional(pool.clone().into()));
                Router::new()
                    .route("/autocommit", post(autocommit))
                    .route("/explicit", post(explicit))
                    .route("/transactional", post(in_transaction).layer(transactional))
                    .route("/keyed", post(autocommit).layer(layer(keeper, "keyed", Guarantee::Keyed)))
                    .with_state(pool)
            }
        }
    };
}

endpoints!(postgres, Postgres, PgPool, |pool| pool.begin());
endpoints!(sqlite, Sqlite, SqlitePool, |pool| Store::begin_immediate(&pool));

fn layer(keeper: &LeaseKeeper, name: &'static str, effect: Guarantee) -> OnceLayer {
    let once = Once::operation(name).class(Class::Mutate).guarantee(effect).single_identity("bench");
    once.build(keeper).expect("a layer")
}

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await.expect("served") });
    address
}

/// The endpoints and their targets: a share of the rate of the same handler in an explicit transaction.
const KINDS: [(&str, &str, Option<f64>); 4] = [
    ("/explicit", "bare, in an explicit transaction", None),
    ("/autocommit", "bare, in autocommit", None),
    ("/transactional", "behind the layer, transactional", Some(0.6)),
    ("/keyed", "behind the layer, keyed", Some(0.8)),
];
const MIN_REPLAYS: f64 = 2.0;
/// Maximum factor that the layer may add to the p99 latency.
const MAX_P99: f64 = 1.5;

async fn measure(address: SocketAddr) {
    let fresh = |path| LoadTarget {
        address,
        path,
        key: Arc::new(|_| Uuid::now_v7().to_string()),
        body: Arc::new(|number| {
            format!(
                r#"{{"url":"https://example.org/articles/{number}","source_hint":"share","created_from":"web"}}"#
            )
        }),
        numbers: usize::MAX,
        replays: false,
    };
    // Sequential requests would take long: the first round creates the outcomes that are replayed.
    let first = LoadTarget {
        key: Arc::new(|number| format!("replay-{number}")),
        numbers: REPLAYED,
        ..fresh("/keyed")
    };
    first.each_once().await;
    let replayed = LoadTarget { replays: true, ..first };
    let mut rates = vec![Vec::new(); KINDS.len() + 1];
    for _ in 0..ROUNDS {
        for (index, (path, ..)) in KINDS.iter().enumerate() {
            rates[index].push(fresh(path).saturate(TIME).await);
        }
        rates[KINDS.len()].push(replayed.saturate(TIME).await);
    }
    let rates: Vec<f64> = rates.into_iter().map(median).collect();
    let (explicit, autocommit) = (rates[0], rates[1]);
    println!("| endpoint | requests/s | to explicit | to autocommit | target |\n|---|---:|---:|---:|---:|");
    let replays = ("", "behind the layer, replays", Some(MIN_REPLAYS));
    for ((_, what, target), rate) in KINDS.into_iter().chain([replays]).zip(&rates) {
        let ratio = rate / explicit;
        let missed = if target.is_some_and(|target| ratio < target) { " (missed)" } else { "" };
        let target = target.map(|target| format!("{target:.2}")).unwrap_or_default();
        println!("| {what} | {rate:.0} | {ratio:.2}{missed} | {:.2} | {target} |", rate / autocommit);
    }
    slowest(rates[2] / 3.0, &fresh).await;
}

/// Prints the latencies at a steady rate, a third of the layer's maximum, bare and behind it.
async fn slowest(rate: f64, fresh: &impl Fn(&'static str) -> LoadTarget) {
    println!(
        "\n| endpoint, at {rate:.0} requests/s | median | p99 | p99 to bare | target |\n|---|---:|---:|---:|---:|"
    );
    let mut bare = None;
    for (path, what, _) in KINDS {
        let mut p99s = Vec::new();
        let mut medians = Vec::new();
        for _ in 0..ROUNDS {
            let times = fresh(path).at_a_rate(rate, TIME).await;
            medians.push(quantile(&times, 0.5).as_secs_f64() * 1e3);
            p99s.push(quantile(&times, 0.99).as_secs_f64() * 1e3);
        }
        let (middle, p99) = (median(medians), median(p99s));
        let bare = *bare.get_or_insert(p99);
        let ratio = p99 / bare;
        let is_ours = path == "/transactional" || path == "/keyed";
        let missed = if is_ours && MAX_P99 < ratio { " (missed)" } else { "" };
        let target = if is_ours { format!("{MAX_P99:.2}") } else { String::new() };
        println!("| {what} | {middle:.2} ms | {p99:.2} ms | {ratio:.2}{missed} | {target} |");
    }
    println!();
}
