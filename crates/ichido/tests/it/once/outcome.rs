//! The effect decides what is stored, not the status alone; an unknown outcome is looked up or held.
// Spec: F2.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use bytes::Bytes;
use hyper::body::Frame;
use ichido::once::{Guarantee, OnUnknown, Once, ReconciledRequest, RequestOutcome};
use ichido_core::ledger::{RecordPhase, Resolution, Settled};
use ichido_store::ledger::KeyResolved;

use super::fixture::{MODES, Mode, OnceFixture, ProtectedService, both_databases, keyed, name, respond};

/// A handler that places an order and then responds with the result of `make`.
fn ordering(
    fixture: &OnceFixture,
    once: Once,
    make: impl Fn() -> Response<Body> + Send + Sync + 'static,
) -> ProtectedService {
    let make = Arc::new(make);
    let handler = fixture.handler(move |run| {
        let make = Arc::clone(&make);
        async move {
            run.order().await;
            make()
        }
    });
    fixture.serve(once, handler)
}

/// A body that panics when it is read.
struct Bomb;

impl axum::body::HttpBody for Bomb {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("a fault of the body's")
    }
}

fn failing(fixture: &OnceFixture, once: Once) -> ProtectedService {
    ordering(fixture, once, || respond(StatusCode::BAD_GATEWAY, "failed"))
}

both_databases! {
    #[test]
    async fn a_deterministic_refusal_is_an_outcome(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let orders = ordering(&fixture, fixture.once(mode), || respond(StatusCode::UNPROCESSABLE_ENTITY, "no"));
            keyed(&key).send(&orders).await.assert_first(422, "no");
            keyed(&key).send(&orders).await.assert_replay(422, "no");
            keyed(&key).body("fixed").send(&orders).await.assert_problem(409, "key_conflict");
            // The refusal is stored, and its writes are not.
            let written = usize::from(!matches!(mode, Mode::Transactional | Mode::Claimed));
            fixture.assert_effects(before + written).await;
            let phase = fixture.phase(&key).await;
            assert!(matches!(phase, Some(RecordPhase::Settled { outcome: Settled::Refused, .. })), "{phase:?}");
        }
    }

    /// The first call took effect and its response was lost; the refusal of the second one says nothing about the first.
    #[test]
    async fn refusal_before_work_does_not_undo_lost_run(fixture: OnceFixture) {
        const REMEMBERED: Duration = Duration::from_hours(24);
        let handler = fixture.handler(|run| async move {
            match run.number {
                1 => {
                    run.order().await;
                    respond(StatusCode::BAD_GATEWAY, "lost")
                }
                2 => respond(StatusCode::TOO_MANY_REQUESTS, "not now"),
                3 => {
                    let mut response = respond(StatusCode::BAD_GATEWAY, "nobody there");
                    response.extensions_mut().insert(RequestOutcome::NotStarted);
                    response
                }
                _ => run.created(),
            }
        });
        let once = fixture.once(Mode::Keyed).keeps_keys_for(REMEMBERED);
        let orders = fixture.serve(once, handler.clone());
        keyed("k1").send(&orders).await.assert_first(502, "lost");
        let first = fixture.record("k1").await.expect("a record").record.first_claimed_at;
        fixture.pass(REMEMBERED / 2);
        keyed("k1").send(&orders).await.assert_first(429, "not now");
        keyed("k1").send(&orders).await.assert_first(502, "nobody there");
        keyed("k1").body("20 EUR").send(&orders).await.assert_problem(409, "key_conflict");
        let held = fixture.record("k1").await.expect("the key stays bound").record;
        assert_eq!((held.phase, held.first_claimed_at), (RecordPhase::Unknown, first), "for as long as it was");
        assert_eq!(fixture.store.keys().list_unknown(None, 10).await.unwrap().len(), 1, "and a person sees it");
        // A call whose key the upstream has forgotten is not repeated.
        fixture.pass(REMEMBERED / 2);
        keyed("k1").send(&orders).await.assert_problem(409, "outcome_unknown");
        assert_eq!(handler.runs(), 3);
    }

    /// The call may have been done without any check of its key: serving the operation differently later does not change
    /// that.
    #[test]
    async fn outcome_lost_as_opaque_stays_unknown_after_mode_change(fixture: OnceFixture) {
        keyed("k1").send(&failing(&fixture, fixture.once(Mode::Opaque))).await.assert_first(502, "failed");
        for mode in [Mode::Keyed, Mode::Transactional, Mode::Claimed] {
            let handler = fixture.ordering();
            let orders = fixture.serve(fixture.once(mode), handler.clone());
            keyed("k1").send(&orders).await.assert_problem(409, "outcome_unknown");
            keyed("k1").body("20 EUR").send(&orders).await.assert_problem(409, "key_conflict");
            assert_eq!((handler.runs(), fixture.phase("k1").await), (0, Some(RecordPhase::Unknown)), "{mode:?}");
        }
        fixture.assert_effects(1).await;
    }

    /// The first call was lost while the upstream's key protected it; the second runs in a transaction, and is refused.
    #[test]
    async fn rollback_does_not_undo_run_lost_as_keyed(fixture: OnceFixture) {
        keyed("k1").send(&failing(&fixture, fixture.once(Mode::Keyed))).await.assert_first(502, "failed");
        let handler = fixture.handler(|_| async { respond(StatusCode::TOO_MANY_REQUESTS, "not now") });
        let orders = fixture.serve(fixture.once(Mode::Transactional), handler.clone());
        keyed("k1").send(&orders).await.assert_first(429, "not now");
        assert_eq!((handler.runs(), fixture.phase("k1").await), (1, Some(RecordPhase::Unknown)));
        keyed("k1").body("20 EUR").send(&orders).await.assert_problem(409, "key_conflict");
    }

    #[test]
    async fn a_refusal_before_any_work_frees_the_key(fixture: OnceFixture) {
        for mode in MODES {
            for status in [401, 403, 413, 425, 429] {
                let key = format!("{mode:?}-{status}");
                let handler = fixture.handler(move |run| async move {
                    if run.number == 1 {
                        return respond(StatusCode::from_u16(status).unwrap(), "not now");
                    }
                    run.created()
                });
                let orders = fixture.serve(fixture.once(mode), handler);
                keyed(&key).send(&orders).await.assert_first(status, "not now");
                assert_eq!(fixture.phase(&key).await, None);
                keyed(&key).body("fixed").send(&orders).await.assert_first(201, "order 2");
            }
        }
    }

    #[test]
    async fn a_5xx_is_neither_pinned_nor_run_twice(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let orders = failing(&fixture, fixture.once(mode));
            keyed(&key).send(&orders).await.assert_first(502, "failed");
            let again = keyed(&key).send(&fixture.orders(mode)).await;
            match mode {
                // Rolled back, so it runs; the upstream deduplicates, so it is called again; unknown, so it is held.
                Mode::Transactional | Mode::Claimed | Mode::Keyed => again.assert_first(201, "order 1"),
                Mode::Opaque => again.assert_problem(409, "outcome_unknown"),
            }
            let effects = if mode == Mode::Keyed { 2 } else { 1 };
            fixture.assert_effects(before + effects).await;
        }
    }

    #[test]
    async fn a_panic_is_an_outcome(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let orders = ordering(&fixture, fixture.once(mode), || panic!("a fault of the handler's"));
            let answer = keyed(&key).send(&orders).await;
            answer.assert_problem(500, "handler_failed");
            assert!(!answer.text().contains("a fault of the handler's"));
            fixture.keeper.drained().await;
            let (phase, effects) = match mode {
                Mode::Transactional | Mode::Claimed => (None, 0),
                Mode::Keyed | Mode::Opaque => (Some(RecordPhase::Unknown), 1),
            };
            assert_eq!(fixture.phase(&key).await, phase);
            fixture.assert_effects(before + effects).await;
            // A panic before the handler's future exists, too.
            let orders = fixture.serve(fixture.once(mode), fixture.handler(|_| -> std::future::Ready<_> {
                panic!("at once")
            }));
            keyed(&format!("{key}-at-once")).send(&orders).await.assert_problem(500, "handler_failed");
        }
    }

    #[test]
    async fn panic_while_reading_response_is_an_outcome(fixture: OnceFixture) {
        for mode in MODES {
            let key = format!("{mode:?}");
            let before = fixture.effects().await;
            let orders = ordering(&fixture, fixture.once(mode), || respond(StatusCode::OK, Body::new(Bomb)));
            let answer = keyed(&key).send(&orders).await;
            answer.assert_problem(500, "handler_failed");
            assert!(!answer.text().contains("a fault of the body's"));
            fixture.keeper.drained().await;
            let (phase, effects) = match mode {
                Mode::Transactional | Mode::Claimed => (None, 0),
                Mode::Keyed | Mode::Opaque => (Some(RecordPhase::Unknown), 1),
            };
            assert_eq!(fixture.phase(&key).await, phase, "no claim is left to lapse");
            fixture.assert_effects(before + effects).await;
        }
    }

    #[test]
    async fn handler_can_override_outcome_of_status(fixture: OnceFixture) {
        let says = |outcome: RequestOutcome| move || {
            let mut response = respond(StatusCode::BAD_GATEWAY, "said");
            response.extensions_mut().insert(outcome);
            response
        };
        for (outcome, phase) in [
            (RequestOutcome::NotStarted, None),
            (RequestOutcome::NothingDone, None),
            (RequestOutcome::Lost, Some(RecordPhase::Unknown)),
            (RequestOutcome::StillRunning, Some(RecordPhase::Unknown)),
        ] {
            let key = format!("{outcome:?}");
            let orders = ordering(&fixture, fixture.once(Mode::Opaque), says(outcome));
            keyed(&key).send(&orders).await.assert_first(502, "said");
            assert_eq!(fixture.phase(&key).await, phase, "{outcome:?}");
        }
        // Even a success: an upstream that is still running has no outcome yet.
        let running = || {
            let mut response = respond(StatusCode::ACCEPTED, "still running");
            response.extensions_mut().insert(RequestOutcome::StillRunning);
            response
        };
        let orders = ordering(&fixture, fixture.once(Mode::Keyed), running);
        keyed("k1").send(&orders).await.assert_first(202, "still running");
        keyed("k1").send(&fixture.orders(Mode::Keyed)).await.assert_first(201, "order 1");
    }

    #[test]
    async fn failed_service_leaves_outcome_unknown(fixture: OnceFixture) {
        use tower::{Layer as _, ServiceExt as _};
        for (mode, phase) in [(Mode::Opaque, Some(RecordPhase::Unknown)), (Mode::Transactional, None), (Mode::Claimed, None)] {
            let key = format!("{mode:?}");
            let broken = tower::service_fn(|_: Request<ichido::once::Body<Body>>| async {
                Err::<Response<Body>, &'static str>("the connection broke")
            });
            let service = fixture.layer(fixture.once(mode)).layer(broken);
            let failed = service.oneshot(keyed(&key).request()).await;
            assert_eq!(failed.unwrap_err(), "the connection broke");
            assert_eq!(fixture.phase(&key).await, phase);
        }
    }

    #[test]
    async fn unknown_outcome_is_held_listed_and_decided(fixture: OnceFixture) {
        let once = fixture.once(Mode::Opaque);
        let orders = failing(&fixture, once.clone());
        for key in ["k1", "k2", "k3"] {
            keyed(key).send(&orders).await.assert_first(502, "failed");
            keyed(key).send(&orders).await.assert_problem(409, "outcome_unknown");
        }
        let listed = fixture.store.keys().list_unknown(None, 10).await.unwrap();
        let keys: Vec<&str> = listed.iter().map(|record| record.name.key.as_str()).collect();
        assert_eq!(keys, ["k1", "k2", "k3"]);
        let policy = ichido_core::ledger::Policy::build(ichido_core::ledger::PolicyDraft::new(
            ichido_core::ledger::Class::Mutate,
        ))
        .unwrap();
        let decide = async |key: &str, resolution| {
            fixture.store.keys().resolve(&name(key), resolution, None, &policy).await.unwrap()
        };
        assert_eq!(decide("k1", Resolution::Applied).await, KeyResolved::Resolved);
        let early = decide("k2", Resolution::NothingDone).await;
        assert!(matches!(early, KeyResolved::Refused(_)), "it may still be travelling: {early:?}");
        fixture.pass(policy.settle_grace());
        assert_eq!(decide("k2", Resolution::NothingDone).await, KeyResolved::Resolved);
        let orders = fixture.serve(once, fixture.ordering());
        keyed("k1").send(&orders).await.assert_problem(409, "response_not_stored");
        keyed("k2").send(&orders).await.assert_first(201, "order 1");
        keyed("k3").send(&orders).await.assert_problem(409, "outcome_unknown");
        keyed("k3").body("99 EUR").send(&orders).await.assert_problem(409, "key_conflict");
    }

    /// After the handler's own 500 nothing is in transit, so there is nothing to wait for.
    #[test]
    async fn answered_failure_is_decided_without_waiting(fixture: OnceFixture) {
        let once = fixture.once(Mode::Opaque);
        let orders = ordering(&fixture, once.clone(), || respond(StatusCode::INTERNAL_SERVER_ERROR, "failed"));
        keyed("k1").send(&orders).await.assert_first(500, "failed");
        keyed("k1").send(&orders).await.assert_problem(409, "outcome_unknown");
        let draft = ichido_core::ledger::PolicyDraft::new(ichido_core::ledger::Class::Mutate);
        let policy = ichido_core::ledger::Policy::build(draft).unwrap();
        let keys = fixture.store.keys();
        let decided = keys.decide(&name("k1"), Resolution::NothingDone, None, &policy, "olivia").await;
        assert_eq!(decided.unwrap(), KeyResolved::Resolved);
        keyed("k1").send(&fixture.serve(once, fixture.ordering())).await.assert_first(201, "order 1");
    }

    #[test]
    async fn held_failure_reaches_the_caller_and_says_so(fixture: OnceFixture) {
        let once = fixture.once(Mode::Opaque);
        let orders = failing(&fixture, once);
        let first = keyed("k1").send(&orders).await;
        first.assert_first(502, "failed");
        assert_eq!(first.field("idempotency-status"), Some("unknown"));
        let again = keyed("k1").send(&orders).await;
        again.assert_problem(409, "outcome_unknown");
        assert_eq!(again.field("idempotency-status"), Some("unknown"));
        // Where the next request runs, nothing is held.
        let orders = failing(&fixture, fixture.once(Mode::Keyed));
        let first = keyed("k2").send(&orders).await;
        first.assert_first(502, "failed");
        assert_eq!(first.field("idempotency-status"), None);
    }

    #[test]
    async fn idempotent_operation_runs_again_after_a_failure(fixture: OnceFixture) {
        let once = fixture.once(Mode::Opaque).guarantee(Guarantee::Idempotent);
        let failed = keyed("k1").send(&failing(&fixture, once.clone())).await;
        failed.assert_first(502, "failed");
        assert_eq!(failed.field("idempotency-status"), None);
        assert_eq!(fixture.phase("k1").await, None, "nothing is held");
        let orders = fixture.serve(once, fixture.ordering());
        keyed("k1").send(&orders).await.assert_first(201, "order 1");
        keyed("k1").send(&orders).await.assert_replay(201, "order 1");
        let record = fixture.store.keys().get(&name("k1")).await.unwrap().unwrap().record;
        assert_eq!(record.mode, ichido_core::ledger::OperationGuarantee::Idempotent);
    }

    #[test]
    async fn unknown_outcome_is_looked_up_if_possible(fixture: OnceFixture) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let once = fixture.once(Mode::Opaque).reconcile(move |name| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                Ok(match name.key.as_str() {
                    "done" => {
                        let mut found = Response::new(b"found".to_vec());
                        *found.status_mut() = StatusCode::CREATED;
                        found.headers_mut().insert("location", "/orders/1".parse()?);
                        ReconciledRequest::Done(Some(found))
                    }
                    "refused" => ReconciledRequest::Refused(None),
                    "nothing" => ReconciledRequest::NotDone,
                    "unknown" => ReconciledRequest::Unknown,
                    _ => return Err("nobody answers".into()),
                })
            }
        });
        let orders = failing(&fixture, once.clone());
        for key in ["done", "refused", "nothing", "unknown", "error"] {
            keyed(key).send(&orders).await.assert_first(502, "failed");
        }
        assert_eq!(asked.load(Ordering::SeqCst), 0, "it is looked up only on demand");
        let orders = fixture.serve(once, fixture.ordering());
        let answer = keyed("done").send(&orders).await;
        answer.assert_replay(201, "found");
        assert_eq!(answer.field("location"), Some("/orders/1"));
        keyed("done").send(&orders).await.assert_replay(201, "found");
        keyed("refused").send(&orders).await.assert_problem(409, "response_not_stored");
        keyed("unknown").send(&orders).await.assert_problem(409, "outcome_unknown");
        keyed("error").send(&orders).await.assert_problem(409, "outcome_unknown");
        // "Nothing done" does not count while the call may still be in flight.
        keyed("nothing").send(&orders).await.assert_problem(409, "outcome_unknown");
        fixture.pass(Duration::from_mins(11));
        keyed("nothing").send(&orders).await.assert_first(201, "order 1");
    }

    #[test]
    async fn lost_outcome_is_held_after_upstream_forgets_key(fixture: OnceFixture) {
        let once = || fixture.once(Mode::Keyed).keeps_keys_for(Duration::from_hours(1));
        let orders = failing(&fixture, once());
        keyed("k1").send(&orders).await.assert_first(502, "failed");
        keyed("k1").send(&orders).await.assert_first(502, "failed");
        fixture.pass(Duration::from_hours(2));
        keyed("k1").send(&fixture.serve(once(), fixture.ordering())).await.assert_problem(409, "outcome_unknown");
        fixture.assert_effects(2).await;
    }

    #[test]
    async fn derived_key_of_a_step_is_stable(fixture: OnceFixture) {
        let handler = fixture.handler(|run| async move {
            let claim = run.request.extensions().get::<ichido::once::Claim>().unwrap();
            let (charge, mail) = (claim.key_for("charge"), claim.key_for("mail"));
            assert_ne!(charge, mail);
            assert!(!charge.as_str().contains("k1"));
            respond(StatusCode::BAD_GATEWAY, format!("{} {}", charge.as_str(), claim.fence.unwrap()))
        });
        let orders = fixture.serve(fixture.once(Mode::Keyed), handler);
        let (first, second) = (keyed("k1").send(&orders).await, keyed("k1").send(&orders).await);
        let parts = |text: &str| {
            let (key, fence) = text.split_once(' ').unwrap();
            (key.to_owned(), fence.parse::<u64>().unwrap())
        };
        let ((key, fence), (same, next)) = (parts(first.text()), parts(second.text()));
        assert_eq!(key, same);
        assert!(fence < next, "each claim has a greater fence");
        let bob = keyed("k1").user("bob").send(&orders).await;
        assert_ne!(parts(bob.text()).0, key, "another caller's is another");
    }

    #[test]
    async fn operation_is_opaque_by_default(fixture: OnceFixture) {
        let once = Once::operation("quiet").class(ichido::once::Class::ExternalEffect).single_identity("app");
        let orders = failing(&fixture, once.clone());
        keyed("k1").send(&orders).await.assert_first(502, "failed");
        keyed("k1").send(&orders).await.assert_problem(409, "outcome_unknown");
        let hasty = once.guarantee(Guarantee::None).on_unknown(OnUnknown::RunAgain);
        assert!(hasty.build(&fixture.keeper).is_err());
    }
}
