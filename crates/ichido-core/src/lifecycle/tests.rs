use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_000);
const SOON: Timestamp = Timestamp::from_secs(1_060);

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn allowed(tries: u32) -> NonZeroU32 {
    NonZeroU32::new(tries).unwrap()
}

fn claimed(number: u64) -> Event {
    Event::Claimed {
        fence: fence(number),
        begun: Begun::NotTracked,
    }
}

fn again(number: u64, effect: Effect) -> Event {
    Event::Failed {
        fence: fence(number),
        failure: Failure::Again { due: SOON, effect },
    }
}

fn for_good(number: u64, effect: Effect) -> Event {
    Event::Failed {
        fence: fence(number),
        failure: Failure::ForGood { effect },
    }
}

fn in_doubt(number: u64) -> Event {
    Event::Failed {
        fence: fence(number),
        failure: Failure::InDoubt { decide_from: SOON },
    }
}

fn died(number: u64, alone: bool, safety: Safety) -> Event {
    Event::WorkerDied {
        fence: fence(number),
        alone,
        safety,
        due: SOON,
        decide_from: SOON,
    }
}

fn requeued(safety: Safety) -> Event {
    Event::Requeued {
        allowed: true,
        safety,
    }
}

/// A message that is allowed three tries, after these events, each legal.
fn after(events: &[Event]) -> State {
    let mut state = State::queued(NOW, allowed(3));
    for event in events {
        state = state
            .step(*event, SOON)
            .unwrap_or_else(|illegal| panic!("{event:?}: {illegal}"));
    }
    state
}

fn history(state: State) -> History {
    match state {
        State::Queued { history, .. }
        | State::Sending { history, .. }
        | State::Failed { history, .. }
        | State::Parked { history, .. }
        | State::Dead { history, .. } => history,
        State::Sent | State::Cancelled { .. } => panic!("{state:?} has no history"),
    }
}

fn refusal(state: State, event: Event) -> Why {
    state.step(event, SOON).unwrap_err().why
}

#[test]
fn the_arrows_of_the_specification() {
    use Effect::NotDone;
    let parked = [claimed(1), in_doubt(1)];
    let arrows: &[(&str, &[Event], &str)] = &[
        ("queued → sending", &[claimed(1)], "sending"),
        (
            "sending → sent",
            &[claimed(1), Event::Succeeded { fence: fence(1) }],
            "sent",
        ),
        ("sending → failed", &[claimed(1), again(1, NotDone)], "failed"),
        (
            "failed → queued",
            &[claimed(1), again(1, NotDone), Event::CameDue],
            "queued",
        ),
        (
            "a due failed one is claimed as if queued",
            &[claimed(1), again(1, NotDone), claimed(2)],
            "sending",
        ),
        ("sending → dead", &[claimed(1), for_good(1, NotDone)], "dead"),
        ("sending → parked", &parked, "parked"),
        ("queued → cancelled", &[Event::Cancelled], "cancelled"),
        (
            "failed → cancelled",
            &[claimed(1), again(1, NotDone), Event::Cancelled],
            "cancelled",
        ),
        (
            "parked → queued",
            &[claimed(1), in_doubt(1), Event::Decided(Decision::SendAgain)],
            "queued",
        ),
        (
            "parked → sent",
            &[claimed(1), in_doubt(1), Event::Decided(Decision::WasDone)],
            "sent",
        ),
        (
            "parked → dead",
            &[claimed(1), in_doubt(1), Event::Decided(Decision::GiveUp)],
            "dead",
        ),
        (
            "dead → queued",
            &[claimed(1), for_good(1, NotDone), requeued(Safety::Neither)],
            "queued",
        ),
    ];
    for (arrow, events, name) in arrows {
        assert_eq!(after(events).name(), *name, "{arrow}");
    }
}

#[test]
fn spent_tries_lead_through_failed_to_dead() {
    let last_try = after(&[
        claimed(1),
        again(1, Effect::NotDone),
        claimed(2),
        again(2, Effect::NotDone),
        claimed(3),
    ]);
    let (failed, dead) = last_try.settle(again(3, Effect::NotDone), SOON).unwrap();
    assert_eq!(failed.name(), "failed");
    assert_eq!(refusal(failed, claimed(4)), Why::NoTryLeft);
    assert!(matches!(dead, Some(State::Dead { effect: Effect::NotDone, history }) if history.tries == 3));
    let (failed, more) = after(&[claimed(1)])
        .settle(again(1, Effect::NotDone), SOON)
        .unwrap();
    assert_eq!((failed.name(), more), ("failed", None));
    assert_eq!(refusal(failed, Event::Spent), Why::TryLeft);
}

#[test]
fn a_message_is_not_claimed_before_it_is_due() {
    let queued = State::queued(SOON, allowed(1));
    assert_eq!(queued.step(claimed(1), NOW).unwrap_err().why, Why::NotDue);
    assert_eq!(queued.step(claimed(1), SOON).unwrap().name(), "sending");
}

#[test]
fn a_zombie_settles_nothing() {
    let zombie = [
        Event::Began { fence: fence(1) },
        Event::Succeeded { fence: fence(1) },
        again(1, Effect::NotDone),
        for_good(1, Effect::NotDone),
        in_doubt(1),
        Event::GivenBack {
            fence: fence(1),
            due: SOON,
        },
        died(1, true, Safety::Keyed),
    ];
    let rescued = [claimed(1), died(1, false, Safety::Keyed)];
    let resent = [claimed(1), died(1, false, Safety::Keyed), claimed(2)];
    let reborn = [claimed(1), for_good(1, Effect::NotDone), requeued(Safety::Keyed)];
    for state in [after(&rescued), after(&resent), after(&reborn)] {
        for event in zombie {
            assert_eq!(refusal(state, event), Why::StaleFence, "{state:?}, {event:?}");
        }
        assert_eq!(
            refusal(state, claimed(1)),
            Why::StaleFence,
            "an old claim is no new claim"
        );
    }
}

#[test]
fn a_graceful_stop_gives_the_try_back() {
    let back = after(&[
        claimed(1),
        Event::GivenBack {
            fence: fence(1),
            due: NOW,
        },
    ]);
    assert_eq!(
        back,
        State::Queued {
            due: NOW,
            history: History {
                last_fence: Some(fence(1)),
                ..history(State::queued(NOW, allowed(3)))
            }
        }
    );
    let marked = Event::Claimed {
        fence: fence(1),
        begun: Begun::NotYet,
    };
    assert_eq!(
        after(&[
            marked,
            Event::GivenBack {
                fence: fence(1),
                due: NOW
            }
        ])
        .name(),
        "queued"
    );
    let begun = after(&[marked, Event::Began { fence: fence(1) }]);
    assert_eq!(
        refusal(
            begun,
            Event::GivenBack {
                fence: fence(1),
                due: NOW
            }
        ),
        Why::MayHaveBegun
    );
}

#[test]
fn what_had_not_begun_when_the_worker_died_is_sent_again_uncharged() {
    let marked = Event::Claimed {
        fence: fence(1),
        begun: Begun::NotYet,
    };
    for safety in [Safety::Neither, Safety::Keyed, Safety::Repeatable] {
        for alone in [true, false] {
            let state = after(&[marked, died(1, alone, safety)]);
            assert_eq!(state.name(), "queued");
            let history = history(state);
            assert_eq!(
                (history.tries, history.deaths, history.effect()),
                (0, 0, Effect::NotDone)
            );
        }
    }
}

#[test]
fn what_may_have_begun_is_parked_where_twice_would_hurt() {
    for alone in [true, false] {
        assert_eq!(
            after(&[claimed(1), died(1, alone, Safety::Neither)]).name(),
            "parked"
        );
        let begun = [
            Event::Claimed {
                fence: fence(1),
                begun: Begun::NotYet,
            },
            Event::Began { fence: fence(1) },
            died(1, alone, Safety::Neither),
        ];
        assert_eq!(after(&begun).name(), "parked");
    }
}

#[test]
fn an_innocent_neighbour_is_not_charged_with_a_death() {
    let mut state = State::queued(NOW, allowed(3));
    for number in 1..=20 {
        state = state
            .step(claimed(number), SOON)
            .unwrap()
            .step(died(number, false, Safety::Keyed), SOON)
            .unwrap();
        let history = history(state);
        assert_eq!(
            (state.name(), history.tries, history.deaths, history.suspect),
            ("queued", 0, 0, true)
        );
    }
}

#[test]
fn a_lone_death_counts_as_a_failure_and_the_second_means_quarantine() {
    let once = after(&[claimed(1), died(1, true, Safety::Keyed)]);
    assert_eq!(
        (once.name(), history(once).tries, history(once).deaths),
        ("failed", 1, 1)
    );
    let killer = [
        claimed(1),
        died(1, true, Safety::Keyed),
        claimed(2),
        died(2, true, Safety::Keyed),
    ];
    assert_eq!(after(&killer).name(), "parked", "its effect is unknown");
    let killer = [
        claimed(1),
        died(1, true, Safety::Repeatable),
        claimed(2),
        died(2, true, Safety::Repeatable),
    ];
    assert_eq!(after(&killer).name(), "dead", "its effect does not matter");
    let one_try = State::queued(NOW, allowed(1)).step(claimed(1), SOON).unwrap();
    let (_, dead) = one_try.settle(died(1, true, Safety::Keyed), SOON).unwrap();
    assert!(
        matches!(
            dead,
            Some(State::Dead {
                effect: Effect::Unknown,
                ..
            })
        ),
        "the last try is spent"
    );
}

#[test]
fn a_late_answer_resolves_a_parked_message_and_stops_a_resend() {
    let late = Event::LateSuccess { fence: fence(1) };
    assert_eq!(after(&[claimed(1), in_doubt(1), late]), State::Sent);
    assert_eq!(
        after(&[claimed(1), died(1, false, Safety::Keyed), late]),
        State::Sent
    );
    assert_eq!(after(&[claimed(1), again(1, Effect::Unknown), late]), State::Sent);
    let resending = after(&[claimed(1), died(1, false, Safety::Keyed), claimed(2)]);
    assert_eq!(
        refusal(resending, late),
        Why::StaleFence,
        "too late: it is being sent again"
    );
    let never_claimed = Event::LateSuccess { fence: fence(9) };
    assert_eq!(
        refusal(after(&[claimed(1), in_doubt(1)]), never_claimed),
        Why::StaleFence
    );
    assert_eq!(refusal(State::queued(NOW, allowed(1)), late), Why::StaleFence);
    let dead = after(&[claimed(1), for_good(1, Effect::Unknown), late]);
    assert!(
        matches!(
            dead,
            State::Dead {
                effect: Effect::Done,
                ..
            }
        ),
        "known, and still dead"
    );
}

#[test]
fn nobody_decides_while_the_call_may_still_be_travelling() {
    let parked = after(&[claimed(1), in_doubt(1)]);
    let early = |event| parked.step(event, NOW).map_err(|illegal| illegal.why);
    for event in [
        Event::Decided(Decision::SendAgain),
        Event::Decided(Decision::GiveUp),
        Event::Reconciled { done: false },
    ] {
        assert_eq!(early(event), Err(Why::TooEarly), "{event:?}");
        assert!(parked.step(event, SOON).is_ok(), "{event:?}");
    }
    for event in [
        Event::Decided(Decision::WasDone),
        Event::Reconciled { done: true },
    ] {
        assert_eq!(
            early(event),
            Ok(State::Sent),
            "what is done stays done: {event:?}"
        );
    }
}

#[test]
fn a_dead_message_is_requeued_only_where_the_queue_allows_it() {
    let dead = after(&[
        claimed(1),
        again(1, Effect::NotDone),
        claimed(2),
        for_good(2, Effect::NotDone),
    ]);
    let refused = Event::Requeued {
        allowed: false,
        safety: Safety::Keyed,
    };
    assert_eq!(refusal(dead, refused), Why::RequeueNotAllowed);
    let second_life = dead.step(requeued(Safety::Neither), SOON).unwrap();
    assert_eq!(history(second_life).tries, 0, "the count is back at 0");
    assert_eq!(
        history(second_life).last_fence,
        Some(fence(2)),
        "a zombie is still told apart"
    );
}

#[test]
fn a_dead_message_of_unknown_effect_is_asked_after_first() {
    let dead = after(&[claimed(1), for_good(1, Effect::Unknown)]);
    assert_eq!(refusal(dead, requeued(Safety::Neither)), Why::CouldDoItTwice);
    assert_eq!(dead.step(requeued(Safety::Keyed), SOON).unwrap().name(), "queued");
    let not_done = dead.step(Event::Reconciled { done: false }, SOON).unwrap();
    assert_eq!(
        not_done.step(requeued(Safety::Neither), SOON).unwrap().name(),
        "queued"
    );
    let done = dead.step(Event::Reconciled { done: true }, SOON).unwrap();
    for safety in [Safety::Neither, Safety::Keyed, Safety::Repeatable] {
        assert_eq!(refusal(done, requeued(safety)), Why::CouldDoItTwice);
    }
}

#[test]
fn a_clean_refusal_does_not_clear_an_earlier_doubt() {
    let dead = after(&[
        claimed(1),
        again(1, Effect::Unknown),
        claimed(2),
        for_good(2, Effect::NotDone),
    ]);
    assert!(matches!(
        dead,
        State::Dead {
            effect: Effect::Unknown,
            ..
        }
    ));
    let cancelled = after(&[claimed(1), again(1, Effect::Unknown), Event::Cancelled]);
    assert_eq!(
        cancelled,
        State::Cancelled {
            effect: Effect::Unknown
        }
    );
    let reborn = after(&[claimed(1), for_good(1, Effect::Unknown), requeued(Safety::Keyed)]);
    assert_eq!(
        history(reborn).effect(),
        Effect::Unknown,
        "no requeue takes it away"
    );
    let decided = after(&[claimed(1), in_doubt(1), Event::Decided(Decision::SendAgain)]);
    assert_eq!(
        history(decided).effect(),
        Effect::NotDone,
        "a person vouched for it"
    );
}

fn events() -> impl Strategy<Value = Event> {
    let fences = || (0_u64..8).prop_map(fence);
    let effects = || prop_oneof![Just(Effect::NotDone), Just(Effect::Unknown)];
    let safeties = || {
        prop_oneof![
            Just(Safety::Keyed),
            Just(Safety::Repeatable),
            Just(Safety::Neither)
        ]
    };
    let begun = || prop_oneof![Just(Begun::NotYet), Just(Begun::NotTracked)];
    let moments = || (990_i64..1_020).prop_map(Timestamp::from_secs);
    let failures = prop_oneof![
        (moments(), effects()).prop_map(|(due, effect)| Failure::Again { due, effect }),
        effects().prop_map(|effect| Failure::ForGood { effect }),
        moments().prop_map(|decide_from| Failure::InDoubt { decide_from }),
    ];
    let decisions = prop_oneof![
        Just(Decision::SendAgain),
        Just(Decision::WasDone),
        Just(Decision::GiveUp)
    ];
    prop_oneof![
        4 => (fences(), begun()).prop_map(|(fence, begun)| Event::Claimed { fence, begun }),
        1 => fences().prop_map(|fence| Event::Began { fence }),
        1 => fences().prop_map(|fence| Event::Succeeded { fence }),
        4 => (fences(), failures).prop_map(|(fence, failure)| Event::Failed { fence, failure }),
        1 => (fences(), moments()).prop_map(|(fence, due)| Event::GivenBack { fence, due }),
        2 => (fences(), any::<bool>(), safeties(), moments(), moments()).prop_map(
            |(fence, alone, safety, due, decide_from)| Event::WorkerDied { fence, alone, safety, due, decide_from }
        ),
        1 => Just(Event::CameDue),
        1 => Just(Event::Spent),
        1 => fences().prop_map(|fence| Event::LateSuccess { fence }),
        1 => any::<bool>().prop_map(|done| Event::Reconciled { done }),
        1 => decisions.prop_map(Event::Decided),
        1 => (any::<bool>(), safeties()).prop_map(|(allowed, safety)| Event::Requeued { allowed, safety }),
        1 => Just(Event::Cancelled),
    ]
}

/// The fence that an event of a worker carries.
fn fence_of(event: Event) -> Option<Fence> {
    match event {
        Event::Began { fence }
        | Event::Succeeded { fence }
        | Event::Failed { fence, .. }
        | Event::GivenBack { fence, .. }
        | Event::WorkerDied { fence, .. } => Some(fence),
        Event::Claimed { .. }
        | Event::CameDue
        | Event::Spent
        | Event::LateSuccess { .. }
        | Event::Reconciled { .. }
        | Event::Decided(_)
        | Event::Requeued { .. }
        | Event::Cancelled => None,
    }
}

proptest! {
    #[test]
    fn a_final_state_is_left_only_by_an_operators_requeue(
        events in proptest::collection::vec(events(), 0..60), tries in 1_u32..5,
    ) {
        let mut state = State::queued(NOW, allowed(tries));
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
        events in proptest::collection::vec(events(), 0..60), tries in 1_u32..5,
    ) {
        let mut state = State::queued(NOW, allowed(tries));
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

    /// Tries stay within what is allowed, and a doubt goes away only by proof, by a decision, or with success.
    #[test]
    fn tries_are_bounded_and_doubts_are_kept(
        events in proptest::collection::vec(events(), 0..60), tries in 1_u32..5,
    ) {
        let mut state = State::queued(NOW, allowed(tries));
        for event in events {
            let Ok(next) = state.step(event, SOON) else { continue };
            if !matches!(next, State::Sent | State::Cancelled { .. }) {
                prop_assert!(history(next).tries <= tries);
                let cleared = history(state).doubt_since.is_some() && history(next).doubt_since.is_none();
                let by_proof = matches!(
                    event, Event::Reconciled { done: false } | Event::Decided(Decision::SendAgain)
                );
                prop_assert!(!cleared || by_proof, "{:?} by {:?}", state, event);
            }
            state = next;
        }
    }
}
