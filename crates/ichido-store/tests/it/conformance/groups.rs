//! Failure groups: letters with the same error are one row, counted while they are open.
// SPEC E3, E4.

use std::collections::BTreeSet;
use std::time::Duration;

use ichido_core::failure_group::{GroupState, template};
use ichido_core::lifecycle::{Decision, Event, Reconciled};
use ichido_core::retry::Safety;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::Store;
use ichido_store::dead_letter::{DeadLetterFilter, ReplaceOutcome};
use ichido_store::failure_group::{FailureGroup, MAX_SAMPLES};
use ichido_store::message::{ClaimedMessage, DeadLetterState, Note, Settlement};
use ichido_store::testing::while_busy;
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    DAY, StoreFixture, TRAVELS_FOR, bad_request, final_failure, in_doubt, message, new_id, only, queue,
    succeeded,
};

const REQUEUE: Event = Event::Requeued { allowed: true, safety: Safety::None };
const FOLDED_AT_ONCE: u32 = 1_000;

fn note(code: ErrorCode, error: &str) -> Note {
    Note { code: Some(code), excerpt: Some(error.to_owned()), ..Note::default() }
}

fn by_olivia() -> Note {
    Note { actor: Some("olivia".to_owned()), ..Note::default() }
}

/// Folds everything. Returns how many changes there were.
async fn fold(store: &Store, at_once: u32) -> u64 {
    let mut all = 0;
    loop {
        let folded = while_busy(|| store.failure_groups().fold(at_once)).await;
        all += folded;
        if folded == 0 {
            return all;
        }
    }
}

impl StoreFixture {
    /// Folds, and lists all groups with letters.
    async fn groups(&self) -> Vec<FailureGroup> {
        fold(&self.store, FOLDED_AT_ONCE).await;
        self.store.failure_groups().list(None, 100).await.unwrap()
    }

    /// Folds, and returns the only group with letters.
    async fn group(&self) -> FailureGroup {
        only(self.groups().await)
    }

    async fn group_state(&self, id: Uuid) -> GroupState {
        fold(&self.store, FOLDED_AT_ONCE).await;
        self.store.failure_groups().get(id).await.unwrap().expect("it is there").standing.state
    }

    async fn group_count(&self, id: Uuid) -> i64 {
        fold(&self.store, FOLDED_AT_ONCE).await;
        self.store.failure_groups().get(id).await.unwrap().expect("it is there").count
    }

    /// Returns the open letters of a group.
    async fn letters_of(&self, group: Uuid) -> BTreeSet<Uuid> {
        let mut found = BTreeSet::new();
        for state in [DeadLetterState::Dead, DeadLetterState::Parked] {
            let filter = DeadLetterFilter { state, group: Some(group), ..DeadLetterFilter::default() };
            let page = self.store.dead_letters().page(&filter, None, 1_000).await.unwrap();
            found.extend(page.iter().map(|letter| letter.id));
        }
        found
    }

    /// Lets waiting messages die, each with its own note.
    async fn fail_all(&self, note: impl Fn(usize, &ClaimedMessage) -> Note) {
        let works = self.claim(5_000).await;
        let failed = works.iter().enumerate().map(|(index, work)| {
            Settlement::new(work, final_failure(work, Effect::NotDone), note(index, work))
        });
        for settled in self.store.claims().settle_all(failed.collect()).await {
            let _ = settled.unwrap();
        }
    }

    /// Enqueues one message and lets it die of this error.
    async fn die_of(&self, error: &str) -> Uuid {
        let id = self.enqueue(&Uuid::now_v7().to_string()).await;
        self.fail_all(|_, _| note(ErrorCode::BadRequest, error)).await;
        id
    }
}

both_databases! {
    #[test]
    async fn many_failures_of_three_causes_are_three_groups(fixture: StoreFixture) {
        let ids = fixture.enqueue_many(1_000).await;
        let before = fixture.store.now().await.unwrap();
        fixture
            .fail_all(|index, work| match index % 3 {
                0 => note(ErrorCode::BadRequest, &format!("order {} has no symbol \"S{index}\"", work.id)),
                1 => note(ErrorCode::Unauthorized, &format!("token {index:016x}-{index} expired at 2026-11-18T15:56:{:02}Z", index % 60)),
                _ => note(ErrorCode::BadRequest, &format!("注文番号{index}は無効です")),
            })
            .await;
        let groups = fixture.groups().await;
        let mut found: Vec<_> = groups.iter().map(|group| (group.template.as_str(), group.count)).collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [("order # has no symbol \"…\"", 334), ("token # expired at #", 333), ("注文番号#は無効です", 333)]
        );
        let mut all = BTreeSet::new();
        for group in &groups {
            assert_eq!((&group.queue, group.standing.state), (&queue(), GroupState::Open));
            assert!(before <= group.first_seen && group.first_seen <= group.last_seen);
            let letters = fixture.letters_of(group.id).await;
            assert_eq!(i64::try_from(letters.len()), Ok(group.count));
            let samples = fixture.store.failure_groups().samples(group.id).await.unwrap();
            assert_eq!(samples.len(), MAX_SAMPLES as usize);
            assert!(samples.iter().all(|sample| letters.contains(sample)));
            all.extend(letters);
        }
        assert_eq!(all, ids.into_iter().collect(), "each letter is in one group");
    }

    #[test]
    async fn letter_names_its_group_and_the_template_repeats_no_request(fixture: StoreFixture) {
        let id = fixture.die_of("account \"secret\" of bob@example.com is closed").await;
        let group = fixture.group().await;
        assert_eq!((group.template.as_str(), group.code.as_deref()), ("account \"…\" of # is closed", Some("BAD_REQUEST")));
        let letter = only(fixture.store.dead_letters().find(&[id]).await.unwrap());
        assert_eq!(letter.group, Some(group.id));
        assert_eq!(template(letter.error.as_deref().unwrap()), group.template);
        assert_eq!((group.first_seen, group.last_seen), (group.standing.since, group.standing.since));
    }

    #[test]
    async fn count_falls_with_each_way_out(fixture: StoreFixture) {
        let mut ids = fixture.enqueue_many(7).await;
        fixture.fail_all(|index, _| note(ErrorCode::BadRequest, &format!("no symbol {index}"))).await;
        let group = fixture.group().await.id;
        assert_eq!(fixture.group_count(group).await, 7);
        let letters = fixture.store.dead_letters();
        let requeued = ids.pop().unwrap();
        let _ = letters.step(&[requeued], |_, _| REQUEUE, &by_olivia()).await.unwrap();
        assert_eq!(fixture.group_count(group).await, 6, "requeued with others");
        let stepped = ids.pop().unwrap();
        let _ = fixture.step(stepped, REQUEUE).await;
        assert_eq!(fixture.group_count(group).await, 5, "requeued alone");
        let discarded = ids.pop().unwrap();
        for _ in 0..2 {
            let _ = letters.discard(&[discarded], &by_olivia()).await.unwrap();
            assert_eq!(fixture.group_count(group).await, 4, "discarded");
        }
        let replaced = letters.replace(ids.pop().unwrap(), message("other"), &by_olivia()).await.unwrap();
        assert!(matches!(replaced, ReplaceOutcome::By { .. }), "{replaced:?}");
        assert_eq!(fixture.group_count(group).await, 3, "replaced");
        let _ = letters.decide(&[ids.pop().unwrap()], Decision::Done, &by_olivia()).await.unwrap();
        let open = i64::try_from(fixture.letters_of(group).await.len()).unwrap();
        assert_eq!(fixture.group_count(group).await, open, "decided");
        let _ = fixture.step(discarded, REQUEUE).await;
        assert_eq!(fixture.group_count(group).await, open, "it was not counted any more");
        let last_seen = fixture.group().await.last_seen;
        let _ = letters.discard(&ids, &by_olivia()).await.unwrap();
        while 0 < fixture.store.messages().delete_of_identity(None, &queue(), "alice", 100).await.unwrap() {}
        let left = fixture.letters_of(group).await.len();
        let group = fixture.store.failure_groups().get(group).await.unwrap().unwrap();
        fold(&fixture.store, FOLDED_AT_ONCE).await;
        assert_eq!(fixture.group_count(group.id).await, i64::try_from(left).unwrap(), "pruned");
        assert_eq!(group.last_seen, last_seen, "leaving is not a failure");
    }

    #[test]
    async fn parked_message_leaves_its_group_once_it_is_decided(fixture: StoreFixture) {
        for (key, decision, left) in
            [("k1", Decision::Done, 0), ("k2", Decision::NotDone, 0), ("k3", Decision::GiveUp, 1)]
        {
            fixture.enqueue(key).await;
            let work = fixture.claim_one().await;
            let error = note(ErrorCode::NetworkTimeout, "no response after 30 s");
            let _ = fixture.settle_with_note(&work, in_doubt(&work), error).await;
            let group = fixture.group().await;
            assert_eq!(group.count, 1, "{decision:?}");
            fixture.pass(TRAVELS_FOR);
            let _ = fixture.store.dead_letters().decide(&[work.id], decision, &by_olivia()).await.unwrap();
            assert_eq!(fixture.group_count(group.id).await, left, "{decision:?}");
            assert_eq!(fixture.store.failure_groups().get(group.id).await.unwrap().unwrap().last_seen, group.last_seen);
            for work in fixture.claim(10).await {
                fixture.send(&work).await;
            }
        }
    }

    #[test]
    async fn late_success_and_late_knowledge_are_no_new_failures(fixture: StoreFixture) {
        let proven = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle_with_note(&work, final_failure(&work, Effect::Unknown), bad_request()).await;
        let group = fixture.group().await;
        fixture.pass(TRAVELS_FOR);
        let known = Event::Reconciled(Reconciled::NotDone { due: Timestamp::EPOCH });
        let _ = fixture.step(proven, known).await;
        assert_eq!(fixture.group().await, group, "more is known about it, and it did not fail again");
        let (parked, work) = fixture.parked("k2").await;
        let letter = only(fixture.store.dead_letters().find(&[parked]).await.unwrap());
        let group = letter.group.expect("a parked message has a group");
        assert_eq!(fixture.group_count(group).await, 1);
        let _ = fixture.settle(&work, succeeded(&work)).await;
        assert_eq!(fixture.status(parked).await, "sent");
        assert_eq!(fixture.group_count(group).await, 0);
    }

    #[test]
    async fn message_that_fails_again_counts_once_and_is_seen_again(fixture: StoreFixture) {
        let id = fixture.die_of("no symbol 1").await;
        let first = fixture.group().await;
        fixture.pass(TRAVELS_FOR);
        let _ = fixture.step(id, REQUEUE).await;
        fixture.fail_all(|_, _| note(ErrorCode::BadRequest, "no symbol 2")).await;
        let second = fixture.group().await;
        assert_eq!((second.id, second.count, second.first_seen), (first.id, 1, first.first_seen));
        assert!(first.last_seen < second.last_seen);
    }

    #[test]
    async fn sent_and_retried_messages_write_nothing_about_groups(fixture: StoreFixture) {
        fixture.enqueue_many(3).await;
        for (index, work) in fixture.claim(3).await.iter().enumerate() {
            let event = if index == 0 { crate::fixture::will_retry(work) } else { succeeded(work) };
            let _ = fixture.settle_with_note(work, event, bad_request()).await;
        }
        assert_eq!(fold(&fixture.store, FOLDED_AT_ONCE).await, 0);
    }

    #[test]
    async fn nodes_that_fold_at_once_fold_each_change_once(fixture: StoreFixture) {
        const CHANGES: u64 = 60;
        for number in 0..CHANGES / 2 {
            let id = fixture.die_of(if number % 2 == 0 { "no symbol" } else { "no money" }).await;
            let _ = fixture.store.dead_letters().discard(&[id], &by_olivia()).await.unwrap();
        }
        let last = fixture.die_of("no money").await;
        let other = fixture.another_node().await;
        let (here, there) = tokio::join!(fold(&fixture.store, 7), fold(&other, 3));
        assert_eq!(here + there, CHANGES + 1);
        let group = fixture.group().await;
        assert_eq!((group.template.as_str(), group.count), ("no money", 1));
        assert_eq!(fixture.store.failure_groups().samples(group.id).await.unwrap(), [last]);
        assert_eq!(fold(&fixture.store, FOLDED_AT_ONCE).await, 0, "there is nothing left");
        assert_eq!(fixture.group().await, group);
    }

    #[test]
    async fn group_comes_back_when_it_fails_after_it_was_resolved(fixture: StoreFixture) {
        fixture.die_of("no symbol 1").await;
        let id = fixture.group().await.id;
        let groups = fixture.store.failure_groups();
        assert_eq!(groups.acknowledge(id, "olivia").await.unwrap().unwrap().standing.state, GroupState::Acknowledged);
        fixture.die_of("no symbol 2").await;
        assert_eq!(fixture.group_state(id).await, GroupState::Acknowledged, "the person who works on it knows");
        fixture.die_of("no symbol 3").await;
        let resolved = groups.resolve(id, "oscar").await.unwrap().unwrap();
        assert_eq!((resolved.standing.state, resolved.changed_by.as_deref()), (GroupState::Resolved, Some("oscar")));
        assert_eq!(fixture.group_state(id).await, GroupState::Resolved, "that failure was before");
        assert_eq!(groups.resolve(id, "olivia").await.unwrap().unwrap().changed_by.as_deref(), Some("oscar"));
        fixture.pass(Duration::from_secs(1));
        fixture.die_of("no symbol 4").await;
        let back = fixture.group().await;
        assert_eq!((back.standing.state, back.count), (GroupState::CameBack, 4));
        assert_eq!(back.standing.since, back.last_seen);
        assert_eq!(groups.acknowledge(id, "olivia").await.unwrap().unwrap().standing.state, GroupState::Acknowledged);
        let actions = fixture.store.actions().of(id).await.unwrap();
        let recorded: Vec<_> = actions
            .iter()
            .map(|row| (row.action.kind.as_str(), row.action.from.as_str(), row.action.actor.as_deref()))
            .collect();
        assert_eq!(
            recorded,
            [
                ("group_acknowledged", "open", Some("olivia")),
                ("group_resolved", "acknowledged", Some("oscar")),
                ("group_acknowledged", "came_back", Some("olivia")),
            ]
        );
        for unknown in [groups.resolve(Uuid::nil(), "olivia").await, groups.acknowledge(Uuid::nil(), "o").await] {
            assert_eq!(unknown.unwrap(), None);
        }
    }

    #[test]
    async fn pages_list_groups_that_need_a_person_first_and_leave_none_out(fixture: StoreFixture) {
        for letter in 'a'..='l' {
            fixture.die_of(&format!("cause {letter}")).await;
            fixture.pass(Duration::from_secs(1));
        }
        let by_name = |name: &str, groups: &[FailureGroup]| {
            groups.iter().find(|group| group.template == format!("cause {name}")).expect("it is listed").id
        };
        let all = fixture.groups().await;
        let groups = fixture.store.failure_groups();
        groups.resolve(by_name("l", &all), "olivia").await.unwrap();
        groups.acknowledge(by_name("k", &all), "olivia").await.unwrap();
        groups.resolve(by_name("a", &all), "olivia").await.unwrap();
        fixture.pass(Duration::from_secs(1));
        fixture.die_of("cause a").await;
        fold(&fixture.store, FOLDED_AT_ONCE).await;
        let (mut listed, mut after) = (String::new(), None);
        loop {
            let page = groups.list(after, 5).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.position());
            listed.extend(page.iter().filter_map(|group| group.template.chars().last()));
        }
        assert_eq!(listed, "ajihgfedcbkl");
    }

    #[test]
    async fn group_without_letters_is_not_listed_and_is_deleted_later(fixture: StoreFixture) {
        let (gone, stays) = (fixture.die_of("no symbol").await, fixture.die_of("no money").await);
        let of = |groups: &[FailureGroup], template: &str| {
            groups.iter().find(|group| group.template == template).expect("it is listed").id
        };
        let groups = fixture.groups().await;
        let (empty, full) = (of(&groups, "no symbol"), of(&groups, "no money"));
        let _ = fixture.step(gone, REQUEUE).await;
        assert_eq!(fixture.group().await.id, full);
        assert_eq!(fixture.group_count(empty).await, 0);
        fixture.pass(DAY);
        let before = |ago: Duration| {
            let store = fixture.store.clone();
            async move {
                let ago = i64::try_from(ago.as_micros()).unwrap();
                Timestamp::from_micros(store.now().await.unwrap().as_micros() - ago)
            }
        };
        let groups = fixture.store.failure_groups();
        assert_eq!(groups.delete_empty(before(DAY * 2).await, 10).await.unwrap(), 0);
        assert_eq!(groups.delete_empty(before(Duration::from_hours(1)).await, 10).await.unwrap(), 1);
        assert_eq!(groups.get(empty).await.unwrap(), None);
        assert_eq!(fixture.letters_of(full).await, BTreeSet::from([stays]));
    }

    #[test]
    async fn one_error_in_two_queues_is_two_groups_with_one_fingerprint(fixture: StoreFixture) {
        fixture.die_of("no symbol").await;
        let mail = crate::fixture::queue_named("mail");
        let new = ichido_store::message::NewMessage { queue: mail.clone(), ..message("m1") };
        new_id(fixture.put(new).await);
        let work = only(fixture.store.claims().claim(&mail, crate::fixture::many(1), crate::fixture::terms()).await.unwrap());
        let _ = fixture.settle_with_note(&work, final_failure(&work, Effect::NotDone), note(ErrorCode::BadRequest, "no symbol")).await;
        let groups = fixture.groups().await;
        assert_eq!(groups.len(), 2);
        assert_ne!(groups[0].id, groups[1].id);
        assert_eq!(groups[0].fingerprint(), groups[1].fingerprint());
    }
}
