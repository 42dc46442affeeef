//! A single letter: listed, shown, requeued, discarded, edited, decided.

use ichido::worker::OutboundKey;
use ichido_core::lifecycle::Failure;
use ichido_core::retry::Guarantee;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use ichido_store::message::QueueName;
use uuid::Uuid;

use super::fixture::{KEYED, StoreFixture, both_databases, publish};
use crate::messages::fixture::{run, store};

both_databases! {
    #[test]
    async fn dead_letters_are_listed_as_text_and_json(fixture: StoreFixture) {
        let id = fixture.dead("orders", 1).await[0];
        fixture.dead("mail", 2).await;
        let left = fixture.run(&["list", "--queue", "orders"]);
        assert_eq!(left.code, Some(0), "{left:?}");
        let lines: Vec<&str> = left.out.lines().collect();
        assert_eq!(lines.len(), 2, "{left:?}");
        let head: Vec<&str> = lines[0].split_whitespace().collect();
        let columns = ["SINCE", "CREATED", "ID", "QUEUE", "IDENTITY", "ITEM", "KEY", "ATTEMPTS", "EFFECT", "ERROR"];
        assert_eq!(head, columns, "{left:?}");
        assert!(lines[1].split("  ").next().is_some_and(|since| since.ends_with("s ago")), "{left:?}");
        let key = fixture.json(&["list", "--queue", "orders"])[0]["key"].clone();
        assert!(lines[1].contains(key.as_str().expect("a key")), "no key in {left:?}");
        let wide = fixture.run(&["list", "--queue", "orders", "--wide"]);
        assert!(!wide.out.contains(" ago") && wide.out.contains(&id.to_string()), "exact times: {wide:?}");
        for part in [&*id.to_string(), "orders", "alice", "1/9", "not done", "BAD_REQUEST: no such symbol"] {
            assert!(lines[1].contains(part), "no {part} in {left:?}");
        }
        let all = fixture.json(&["list"]);
        assert_eq!(all.len(), 3);
        assert!(all.iter().any(|letter| letter["id"] == id.to_string() && letter["error"] == "BAD_REQUEST"));
        assert!(!left.out.contains("qty"), "a request is not shown unasked");
    }

    #[test]
    async fn page_ends_with_the_next_cursor(fixture: StoreFixture) {
        fixture.dead("orders", 3).await;
        let first = fixture.run(&["list", "--limit", "2"]);
        let after = first.err.trim_end().strip_prefix("there may be more; continue with --after ");
        let after = after.unwrap_or_else(|| panic!("{first:?}"));
        let second = fixture.json(&["list", "--limit", "2", "--after", after]);
        assert_eq!(second.len(), 1);
        let wrong = fixture.run(&["list", "--after", "somewhere"]);
        assert!(wrong.code == Some(2) && wrong.err.contains("--after"), "{wrong:?}");
    }

    #[test]
    async fn dead_letter_is_shown_with_history_and_optional_request(fixture: StoreFixture) {
        let id = fixture.dead("orders", 1).await[0].to_string();
        let left = fixture.run(&["show", &id]);
        assert_eq!(left.code, Some(0), "{left:?}");
        for part in ["queued → sending", "sending → dead", "BAD_REQUEST: no such symbol", "1 of 9", "9 bytes"] {
            assert!(left.out.contains(part), "no {part} in {left:?}");
        }
        assert_eq!(fixture.run(&["show", &id, "--request"]).out, "{\"qty\":1}");
        let missing = fixture.run(&["show", &Uuid::now_v7().to_string()]);
        assert!(missing.code == Some(1) && missing.err.contains("not a dead letter or parked message"), "{missing:?}");
    }

    #[test]
    async fn shown_letter_names_the_commands_that_settle_it(fixture: StoreFixture) {
        let [parked, unknown] =
            [fixture.arrived("mail", Failure::InDoubt).await, fixture.arrived("mail", Failure::Permanent).await];
        let [dead, refused] = [fixture.dead("orders", 1).await[0], fixture.dead("ledger", 1).await[0]];
        for (id, commands) in [
            (parked, &["decide done ID", "decide not-done ID", "decide give-up ID", "requeue --parked --queue mail"][..]),
            (unknown, &["decide done ID", "decide not-done ID"]),
            (dead, &["requeue ID"]),
            (refused, &[]),
        ] {
            let shown = fixture.run(&["show", &id.to_string()]).out;
            let named = shown.lines().filter_map(|line| line.trim().strip_prefix("ichido dead "));
            let named: Vec<&str> = named.map(|line| line.split("  #").next().unwrap_or_default()).collect();
            let expected: Vec<String> = commands.iter().map(|line| line.replace("ID", &id.to_string())).collect();
            assert_eq!(named, expected, "{shown}");
            assert_eq!(shown.contains("It cannot be requeued: "), id == refused, "{shown}");
        }
        let id = dead.to_string();
        assert_eq!(fixture.run(&["discard", &id, "--reason", "test data"]).code, Some(0));
        assert!(!fixture.run(&["show", &id]).out.contains("ichido dead"), "a closed letter needs no step");
    }

    /// Asking the destination with a different key would find nothing and lead to a wrong decision.
    #[test]
    async fn dead_letter_shows_the_outbound_key(fixture: StoreFixture) {
        for (queue, kind) in [("orders", OutboundKey::Derived), ("ledger", OutboundKey::Own)] {
            let id = fixture.dead(queue, 1).await[0];
            let row = fixture.store.messages().get(id).await.expect("read").expect("there");
            let queue = QueueName::parse(queue).expect("a name");
            let outbound_key = kind.key_for(&queue, &row.identity, &row.key);
            let shown = fixture.run(&["show", &id.to_string()]);
            assert!(shown.out.contains(&format!("sent as      {}\n", outbound_key.as_str())), "{shown:?}");
            assert_eq!(fixture.json(&["show", &id.to_string()])[0]["outbound_key"], outbound_key.as_str());
        }
        let id = fixture.dead("forgotten", 1).await[0].to_string();
        let shown = fixture.run(&["show", &id]);
        assert!(shown.out.contains("unknown: no worker has published queue forgotten yet; start "), "{shown:?}");
        assert!(fixture.json(&["show", &id])[0]["outbound_key"].is_null());
    }

    #[test]
    async fn requeue_by_id_records_the_operator(fixture: StoreFixture) {
        let id = fixture.dead("orders", 1).await[0];
        let left = fixture.run(&["requeue", &id.to_string(), "--reason", "the broker is back"]);
        assert_eq!((left.code, left.out), (Some(0), format!("{id}: requeued\n")));
        assert_eq!(fixture.status(id).await, "queued");
        let last = fixture.store.messages().transitions(id).await.expect("read").pop().expect("some");
        assert_eq!((last.actor.as_deref(), last.excerpt.as_deref()), (Some("olivia"), Some("the broker is back")));
    }

    /// It is not a dead letter: it is retried at once, and the preview says so.
    #[test]
    async fn requeue_of_a_failed_message_is_previewed(fixture: StoreFixture) {
        let retry = Failure::Retry { due: Timestamp::from_secs(4_000_000_000) };
        let id = fixture.letters("ledger", 1, retry, Effect::NotDone).await[0];
        let requeue = ["requeue", &id.to_string()];
        let dry = [&requeue[..], &["--dry-run"]].concat();
        let left = fixture.run(&dry);
        assert_eq!((left.code, left.out), (Some(0), format!("{id}: would be requeued\n")));
        assert_eq!(fixture.status(id).await, "failed");
        let left = fixture.run(&requeue);
        assert_eq!((left.code, left.out), (Some(0), format!("{id}: requeued\n")));
        let left = fixture.run(&dry);
        assert!(left.code == Some(1) && left.out.contains("refused: "), "it is queued now: {left:?}");
    }

    #[test]
    async fn forbidden_requeue_is_refused_with_the_reason(fixture: StoreFixture) {
        let not_allowed = fixture.dead("ledger", 1).await[0];
        let unknown = fixture.letters("mail", 1, Failure::Permanent, Effect::Unknown).await[0];
        let of_no_queue = fixture.dead("forgotten", 1).await[0];
        for (id, why) in [
            (not_allowed, "requeue = true"),
            (unknown, "could do it twice"),
            (of_no_queue, "no worker has published the queue yet"),
        ] {
            let left = fixture.run(&["requeue", &id.to_string()]);
            assert!(left.code == Some(4) && left.out.contains(why), "{left:?}");
            assert_eq!(fixture.status(id).await, "dead");
        }
    }

    #[test]
    async fn discarded_letter_is_listed_only_on_request(fixture: StoreFixture) {
        let id = fixture.dead("orders", 1).await[0].to_string();
        let unsaid = fixture.run(&["discard", &id]);
        assert!(unsaid.code == Some(2) && unsaid.err.contains("--reason"), "{unsaid:?}");
        let left = fixture.run(&["discard", &id, "--reason", "test data"]);
        assert_eq!((left.code, left.out), (Some(0), format!("{id}: discarded\n")));
        assert!(fixture.json(&["list"]).is_empty());
        assert_eq!(fixture.json(&["list", "--discarded"]).len(), 1);
        assert!(fixture.run(&["show", &id]).out.contains("dead, discarded"));
    }

    #[test]
    async fn edited_dead_letter_and_replacement_link_each_other(fixture: StoreFixture) {
        let old = fixture.dead("orders", 1).await[0];
        let request = fixture.folder().join("request.json");
        std::fs::write(&request, "{\"qty\":2}").expect("written");
        let left = fixture.run(&["edit", &old.to_string(), "--request", "request.json"]);
        assert_eq!(left.code, Some(0), "{left:?}");
        assert!(left.out.contains("warning: this is a new action with a new key"), "{left:?}");
        let new: Uuid = left.out.split(' ').next().and_then(|id| id.parse().ok()).expect("an id");
        let row = fixture.store.messages().get(new).await.expect("read").expect("there");
        assert_eq!((row.replacement_of, row.request.as_slice()), (Some(old), &b"{\"qty\":2}"[..]));
        assert_eq!((row.queue.as_str(), row.identity.as_str()), ("orders", "alice"));
        assert!(fixture.run(&["show", &old.to_string()]).out.contains(&format!("replaced by  {new}")));
        let shown = run(store(&fixture, &["messages", "show", &old.to_string()]));
        assert!(shown.out.contains(&format!("replaced by  {new}")), "{shown:?}");
        let again = fixture.run(&["edit", &old.to_string(), "--request", "request.json"]);
        assert!(again.code == Some(4) && again.err.contains("a new message was made from it"), "{again:?}");
        let both = fixture.run(&["requeue", &old.to_string()]);
        assert!(both.code == Some(4) && both.out.contains("could do it twice"), "{both:?}");
    }

    /// The new message must satisfy the queue.
    #[test]
    async fn edit_that_violates_queue_schema_creates_nothing(fixture: StoreFixture) {
        let old = fixture.dead("orders", 1).await[0].to_string();
        let file = |name: &str, text: &str| std::fs::write(fixture.folder().join(name), text).expect("written");
        let config = std::fs::read_to_string(fixture.folder().join("ichido.toml")).expect("a file");
        file("ichido.toml", &config.replacen("requeue = true", "requeue = true\nschema = \"order.json\"", 1));
        file("order.json", "{\"required\": [\"qty\"]}");
        file("request.json", "{}");
        let left = fixture.run(&["edit", &old, "--request", "request.json"]);
        assert!(left.code == Some(2) && left.err.contains("does not match the queue's schema"), "{left:?}");
        assert!(fixture.json(&["list", "--replaced"]).is_empty(), "nothing was made from it");
        file("request.json", "{\"qty\":1}");
        assert_eq!(fixture.run(&["edit", &old, "--request", "request.json"]).code, Some(0));
    }

    /// It is closed for another reason, which a discard must not hide.
    #[test]
    async fn replaced_dead_letter_is_not_discarded(fixture: StoreFixture) {
        let old = fixture.dead("orders", 1).await[0].to_string();
        std::fs::write(fixture.folder().join("request.json"), "{}").expect("written");
        assert_eq!(fixture.run(&["edit", &old, "--request", "request.json"]).code, Some(0));
        let discard = ["discard", &old, "--reason", "test data"];
        for (arguments, code) in [(&[&discard[..], &["--dry-run"]].concat()[..], 1), (&discard[..], 4)] {
            let left = fixture.run(arguments);
            assert_eq!(left.code, Some(code), "{left:?}");
            assert!(left.out.starts_with(&format!("{old}: refused: a new message was made from it")), "{left:?}");
        }
        let many = fixture.run(&["discard", "--replaced", "--yes", "--reason", "test data"]);
        assert!(many.code == Some(4) && many.out.starts_with("0 of 1 dead letters would be discarded"), "{many:?}");
        assert_eq!(fixture.json(&["list", "--replaced"]).len(), 1);
        assert!(fixture.json(&["list", "--discarded"]).is_empty());
    }

    #[test]
    async fn replacing_a_done_message_requires_confirmation(fixture: StoreFixture) {
        let old = fixture.arrived("mail", Failure::Permanent).await.to_string();
        assert_eq!(fixture.run(&["decide", "done", &old]).code, Some(0));
        std::fs::write(fixture.folder().join("request.json"), "{}").expect("written");
        let unsaid = fixture.run(&["edit", &old, "--request", "request.json"]);
        assert!(unsaid.code == Some(2) && unsaid.err.contains("TOOK EFFECT"), "{unsaid:?}");
        assert!(unsaid.err.contains("--yes"), "{unsaid:?}");
        assert!(fixture.json(&["list", "--replaced"]).is_empty(), "nothing was created from it");
        let output = fixture.run(&["edit", &old, "--request", "request.json", "--yes"]);
        assert!(output.code == Some(0) && output.out.contains("TOOK EFFECT"), "{output:?}");
        assert_eq!(fixture.json(&["list", "--replaced"]).len(), 1);
    }

    #[test]
    async fn repeated_id_is_handled_once(fixture: StoreFixture) {
        let [requeued, discarded, decided] = [
            fixture.dead("orders", 1).await[0],
            fixture.dead("orders", 1).await[0],
            fixture.arrived("mail", Failure::InDoubt).await,
        ];
        for (id, arguments) in [
            (requeued, &["requeue"][..]),
            (discarded, &["discard", "--reason", "test data"]),
            (decided, &["decide", "not-done"]),
        ] {
            let id = id.to_string();
            let left = fixture.run(&[arguments, &[&id, &id]].concat());
            assert_eq!((left.code, left.out.lines().count()), (Some(0), 1), "{left:?}");
        }
        let steps = fixture.store.messages().transitions(requeued).await.expect("read");
        assert_eq!(steps.iter().filter(|step| step.kind == "requeued").count(), 1, "{steps:?}");
    }

    /// It is refused as `send` refuses it.
    // Spec: D11.
    #[test]
    async fn edit_refuses_request_with_a_different_key(fixture: StoreFixture) {
        let [derived, own] = [fixture.dead("orders", 1).await[0], fixture.dead("ledger", 1).await[0]];
        std::fs::write(fixture.folder().join("request.json"), "{\"idempotency_key\":\"k-1\"}").expect("written");
        for flags in [&[][..], &["--key", "k-2"]] {
            let left = fixture.run(&[&["edit", &derived.to_string(), "--request", "request.json"], flags].concat());
            assert!(left.code == Some(2) && left.err.contains("pass the same one with --key"), "{left:?}");
            assert_eq!(fixture.json(&["list", "--queue", "orders"]).len(), 1, "nothing was made from it");
        }
        let [derived, own] = [derived, own].map(|id| {
            let left = fixture.run(&["edit", &id.to_string(), "--request", "request.json", "--key", "k-1"]);
            assert_eq!(left.code, Some(0), "{left:?}");
            left.err
        });
        assert!(derived.contains("outbound_key = \"own\" under [queues.orders]"), "{derived}");
        assert_eq!(own, "", "the receiver gets one key");
    }

    #[test]
    async fn nothing_is_made_from_a_letter_whose_effect_is_unknown(fixture: StoreFixture) {
        let old = fixture.letters("mail", 1, Failure::Permanent, Effect::Unknown).await[0];
        std::fs::write(fixture.folder().join("request.json"), "{}").expect("written");
        let left = fixture.run(&["edit", &old.to_string(), "--request", "request.json"]);
        assert!(left.code == Some(4) && left.err.contains("ichido dead decide"), "{left:?}");
    }

    #[test]
    async fn parked_message_is_decided_after_its_call_settled(fixture: StoreFixture) {
        let parked = fixture.letters("mail", 3, Failure::InDoubt, Effect::Unknown).await;
        let ids: Vec<String> = parked.iter().map(Uuid::to_string).collect();
        let none = fixture.run(&["list", "--queue", "mail"]);
        assert!(none.out.contains("no matching dead letters; --parked lists"), "{none:?}");
        let early = fixture.run(&["decide", "not-done", &ids[0]]);
        assert!(early.code == Some(4) && early.out.contains("may still arrive until"), "{early:?}");
        // Proof that it was done counts at any time.
        let done = fixture.run(&["decide", "done", &ids[0]]);
        assert!(done.code == Some(0) && done.out.contains("counts as sent"), "{done:?}");
        assert_eq!(fixture.status(parked[0]).await, "sent");
        let requeued = fixture.run(&["requeue", &ids[1]]);
        assert!(requeued.code == Some(4) && requeued.out.contains("decide it"), "{requeued:?}");
        assert_eq!(fixture.json(&["list", "--parked"]).len(), 2);
        let last = fixture.store.messages().transitions(parked[0]).await.expect("read").pop().expect("some");
        assert_eq!((last.kind.as_str(), last.actor.as_deref()), ("decided", Some("olivia")));
    }

    #[test]
    async fn parked_message_is_requeued_or_becomes_dead(fixture: StoreFixture) {
        let [again, given_up] = [
            fixture.arrived("mail", Failure::InDoubt).await,
            fixture.arrived("mail", Failure::InDoubt).await,
        ];
        let left = fixture.run(&["decide", "not-done", &again.to_string(), "--reason", "the broker has no such order"]);
        assert!(left.code == Some(0) && left.out.contains("is sent again"), "{left:?}");
        assert_eq!(fixture.status(again).await, "queued");
        let left = fixture.run(&["decide", "give-up", &given_up.to_string()]);
        assert!(left.code == Some(0) && left.out.contains("stays unknown"), "{left:?}");
        assert_eq!(fixture.status(given_up).await, "dead");
    }

    #[test]
    async fn decision_determines_whether_dead_letter_can_be_requeued(fixture: StoreFixture) {
        let [not_done, done] = [
            fixture.arrived("mail", Failure::Permanent).await.to_string(),
            fixture.arrived("mail", Failure::Permanent).await.to_string(),
        ];
        let left = fixture.run(&["decide", "not-done", &not_done]);
        assert!(left.code == Some(0) && left.out.contains("until it is requeued"), "{left:?}");
        assert_eq!(fixture.run(&["requeue", &not_done]).code, Some(0));
        let left = fixture.run(&["decide", "done", &done]);
        assert!(left.code == Some(0) && left.out.contains("stays dead"), "{left:?}");
        let again = fixture.run(&["decide", "done", &done]);
        assert!(again.code == Some(4) && again.out.contains("its effect is known"), "{again:?}");
        let requeued = fixture.run(&["requeue", &done]);
        assert!(requeued.code == Some(4) && requeued.out.contains("it took effect"), "{requeued:?}");
    }

    #[test]
    async fn requeue_without_config_uses_published_queue_settings(fixture: StoreFixture) {
        std::fs::remove_file(fixture.folder().join("ichido.toml")).expect("removed");
        let (dead, unknown) = (fixture.dead("orders", 1).await[0], fixture.arrived("orders", Failure::Permanent).await);
        let not_allowed = fixture.dead("ledger", 1).await[0];
        let left = fixture.run(&["requeue", &not_allowed.to_string()]);
        assert!(left.code == Some(4) && left.out.contains("requeue = true"), "{left:?}");
        // A second node gives a weaker guarantee, and could repeat a call of unknown effect.
        publish(&fixture.store, Uuid::from_u128(2), Guarantee::None).await;
        let left = fixture.run(&["requeue", &unknown.to_string()]);
        assert!(left.code == Some(4) && left.out.contains("could do it twice"), "{left:?}");
        assert_eq!(fixture.run(&["requeue", &dead.to_string()]).code, Some(0), "what was not done may go");
        publish(&fixture.store, Uuid::from_u128(2), KEYED).await;
        assert_eq!(fixture.run(&["requeue", &unknown.to_string()]).code, Some(0));
        assert_eq!((fixture.status(dead).await, fixture.status(unknown).await), ("queued", "queued"));
    }

    /// Nobody knows whether it may be sent again, and another program's configuration does not say.
    #[test]
    async fn bulk_requeue_of_unpublished_queue_is_refused(fixture: StoreFixture) {
        let id = fixture.dead("forgotten", 1).await[0];
        let left = fixture.run(&["requeue", "--queue", "forgotten", "--yes"]);
        assert!(left.out.contains("no worker has published the queue yet"), "{left:?}");
        assert!(left.out.contains("start the worker or program that serves it"), "{left:?}");
        assert_eq!(fixture.status(id).await, "dead");
        assert_eq!(fixture.json(&["list"]).len(), 1, "looking needs nothing");
    }
}
