//! Races: whatever the order, one side wins and nothing is lost or done twice.
// SPEC D12, D16.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fingerprint::Fingerprint;
use ichido_core::ledger::{Class, OperationGuarantee, Policy, PolicyDraft, RecordName, Settled};
use ichido_core::lifecycle::{Event, Reconciled, State, StepRefusal};
use ichido_core::retry::Safety;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use ichido_store::Store;
use ichido_store::dead_letter::{Disposition, ReplaceOutcome};
use ichido_store::ledger::{KeyClaim, KeyClaimed, KeyOutcome, KeySettle, StoredResponse};
use ichido_store::message::{ClaimedMessage, Enqueued, Note, Settlement, StepResult};
use ichido_store::testing::while_busy;
use uuid::Uuid;

use crate::both_databases;
use crate::fixture::{
    AFTER_LEASE, KEYED, StoreFixture, TRAVELS_FOR, ids, key, many, message, new_id, only, queue,
    rescue_terms, succeeded, terms, will_retry,
};

/// How often a race is run; the timing differs each time.
const ROUNDS: usize = 25;

/// Applies an operator's event to a message.
async fn step(store: &Store, id: Uuid, event: Event) -> StepResult {
    let note = Note::default();
    while_busy(|| store.messages().step(id, |_| event, &note)).await
}

async fn settle(store: Store, work: ClaimedMessage, event: Event) -> StepResult {
    while_busy(|| store.claims().settle(Settlement::new(&work, event, Note::default()))).await
}

async fn claim(store: &Store, count: u32) -> Vec<ClaimedMessage> {
    let queue = queue();
    while_busy(|| store.claims().claim(&queue, many(count), terms())).await
}

async fn rescue(store: &Store) -> Option<usize> {
    while_busy(|| store.claims().rescue(|_| rescue_terms(KEYED))).await
}

/// Claims and sends until nothing is left. Returns what was sent.
async fn drain(store: &Store) -> Vec<Uuid> {
    let mut sent = Vec::new();
    loop {
        store.claims().promote(10_000).await.expect("an answer");
        let work = store.claims().claim(&queue(), many(100), terms()).await.expect("a claim");
        if work.is_empty() {
            return sent;
        }
        for work in work {
            let answer = settle(store.clone(), work.clone(), succeeded(&work)).await;
            assert_eq!(answer, StepResult::Now(State::Sent));
            sent.push(work.id);
        }
    }
}

/// Replaces a letter with a new message.
async fn edit(store: &Store, old: Uuid, key: &str) -> ReplaceOutcome {
    let note = Note::default();
    while_busy(|| store.dead_letters().replace(old, message(key), &note)).await
}

both_databases! {
    /// Of several replacements of one letter at once, one wins, and the others learn that it was replaced.
    // SPEC D17.
    #[test]
    async fn one_of_two_simultaneous_edits_of_a_letter_wins(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        for round in 0..ROUNDS {
            let old = fixture.dead(&format!("old{round}"), Effect::NotDone).await;
            let keys = [format!("a{round}"), format!("b{round}"), format!("c{round}")];
            let answers: [ReplaceOutcome; 3] = tokio::join!(
                edit(&fixture.store, old, &keys[0]),
                edit(&other, old, &keys[1]),
                edit(&fixture.store, old, &keys[2])
            ).into();
            let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| matches!(answer, ReplaceOutcome::By { .. }));
            assert_eq!(won.len(), 1, "{won:?} {lost:?}");
            assert_eq!(lost, [ReplaceOutcome::Refused(StepRefusal::HasSuccessor); 2]);
            assert_eq!(drain(&fixture.store).await.len(), 1, "the winner's");
        }
    }

    /// A replacement while a reconcile finds "not done" comes first and is refused, or second and is applied.
    // SPEC D17.
    #[test]
    async fn edit_during_a_reconcile_is_refused_or_applied(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        for round in 0..ROUNDS {
            let old = fixture.dead(&format!("old{round}"), Effect::Unknown).await;
            for store in [&fixture.store, &other] {
                store.advance_clock(TRAVELS_FOR);
            }
            let learnt = Event::Reconciled(Reconciled::NotDone { due: Timestamp::EPOCH });
            let new = format!("new{round}");
            let (learnt, edited) = tokio::join!(step(&fixture.store, old, learnt), edit(&other, old, &new));
            assert!(matches!(learnt, StepResult::Now(State::Dead { effect: Effect::NotDone, .. })), "{learnt:?}");
            let letter = only(fixture.store.dead_letters().find(&[old]).await.unwrap());
            match edited {
                ReplaceOutcome::By { effect: Effect::NotDone, .. } => assert_eq!(letter.disposition, Disposition::Replaced),
                ReplaceOutcome::Refused(StepRefusal::CouldDoItTwice) => assert_eq!(letter.disposition, Disposition::Open),
                other => panic!("{other:?}"),
            }
            drain(&fixture.store).await;
        }
    }

    /// A known trap: a rescue that computes what is left from an old snapshot requeues what was just sent.
    #[test]
    async fn settle_during_rescue_is_sent_or_waiting_never_both(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        for round in 0..ROUNDS {
            let mut all = Vec::new();
            for number in 0..8 {
                all.push(fixture.enqueue(&format!("r{round}m{number}")).await);
            }
            let work = fixture.claim(8).await;
            assert_eq!(ids(&work), all);
            fixture.pass(AFTER_LEASE);
            other.advance_clock(AFTER_LEASE);
            let rescuer = tokio::spawn({
                let other = other.clone();
                async move { rescue(&other).await }
            });
            let settlers: Vec<_> = work
                .iter()
                .map(|work| tokio::spawn(settle(fixture.store.clone(), work.clone(), succeeded(work))))
                .collect();
            for settler in settlers {
                // Late or not, a success is a success.
                assert_eq!(settler.await.unwrap(), StepResult::Now(State::Sent));
            }
            rescuer.await.unwrap();
            while fixture.rescue(KEYED).await.is_some() {}
            assert!(drain(&fixture.store).await.is_empty(), "what was sent is claimable");
            for id in &all {
                let steps = fixture.steps(*id).await;
                assert_eq!(steps.iter().filter(|step| step.ends_with(">sent")).count(), 1, "{steps:?}");
            }
        }
        let total = i64::try_from(ROUNDS * 8).unwrap();
        fixture.assert_counts(&[("sent", total)]).await;
    }

    #[test]
    async fn failure_during_rescue_is_not_lost(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        for round in 0..ROUNDS {
            let mut all = Vec::new();
            for number in 0..8 {
                all.push(fixture.enqueue(&format!("r{round}m{number}")).await);
            }
            let work = fixture.claim(8).await;
            fixture.pass(AFTER_LEASE);
            other.advance_clock(AFTER_LEASE);
            let rescuer = tokio::spawn({
                let other = other.clone();
                async move { rescue(&other).await }
            });
            let settlers: Vec<_> = work
                .iter()
                .map(|work| tokio::spawn(settle(fixture.store.clone(), work.clone(), will_retry(work))))
                .collect();
            let mut failed = 0;
            for settler in settlers {
                failed += usize::from(matches!(settler.await.unwrap(), StepResult::Now(State::Failed { .. })));
            }
            rescuer.await.unwrap();
            while fixture.rescue(KEYED).await.is_some() {}
            for id in &all {
                assert_eq!(fixture.steps(*id).await.len(), 2, "one claim, one end");
            }
            let counts = fixture.counts().await;
            assert_eq!(counts.get("failed").copied().unwrap_or(0), i64::try_from(failed).unwrap());
            fixture.pass(Duration::from_mins(5));
            other.advance_clock(Duration::from_mins(5));
            let mut sent = drain(&fixture.store).await;
            sent.sort_unstable();
            assert_eq!(sent, all, "each is sent in the end");
            let total = i64::try_from((round + 1) * 8).unwrap();
            fixture.assert_counts(&[("sent", total)]).await;
        }
    }

    #[test]
    async fn two_rescuers_rescue_each_claim_once(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        for round in 0..ROUNDS {
            for number in 0..4 {
                fixture.enqueue(&format!("r{round}m{number}")).await;
            }
            fixture.claim(2).await;
            fixture.claim(2).await;
            fixture.pass(AFTER_LEASE);
            other.advance_clock(AFTER_LEASE);
            let mut rescued = 0;
            for _ in 0..3 {
                let (mine, theirs) = tokio::join!(rescue(&fixture.store), rescue(&other));
                rescued += mine.unwrap_or(0) + theirs.unwrap_or(0);
            }
            assert_eq!(rescued, 4);
            assert_eq!(drain(&fixture.store).await.len(), 4);
        }
    }

    #[test]
    async fn either_cancel_or_claim_wins(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        for round in 0..ROUNDS {
            let id = fixture.enqueue(&format!("k{round}")).await;
            let (cancelled, work) = tokio::join!(step(&other, id, Event::Cancelled), claim(&fixture.store, 1));
            let cancelled = matches!(cancelled, StepResult::Now(_));
            assert_eq!(cancelled, work.is_empty(), "round {round}");
            for work in &work {
                fixture.send(work).await;
            }
            assert_eq!(fixture.status(id).await, if cancelled { "cancelled" } else { "sent" });
        }
        assert_eq!(fixture.counts().await.values().sum::<i64>(), i64::try_from(ROUNDS).unwrap());
    }

    #[test]
    async fn one_of_two_requeues_wins_and_is_claimed_once(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let event = Event::Requeued { allowed: true, safety: Safety::None };
        for round in 0..ROUNDS {
            let id = fixture.dead(&format!("k{round}"), Effect::NotDone).await;
            let (mine, theirs, early) = tokio::join!(
                step(&fixture.store, id, event),
                step(&other, id, event),
                claim(&fixture.store, 1),
            );
            let won = [mine, theirs].iter().filter(|answer| matches!(answer, StepResult::Now(_))).count();
            assert_eq!(won, 1, "{mine:?} {theirs:?}");
            let late = fixture.claim(1).await;
            assert_eq!([ids(&early), ids(&late)].concat(), [id]);
            for work in early.iter().chain(&late) {
                fixture.send(work).await;
            }
        }
    }

    #[test]
    async fn cancel_during_promotion_does_not_lose_the_message(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        for round in 0..ROUNDS {
            let id = fixture.enqueue(&format!("k{round}")).await;
            let work = fixture.claim_one().await;
            let _ = fixture.settle(&work, will_retry(&work)).await;
            fixture.pass(Duration::from_mins(5));
            let (answer, _) = tokio::join!(
                step(&other, id, Event::Cancelled),
                while_busy(|| fixture.store.claims().promote(10_000)),
            );
            assert!(matches!(answer, StepResult::Now(State::Cancelled { .. })), "{answer:?}");
            assert!(drain(&fixture.store).await.is_empty());
        }
        fixture.assert_counts(&[("cancelled", i64::try_from(ROUNDS).unwrap())]).await;
    }

    #[test]
    async fn simultaneous_promotions_promote_each_message_once(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        fixture.enqueue_many(200).await;
        for work in fixture.claim(200).await {
            let _ = fixture.settle(&work, will_retry(&work)).await;
        }
        fixture.pass(Duration::from_mins(5));
        other.advance_clock(Duration::from_mins(5));
        let (mine, theirs) = tokio::join!(
            while_busy(|| fixture.store.claims().promote(1_000)),
            while_busy(|| other.claims().promote(1_000)),
        );
        let total = |promoted: Vec<(_, u64)>| promoted.iter().map(|(_, count)| *count).sum::<u64>();
        assert_eq!(total(mine) + total(theirs) + fixture.promote().await, 200);
        fixture.assert_counts(&[("queued", 200)]).await;
    }

    #[test]
    async fn one_of_two_decisions_wins(fixture: StoreFixture) {
        use ichido_core::lifecycle::Decision::{GiveUp, NotDone};
        let other = fixture.another_node().await;
        for round in 0..ROUNDS {
            let (id, _) = fixture.parked(&format!("k{round}")).await;
            fixture.pass(Duration::from_hours(1));
            other.advance_clock(Duration::from_hours(1));
            let (mine, theirs) = tokio::join!(
                step(&fixture.store, id, Event::Decided(NotDone)),
                step(&other, id, Event::Decided(GiveUp)),
            );
            let won = [mine, theirs].iter().filter(|answer| matches!(answer, StepResult::Now(_))).count();
            assert_eq!(won, 1, "{mine:?} {theirs:?}");
            drain(&fixture.store).await;
        }
    }

    /// An expired key is swept while a request under it arrives: the request replays or runs, and is never stuck.
    #[test]
    async fn sweep_during_replay_keeps_both_correct(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let draft = PolicyDraft { guarantee: Some(OperationGuarantee::None), ..PolicyDraft::new(Class::Mutate) };
        let policy = Arc::new(Policy::build(draft).unwrap());
        let ttl = policy.ttl();
        for round in 0..ROUNDS {
            let name = RecordName {
                operation: "orders.create".to_owned(),
                identity: "alice".to_owned(),
                key: key(&format!("k{round}")),
            };
            let claim = || KeyClaim {
                name: name.clone(),
                fingerprint: Fingerprint::from_bytes([1; 32]),
                request_digest: Digest::of_bytes(b"10 EUR"),
                policy: Arc::clone(&policy),
                hops: None,
                trace: None,
            };
            let KeyClaimed::Run { fence, .. } = fixture.store.keys().claim(claim()).await.unwrap() else {
                panic!("not run")
            };
            let response = StoredResponse { status: 200, headers: Vec::new(), body: Some(b"ok".to_vec()) };
            let outcome = KeyOutcome::Keep {
                settled: Settled::Applied,
                response,
                result_digest: None,
                message_id: None,
                ttl,
            };
            let _ = fixture.store.keys().settle(KeySettle { name: name.clone(), fence, outcome }).await.unwrap();
            fixture.pass(ttl);
            // The other node's clock is behind: for it the key has not expired, and only a sweep removes it.
            let (_, behind, ahead) = tokio::join!(
                while_busy(|| fixture.store.keys().sweep(10)),
                while_busy(|| other.keys().claim(claim())),
                while_busy(|| fixture.store.keys().claim(claim())),
            );
            let runs =
                [&behind, &ahead].iter().filter(|answer| matches!(answer, KeyClaimed::Run { .. })).count();
            assert!(runs <= 1, "{behind:?} {ahead:?}");
            other.advance_clock(ttl);
        }
    }

    #[test]
    async fn cancelled_callers_do_not_affect_others(fixture: StoreFixture) {
        let puts: Vec<_> = (0..200)
            .map(|number| {
                let store = fixture.store.clone();
                tokio::spawn(async move { store.messages().enqueue(message(&format!("k{number}"))).await })
            })
            .collect();
        for put in puts.iter().step_by(2) {
            put.abort();
        }
        for (number, put) in puts.into_iter().enumerate() {
            match put.await {
                Ok(answer) => drop(new_id(answer.unwrap())),
                Err(gone) => assert!(gone.is_cancelled() && number.is_multiple_of(2)),
            }
        }
        for number in (1..200).step_by(2) {
            let again = fixture.put(message(&format!("k{number}"))).await;
            assert!(matches!(again, Enqueued::Replay { .. }), "{number}: {again:?}");
        }
        // Messages are complete: as many are claimable as are counted.
        let counted = fixture.counts().await.get("queued").copied();
        assert_eq!(counted, i64::try_from(drain(&fixture.store).await.len()).ok());
    }

    #[test]
    async fn one_of_many_operators_wins(fixture: StoreFixture) {
        let other = fixture.another_node().await;
        let id = fixture.enqueue("k1").await;
        let operators: Vec<_> = (0..20)
            .map(|number| {
                let store = if number % 2 == 0 { fixture.store.clone() } else { other.clone() };
                tokio::spawn(async move { step(&store, id, Event::Cancelled).await })
            })
            .collect();
        let mut won = 0;
        for operator in operators {
            won += usize::from(matches!(operator.await.unwrap(), StepResult::Now(State::Cancelled { .. })));
        }
        assert_eq!(won, 1);
        assert_eq!(fixture.steps(id).await, ["queued>cancelled"]);
        fixture.assert_counts(&[("cancelled", 1)]).await;
    }

    #[test]
    async fn many_workers_send_each_message_once_while_claims_lapse_and_are_rescued(fixture: StoreFixture) {
        fixture.enqueue_many(600).await;
        let other = fixture.another_node().await;
        let workers: Vec<_> = (0..6)
            .map(|number: usize| {
                let store = if number.is_multiple_of(2) { fixture.store.clone() } else { other.clone() };
                tokio::spawn(async move {
                    let mut round = 0;
                    loop {
                        let work = claim(&store, 20).await;
                        if work.is_empty() {
                            return;
                        }
                        round += 1;
                        for (index, work) in work.iter().enumerate() {
                            // Occasionally a worker abandons one.
                            if !(index + number + round).is_multiple_of(7) {
                                let _ = settle(store.clone(), work.clone(), succeeded(work)).await;
                            }
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        fixture.pass(AFTER_LEASE);
        other.advance_clock(AFTER_LEASE);
        while fixture.rescue(KEYED).await.is_some() {}
        fixture.pass(Duration::from_mins(5));
        drain(&fixture.store).await;
        fixture.assert_counts(&[("sent", 600)]).await;
    }
}
