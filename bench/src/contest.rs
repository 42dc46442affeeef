//! The contest: every contestant does the same parts on the same server, in turn, several rounds.
//!
//! Guarantee: contestants are interleaved, so a machine that slows down slows all of them; each part runs in its own
//! process; the server is durable; a contestant that fails a part gets no number for it, and the others go on.

mod chart;
mod contestant;
mod counters;
pub(crate) mod endpoint;
pub(crate) mod floor;
mod growth;
pub(crate) mod ours;
mod process;
pub(crate) mod protocol;
mod results;
mod sample;
mod table;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ichido_store::testing::postgres::Cluster;
use ichido_store::testing::sqlite::SqliteTestFile;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor as _, PgPool, Row as _};

use self::contestant::{CONTESTANTS, Contestant, root};
use self::counters::DatabaseProbe;
use self::process::Contender;
use self::protocol::{Part, Task};
use self::results::{Machine, Measurement, Results};
use self::sample::Sample;
use crate::floor::{self as least_sql};

/// The server's settings: enough memory for all of it, and no checkpoint within a turn.
pub(crate) const SERVER: [(&str, &str); 5] = [
    ("shared_buffers", "1GB"),
    ("max_wal_size", "4GB"),
    ("min_wal_size", "2GB"),
    ("checkpoint_timeout", "30min"),
    ("max_connections", "300"),
];
/// Settings without which an acknowledged write may be lost.
const DURABLE: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];
/// The bytes of a payload.
const BYTES: usize = 200;
/// Offered messages per second: an idle queue, then the three loads.
pub(crate) const RATES: [f64; 4] = [20.0, 100.0, 1_000.0, 5_000.0];
/// The longest time of a part.
const LIMIT: Duration = Duration::from_mins(3);
/// The longest time of a pickup, which offers messages for seconds. A contestant that takes longer did not keep up.
const PICKUP_LIMIT: Duration = Duration::from_mins(1);

/// How much is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    rounds: usize,
    /// The maximum number of messages that a contestant drains.
    max_messages: usize,
    /// Messages enqueued one by one.
    singly: usize,
    /// Seconds of each rate.
    seconds: f64,
    is_quick: bool,
}

impl Size {
    pub(crate) const FULL: Self =
        Self { rounds: 3, max_messages: 100_000, singly: 3_000, seconds: 5.0, is_quick: false };
    pub(crate) const QUICK: Self =
        Self { rounds: 1, max_messages: 2_000, singly: 200, seconds: 1.0, is_quick: true };
}

/// Runs everything, prints the table, and writes the results; those of a quick run only below `target`.
pub(crate) async fn run(size: Size) {
    let folder = if size.is_quick { root().join("target/bench") } else { root().join("bench") };
    fs::create_dir_all(root().join("target/bench")).expect("a folder");
    let cluster = Cluster::start(&SERVER).expect("a PostgreSQL server");
    let pool = pool(&cluster.url("postgres")).await;
    let machine = Machine::read(&pool).await;
    warm_up(&cluster).await;
    let mut results = Results::new(machine, size.rounds, size.is_quick);
    for round in 1..=size.rounds {
        for contestant in &CONTESTANTS {
            eprintln!("round {round} of {}: {}", size.rounds, contestant.name);
            turn(&cluster, contestant, size, &mut results).await;
        }
        endpoint::turn(&cluster, size.seconds, &mut results).await;
        results.write(&folder);
    }
    growth::run(&cluster, size.max_messages, &mut results).await;
    results.write(&folder);
    println!("{}", table::all(Some(&results)));
    if size.is_quick {
        println!("Written to target/bench. A quick run says that everything works, not how fast it is.");
    } else {
        render(Some(&results));
    }
}

/// Renders the tables and charts from `bench/results.json`.
pub(crate) fn report() {
    render(Results::read(&root().join("bench")).as_ref());
}

fn render(results: Option<&Results>) {
    let readme = root().join("bench/README.md");
    let text = fs::read_to_string(&readme).expect("bench/README.md");
    fs::write(&readme, table::between_marks(&text, &table::all(results))).expect("written");
    if let Some(results) = results {
        chart::write(results, &root().join("bench/charts"));
    }
}

/// All parts of one contestant. The pickups get their own database, because single enqueues leave messages behind.
async fn turn(cluster: &Cluster, contestant: &Contestant, size: Size, results: &mut Results) {
    let messages = contestant.messages.min(size.max_messages);
    let plan = [
        vec![
            (Part::EnqueueBulk, 0.0, messages),
            (Part::Drain, 0.0, messages),
            (Part::EnqueueOne, 0.0, size.singly),
        ],
        RATES.map(|rate| (Part::Pickup, rate, whole(rate * size.seconds))).to_vec(),
    ];
    for parts in plan {
        let database = Fresh::postgres(cluster).await;
        for (part, rate, count) in parts {
            if !contestant.does(part) {
                continue;
            }
            let task = Task { part, url: database.url(), count, bytes: BYTES, rate, workers: 1 };
            let sample = measure(contestant, &task, database.probe()).await;
            results.add(Measurement::of(contestant.name, &task), sample);
            // All start a drain with statistics and without dead rows.
            database.vacuum().await;
        }
        database.remove(cluster).await;
    }
}

/// A database that nothing else uses.
enum Fresh {
    Postgres { url: String, probe: DatabaseProbe },
    Sqlite(SqliteTestFile),
}

impl Fresh {
    /// Creates a database on a durable server, right after a checkpoint.
    async fn postgres(cluster: &Cluster) -> Self {
        let url = cluster.database().await.expect("a database").url.clone();
        let pool = pool(&url).await;
        assert_durable(&pool).await;
        pool.execute("CHECKPOINT").await.expect("a checkpoint");
        Self::Postgres { url, probe: DatabaseProbe::new(pool, cluster.folder()) }
    }

    fn url(&self) -> String {
        match self {
            Self::Postgres { url, .. } => url.clone(),
            Self::Sqlite(file) => file.url.clone(),
        }
    }

    fn probe(&self) -> Option<&DatabaseProbe> {
        match self {
            Self::Postgres { probe, .. } => Some(probe),
            Self::Sqlite(_) => None,
        }
    }

    async fn vacuum(&self) {
        if let Some(probe) = self.probe() {
            probe.pool.execute("VACUUM ANALYZE").await.expect("vacuumed");
        }
    }

    /// Drops it, so its autovacuum does not disturb the next contestant.
    async fn remove(self, cluster: &Cluster) {
        if let Self::Postgres { url, probe } = self {
            probe.pool.close().await;
            let name = url.rsplit('/').next().and_then(|end| end.split('?').next()).expect("a name");
            let drop = format!("DROP DATABASE {name} WITH (FORCE)");
            let pool = pool(&cluster.url("postgres")).await;
            sqlx::query(AssertSqlSafe(drop)).execute(&pool).await.expect("dropped");
        }
    }
}

/// Runs one part; a failure is printed with the end of the contestant's errors.
async fn measure(contestant: &Contestant, task: &Task, probe: Option<&DatabaseProbe>) -> Option<Sample> {
    let errors: PathBuf =
        root().join("target/bench").join(format!("{}.log", contestant.name.replace(' ', "-")));
    let limit = if task.part == Part::Pickup { PICKUP_LIMIT } else { LIMIT };
    let outcome = match Contender::start(Contestant::command_of(contestant.program), task, &errors) {
        Ok(mut contender) => contender.run(probe, limit).await,
        Err(error) => Err(error),
    };
    outcome
        .inspect_err(|error| {
            let log = fs::read_to_string(&errors).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(8).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            eprintln!("{}, {:?} {}: {error}\n{}", contestant.name, task.part, task.rate, tail.join("\n"));
        })
        .ok()
}

/// Panics unless a commit is on the disk when it is acknowledged.
async fn assert_durable(pool: &PgPool) {
    for name in DURABLE {
        let row = sqlx::query("SELECT current_setting($1) AS value").bind(name).fetch_one(pool).await;
        let value: String = row.expect("a setting").get("value");
        assert_eq!(value, "on", "{name} must be on, or the numbers mean nothing");
    }
}

/// The first writes create log segments, which is slower than recycling them.
async fn warm_up(cluster: &Cluster) {
    let database = cluster.database().await.expect("a database");
    let pool = pool(&database.url).await;
    least_sql::tables(&pool).await;
    least_sql::enqueue_bulk(&pool, 100).await;
}

async fn pool(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(2).connect(url).await.expect("connected")
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few thousand messages, never a negative number"
)]
fn whole(count: f64) -> usize {
    count.round() as usize
}
