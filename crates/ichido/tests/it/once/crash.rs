//! Case 24: a process dies at each step. It is a runtime that is shut down with all its tasks, connections and renewals.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ichido_core::ledger::RecordPhase;
use tokio::runtime::Runtime;

use super::fixture::{AFTER_LEASE, HandlerRun, MODES, Mode, OnceFixture, both_databases, keyed};
use crate::handler_gate::HandlerGate;

/// A node that can die.
struct Doomed(Runtime);

impl Doomed {
    fn new() -> Self {
        Self(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap())
    }

    /// Sends it a request whose handler does `work`; does not wait for the response.
    fn send<F, A>(&self, fixture: &OnceFixture, mode: Mode, key: &str, work: F)
    where
        F: Fn(HandlerRun) -> A + Send + Sync + 'static,
        A: Future<Output = HandlerRun> + Send + 'static,
    {
        let (location, work, key) = (fixture.location(), Arc::new(work), key.to_owned());
        self.0.spawn(async move {
            let node = OnceFixture::at(location).await;
            let handler = node.handler(move |run| {
                let work = Arc::clone(&work);
                async move { work(run).await.created() }
            });
            keyed(&key).send(&node.serve(node.once(mode), handler)).await;
        });
    }

    fn die(self) {
        self.0.shutdown_background();
    }
}

both_databases! {
    #[test]
    async fn case_24_a_crash_after_the_claim_and_before_the_effect(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let (gate, inside) = (HandlerGate::shut(), HandlerGate::shut());
            let reached = gate.clone();
            let doomed = Doomed::new();
            doomed.send(&fixture, mode, &key, move |run| {
                let (reached, inside) = (reached.clone(), inside.clone());
                async move {
                    reached.open(1);
                    inside.pass().await;
                    run
                }
            });
            gate.pass().await;
            doomed.die();
            after_the_crash(&fixture, mode, &key).await;
            let effects = usize::from(mode != Mode::Opaque);
            fixture.assert_effects(before + effects).await;
        }
    }

    #[test]
    async fn case_24_a_crash_after_the_effect_and_before_its_outcome_is_stored(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let (gate, inside) = (HandlerGate::shut(), HandlerGate::shut());
            let reached = gate.clone();
            let doomed = Doomed::new();
            doomed.send(&fixture, mode, &key, move |run| {
                let (reached, inside) = (reached.clone(), inside.clone());
                async move {
                    run.order().await;
                    reached.open(1);
                    inside.pass().await;
                    run
                }
            });
            gate.pass().await;
            doomed.die();
            after_the_crash(&fixture, mode, &key).await;
            // Transactional: the first was rolled back. Keyed: the upstream would deduplicate; here both count. Opaque:
            // held.
            let effects = if mode == Mode::Keyed { 2 } else { 1 };
            fixture.assert_effects(before + effects).await;
        }
    }

    #[test]
    async fn case_24_a_crash_after_the_outcome_is_stored(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let runs = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&runs);
            let doomed = Doomed::new();
            doomed.send(&fixture, mode, &key, move |run| {
                counted.fetch_add(1, Ordering::SeqCst);
                async move {
                    run.order().await;
                    run
                }
            });
            fixture.until(&key, |record| {
                record.is_some_and(|record| matches!(record.record.phase, RecordPhase::Settled { .. }))
            })
            .await;
            doomed.die();
            keyed(&key).send(&fixture.orders(mode)).await.assert_replay(201, "order 1");
            fixture.assert_effects(before + 1).await;
            assert_eq!(runs.load(Ordering::SeqCst), 1);
        }
    }
}

/// The claim of the dead node holds until its lease lapses; then the mode decides. Without a claim, the key is free.
async fn after_the_crash(fixture: &OnceFixture, mode: Mode, key: &str) {
    let fixture = fixture.another_node().await;
    let orders =
        fixture.serve(fixture.once(mode).in_flight_wait(std::time::Duration::ZERO), fixture.ordering());
    if mode == Mode::Transactional {
        assert_eq!(fixture.phase(key).await, None);
        return keyed(key).send(&orders).await.assert_first(201, "order 1");
    }
    keyed(key).send(&orders).await.assert_problem(202, "key_in_flight");
    keyed(key).body("99 EUR").send(&orders).await.assert_problem(409, "key_conflict");
    fixture.pass(AFTER_LEASE);
    let answer = keyed(key).send(&orders).await;
    match mode {
        Mode::Claimed | Mode::Keyed => answer.assert_first(201, "order 1"),
        Mode::Opaque => answer.assert_problem(409, "outcome_unknown"),
        Mode::Transactional => unreachable!("it was free"),
    }
}
