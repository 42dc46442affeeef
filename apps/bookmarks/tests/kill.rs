//! Killed at any moment, the service loses no save that it acknowledged, and makes no bookmark twice.
//!
//! The real program runs on a real database and is killed with SIGKILL, over and over, while clients save: new links, the same link
//! again under its own key, and the same link under another key. Whoever got no answer asks again under the same key, as the client's rules have
//! it. At the end each URL is one bookmark, and whatever was ever answered about it was this one.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ichido_client::{Action, Client, ClientSettings, Last, Outcome, Token};
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Retry;
use ichido_store::testing::{postgres, sqlite};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bookmarks");
/// How many save at once.
const CLIENTS: usize = 12;
/// The most answers between two kills; fewer is as likely as any other number, none included.
const ANSWERS_BETWEEN_MAX: usize = 24;
/// How long a client that was cut off waits to hear where the service is now, before it asks where it was.
const MOVE_MAX: Duration = Duration::from_secs(2);
/// The longest that a case may take for each kill, and at least.
const KILL_MAX: Duration = Duration::from_secs(5);
const CASE_LEAST: Duration = Duration::from_mins(2);

fn kills() -> u32 {
    // `cargo xtask soak` asks for more.
    std::env::var("BOOKMARKS_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_saved_is_there_once_however_often_it_is_killed_on_sqlite() {
    let file = sqlite::fresh_file();
    let rows = killed_over_and_over(&file.url).await;
    let mut connection = SqliteConnection::connect(&file.url).await.unwrap();
    let found = sqlx::query_as(ROWS).fetch_all(&mut connection).await.unwrap();
    let messages = sqlx::query_scalar("SELECT count(*) FROM ichido_messages WHERE queue = 'extraction'");
    judge(&rows, found, messages.fetch_one(&mut connection).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_saved_is_there_once_however_often_it_is_killed_on_postgres() {
    let database = postgres::fresh_database().await;
    let rows = killed_over_and_over(&database.url).await;
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let found = sqlx::query_as(ROWS).fetch_all(&mut connection).await.unwrap();
    let messages = sqlx::query_scalar("SELECT count(*) FROM ichido.messages WHERE queue = 'extraction'");
    judge(&rows, found, messages.fetch_one(&mut connection).await.unwrap());
}

const ROWS: &str = "SELECT url, id FROM bookmarks";

/// Whether each URL is one bookmark with one job, and everything that was answered was that one.
fn judge(answered: &BTreeMap<String, BTreeSet<String>>, found: Vec<(String, uuid::Uuid)>, jobs: i64) {
    let count = found.len();
    let rows: HashMap<String, String> = found.into_iter().map(|(url, id)| (url, id.to_string())).collect();
    assert_eq!(rows.len(), count, "a URL is there twice");
    assert_eq!(i64::try_from(count).unwrap(), jobs, "each bookmark has one job");
    assert_eq!(count, answered.len(), "each URL that anybody saved is there");
    for (url, ids) in answered {
        assert_eq!(ids.iter().collect::<Vec<_>>(), [&rows[url]], "{url} was answered as what it is");
    }
}

/// Saves while the service is killed, and then until everything is answered; tells what was answered, by URL.
async fn killed_over_and_over(store: &str) -> BTreeMap<String, BTreeSet<String>> {
    let within = CASE_LEAST.max(KILL_MAX * kills());
    tokio::time::timeout(within, save_and_kill(store)).await.expect("the case does not end")
}

async fn save_and_kill(store: &str) -> BTreeMap<String, BTreeSet<String>> {
    let added =
        Command::new(PROGRAM).args(["person", "add", "ann", "--store", store]).output().await.unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let token = Token::parse(String::from_utf8(added.stdout).unwrap().trim()).unwrap();
    let (at, mut service) = start(store).await;
    let place = watch::Sender::new(at);
    let saves = Arc::new(Saves::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| tokio::spawn(save(Arc::clone(&saves), place.subscribe(), token.clone())))
        .collect();
    for _ in 0..kills() {
        let enough = *saves.answers.borrow() + fastrand::usize(..ANSWERS_BETWEEN_MAX);
        saves.answers.subscribe().wait_for(|answers| enough <= *answers).await.unwrap();
        service.kill().await.unwrap();
        let (at, next) = start(store).await;
        service = next;
        place.send_replace(at);
    }
    saves.no_more.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    service.kill().await.unwrap();
    let answered = saves.answered.lock().unwrap().clone();
    println!("{} URLs, {} answers, {} kills", answered.len(), *saves.answers.borrow(), kills());
    answered
}

/// Starts the service; answers where it is once it says so.
async fn start(store: &str) -> (String, Child) {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", store]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut log = child.stderr.take().unwrap();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some(at) = line.strip_prefix("bookmarks: serving on ") {
            // Read on, or the service would wait for a reader.
            tokio::spawn(async move { tokio::io::copy(&mut log, &mut tokio::io::sink()).await });
            return (at.to_owned(), child);
        }
    }
    let mut why = String::new();
    log.read_to_string(&mut why).await.unwrap();
    panic!("the service did not start: {why}");
}

/// What was saved, and what was said about it.
#[derive(Default)]
struct Saves {
    /// The number of the next URL.
    next: AtomicUsize,
    /// Answers so far.
    answers: watch::Sender<usize>,
    /// Nothing new is to be begun.
    no_more: AtomicBool,
    /// Which bookmarks a URL was said to be.
    answered: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

/// A client: begins with something new or repeats something old, and asks until it is answered.
async fn save(saves: Arc<Saves>, mut place: watch::Receiver<String>, token: Token) {
    let mut client = client(&place.borrow_and_update().clone(), &token);
    while !saves.no_more.load(Ordering::SeqCst) {
        let number = if fastrand::usize(..3) == 0 {
            fastrand::usize(..saves.next.load(Ordering::SeqCst).max(1))
        } else {
            saves.next.fetch_add(1, Ordering::SeqCst)
        };
        // The private address is refused by the job at once, so that nothing is fetched. One of two keys for each URL.
        let url = format!("http://127.0.0.1/{number}");
        let key = format!("save-{number}-{}", fastrand::usize(..2));
        let body = json!({ "url": url, "created_from": "test" }).to_string();
        let key = IdempotencyKey::parse(&key).unwrap();
        let action = Action::new(http::Method::POST, "/v1/bookmarks", key, "application/json", body).unwrap();
        loop {
            match client.send(&action).await {
                Outcome::Done { answer, .. } => {
                    let bookmark: Value = serde_json::from_slice(&answer.body).unwrap();
                    let id = bookmark["id"].as_str().unwrap().to_owned();
                    saves.answered.lock().unwrap().entry(url).or_default().insert(id);
                    saves.answers.send_modify(|answers| *answers += 1);
                    break;
                }
                Outcome::Refused { answer, .. } => panic!("{:?}", answer.problem()),
                // The key is blocked by a process that died with it: the same again.
                Outcome::GaveUp { last: Last::Answer(_), .. } => (),
                // Killed: the same again, where the service is then.
                Outcome::GaveUp { last: Last::Fault { .. }, .. } => {
                    drop(tokio::time::timeout(MOVE_MAX, place.changed()).await);
                    client = self::client(&place.borrow_and_update().clone(), &token);
                }
            }
        }
    }
}

/// One try at a time: when to try again is the test's to say.
fn client(at: &str, token: &Token) -> Client {
    let retry = Retry { tries: NonZeroU32::MIN, ..Retry::CLIENT };
    ClientSettings { token: Some(token.clone()), retry, ..ClientSettings::new(at) }.resolve().unwrap()
}
