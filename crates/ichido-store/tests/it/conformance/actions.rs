//! Operators' actions on anything but messages are in the audit trail, with their actor, and sealed, and so are unknown outcomes.
// SPEC C5, D10, D13, F1, F5.

use std::num::NonZeroU32;

use ichido_core::audit::verify::Kind;
use ichido_core::ledger::{OperationGuarantee, RecordName, Resolution};
use ichido_store::action::{ActionRow, AuditAction};
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeyResolved, KeySettled};
use ichido_store::message::{Enqueued, NewMessage, QueueName};
use uuid::Uuid;

use super::audit::{key, seal, write};
use super::ledger::{name, policy, request};
use crate::both_databases;
use crate::fixture::{AFTER_LEASE, StoreFixture, queue};

fn operation(to: &str) -> AuditAction {
    AuditAction {
        subject: Uuid::from_u128(7),
        about: "letters".to_owned(),
        kind: "requeue".to_owned(),
        from: "none".to_owned(),
        to: to.to_owned(),
        actor: Some("olivia".to_owned()),
        detail: Some("queue=orders".to_owned()),
    }
}

fn summary(row: &ActionRow) -> (&str, &str, &str, &str, Option<&str>) {
    let AuditAction { about, kind, from, to, actor, .. } = &row.action;
    (about, kind, from, to, actor.as_deref())
}

impl StoreFixture {
    async fn actions(&self) -> Vec<ActionRow> {
        self.store.actions().list(None, 100).await.unwrap()
    }

    /// The history of a key: from, kind and to of each step.
    async fn key_history(&self, text: &str) -> Vec<String> {
        let record = self.store.keys().get(&name(text)).await.unwrap().unwrap();
        let history = self.store.keys().history(&record).await.unwrap();
        history.iter().map(|entry| format!("{} {} {}", entry.from, entry.kind, entry.to)).collect()
    }
}

both_databases! {
    #[test]
    async fn pause_and_resume_are_audited_with_their_actor(fixture: StoreFixture) {
        fixture.store.queues().pause(&queue(), true, Some("olivia")).await.unwrap();
        fixture.store.queues().pause(&queue(), false, Some("pete")).await.unwrap();
        let actions = fixture.actions().await;
        let summary: Vec<_> = actions.iter().map(summary).collect();
        assert_eq!(
            summary,
            [
                ("queue orders", "resumed", "paused", "running", Some("pete")),
                ("queue orders", "paused", "running", "paused", Some("olivia")),
            ]
        );
        assert_eq!(actions[0].action.subject, actions[1].action.subject, "they are one chain");
    }

    #[test]
    async fn parallelism_of_a_queue_is_set_and_cleared_with_an_audit(fixture: StoreFixture) {
        let queues = fixture.store.queues();
        queues.set_parallelism(&queue(), NonZeroU32::new(8), Some("olivia")).await.unwrap();
        queues.set_parallelism(&queue(), NonZeroU32::new(2), Some("pete")).await.unwrap();
        let [set] = &queues.parallelisms().await.unwrap()[..] else { panic!("one queue") };
        assert_eq!((set.queue.as_str(), set.parallelism.get(), set.by.as_deref()), ("orders", 2, Some("pete")));
        queues.set_parallelism(&queue(), None, Some("olivia")).await.unwrap();
        assert_eq!(queues.parallelisms().await.unwrap(), []);
        let actions = fixture.actions().await;
        let summary: Vec<_> = actions.iter().map(summary).collect();
        assert_eq!(
            summary,
            [
                ("queue orders", "parallelism_cleared", "2", "as configured", Some("olivia")),
                ("queue orders", "parallelism_set", "8", "2", Some("pete")),
                ("queue orders", "parallelism_set", "as configured", "8", Some("olivia")),
            ]
        );
    }

    #[test]
    async fn key_decision_is_audited_with_its_actor(fixture: StoreFixture) {
        fixture.unknown("k1").await;
        let (name, policy) = (name("k1"), policy(OperationGuarantee::None));
        let decided = fixture.store.keys().decide(&name, Resolution::Applied, None, &policy, "olivia").await.unwrap();
        assert_eq!(decided, KeyResolved::Resolved);
        let actions = fixture.actions().await;
        assert_eq!(actions.len(), 2, "{actions:?}");
        let AuditAction { kind, from, to, actor, detail, .. } = &actions[0].action;
        assert_eq!((kind.as_str(), from.as_str(), to.as_str()), ("decided", "unknown", "applied"));
        assert_eq!(actor.as_deref(), Some("olivia"));
        assert!(detail.as_deref().is_some_and(|detail| detail.ends_with("k1")), "{detail:?}");
    }

    /// Reported by its owner, found by the next request, or found by maintenance: each once.
    #[test]
    async fn unknown_outcome_is_audited_once(fixture: StoreFixture) {
        let about = async |text: &str| fixture.key_history(text).await;
        let fence = fixture.unknown("told").await;
        assert_eq!(fixture.report("told", fence, KeyOutcome::Hold).await, KeySettled::Settled);
        for key in ["found", "swept"] {
            fixture.run(key, OperationGuarantee::None).await;
        }
        fixture.pass(AFTER_LEASE);
        // Its owner is gone on every node.
        let other = fixture.another_node().await;
        other.advance_clock(AFTER_LEASE);
        let claimed = other.keys().claim(request("found", OperationGuarantee::None)).await.unwrap();
        assert!(matches!(claimed, KeyClaimed::Unknown { .. }), "{claimed:?}");
        assert_eq!(other.keys().mark_lapsed_unknown(&["orders.create".to_owned()], 10).await.unwrap(), 1);
        for key in ["told", "found", "swept"] {
            assert_eq!(about(key).await, ["none claimed claimed", "claimed unknown unknown"], "{key}");
        }
        let actions = fixture.actions().await;
        let keys = ["told", "found", "swept"];
        let details: Vec<&str> = actions.iter().filter_map(|row| row.action.detail.as_deref()).collect();
        assert!(keys.iter().all(|key| details.contains(&&*format!("orders.create alice {key}"))), "{details:?}");
        assert_eq!(actions.len(), 3);
        seal(&fixture.store, 100).await;
        let report = fixture.store.audit().verify(Some(&key()), None).await.unwrap();
        assert!(report.is_whole() && report.sealed == 3, "{report:?}");
    }

    #[test]
    async fn history_of_a_key_joins_record_and_trail(fixture: StoreFixture) {
        fixture.settled("done", OperationGuarantee::None, b"done").await;
        assert_eq!(fixture.key_history("done").await, ["none claimed claimed", "claimed settled applied"]);
        fixture.unknown("decided").await;
        fixture.unknown("asked").await;
        let policy = policy(OperationGuarantee::None);
        let keys = fixture.store.keys();
        let _ = keys.decide(&name("decided"), Resolution::Refused, None, &policy, "olivia").await.unwrap();
        let _ = keys.resolve(&name("asked"), Resolution::Applied, None, &policy).await.unwrap();
        let expected = ["none claimed claimed", "claimed unknown unknown", "unknown decided refused"];
        assert_eq!(fixture.key_history("decided").await, expected);
        let expected = ["none claimed claimed", "claimed unknown unknown", "unknown reconciled applied"];
        assert_eq!(fixture.key_history("asked").await, expected);
    }

    #[test]
    async fn records_and_messages_are_found_by_key_and_by_hash(fixture: StoreFixture) {
        let (wanted, other) = (name("wanted").key, name("other").key);
        for (operation, identity, key) in
            [("a", "ann", &wanted), ("b", "ann", &wanted), ("a", "bob", &wanted), ("a", "ann", &other)]
        {
            let name = RecordName { operation: operation.to_owned(), identity: identity.to_owned(), key: key.clone() };
            let _ = fixture.arrive(KeyClaim { name, ..request("x", OperationGuarantee::None) }).await;
        }
        let found = fixture.store.keys().list_of_hash(wanted.hash(), 10).await.unwrap();
        let mut names: Vec<_> =
            found.iter().map(|name| (&*name.operation, &*name.identity, name.key.as_str())).collect();
        names.sort_unstable();
        assert_eq!(names, [("a", "ann", "wanted"), ("a", "bob", "wanted"), ("b", "ann", "wanted")]);
        assert_eq!(fixture.store.keys().list_of_hash(wanted.hash(), 2).await.unwrap().len(), 2);

        let messages = fixture.store.messages();
        assert!(messages.find_by_key(&wanted).await.unwrap().ids.is_empty());
        let mut sent = Vec::new();
        for (queue, identity) in [("mail", "ann"), ("mail", "bob"), ("orders", "ann"), ("zoo", "carl")] {
            let queue = QueueName::parse(queue).unwrap();
            for key in [&other, &wanted] {
                let message = NewMessage::new(queue.clone(), identity, key.clone(), b"x".to_vec());
                let Enqueued::New { id } = messages.enqueue(message).await.unwrap() else { panic!("it is new") };
                if key == &wanted {
                    assert_eq!(messages.find(&queue, identity, key).await.unwrap(), Some(id));
                    sent.push(id);
                }
            }
        }
        sent.sort_unstable();
        let by_key = messages.find_by_key(&wanted).await.unwrap();
        let by_hash = messages.find_by_hash(wanted.hash()).await.unwrap();
        assert_eq!((by_hash.scanned, by_hash.since.is_some()), (8, true));
        for mut found in [by_key, by_hash] {
            found.ids.sort_unstable();
            assert_eq!((found.ids, found.is_complete), (sent.clone(), true));
        }
        let nowhere = QueueName::parse("nowhere").unwrap();
        assert_eq!(messages.find(&nowhere, "ann", &wanted).await.unwrap(), None);
    }

    #[test]
    async fn a_decision_that_is_refused_is_not_in_the_trail(fixture: StoreFixture) {
        fixture.unknown("k1").await;
        let (name, policy) = (name("k1"), policy(OperationGuarantee::None));
        let decide = async || {
            fixture.store.keys().decide(&name, Resolution::Applied, None, &policy, "olivia").await.unwrap()
        };
        assert_eq!(decide().await, KeyResolved::Resolved);
        assert!(matches!(decide().await, KeyResolved::Refused(_)));
        let kinds: Vec<String> = fixture.actions().await.into_iter().map(|row| row.action.kind).collect();
        assert_eq!(kinds, ["decided", "unknown"]);
    }

    #[test]
    async fn actions_are_listed_page_by_page_and_by_their_subject(fixture: StoreFixture) {
        for to in ["started", "stopping", "stopped"] {
            fixture.store.actions().record(&operation(to)).await.unwrap();
        }
        fixture.store.queues().pause(&queue(), true, None).await.unwrap();
        let first = fixture.store.actions().list(None, 2).await.unwrap();
        let rest = fixture.store.actions().list(Some(first[1].number), 10).await.unwrap();
        let states = |rows: &[ActionRow]| rows.iter().map(|row| row.action.to.clone()).collect::<Vec<_>>();
        assert_eq!((states(&first), states(&rest)), (vec!["paused".into(), "stopped".into()], vec!["stopping".into(), "started".into()]));
        let of_one = fixture.store.actions().of(Uuid::from_u128(7)).await.unwrap();
        assert_eq!(states(&of_one), ["started", "stopping", "stopped"]);
        assert_eq!(of_one[0].action, operation("started"));
    }

    #[test]
    async fn actions_are_sealed_and_one_that_was_changed_or_removed_is_named(fixture: StoreFixture) {
        for to in ["started", "ended"] {
            fixture.store.actions().record(&operation(to)).await.unwrap();
        }
        fixture.store.queues().pause(&queue(), true, Some("olivia")).await.unwrap();
        seal(&fixture.store, 100).await;
        let whole = fixture.store.audit().verify(Some(&key()), None).await.unwrap();
        assert!(whole.is_whole() && whole.sealed == 3, "{whole:?}");
        write(&fixture, "UPDATE {t}events SET actor = 'nobody' WHERE kind = 'paused'").await;
        write(&fixture, "UPDATE {t}events SET about = 'nothing' WHERE to_state = 'started'").await;
        write(&fixture, "DELETE FROM {t}events WHERE to_state = 'ended'").await;
        let report = fixture.store.audit().verify(Some(&key()), None).await.unwrap();
        let mut kinds: Vec<Kind> = report.findings.iter().map(|finding| finding.kind).collect();
        kinds.sort_unstable_by_key(|kind| kind.as_str());
        assert_eq!(kinds, [Kind::Changed, Kind::Changed, Kind::Removed], "{report:?}");
    }
}
