//! Shows the state of the queues, and pauses and resumes delivery.

use std::time::Duration;

use ichido_core::lifecycle::Failure;
use ichido_core::verdict::Effect;
use ichido_http::clock;

use super::fixture::ServerAndStore;
use crate::dead::fixture::{StoreFixture, both_databases};

both_databases! {
    #[test]
    async fn queues_are_listed_paused_and_resumed(fixture: StoreFixture) {
        fixture.dead("orders", 2).await;
        let targets = ServerAndStore::on(fixture);
        let table = targets.success_output(&["queues", "list"]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(lines[0].starts_with("QUEUE   QUEUED"), "{table}");
        let orders = lines.iter().find(|line| line.starts_with("orders ")).unwrap();
        assert!(orders.contains("s ago ") && orders.ends_with(" olivia"), "who paused it, and when: {table}");
        let counts: Vec<&str> = orders.split_whitespace().skip(1).take(7).collect();
        assert_eq!(counts, ["0", "0", "0", "0", "0", "2", "0"], "{table}");
        // A server without tokens believes the name of its local user.
        let paused = "paused orders; it accepts messages, but sends none until it is resumed\n";
        for (step, output, by) in [
            (&["resume"][..], "resumed orders; workers send its messages again\n", None),
            (&["resume"], "orders was not paused; nothing was changed\n", None),
            (&["pause"], paused, Some("olivia")),
            (&["pause"], "orders was already paused; it sends no messages until it is resumed\n", Some("olivia")),
            (&["resume"], "resumed orders; workers send its messages again\n", None),
            (&["pause", "--by", "Zoë of ops"], paused, Some("Zoë of ops")),
        ] {
            let left = targets.at_server(&[&["queues"], step, &["orders"]].concat());
            assert_eq!((left.code, left.out.as_str()), (Some(0), output), "{left:?}");
            let listed = targets.json(&["queues", "list"]);
            let orders = listed.iter().find(|queue| queue["name"] == "orders").unwrap();
            assert_eq!((&orders["paused_by"], &orders["paused"]), (&by.into(), &by.is_some().into()), "{orders}");
        }
        let resumed = targets.at_store(&["queues", "resume", "mail", "--json"]);
        assert!(resumed.code == Some(0) && resumed.out.contains(r#""paused":false"#), "{resumed:?}");
        let unknown = targets.both(&["queues", "pause", "odrers"]);
        assert!(unknown.code == Some(1) && unknown.err.contains("there is no queue odrers; did you mean orders?"), "{unknown:?}");
        let unnamed = targets.at_server(&["queues", "pause", "orders", "--by", ""]);
        assert!(unnamed.code == Some(2) && unnamed.err.contains("Ichido-Actor"), "{unnamed:?}");
        let none = targets.both(&["queues", "pause", "no name"]);
        assert!(none.code == Some(2) && none.err.contains("QUEUE: is not a valid queue name"), "{none:?}");
    }

    #[test]
    async fn queue_without_due_messages_says_so(fixture: StoreFixture) {
        let due = clock::now().plus(Duration::from_hours(1));
        fixture.letters("orders", 1, Failure::Retry { due }, Effect::NotDone).await;
        let targets = ServerAndStore::on(fixture);
        let table = targets.success_output(&["queues", "list"]);
        let has_note = |name: &str| {
            table.lines().any(|line| line.starts_with(&format!("{name} ")) && line.contains("  not due yet  "))
        };
        assert!(has_note("orders") && !has_note("mail"), "{table}");
    }

    /// A list of a misspelt queue must not look like a queue in which all is well.
    #[test]
    async fn misspelt_queue_is_named_with_the_one_meant(fixture: StoreFixture) {
        fixture.dead("events", 1).await;
        let targets = ServerAndStore::on(fixture);
        for command in [
            &["messages", "list"][..],
            &["messages", "list", "--json"],
            &["dead", "list"],
            &["dead", "requeue", "--dry-run"],
        ] {
            let unknown = targets.both(&[command, &["--queue", "evnts"]].concat());
            assert_eq!((unknown.code, unknown.out.as_str()), (Some(1), ""), "{unknown:?}");
            let said = "there is no queue evnts; did you mean events? Otherwise see `ichido queues list`";
            assert!(unknown.err.contains(said), "{unknown:?}");
        }
        let unlike = targets.both(&["messages", "list", "--queue", "zzz"]);
        assert!(unlike.err.contains("there is no queue zzz; see `ichido queues list`"), "{unlike:?}");
        assert_eq!(targets.success_output(&["messages", "list", "--queue", "ledger"]), "no matching messages\n");
    }
}
