//! Workers that die: what a rescue makes of their messages.

use super::*;

#[test]
fn unstarted_call_of_a_dead_worker_is_not_done() {
    for safety in [Safety::None, Safety::Keyed, Safety::Idempotent, Safety::Transactional] {
        for alone in [true, false] {
            let mut state = State::queued(NOW, allowed(1));
            // More often than it has attempts, and than deaths are allowed: it was never called.
            for number in 1..=5 {
                state = state.step(marked(number), THEN).unwrap();
                let (next, spent) = state.advance(died(number, alone, safety), THEN).unwrap();
                assert_eq!(spent, None);
                state = next;
                assert!(matches!(state, State::Queued { due: THEN, .. }), "at once: {state:?}");
                let seen = history(state);
                let expected = (0, 0, Effect::NotDone, false);
                assert_eq!((seen.attempts, seen.deaths, seen.effect(), seen.suspect), expected);
            }
        }
    }
}

#[test]
fn possibly_started_call_is_parked_if_not_repeatable() {
    for alone in [true, false] {
        assert_eq!(after(&[claimed(1), died(1, alone, Safety::None)]).name(), "parked");
        let start_mark = [
            Event::Claimed { fence: fence(1), start_mark: StartMark::NotYet },
            Event::Started { fence: fence(1) },
            died(1, alone, Safety::None),
        ];
        assert_eq!(after(&start_mark).name(), "parked");
    }
}

/// Its effect would have been settled with it.
#[test]
fn transactional_call_of_a_dead_worker_is_not_done() {
    let once = after(&[claimed(1), died(1, true, Safety::Transactional)]);
    assert_eq!((once.name(), history(once).attempts, history(once).effect()), ("failed", 1, Effect::NotDone));
    let quarantined = after(&killed_twice(Safety::Transactional));
    assert!(matches!(quarantined, State::Dead { effect: Effect::NotDone, .. }), "{quarantined:?}");
    let doubted = [claimed(1), again(1, Effect::Unknown), claimed(2), died(2, true, Safety::Transactional)];
    assert_eq!(after(&doubted).name(), "parked", "the doubt is about a call under another guarantee");
}

#[test]
fn other_messages_of_a_batch_are_not_charged() {
    let suspect = after(&[claimed(1), died(1, false, Safety::Keyed)]);
    assert!(matches!(suspect, State::Queued { due: THEN, .. }), "at once");
    let seen = history(suspect);
    assert_eq!((seen.attempts, seen.deaths, seen.suspect), (0, 0, true));
    let cleared = after(&[claimed(1), died(1, false, Safety::Keyed), claimed(2), again(2, Effect::NotDone)]);
    assert!(!history(cleared).suspect, "its next worker survived");
}

#[test]
fn a_suspect_is_charged_when_a_worker_dies_with_it_again() {
    let keyed = Safety::Keyed;
    let caught = after(&[claimed(1), died(1, false, keyed), claimed(2), died(2, false, keyed)]);
    assert_eq!((caught.name(), history(caught).attempts, history(caught).deaths), ("failed", 1, 1));
}

#[test]
fn suspect_without_a_call_is_not_charged() {
    let keyed = Safety::Keyed;
    let waited = after(&[claimed(1), died(1, false, keyed), marked(2), died(2, true, keyed)]);
    assert!(matches!(waited, State::Queued { due: THEN, .. }), "{waited:?}");
    let seen = history(waited);
    assert_eq!((seen.attempts, seen.deaths, seen.suspect), (0, 0, true), "and it stays suspect");
}

#[test]
fn a_lone_death_counts_as_a_failure_and_the_second_means_quarantine() {
    for (safety, state) in [(Safety::Keyed, "parked"), (Safety::Idempotent, "dead")] {
        let killer = killed_twice(safety);
        let once = after(&killer[..3]);
        assert!(matches!(once, State::Failed { due: LATER, .. }), "{once:?}");
        assert_eq!((history(once).attempts, history(once).deaths), (1, 1));
        let quarantined = after(&killer);
        assert_eq!((quarantined.name(), history(quarantined).deaths), (state, 2));
    }
    let one_try = State::queued(NOW, allowed(1)).step(marked(1), SOON).unwrap().step(began(1), SOON).unwrap();
    let (_, dead) = one_try.advance(died(1, true, Safety::Keyed), SOON).unwrap();
    assert!(
        matches!(dead, Some(State::Dead { effect: Effect::Unknown, .. })),
        "no attempt is left: {dead:?}"
    );
}

/// It is unknown whether it was called, so the next call gets a start mark, and its last attempt is not used up.
#[test]
fn unmarked_lone_death_is_not_charged() {
    let once = after(&[claimed(1), died(1, true, Safety::Keyed)]);
    assert!(matches!(once, State::Failed { due: LATER, .. }), "{once:?}");
    let seen = history(once);
    assert_eq!((seen.attempts, seen.deaths, seen.suspect), (1, 0, true));
    let one_try = State::queued(NOW, allowed(1)).step(claimed(1), SOON).unwrap();
    let (again, dead) = one_try.advance(died(1, true, Safety::Keyed), SOON).unwrap();
    assert!(matches!((again, dead), (State::Queued { due: LATER, .. }, None)), "{again:?}");
    assert_eq!((history(again).attempts, history(again).suspect), (0, true));
}
