//! Messages whose worker is gone.
// SPEC D12, E1, E2, F2.

use std::time::Duration;

use ichido_core::lifecycle::{Doubt, Event, Failure, StartMark};
use ichido_core::retry::{Guarantee, Safety};
use ichido_core::verdict::Effect;
use ichido_store::message::{ClaimOptions, NewMessage, Note, QueueName, Settlement};
use ichido_store::rescue::RescueOptions;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, BACKOFF, DAY, KEYED, LEASE, StoreFixture, TRAVELS_FOR, ids, many, message, new_id, only,
    queue, queue_named, rescue, succeeded, terms, will_retry,
};

both_databases! {
    #[test]
    async fn node_rescues_named_queues_and_gets_the_results(fixture: StoreFixture) {
        let other = queue_named("other");
        let elsewhere = NewMessage { queue: other.clone(), ..message("k1") };
        let elsewhere = new_id(fixture.put(elsewhere).await);
        let id = fixture.enqueue("k1").await;
        fixture.claim_one().await;
        fixture.store.claims().claim(&other, many(1), terms()).await.unwrap();
        fixture.pass(AFTER_LEASE);
        let of = |guarantee| move |_: &QueueName| RescueOptions { guarantee, wait: BACKOFF, max_time_in_flight: TRAVELS_FOR };
        let ours = [queue()];
        let rescued = fixture.store.claims().rescue_of(&ours, of(Guarantee::None)).await.unwrap().unwrap();
        assert_eq!((rescued.queue, rescued.count, rescued.parked, rescued.dead), (queue(), 1, vec![id], vec![]));
        assert_eq!(fixture.store.claims().rescue_of(&ours, of(Guarantee::None)).await.unwrap(), None);
        assert_eq!((fixture.status(id).await, fixture.status(elsewhere).await), ("parked", "sending"));
        let rescued = fixture.store.claims().rescue_of(&[other], of(KEYED)).await.unwrap().unwrap();
        assert_eq!((rescued.count, rescued.parked, rescued.dead), (1, vec![], vec![]));
    }

    /// The call was made under its holder's settings, whatever the rescuer's settings are now.
    // SPEC F2, D12.
    #[test]
    async fn rescue_uses_the_weaker_of_both_guarantees(fixture: StoreFixture) {
        let brief = Guarantee::Keyed { keeps_for: LEASE };
        for (number, holder, rescuer, state) in [
            (0, Guarantee::None, KEYED, "parked"),
            (1, Guarantee::None, Guarantee::Idempotent, "parked"),
            (2, KEYED, Guarantee::None, "parked"),
            (3, Guarantee::Idempotent, Guarantee::None, "parked"),
            (4, KEYED, KEYED, "failed"),
            (5, Guarantee::Idempotent, KEYED, "failed"),
            (6, KEYED, Guarantee::Idempotent, "failed"),
            (7, brief, brief, "failed"),
        ] {
            let id = fixture.enqueue(&format!("k{number}")).await;
            let terms = ClaimOptions { guarantee: holder, ..terms() };
            only(fixture.store.claims().claim(&queue(), many(10), terms).await.unwrap());
            fixture.pass(AFTER_LEASE);
            assert_eq!(fixture.rescue(rescuer).await, Some(1));
            assert_eq!(fixture.status(id).await, state, "{holder:?} held it, {rescuer:?} rescues");
        }
    }

    /// By the holder's settings the receiver may already have forgotten the first of two calls.
    // SPEC F2.
    #[test]
    async fn rescue_uses_the_shorter_key_window(fixture: StoreFixture) {
        let brief = Guarantee::Keyed { keeps_for: LEASE };
        for (key, first, second, state) in
            [("k1", brief, KEYED, "parked"), ("k2", KEYED, brief, "parked"), ("k3", KEYED, KEYED, "failed")]
        {
            let id = fixture.enqueue(key).await;
            let work = fixture.claim_one().await;
            let failure = Failure::Retry { due: work.claimed_at.plus(BACKOFF) };
            let (fence, effect, safety) = (work.fence, Effect::Unknown, Safety::Keyed);
            let unknown = Event::Failed { fence, failure, effect, safety, in_flight_until: work.claimed_at };
            let _ = fixture.settle(&work, unknown).await;
            assert_eq!(fixture.status(id).await, "failed", "in doubt, and to be sent again");
            fixture.pass(BACKOFF);
            fixture.promote().await;
            let terms = ClaimOptions { guarantee: first, ..terms() };
            only(fixture.store.claims().claim(&queue(), many(10), terms).await.unwrap());
            fixture.pass(AFTER_LEASE);
            assert_eq!(fixture.rescue(second).await, Some(1));
            assert_eq!(fixture.status(id).await, state, "{first:?} held it, {second:?} rescues");
        }
    }

    /// "not done" is not decided either before the holder's call can have settled.
    // SPEC F2.
    #[test]
    async fn rescue_uses_the_longer_time_in_flight(fixture: StoreFixture) {
        for (key, longer) in [("k1", TRAVELS_FOR * 2), ("k2", TRAVELS_FOR / 2)] {
            let id = fixture.enqueue(key).await;
            let terms = ClaimOptions { guarantee: Guarantee::None, max_time_in_flight: longer, ..terms() };
            only(fixture.store.claims().claim(&queue(), many(10), terms).await.unwrap());
            fixture.pass(AFTER_LEASE);
            let before = fixture.store.now().await.unwrap();
            fixture.rescue(Guarantee::None).await;
            let after = fixture.store.now().await.unwrap();
            let letters = fixture.store.dead_letters().find(&[id]).await.unwrap();
            let Some(Doubt { in_flight_until, .. }) = only(letters).history.doubt else { panic!("no doubt") };
            let longest = longer.max(TRAVELS_FOR);
            assert!((before.plus(longest)..=after.plus(longest)).contains(&in_flight_until), "{in_flight_until}");
        }
    }

    /// Claims that nobody rescues are listed, and only those.
    // SPEC D12.
    #[test]
    async fn lapsed_claims_of_unserved_queues_are_reported(fixture: StoreFixture) {
        let (other, third) = (queue_named("other"), queue_named("third"));
        for (queue, key) in [(&other, "k1"), (&other, "k2"), (&third, "k1")] {
            fixture.put(NewMessage { queue: queue.clone(), ..message(key) }).await;
        }
        fixture.enqueue("ours").await;
        fixture.claim_one().await;
        let claimed = fixture.store.claims().claim(&other, many(10), terms()).await.unwrap();
        let longer = ClaimOptions { lease: DAY, ..terms() };
        fixture.store.claims().claim(&third, many(10), longer).await.unwrap();
        let ours = [queue()];
        let unserved_since = async |ago| fixture.store.claims().list_unserved(&ours, ago).await.unwrap();
        assert_eq!(unserved_since(Duration::ZERO).await, [], "none has lapsed");
        fixture.pass(AFTER_LEASE);
        assert_eq!(unserved_since(LEASE).await, [], "nodes that serve it have had no time yet");
        let found = only(unserved_since(Duration::ZERO).await);
        assert_eq!((found.queue, found.claims, found.max_messages), (other.clone(), 1, 2));
        assert_eq!(found.since, claimed[0].claimed_at.plus(LEASE));
        fixture.pass(DAY);
        assert_eq!(unserved_since(LEASE).await.into_iter().map(|unserved| unserved.queue).collect::<Vec<_>>(), [other, third]);
        while fixture.rescue(KEYED).await.is_some() {}
        assert_eq!(unserved_since(Duration::ZERO).await, []);
    }

    #[test]
    async fn node_with_a_suspect_can_skip_other_suspects(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        fixture.claim(2).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(2));
        let fresh = fixture.enqueue("fresh").await;
        let suspect = fixture.claim_one().await;
        assert_eq!((suspect.id, suspect.history.suspect), (all[0], true));
        let work = fixture.store.claims().claim_unsuspected(&queue(), many(10), terms()).await.unwrap();
        assert_eq!(ids(&work), [fresh]);
        assert!(fixture.store.claims().claim_unsuspected(&queue(), many(10), terms()).await.unwrap().is_empty());
        assert_eq!(fixture.claim_one().await.id, all[1]);
    }

    #[test]
    async fn oldest_waiting_message_is_found_at_any_priority(fixture: StoreFixture) {
        assert_eq!(fixture.store.queues().oldest(&queue()).await.unwrap(), None);
        let low = NewMessage { priority: 9, ..message("low") };
        let low = new_id(fixture.put(low).await);
        fixture.pass(DAY);
        let delayed = NewMessage { delay: DAY, ..message("delayed") };
        let delayed = new_id(fixture.put(delayed).await);
        let urgent = NewMessage { priority: 0, ..message("urgent") };
        let urgent = new_id(fixture.put(urgent).await);
        let oldest = fixture.store.queues().oldest(&queue()).await.unwrap();
        assert_eq!(oldest, Some(fixture.row(low).await.created_at));
        assert_eq!(fixture.store.queues().oldest(&queue_named("other")).await.unwrap(), None);
        let mail = NewMessage { queue: queue_named("mail"), priority: 3, ..message("mail") };
        let mail = new_id(fixture.put(mail).await);
        let mut of_each = fixture.store.queues().oldest_of_each().await.unwrap();
        of_each.sort();
        let since = async |id| fixture.row(id).await.created_at;
        let mut expected = [("mail".to_owned(), since(mail).await), (queue().as_str().to_owned(), since(low).await)];
        expected.sort();
        assert_eq!(of_each, expected);
        let work = fixture.claim(10).await;
        assert_eq!(ids(&work), [urgent, low]);
        assert_eq!(fixture.store.queues().oldest(&queue()).await.unwrap(), None, "none can be claimed");
        assert_eq!(fixture.store.queues().oldest_of_each().await.unwrap().len(), 1, "only the mail");
        let due = fixture.row(delayed).await.next_attempt;
        fixture.pass(DAY);
        assert_eq!(fixture.promote().await, 1);
        assert_eq!(fixture.store.queues().oldest(&queue()).await.unwrap(), due, "its delay is not waiting time");
    }

    #[test]
    async fn valid_claim_is_not_rescued(fixture: StoreFixture) {
        assert_eq!(fixture.rescue(KEYED).await, None, "nothing is claimed");
        let id = fixture.enqueue("k1").await;
        fixture.claim_one().await;
        fixture.pass(LEASE / 2);
        assert_eq!(fixture.rescue(KEYED).await, None);
        assert_eq!(fixture.status(id).await, "sending");
    }

    #[test]
    async fn messages_of_a_lapsed_claim_return_uncharged_and_suspect(fixture: StoreFixture) {
        let all = fixture.enqueue_many(3).await;
        let held = fixture.claim(3).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(3));
        assert_eq!(fixture.rescue(KEYED).await, None);
        fixture.assert_counts(&[("queued", 3)]).await;
        for id in &all {
            let row = fixture.row(*id).await;
            assert_eq!((row.status.as_str(), row.attempts, row.effect), ("queued", 0, Effect::Unknown));
            assert_eq!(fixture.steps(*id).await, ["queued>sending", "sending>queued"]);
        }
        let first = fixture.claim_one().await;
        assert_eq!((first.id, first.history.attempts, first.history.deaths), (all[0], 1, 0));
        assert!(first.history.suspect);
        assert!(held[0].fence < first.fence);
    }

    #[test]
    async fn suspects_are_claimed_one_by_one_and_before_the_others(fixture: StoreFixture) {
        let suspects = fixture.enqueue_many(3).await;
        fixture.claim(3).await;
        let innocent = fixture.enqueue("innocent").await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(fixture.claim_one().await.id);
        }
        taken.sort_unstable();
        assert_eq!(taken, [suspects, vec![innocent]].concat());
        assert!(fixture.claim(10).await.is_empty());
    }

    #[test]
    async fn suspect_is_cleared_if_its_worker_survives(fixture: StoreFixture) {
        fixture.enqueue_many(2).await;
        fixture.claim(2).await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        for _ in 0..2 {
            let work = fixture.claim_one().await;
            assert!(work.history.suspect);
            let _ = fixture.settle(&work, will_retry(&work)).await;
        }
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let both = fixture.claim(10).await;
        assert_eq!(both.len(), 2, "they are claimed together again");
        assert!(both.iter().all(|work| !work.history.suspect));
    }

    #[test]
    async fn a_message_that_was_alone_fails_and_its_next_call_is_marked(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let held = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        let row = fixture.row(id).await;
        assert_eq!((row.status.as_str(), row.attempts, row.effect), ("failed", 1, Effect::Unknown));
        assert!(held.claimed_at.plus(LEASE).plus(BACKOFF) <= row.next_attempt.unwrap());
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let second = fixture.claim_one().await;
        assert_eq!((second.history.attempts, second.history.deaths), (2, 0));
        assert_eq!((second.history.suspect, second.start_mark), (true, StartMark::NotYet));
        let Some(Doubt { since, in_flight_until }) = second.history.doubt else { panic!("no doubt") };
        assert_eq!(since, held.claimed_at);
        assert!(held.claimed_at.plus(TRAVELS_FOR) <= in_flight_until);
    }

    #[test]
    async fn message_that_kills_two_workers_is_quarantined(fixture: StoreFixture) {
        for (guarantee, state) in [(KEYED, "parked"), (Guarantee::Idempotent, "dead")] {
            let id = fixture.enqueue(state).await;
            // After the first death it is unknown whether it was called; after the second it is known.
            for deaths in 0..3 {
                let work = fixture.claim_one().await;
                assert_eq!(work.history.deaths, u32::from(deaths == 2));
                fixture.start(&work).await;
                fixture.pass(AFTER_LEASE);
                assert_eq!(fixture.rescue(guarantee).await, Some(1));
                fixture.pass(BACKOFF);
                fixture.promote().await;
            }
            let row = fixture.row(id).await;
            assert_eq!((row.status.as_str(), row.effect), (state, Effect::Unknown));
            assert!(fixture.claim(10).await.is_empty());
            let letter = only(fixture.store.dead_letters().find(&[id]).await.unwrap());
            assert_eq!(letter.code.as_deref(), Some("WORKER_DIED"));
            let error = "2 workers died while calling the destination with this message";
            assert_eq!(letter.error.as_deref(), Some(error));
        }
    }

    /// However often its worker dies before the call.
    // SPEC E2.
    #[test]
    async fn uncalled_message_never_dies(fixture: StoreFixture) {
        for (number, guarantee) in [KEYED, Guarantee::Idempotent, Guarantee::None].into_iter().enumerate() {
            for max_attempts in [1, 3] {
                let key = format!("{number}-{max_attempts}");
                let new = NewMessage { max_attempts: many(max_attempts), ..message(&key) };
                let id = new_id(fixture.put(new).await);
                let terms = ClaimOptions { guarantee, start_marks: guarantee == Guarantee::None, ..terms() };
                for _ in 0..6 {
                    only(fixture.store.claims().claim(&queue(), many(10), terms).await.unwrap());
                    fixture.pass(AFTER_LEASE);
                    assert_eq!(fixture.rescue(guarantee).await, Some(1));
                    fixture.pass(BACKOFF);
                    fixture.promote().await;
                }
                let row = fixture.row(id).await;
                assert_eq!(row.status.as_str(), "queued", "{row:?}");
                assert_eq!(row.last_error.as_deref(), Some("WORKER_DIED"));
                assert_eq!(row.last_error_text.as_deref(), Some("the worker died before calling the destination"));
                fixture.send(&fixture.claim_one().await).await;
            }
        }
    }

    #[test]
    async fn parked_message_of_a_dead_worker_names_the_cause(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        fixture.start(&only(fixture.claim_with_marks(1).await)).await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(Guarantee::None).await;
        let letter = only(fixture.store.dead_letters().find(&[id]).await.unwrap());
        assert_eq!((letter.code.as_deref(), letter.effect), (Some("WORKER_DIED"), Effect::Unknown));
        assert_eq!(letter.error.as_deref(), Some("the worker died while calling the destination"));
    }

    #[test]
    async fn a_suspect_that_does_it_again_is_charged(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        fixture.claim(2).await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        let culprit = fixture.claim_one().await;
        fixture.start(&culprit).await;
        let innocent = fixture.claim_one().await;
        fixture.send(&innocent).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        assert_eq!((culprit.id, fixture.status(all[0]).await), (all[0], "failed"));
        fixture.pass(BACKOFF);
        fixture.promote().await;
        assert_eq!(fixture.claim_one().await.history.deaths, 1);
    }

    #[test]
    async fn a_suspect_that_was_charged_is_still_claimed_alone(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        fixture.claim(2).await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        let charged = fixture.claim_one().await;
        assert_eq!(charged.id, all[0]);
        fixture.start(&charged).await;
        fixture.send(&fixture.claim_one().await).await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let innocent = fixture.enqueue("innocent").await;
        assert_eq!(fixture.claim_one().await.id, all[0]);
        assert_eq!(fixture.claim_one().await.id, innocent);
    }

    #[test]
    async fn a_call_that_had_not_begun_was_not_done(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        let work = fixture.claim_with_marks(2).await;
        fixture.store.claims().mark_started(&[(work[0].id, work[0].fence)]).await.unwrap();
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(Guarantee::None).await, Some(2));
        let start_mark = fixture.row(all[0]).await;
        assert_eq!((start_mark.status.as_str(), start_mark.effect), ("parked", Effect::Unknown));
        let not_begun = fixture.row(all[1]).await;
        assert_eq!((not_begun.status.as_str(), not_begun.effect), ("queued", Effect::NotDone));
        assert_eq!(fixture.claim_one().await.history.doubt, None);
    }

    #[test]
    async fn unrepeatable_message_is_parked_when_its_worker_dies(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        fixture.claim(2).await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(Guarantee::None).await;
        for id in all {
            let row = fixture.row(id).await;
            assert_eq!((row.status.as_str(), row.effect, row.attempts), ("parked", Effect::Unknown, 1));
        }
        fixture.assert_counts(&[("parked", 2)]).await;
    }

    #[test]
    async fn message_whose_key_expired_at_the_receiver_is_parked(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        fixture.pass(DAY);
        fixture.promote().await;
        fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        assert_eq!(fixture.status(id).await, "parked");
    }

    #[test]
    async fn a_death_counts_as_a_failure_and_the_last_one_is_final(fixture: StoreFixture) {
        let once = NewMessage { max_attempts: many(1), ..message("k1") };
        let id = new_id(fixture.put(once).await);
        fixture.start(&only(fixture.claim_with_marks(1).await)).await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        assert_eq!(fixture.steps(id).await, ["queued>sending", "sending>failed", "failed>dead"]);
        assert_eq!(
            (fixture.status(id).await, fixture.row(id).await.effect),
            ("dead", Effect::Unknown)
        );
    }

    #[test]
    async fn only_unsettled_messages_are_rescued(fixture: StoreFixture) {
        let all = fixture.enqueue_many(4).await;
        let work = fixture.claim(4).await;
        fixture.send(&work[0]).await;
        let _ = fixture.settle(&work[1], will_retry(&work[1])).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(2));
        let mut states = Vec::new();
        for id in &all {
            states.push(fixture.status(*id).await);
        }
        assert_eq!(states, ["sent", "failed", "queued", "queued"]);
        fixture.assert_counts(&[("sent", 1), ("failed", 1), ("queued", 2)]).await;
    }

    #[test]
    async fn a_message_left_over_from_a_batch_was_not_alone(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        let work = fixture.claim(2).await;
        fixture.send(&work[0]).await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        assert_eq!(fixture.status(all[1]).await, "queued", "it is unknown which of the two did it");
        assert!(fixture.claim_one().await.history.suspect);
    }

    #[test]
    async fn empty_lapsed_claim_is_deleted(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        let work = fixture.claim(2).await;
        let other = fixture.another_node().await;
        for work in &work {
            // Another node does not know how many messages the claim holds, so it may leave the claim behind.
            let report = Settlement::new(work, succeeded(work), Note::default());
            let _ = other.claims().settle(report).await.unwrap();
        }
        fixture.pass(AFTER_LEASE);
        assert!(matches!(fixture.rescue(KEYED).await, None | Some(0)));
        assert_eq!(fixture.rescue(KEYED).await, None);
        for id in all {
            assert_eq!(fixture.status(id).await, "sent");
        }
    }

    #[test]
    async fn each_rescue_takes_one_lapsed_claim(fixture: StoreFixture) {
        let all = fixture.enqueue_many(4).await;
        fixture.claim(3).await;
        fixture.claim(1).await;
        fixture.pass(AFTER_LEASE);
        let mut rescued = [fixture.rescue(KEYED).await, fixture.rescue(KEYED).await];
        rescued.sort_unstable();
        assert_eq!(rescued, [Some(1), Some(3)]);
        assert_eq!(fixture.rescue(KEYED).await, None);
        assert_eq!(fixture.status(all[3]).await, "failed");
    }

    #[test]
    async fn any_node_rescues(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        fixture.claim_one().await;
        let other = fixture.another_node().await;
        assert_eq!(rescue(&other, KEYED).await, None);
        other.advance_clock(AFTER_LEASE);
        assert_eq!(rescue(&other, KEYED).await, Some(1));
        assert_eq!(fixture.status(id).await, "failed");
    }

    #[test]
    async fn the_terms_are_those_of_the_messages_queue(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        let terms_of = |name: &QueueName| RescueOptions {
            guarantee: if *name == queue() { Guarantee::None } else { Guarantee::Idempotent },
            wait: BACKOFF,
            max_time_in_flight: TRAVELS_FOR,
        };
        fixture.store.claims().rescue(terms_of).await.unwrap();
        assert_eq!(fixture.status(id).await, "parked");
    }

    #[test]
    async fn the_rescue_is_in_the_audit_with_the_node_that_died(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let held = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        let transitions = fixture.store.messages().transitions(id).await.unwrap();
        let last = transitions.last().unwrap();
        assert_eq!(
            (last.kind.as_str(), last.node, last.effect),
            ("worker_died", Some(terms().node), Effect::Unknown)
        );
        assert_eq!((last.fence, last.attempts), (Some(held.fence.get()), 1));
    }

    #[test]
    async fn rescued_message_is_found_behind_the_scan_cursor(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let lost = fixture.enqueue_many(2).await;
        other.claims().claim(&queue(), many(2), terms()).await.unwrap();
        let after = fixture.enqueue("after").await;
        assert_eq!(ids(&fixture.claim(1).await), [after]);
        other.advance_clock(AFTER_LEASE);
        // The younger claim has lapsed on that clock too; each rescue takes one.
        while rescue(&other, KEYED).await.is_some() {}
        assert_eq!(only(fixture.claim(10).await).id, lost[0]);
        assert_eq!(only(fixture.claim(10).await).id, lost[1]);
    }
}
