//! Enqueuing messages.
// SPEC A7, D1, D2, D3.

use std::collections::BTreeSet;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::lifecycle::Event;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use ichido_store::error::StoreError;
use ichido_store::message::{Enqueued, MessageSchedule, NewMessage, SameContent, limits};
use ichido_store::testing::while_busy;
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    BACKOFF, DAY, StoreFixture, body, ids, in_doubt, key, many, message, new_id, only, queue, queue_named,
    terms, will_retry,
};

const WINDOW: Duration = Duration::from_hours(72);

/// A message with the same content as every other one of these, under its own key.
pub(crate) fn with_same_content(text: &str) -> NewMessage {
    let content = Digest::of_bytes(b"https://example.org/");
    NewMessage { same_content: Some(SameContent { content, window: WINDOW }), ..message(text) }
}

both_databases! {
    #[test]
    async fn message_is_enqueued_claimed_and_sent(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        assert_eq!((work.id, work.request.as_slice(), work.history.attempts), (id, b"k1".as_slice(), 1));
        assert!(fixture.claim(10).await.is_empty());
        fixture.send(&work).await;
        assert_eq!(fixture.status(id).await, "sent");
        assert_eq!(fixture.steps(id).await, ["queued>sending", "sending>sent"]);
        fixture.assert_counts(&[("sent", 1)]).await;
    }

    #[test]
    async fn the_same_key_with_the_same_digest_is_the_first_message(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        assert_eq!(fixture.put(message("k1")).await, Enqueued::Replay { id });
        fixture.send(&fixture.claim_one().await).await;
        assert_eq!(fixture.put(message("k1")).await, Enqueued::Replay { id }, "for the whole retention");
        assert!(fixture.claim(10).await.is_empty());
        fixture.assert_counts(&[("sent", 1)]).await;
    }

    #[test]
    async fn the_same_key_with_another_digest_is_refused(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let other = NewMessage { request: b"other".to_vec().into(), ..message("k1") };
        assert_eq!(fixture.conflict(other).await, id);
        fixture.assert_counts(&[("queued", 1)]).await;
    }

    /// Also inside a batch, where duplicates are found by another statement.
    #[test]
    async fn the_same_key_with_another_content_type_is_refused(fixture: StoreFixture) {
        let typed = |content_type: &str| NewMessage { request: body(content_type, b"k1"), ..message("k1") };
        let id = new_id(fixture.put(typed("text/plain")).await);
        assert_eq!(fixture.put(typed("Text/Plain; charset=utf-8")).await, Enqueued::Replay { id });
        assert_eq!(fixture.conflict(typed("text/csv")).await, id);
        let batch = vec![typed("text/csv"), typed("text/plain")];
        let answers = fixture.store.messages().enqueue_all(batch).await;
        assert!(matches!(answers[0], Err(StoreError::KeyConflict { id: first }) if first == id), "{answers:?}");
        assert!(matches!(answers[1], Ok(Enqueued::Replay { id: first }) if first == id), "{answers:?}");
        fixture.assert_counts(&[("queued", 1)]).await;
    }

    #[test]
    async fn a_key_is_its_own_in_each_queue_and_for_each_identity(fixture: StoreFixture) {
        let mut all = BTreeSet::from([fixture.enqueue("k1").await]);
        let bob = NewMessage { identity: "bob".to_owned(), ..message("k1") };
        let elsewhere = NewMessage { queue: queue_named("mail"), ..message("k1") };
        all.insert(new_id(fixture.put(bob).await));
        all.insert(new_id(fixture.put(elsewhere).await));
        assert_eq!(all.len(), 3);
    }

    #[test]
    async fn one_of_ten_simultaneous_enqueues_is_new(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let puts: Vec<_> = (0..10)
            .map(|number| {
                let store = if number % 2 == 0 { fixture.store.clone() } else { other.clone() };
                tokio::spawn(async move { while_busy(|| store.messages().enqueue(message("k1"))).await })
            })
            .collect();
        let mut new = Vec::new();
        let mut same = Vec::new();
        for put in puts {
            match put.await.unwrap() {
                Enqueued::New { id } => new.push(id),
                Enqueued::Replay { id } => same.push(id),
                other @ Enqueued::SameContent { .. } => panic!("{other:?}"),
            }
        }
        let first = only(new);
        assert_eq!(same, [first; 9]);
        assert_eq!(ids(&fixture.claim(10).await), [first]);
    }

    #[test]
    async fn bulk_enqueue_returns_a_result_for_each(fixture: StoreFixture) {
        let before = fixture.enqueue("k1").await;
        let other = NewMessage { request: b"other".to_vec().into(), ..message("k2") };
        let batch = vec![message("k1"), message("k2"), message("k2"), other, message("k3")];
        let mut answers = fixture.store.messages().enqueue_all(batch).await;
        let conflict = answers.remove(3);
        let answers: Vec<Enqueued> = answers.into_iter().map(Result::unwrap).collect();
        let second = new_id(answers[1]);
        let third = new_id(answers[3]);
        let expected = [
            Enqueued::Replay { id: before },
            Enqueued::New { id: second },
            Enqueued::Replay { id: second },
            Enqueued::New { id: third },
        ];
        assert_eq!(answers, expected);
        assert!(matches!(conflict, Err(StoreError::KeyConflict { id }) if id == second), "{conflict:?}");
        assert_eq!(ids(&fixture.claim(10).await), [before, second, third]);
    }

    #[test]
    async fn duplicate_in_a_large_batch_is_found_and_others_enqueued(fixture: StoreFixture) {
        let first = fixture.enqueue("m7").await;
        let messages: Vec<_> = (0..300).map(|n| message(&format!("m{n}"))).collect();
        let answers = fixture.store.messages().enqueue_all(messages).await;
        for (n, answer) in answers.into_iter().enumerate() {
            match answer.unwrap() {
                Enqueued::Replay { id } => assert_eq!((n, id), (7, first)),
                Enqueued::New { id } => {
                    let row = fixture.store.messages().get(id).await.unwrap().unwrap();
                    assert_eq!((row.status.as_str(), row.request), ("queued", format!("m{n}").into_bytes()));
                }
                other @ Enqueued::SameContent { .. } => panic!("{n}: {other:?}"),
            }
        }
        let all_new = (0..300).map(|n| message(&format!("n{n}"))).collect();
        assert!(fixture.store.messages().enqueue_all(all_new).await.iter().all(|new| matches!(new, Ok(Enqueued::New { .. }))));
        assert_eq!(fixture.claim(1_000).await.len(), 600);
    }

    #[test]
    async fn empty_enqueue_returns_nothing(fixture: StoreFixture) {
        assert!(fixture.store.messages().enqueue_all(Vec::new()).await.is_empty());
    }

    #[test]
    async fn in_bulk_one_that_is_too_large_is_refused_alone(fixture: StoreFixture) {
        let large = NewMessage { request: vec![b'x'; limits::MAX_REQUEST_BYTES + 1].into(), ..message("large") };
        let answers = fixture.store.messages().enqueue_all(vec![message("k1"), large, message("k2")]).await;
        assert!(matches!(answers[0], Ok(Enqueued::New { .. })), "{answers:?}");
        assert!(matches!(answers[1], Err(StoreError::TooLarge { .. })), "{answers:?}");
        assert!(matches!(answers[2], Ok(Enqueued::New { .. })), "{answers:?}");
    }

    #[test]
    async fn in_bulk_equal_content_is_one_action_too(fixture: StoreFixture) {
        let answers = fixture.store.messages().enqueue_all(vec![with_same_content("k1"), message("k2"), with_same_content("k3")]).await;
        let answers: Vec<Enqueued> = answers.into_iter().map(Result::unwrap).collect();
        let first = new_id(answers[0]);
        assert_eq!(answers[2], Enqueued::SameContent { id: first });
        fixture.assert_counts(&[("queued", 2)]).await;
    }

    #[test]
    async fn in_bulk_each_keeps_what_is_its_own(fixture: StoreFixture) {
        let dead = fixture.dead("dead", Effect::NotDone).await;
        let batch = vec![
            NewMessage { trace: Some("trace".to_owned()), ..message("k1") },
            NewMessage { replacement_of: Some(dead), priority: 0, ..message("k2") },
            NewMessage { delay: BACKOFF, max_attempts: many(9), ..message("k3") },
            message("k4"),
        ];
        let answers = fixture.store.messages().enqueue_all(batch.clone()).await;
        for (new, answer) in batch.iter().zip(answers) {
            let row = fixture.row(new_id(answer.unwrap())).await;
            assert_eq!((&row.key, &*row.request), (&new.key, new.request.bytes()));
            assert_eq!(row.request_digest, *new.request.digest());
            assert_eq!((&row.trace, row.replacement_of), (&new.trace, new.replacement_of));
            assert_eq!((row.priority, row.max_attempts), (new.priority, new.max_attempts.get()));
            assert_eq!(row.next_attempt, Some(row.created_at.plus(new.delay)));
        }
    }

    #[test]
    async fn request_bytes_come_back_exactly(fixture: StoreFixture) {
        let mebibyte: Vec<u8> = (0..1 << 20).map(|index: u32| index.to_be_bytes()[3]).collect();
        let requests = [Vec::new(), vec![0], vec![0xff, 0xfe, 0, b'\\', b'\''], mebibyte];
        for (number, request) in requests.iter().enumerate() {
            let text = format!("k{number}");
            let new = NewMessage {
                trace: Some("00-abc-def-01".to_owned()),
                ..NewMessage::new(queue(), "алиса ☃", key(&text), body("application/x-odd; a=\"b\"", request))
            };
            let id = new_id(fixture.put(new.clone()).await);
            let work = fixture.claim_one().await;
            assert!(work.request == *request, "request {number}");
            assert_eq!((&work.identity, &work.key), (&new.identity, &new.key));
            assert_eq!((&*work.content_type, &work.trace), (new.request.content_type(), &new.trace));
            assert_eq!(work.digest, *new.request.digest());
            let row = fixture.row(id).await;
            assert!(row.request == *request, "request {number}");
            assert_eq!((row.request_digest, row.identity), (*new.request.digest(), new.identity));
            assert_eq!(row.trace, new.trace);
        }
    }

    #[test]
    async fn oversized_values_are_refused(fixture: StoreFixture) {
        let most = NewMessage { request: vec![b'x'; limits::MAX_REQUEST_BYTES].into(), ..message("most") };
        new_id(fixture.put(most).await);
        let large = vec![b'x'; limits::MAX_REQUEST_BYTES + 1];
        let request = NewMessage { request: large.into(), ..message("request") };
        let identity =
            NewMessage { identity: "x".repeat(limits::MAX_IDENTITY_BYTES + 1), ..message("identity") };
        let long = "x".repeat(limits::MAX_CONTENT_TYPE_BYTES + 1);
        let content_type = NewMessage { request: body(&long, b""), ..message("type") };
        let hops = NewMessage { hops: Some("x".repeat(limits::MAX_HOPS_BYTES + 1)), ..message("hops") };
        let trace = NewMessage { trace: Some("x".repeat(limits::MAX_TRACE_BYTES + 1)), ..message("trace") };
        for over in [request, identity, content_type, hops, trace] {
            let answer = fixture.store.messages().enqueue(over).await;
            assert!(matches!(answer, Err(StoreError::TooLarge { .. })), "{answer:?}");
        }
        fixture.assert_counts(&[("queued", 1)]).await;
    }

    #[test]
    async fn a_delayed_message_is_claimable_once_it_is_due(fixture: StoreFixture) {
        let id = new_id(fixture.put(NewMessage { delay: BACKOFF, ..message("k1") }).await);
        assert_eq!(fixture.promote().await, 0);
        assert!(fixture.claim(10).await.is_empty());
        let row = fixture.row(id).await;
        assert_eq!((row.status.as_str(), row.next_attempt), ("queued", Some(row.created_at.plus(BACKOFF))));
        fixture.pass(BACKOFF);
        assert_eq!(fixture.store.claims().promote(10).await.unwrap(), [(queue(), 1)]);
        fixture.assert_counts(&[("queued", 1)]).await;
        let work = fixture.claim_one().await;
        assert_eq!((work.id, work.history.attempts, work.run_at), (id, 1, row.next_attempt));
    }

    // SPEC H5.
    #[test]
    async fn run_at_is_the_earliest_time_of_the_first_attempt(fixture: StoreFixture) {
        let run_at = fixture.store.now().await.unwrap().plus(DAY);
        let at = |key: &str| NewMessage { run_at: Some(run_at), ..message(key) };
        let id = new_id(fixture.put(at("k1")).await);
        // The same through the statement for batches with duplicates.
        let many = fixture.store.messages().enqueue_all(vec![at("k2"), at("k1")]).await;
        let second = new_id(many[0].as_ref().copied().unwrap());
        for id in [id, second] {
            let row = fixture.row(id).await;
            assert_eq!((row.status.as_str(), row.next_attempt), ("queued", Some(run_at)), "to the microsecond");
        }
        fixture.pass(DAY.saturating_sub(BACKOFF));
        assert_eq!(fixture.promote().await, 0);
        assert!(fixture.claim(10).await.is_empty());
        fixture.pass(BACKOFF);
        assert_eq!(fixture.promote().await, 2);
        assert_eq!(ids(&fixture.claim(10).await), [id, second]);
    }

    #[test]
    async fn a_run_at_in_the_past_means_now(fixture: StoreFixture) {
        let now = fixture.store.now().await.unwrap();
        let mut all = Vec::new();
        for (number, run_at) in [Timestamp::from_micros(i64::MIN), Timestamp::EPOCH, now].into_iter().enumerate() {
            let new = NewMessage { run_at: Some(run_at), ..message(&format!("k{number}")) };
            all.push(new_id(fixture.put(new).await));
        }
        assert_eq!(ids(&fixture.claim(10).await), all, "without a promotion");
        let later = NewMessage { run_at: Some(now), delay: DAY, ..message("later") };
        let later = fixture.row(new_id(fixture.put(later).await)).await;
        assert_eq!(later.next_attempt, Some(later.created_at.plus(DAY)), "the later of the two");
        let last = NewMessage { run_at: Some(Timestamp::MAX), ..message("last") };
        assert_eq!(fixture.row(new_id(fixture.put(last).await)).await.next_attempt, Some(Timestamp::MAX));
    }

    #[test]
    async fn a_duplicate_keeps_the_first_schedule(fixture: StoreFixture) {
        let run_at = fixture.store.now().await.unwrap().plus(DAY);
        let first = NewMessage { run_at: Some(run_at), priority: 1, ..message("k1") };
        let id = new_id(fixture.put(first).await);
        let other = NewMessage { run_at: Some(run_at.plus(DAY)), priority: 7, ..message("k1") };
        for again in [other, NewMessage { delay: BACKOFF, ..message("k1") }, message("k1")] {
            assert_eq!(fixture.put(again).await, Enqueued::Replay { id });
        }
        let schedule = async |id| fixture.store.messages().schedule(id).await.unwrap();
        let first = MessageSchedule { priority: 1, run_at: Some(run_at) };
        assert_eq!(schedule(id).await, Some(first));
        let row = fixture.row(id).await;
        assert_eq!((row.priority, row.next_attempt), (1, Some(run_at)));
        fixture.pass(DAY);
        assert_eq!(fixture.promote().await, 1);
        fixture.claim_one().await;
        assert_eq!(schedule(id).await, Some(first), "it does not change with the message");
        let plain = MessageSchedule { priority: 2, run_at: None };
        assert_eq!(schedule(fixture.enqueue("k2").await).await, Some(plain));
        assert_eq!(schedule(Uuid::nil()).await, None);
    }

    #[test]
    async fn promotion_is_bounded(fixture: StoreFixture) {
        for number in 0..5 {
            fixture.put(NewMessage { delay: BACKOFF, ..message(&format!("k{number}")) }).await;
        }
        fixture.pass(BACKOFF);
        let mut promoted = Vec::new();
        for _ in 0..4 {
            promoted.push(
                fixture.store.claims().promote(2).await.unwrap().iter().map(|(_, count)| *count).sum::<u64>(),
            );
        }
        assert_eq!(promoted, [2, 2, 1, 0]);
        assert_eq!(fixture.claim(10).await.len(), 5);
    }

    #[test]
    async fn claims_go_by_urgency_then_age(fixture: StoreFixture) {
        let mut all = Vec::new();
        for (number, priority) in [2, 0, 255, 2, 0, 1].into_iter().enumerate() {
            let new = NewMessage { priority, ..message(&format!("k{number}")) };
            all.push(new_id(fixture.put(new).await));
        }
        let order = [1, 4, 5, 0, 3, 2].map(|index: usize| all[index]);
        assert_eq!(ids(&fixture.claim(2).await), order[..2]);
        assert_eq!(ids(&fixture.claim(10).await), order[2..]);
    }

    #[test]
    async fn late_urgent_message_goes_first(fixture: StoreFixture) {
        let all = fixture.enqueue_many(4).await;
        assert_eq!(ids(&fixture.claim(2).await), all[..2]);
        let urgent = new_id(fixture.put(NewMessage { priority: 0, ..message("urgent") }).await);
        assert_eq!(ids(&fixture.claim(2).await), [urgent, all[2]]);
        assert_eq!(ids(&fixture.claim(2).await), all[3..]);
    }

    #[test]
    async fn equal_content_within_the_window_is_the_first_message(fixture: StoreFixture) {
        let first = new_id(fixture.put(with_same_content("k1")).await);
        assert_eq!(fixture.put(with_same_content("k2")).await, Enqueued::SameContent { id: first });
        assert_eq!(fixture.put(with_same_content("k1")).await, Enqueued::Replay { id: first }, "its own key");
        fixture.assert_counts(&[("queued", 1)]).await;
    }

    #[test]
    async fn equal_content_after_the_window_is_new(fixture: StoreFixture) {
        let first = new_id(fixture.put(with_same_content("k1")).await);
        fixture.pass(WINDOW);
        let second = new_id(fixture.put(with_same_content("k2")).await);
        assert_ne!(first, second);
        assert_eq!(fixture.put(with_same_content("k3")).await, Enqueued::SameContent { id: second });
        assert_eq!(fixture.put(with_same_content("k1")).await, Enqueued::Replay { id: first });
    }

    #[test]
    async fn content_is_swept_after_its_window_and_new_again(fixture: StoreFixture) {
        let first = new_id(fixture.put(with_same_content("k1")).await);
        fixture.pass(WINDOW);
        assert_eq!(fixture.store.messages().sweep_contents(10).await.unwrap(), 1);
        assert_eq!(fixture.store.messages().sweep_contents(10).await.unwrap(), 0, "it is gone");
        let second = new_id(fixture.put(with_same_content("k2")).await);
        assert_ne!(first, second);
        assert_eq!(fixture.put(with_same_content("k3")).await, Enqueued::SameContent { id: second });
        assert_eq!(fixture.put(with_same_content("k1")).await, Enqueued::Replay { id: first }, "the message stays");
    }

    #[test]
    async fn content_is_kept_until_its_window_ends(fixture: StoreFixture) {
        let first = new_id(fixture.put(with_same_content("k1")).await);
        fixture.pass(WINDOW / 2);
        assert_eq!(fixture.store.messages().sweep_contents(10).await.unwrap(), 0);
        assert_eq!(fixture.put(with_same_content("k2")).await, Enqueued::SameContent { id: first });
        // Extended by a later message, it lives as long as that.
        fixture.pass(WINDOW / 2);
        let second = new_id(fixture.put(with_same_content("k3")).await);
        fixture.pass(WINDOW / 2);
        assert_eq!(fixture.store.messages().sweep_contents(10).await.unwrap(), 0);
        assert_eq!(fixture.put(with_same_content("k4")).await, Enqueued::SameContent { id: second });
    }

    #[test]
    async fn content_sweep_respects_its_limit(fixture: StoreFixture) {
        for identity in ["alice", "bob", "carol"] {
            new_id(fixture.put(NewMessage { identity: identity.to_owned(), ..with_same_content("k1") }).await);
        }
        fixture.pass(WINDOW);
        assert_eq!(fixture.store.messages().sweep_contents(2).await.unwrap(), 2);
        assert_eq!(fixture.store.messages().sweep_contents(2).await.unwrap(), 1);
        assert_eq!(fixture.store.messages().sweep_contents(2).await.unwrap(), 0);
    }

    #[test]
    async fn equal_content_of_another_identity_or_queue_is_new(fixture: StoreFixture) {
        fixture.put(with_same_content("k1")).await;
        new_id(fixture.put(NewMessage { identity: "bob".to_owned(), ..with_same_content("k2") }).await);
        new_id(fixture.put(NewMessage { queue: queue_named("mail"), ..with_same_content("k2") }).await);
    }

    #[test]
    async fn one_of_ten_simultaneous_equal_contents_is_new(fixture: StoreFixture) {
        let puts: Vec<_> = (0..10)
            .map(|number| {
                let store = fixture.store.clone();
                let new = with_same_content(&format!("k{number}"));
                tokio::spawn(async move { while_busy(|| store.messages().enqueue(new.clone())).await })
            })
            .collect();
        let mut new = Vec::new();
        let mut same = Vec::new();
        for put in puts {
            match put.await.unwrap() {
                Enqueued::New { id } => new.push(id),
                Enqueued::SameContent { id } => same.push(id),
                other @ Enqueued::Replay { .. } => panic!("{other:?}"),
            }
        }
        assert_eq!(same, [only(new); 9]);
        fixture.assert_counts(&[("queued", 1)]).await;
    }

    #[test]
    async fn a_message_made_from_another_says_so(fixture: StoreFixture) {
        let dead = fixture.dead("k1", Effect::Unknown).await;
        let new = NewMessage { replacement_of: Some(dead), ..message("k2") };
        let id = new_id(fixture.put(new).await);
        assert_eq!(fixture.row(id).await.replacement_of, Some(dead));
        assert_eq!(fixture.row(dead).await.replacement_of, None);
    }

    #[test]
    async fn the_counts_follow_every_transition(fixture: StoreFixture) {
        fixture.assert_counts(&[]).await;
        let all = fixture.enqueue_many(4).await;
        fixture.assert_counts(&[("queued", 4)]).await;
        let work = fixture.claim(3).await;
        fixture.assert_counts(&[("queued", 1), ("sending", 3)]).await;
        fixture.send(&work[0]).await;
        let _ = fixture.settle(&work[1], will_retry(&work[1])).await;
        fixture.assert_counts(&[("queued", 1), ("sending", 1), ("sent", 1), ("failed", 1)]).await;
        let _ = fixture.settle(&work[2], in_doubt(&work[2])).await;
        let _ = fixture.step(all[3], Event::Cancelled).await;
        fixture.assert_counts(&[("sent", 1), ("failed", 1), ("parked", 1), ("cancelled", 1)]).await;
        fixture.pass(BACKOFF);
        fixture.promote().await;
        fixture.assert_counts(&[("sent", 1), ("queued", 1), ("parked", 1), ("cancelled", 1)]).await;
        fixture.store.queues().fold_counts(3).await.unwrap();
        fixture.assert_counts(&[("sent", 1), ("queued", 1), ("parked", 1), ("cancelled", 1)]).await;
        while 0 < fixture.store.queues().fold_counts(100).await.unwrap() {}
        fixture.assert_counts(&[("sent", 1), ("queued", 1), ("parked", 1), ("cancelled", 1)]).await;
    }

    #[test]
    async fn counts_are_kept_per_queue(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        fixture.put(NewMessage { queue: queue_named("mail"), ..message("k1") }).await;
        let work = only(fixture.store.claims().claim(&queue_named("mail"), many(5), terms()).await.unwrap());
        assert_eq!(work.queue, queue_named("mail"));
        let counts = fixture.store.queues().counts().await.unwrap();
        let counts: Vec<_> =
            counts.iter().map(|count| (count.queue.as_str(), count.state.as_str(), count.count)).collect();
        assert_eq!(counts, [("mail", "sending", 1), ("orders", "queued", 1)]);
    }
}
