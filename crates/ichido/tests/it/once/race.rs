//! Cases 19 to 23: concurrent duplicates, and claims that were taken over.
// Spec: C6.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use ichido::once::Once;
use ichido_core::ledger::RecordPhase;
use ichido_store::testing::while_busy;
use tower::{Layer as _, Service, ServiceExt as _};

use super::fixture::{
    AFTER_LEASE, MODES, Mode, OnceFixture, ProtectedService, SHORT_LEASE, TestHandler, both_databases,
    in_time, keyed, respond,
};
use super::relay::Relay;
use crate::handler_gate::HandlerGate;

/// A service whose handler places its order and then waits at a gate.
fn gated(fixture: &OnceFixture, once: Once, gate: &HandlerGate) -> ProtectedService {
    fixture.serve(once, ordering_at(fixture, gate))
}

fn ordering_at(fixture: &OnceFixture, gate: &HandlerGate) -> TestHandler {
    let gate = gate.clone();
    fixture.handler(move |run| {
        let gate = gate.clone();
        async move {
            run.order().await;
            gate.pass().await;
            run.created()
        }
    })
}

/// A handler that waits at a gate without an open transaction.
fn waiting_at(fixture: &OnceFixture, gate: &HandlerGate) -> TestHandler {
    let gate = gate.clone();
    fixture.handler(move |run| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            run.order().await;
            run.created()
        }
    })
}

both_databases! {
    #[test]
    async fn case_19_one_of_a_hundred_duplicates_on_two_nodes_runs(fixture: OnceFixture) {
        let other = fixture.another_node().await;
        for mode in MODES {
            let before = fixture.effects().await;
            let nodes = [fixture.orders(mode), other.orders(mode)];
            let key = format!("{mode:?}");
            let calls: Vec<_> = (0..100).map(|number| keyed(&key).start_while_busy(&nodes[number % 2])).collect();
            let mut firsts = 0;
            for call in calls {
                let answer = call.await.unwrap();
                assert_eq!((answer.status(), answer.text()), (201, "order 1"), "{answer:?}");
                firsts += usize::from(!answer.is_replay());
            }
            assert_eq!(firsts, 1);
            fixture.assert_effects(before + 1).await;
        }
    }

    #[test]
    async fn duplicate_waits_then_gets_in_flight(fixture: OnceFixture) {
        let gate = HandlerGate::shut();
        let once = fixture.once(Mode::Keyed).in_flight_wait(Duration::from_millis(1));
        let orders = gated(&fixture, once, &gate);
        let first = keyed("k1").start(&orders);
        gate.reached(1).await;
        let answer = keyed("k1").send(&orders).await;
        answer.assert_problem(202, "key_in_flight");
        assert_eq!(answer.field("idempotency-status"), Some("processing"));
        assert_eq!(answer.field("retry-after"), Some("1"));
        gate.open(1);
        first.await.unwrap().assert_first(201, "order 1");
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn a_duplicate_that_waits_gets_the_outcome_on_another_node_too(fixture: OnceFixture) {
        let other = fixture.another_node().await;
        let gate = HandlerGate::shut();
        let orders = fixture.serve(fixture.once(Mode::Keyed), ordering_at(&fixture, &gate));
        let first = keyed("k1").start(&orders);
        gate.reached(1).await;
        let here = keyed("k1").start_while_busy(&orders);
        let there = keyed("k1").start_while_busy(&other.orders(Mode::Keyed));
        gate.open(1);
        first.await.unwrap().assert_first(201, "order 1");
        here.await.unwrap().assert_replay(201, "order 1");
        there.await.unwrap().assert_replay(201, "order 1");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn a_duplicate_that_waits_runs_when_the_first_did_nothing(fixture: OnceFixture) {
        let gate = HandlerGate::shut();
        let inside = gate.clone();
        let handler = fixture.handler(move |run| {
            let gate = inside.clone();
            async move {
                if run.number == 1 {
                    gate.pass().await;
                    return respond(StatusCode::TOO_MANY_REQUESTS, "not now");
                }
                run.order().await;
                run.created()
            }
        });
        let orders = fixture.serve(fixture.once(Mode::Opaque), handler);
        let first = keyed("k1").start(&orders);
        gate.reached(1).await;
        let second = keyed("k1").start(&orders);
        gate.open(1);
        first.await.unwrap().assert_first(429, "not now");
        second.await.unwrap().assert_first(201, "order 2");
        fixture.assert_effects(1).await;
    }

    #[test]
    async fn two_keys_do_not_wait_for_each_other(fixture: OnceFixture) {
        let gate = HandlerGate::shut();
        let orders = gated(&fixture, fixture.once(Mode::Opaque), &gate);
        let first = keyed("k1").start(&orders);
        gate.reached(1).await;
        let second = keyed("k2").start(&orders);
        gate.reached(2).await;
        gate.open(2);
        assert_eq!((first.await.unwrap().status(), second.await.unwrap().status()), (201, 201));
    }

    #[test]
    async fn case_20_record_deleted_during_lookups_runs_once_more(fixture: OnceFixture) {
        let orders = fixture.orders(Mode::Opaque);
        for round in 1..=5 {
            let answer = keyed("k1").send_while_busy(&orders).await;
            answer.assert_first(201, &format!("order {round}"));
            // Its outcome may be stored after the response was sent.
            fixture.keeper.drained().await;
            fixture.pass(Duration::from_hours(73));
            let sweeping = fixture.store.clone();
            let sweeps = tokio::spawn(async move {
                for _ in 0..10 {
                    while_busy(|| sweeping.keys().sweep(100)).await;
                }
            });
            if round < 5 {
                continue;
            }
            let calls: Vec<_> = (0..20).map(|_| keyed("k1").start_while_busy(&orders)).collect();
            for call in calls {
                assert_eq!(call.await.unwrap().text(), "order 6");
            }
            sweeps.await.unwrap();
        }
        fixture.assert_effects(6).await;
    }

    #[test]
    async fn case_21_overtaken_owner_returns_winners_result(fixture: OnceFixture) {
        let other = fixture.another_node().await;
        for mode in [Mode::Keyed, Mode::Transactional, Mode::Claimed] {
            let gate = HandlerGate::shut();
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let slow = fixture.serve(fixture.once(mode), waiting_at(&fixture, &gate));
            let first = keyed(&key).start(&slow);
            gate.reached(1).await;
            if fixture.is_sqlite() && mode == Mode::Claimed {
                // Its transaction blocks all other writers, so nobody can take over.
                gate.open(1);
                first.await.unwrap().assert_first(201, "order 1");
                continue;
            }
            // Its node is suspended; another one takes over.
            other.pass(AFTER_LEASE);
            let winner = other.serve(other.once(mode), other.handler(|run| async move {
                run.order().await;
                respond(StatusCode::OK, "the winner's")
            }));
            keyed(&key).send(&winner).await.assert_first(200, "the winner's");
            gate.open(1);
            first.await.unwrap().assert_replay(200, "the winner's");
            keyed(&key).send(&winner).await.assert_replay(200, "the winner's");
            // In keyed mode the upstream would deduplicate; here both count. An overtaken transaction is rolled back.
            let effects = if mode == Mode::Keyed { 2 } else { 1 };
            fixture.assert_effects(before + effects).await;
        }
    }

    #[test]
    async fn case_22_owner_stalled_before_its_call_does_not_call(fixture: OnceFixture) {
        let other = fixture.another_node().await;
        for mode in MODES {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let gate = HandlerGate::shut();
            let handler = fixture.ordering();
            let slow = fixture.layer(fixture.once(mode)).layer(Slow::new(handler.clone(), &gate));
            let (call, started) = (keyed(&key).request(), slow.clone());
            let first = tokio::spawn(async move { started.oneshot(call).await });
            gate.reached(1).await;
            // The whole machine is suspended, including renewals, and another node takes over.
            other.pass(AFTER_LEASE);
            let winner = keyed(&key).send(&other.orders(mode)).await;
            // When it resumes, its own clock shows how long it was suspended.
            fixture.pass(AFTER_LEASE);
            gate.open(100);
            let Ok(answer) = first.await.unwrap();
            if mode == Mode::Opaque {
                // It was unknown whether the first one had called. It had not, so it released the key and started again.
                winner.assert_problem(409, "outcome_unknown");
                assert_eq!((answer.status(), handler.runs()), (StatusCode::CREATED, 1));
            } else {
                winner.assert_first(201, "order 1");
                assert_eq!(answer.headers()["idempotency-replayed"], "true");
                assert_eq!(handler.runs(), 0, "the handler was not called");
            }
            fixture.assert_effects(before + 1).await;
        }
    }

    #[test]
    async fn case_23_overtaken_owner_releases_nothing(fixture: OnceFixture) {
        let other = fixture.another_node().await;
        let (slow, next) = (HandlerGate::shut(), HandlerGate::shut());
        let inside = slow.clone();
        let failing = fixture.handler(move |_| {
            let gate = inside.clone();
            async move {
                gate.pass().await;
                respond(StatusCode::TOO_MANY_REQUESTS, "would give its key back")
            }
        });
        let first = keyed("k1").start(&fixture.serve(fixture.once(Mode::Keyed).in_flight_wait(Duration::ZERO), failing));
        slow.reached(1).await;
        other.pass(AFTER_LEASE);
        let second = keyed("k1").start(&gated(&other, other.once(Mode::Keyed), &next));
        next.reached(1).await;
        slow.open(1);
        // It gets a duplicate's response, and the new claim remains.
        first.await.unwrap().assert_problem(202, "key_in_flight");
        assert!(matches!(fixture.phase("k1").await, Some(RecordPhase::Claimed { .. })));
        next.open(1);
        second.await.unwrap().assert_first(201, "order 1");
        keyed("k1").send(&fixture.orders(Mode::Keyed)).await.assert_replay(201, "order 1");
    }

    #[test]
    async fn live_claim_is_renewed_and_never_rescued(fixture: OnceFixture) {
        let gate = HandlerGate::shut();
        let once = fixture.once(Mode::Opaque).lease(SHORT_LEASE).in_flight_wait(Duration::ZERO);
        let orders = gated(&fixture, once, &gate);
        let first = keyed("k1").start(&orders);
        gate.reached(1).await;
        let lease_until = |record: Option<&ichido_store::ledger::KeyRecord>| match record.unwrap().record.phase {
            RecordPhase::Claimed { lease_until } => lease_until,
            phase => panic!("{phase:?}"),
        };
        let claimed = lease_until(fixture.record("k1").await.as_ref());
        // Past the first lease, and past the second.
        for leases in 1..=2 {
            let beyond = claimed.plus(SHORT_LEASE * leases);
            fixture.until("k1", |record| beyond < lease_until(record)).await;
            keyed("k1").send(&orders).await.assert_problem(202, "key_in_flight");
        }
        gate.open(1);
        first.await.unwrap().assert_first(201, "order 1");
        fixture.assert_effects(1).await;
    }
}

/// The claim must be confirmed with the store, and the store is silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_silent_before_call_returns_problem_and_runs_nothing() {
    in_time(async {
        let fixture = OnceFixture::postgres().await;
        let relay = Relay::before(&fixture.url).await;
        let node = OnceFixture::at(fixture.location().by(relay.url(&fixture.url))).await;
        let (gate, handler) = (HandlerGate::shut(), node.ordering());
        let orders =
            node.layer(node.once(Mode::Opaque).lease(SHORT_LEASE)).layer(Slow::new(handler.clone(), &gate));
        let first = tokio::spawn(orders.oneshot(keyed("k1").request()));
        gate.reached(1).await;
        relay.fall_silent();
        node.pass(SHORT_LEASE);
        gate.open(1);
        let Ok(answer) = first.await.unwrap();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        relay.speak();
        node.keeper.drained().await;
        assert_eq!(handler.runs(), 0);
        assert_eq!(fixture.phase("k1").await, None, "the claim was given back");
    })
    .await;
}

/// A service that is not ready until it is allowed.
struct Slow {
    inner: TestHandler,
    gate: HandlerGate,
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    is_ready: bool,
}

impl Slow {
    fn new(inner: TestHandler, gate: &HandlerGate) -> Self {
        Self { inner, gate: gate.clone(), waiting: None, is_ready: false }
    }
}

/// A clone has to become ready itself.
impl Clone for Slow {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), &self.gate)
    }
}

impl Service<Request<ichido::once::Body<Body>>> for Slow {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = <TestHandler as Service<Request<ichido::once::Body<Body>>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if !self.is_ready {
            let gate = self.gate.clone();
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(async move { gate.pass().await }));
            ready!(waiting.as_mut().poll(cx));
            self.is_ready = true;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ichido::once::Body<Body>>) -> Self::Future {
        assert!(self.is_ready, "called before it was ready");
        self.inner.call(request)
    }
}
