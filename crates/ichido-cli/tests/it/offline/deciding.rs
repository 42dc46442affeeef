//! A person inspects entries and decides.

use sqlx::{ConnectOptions as _, Connection as _};

use super::queueing::{lines, offline, queue_to};
use crate::folder::{self, TempFolder};
use crate::send::program::run;
use crate::send::server::{FakeReply, FakeServer};

/// Moves the stored times back, as if hours had passed.
async fn age_by_hours(folder: &TempFolder, hours: i64) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join("orders.queue"));
    let mut connection = options.connect().await.unwrap();
    let micros = hours * 3_600 * 1_000_000;
    sqlx::query("UPDATE watch SET last_us = last_us - ?1")
        .bind(micros)
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_entry_shows_reason_and_retries_with_same_key() {
    let folder = folder::fresh();
    let server = FakeServer::start(|nth, request| {
        if request.key() == "k1" && nth < 1 {
            FakeReply::Refuse(422, "schema_mismatch")
        } else {
            FakeReply::Accept
        }
    })
    .await;
    let sent = run(queue_to(&server, &folder, &["--ndjson", "-"]), &lines(1..=2));
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(sent.err.contains("run `ichido offline list orders.queue` to see why"), "{sent:?}");
    let listed = offline(&folder, &["list", "orders.queue"]);
    let row: Vec<&str> = listed.lines()[1].split_whitespace().collect();
    assert_eq!((listed.lines().len(), row[0], row[1]), (2, "1", "failed"), "{listed:?}");
    for part in ["k1", "not done", "schema_mismatch: the server returned 422: words of the server", "\\u{1b}"]
    {
        assert!(listed.out.contains(part), "no {part} in {listed:?}");
    }
    // A run without messages reports that there are marked entries.
    assert_eq!(run(queue_to(&server, &folder, &[]), "").code, Some(1));
    let released = offline(&folder, &["release", "orders.queue", "1"]);
    assert_eq!(released.code, Some(1), "{released:?}");
    assert!(released.lines()[0].contains("only a held entry can be released"), "{released:?}");
    let again = offline(&folder, &["retry", "orders.queue", "--all", "--json"]);
    assert_eq!(
        (again.code, again.out.as_str()),
        (Some(0), "{\"decided\":true,\"entry\":1,\"result\":\"waiting for a retry\"}\n")
    );
    let sent = run(queue_to(&server, &folder, &[]), "");
    assert_eq!((sent.code, sent.lines()), (Some(0), vec!["new id-of-2 entry 1"]), "{sent:?}");
    let attempts: Vec<_> = server
        .seen()
        .iter()
        .filter(|request| request.key() == "k1")
        .map(|request| request.field("ichido-attempt").unwrap().to_owned())
        .collect();
    assert_eq!(attempts, ["1; manual", "2; manual"]);
    assert_eq!(offline(&folder, &["list", "orders.queue"]).out, "no matching entries\n");
}

/// An entry that was sent longer ago than the server keeps keys is held.
// Spec: A13.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_entry_is_held_until_released() {
    let folder = folder::fresh();
    let server =
        FakeServer::start(|nth, _| if nth == 0 { FakeReply::Silence } else { FakeReply::Accept }).await;
    folder.write("lines", &lines(1..=1));
    let mut killed = queue_to(&server, &folder, &["--ndjson", "lines"]).spawn().unwrap();
    server.until_seen("k1").await;
    killed.kill().unwrap();
    killed.wait().unwrap();
    age_by_hours(&folder, 30).await;
    let held = run(queue_to(&server, &folder, &["--keeps-keys-for", "24h"]), "");
    assert_eq!(held.code, Some(1), "{held:?}");
    assert!(held.lines()[0].starts_with("held entry 1: keys_forgotten: it was sent before"), "{held:?}");
    assert_eq!(server.seen().len(), 1, "it is not sent");
    // The same line does not send it either.
    let same = run(queue_to(&server, &folder, &["--ndjson", "lines"]), "");
    assert_eq!((same.code, server.seen().len()), (Some(1), 1), "{same:?}");
    assert!(same.lines()[0].starts_with("held line 1: keys_forgotten"), "{same:?}");
    assert_eq!(
        offline(&folder, &["release", "orders.queue", "1"]).out,
        "1: released, waiting to be sent again\n"
    );
    let sent = run(queue_to(&server, &folder, &["--keeps-keys-for", "24h"]), "");
    assert_eq!((sent.code, server.message("k1").unwrap().1), (Some(0), 1), "{sent:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discarded_entry_is_not_sent_and_missing_entry_is_reported() {
    let folder = folder::fresh();
    let server = FakeServer::start(|_, _| FakeReply::Refuse(422, "schema_mismatch")).await;
    run(queue_to(&server, &folder, &["--ndjson", "-"]), &lines(1..=1));
    let discarded = offline(&folder, &["discard", "orders.queue", "1", "9"]);
    assert_eq!(discarded.code, Some(1), "{discarded:?}");
    assert_eq!(discarded.lines()[0], "1: discarded");
    assert!(discarded.lines()[1].starts_with("9: refused: entry 9 does not exist"), "{discarded:?}");
    let missing = offline(&folder, &["list", "missing.queue"]);
    assert_eq!((missing.code, folder.path().join("missing.queue").exists()), (Some(2), false), "{missing:?}");
}
