//! `ichido audit` as a process: seals, heads, and detected tampering.
// Spec: F5.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::Event;
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::message::{ClaimOptions, NewMessage, Note, QueueName, Settlement};
use ichido_store::testing::{postgres, sqlite};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqliteConnection};
use uuid::Uuid;

const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef\n";

/// Runs the binary to its end; returns exit code, standard output and standard error.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ichido"))
        .current_dir("/")
        .args(arguments)
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A key file for one test.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new(content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ichido-audit-{}.key", Uuid::now_v7()));
        std::fs::write(&path, content).expect("written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        // It may already be gone.
        drop(std::fs::remove_file(&self.0));
    }
}

/// Sends this many messages; returns their ids.
async fn sent(url: &str, count: usize) -> Vec<Uuid> {
    let store = Store::open(url, 2).await.expect("the store");
    let queue = QueueName::parse("orders").expect("a name");
    let terms = ClaimOptions {
        node: Uuid::nil(),
        lease: Duration::from_secs(30),
        start_marks: false,
        guarantee: Guarantee::Idempotent,
        max_time_in_flight: Duration::ZERO,
    };
    let mut ids = Vec::new();
    for _ in 0..count {
        let key = IdempotencyKey::parse(&Uuid::now_v7().to_string()).expect("a key");
        let message = NewMessage::new(queue.clone(), "alice", key, b"secret payload".to_vec());
        store.messages().enqueue(message).await.expect("put in");
        let work = store.claims().claim(&queue, NonZeroU32::MIN, terms).await.expect("claimed").remove(0);
        ids.push(work.id);
        let event = Event::Succeeded { fence: work.fence };
        let _ = store.claims().settle(Settlement::new(&work, event, Note::default())).await.expect("settled");
    }
    ids
}

/// Seals until nothing is left. Another test's transaction on the same server may block a seal for a moment.
fn seal_all(url: &str, key: &KeyFile) {
    loop {
        let (code, _, err) = run(&["audit", "seal", "--store", url, "--key-file", key.path()]);
        assert_eq!(code, Some(0), "{err}");
        let (_, out, _) =
            run(&["audit", "verify", "--store", url, "--key-file", key.path(), "--format", "json"]);
        if json(&out)["unsealed"] == 0 {
            return;
        }
    }
}

fn json(out: &str) -> Value {
    serde_json::from_str(out).expect("JSON")
}

async fn on_sqlite(url: &str, sql: String) {
    let mut connection = SqliteConnection::connect(url).await.expect("connected");
    connection.execute(AssertSqlSafe(sql)).await.expect("done");
}

#[tokio::test]
async fn tampering_is_reported_with_message_entry_seal_and_time() {
    let (file, key) = (sqlite::fresh_file(), KeyFile::new(KEY));
    let ids = sent(&file.url, 5).await;
    let (code, out, err) = run(&["audit", "seal", "--store", &file.url, "--key-file", key.path()]);
    assert_eq!((code, out.as_str()), (Some(0), "sealed 5 entries in 1 seals\n"), "{err}");
    let (_, head, _) = run(&["audit", "head", "--store", &file.url]);
    assert!(head.starts_with("ichido-audit-1:1:5:"), "{head}");
    let verify =
        ["audit", "verify", "--store", &file.url, "--key-file", key.path(), "--head", head.trim_end()];
    let (code, out, err) = run(&verify);
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(out, "intact: 5 entries in 1 seals, 0 of them deleted since\n");

    let hex = |id: Uuid| format!("x'{}'", id.simple());
    on_sqlite(&file.url, format!("UPDATE ichido_events SET actor = 'x' WHERE message_id = {}", hex(ids[0])))
        .await;
    on_sqlite(&file.url, format!("DELETE FROM ichido_events WHERE message_id = {}", hex(ids[1]))).await;
    on_sqlite(
        &file.url,
        format!(
            "INSERT INTO ichido_events SELECT message_id, fence, 1, claimed_at, at, from_state, to_state, kind, attempts, deaths, doubt_since, \
             in_flight_until, effect, code, status, result_digest, receipt, excerpt, node, actor, about, NULL, NULL, NULL, NULL FROM ichido_events WHERE message_id = {}; \
             DELETE FROM ichido_unsealed",
            hex(ids[2])
        ),
    )
    .await;
    on_sqlite(&file.url, format!("UPDATE ichido_messages SET request = x'00' WHERE id = {}", hex(ids[3])))
        .await;
    let (code, out, _) = run(&verify);
    assert_eq!(code, Some(1));
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with(&format!("changed: message {} entry ", ids[0])), "{out}");
    assert!(lines[0].contains(".0 in seal 1, of 20"), "{out}");
    assert!(lines[1].starts_with(&format!("removed: message {} entry ", ids[1])), "{out}");
    assert!(lines[2].starts_with(&format!("request_changed: message {} entry ", ids[3])), "{out}");
    assert!(lines[2].contains("differs from what was sealed"), "{out}");
    assert!(lines[3].starts_with(&format!("inserted: message {} entry ", ids[2])), "{out}");
    assert_eq!(lines[4], "TAMPERED WITH: 5 entries in 1 seals, 0 of them deleted since");
    assert!(!out.contains("secret") && !out.contains(KEY.trim_end()));

    let (code, out, _) = run(&[&verify[..], &["--format", "json"]].concat());
    assert_eq!(code, Some(1));
    let report = json(&out);
    assert_eq!((&report["whole"], &report["found"]), (&Value::Bool(false), &4.into()));
    let finding = &report["findings"][1];
    assert_eq!((finding["kind"].as_str(), finding["seal"].as_u64()), (Some("removed"), Some(1)));
    assert_eq!(finding["message"].as_str(), Some(ids[1].to_string().as_str()));
    assert!(finding["entry"]["fence"].is_u64() && finding["at"].is_string());
}

#[tokio::test]
async fn tampering_is_reported_on_postgres() {
    let (database, key) = (postgres::fresh_database().await, KeyFile::new(KEY));
    let ids = sent(&database.url, 3).await;
    seal_all(&database.url, &key);
    let verify = ["audit", "verify", "--store", &database.url, "--key-file", key.path()];
    let (code, out, err) = run(&verify);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("no head was given"), "{out}");
    let mut connection = PgConnection::connect(&database.url).await.expect("connected");
    let change = format!("UPDATE ichido.events SET to_state = 'dead' WHERE message_id = '{}'", ids[1]);
    connection.execute(AssertSqlSafe(change)).await.expect("changed");
    let (code, out, _) = run(&verify);
    assert_eq!(code, Some(1));
    assert!(out.starts_with(&format!("changed: message {}", ids[1])), "{out}");
    let change = format!("UPDATE ichido.messages SET request = '' WHERE id = '{}'", ids[2]);
    connection.execute(AssertSqlSafe(change)).await.expect("changed");
    let (code, out, _) = run(&verify);
    assert_eq!(code, Some(1));
    assert!(out.contains(&format!("request_changed: message {}", ids[2])), "{out}");
}

/// Attack M4: a backdated success for a message that was never claimed again, under a fence that was never issued.
#[tokio::test]
async fn forged_entry_is_reported_before_and_after_sealing() {
    let (file, key) = (sqlite::fresh_file(), KeyFile::new(KEY));
    let ids = sent(&file.url, 2).await;
    seal_all(&file.url, &key);
    on_sqlite(
        &file.url,
        format!(
            "INSERT INTO ichido_events (message_id, fence, step, claimed_at, at, from_state, to_state, kind, attempts, deaths, effect) \
             SELECT message_id, fence + 1000, 0, claimed_at, claimed_at, from_state, to_state, kind, attempts + 1, deaths, effect \
             FROM ichido_events WHERE message_id = x'{}'",
            ids[1].simple()
        ),
    )
    .await;
    let verify = ["audit", "verify", "--store", &file.url, "--key-file", key.path()];
    let (code, out, _) = run(&verify);
    assert_eq!(code, Some(1));
    assert!(out.starts_with(&format!("does_not_follow: message {} entry 1002.0, of 20", ids[1])), "{out}");
    assert!(out.contains(": its fence was never issued\nTAMPERED WITH: 2 entries"), "{out}");
    assert!(out.contains("1 entries are not sealed yet"), "{out}");

    let (code, out, _) = run(&["audit", "seal", "--store", &file.url, "--key-file", key.path()]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("1 of these entries are invalid and were sealed as such"), "{out}");
    let (code, out, _) = run(&verify);
    assert_eq!(code, Some(1));
    assert!(out.starts_with(&format!("does_not_follow: message {} entry 1002.0 in seal 2", ids[1])), "{out}");

    // A message whose row is gone is named without an entry.
    let store = Store::open(&file.url, 1).await.expect("the store");
    let key_of = IdempotencyKey::parse("waits").expect("a key");
    let message = NewMessage::new(QueueName::parse("orders").expect("a name"), "alice", key_of, Vec::new());
    store.messages().enqueue(message).await.expect("put in");
    on_sqlite(&file.url, "DELETE FROM ichido_ready".to_owned()).await;
    let (_, out, _) = run(&[&verify[..], &["--json"]].concat());
    let report = json(&out);
    let finding = &report["findings"][1];
    assert_eq!((finding["kind"].as_str(), &finding["entry"]), (Some("state_removed"), &Value::Null));
    assert!(finding["message"].is_string(), "{report}");
}

#[tokio::test]
async fn verify_lists_the_limits_of_its_proof() {
    let (file, key) = (sqlite::fresh_file(), KeyFile::new(KEY));
    sent(&file.url, 2).await;
    let (code, _, err) = run(&["audit", "head", "--store", &file.url]);
    assert_eq!(code, Some(1));
    assert!(err.contains("there are no seals yet"), "{err}");
    let (code, out, _) = run(&["audit", "verify", "--store", &file.url]);
    assert_eq!(code, Some(0));
    assert!(out.contains("there are no seals") && out.contains("2 entries are not sealed yet"), "{out}");

    let (_, out, _) = run(&["audit", "seal", "--store", &file.url]);
    assert!(out.contains("without a key"), "{out}");
    let (_, out, _) = run(&["audit", "verify", "--store", &file.url]);
    assert!(out.contains("made without a key") && out.contains("can recreate them"), "{out}");

    // A key that sealed nothing proves nothing, and is not reported as tampering.
    let (code, out, _) = run(&["audit", "verify", "--store", &file.url, "--key-file", key.path()]);
    assert_eq!(code, Some(1));
    assert!(out.contains("\nNOT SEALED WITH THIS KEY: 2 entries in 1 seals"), "{out}");
    assert!(out.contains("no seal was made with a key") && !out.contains("TAMPERED"), "{out}");

    // With a key from here on, and never without it again.
    sent(&file.url, 1).await;
    seal_all(&file.url, &key);
    let (code, _, err) = run(&["audit", "seal", "--store", &file.url]);
    assert_eq!(code, Some(1));
    assert!(err.contains("--key-file"), "{err}");
    let (code, out, _) = run(&["audit", "verify", "--store", &file.url]);
    assert_eq!(code, Some(0));
    assert!(out.contains("no key was given"), "{out}");
    let other = KeyFile::new("another key, which is long enough as well");
    let (code, out, _) = run(&["audit", "verify", "--store", &file.url, "--key-file", other.path()]);
    assert_eq!(code, Some(1));
    assert!(out.contains("this is a different key"), "{out}");
}

#[tokio::test]
async fn saved_head_reveals_truncated_seals() {
    let (file, key) = (sqlite::fresh_file(), KeyFile::new(KEY));
    sent(&file.url, 1).await;
    seal_all(&file.url, &key);
    sent(&file.url, 1).await;
    seal_all(&file.url, &key);
    let (_, head, _) = run(&["audit", "head", "--store", &file.url, "--format", "json"]);
    let head = json(&head);
    assert_eq!((head["seal"].as_u64(), head["entries"].as_u64()), (Some(2), Some(2)));
    on_sqlite(&file.url, "DELETE FROM ichido_seals WHERE number = 2".to_owned()).await;
    on_sqlite(&file.url, "INSERT OR IGNORE INTO ichido_unsealed SELECT message_id, fence, step FROM ichido_events WHERE fence = (SELECT max(fence) FROM ichido_events)".to_owned()).await;
    let verify = ["audit", "verify", "--store", &file.url, "--key-file", key.path()];
    assert_eq!(run(&verify).0, Some(0), "nothing else shows it");
    let (code, out, _) = run(&[&verify[..], &["--head", head["head"].as_str().expect("a head")]].concat());
    assert_eq!(code, Some(1));
    assert!(out.starts_with("seal_removed: seal 2: the saved head"), "{out}");
}

#[test]
fn unreadable_trail_is_neither_intact_nor_tampered() {
    let short = KeyFile::new("short");
    let (code, _, err) = run(&["audit", "verify", "--key-file", short.path(), "--head", "nonsense"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("2 problems"), "{err}");
    assert!(err.contains("at least 32") && !err.contains("\"short\""), "{err}");
    assert!(err.contains("ichido-audit-1:"), "{err}");
    let (code, _, err) = run(&["audit", "verify", "--store", "sqlite:/nowhere/at/all.db"]);
    assert_eq!(code, Some(3), "{err}");
    let (code, _, err) = run(&["audit", "seal", "--store", "sqlite:x", "--key-file", "/nowhere/key"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("cannot read it"), "{err}");
}
