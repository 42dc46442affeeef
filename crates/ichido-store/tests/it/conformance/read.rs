//! Reading messages, and the nodes' shared state.
// SPEC D1, D6, D13, E3.

use std::time::Duration;

use ichido_core::lifecycle::{Decision, Event, Reconciled, StateName};
use ichido_core::retry::Safety;
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::dead_letter::DeadLetterFilter;
use ichido_store::message::{
    DeadLetter, DeadLetterState, MessageFilter, NewMessage, Note, QueueName, limits,
};
use ichido_store::node::{BulkLease, SharedPace, SingletonTask};
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, BACKOFF, DAY, KEYED, StoreFixture, TRAVELS_FOR, bad_request, final_failure, in_doubt, key,
    many, message, new_id, only, queue, queue_named, succeeded, terms, will_retry,
};

impl StoreFixture {
    async fn list(&self, filter: MessageFilter) -> Vec<Uuid> {
        self.store
            .messages()
            .list(&filter, 100)
            .await
            .expect("an answer")
            .into_iter()
            .map(|row| row.id)
            .collect()
    }

    async fn letters(&self, state: DeadLetterState) -> Vec<Uuid> {
        let letters = self.store.dead_letters().list(state, None, None, 100).await.expect("an answer");
        letters.into_iter().map(|letter| letter.message.id).collect()
    }
}

both_databases! {
    #[test]
    async fn a_message_is_one_row(fixture: StoreFixture) {
        let new = NewMessage { priority: 7, trace: Some("trace".to_owned()), hops: Some("bff".to_owned()), ..message("k1") };
        let id = new_id(fixture.put(new.clone()).await);
        let row = fixture.row(id).await;
        assert_eq!((row.id, row.queue.as_str(), row.identity.as_str()), (id, "orders", "alice"));
        assert_eq!((row.key, row.request_digest), (key("k1"), *new.request.digest()));
        assert_eq!((row.status.as_str(), row.attempts, row.max_attempts), ("queued", 0, 3));
        assert_eq!((row.last_error, row.effect, row.priority), (None, Effect::NotDone, 7));
        assert_eq!((row.hops.as_deref(), row.trace.as_deref(), row.replacement_of), (Some("bff"), Some("trace"), None));
        assert_eq!(fixture.claim_one().await.hops.as_deref(), Some("bff"), "the worker gets them");
        assert_eq!((row.next_attempt, row.updated_at), (Some(row.created_at), row.created_at));
    }

    #[test]
    async fn missing_message_is_none(fixture: StoreFixture) {
        assert!(fixture.store.messages().get(Uuid::from_u128(7)).await.unwrap().is_none());
        assert!(fixture.store.messages().transitions(Uuid::from_u128(7)).await.unwrap().is_empty());
    }

    #[test]
    async fn current_attempt_is_counted(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let row = fixture.row(id).await;
        assert_eq!((row.status.as_str(), row.attempts, row.next_attempt), ("sending", 1, None));
        let _ = fixture.settle(&work, will_retry(&work)).await;
        assert_eq!(fixture.row(id).await.attempts, 1);
        fixture.pass(BACKOFF);
        fixture.promote().await;
        fixture.claim_one().await;
        assert_eq!(fixture.row(id).await.attempts, 2);
    }

    #[test]
    async fn a_change_shows_in_the_time_of_the_last_one(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        fixture.pass(BACKOFF);
        fixture.send(&fixture.claim_one().await).await;
        let row = fixture.row(id).await;
        assert!(BACKOFF <= row.updated_at.since(row.created_at));
    }

    #[test]
    async fn pages_are_newest_first_without_gaps_or_repeats(fixture: StoreFixture) {
        let mut all = fixture.enqueue_many(25).await;
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let filter = MessageFilter { after, ..MessageFilter::default() };
            let page = fixture.store.messages().list(&filter, 7).await.unwrap();
            let Some(last) = page.last() else { break };
            assert!(page.len() <= 7);
            after = Some(last.id);
            seen.extend(page.iter().map(|row| row.id));
            // Messages that arrive meanwhile are newer than the page, and do not shift it.
            fixture.enqueue(&format!("late{}", seen.len())).await;
        }
        all.reverse();
        assert_eq!(seen, all);
    }

    #[test]
    async fn a_page_is_bounded_whatever_it_asks_for(fixture: StoreFixture) {
        fixture.enqueue_many(limits::MAX_PAGE as usize + 1).await;
        let page = fixture.store.messages().list(&MessageFilter::default(), u32::MAX).await.unwrap();
        assert_eq!(page.len(), limits::MAX_PAGE as usize);
    }

    #[test]
    async fn each_filter_finds_its_own(fixture: StoreFixture) {
        let dead = fixture.dead("k1", Effect::NotDone).await;
        fixture.pass(DAY);
        let plain = fixture.enqueue("k2").await;
        let bob = new_id(fixture.put(NewMessage { identity: "bob".to_owned(), ..message("k3") }).await);
        let mail = new_id(fixture.put(NewMessage { queue: queue_named("mail"), ..message("k2") }).await);
        let everything = MessageFilter::default;
        let moment = fixture.row(plain).await.created_at;
        assert_eq!(fixture.list(everything()).await, [mail, bob, plain, dead]);
        let of_queue = MessageFilter { queue: Some(queue()), ..everything() };
        assert_eq!(fixture.list(of_queue.clone()).await, [bob, plain, dead]);
        let queued = MessageFilter { status: Some(StateName::Queued), ..everything() };
        assert_eq!(fixture.list(queued).await, [mail, bob, plain]);
        let of_bob = MessageFilter { identity: Some("bob".to_owned()), ..everything() };
        assert_eq!(fixture.list(of_bob).await, [bob]);
        let with_key = MessageFilter { key: Some(key("k2")), ..everything() };
        assert_eq!(fixture.list(with_key.clone()).await, [mail, plain]);
        let bad = MessageFilter { code: Some(ErrorCode::BadRequest), ..everything() };
        assert_eq!(fixture.list(bad).await, [dead]);
        let from = MessageFilter { created_from: Some(moment), ..everything() };
        assert_eq!(fixture.list(from).await, [mail, bob, plain]);
        let before = MessageFilter { created_before: Some(moment), ..everything() };
        assert_eq!(fixture.list(before).await, [dead]);
        let both = MessageFilter { key: Some(key("k2")), queue: Some(queue()), ..everything() };
        assert_eq!(fixture.list(both).await, [plain]);
    }

    #[test]
    async fn a_message_is_found_by_its_receipt(fixture: StoreFixture) {
        let ids = fixture.enqueue_many(2).await;
        for (work, receipt) in fixture.claim(2).await.iter().zip(["r-7", "r-8"]) {
            let note = Note { receipt: Some(receipt.to_owned()), ..Note::default() };
            let _ = fixture.settle_with_note(work, succeeded(work), note).await;
        }
        let with = |receipt: &str| MessageFilter { receipt: Some(receipt.to_owned()), ..MessageFilter::default() };
        assert_eq!(fixture.list(with("r-7")).await, [ids[0]]);
        let dead = MessageFilter { status: Some(StateName::Dead), ..with("r-7") };
        assert!(fixture.list(dead).await.is_empty());
        assert!(fixture.list(with("r-9")).await.is_empty());
    }

    // SPEC D13, E3.
    #[test]
    async fn a_message_is_found_by_its_trace_id_and_dies_with_its_item(fixture: StoreFixture) {
        let labelled = |text: &str, trace_id: &str| NewMessage {
            trace_id: Some(trace_id.to_owned()),
            item: Some("A title".to_owned()),
            ..message(text)
        };
        let dead = new_id(fixture.put(labelled("k1", "t-1")).await);
        let work = fixture.claim_one().await;
        assert_eq!((work.trace_id.as_deref(), work.item.as_deref()), (Some("t-1"), Some("A title")));
        let _ = fixture.settle_with_note(&work, final_failure(&work, Effect::NotDone), bad_request()).await;
        let queued = new_id(fixture.put(labelled("k2", "t-1")).await);
        let other = new_id(fixture.put(labelled("k3", "t-2")).await);
        fixture.enqueue("k4").await;
        let with = |trace_id: &str| MessageFilter { trace_id: Some(trace_id.to_owned()), ..MessageFilter::default() };
        assert_eq!(fixture.list(with("t-1")).await, [queued, dead]);
        assert_eq!(fixture.list(with("t-2")).await, [other]);
        assert_eq!(fixture.list(MessageFilter { status: Some(StateName::Dead), ..with("t-1") }).await, [dead]);
        assert!(fixture.list(with("T-1")).await.is_empty(), "it is compared exactly");
        let row = fixture.row(dead).await;
        assert_eq!((row.trace_id.as_deref(), row.item.as_deref()), (Some("t-1"), Some("A title")));
        let letters = fixture.store.dead_letters().page(&DeadLetterFilter::default(), None, 10).await.unwrap();
        assert_eq!(letters[0].item.as_deref(), Some("A title"));
        let long = NewMessage { trace_id: Some("x".repeat(limits::MAX_TRACE_ID_BYTES + 1)), ..message("k5") };
        assert!(fixture.store.messages().enqueue(long).await.is_err());
        // An item is cut, and never stops a message.
        let odd = NewMessage { item: Some(format!("\0\n{}", "é".repeat(5_000))), ..message("k6") };
        let odd = new_id(fixture.put(odd).await);
        let item = fixture.row(odd).await.item.unwrap();
        assert!(item.starts_with("\\0\\néé") && item.ends_with('…'), "{item}");
        assert_eq!(item.chars().count(), limits::MAX_ITEM_CHARS);
    }

    #[test]
    async fn every_state_can_be_listed(fixture: StoreFixture) {
        let dead = fixture.dead("dead", Effect::NotDone).await;
        let (parked, _) = fixture.parked("parked").await;
        let failed = fixture.enqueue("failed").await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle(&work, will_retry(&work)).await;
        let sent = fixture.enqueue("sent").await;
        fixture.send(&fixture.claim_one().await).await;
        let sending = fixture.enqueue("sending").await;
        fixture.claim_one().await;
        let cancelled = fixture.enqueue("cancelled").await;
        let _ = fixture.step(cancelled, Event::Cancelled).await;
        let queued = fixture.enqueue("queued").await;
        let all = [
            (StateName::Dead, dead),
            (StateName::Parked, parked),
            (StateName::Failed, failed),
            (StateName::Sent, sent),
            (StateName::Sending, sending),
            (StateName::Cancelled, cancelled),
            (StateName::Queued, queued),
        ];
        assert_eq!(all.len(), StateName::ALL.len());
        for (status, id) in all {
            let filter = MessageFilter { status: Some(status), ..MessageFilter::default() };
            assert_eq!(fixture.list(filter).await, [id], "{status}");
        }
    }

    #[test]
    async fn a_state_is_listed_by_queue_and_page_newest_first(fixture: StoreFixture) {
        let mut ids = Vec::new();
        for n in 0..5 {
            ids.push(fixture.enqueue(&format!("k{n}")).await);
        }
        fixture.put(NewMessage { queue: queue_named("mail"), ..message("k9") }).await;
        let queued =
            MessageFilter { status: Some(StateName::Queued), queue: Some(queue()), ..MessageFilter::default() };
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let page =
                fixture.store.messages().list(&MessageFilter { after, ..queued.clone() }, 2).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            seen.extend(page.iter().map(|row| row.id));
        }
        ids.reverse();
        assert_eq!(seen, ids);
        fixture.claim(3).await;
        let sending = MessageFilter { status: Some(StateName::Sending), ..queued.clone() };
        assert_eq!(fixture.list(sending).await, ids[2..], "the oldest were claimed");
        assert_eq!(fixture.list(queued).await, ids[..2]);
    }

    #[test]
    async fn a_timeline_has_every_transition_in_order(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let first = fixture.claim_one().await;
        let _ = fixture.settle(&first, will_retry(&first)).await;
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let second = fixture.claim_one().await;
        let _ = fixture.settle(&second, in_doubt(&second)).await;
        fixture.pass(TRAVELS_FOR);
        let _ = fixture.step(id, Event::Decided(Decision::NotDone)).await;
        let third = fixture.claim_one().await;
        fixture.send(&third).await;
        let transitions = fixture.store.messages().transitions(id).await.unwrap();
        let transitions_seen: Vec<_> = transitions
            .iter()
            .map(|step| (step.from.as_str(), step.to.as_str(), step.kind.as_str(), step.attempts))
            .collect();
        let expected = [
            ("queued", "sending", "claimed", 1),
            ("sending", "failed", "failed", 1),
            ("failed", "queued", "came_due", 1),
            ("queued", "sending", "claimed", 2),
            ("sending", "parked", "failed", 2),
            ("parked", "queued", "decided", 0),
            ("queued", "sending", "claimed", 1),
            ("sending", "sent", "succeeded", 1),
        ];
        assert_eq!(transitions_seen, expected);
        for pair in transitions.windows(2) {
            assert_eq!(pair[0].to, pair[1].from, "no gap");
            assert!(pair[0].at <= pair[1].at, "in order of time");
            assert!(pair[0].fence <= pair[1].fence, "in order of fences");
        }
        assert_eq!((transitions[0].at, transitions[0].node), (first.claimed_at, Some(terms().node)));
    }

    #[test]
    async fn pages_of_transitions_are_all_of_them(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        for _ in 0..2 {
            let work = fixture.claim_one().await;
            let _ = fixture.settle(&work, will_retry(&work)).await;
            fixture.pass(BACKOFF);
            fixture.promote().await;
        }
        fixture.claim_one().await;
        let messages = fixture.store.messages();
        let all = messages.transitions(id).await.unwrap();
        for limit in 1..=5 {
            let (mut listed, mut before) = (Vec::new(), None);
            loop {
                let page = messages.transition_page(id, before, limit).await.unwrap();
                // An attempt is one event with two transitions, and the newest page also has the claim.
                assert!(page.transitions.len() <= limit as usize * 2 + 1, "{limit}: {page:?}");
                listed.splice(..0, page.transitions);
                before = page.earlier;
                if before.is_none() {
                    break;
                }
            }
            assert_eq!(listed, all, "{limit}");
        }
    }

    #[test]
    async fn a_claim_says_what_was_known_when_it_was_made(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        fixture.pass(BACKOFF);
        fixture.promote().await;
        fixture.send(&fixture.claim_one().await).await;
        let transitions = fixture.store.messages().transitions(id).await.unwrap();
        let transitions_seen: Vec<_> = transitions.iter().map(|step| (step.kind.as_str(), step.effect)).collect();
        let expected = [
            ("claimed", Effect::NotDone),
            ("worker_died", Effect::Unknown),
            ("came_due", Effect::Unknown),
            ("claimed", Effect::Unknown),
            ("succeeded", Effect::Done),
        ];
        assert_eq!(transitions_seen, expected);
    }

    #[test]
    async fn the_claim_of_what_is_being_sent_is_in_its_timeline(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let transitions = fixture.store.messages().transitions(id).await.unwrap();
        assert_eq!(transitions.len(), 1, "{transitions:?}");
        assert_eq!((transitions[0].from.as_str(), transitions[0].to.as_str()), ("queued", "sending"));
        assert_eq!((transitions[0].at, transitions[0].fence), (work.claimed_at, Some(work.fence.get())));
        assert_eq!((transitions[0].attempts, transitions[0].node), (1, Some(terms().node)));
    }

    #[test]
    async fn settled_message_of_a_live_claim_is_listed_once(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        let work = fixture.claim(2).await;
        fixture.send(&work[0]).await;
        assert_eq!(fixture.steps(all[0]).await, ["queued>sending", "sending>sent"]);
    }

    #[test]
    async fn two_nodes_see_the_same(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let id = fixture.enqueue("k1").await;
        assert_eq!(other.messages().get(id).await.unwrap(), fixture.store.messages().get(id).await.unwrap());
        let work = fixture.claim_one().await;
        assert!(other.claims().claim(&queue(), many(5), terms()).await.unwrap().is_empty());
        fixture.send(&work).await;
        assert_eq!(other.messages().get(id).await.unwrap().unwrap().status, StateName::Sent);
        assert_eq!(
            other.messages().transitions(id).await.unwrap(),
            fixture.store.messages().transitions(id).await.unwrap()
        );
        assert_eq!(other.queues().counts().await.unwrap(), fixture.store.queues().counts().await.unwrap());
    }

    #[test]
    async fn dead_letters_are_listed_newest_first(fixture: StoreFixture) {
        let mut dead = Vec::new();
        for number in 0..5 {
            dead.push(fixture.dead(&format!("k{number}"), Effect::NotDone).await);
        }
        // Newest by death, not by creation: the first one dies again.
        let _ = fixture.step(dead[0], Event::Requeued { allowed: true, safety: Safety::None }).await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle(&work, final_failure(&work, Effect::NotDone)).await;
        let expected = [dead[0], dead[4], dead[3], dead[2], dead[1]];
        assert_eq!(fixture.letters(DeadLetterState::Dead).await, expected);
        assert!(fixture.letters(DeadLetterState::Parked).await.is_empty());
        for of in [Some(&queue()), None] {
            let mut seen = Vec::new();
            let mut after = None;
            loop {
                let page = fixture.store.dead_letters().list(DeadLetterState::Dead, of, after, 2).await.unwrap();
                let Some(last) = page.last() else { break };
                after = Some((last.since, last.message.id));
                seen.extend(page.iter().map(|letter| letter.message.id));
            }
            assert_eq!(seen, expected, "{of:?}");
        }
        let elsewhere =
            fixture.store.dead_letters().list(DeadLetterState::Dead, Some(&queue_named("mail")), None, 10).await.unwrap();
        assert!(elsewhere.is_empty());
    }

    #[test]
    async fn a_letter_says_what_went_wrong_and_when(fixture: StoreFixture) {
        let id = fixture.dead("k1", Effect::NotDone).await;
        let letter = only(fixture.store.dead_letters().list(DeadLetterState::Dead, None, None, 10).await.unwrap());
        assert_eq!((letter.message.id, letter.message.attempts, letter.message.max_attempts), (id, 1, 3));
        assert_eq!(letter.message.last_error.as_deref(), Some("BAD_REQUEST"));
        assert_eq!(letter.message.last_error_text.as_deref(), Some("no such symbol"));
        assert!(
            letter.message.created_at <= letter.since
                && letter.since.since(letter.message.updated_at) < BACKOFF
        );
    }

    #[test]
    async fn late_result_keeps_the_time_of_death(fixture: StoreFixture) {
        fixture.dead("k1", Effect::Unknown).await;
        let since = |letters: Vec<DeadLetter>| only(letters).since;
        let before = since(fixture.store.dead_letters().list(DeadLetterState::Dead, None, None, 10).await.unwrap());
        fixture.pass(DAY);
        let id = fixture.letters(DeadLetterState::Dead).await[0];
        let _ = fixture.step(id, Event::Reconciled(Reconciled::Done)).await;
        let after = since(fixture.store.dead_letters().list(DeadLetterState::Dead, None, None, 10).await.unwrap());
        assert_eq!(before, after);
        assert_eq!(fixture.row(id).await.last_error.as_deref(), Some("BAD_REQUEST"));
    }

    #[test]
    async fn parked_letters_are_listed_until_they_are_decided(fixture: StoreFixture) {
        let (first, _) = fixture.parked("k1").await;
        let (second, _) = fixture.parked("k2").await;
        assert_eq!(fixture.letters(DeadLetterState::Parked).await, [second, first]);
        let _ = fixture.step(second, Event::Decided(Decision::Done)).await;
        assert_eq!(fixture.letters(DeadLetterState::Parked).await, [first]);
    }

    #[test]
    async fn retention_deletes_messages_finished_before_a_time(fixture: StoreFixture) {
        let sent = fixture.enqueue("sent").await;
        fixture.send(&fixture.claim_one().await).await;
        let cancelled = fixture.enqueue("cancelled").await;
        let _ = fixture.step(cancelled, Event::Cancelled).await;
        let dead = fixture.dead("dead", Effect::NotDone).await;
        let (parked, _) = fixture.parked("parked").await;
        fixture.pass(DAY);
        let moment = fixture.row(sent).await.updated_at.plus(DAY / 2);
        let young = fixture.enqueue("young").await;
        fixture.send(&fixture.claim_one().await).await;
        let waiting = fixture.enqueue("waiting").await;
        assert_eq!(fixture.store.messages().delete_finished(moment, 100).await.unwrap(), 2);
        assert_eq!(fixture.store.messages().delete_finished(moment, 100).await.unwrap(), 0);
        for id in [sent, cancelled] {
            assert!(fixture.store.messages().get(id).await.unwrap().is_none());
            assert!(fixture.store.messages().transitions(id).await.unwrap().is_empty());
        }
        for id in [dead, parked, young, waiting] {
            assert!(fixture.store.messages().get(id).await.unwrap().is_some());
        }
        fixture.assert_counts(&[("dead", 1), ("parked", 1), ("sent", 1), ("queued", 1)]).await;
    }

    #[test]
    async fn retention_is_bounded(fixture: StoreFixture) {
        fixture.enqueue_many(5).await;
        for work in fixture.claim(5).await {
            fixture.send(&work).await;
        }
        let moment =
            fixture.store.messages().list(&MessageFilter::default(), 1).await.unwrap()[0].updated_at.plus(DAY);
        let mut forgotten = Vec::new();
        for _ in 0..4 {
            forgotten.push(fixture.store.messages().delete_finished(moment, 2).await.unwrap());
        }
        assert_eq!(forgotten, [2, 2, 1, 0]);
        fixture.assert_counts(&[]).await;
    }

    #[test]
    async fn deleted_message_can_be_enqueued_again(fixture: StoreFixture) {
        let first = fixture.enqueue("k1").await;
        fixture.send(&fixture.claim_one().await).await;
        let moment = fixture.row(first).await.updated_at.plus(DAY);
        fixture.store.messages().delete_finished(moment, 10).await.unwrap();
        assert_ne!(fixture.enqueue("k1").await, first);
    }

    /// Unfinished messages of an identity stay, and so do those of others or in other queues.
    #[test]
    async fn ended_messages_of_an_identity_are_deleted_at_any_age(fixture: StoreFixture) {
        let sent = fixture.enqueue("sent").await;
        fixture.send(&fixture.claim_one().await).await;
        let cancelled = fixture.enqueue("cancelled").await;
        let _ = fixture.step(cancelled, Event::Cancelled).await;
        let closed = fixture.dead("closed", Effect::NotDone).await;
        let _ = fixture.step(closed, Event::Discarded).await;
        let dead = fixture.dead("dead", Effect::NotDone).await;
        let (parked, _) = fixture.parked("parked").await;
        let bobs = new_id(fixture.put(NewMessage { identity: "bob".to_owned(), ..message("bobs") }).await);
        let _ = fixture.step(bobs, Event::Cancelled).await;
        let mail = new_id(fixture.put(NewMessage { queue: queue_named("mail"), ..message("mail") }).await);
        let _ = fixture.step(mail, Event::Cancelled).await;
        let waiting = fixture.enqueue("waiting").await;
        let mut forgotten = Vec::new();
        for _ in 0..3 {
            forgotten.push(fixture.store.messages().delete_of_identity(None, &queue(), "alice", 2).await.unwrap());
        }
        assert_eq!(forgotten, [2, 1, 0], "no more at a time than asked for");
        for id in [sent, cancelled, closed] {
            assert!(fixture.store.messages().get(id).await.unwrap().is_none());
            assert!(fixture.store.messages().transitions(id).await.unwrap().is_empty());
            assert!(fixture.store.dead_letters().find(&[id]).await.unwrap().is_empty());
        }
        for id in [dead, parked, bobs, mail, waiting] {
            assert!(fixture.store.messages().get(id).await.unwrap().is_some());
        }
        let left = [("dead", 1), ("parked", 1), ("cancelled", 1), ("queued", 1)];
        fixture.assert_counts(&left).await;
    }

    #[test]
    async fn a_pace_is_written_over_the_version_that_was_read(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        assert_eq!(fixture.store.paces().read("broker").await.unwrap(), None);
        assert!(!fixture.store.paces().write("broker", 5, b"ten").await.unwrap(), "nobody has read version 5");
        assert!(fixture.store.paces().write("broker", SharedPace::NEVER_WRITTEN, b"ten").await.unwrap());
        assert!(!other.paces().write("broker", SharedPace::NEVER_WRITTEN, b"nine").await.unwrap());
        let read = other.paces().read("broker").await.unwrap().unwrap();
        assert_eq!(read.bytes, b"ten");
        assert!(other.paces().write("broker", read.version, b"five").await.unwrap());
        assert!(!fixture.store.paces().write("broker", read.version, b"six").await.unwrap());
        let last = fixture.store.paces().read("broker").await.unwrap().unwrap();
        assert_eq!((last.bytes.as_slice(), read.version < last.version), (b"five".as_slice(), true));
        assert_eq!(fixture.store.paces().read("mailer").await.unwrap(), None);
    }

    #[test]
    async fn a_node_is_seen_when_it_beats(fixture: StoreFixture) {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        fixture.store.nodes().heartbeat(a, "alpha").await.unwrap();
        fixture.pass(BACKOFF);
        fixture.store.nodes().heartbeat(b, "beta").await.unwrap();
        fixture.pass(BACKOFF);
        fixture.store.nodes().heartbeat(a, "alpha").await.unwrap();
        let nodes = fixture.store.nodes().list().await.unwrap();
        let names: Vec<_> = nodes.iter().map(|node| (node.id, node.name.as_str())).collect();
        assert_eq!(names, [(a, "alpha"), (b, "beta")]);
        assert!(BACKOFF * 2 <= nodes[0].seen_at.since(nodes[0].started_at));
        assert_eq!(nodes[1].seen_at, nodes[1].started_at);
    }

    #[test]
    async fn one_node_at_a_time_holds_a_task(fixture: StoreFixture) {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let lease = Duration::from_secs(30);
        assert!(fixture.store.nodes().claim_task(SingletonTask::Trail, a, lease).await.unwrap());
        assert!(!fixture.store.nodes().claim_task(SingletonTask::Trail, b, lease).await.unwrap());
        fixture.pass(Duration::from_secs(20));
        assert!(fixture.store.nodes().claim_task(SingletonTask::Trail, a, lease).await.unwrap(), "the holder keeps it");
        fixture.pass(Duration::from_secs(20));
        assert!(!fixture.store.nodes().claim_task(SingletonTask::Trail, b, lease).await.unwrap());
        fixture.pass(Duration::from_secs(20));
        assert!(fixture.store.nodes().claim_task(SingletonTask::Trail, b, lease).await.unwrap(), "it lapsed");
        assert!(!fixture.store.nodes().claim_task(SingletonTask::Trail, a, lease).await.unwrap());
    }

    #[test]
    async fn first_kind_of_key_of_a_queue_stays(fixture: StoreFixture) {
        let (a, b) = (QueueName::parse("a").unwrap(), QueueName::parse("b").unwrap());
        assert_eq!(fixture.store.queues().key_kind(&a, "derived").await.unwrap(), "derived");
        assert_eq!(fixture.store.queues().key_kind(&a, "own").await.unwrap(), "derived");
        assert_eq!(fixture.store.queues().key_kind(&b, "own").await.unwrap(), "own");
        assert_eq!(fixture.another_node().await.queues().key_kind(&a, "own").await.unwrap(), "derived");
        assert!(fixture.store.queues().key_kind(&a, "no\0").await.is_err());
    }

    #[test]
    async fn stopping_node_releases_its_tasks(fixture: StoreFixture) {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let lease = Duration::from_secs(30);
        for (duty, node) in [(SingletonTask::Trail, a), (SingletonTask::Ledger, a), (SingletonTask::Outbox, b)] {
            assert!(fixture.store.nodes().claim_task(duty, node, lease).await.unwrap());
        }
        fixture.store.nodes().release_tasks(a).await.unwrap();
        assert!(fixture.store.nodes().claim_task(SingletonTask::Trail, b, lease).await.unwrap());
        assert!(fixture.store.nodes().claim_task(SingletonTask::Ledger, b, lease).await.unwrap());
        assert!(!fixture.store.nodes().claim_task(SingletonTask::Outbox, a, lease).await.unwrap(), "not its own");
    }

    #[test]
    async fn letter_mover_is_listed_until_its_lease_lapses(fixture: StoreFixture) {
        let (a, b, c) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let (orders, mail) = (QueueName::parse("orders:eu").unwrap(), QueueName::parse("mail").unwrap());
        let lease = Duration::from_secs(30);
        let claim = async |queue, by| fixture.store.nodes().claim_task(SingletonTask::DeadLetters(queue), by, lease).await.unwrap();
        assert!(fixture.store.nodes().claim_task(SingletonTask::Ledger, c, lease).await.unwrap(), "not about letters");
        assert!(claim(Some(&orders), a).await);
        assert!(!claim(Some(&orders), b).await, "one at a time");
        fixture.pass(Duration::from_secs(20));
        assert!(claim(None, b).await);
        let listed = async || {
            let mut kept = fixture.store.nodes().bulk_leases().await.unwrap();
            kept.sort_by_key(|kept| kept.by);
            kept
        };
        let of = |queue: Option<&str>, by| BulkLease { queue: queue.map(str::to_owned), by };
        assert_eq!(listed().await, [of(Some("orders:eu"), a), of(None, b)]);
        let overlap = |of: BulkLease| [Some(&orders), Some(&mail), None].map(|queue| of.overlaps(queue));
        assert_eq!(overlap(of(Some("orders:eu"), a)), [true, false, true]);
        assert_eq!(overlap(of(None, a)), [true, true, true]);
        fixture.pass(Duration::from_secs(20));
        assert_eq!(listed().await, [of(None, b)], "the first has lapsed");
        fixture.store.nodes().release_tasks(b).await.unwrap();
        assert_eq!(listed().await, []);
    }

    /// Otherwise the node that holds one task would keep all others from the nodes that can do them.
    #[test]
    async fn each_task_is_claimed_separately(fixture: StoreFixture) {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let lease = Duration::from_secs(30);
        let others = [QueueName::parse("a").unwrap(), QueueName::parse("b").unwrap()];
        let duties = [SingletonTask::Ledger, SingletonTask::Outbox, SingletonTask::Trail, SingletonTask::Parked(&others[0]), SingletonTask::Parked(&others[1])];
        for (index, duty) in duties.into_iter().enumerate() {
            let (first, second) = if index % 2 == 0 { (a, b) } else { (b, a) };
            assert!(fixture.store.nodes().claim_task(duty, first, lease).await.unwrap(), "{duty:?}");
            assert!(!fixture.store.nodes().claim_task(duty, second, lease).await.unwrap(), "{duty:?}");
        }
    }

    #[test]
    async fn the_stores_clock_is_the_one_that_its_rows_have(fixture: StoreFixture) {
        let before = fixture.store.now().await.unwrap();
        let id = fixture.enqueue("k1").await;
        let after = fixture.store.now().await.unwrap();
        let created = fixture.row(id).await.created_at;
        assert!(before <= created && created <= after, "{before} {created} {after}");
        fixture.pass(Duration::from_hours(24));
        let tomorrow = fixture.store.now().await.unwrap();
        assert!(Duration::from_hours(24) <= tomorrow.since(before), "{before} {tomorrow}");
        fixture.send(&fixture.claim_one().await).await;
        assert_eq!(fixture.store.messages().delete_finished(tomorrow, 10).await.unwrap(), 0, "it ended after that");
        let now = fixture.store.now().await.unwrap().plus(Duration::from_millis(1));
        assert_eq!(fixture.store.messages().delete_finished(now, 10).await.unwrap(), 1);
    }
}
