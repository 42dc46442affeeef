//! Operators' actions on anything but messages are in the audit trail, with their actor, and sealed.
// SPEC D13, F5.

use ichido_core::audit::verify::Kind;
use ichido_core::ledger::{OperationGuarantee, Resolution};
use ichido_store::action::{ActionRow, AuditAction};
use ichido_store::ledger::KeyResolved;
use uuid::Uuid;

use super::audit::{key, seal, write};
use super::ledger::{name, policy};
use crate::both_databases;
use crate::fixture::{StoreFixture, queue};

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
    async fn key_decision_is_audited_with_its_actor(fixture: StoreFixture) {
        fixture.unknown("k1").await;
        let (name, policy) = (name("k1"), policy(OperationGuarantee::None));
        let decided = fixture.store.keys().decide(&name, Resolution::Applied, None, &policy, "olivia").await.unwrap();
        assert_eq!(decided, KeyResolved::Resolved);
        let actions = fixture.actions().await;
        assert_eq!(actions.len(), 1, "{actions:?}");
        let AuditAction { kind, from, to, actor, detail, .. } = &actions[0].action;
        assert_eq!((kind.as_str(), from.as_str(), to.as_str()), ("decided", "unknown", "applied"));
        assert_eq!(actor.as_deref(), Some("olivia"));
        assert!(detail.as_deref().is_some_and(|detail| detail.ends_with("k1")), "{detail:?}");
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
        assert_eq!(fixture.actions().await.len(), 1);
    }

    #[test]
    async fn actions_are_listed_page_by_page_and_by_their_subject(fixture: StoreFixture) {
        for to in ["started", "stopping", "stopped"] {
            fixture.store.actions().add(&operation(to)).await.unwrap();
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
            fixture.store.actions().add(&operation(to)).await.unwrap();
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
