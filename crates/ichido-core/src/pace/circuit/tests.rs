use super::*;

const SETTINGS: CircuitSettings = CircuitSettings {
    failures: NonZeroU32::new(3).unwrap(),
    rest: Duration::from_secs(5),
    max_rest: Duration::from_secs(15),
    probes: NonZeroU32::new(2).unwrap(),
};

const NOW: Timestamp = Timestamp::from_secs(100);
const SOON: Timestamp = Timestamp::from_secs(101);
const SINCE: Timestamp = Timestamp::from_secs(96);
const BEFORE: Timestamp = Timestamp::from_micros(95_999_999);

/// The report of a call with its slot at the time the circuit became half open, or before.
const FAILED: CircuitEvent = CircuitEvent::Failed { sent: SINCE };
const FAILED_LATE: CircuitEvent = CircuitEvent::Failed { sent: BEFORE };
const FAILED_AGAIN: CircuitEvent = CircuitEvent::RetryFailed { sent: SINCE };
const FAILED_AGAIN_LATE: CircuitEvent = CircuitEvent::RetryFailed { sent: BEFORE };
const THROTTLED: CircuitEvent = CircuitEvent::Throttled { sent: SINCE };
const THROTTLED_LATE: CircuitEvent = CircuitEvent::Throttled { sent: BEFORE };

fn closed(failures: u32) -> Circuit {
    Circuit::Closed { failures }
}

fn open(until: Timestamp, rest_secs: u64) -> Circuit {
    Circuit::Open { until, rest: Duration::from_secs(rest_secs) }
}

fn half_open(probes_left: u32, renewed_at: Timestamp, rest_secs: u64) -> Circuit {
    half_open_since(SINCE, probes_left, renewed_at, rest_secs)
}

fn half_open_since(since: Timestamp, probes_left: u32, renewed_at: Timestamp, rest_secs: u64) -> Circuit {
    Circuit::HalfOpen { since, probes_left, renewed_at, rest: Duration::from_secs(rest_secs) }
}

/// Every state meets every event at second 100.
#[test]
fn the_table_of_the_circuit() {
    use CircuitEvent::{CallRequested, CallsAllowed, RetryRequested, Succeeded};
    let at = Timestamp::from_secs;
    for (before, event, after) in [
        // Failures in a row open it; one success resets them; a throttled call is neither.
        (closed(0), FAILED, closed(1)),
        (closed(1), FAILED, closed(2)),
        (closed(2), FAILED, open(at(105), 5)),
        (closed(u32::MAX), FAILED, open(at(105), 5)),
        (closed(2), Succeeded, closed(0)),
        (closed(2), THROTTLED, closed(2)),
        (closed(2), CallRequested, closed(2)),
        (closed(2), CallsAllowed(9), closed(2)),
        // While open, it ignores everything until the rest ends.
        (open(SOON, 5), CallRequested, open(SOON, 5)),
        (open(SOON, 5), CallsAllowed(1), open(SOON, 5)),
        (open(SOON, 5), Succeeded, open(SOON, 5)),
        (open(SOON, 5), FAILED, open(SOON, 5)),
        (open(SOON, 5), THROTTLED, open(SOON, 5)),
        (open(NOW, 5), CallRequested, half_open_since(NOW, 2, at(105), 5)),
        // While half open, it allows a few calls and decides by the first that reports.
        (half_open(2, SOON, 5), CallRequested, half_open(2, SOON, 5)),
        (half_open(2, SOON, 5), CallsAllowed(1), half_open(1, SOON, 5)),
        (half_open(1, SOON, 5), CallsAllowed(9), half_open(0, SOON, 5)),
        (half_open(0, SOON, 5), Succeeded, closed(0)),
        (half_open(0, SOON, 5), FAILED, open(at(110), 10)),
        (half_open(0, SOON, 10), FAILED, open(at(115), 15)),
        (half_open(0, SOON, 15), FAILED, open(at(115), 15)),
        (half_open(0, SOON, 5), THROTTLED, half_open(1, SOON, 5)),
        (half_open(2, SOON, 5), THROTTLED, half_open(2, SOON, 5)),
        // A call sent before is not a probe and does not decide.
        (half_open(0, SOON, 5), FAILED_LATE, half_open(0, SOON, 5)),
        (half_open(0, SOON, 5), THROTTLED_LATE, half_open(0, SOON, 5)),
        (closed(2), FAILED_LATE, open(at(105), 5)),
        // Probes without a report are replaced in time; if they fail after all, they still count as probes.
        (half_open(0, NOW, 5), CallRequested, half_open(2, at(105), 5)),
        (half_open(2, at(105), 5), FAILED, open(at(110), 10)),
        // A message that has failed before opens nothing, and gives way for one first rest after the rest ends (5 s).
        (closed(2), FAILED_AGAIN, closed(2)),
        (closed(2), RetryRequested, closed(2)),
        (open(SOON, 5), FAILED_AGAIN, open(SOON, 5)),
        (open(NOW, 5), RetryRequested, open(NOW, 5)),
        (open(at(96), 5), RetryRequested, open(at(96), 5)),
        (open(at(95), 10), RetryRequested, half_open_since(at(95), 2, at(110), 10)),
        (half_open_since(at(95), 0, NOW, 5), RetryRequested, half_open_since(at(95), 2, at(105), 5)),
        (half_open(0, NOW, 5), RetryRequested, half_open(0, NOW, 5)),
        // As a probe it does not extend the rest.
        (half_open(0, SOON, 10), FAILED_AGAIN, open(at(110), 10)),
        (half_open(0, SOON, 10), FAILED_AGAIN_LATE, half_open(0, SOON, 10)),
    ] {
        assert_eq!(before.step(&SETTINGS, NOW, event), after, "{before:?} met {event:?}");
    }
}

#[test]
fn circuit_passes_all_none_or_probes() {
    for (circuit, admits, rests_until) in [
        (closed(2), u32::MAX, None),
        (open(SOON, 5), 0, Some(SOON)),
        (open(NOW, 5), 0, None),
        (half_open(2, SOON, 5), 2, None),
        (half_open(0, SOON, 5), 0, Some(SOON)),
        (half_open(0, NOW, 5), 0, None),
    ] {
        assert_eq!(circuit.admits(), admits, "{circuit:?}");
        assert_eq!(circuit.rests_until(NOW), rests_until, "{circuit:?}");
    }
}

#[test]
fn rest_is_capped_at_the_maximum() {
    let settings = CircuitSettings { rest: Duration::MAX, ..SETTINGS };
    assert_eq!(closed(2).step(&settings, NOW, FAILED), open(Timestamp::from_secs(115), 15));
    assert_eq!(half_open(0, SOON, 15).step(&settings, NOW, FAILED), open(Timestamp::from_secs(115), 15));
}

#[test]
fn clock_set_back_loses_no_probe_result() {
    let earlier = Timestamp::from_secs(40);
    let clamped = half_open(0, SOON, 5).without_future_times(&SETTINGS, earlier);
    assert_eq!(clamped, half_open_since(earlier, 0, Timestamp::from_secs(55), 5));
    let failed = CircuitEvent::Failed { sent: earlier };
    assert_eq!(clamped.step(&SETTINGS, earlier, failed), open(Timestamp::from_secs(50), 10));
}

/// However often ten bad messages are retried, a closed circuit stays closed.
// SPEC E2.
#[test]
fn messages_that_have_failed_before_open_no_circuit() {
    let failing = (0..1_000).fold(closed(2), |circuit, _| circuit.step(&SETTINGS, NOW, FAILED_AGAIN));
    assert_eq!(failing, closed(2));
}

/// A good message is the probe, whichever node asks first, and no retry delays it by more than one first rest.
// SPEC E2.
#[test]
fn a_message_that_has_not_failed_is_the_probe() {
    let at = Timestamp::from_secs;
    let mut circuit = open(NOW, 15);
    for second in 100..105 {
        let bad = circuit.step(&SETTINGS, at(second), CircuitEvent::RetryRequested);
        assert_eq!((bad, bad.rests_until_again(&SETTINGS, at(second))), (circuit, Some(at(105))));
        let good = bad.step(&SETTINGS, at(second), CircuitEvent::CallRequested);
        assert_eq!((good.rests_until(at(second)), good.admits()), (None, 2), "at {second}");
        assert_eq!(good.rests_until_again(&SETTINGS, at(second)), Some(at(105)), "it gives way still");
    }
    // No other message came, so one that has failed before is the probe. It fails, and the rest is not extended.
    circuit = circuit.step(&SETTINGS, at(105), CircuitEvent::RetryRequested);
    assert_eq!((circuit.rests_until_again(&SETTINGS, at(105)), circuit.admits()), (None, 2));
    circuit = circuit.step(&SETTINGS, at(106), CircuitEvent::RetryFailed { sent: at(105) });
    assert_eq!(circuit, open(at(121), 15));
}
