//! `ichido dead` means the same at a running server and on its store.

use ichido_core::lifecycle::Failure;
use ichido_core::verdict::Effect;
use serde_json::{Value, json};

use super::fixture::{ServerAndStore, objects};
use crate::dead::fixture::StoreFixture;

const NOBODY: &str = "01995b1c-0000-7000-8000-000000000000";

/// Returns the objects of a list without their cursors, which are a server's own.
fn without_cursors(lines: &str) -> Vec<Value> {
    let mut all = objects(lines);
    for letter in &mut all {
        assert!(letter.as_object_mut().unwrap().remove("cursor").is_some(), "{letter}");
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_and_store_list_dead_letters_alike() {
    let fixture = StoreFixture::on_sqlite().await;
    let dead = fixture.dead("orders", 3).await;
    let parked = fixture.letters("mail", 1, Failure::InDoubt, Effect::Unknown).await;
    let targets = ServerAndStore::on(fixture);
    for arguments in [
        &["list"][..],
        &["list", "--queue", "orders", "--error", "BAD_REQUEST", "--effect", "not-done"],
        &["list", "--parked"],
        &["list", "--discarded"],
        &["list", "--identity", "alice", "--from", "2h", "--text", "symbol"],
        &["list", "--before", "2h"],
        &["show", &dead[0].to_string()],
        &["show", &parked[0].to_string()],
        &["show", &dead[0].to_string(), "--request"],
        &["operations"],
    ] {
        targets.success_output(&[&["dead"], arguments].concat());
    }
    let list = ["dead", "list", "--json"];
    let (there, here) = (targets.at_server(&list).out, targets.at_store(&list).out);
    assert_eq!(without_cursors(&there), without_cursors(&here));
    assert_eq!(objects(&there).len(), 3);
    let one = ["dead", "show", &dead[1].to_string(), "--json"];
    let (there, here) = (targets.at_server(&one).out, targets.at_store(&one).out);
    assert_eq!(without_cursors(&there), without_cursors(&here));
    // Page by page.
    let first = targets.at_server(&["dead", "list", "--limit", "2"]);
    let more = first.err.trim_end().strip_prefix("there may be more; continue with --after ").unwrap();
    let rest = targets.at_server(&["dead", "list", "--after", more]);
    assert_eq!(rest.out.lines().count(), 2, "its head, and the last one: {rest:?}");
    let missing = targets.both(&["dead", "show", NOBODY]);
    assert!(missing.code == Some(1) && missing.err.contains("the message does not exist"), "{missing:?}");
    let wrong = targets.both(&["dead", "list", "--from", "yesterday"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_requeued_discarded_and_decided_by_id() {
    let fixture = StoreFixture::on_sqlite().await;
    let dead = fixture.dead("orders", 2).await;
    let kept = fixture.dead("ledger", 1).await[0].to_string();
    let parked = fixture.arrived("mail", Failure::InDoubt).await;
    let targets = ServerAndStore::on(fixture);
    let [first, second] = [0, 1].map(|index| dead[index].to_string());
    // The preview is the same with both transports, and changes nothing.
    let dry = targets.both(&["dead", "requeue", &first, &kept, "--dry-run"]);
    assert_eq!(dry.code, Some(1), "{dry:?}");
    assert!(dry.out.contains(&format!("{first}: would be requeued\n")), "{dry:?}");
    let left = targets.at_server(&["dead", "requeue", &first, &kept, "--reason", "fixed"]);
    assert_eq!(left.code, Some(1), "{left:?}");
    assert!(
        left.out.contains(&format!("{first}: requeued\n{kept}: refused: the queue does not allow it")),
        "{left:?}"
    );
    assert_eq!(
        (targets.fixture.status(dead[0]).await, targets.fixture.status(dead[1]).await),
        ("queued", "dead")
    );
    let without = targets.both(&["dead", "discard", &second]);
    assert!(without.code == Some(2) && without.err.contains("--reason"), "{without:?}");
    let left = targets.at_server(&["dead", "discard", &second, "--reason", "test", "--json"]);
    assert_eq!((left.code, &objects(&left.out)[0]["done"]), (Some(0), &true.into()), "{left:?}");
    assert_eq!(objects(&targets.at_store(&["dead", "list", "--discarded", "--json"]).out).len(), 1);
    let left = targets.at_server(&["dead", "decide", "done", &parked.to_string(), "--reason", "it is there"]);
    assert_eq!((left.code, left.out), (Some(0), format!("{parked}: done; it counts as sent\n")));
    assert_eq!(targets.fixture.status(parked).await, "sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_previews_and_runs_bulk_operations() {
    let fixture = StoreFixture::on_postgres().await;
    let dead = fixture.dead("orders", 5).await;
    fixture.dead("ledger", 2).await;
    let targets = ServerAndStore::on(fixture);
    let dry = targets.both(&["dead", "requeue", "--all", "--dry-run"]);
    assert!(dry.code == Some(1) && dry.out.starts_with("5 of 7 dead letters would be requeued\n"), "{dry:?}");
    for (arguments, text) in [
        (&["--queue", "orders"][..], "5 dead letters would be requeued; confirm with --yes"),
        (&["--yes"], "--all"),
        (&[NOBODY, "--canary"], "--canary"),
    ] {
        let left = targets.both(&[&["dead", "requeue"], arguments].concat());
        assert!(left.code == Some(2) && left.err.contains(text), "{arguments:?}: {left:?}");
    }
    let left =
        targets.at_server(&["dead", "requeue", "--queue", "orders", "--yes", "--reason", "fixed", "--json"]);
    assert_eq!(left.code, Some(0), "{left:?}");
    let text = objects(&left.out);
    assert_eq!(text[0]["preflight"]["eligible"], 5);
    let report = &text.last().unwrap()["report"];
    assert!(report["ended"] == "ended" && report["detail"].as_str().unwrap().contains("moved=5"), "{report}");
    assert_eq!((&report["moved"], &report["gone"], &report["refused"]), (&5.into(), &0.into(), &json!({})));
    assert!(left.err.starts_with("bulk "), "{left:?}");
    for id in dead {
        assert_eq!(targets.fixture.status(id).await, "queued");
    }
    let bulks = targets.success_output(&["dead", "operations"]);
    assert!(bulks.contains("requeue") && bulks.contains("fixed"), "{bulks}");
    let over = targets.at_server(&["dead", "stop", report["operation"].as_str().unwrap()]);
    assert!(over.code == Some(4) && over.err.contains("the operation has ended"), "{over:?}");
    let discarded =
        targets.at_server(&["dead", "discard", "--queue", "ledger", "--reason", "test data", "--yes"]);
    assert!(discarded.code == Some(0) && discarded.out.ends_with("2 discarded\n"), "{discarded:?}");
    assert_eq!(objects(&targets.at_server(&["dead", "list", "--discarded", "--json"]).out).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_replaces_a_dead_letter() {
    let fixture = StoreFixture::on_sqlite().await;
    let old = fixture.dead("orders", 1).await[0];
    let done = fixture.letters("orders", 1, Failure::Permanent, Effect::Done).await[0];
    let targets = ServerAndStore::on(fixture);
    std::fs::write(targets.fixture.folder().join("new.json"), "{\"qty\":2}").unwrap();
    let edit =
        ["dead", "edit", &old.to_string(), "--request", "new.json", "--key", "k-new", "--reason", "fixed"];
    let left = targets.at_server(&[&edit[..], &["--json"]].concat());
    assert_eq!(left.code, Some(0), "{left:?}");
    let made = objects(&left.out).remove(0);
    assert_eq!((&made["replacement_of"], &made["key"]), (&old.to_string().into(), &"k-new".into()));
    let new = targets
        .fixture
        .store
        .messages()
        .get(made["id"].as_str().unwrap().parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (new.request.as_slice(), new.content_type.as_str()),
        (b"{\"qty\":2}".as_slice(), "application/json")
    );
    let shown = targets.success_output(&["dead", "show", &old.to_string()]);
    assert!(shown.contains("replaced by") && shown.contains("fixed"), "{shown}");
    // A message that took effect is not repeated by accident.
    let left = targets.both(&["dead", "edit", &done.to_string(), "--request", "new.json"]);
    assert!(left.code == Some(2) && left.err.contains("--yes: "), "{left:?}");
    // A message that has a successor, and a key that was used.
    let left = targets.both(&["dead", "edit", &old.to_string(), "--request", "new.json"]);
    assert!(left.code == Some(4) && left.err.contains("a new message was made from it"), "{left:?}");
    let left = targets.both(&[
        "dead",
        "edit",
        &done.to_string(),
        "--request",
        "new.json",
        "--key",
        "k-new",
        "--yes",
    ]);
    assert!(left.code == Some(2) && left.err.contains(&format!("by {}", new.id)), "{left:?}");
}
