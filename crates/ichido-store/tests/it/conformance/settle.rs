//! Settling messages: failures, claims that end, reports that come twice or late.
// SPEC D3, D12, D13, F2.

use ichido_core::lifecycle::{Event, Failure, State, StepRefusal};
use ichido_core::retry::{Guarantee, Safety};
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::message::{ClaimOptions, ClaimedMessage, Note, Settlement, StepResult};
use ichido_store::testing::while_busy;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, BACKOFF, KEYED, LEASE, StoreFixture, TRAVELS_FOR, final_failure, given_back, in_doubt, many,
    now, only, queue, rescue, succeeded, terms, will_retry,
};

both_databases! {
    #[test]
    async fn a_failed_message_waits_for_its_time_and_is_claimed_again(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let note = Note { code: Some(ErrorCode::Broker5xx), status: Some(503), ..Note::default() };
        let state = now(fixture.settle_with_note(&work, will_retry(&work), note).await);
        assert!(
            matches!(state, State::Failed { due, .. } if due == work.claimed_at.plus(BACKOFF)),
            "{state:?}"
        );
        let row = fixture.row(id).await;
        assert_eq!(
            (row.status.as_str(), row.attempts, row.last_error.as_deref()),
            ("failed", 1, Some("BROKER_5XX"))
        );
        assert_eq!(row.next_attempt, Some(work.claimed_at.plus(BACKOFF)));
        assert_eq!(fixture.promote().await, 0);
        assert!(fixture.claim(10).await.is_empty(), "not yet due");
        fixture.pass(BACKOFF);
        assert_eq!(fixture.promote().await, 1);
        assert_eq!(fixture.status(id).await, "queued");
        let second = fixture.claim_one().await;
        assert_eq!((second.id, second.history.attempts), (id, 2));
        assert!(work.fence < second.fence);
    }

    #[test]
    async fn permanent_failure_is_dead_at_once(fixture: StoreFixture) {
        for (text, effect) in [("k1", Effect::NotDone), ("k2", Effect::Unknown)] {
            let id = fixture.dead(text, effect).await;
            let row = fixture.row(id).await;
            assert_eq!((row.status.as_str(), row.effect), ("dead", effect));
            assert_eq!(
                (row.last_error.as_deref(), row.last_error_text.as_deref()),
                (Some("BAD_REQUEST"), Some("no such symbol"))
            );
            assert_eq!(fixture.steps(id).await, ["queued>sending", "sending>dead"]);
        }
        assert!(fixture.claim(10).await.is_empty());
    }

    #[test]
    async fn message_without_attempts_left_fails_then_dies(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        for attempts in 1..=3 {
            let work = fixture.claim_one().await;
            assert_eq!(work.history.attempts, attempts);
            let state = now(fixture.settle(&work, will_retry(&work)).await);
            assert_eq!(state.name(), if attempts < 3 { "failed" } else { "dead" });
            fixture.pass(BACKOFF);
            fixture.promote().await;
        }
        let steps = fixture.steps(id).await;
        assert_eq!(steps[steps.len() - 3..], ["queued>sending", "sending>failed", "failed>dead"]);
        assert_eq!((fixture.row(id).await.attempts, fixture.status(id).await), (3, "dead"));
        fixture.assert_counts(&[("dead", 1)]).await;
        assert!(fixture.claim(10).await.is_empty());
    }

    #[test]
    async fn a_message_in_doubt_is_parked(fixture: StoreFixture) {
        let (id, work) = fixture.parked("k1").await;
        let row = fixture.row(id).await;
        assert_eq!((row.status.as_str(), row.effect, row.attempts), ("parked", Effect::Unknown, 1));
        assert_eq!(fixture.steps(id).await, ["queued>sending", "sending>parked"]);
        fixture.pass(BACKOFF);
        assert_eq!(fixture.promote().await, 0);
        assert!(fixture.claim(10).await.is_empty());
        assert_eq!(work.id, id);
    }

    #[test]
    async fn an_unknown_effect_that_could_happen_twice_is_parked(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let event = Event::Failed {
            fence: work.fence,
            failure: Failure::Retry { due: work.claimed_at.plus(BACKOFF) },
            effect: Effect::Unknown,
            safety: Safety::None,
            in_flight_until: work.claimed_at.plus(TRAVELS_FOR),
        };
        assert_eq!(now(fixture.settle(&work, event).await).name(), "parked");
        assert_eq!(fixture.status(id).await, "parked");
    }

    #[test]
    async fn doubt_stays_with_the_message_at_its_next_attempt(fixture: StoreFixture) {
        fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let event = Event::Failed {
            fence: work.fence,
            failure: Failure::Retry { due: work.claimed_at.plus(BACKOFF) },
            effect: Effect::Unknown,
            safety: Safety::Keyed,
            in_flight_until: work.claimed_at.plus(TRAVELS_FOR),
        };
        let State::Failed { history, .. } = now(fixture.settle(&work, event).await) else {
            panic!("not failed")
        };
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let second = fixture.claim_one().await;
        assert_eq!((second.history.doubt, history.doubt.is_some()), (history.doubt, true));
    }

    /// Of one claim some messages are sent, some fail, and the rest must be rescued when it lapses.
    #[test]
    async fn a_claim_whose_messages_end_in_different_ways_loses_none(fixture: StoreFixture) {
        let all = fixture.enqueue_many(6).await;
        let work = fixture.claim(6).await;
        let settlements: Vec<_> = work[..4]
            .iter()
            .enumerate()
            .map(|(number, work)| {
                let event = if number % 2 == 0 { succeeded(work) } else { will_retry(work) };
                let settlement = Settlement::new(work, event, Note::default());
                let store = fixture.store.clone();
                tokio::spawn(async move { while_busy(|| store.claims().settle(settlement.clone())).await })
            })
            .collect();
        for settlement in settlements {
            now(settlement.await.unwrap());
        }
        fixture.assert_counts(&[("sent", 2), ("failed", 2), ("sending", 2)]).await;
        fixture.send(&work[4]).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        assert_eq!(fixture.status(all[5]).await, "queued");
        assert_eq!(fixture.rescue(KEYED).await, None);
    }

    #[test]
    async fn claim_ends_with_its_last_message(fixture: StoreFixture) {
        fixture.enqueue_many(4).await;
        let work = fixture.claim(4).await;
        for work in &work[..2] {
            fixture.send(work).await;
        }
        let _ = fixture.settle(&work[2], will_retry(&work[2])).await;
        let _ = fixture.settle(&work[3], in_doubt(&work[3])).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.store.claims().renew(&[work[0].fence], LEASE).await.unwrap(), [false]);
        assert_eq!(fixture.rescue(KEYED).await, None);
    }

    /// A repeated report, as after a lost answer, must not count for a neighbour that is still being sent.
    #[test]
    async fn a_message_settled_twice_does_not_end_its_neighbours_claim(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        let work = fixture.claim(2).await;
        fixture.send(&work[0]).await;
        fixture.send(&work[0]).await;
        assert_eq!(fixture.status(all[1]).await, "sending");
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        assert_eq!(
            (fixture.status(all[0]).await, fixture.status(all[1]).await),
            ("sent", "queued")
        );
        assert_eq!(fixture.steps(all[0]).await, ["queued>sending", "sending>sent"]);
    }

    #[test]
    async fn a_failure_reported_twice_is_one_failure(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        let work = fixture.claim(2).await;
        for _ in 0..2 {
            assert_eq!(now(fixture.settle(&work[0], will_retry(&work[0])).await).name(), "failed");
        }
        assert_eq!(fixture.steps(all[0]).await, ["queued>sending", "sending>failed"]);
        fixture.assert_counts(&[("failed", 1), ("sending", 1)]).await;
    }

    #[test]
    async fn another_outcome_than_the_one_that_was_reported_is_refused(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        let work = fixture.claim(2).await;
        fixture.send(&work[0]).await;
        for event in
            [will_retry(&work[0]), in_doubt(&work[0]), given_back(&work[0]), final_failure(&work[0], Effect::NotDone)]
        {
            assert_eq!(fixture.settle(&work[0], event).await, StepResult::Refused(StepRefusal::StaleFence));
        }
        assert_eq!(fixture.status(all[0]).await, "sent");
        fixture.assert_counts(&[("sent", 1), ("sending", 1)]).await;
    }

    #[test]
    async fn simultaneous_reports_of_one_message_are_one_outcome(fixture: StoreFixture) {
        fixture.enqueue_many(20).await;
        let work = fixture.claim(20).await;
        let reports: Vec<_> = work
            .iter()
            .flat_map(|work| {
                [will_retry(work), given_back(work), will_retry(work), in_doubt(work)].map(|event| (work, event))
            })
            .map(|(work, event)| {
                let settlement = Settlement::new(work, event, Note::default());
                let store = fixture.store.clone();
                tokio::spawn(async move { while_busy(|| store.claims().settle(settlement.clone())).await })
            })
            .collect();
        for report in reports {
            let _ = report.await.unwrap();
        }
        assert_eq!(fixture.counts().await.values().sum::<i64>(), 20);
        for work in &work {
            assert_eq!(fixture.steps(work.id).await.len(), 2);
        }
    }

    #[test]
    async fn a_refused_report_leaves_the_message_with_its_claim(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let done_but_again = Event::Failed {
            fence: work.fence,
            failure: Failure::Retry { due: work.claimed_at },
            effect: Effect::Done,
            safety: Safety::Keyed,
            in_flight_until: work.claimed_at,
        };
        assert_eq!(fixture.settle(&work, done_but_again).await, StepResult::Refused(StepRefusal::WasDone));
        assert_eq!(fixture.status(id).await, "sending");
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1), "it is not forgotten");
    }

    #[test]
    async fn a_refused_report_does_not_end_its_neighbours_claim(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        let work = fixture.claim(2).await;
        let cancelled = fixture.settle(&work[0], Event::Cancelled).await;
        assert_eq!(cancelled, StepResult::Refused(StepRefusal::WrongState));
        fixture.send(&work[1]).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        assert_eq!(fixture.status(all[0]).await, "queued");
    }

    #[test]
    async fn start_is_not_an_outcome(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let began = fixture.settle(&work, Event::Started { fence: work.fence }).await;
        assert_eq!(began, StepResult::Refused(StepRefusal::WrongState));
        assert_eq!(fixture.status(id).await, "sending");
        fixture.send(&work).await;
    }

    #[test]
    async fn a_report_under_another_fence_is_refused(fixture: StoreFixture) {
        fixture.enqueue_many(2).await;
        let first = only(fixture.claim(1).await);
        let second = only(fixture.claim(1).await);
        let stray = fixture.settle(&first, succeeded(&second)).await;
        assert_eq!(stray, StepResult::Refused(StepRefusal::StaleFence));
        fixture.assert_counts(&[("sending", 2)]).await;
    }

    #[test]
    async fn a_zombies_failure_after_the_rescue_changes_nothing(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let zombie = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        let before = fixture.row(id).await;
        for event in
            [will_retry(&zombie), final_failure(&zombie, Effect::NotDone), in_doubt(&zombie), given_back(&zombie)]
        {
            assert_eq!(fixture.settle(&zombie, event).await, StepResult::Refused(StepRefusal::StaleFence));
        }
        assert_eq!(fixture.row(id).await, before);
        fixture.assert_counts(&[("failed", 1)]).await;
    }

    #[test]
    async fn a_zombies_success_stops_the_resend_of_a_waiting_message(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let zombie = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        let note = Note { receipt: Some("order-7".to_owned()), ..Note::default() };
        assert_eq!(fixture.settle_with_note(&zombie, succeeded(&zombie), note).await, StepResult::Now(State::Sent));
        fixture.pass(BACKOFF);
        assert_eq!(fixture.promote().await, 0);
        assert!(fixture.claim(10).await.is_empty());
        assert_eq!(fixture.steps(id).await, ["queued>sending", "sending>failed", "failed>sent"]);
        let last = fixture.store.messages().transitions(id).await.unwrap().pop().unwrap();
        assert_eq!((last.kind.as_str(), last.receipt.as_deref()), ("late_success", Some("order-7")));
        fixture.assert_counts(&[("sent", 1)]).await;
    }

    #[test]
    async fn a_zombies_success_stops_the_resend_of_a_queued_message(fixture: StoreFixture) {
        fixture.enqueue_many(2).await;
        let zombies = fixture.claim(2).await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(2));
        for zombie in &zombies {
            fixture.send(zombie).await;
        }
        assert!(fixture.claim(10).await.is_empty());
        fixture.assert_counts(&[("sent", 2)]).await;
    }

    #[test]
    async fn a_zombies_success_resolves_a_parked_message(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let zombie = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(Guarantee::None).await;
        assert_eq!(fixture.status(id).await, "parked");
        fixture.send(&zombie).await;
        assert_eq!((fixture.status(id).await, fixture.row(id).await.effect), ("sent", Effect::Done));
    }

    #[test]
    async fn zombie_success_does_not_change_a_resend(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let zombie = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let second = fixture.claim_one().await;
        assert_eq!(fixture.settle(&zombie, succeeded(&zombie)).await, StepResult::Refused(StepRefusal::StaleFence));
        assert_eq!(fixture.status(id).await, "sending");
        fixture.send(&second).await;
    }

    #[test]
    async fn a_success_after_a_reported_failure_stops_the_resend(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        let work = fixture.claim(2).await;
        let _ = fixture.settle(&work[0], will_retry(&work[0])).await;
        fixture.send(&work[0]).await;
        assert_eq!(fixture.status(all[0]).await, "sent");
        fixture.assert_counts(&[("sent", 1), ("sending", 1)]).await;
    }

    #[test]
    async fn late_success_of_a_dead_message_is_recorded(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let work = fixture.claim_one().await;
        let _ = fixture.settle(&work, final_failure(&work, Effect::Unknown)).await;
        let learnt = now(fixture.settle(&work, succeeded(&work)).await);
        assert!(matches!(learnt, State::Dead { effect: Effect::Done, .. }), "{learnt:?}");
        assert_eq!((fixture.status(id).await, fixture.row(id).await.effect), ("dead", Effect::Done));
        fixture.assert_counts(&[("dead", 1)]).await;
    }

    #[test]
    async fn late_success_of_a_cancelled_message_is_recorded(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let zombie = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        fixture.rescue(KEYED).await;
        assert_eq!(now(fixture.step(id, Event::Cancelled).await).name(), "cancelled");
        assert_eq!(fixture.row(id).await.effect, Effect::Unknown);
        let learnt = now(fixture.settle(&zombie, succeeded(&zombie)).await);
        assert!(matches!(learnt, State::Cancelled { effect: Effect::Done, .. }), "{learnt:?}");
        assert_eq!(
            (fixture.status(id).await, fixture.row(id).await.effect),
            ("cancelled", Effect::Done)
        );
        fixture.assert_counts(&[("cancelled", 1)]).await;
    }

    /// The fence identifies a claim. A process that starts again under its old node id gets a new one.
    #[test]
    async fn reused_worker_id_does_not_complete_stale_work(fixture: StoreFixture) {
        let id = fixture.enqueue("k1").await;
        let node = terms().node;
        let stale = fixture.claim_one().await;
        fixture.pass(AFTER_LEASE);
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        fixture.pass(BACKOFF);
        fixture.promote().await;
        let again = ClaimOptions { node, ..terms() };
        let current = only(fixture.store.claims().claim(&queue(), many(1), again).await.unwrap());
        assert_eq!((current.id, stale.id), (id, id));
        assert!(stale.fence < current.fence);
        assert_eq!(fixture.store.claims().renew(&[stale.fence, current.fence], LEASE).await.unwrap(), [false, true]);
        for event in [succeeded(&stale), will_retry(&stale), given_back(&stale)] {
            assert_eq!(fixture.settle(&stale, event).await, StepResult::Refused(StepRefusal::StaleFence));
        }
        assert_eq!(fixture.status(id).await, "sending");
        fixture.send(&current).await;
    }

    /// A report says what happened. Expiry alone does not make it wrong; a rescue does.
    #[test]
    async fn expired_claim_is_refused_once_it_was_rescued(fixture: StoreFixture) {
        let all = fixture.enqueue_many(2).await;
        let (first, second) = (only(fixture.claim(1).await), only(fixture.claim(1).await));
        fixture.pass(AFTER_LEASE);
        let fences = [first.fence, second.fence];
        assert_eq!(fixture.store.claims().renew(&fences, LEASE).await.unwrap(), [false, false]);
        // Not rescued yet: nobody else has it.
        fixture.send(&first).await;
        assert_eq!(fixture.rescue(KEYED).await, Some(0), "the first is finished");
        assert_eq!(fixture.rescue(KEYED).await, Some(1));
        for event in [will_retry(&second), given_back(&second)] {
            assert_eq!(fixture.settle(&second, event).await, StepResult::Refused(StepRefusal::StaleFence));
        }
        assert_eq!(fixture.status(all[1]).await, "failed", "as the rescue left it");
    }

    #[test]
    async fn any_node_may_report_for_a_claim(fixture: StoreFixture) {
        fixture.enqueue_many(2).await;
        let work = fixture.claim(2).await;
        let other = fixture.another_node().await;
        let report = |work: &ClaimedMessage| Settlement::new(work, succeeded(work), Note::default());
        assert_eq!(other.claims().settle(report(&work[0])).await.unwrap(), StepResult::Now(State::Sent));
        fixture.send(&work[1]).await;
        fixture.pass(AFTER_LEASE);
        assert!(matches!(rescue(&fixture.store, KEYED).await, None | Some(0)));
        fixture.assert_counts(&[("sent", 2)]).await;
    }
}
