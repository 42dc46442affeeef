//! Dead letters: filtering, applying events to many, closing, replacing.
// SPEC D17, E3, E4, F2.

use ichido_core::lifecycle::{Decision, Event, Reconciled, State, StateName, StepRefusal};
use ichido_core::retry::Safety;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::Store;
use ichido_store::dead_letter::{
    DeadLetterFilter, DeadLetterRow, DeadLetterStep, Disposition, ReplaceOutcome,
};
use ichido_store::message::{
    DeadLetterState, NewMessage, Note, QueueName, Settlement, StepResult, Transition, limits,
};
use ichido_store::testing::while_busy;
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    DAY, StoreFixture, TRAVELS_FOR, bad_request, final_failure, in_doubt, key, many, message, new_id, only,
    queue, queue_named, terms,
};

const REQUEUE: Event = Event::Requeued { allowed: true, safety: Safety::None };

fn by_olivia() -> Note {
    Note { actor: Some("olivia".to_owned()), excerpt: Some("known".to_owned()), ..Note::default() }
}

fn name(stepped: DeadLetterStep) -> &'static str {
    match stepped {
        DeadLetterStep::Now(state) => state.name(),
        other => panic!("{other:?}"),
    }
}

fn of_identity(identity: &str) -> DeadLetterFilter {
    DeadLetterFilter { identity: Some(identity.to_owned()), ..DeadLetterFilter::default() }
}

/// Requeues letters. Retries if the store is busy because the other caller holds the locks too long.
async fn take_all(store: &Store, ids: &[Uuid]) -> Vec<DeadLetterStep> {
    let note = by_olivia();
    while_busy(|| store.dead_letters().step(ids, |_, _| REQUEUE, &note)).await
}

impl StoreFixture {
    async fn page(&self, filter: &DeadLetterFilter) -> Vec<Uuid> {
        let page = self.store.dead_letters().page(filter, None, 100).await.unwrap();
        page.into_iter().map(|letter| letter.id).collect()
    }

    async fn take(&self, ids: &[Uuid], event: Event) -> Vec<DeadLetterStep> {
        self.store.dead_letters().step(ids, |_, _| event, &by_olivia()).await.unwrap()
    }

    /// Lets a message of its own queue and identity die of an error.
    async fn dead_of(&self, queue: &QueueName, identity: &str, code: ErrorCode, text: &str) -> Uuid {
        let key = key(&Uuid::now_v7().to_string());
        let new = NewMessage::new(queue.clone(), identity, key, b"request".to_vec());
        let id = new_id(self.put(new).await);
        let work = only(self.store.claims().claim(queue, many(10), terms()).await.unwrap());
        let note = Note { code: Some(code), excerpt: Some(text.to_owned()), ..Note::default() };
        let settlement = Settlement::new(&work, final_failure(&work, Effect::NotDone), note);
        let _ = self.store.claims().settle(settlement).await.unwrap();
        id
    }

    /// Lets many messages die, in as many claims as needed.
    async fn many_dead(&self, count: usize) -> Vec<Uuid> {
        let ids = self.enqueue_many(count).await;
        let mut left = count;
        while 0 < left {
            let works = self.claim(limits::MAX_CLAIM).await;
            left -= works.len();
            let settlements = works
                .iter()
                .map(|work| Settlement::new(work, final_failure(work, Effect::NotDone), bad_request()));
            for settled in self.store.claims().settle_all(settlements.collect()).await {
                let _ = settled.unwrap();
            }
        }
        ids
    }
}

both_databases! {
    #[test]
    async fn oldest_open_letter_is_found_until_closed(fixture: StoreFixture) {
        let oldest = async |state, queue: &QueueName| fixture.store.dead_letters().oldest(state, queue).await.unwrap();
        assert_eq!(oldest(DeadLetterState::Dead, &queue()).await, None);
        let mut dead = Vec::new();
        for text in ["first", "second"] {
            let id = fixture.dead_of(&queue(), "ann", ErrorCode::BadRequest, text).await;
            dead.push(fixture.store.dead_letters().find(&[id]).await.unwrap().remove(0));
            fixture.pass(TRAVELS_FOR);
        }
        assert!(dead[0].since < dead[1].since);
        assert_eq!(oldest(DeadLetterState::Dead, &queue()).await, Some(dead[0].since));
        fixture.take(&[dead[0].id], Event::Discarded).await;
        assert_eq!(oldest(DeadLetterState::Dead, &queue()).await, Some(dead[1].since));
        assert_eq!(oldest(DeadLetterState::Parked, &queue()).await, None);
        assert_eq!(oldest(DeadLetterState::Dead, &queue_named("other")).await, None);
    }

    #[test]
    async fn letters_are_found_by_queue_error_identity_text_effect_and_time(fixture: StoreFixture) {
        let (mail, orders) = (queue_named("mail"), queue());
        let first = fixture.dead_of(&mail, "ann", ErrorCode::BadRequest, "no such symbol").await;
        fixture.pass(TRAVELS_FOR);
        let between = fixture.store.now().await.unwrap();
        let second = fixture.dead_of(&orders, "bob", ErrorCode::Unauthorized, "the token is old").await;
        let (parked, _) = fixture.parked("k1").await;
        let all = DeadLetterFilter::default();
        assert_eq!(fixture.page(&all).await, [second, first], "the last to die is the first listed");
        let filters = [
            (DeadLetterFilter { queue: Some(mail), ..all.clone() }, first),
            (DeadLetterFilter { code: Some(ErrorCode::Unauthorized), ..all.clone() }, second),
            (of_identity("ann"), first),
            (DeadLetterFilter { text: Some("token".to_owned()), ..all.clone() }, second),
            (DeadLetterFilter { since_from: Some(between), ..all.clone() }, second),
            (DeadLetterFilter { since_before: Some(between), ..all.clone() }, first),
            (DeadLetterFilter { state: DeadLetterState::Parked, ..all.clone() }, parked),
        ];
        for (filter, expected) in filters {
            assert_eq!(fixture.page(&filter).await, [expected], "{filter:?}");
        }
        let of_unknown_effect = DeadLetterFilter { effect: Some(Effect::Unknown), ..all.clone() };
        assert!(fixture.page(&of_unknown_effect).await.is_empty());
        let cased = DeadLetterFilter { text: Some("TOKEN".to_owned()), ..all };
        assert!(fixture.page(&cased).await.is_empty());
    }

    #[test]
    async fn pages_of_letters_leave_none_out_and_name_none_twice(fixture: StoreFixture) {
        let mut expected = fixture.many_dead(25).await;
        let mut found: Vec<Uuid> = Vec::new();
        let mut after = None;
        loop {
            let page = fixture.store.dead_letters().page(&DeadLetterFilter::default(), after, 4).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some((last.since, last.id));
            found.extend(page.iter().map(|letter| letter.id));
        }
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    /// The limit is one of letters that match, so a rare one is found behind all others.
    #[test]
    async fn letters_are_counted_up_to_a_limit(fixture: StoreFixture) {
        fixture.dead_of(&queue(), "ann", ErrorCode::Unauthorized, "rare").await;
        fixture.pass(TRAVELS_FOR);
        fixture.many_dead(6).await;
        let now = fixture.store.now().await.unwrap();
        let counted = async |filter: &DeadLetterFilter, max_counted| {
            let found = fixture.store.dead_letters().classes(filter, &[], now, max_counted).await.unwrap();
            (found.classes.iter().map(|class| class.count).sum::<u64>(), found.has_more)
        };
        let all = DeadLetterFilter::default();
        for (max_counted, expected) in [(8, (7, false)), (7, (7, false)), (6, (6, true)), (1, (1, true)), (0, (0, true))] {
            assert_eq!(counted(&all, max_counted).await, expected, "at most {max_counted}");
        }
        let of_queue = DeadLetterFilter { queue: Some(queue()), ..all.clone() };
        assert_eq!(counted(&of_queue, 3).await, (3, true));
        for rare in [
            DeadLetterFilter { text: Some("rare".to_owned()), ..all.clone() },
            DeadLetterFilter { code: Some(ErrorCode::Unauthorized), ..all.clone() },
            of_identity("ann"),
        ] {
            assert_eq!(counted(&rare, 1).await, (1, false), "{rare:?}");
        }
    }

    #[test]
    async fn letter_shows_every_field(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::NotDone).await;
        let letter = only(fixture.store.dead_letters().find(&[id, Uuid::nil()]).await.unwrap());
        assert_eq!((letter.id, letter.queue.clone(), letter.identity.as_str()), (id, queue(), "alice"));
        assert_eq!((letter.code.as_deref(), letter.error.as_deref()), (Some("BAD_REQUEST"), Some("no such symbol")));
        assert_eq!((letter.history.attempts, letter.history.max_attempts.get()), (1, 3));
        assert_eq!((letter.state, letter.disposition, letter.effect), (DeadLetterState::Dead, Disposition::Open, Effect::NotDone));
        assert!(letter.created_at <= letter.since);
        assert_eq!(letter.request_bytes, 2);
    }

    #[test]
    async fn many_letters_are_requeued_at_once_with_count_zero_and_history_kept(fixture: StoreFixture) {
        let ids = fixture.many_dead(30).await;
        let stepped = fixture.take(&ids, REQUEUE).await;
        assert!(stepped.iter().all(|stepped| name(*stepped) == "queued"), "{stepped:?}");
        fixture.assert_counts(&[("queued", 30)]).await;
        for work in fixture.claim(100).await {
            assert_eq!(work.history.attempts, 1, "the count is back at 0, and this is the first attempt");
            fixture.send(&work).await;
        }
        let steps = fixture.store.messages().transitions(ids[7]).await.unwrap();
        let kinds: Vec<&str> = steps.iter().map(|step| step.kind.as_str()).collect();
        assert_eq!(kinds, ["claimed", "failed", "requeued", "claimed", "succeeded"]);
        assert_eq!(steps[2].actor.as_deref(), Some("olivia"));
    }

    #[test]
    async fn a_requeued_message_waits_since_its_requeue(fixture: StoreFixture) {
        let (mail, first) = (queue_named("mail"), fixture.dead("k1", Effect::NotDone).await);
        let second = fixture.dead_of(&mail, "alice", ErrorCode::BadRequest, "refused").await;
        fixture.pass(DAY);
        let before = fixture.store.now().await.unwrap();
        let _ = fixture.step(first, REQUEUE).await;
        let _ = fixture.take(&[second], REQUEUE).await;
        let mut of_each = fixture.store.queues().oldest_of_each().await.unwrap();
        of_each.sort();
        for (id, queue, (name, since)) in [(second, mail, of_each.remove(0)), (first, queue(), of_each.remove(0))] {
            let requeued = fixture.store.messages().transitions(id).await.unwrap().pop().unwrap();
            assert_eq!((requeued.kind.as_str(), before <= requeued.at), ("requeued", true));
            assert_eq!(fixture.row(id).await.next_attempt, Some(requeued.at), "it is due from the requeue");
            assert_eq!(fixture.store.queues().oldest(&queue).await.unwrap(), Some(requeued.at));
            assert_eq!((name.as_str(), since), (queue.as_str(), requeued.at));
        }
    }

    #[test]
    async fn each_letter_of_a_batch_is_checked_separately(fixture: StoreFixture) {
        let well = fixture.dead("k1", Effect::NotDone).await;
        let unknown = fixture.dead("k2", Effect::Unknown).await;
        let (parked, _) = fixture.parked("k3").await;
        let waiting = fixture.enqueue("k4").await;
        let stepped = fixture.take(&[well, unknown, parked, waiting], REQUEUE).await;
        assert_eq!(name(stepped[0]), "queued");
        for unsafe_to_repeat in &stepped[1..=2] {
            assert_eq!(*unsafe_to_repeat, DeadLetterStep::Refused(StepRefusal::CouldDoItTwice));
        }
        assert_eq!(stepped[3], DeadLetterStep::NoLetter);
        fixture.assert_counts(&[("dead", 1), ("parked", 1), ("queued", 2)]).await;
    }

    #[test]
    async fn letter_named_twice_is_moved_once(fixture: StoreFixture) {
        let ids = fixture.many_dead(2).await;
        let twice = [ids[0], ids[1], ids[0]];
        let stepped = take_all(&fixture.store, &twice).await;
        assert_eq!(stepped.len(), 3);
        assert_eq!(stepped[0], stepped[2], "both get the same result");
        fixture.assert_counts(&[("queued", 2)]).await;
        let requeues = |step: &Transition| step.kind == "requeued";
        let transitions_seen = fixture.store.messages().transitions(ids[0]).await.unwrap();
        assert_eq!(transitions_seen.iter().filter(|step| requeues(step)).count(), 1, "{transitions_seen:?}");
    }

    #[test]
    async fn two_operators_with_the_same_letters_do_not_both_get_them(fixture: StoreFixture) {
        let ids = fixture.many_dead(200).await;
        let backwards: Vec<Uuid> = ids.iter().rev().copied().collect();
        let other = fixture.another_node().await;
        let (here, there) = tokio::join!(take_all(&fixture.store, &ids), take_all(&other, &backwards));
        let taken = |stepped: Vec<DeadLetterStep>| {
            stepped.iter().filter(|stepped| matches!(stepped, DeadLetterStep::Now(_))).count()
        };
        assert_eq!(taken(here) + taken(there), 200);
        fixture.assert_counts(&[("queued", 200)]).await;
    }

    #[test]
    async fn a_discarded_letter_stays_dead_and_leaves_the_list_and_the_counts(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::Unknown).await;
        let before = only(fixture.store.dead_letters().find(&[id]).await.unwrap());
        fixture.pass(TRAVELS_FOR);
        assert_eq!(name(fixture.take(&[id], Event::Discarded).await[0]), "dead");
        assert!(fixture.page(&DeadLetterFilter::default()).await.is_empty());
        assert!(fixture.store.dead_letters().list(DeadLetterState::Dead, None, None, 10).await.unwrap().is_empty());
        fixture.assert_counts(&[]).await;
        assert_eq!(fixture.status(id).await, "dead");
        let discarded = DeadLetterFilter { disposition: Disposition::Discarded, ..DeadLetterFilter::default() };
        assert_eq!(fixture.page(&discarded).await, [id]);
        let after = only(fixture.store.dead_letters().find(&[id]).await.unwrap());
        assert_eq!(after, DeadLetterRow { disposition: Disposition::Discarded, ..before });
        let last = fixture.store.messages().transitions(id).await.unwrap().pop().unwrap();
        assert_eq!((last.kind.as_str(), last.from, last.to), ("discarded", StateName::Dead, StateName::Dead));
        assert_eq!((last.actor.as_deref(), last.excerpt.as_deref()), (Some("olivia"), Some("known")));
        assert_eq!(fixture.row(id).await.last_error_text.as_deref(), Some("no such symbol"));
    }

    #[test]
    async fn repeated_discard_is_audited_once(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::NotDone).await;
        for _ in 0..2 {
            assert_eq!(name(fixture.take(&[id], Event::Discarded).await[0]), "dead");
        }
        assert_eq!(fixture.steps(id).await, ["queued>sending", "sending>dead", "dead>dead"]);
        fixture.assert_counts(&[]).await;
    }

    #[test]
    async fn discarded_letter_can_be_requeued(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::NotDone).await;
        fixture.take(&[id], Event::Discarded).await;
        assert_eq!(name(fixture.take(&[id], REQUEUE).await[0]), "queued");
        fixture.assert_counts(&[("queued", 1)]).await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle_with_note(&work, final_failure(&work, Effect::NotDone), bad_request()).await;
        fixture.assert_counts(&[("dead", 1)]).await;
        assert_eq!(fixture.page(&DeadLetterFilter::default()).await, [id], "it died again, and waits again");
        fixture.take(&[id], Event::Discarded).await;
        let stepped = fixture.step(id, REQUEUE).await;
        assert!(matches!(stepped, StepResult::Now(State::Queued { .. })), "{stepped:?}");
        fixture.assert_counts(&[("queued", 1)]).await;
    }

    #[test]
    async fn late_result_does_not_reopen_a_discarded_letter(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::Unknown).await;
        fixture.take(&[id], Event::Discarded).await;
        fixture.pass(TRAVELS_FOR);
        let learnt = fixture.step(id, Event::Reconciled(Reconciled::NotDone { due: Timestamp::EPOCH })).await;
        assert!(matches!(learnt, StepResult::Now(State::Dead { effect: Effect::NotDone, .. })));
        let letter = only(fixture.store.dead_letters().find(&[id]).await.unwrap());
        assert_eq!((letter.disposition, letter.effect), (Disposition::Discarded, Effect::NotDone));
        fixture.assert_counts(&[]).await;
    }

    #[test]
    async fn a_parked_letter_is_decided_and_not_discarded(fixture: StoreFixture) {
        let (id, _) = fixture.parked("k1").await;
        assert_eq!(fixture.take(&[id], Event::Discarded).await, [DeadLetterStep::Refused(StepRefusal::WrongState)]);
        let give_up = Event::Decided(Decision::GiveUp);
        assert_eq!(fixture.take(&[id], give_up).await, [DeadLetterStep::Refused(StepRefusal::TooEarly)]);
        fixture.pass(TRAVELS_FOR);
        assert_eq!(name(fixture.take(&[id], give_up).await[0]), "dead");
        fixture.assert_counts(&[("dead", 1)]).await;
    }

    #[test]
    async fn a_decision_keeps_the_error_that_led_to_it(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let note = Note { code: Some(ErrorCode::NetworkTimeout), excerpt: Some("reset".to_owned()), ..Note::default() };
        let _ = fixture.settle_with_note(&work, in_doubt(&work), note).await;
        fixture.pass(TRAVELS_FOR);
        fixture.take(&[work.id], Event::Decided(Decision::GiveUp)).await;
        let letter = only(fixture.store.dead_letters().find(&[work.id]).await.unwrap());
        assert_eq!((letter.code.as_deref(), letter.error.as_deref()), (Some("NETWORK_TIMEOUT"), Some("reset")));
    }

    #[test]
    async fn a_message_made_from_a_dead_one_and_the_dead_one_point_to_each_other(fixture: StoreFixture) {
        let old = fixture.dead("k1", Effect::NotDone).await;
        let replaced = fixture.store.dead_letters().replace(old, message("k2"), &by_olivia()).await.unwrap();
        let ReplaceOutcome::By { id, effect: Effect::NotDone } = replaced else { panic!("{replaced:?}") };
        assert_eq!(fixture.row(id).await.replacement_of, Some(old));
        let last = fixture.store.messages().transitions(old).await.unwrap().pop().unwrap();
        assert_eq!((last.kind.as_str(), last.actor.as_deref()), ("replaced", Some("olivia")));
        assert_eq!(last.receipt, Some(id.to_string()));
        fixture.assert_counts(&[("queued", 1)]).await;
        assert!(fixture.page(&DeadLetterFilter::default()).await.is_empty());
        assert_eq!(fixture.claim_one().await.id, id);
    }

    #[test]
    async fn a_replaced_letter_is_neither_requeued_nor_replaced_again(fixture: StoreFixture) {
        let old = fixture.dead("k1", Effect::NotDone).await;
        let _ = fixture.store.dead_letters().replace(old, message("k2"), &by_olivia()).await.unwrap();
        assert_eq!(fixture.take(&[old], REQUEUE).await, [DeadLetterStep::Refused(StepRefusal::HasSuccessor)]);
        assert_eq!(fixture.step(old, REQUEUE).await, StepResult::Refused(StepRefusal::HasSuccessor));
        // Nor discarded: it could then be requeued beside the new one.
        assert_eq!(fixture.take(&[old], Event::Discarded).await, [DeadLetterStep::Refused(StepRefusal::HasSuccessor)]);
        assert_eq!(fixture.step(old, Event::Discarded).await, StepResult::Refused(StepRefusal::HasSuccessor));
        assert_eq!(fixture.step(old, REQUEUE).await, StepResult::Refused(StepRefusal::HasSuccessor));
        let again = fixture.store.dead_letters().replace(old, message("k3"), &by_olivia()).await.unwrap();
        assert_eq!(again, ReplaceOutcome::Refused(StepRefusal::HasSuccessor));
        fixture.assert_counts(&[("queued", 1)]).await;
    }

    #[test]
    async fn letter_with_unknown_effect_is_not_replaced(fixture: StoreFixture) {
        let old = fixture.dead("k1", Effect::Unknown).await;
        let refused = fixture.store.dead_letters().replace(old, message("k2"), &by_olivia()).await.unwrap();
        assert_eq!(refused, ReplaceOutcome::Refused(StepRefusal::CouldDoItTwice));
        let (parked, _) = fixture.parked("k3").await;
        let refused = fixture.store.dead_letters().replace(parked, message("k4"), &by_olivia()).await.unwrap();
        assert_eq!(refused, ReplaceOutcome::Refused(StepRefusal::WrongState));
        fixture.assert_counts(&[("dead", 1), ("parked", 1)]).await;
        assert_eq!(fixture.steps(old).await.len(), 2, "nothing was written");
    }

    #[test]
    async fn a_letter_is_not_replaced_under_a_key_that_was_used(fixture: StoreFixture) {
        let old = fixture.dead("k1", Effect::NotDone).await;
        let refused = fixture.store.dead_letters().replace(old, message("k1"), &by_olivia()).await.unwrap();
        assert_eq!(refused, ReplaceOutcome::KeyUsed { id: old });
        let letter = only(fixture.store.dead_letters().find(&[old]).await.unwrap());
        assert_eq!(letter.disposition, Disposition::Open);
        assert_eq!(fixture.steps(old).await.len(), 2, "nothing was written");
        let missing = fixture.store.dead_letters().replace(Uuid::nil(), message("k9"), &by_olivia()).await.unwrap();
        assert_eq!(missing, ReplaceOutcome::NoLetter);
    }

    #[test]
    async fn stages_of_many_messages_are_read_at_once(fixture: StoreFixture) {
        let dead = fixture.dead("k1", Effect::NotDone).await;
        let queued = fixture.enqueue("k2").await;
        let mut stages = fixture.store.messages().states(&[dead, queued, Uuid::nil()]).await.unwrap();
        stages.sort_unstable_by_key(|(id, ..)| *id);
        assert_eq!(stages, [(dead, StateName::Dead, 1), (queued, StateName::Queued, 0)]);
    }
}
