//! The audit trail for people: newest first, by actor, kind and subject, with the seal of each entry.
// SPEC F5.

use ichido_core::audit::entry::EntryId;
use ichido_core::lifecycle::Event;
use ichido_core::retry::Safety;
use ichido_core::verdict::Effect;
use ichido_store::action::AuditAction;
use ichido_store::audit::{AuditFilter, AuditPage, SealState};
use ichido_store::message::limits::MAX_PAGE;
use uuid::Uuid;

use super::audit::{key, seal, write};
use crate::both_databases;
use crate::fixture::{StoreFixture, queue};

const REQUEUE: Event = Event::Requeued { allowed: true, safety: Safety::None };

fn of_actor(actor: &str) -> AuditFilter {
    AuditFilter { actor: Some(actor.to_owned()), ..AuditFilter::default() }
}

fn of_kind(kind: &str) -> AuditFilter {
    AuditFilter { kind: Some(kind.to_owned()), ..AuditFilter::default() }
}

impl StoreFixture {
    async fn audit_page(&self, filter: &AuditFilter, before: Option<EntryId>, limit: u32) -> AuditPage {
        self.store.audit().list(filter, before, limit).await.unwrap()
    }

    /// Lists all entries that match, two on a page: kind and actor of each.
    async fn audit(&self, filter: &AuditFilter) -> Vec<(String, Option<String>)> {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = self.audit_page(filter, before, 2).await;
            assert!(page.entries.len() <= 2);
            found.extend(page.entries.into_iter().map(|listed| (listed.entry.kind, listed.entry.actor)));
            before = page.next;
            if before.is_none() {
                return found;
            }
        }
    }

    async fn seal_states(&self) -> Vec<SealState> {
        self.audit_page(&AuditFilter::default(), None, 100)
            .await
            .entries
            .iter()
            .map(|listed| listed.seal)
            .collect()
    }

    /// Pauses and resumes a queue, and requeues a dead letter.
    async fn act(&self) -> Uuid {
        self.store.queues().pause(&queue(), true, Some("olivia")).await.unwrap();
        self.store.queues().pause(&queue(), false, Some("pete")).await.unwrap();
        let id = self.dead("k1", Effect::NotDone).await;
        let _ = self.step(id, REQUEUE).await;
        id
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
    pairs.iter().map(|(kind, actor)| ((*kind).to_owned(), Some((*actor).to_owned()))).collect()
}

both_databases! {
    /// The transitions of workers are in the history of their message, and are not listed.
    #[test]
    async fn actions_on_queues_and_messages_are_one_list_newest_first(fixture: StoreFixture) {
        let id = fixture.act().await;
        let all = fixture.audit(&AuditFilter::default()).await;
        assert_eq!(all, pairs(&[("requeued", "olivia"), ("resumed", "pete"), ("paused", "olivia")]));
        let first = fixture.audit_page(&AuditFilter::default(), None, 1).await.entries.remove(0).entry;
        assert_eq!((first.from.as_str(), first.to.as_str(), first.id.message), ("dead", "queued", id));
        assert_eq!(first.subject.unwrap().queue, "orders");
    }

    #[test]
    async fn audit_is_listed_by_actor_kind_and_subject_together(fixture: StoreFixture) {
        let id = fixture.act().await;
        let subject = |subject| AuditFilter { subject: Some(subject), ..AuditFilter::default() };
        assert_eq!(fixture.audit(&of_actor("olivia")).await, pairs(&[("requeued", "olivia"), ("paused", "olivia")]));
        assert_eq!(fixture.audit(&of_kind("resumed")).await, pairs(&[("resumed", "pete")]));
        assert_eq!(fixture.audit(&subject(id)).await, pairs(&[("requeued", "olivia")]));
        let paused = AuditFilter { kind: Some("paused".to_owned()), ..of_actor("olivia") };
        assert_eq!(fixture.audit(&paused).await, pairs(&[("paused", "olivia")]));
        let paused = fixture.audit_page(&paused, None, 1).await.entries.remove(0).entry;
        let of_queue = subject(paused.id.message);
        assert_eq!(fixture.audit(&of_queue).await, pairs(&[("resumed", "pete"), ("paused", "olivia")]));
        for nothing in [
            of_actor("nobody"),
            of_kind("claimed"),
            AuditFilter { kind: Some("resumed".to_owned()), ..of_actor("olivia") },
            AuditFilter { kind: Some("claimed".to_owned()), ..subject(id) },
        ] {
            assert_eq!(fixture.audit(&nothing).await, [], "{nothing:?}");
        }
    }

    #[test]
    async fn audit_list_names_the_seal_of_each_entry(fixture: StoreFixture) {
        fixture.act().await;
        assert_eq!(fixture.seal_states().await, [SealState::Waiting; 3]);
        seal(&fixture.store, 100).await;
        let first = SealState::Sealed { seal: Some(1) };
        assert_eq!(fixture.seal_states().await, [first; 3]);
        fixture.store.queues().pause(&queue(), true, Some("pete")).await.unwrap();
        assert_eq!(fixture.seal_states().await, [SealState::Waiting, first, first, first]);
        seal(&fixture.store, 100).await;
        let second = SealState::Sealed { seal: Some(2) };
        assert_eq!(fixture.seal_states().await, [second, first, first, first]);
        let report = fixture.store.audit().verify(Some(&key()), None).await.unwrap();
        assert!(report.is_whole(), "{report:?}");
    }

    /// An earlier version of this program does not note the seal on SQLite.
    #[test]
    async fn entry_is_sealed_even_if_its_seal_is_not_noted(fixture: StoreFixture) {
        fixture.store.queues().pause(&queue(), true, Some("olivia")).await.unwrap();
        seal(&fixture.store, 100).await;
        if fixture.store.is_sqlite() {
            write(&fixture, "UPDATE {t}events SET seal = NULL").await;
            assert_eq!(fixture.seal_states().await, [SealState::Sealed { seal: None }]);
        }
    }

    #[test]
    async fn rare_entry_is_found_beyond_the_entries_that_one_page_reads(fixture: StoreFixture) {
        let rare = AuditAction {
            subject: Uuid::from_u128(7),
            about: "letters".to_owned(),
            kind: "rare".to_owned(),
            from: "none".to_owned(),
            to: "started".to_owned(),
            actor: Some("olivia".to_owned()),
            detail: None,
        };
        fixture.store.actions().record(&rare).await.unwrap();
        let usual = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= {MAX_PAGE}) \
             INSERT INTO {{t}}events (message_id, fence, step, at, from_state, to_state, kind, attempts, deaths, effect, actor, about) \
             SELECT e.message_id, e.fence + n.i, 0, e.at, e.from_state, e.to_state, 'usual', 0, 0, e.effect, e.actor, e.about \
             FROM {{t}}events e CROSS JOIN n"
        );
        assert_eq!(write(&fixture, &usual).await, u64::from(MAX_PAGE) + 1);
        let rare = AuditFilter { kind: Some("rare".to_owned()), ..of_actor("olivia") };
        let first = fixture.audit_page(&rare, None, 10).await;
        assert!(first.entries.is_empty(), "one page reads no more");
        assert_eq!(fixture.audit(&rare).await, pairs(&[("rare", "olivia")]));
        assert_eq!(fixture.audit_page(&of_kind("rare"), None, 10).await.entries.len(), 1, "an index finds it at once");
    }
}
