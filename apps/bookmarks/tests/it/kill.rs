//! Killed at any moment, the service loses no acknowledged save and makes no bookmark twice.
//!
//! The real program runs on a real database, is killed with SIGKILL over and over, and is started again at the same
//! address. Meanwhile clients save through their offline queues: new links, the same link again under its own key, and
//! the same link under another key. A save is acknowledged when it is in its client's queue. Clients die too, in the
//! middle of a send. At the end each URL is one bookmark with one job, every acknowledged save was sent, and every
//! response about a URL named this bookmark.
// SPEC A3, A7, A13.

mod client;
mod client_log;
mod import;
pub(crate) mod service;

use std::sync::Arc;
use std::time::Duration;

use ichido_client::Token;
use ichido_store::testing::{postgres, sqlite};
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use tokio::process::Command;

use client::Clients;
use client_log::{ClientLog, FinalState};
use service::{KilledService, PROGRAM};

/// Maximum number of responses between two kills; every smaller number is equally likely, including none.
const MAX_ANSWERS_BETWEEN: u32 = 24;
/// Maximum number of attempts that find the service down before it is started again; likewise.
const MAX_OFFLINE_BETWEEN: u32 = 6;
/// Time limit of a case per kill, and its minimum, beside compilers on a small machine.
const MAX_KILL: Duration = Duration::from_secs(10);
const MIN_CASE_TIME: Duration = Duration::from_mins(8);

/// How often the service is killed in CI.
const KILLS: u32 = 10;

fn kills() -> u32 {
    // `cargo xtask soak` sets more.
    std::env::var("BOOKMARKS_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS)
}

fn is_soak() -> bool {
    kills() > KILLS
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_each_save_is_one_bookmark_on_sqlite() {
    let file = sqlite::fresh_file();
    let log = killed_over_and_over(&file.url).await;
    let mut connection = SqliteConnection::connect(&file.url).await.unwrap();
    let jobs = sqlx::query_scalar("SELECT id FROM ichido_messages WHERE queue = 'extraction'");
    let answers = sqlx::query_as(
        "SELECT key, body FROM ichido_ledger WHERE operation = 'bookmarks.create' AND state = 'applied'",
    );
    let state = FinalState {
        bookmarks: sqlx::query_as(BOOKMARKS).fetch_all(&mut connection).await.unwrap(),
        jobs: jobs.fetch_all(&mut connection).await.unwrap(),
        answers: answers.fetch_all(&mut connection).await.unwrap(),
    };
    log.judge(state);
    log.check_that_kills_hit(kills());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_each_save_is_one_bookmark_on_postgres() {
    let database = postgres::durable_database().await;
    let log = killed_over_and_over(&database.url).await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let jobs = sqlx::query_scalar("SELECT id FROM ichido.messages WHERE queue = 'extraction'");
    let answers = sqlx::query_as(
        "SELECT key, body FROM ichido.ledger WHERE operation = 'bookmarks.create' AND state = 'applied'",
    );
    let state = FinalState {
        bookmarks: sqlx::query_as(BOOKMARKS).fetch_all(&mut connection).await.unwrap(),
        jobs: jobs.fetch_all(&mut connection).await.unwrap(),
        answers: answers.fetch_all(&mut connection).await.unwrap(),
    };
    log.judge(state);
    log.check_that_kills_hit(kills());
}

const BOOKMARKS: &str = "SELECT url, id, job FROM bookmarks";

/// Saves while the service is killed, and then until every queue is empty. Returns the log of what was saved and
/// answered.
async fn killed_over_and_over(store: &str) -> Arc<ClientLog> {
    let within = MIN_CASE_TIME.max(MAX_KILL * kills());
    tokio::time::timeout(within, save_and_kill(store)).await.expect("the test finishes in time")
}

/// Adds a person and returns their token.
pub(crate) async fn add_person(store: &str, name: &str) -> String {
    let added = Command::new(PROGRAM).args(["person", "add", name, "--store", store]).output().await.unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    String::from_utf8(added.stdout).unwrap().trim().to_owned()
}

async fn save_and_kill(store: &str) -> Arc<ClientLog> {
    let token = Token::parse(&add_person(store, "ann").await).unwrap();
    let mut service = KilledService::start_at(store, "127.0.0.1:0".parse().unwrap()).await;
    let log = Arc::new(ClientLog::default());
    let clients = Clients::start(&log, &service.url(), &token);
    for _ in 0..kills() {
        log.more(|tally| tally.answers, fastrand::u32(..MAX_ANSWERS_BETWEEN)).await;
        let address = service.killed().await;
        log.note_away(true);
        log.more(|tally| tally.offline, fastrand::u32(..MAX_OFFLINE_BETWEEN)).await;
        log.note_away(false);
        service = KilledService::start_at(store, address).await;
        clients.notify_online();
    }
    clients.finish().await;
    service.killed().await;
    println!("{} kills; {}", kills(), log.summary());
    log
}
