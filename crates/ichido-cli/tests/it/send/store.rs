//! On the store, with both databases.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::facts::QueueFacts;
use ichido_store::message::{MessageFilter, MessageRow, QueueName};
use ichido_store::testing::{postgres, sqlite};
use uuid::Uuid;

use super::program::{SendOutput, run, send};
use crate::folder;

/// What a command says that knows the store alone.
const UNCHECKED: &str = "ichido: no configuration was found, so no schema is checked\n";

async fn rows(url: &str) -> Vec<MessageRow> {
    let store = Store::open(url, 2).await.unwrap();
    let mut rows = store.messages().list(&MessageFilter::default(), 100).await.unwrap();
    rows.sort_by(|one, other| one.key.as_str().cmp(other.key.as_str()));
    rows
}

fn sent(url: &str, flags: &[&str], input: &str) -> SendOutput {
    let folder = folder::fresh();
    let mut command = send(folder.path());
    command.args(["--store", url]).args(flags);
    run(command, input)
}

async fn known_by_their_meaning(url: &str) {
    let first = sent(url, &["--key", "k1"], r#"{"qty": 1.0, "a":2}"#);
    assert_eq!(first.code, Some(0), "{first:?}");
    let again = sent(url, &["--key", "k1"], r#"{"a":2,"qty":1}"#);
    assert_eq!(again.out, first.out.replace("new", "same"), "C9: they mean the same");
    let argument = sent(url, &[r#"{"a":2,"qty":1}"#, "--key", "k1"], "");
    assert_eq!(argument.out, again.out, "the body may be an argument: {argument:?}");
    let other = sent(url, &["--key", "k1"], r#"{"a":2,"qty":2}"#);
    assert_eq!(other.code, Some(4), "{other:?}");
    assert!(other.err.contains("key_conflict: the key was used for another body"), "{other:?}");
    let doubtful = sent(url, &["--key", "k2"], r#"{"a":1,"a":2}"#);
    assert_eq!(doubtful.code, Some(1), "{doubtful:?}");
    assert!(doubtful.err.contains("body_invalid: the body is not valid JSON"), "{doubtful:?}");
    let text = sent(url, &["--key", "k3", "--content-type", "text/plain"], "no JSON");
    assert_eq!(text.code, Some(0), "{text:?}");
    let rows = rows(url).await;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].identity, "local", "as a server has it");
}

async fn many(url: &str) {
    let line = |number| format!("{{\"key\":\"k{number:02}\",\"body\":{{\"n\":{number}}}}}\n");
    let lines = (1..=60).map(line).collect::<Vec<_>>().concat();
    let first = sent(url, &["--ndjson", "-"], &lines);
    assert_eq!(
        (first.code, &first.err),
        (Some(0), &format!("{UNCHECKED}ichido: 60 new, 0 same, 0 refused\n")),
        "{first:?}"
    );
    let changed = lines.replacen("{\"n\":7}", "{\"n\":8}", 1);
    let again = sent(url, &["--ndjson", "-"], &changed);
    assert_eq!(
        (again.code, &again.err),
        (Some(1), &format!("{UNCHECKED}ichido: 0 new, 59 same, 1 refused\n")),
        "{again:?}"
    );
    assert!(again.lines()[6].starts_with("refused line 7: key_conflict: "), "{again:?}");
    let ids = |ended: &SendOutput, nth: usize| ended.lines()[nth].split(' ').nth(1).unwrap().to_owned();
    assert_eq!(ids(&first, 30), ids(&again, 30));
    assert_eq!(rows(url).await.len(), 60);
}

async fn scheduled(url: &str) {
    let one = sent(url, &["--key", "a", "--priority", "0", "--delay", "2h"], "{}");
    assert_eq!(one.code, Some(0), "{one:?}");
    let lines = r#"
        {"key":"b","body":1}
        {"key":"c","body":1,"priority":9,"run_at":"2020-01-01T00:00:00Z"}
        {"key":"d","body":1,"delay":"3h"}
        {"key":"e","body":1,"delay":"soon"}"#;
    let many = sent(url, &["--ndjson", "-", "--priority", "1", "--delay", "1h"], lines);
    assert_eq!(many.code, Some(1), "{many:?}");
    assert!(many.lines()[3].starts_with("refused line 5: line_invalid: delay is not a duration"), "{many:?}");
    let whole =
        sent(url, &["--ndjson", "-", "--key-from", "/id", "--delay", "1h"], r#"{"id":"f","delay":"x"}"#);
    assert_eq!(whole.code, Some(0), "the line is the body: {whole:?}");
    let hours = |row: &MessageRow| row.next_attempt.map(|due| due.since(row.created_at).as_secs() / 3_600);
    let rows = rows(url).await;
    let found: Vec<_> = rows.iter().map(|row| (row.key.as_str(), row.priority, hours(row))).collect();
    // A message that is due at once shows when it was enqueued.
    let expected = [("a", 0, 2), ("b", 1, 1), ("c", 9, 0), ("d", 1, 3), ("f", 2, 1)]
        .map(|(key, priority, due)| (key, priority, Some(due)));
    assert_eq!(found, expected);
    let again = sent(url, &["--key", "a"], "{}");
    assert_eq!(again.out, one.out.replace("new", "same"), "the first schedule applies");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_flags_and_lines_carry_the_schedule_on_postgres() {
    scheduled(&postgres::fresh_database().await.url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn send_flags_and_lines_carry_the_schedule_on_sqlite() {
    scheduled(&sqlite::fresh_file().url).await;
}

async fn attempted_as_published(url: &str) {
    let attempts = async || rows(url).await.iter().map(|row| row.max_attempts).collect::<Vec<_>>();
    sent(url, &["--key", "k1"], "{}");
    assert_eq!(attempts().await, [9], "no worker has published the queue");
    let store = Store::open(url, 2).await.unwrap();
    let (node, queue) = (Uuid::from_u128(1), QueueName::parse("orders").unwrap());
    let facts = QueueFacts {
        guarantee: Guarantee::None,
        requeue: false,
        max_attempts: NonZeroU32::MIN,
        retry_horizon: Duration::ZERO,
    };
    store.queues().key_kind(&queue, "derived").await.unwrap();
    store.nodes().heartbeat(node, "worker").await.unwrap();
    store.facts().publish(node, &[(queue, facts)]).await.unwrap();
    sent(url, &["--key", "k2"], "{}");
    assert_eq!(attempts().await, [9, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn max_attempts_follows_published_settings_on_postgres() {
    attempted_as_published(&postgres::fresh_database().await.url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn max_attempts_follows_published_settings_on_sqlite() {
    attempted_as_published(&sqlite::fresh_file().url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equivalent_json_bodies_are_the_same_message_on_postgres() {
    known_by_their_meaning(&postgres::fresh_database().await.url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equivalent_json_bodies_are_the_same_message_on_sqlite() {
    known_by_their_meaning(&sqlite::fresh_file().url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_lines_are_enqueued_once_on_postgres() {
    many(&postgres::fresh_database().await.url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_lines_are_enqueued_once_on_sqlite() {
    many(&sqlite::fresh_file().url).await;
}

#[test]
fn unreachable_store_is_code_3() {
    // Nobody listens on this port, which is reserved for the discard service.
    let ended = sent("postgres://nobody@127.0.0.1:9/nothing", &["--key", "k1"], "{}");
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended.err.contains("cannot open the store") && ended.err.contains("nothing was enqueued"),
        "{ended:?}"
    );
}
