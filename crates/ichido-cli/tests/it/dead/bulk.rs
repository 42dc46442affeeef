//! Bulk operations: preview, confirmation, canary, stop and record.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use ichido_core::lifecycle::Failure;
use ichido_core::verdict::Effect;
use serde_json::Value;

use super::fixture::{StoreFixture, both_databases};

/// The interval between polls.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// After this a test hangs. It measures nothing.
const HUNG: Duration = Duration::from_mins(2);

/// Waits until the last bulk operation is in a state, and returns it.
async fn until_state(fixture: &StoreFixture, state: &str) -> Value {
    let reached = async {
        loop {
            let last = fixture.json(&["operations"]).swap_remove(0);
            if last["state"] == state {
                return last;
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    tokio::time::timeout(HUNG, reached).await.expect("the bulk comes to its state")
}

both_databases! {
    #[test]
    async fn dry_run_previews_and_changes_nothing(fixture: StoreFixture) {
        let ids = fixture.dead("orders", 3).await;
        fixture.dead("ledger", 2).await;
        let left = fixture.run(&["requeue", "--all", "--dry-run"]);
        assert_eq!(left.code, Some(1), "some would be refused: {left:?}");
        assert!(left.out.starts_with("3 of 5 dead letters would be requeued\n"), "{left:?}");
        for part in ["orders", "BAD_REQUEST", "ledger", "requeue = true"] {
            assert!(left.out.contains(part), "no {part} in {left:?}");
        }
        assert_eq!(fixture.status(ids[0]).await, "dead");
        let text = &fixture.json(&["requeue", "--all", "--dry-run"])[0]["preflight"];
        assert_eq!((&text["matched"], &text["eligible"]), (&5.into(), &3.into()));
        assert_eq!(text["refused"][0]["reason"], "not_allowed");
        let all_may_go = fixture.run(&["requeue", "--queue", "orders", "--dry-run"]);
        assert_eq!(all_may_go.code, Some(0), "{all_may_go:?}");
    }

    #[test]
    async fn bulk_operation_requires_confirmation(fixture: StoreFixture) {
        let ids = fixture.dead("orders", 2).await;
        let left = fixture.run(&["requeue", "--queue", "orders"]);
        assert!(left.code == Some(2) && left.err.contains("--yes"), "{left:?}");
        let nobody_named = fixture.run(&["requeue", "--yes"]);
        assert!(nobody_named.code == Some(2) && nobody_named.err.contains("--all"), "{nobody_named:?}");
        let parked = fixture.run(&["discard", "--parked", "--yes", "--reason", "test data"]);
        assert!(parked.code == Some(2) && parked.err.contains("decide"), "{parked:?}");
        assert_eq!(fixture.status(ids[0]).await, "dead");
    }

    #[test]
    async fn bulk_requeue_by_filter_is_recorded(fixture: StoreFixture) {
        fixture.dead("orders", 4).await;
        fixture.letters("mail", 1, Failure::Permanent, Effect::Unknown).await;
        let left = fixture.run(&["requeue", "--error", "bad_request", "--yes", "--reason", "fixed"]);
        assert_eq!(left.code, Some(1), "one was refused: {left:?}");
        assert!(left.out.starts_with("requeuing 4 of 5 dead letters\n"), "it says what it does: {left:?}");
        assert!(!left.out.contains("would") && !left.err.contains("4 of 4"), "and once: {left:?}");
        assert!(left.out.contains("4 requeued\n") && left.out.contains("1 refused: it may have taken effect"), "{left:?}");
        assert_eq!(fixture.json(&["list"]).len(), 1);
        let bulks = fixture.run(&["operations"]);
        for part in ["requeue", "olivia", "ended", "error=BAD_REQUEST", "4 of 5", "fixed", "moved=4 refused=1 gone=0"] {
            assert!(bulks.out.contains(part), "no {part} in {bulks:?}");
        }
        let again = fixture.run(&["requeue", "--queue", "orders", "--yes"]);
        assert!(again.code == Some(0) && again.out.starts_with("0 of 0"), "{again:?}");
    }

    #[test]
    async fn bulk_discard_by_filter(fixture: StoreFixture) {
        fixture.dead("ledger", 3).await;
        let left = fixture.run(&["discard", "--queue", "ledger", "--yes", "--reason", "test data"]);
        assert!(left.code == Some(0) && left.out.contains("3 discarded\n"), "{left:?}");
        assert!(fixture.json(&["list"]).is_empty());
    }

    #[test]
    async fn parked_messages_are_decided_by_filter(fixture: StoreFixture) {
        let arrived = [fixture.arrived("mail", Failure::InDoubt).await, fixture.arrived("mail", Failure::InDoubt).await];
        let in_flight = fixture.letters("mail", 1, Failure::InDoubt, Effect::Unknown).await[0];
        let dead = fixture.arrived("mail", Failure::Permanent).await;
        let listed = fixture.json(&["list", "--parked"]);
        assert_eq!(listed.iter().filter(|letter| letter["in_flight_until"].is_string()).count(), 1, "{listed:?}");
        let not_done = ["decide", "not-done", "--queue", "mail"];
        let dry = fixture.run(&[&not_done[..], &["--dry-run"]].concat());
        assert!(dry.code == Some(1) && dry.out.starts_with("2 of 3 parked messages would be decided\n"), "{dry:?}");
        assert!(dry.out.contains("its call may still arrive"), "{dry:?}");
        for (more, text) in [(&["decide", "done", "--yes"][..], "--all"), (&not_done, "--yes"), (&["decide", "done", "--all", "--canary"], "--canary")] {
            let wrong = fixture.run(more);
            assert!(wrong.code == Some(2) && wrong.err.contains(text), "{more:?}: {wrong:?}");
        }
        let left = fixture.run(&[&not_done[..], &["--yes", "--reason", "none arrived"]].concat());
        assert!(left.code == Some(1) && left.out.contains("2 decided\n"), "one was refused: {left:?}");
        for id in arrived {
            assert_eq!(fixture.status(id).await, "queued");
            let last = fixture.store.messages().transitions(id).await.expect("read").pop().expect("some");
            assert_eq!((last.kind.as_str(), last.actor.as_deref()), ("decided", Some("olivia")));
        }
        assert_eq!((fixture.status(in_flight).await, fixture.status(dead).await), ("parked", "dead"));
        let bulks = fixture.run(&["operations"]);
        for part in ["decide_not_done", "olivia", "state=parked queue=mail", "none arrived", "moved=2 refused=1 gone=0"] {
            assert!(bulks.out.contains(part), "no {part} in {bulks:?}");
        }
        let empty = fixture.run(&["decide", "done", "--text", "", "--yes"]);
        assert!(empty.code != Some(0) && empty.err.contains("is empty"), "it would select everything: {empty:?}");
        let done = fixture.run(&["decide", "done", "--all", "--yes"]);
        assert!(done.code == Some(0) && done.out.contains("1 decided\n"), "proof needs no waiting: {done:?}");
        assert_eq!(fixture.status(in_flight).await, "sent");
        let done = fixture.run(&["decide", "done", "--dead", "--yes"]);
        assert!(done.code == Some(0) && done.out.starts_with("deciding 1 of 1 dead letters\n"), "{done:?}");
        assert_eq!(fixture.json(&["list", "--effect", "done"])[0]["id"], dead.to_string());
    }

    /// The guarantee of the queue's destination decides, whatever its setting for dead letters.
    #[test]
    async fn parked_messages_are_requeued_where_the_guarantee_allows_it(fixture: StoreFixture) {
        let keyed = fixture.letters("ledger", 2, Failure::InDoubt, Effect::Unknown).await;
        let unsafe_to_repeat = fixture.arrived("mail", Failure::InDoubt).await;
        fixture.dead("orders", 1).await;
        let dry = fixture.run(&["requeue", "--parked", "--dry-run"]);
        assert!(dry.code == Some(1) && dry.out.starts_with("2 of 3 parked messages would be requeued\n"), "{dry:?}");
        assert!(dry.out.contains("sending it again could do it twice") && dry.out.contains("ichido dead decide"), "{dry:?}");
        let left = fixture.run(&["requeue", "--parked", "--yes"]);
        assert!(left.code == Some(1) && left.out.contains("2 requeued\n"), "{left:?}");
        for id in keyed {
            assert_eq!(fixture.status(id).await, "queued");
        }
        assert_eq!(fixture.status(unsafe_to_repeat).await, "parked");
        assert_eq!(fixture.json(&["list"]).len(), 1, "dead letters were not selected");
    }

    /// No worker runs, so the canary waits for its first letters until another process stops it.
    #[test]
    async fn waiting_canary_is_stopped_from_another_process(fixture: StoreFixture) {
        fixture.dead("orders", 200).await;
        let mut command = fixture.command(&["requeue", "--all", "--canary", "--yes"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let operation = first.rsplit(' ').next().expect("an id").to_owned();
        let left = fixture.run(&["stop", &operation]);
        assert!(left.code == Some(0) && left.out.contains("stop requested"), "{left:?}");
        let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
        assert_eq!(child.wait().expect("it ends").code(), Some(3), "{rest:?}");
        assert!(rest.iter().any(|line| line.contains("stopped by olivia")), "{rest:?}");
        assert_eq!(fixture.json(&["list", "--limit", "1000"]).len(), 198, "the canary's two have gone");
        let over = fixture.run(&["stop", &operation]);
        assert!(over.code == Some(4) && over.err.contains("has ended"), "{over:?}");
    }

    /// A bulk operation is attributed to the operator who started it, not to the one who stopped it. A killed one
    /// never sees the request to stop.
    #[test]
    async fn bulk_operation_records_who_started_and_stopped_it(fixture: StoreFixture) {
        fixture.dead("orders", 200).await;
        let mut command = fixture.command(&["requeue", "--all", "--canary", "--yes"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let operation = first.rsplit(' ').next().expect("an id").to_owned();
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
        let left = fixture.run(&["stop", &operation, "--by", "pat"]);
        assert_eq!(left.code, Some(0), "{left:?}");
        let bulks = fixture.json(&["operations"]);
        assert_eq!(bulks.len(), 1, "{bulks:?}");
        assert_eq!((&bulks[0]["who"], &bulks[0]["state"]), (&"olivia".into(), &"stopping".into()), "{bulks:?}");
        let detail = bulks[0]["detail"].as_str().expect("text");
        assert!(detail.starts_with("state=dead") && detail.ends_with("stop requested by pat"), "{detail}");
        until_state(&fixture, "stopped").await;
        let over = fixture.run(&["stop", &operation]);
        assert!(over.code == Some(4) && over.err.contains("is gone"), "{over:?}");
    }

    #[test]
    async fn killed_bulk_operation_is_abandoned_and_rerun_continues(fixture: StoreFixture) {
        fixture.dead("orders", 200).await;
        let mut command = fixture.command(&["requeue", "--queue", "orders", "--canary", "--yes"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let operation = first.rsplit(' ').next().expect("an id").to_owned();
        let at_once = fixture.run(&["requeue", "--all", "--yes"]);
        assert!(at_once.code == Some(4) && at_once.err.contains(&operation), "{at_once:?}");
        child.kill().expect("it is killed");
        child.wait().expect("it ends");
        assert_eq!(fixture.json(&["operations"])[0]["state"], "started", "it may only be slow");
        let text = until_state(&fixture, "abandoned").await;
        assert!(text["detail"].as_str().expect("text").contains("start it again"), "{text}");
        let again = fixture.run(&["requeue", "--queue", "orders", "--yes"]);
        assert!(again.code == Some(0) && again.out.contains("198 requeued"), "{again:?}");
        let states: Vec<_> = fixture.json(&["operations"]).into_iter().map(|bulk| bulk["state"].clone()).collect();
        assert_eq!(states, ["ended", "abandoned"]);
    }

    #[test]
    async fn signal_stops_bulk_operation_with_accurate_report(fixture: StoreFixture) {
        fixture.dead("orders", 200).await;
        let mut command = fixture.command(&["requeue", "--all", "--canary", "--yes"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        lines.next().expect("a line").expect("text");
        let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
        // Read to the end, so it does not block on a full pipe.
        lines.for_each(drop);
        let left = child.wait_with_output().expect("it ends");
        assert_eq!(left.status.code(), Some(3));
        assert!(String::from_utf8_lossy(&left.stdout).contains("2 requeued"), "{left:?}");
        assert!(fixture.run(&["operations"]).out.contains("stopped"));
    }
}
