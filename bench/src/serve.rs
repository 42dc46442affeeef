//! Accepting a message over HTTP: by `ichido serve`, and by a handler written by hand, in one run.
//!
//! The handler parses the JSON and does one INSERT. Ours also checks the key, detects duplicates, stores the digest and
//! makes the message claimable. Each is its own process; the load comes from this one. The queue is paused, so only
//! accepting is measured.

pub(crate) mod by_hand;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ichido_store::Store;
use ichido_store::message::QueueName;
use ichido_store::testing::postgres::Cluster;
use ichido_store::testing::sqlite::{SqliteTestFile, fresh_file};
use uuid::Uuid;

use crate::floor::SERVER;
use crate::load::LoadTarget;
use crate::report::median;

const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(4);
/// The queue that `ichido serve` has without a configuration.
const QUEUE: &str = "demo";
const PATH: &str = "/v1/queues/demo/messages";
/// The target: how many times as fast as the handler written by hand.
const MIN_POSTGRES: f64 = 2.0;
const MIN_SQLITE: f64 = 4.0;
/// Padding of a message, so it has about 300 bytes.
const NOTE_BYTES: usize = 220;

pub(crate) async fn on_postgres() {
    let cluster = Cluster::start(&SERVER).expect("a PostgreSQL server");
    let (ours, by_hand) =
        (cluster.database().await.expect("a database"), cluster.database().await.expect("a database"));
    println!("PostgreSQL");
    measure(&ours.url, &by_hand.url, MIN_POSTGRES).await;
}

pub(crate) async fn on_sqlite() {
    let (ours, by_hand): (SqliteTestFile, SqliteTestFile) = (fresh_file(), fresh_file());
    println!("SQLite");
    measure(&ours.url, &by_hand.url, MIN_SQLITE).await;
}

async fn measure(ours: &str, by_hand: &str, least: f64) {
    let store = Store::open(ours, 2).await.expect("the store opens");
    let queue = QueueName::parse(QUEUE).expect("a name");
    store.queues().pause(&queue, true, Some("bench")).await.expect("paused");
    drop(store);
    let folder = fresh_file();
    let folder = folder.path().parent().expect("a folder").to_path_buf();
    let ours = ServerProcess::start(
        Command::new(ichido()).args(["serve", "--listen", "127.0.0.1:0", "--store", ours]),
        &folder,
    );
    let this = std::env::current_exe().expect("this program");
    let by_hand = ServerProcess::start(Command::new(this).args(["serve-by-hand", by_hand]), &folder);
    let (ours, by_hand) = (target(ours.address, PATH), target(by_hand.address, "/messages"));
    let (mut of_ours, mut of_hand) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_hand.push(by_hand.saturate(TIME).await);
        of_ours.push(ours.saturate(TIME).await);
    }
    let (of_ours, of_hand) = (median(of_ours), median(of_hand));
    let ratio = of_ours / of_hand;
    let missed = if ratio < least { " (missed)" } else { "" };
    println!("| accepting, 64 connections | requests/s | to by hand | target |\n|---|---:|---:|---:|");
    println!("| by hand: parse, one INSERT | {of_hand:.0} | 1.00 |  |");
    println!("| `ichido serve` | {of_ours:.0} | {ratio:.2}{missed} | {least:.2} |\n");
}

fn target(address: SocketAddr, path: &'static str) -> LoadTarget {
    let note = "n".repeat(NOTE_BYTES);
    LoadTarget {
        address,
        path,
        key: Arc::new(|_| Uuid::now_v7().to_string()),
        body: Arc::new(move |number| {
            format!(
                r#"{{"symbol":"ACME","intent":"buy","qty":"{number}","limit_price":"12.5","note":"{note}"}}"#
            )
        }),
        numbers: usize::MAX,
        replays: false,
    }
}

/// The binary, built beside this program.
pub(crate) fn ichido() -> PathBuf {
    std::env::current_exe().expect("this program").with_file_name("ichido")
}

/// A server process that is killed when this is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl ServerProcess {
    pub(crate) fn start(command: &mut Command, folder: &Path) -> Self {
        let command = command.current_dir(folder).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a server");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("serving on http://")?;
            rest.split([' ', '/', ',']).next()?.parse().ok()
        });
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address: address.expect("it prints its address") }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}
