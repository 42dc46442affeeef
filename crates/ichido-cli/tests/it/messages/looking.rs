//! Finds messages and shows one.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::clock::HEARTBEAT_DEADLINE;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Event, Failure};
use ichido_core::verdict::Effect;
use ichido_http::clock;
use ichido_store::Store;
use ichido_store::message::{ClaimOptions, NewMessage, Note, QueueName, Settlement};
use serde_json::Value;
use uuid::Uuid;

use super::fixture::{ServerAndStore, objects, run, store};
use crate::dead::fixture::{KEYED, StoreFixture, both_databases};

fn keys(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["idempotency_key"].as_str().unwrap()).collect()
}

both_databases! {
    #[test]
    async fn messages_are_found_by_every_filter(fixture: StoreFixture) {
        let dead = fixture.dead("orders", 1).await[0];
        let targets = ServerAndStore::on(fixture);
        let first = targets.put("orders", "k-1", r#"{"symbol":"ACME"}"#).await;
        targets.put("orders", "k-2", r#"{"symbol":"INIT"}"#).await;
        targets.put("mail", "k-3", r#"{"symbol":"ACME"}"#).await;
        assert_eq!(keys(&targets.json(&["messages", "list", "--state", "queued"])), ["k-3", "k-2", "k-1"]);
        for (filter, found) in [
            (&["--queue", "mail"][..], &["k-3"][..]),
            (&["--key", "k-2"], &["k-2"]),
            (&["--field", "/symbol", "--value", "ACME"], &["k-3", "k-1"]),
            (&["--identity", "bob"], &[]),
            (&["--state", "queued", "--before", "1h"], &[]),
            (&["--state", "queued", "--from", "1h", "--queue", "orders"], &["k-2", "k-1"]),
        ] {
            assert_eq!(keys(&targets.json(&[&["messages", "list"], filter].concat())), found, "{filter:?}");
        }
        let table = targets.success_output(&["messages", "list", "--error", "bad_request"]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 2, "{table}");
        assert!(lines[0].starts_with("CREATED") && lines[0].ends_with("ERROR"), "{table}");
        for part in [&dead.to_string(), "orders", "alice", "dead", "1/", "not done", "BAD_REQUEST: no such symbol"] {
            assert!(lines[1].contains(part), "no {part:?} in {table}");
        }
        assert_eq!(targets.success_output(&["messages", "list", "--key", "of-nobody"]), "no matching messages\n");
        let cut = targets.both(&["messages", "list", "--state", "queued", "--limit", "2", "--json"]);
        assert_eq!(keys(&objects(&cut.out)), ["k-3", "k-2"]);
        let after = cut.err.trim().strip_prefix("there may be more; continue with --after ").unwrap();
        let rest = targets.json(&["messages", "list", "--state", "queued", "--after", after]);
        assert_eq!(rest[0]["id"], first.to_string());
        assert_eq!(rest.len(), 1);
    }

    #[test]
    async fn list_reads_all_pages_up_to_its_limit(fixture: StoreFixture) {
        const ALL: u32 = 450;
        let targets = ServerAndStore::on(fixture);
        let queue = QueueName::parse("orders").unwrap();
        let new = |nth: u32| {
            let key = IdempotencyKey::parse(&format!("k-{nth}")).unwrap();
            NewMessage::new(queue.clone(), "alice", key, b"{}".to_vec())
        };
        for put in targets.fixture.store.messages().enqueue_all((0..ALL).map(new).collect()).await {
            put.unwrap();
        }
        let all = targets.json(&["messages", "list", "--limit", "1000"]);
        let mut found = keys(&all);
        found.sort_unstable();
        found.dedup();
        assert_eq!((all.len(), found.len()), (ALL as usize, ALL as usize), "each one once");
        let some = targets.both(&["messages", "list", "--limit", "401", "--json"]);
        assert_eq!(objects(&some.out), all[..401]);
        assert!(some.err.starts_with("there may be more; continue with --after "), "{}", some.err);
    }

    #[test]
    async fn one_message_is_shown_with_its_history_and_its_bytes(fixture: StoreFixture) {
        let id = fixture.dead("orders", 1).await[0].to_string();
        let targets = ServerAndStore::on(fixture);
        let shown = targets.success_output(&["messages", "show", &id]);
        for line in ["state        dead", "queue        orders", "effect       not done", "attempts     1 of"] {
            assert!(shown.lines().any(|found| found.starts_with(line)), "no {line:?} in {shown}");
        }
        assert!(shown.contains("error        BAD_REQUEST (the request was refused): no such symbol\n"), "{shown}");
        let names: Vec<&str> = shown.lines().take(4).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["state", "effect", "error", "attempts"], "what matters first: {shown}");
        let created = shown.lines().find(|line| line.starts_with("created")).unwrap();
        assert!(created.contains("Z (") && created.ends_with("s ago)"), "both ways: {shown}");
        let message = &targets.json(&["messages", "show", &id])[0];
        assert_eq!((&message["id"], &message["status"]), (&id.as_str().into(), &"dead".into()));
        let events = targets.json(&["messages", "events", &id]);
        let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["accepted", "claimed", "failed"]);
        let table = targets.success_output(&["messages", "events", &id]);
        assert!(table.contains("∅ → queued") && table.contains("sending → dead") && table.contains("BAD_REQUEST: no such symbol"), "{table}");
        assert_eq!(targets.success_output(&["messages", "request", &id]), "{\"qty\":1}");
    }

    /// A call that has not ended is not "not done", and the reader learns how long it may take.
    // Spec: D12.
    #[test]
    async fn message_in_flight_is_shown_with_its_holder(fixture: StoreFixture) {
        let (queue, node) = (QueueName::parse("orders").unwrap(), Uuid::from_u128(9));
        let new = NewMessage::new(queue.clone(), "alice", IdempotencyKey::parse("k-1").unwrap(), b"{}".to_vec());
        fixture.store.messages().enqueue(new).await.unwrap();
        let lease = Duration::from_hours(1);
        let terms = ClaimOptions { node, lease, start_marks: false, guarantee: KEYED, max_time_in_flight: lease };
        let works = fixture.store.claims().claim(&queue, NonZeroU32::MIN, terms).await.unwrap();
        let id = works[0].id.to_string();
        // Its heartbeat is in the future, so it does not die here.
        let ahead = Store::open(&fixture.url, 1).await.unwrap();
        ahead.advance_clock(lease);
        let heartbeat = ahead.nodes().heartbeat(node, "web-9").await.unwrap();
        let targets = ServerAndStore::on(fixture);
        let shown = targets.success_output(&["messages", "show", &id]);
        let (until, alive_until) = (works[0].claimed_at.plus(lease), heartbeat.at.plus(HEARTBEAT_DEADLINE));
        let holder = format!("held by      web-9 ({node}) until {until}; if its heartbeats stop, until {alive_until}");
        for line in ["state        sending", "effect       in flight: not known yet", &holder] {
            assert!(shown.lines().any(|found| found == line), "no {line:?} in {shown}");
        }
        let attempt = shown.lines().last().unwrap();
        assert!(attempt.starts_with("1 ") && attempt.contains(&format!("{node}  in flight")), "{shown}");
        let message = &targets.json(&["messages", "show", &id])[0];
        assert_eq!((&message["effect"], &message["held_by"]["node"]), (&"in_flight".into(), &node.to_string().into()));
        assert_eq!(message["cancel_requested"], Value::Null);
        let asked = targets.success_output(&["messages", "cancel", &id, "--reason", "ordered twice"]);
        assert_eq!(asked, format!("{id}: asked to stop; see ichido messages show {id}\n"));
        let shown = targets.success_output(&["messages", "show", &id]);
        assert!(shown.lines().any(|line| line.starts_with("cancel requested ")), "{shown}");
        let message = &targets.json(&["messages", "show", &id])[0];
        assert_eq!((&message["status"], &message["cancel_requested"]["reason"]), (&"sending".into(), &"ordered twice".into()));
    }

    #[test]
    async fn failed_message_shows_its_next_attempt(fixture: StoreFixture) {
        // Far away, so it is in whole days however long the commands take.
        let due = clock::now().plus(Duration::from_hours(10 * 24 + 12));
        let failed = fixture.letters("orders", 1, Failure::Retry { due }, Effect::NotDone).await[0].to_string();
        let targets = ServerAndStore::on(fixture);
        let table = targets.success_output(&["messages", "list", "--state", "failed"]);
        assert!(table.contains("failed  in 10d"), "{table}");
        let wide = targets.success_output(&["messages", "list", "--state", "failed", "--wide"]);
        assert!(wide.contains(&format!("failed  {due}")), "{wide}");
        assert_eq!(targets.json(&["messages", "list", "--state", "failed"])[0]["next_attempt_at"], due.to_string());
        let shown = targets.success_output(&["messages", "show", &failed]);
        let lines: Vec<&str> = shown.lines().take(4).collect();
        let next = format!("next attempt {due} (in 10d)");
        let error = "error        BAD_REQUEST (the request was refused): no such symbol";
        assert_eq!(lines, ["state        failed", "effect       not done", &next, error], "{shown}");
    }

    /// A failure that a later attempt made up for is not shown as the message's error.
    #[test]
    async fn sent_message_shows_its_attempts_and_the_past_error(fixture: StoreFixture) {
        let retry = Failure::Retry { due: clock::now().plus(Duration::from_hours(1)) };
        let id = fixture.letters("orders", 1, retry, Effect::NotDone).await[0].to_string();
        let requeued = run(store(&fixture, &["messages", "requeue", &id]));
        assert_eq!(requeued.code, Some(0), "{requeued:?}");
        let (queue, node, lease) = (QueueName::parse("orders").unwrap(), Uuid::from_u128(9), Duration::from_hours(1));
        let terms = ClaimOptions { node, lease, start_marks: false, guarantee: KEYED, max_time_in_flight: lease };
        let works = fixture.store.claims().claim(&queue, NonZeroU32::MIN, terms).await.unwrap();
        let answer = Note { status: Some(200), ..Note::default() };
        let sent = Settlement::new(&works[0], Event::Succeeded { fence: works[0].fence }, answer);
        for settled in fixture.store.claims().settle_all(vec![sent]).await {
            let _ = settled.unwrap();
        }
        let targets = ServerAndStore::on(fixture);
        let shown = targets.success_output(&["messages", "show", &id]);
        let error = "last error   BAD_REQUEST (the request was refused): no such symbol (attempt 1 of 2, before it was sent)";
        assert!(shown.lines().any(|line| line == error), "{shown}");
        assert!(!shown.contains("\nerror"), "{shown}");
        let lines = shown.lines().skip_while(|line| !line.starts_with("ATTEMPT")).skip(1);
        let cells = |line: &str| -> Vec<String> {
            line.split("  ").map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect()
        };
        let rows: Vec<Vec<String>> = lines.map(cells).collect();
        let ends: Vec<(&str, &str)> = rows.iter().map(|row| (row[0].as_str(), row[4].as_str())).collect();
        assert_eq!(ends, [("1", "failed"), ("2", "sent")], "{shown}");
        assert_eq!(rows[1][5], "200", "{shown}");
        assert_eq!(rows[1][3], node.to_string(), "{shown}");
        assert_eq!(rows[0][5], "BAD_REQUEST: no such symbol", "{shown}");
        let message = &targets.json(&["messages", "show", &id])[0];
        assert!(message.get("attempts").is_some_and(Value::is_u64) && message["last_error"]["code"] == "BAD_REQUEST", "{message}");
    }

    #[test]
    async fn a_message_is_named_by_its_first_digits_or_its_key(fixture: StoreFixture) {
        let dead = fixture.dead("orders", 2).await;
        let targets = ServerAndStore::on(fixture);
        let id = targets.put("orders", "order-4711", "{}").await.to_string();
        targets.put("mail", "order-4711", "{}").await;
        let whole = targets.json(&["messages", "show", &id]);
        let digits = id.replace('-', "");
        for text in [&id[..35], &digits[..31], &digits] {
            assert_eq!(targets.json(&["messages", "show", text]), whole, "{text}");
        }
        for (text, parts) in [(&id[..4], &["orders", "dead", "order-4711"][..]), ("order-4711", &["orders", "mail", "queued"])] {
            let left = targets.both(&["messages", "cancel", text]);
            assert!(left.code == Some(2) && left.err.contains(&format!("{text} names more than one message")), "{left:?}");
            for part in [&["ID", "QUEUE", "STATE", "KEY", &id], parts].concat() {
                assert!(left.err.contains(part), "no {part:?} in {}", left.err);
            }
        }
        // A beginning of an id that is also a key names both.
        targets.put("orders", &id[..30], "{}").await;
        let left = targets.at_store(&["messages", "cancel", &id[..30]]);
        assert!(left.code == Some(2) && left.err.contains("names more than one message"), "{left:?}");
        let cancelled = targets.at_server(&["messages", "cancel", &id[..35]]);
        assert_eq!((cancelled.code, cancelled.out), (Some(0), format!("{id}: cancelled; its effect is not done\n")));
        let [first, second] = [dead[0], dead[1]].map(|id| id.to_string());
        let random = "7f9c24e8-3b12-4fd4-9a6e-0d6b1c3c5a11";
        let by_key = targets.put("orders", random, "{}").await.to_string();
        assert!(targets.success_output(&["messages", "show", random]).contains(&by_key));
        let ambiguous = targets.at_store(&["dead", "discard", &first[..35], &first[..4], "--reason", "test"]);
        assert_eq!(ambiguous.code, Some(2), "{ambiguous:?}");
        assert_eq!(targets.json(&["dead", "list"]).len(), 2, "nothing was discarded: {ambiguous:?}");
        let discarded = targets.at_store(&["dead", "discard", &first[..35], &second[..35], &first, "--reason", "test"]);
        assert_eq!((discarded.code, discarded.out.lines().count()), (Some(0), 2), "{discarded:?}");
    }
}
