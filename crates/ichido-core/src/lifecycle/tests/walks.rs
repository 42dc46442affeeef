//! Random lives.

use proptest::prelude::*;

use super::*;

/// Any event, for tests that walk through lives.
pub(crate) fn events() -> impl Strategy<Value = Event> {
    let fences = || (0_u64..8).prop_map(fence);
    let effects = || prop_oneof![Just(Effect::NotDone), Just(Effect::Unknown)];
    let safeties = || {
        let harmless = prop_oneof![Just(Safety::Keyed), Just(Safety::Idempotent)];
        prop_oneof![2 => harmless, 1 => Just(Safety::Transactional), 1 => Just(Safety::None)]
    };
    let start_mark = || prop_oneof![Just(StartMark::NotYet), Just(StartMark::NotTracked)];
    let moments = || (990_i64..1_020).prop_map(Timestamp::from_secs);
    let failures = prop_oneof![
        2 => moments().prop_map(|due| Failure::Retry { due }),
        1 => Just(Failure::Permanent),
        1 => Just(Failure::InDoubt),
    ];
    let found = prop_oneof![Just(Reconciled::Done), moments().prop_map(|due| Reconciled::NotDone { due })];
    let decisions = prop_oneof![Just(Decision::NotDone), Just(Decision::Done), Just(Decision::GiveUp)];
    prop_oneof![
        4 => (fences(), start_mark()).prop_map(|(fence, start_mark)| Event::Claimed { fence, start_mark }),
        1 => fences().prop_map(|fence| Event::Started { fence }),
        1 => fences().prop_map(|fence| Event::Succeeded { fence }),
        4 => (fences(), failures, effects(), safeties(), moments()).prop_map(
            |(fence, failure, effect, safety, in_flight_until)| Event::Failed { fence, failure, effect, safety, in_flight_until }
        ),
        1 => (fences(), moments()).prop_map(|(fence, due)| Event::GivenBack { fence, due }),
        1 => fences().prop_map(|fence| Event::Stopped { fence }),
        2 => (fences(), any::<bool>(), safeties(), moments(), moments()).prop_map(
            |(fence, alone, safety, due, in_flight_until)| Event::WorkerDied { fence, alone, safety, due, in_flight_until }
        ),
        1 => Just(Event::CameDue),
        1 => Just(Event::Spent),
        1 => fences().prop_map(|fence| Event::LateSuccess { fence }),
        1 => found.prop_map(Event::Reconciled),
        1 => decisions.prop_map(Event::Decided),
        1 => (any::<bool>(), safeties()).prop_map(|(allowed, safety)| Event::Requeued { allowed, safety }),
        1 => Just(Event::Discarded),
        1 => Just(Event::Replaced),
        1 => Just(Event::Cancelled),
    ]
}

/// The fence of a worker's event.
fn fence_of(event: Event) -> Option<Fence> {
    match event {
        Event::Started { fence }
        | Event::Succeeded { fence }
        | Event::Failed { fence, .. }
        | Event::GivenBack { fence, .. }
        | Event::Stopped { fence }
        | Event::WorkerDied { fence, .. } => Some(fence),
        Event::Claimed { .. }
        | Event::CameDue
        | Event::Spent
        | Event::LateSuccess { .. }
        | Event::Reconciled(_)
        | Event::Decided(_)
        | Event::Requeued { .. }
        | Event::Discarded
        | Event::Replaced
        | Event::Cancelled => None,
    }
}

proptest! {
    #[test]
    fn a_final_state_is_left_only_by_an_operators_requeue(
        events in proptest::collection::vec(events(), 0..60), attempts in 1_u32..5,
    ) {
        let mut state = State::queued(NOW, allowed(attempts));
        for (second, event) in events.into_iter().enumerate() {
            let now = Timestamp::from_secs(1_000 + i64::try_from(second).unwrap());
            let Ok(next) = state.step(event, now) else { continue };
            if state.is_final() && next.name() != state.name() {
                let by_an_operator = matches!(event, Event::Requeued { allowed: true, .. });
                prop_assert!(by_an_operator && state.name() == "dead" && next.name() == "queued");
            }
            state = next;
        }
    }

    #[test]
    fn a_stale_fence_never_changes_anything(
        events in proptest::collection::vec(events(), 0..60), attempts in 1_u32..5,
    ) {
        let mut state = State::queued(NOW, allowed(attempts));
        for event in events {
            let held = match state {
                State::Sending { fence, .. } => Some(fence),
                _ => None,
            };
            let result = state.step(event, SOON);
            if fence_of(event).is_some() && fence_of(event) != held {
                prop_assert!(result.is_err(), "{:?} took {:?}", state, event);
            }
            if let (Event::Claimed { fence, .. }, Ok(next)) = (event, &result) {
                prop_assert!(history(state).last_fence < Some(fence), "{:?}", next);
            }
            state = result.unwrap_or(state);
        }
    }

    /// Attempts stay within the limit, and a doubt ends only with proof, a decision or success.
    #[test]
    fn attempts_are_bounded_and_doubts_stay(
        events in proptest::collection::vec(events(), 0..60), attempts in 1_u32..5,
    ) {
        let mut state = State::queued(NOW, allowed(attempts));
        for event in events {
            let Ok(next) = state.step(event, SOON) else { continue };
            if next != State::Sent {
                prop_assert!(history(next).attempts <= attempts);
                let cleared = history(state).doubt.is_some() && history(next).doubt.is_none();
                let by_proof = matches!(
                    event, Event::Reconciled(Reconciled::NotDone { .. }) | Event::Decided(Decision::NotDone)
                );
                prop_assert!(!cleared || by_proof, "{:?} by {:?}", state, event);
            }
            state = next;
        }
    }
}
