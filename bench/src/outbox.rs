//! The outbox: enqueued and drained by one worker in one process, beside the floors and a peer, in one run on one
//! server.
//!
//! Each contender does each part in its own process, so its memory is measured alone. A part prints a name and a number
//! per line.

pub(crate) mod part;
mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ichido_store::testing::postgres::Cluster;
use ichido_store::testing::sqlite::fresh_file;
use sqlx::postgres::PgPoolOptions;

use crate::floor::{self, SERVER};
use crate::floor_sqlite;
use crate::report::median;
use table::{MetricUnit, Row};

const ROUNDS: usize = 3;
/// Messages that are enqueued together and drained.
const DRAIN: usize = 100_000;
/// Messages that one caller enqueues, one after another.
const SINGLY: usize = 6_000;
/// Messages into an idle queue.
const IDLE: usize = 300;
/// How long a floor of single calls runs.
const SECONDS: u32 = 3;
const PEER: &str = "graphile_worker";
/// Maximum resident memory while draining, in megabytes.
const MAX_RESIDENT: f64 = 60.0;

/// A contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Contender {
    Ours,
    Peer,
}

/// The measurements by name, from all rounds.
#[derive(Default)]
struct Measured(HashMap<(Contender, String), Vec<f64>>);

impl Contender {
    fn command(self) -> Command {
        match self {
            Self::Ours => {
                let mut command = Command::new(std::env::current_exe().expect("this program"));
                command.arg("outbox-part");
                command
            }
            Self::Peer => Command::new(peer()),
        }
    }

    /// Runs a part in its own process and returns what it printed.
    fn run(self, part: &str, url: &str, count: usize) -> String {
        let output = self.command().args([part, url, &count.to_string()]).output().expect("a process");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self:?} failed at {part}: {stderr}");
        String::from_utf8(output.stdout).expect("text")
    }
}

impl Measured {
    fn add(&mut self, contender: Contender, part: &str, url: &str, count: usize) {
        for line in contender.run(part, url, count).lines() {
            let (name, number) = line.split_once(' ').expect("a name and a number");
            let number = number.parse().expect("a number");
            self.0.entry((contender, format!("{part} {name}"))).or_default().push(number);
        }
    }

    fn median(&self, contender: Contender, name: &str) -> Option<f64> {
        self.0.get(&(contender, name.to_owned())).map(|numbers| median(numbers.clone()))
    }

    fn row(&self, work: &str, name: &str, unit: MetricUnit, target: f64) -> Row {
        let ours = self.median(Contender::Ours, name).expect("measured");
        Row {
            work: work.to_owned(),
            ours,
            floor: None,
            peer: self.median(Contender::Peer, name),
            unit,
            target,
        }
    }

    /// The rows that both databases have.
    fn rows(&self, floors: [Vec<f64>; 3]) -> Vec<Row> {
        let [drain, singly, bulk] = floors.map(|rates| Some(median(rates)));
        let per_second = MetricUnit::PerSecond;
        vec![
            Row { floor: drain, ..self.row("drain 100,000", "drain rate", per_second, 1.3) },
            Row { floor: singly, ..self.row("enqueue singly, one caller", "singly rate", per_second, 1.0) },
            Row { floor: bulk, ..self.row("enqueue in bulk, 1,000 a call", "bulk rate", per_second, 1.0) },
            self.row("from enqueue to handler, idle queue, median", "idle p50", MetricUnit::Seconds, 1.0),
            self.row("from enqueue to handler, idle queue, p99", "idle p99", MetricUnit::Seconds, 1.0),
            self.row("peak memory while draining", "drain resident", MetricUnit::Kilobytes, MAX_RESIDENT),
        ]
    }
}

fn peer() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/graphile/target/release/graphile-peer")
}

pub(crate) async fn on_postgres() {
    let cluster = Cluster::start(&SERVER).expect("a PostgreSQL server");
    let own = cluster.database().await.expect("a database");
    let pool = PgPoolOptions::new().test_before_acquire(false).connect(&own.url).await.expect("connections");
    floor::tables(&pool).await;
    // The first run writes fresh WAL segments, which is slower than recycling them.
    floor::enqueue_bulk(&pool, 100).await;
    let mut measured = Measured::default();
    let (mut drain, mut singly, mut bulk) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for contender in [Contender::Ours, Contender::Peer] {
            let database = cluster.database().await.expect("a database");
            measured.add(contender, "bulk", &database.url, DRAIN);
            measured.add(contender, "drain", &database.url, DRAIN);
            measured.add(contender, "singly", &database.url, SINGLY);
        }
        drain.push(floor::drain_plain(&pool, i64::try_from(DRAIN).expect("small")).await);
        singly.push(floor::pgbench(&own.url, "enqueue_one.sql", 1, SECONDS));
        bulk.push(floor::enqueue_bulk(&pool, 20).await);
    }
    for contender in [Contender::Ours, Contender::Peer] {
        let database = cluster.database().await.expect("a database");
        measured.add(contender, "idle", &database.url, IDLE);
    }
    println!("On PostgreSQL ({SERVER:?}, fsync and synchronous_commit on):\n");
    println!("- ours: {}", part::settings());
    println!("- {PEER}: {}", Contender::Peer.run("settings", &own.url, 0));
    table::print(&measured.rows([drain, singly, bulk]), Some(PEER));
}

pub(crate) async fn on_sqlite() {
    let mut measured = Measured::default();
    let (mut drain, mut singly, mut bulk) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let file = fresh_file();
        measured.add(Contender::Ours, "bulk", &file.url, DRAIN);
        measured.add(Contender::Ours, "drain", &file.url, DRAIN);
        measured.add(Contender::Ours, "singly", &file.url, SINGLY);
        drain.push(floor_sqlite::drain(DRAIN, 1_000).await);
        singly.push(floor_sqlite::enqueue(SECONDS, 1).await);
        bulk.push(floor_sqlite::enqueue(SECONDS, 1_000).await);
    }
    measured.add(Contender::Ours, "idle", &fresh_file().url, IDLE);
    println!("On SQLite (WAL, synchronous FULL):\n");
    println!("- ours: {}\n", part::settings());
    table::print(&measured.rows([drain, singly, bulk]), None);
}
