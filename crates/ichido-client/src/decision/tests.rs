mod properties;

use std::time::Duration;

use ichido_core::retry::BudgetSettings;
use ichido_core::verdict::{Echo, HttpResponse, NetworkFault};

use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);
const PLENTY: DecisionContext = DecisionContext { now: NOW, left: Duration::from_mins(10), budget: None };

fn rules() -> RetryRules {
    rules_for(Profile::Ichido)
}

fn rules_for(profile: Profile) -> RetryRules {
    RetryRules { retry: Retry::CLIENT, max_retry_after: Duration::from_mins(1), profile }
}

fn answer(status: u16) -> HttpResponse<'static> {
    HttpResponse { status, headers: &[], body: b"", echo: Echo::Absent }
}

fn seen(status: u16) -> AttemptResponse<'static> {
    AttemptResponse::Http(answer(status))
}

/// The next step of a keyed action, with no budget.
fn decide(
    rules: &RetryRules,
    safety: Safety,
    before: AttemptHistory,
    seen: &AttemptResponse<'_>,
    context: DecisionContext,
    dice: f64,
) -> NextStep {
    super::decide(rules, safety, before, seen, context, dice).next
}

fn first(seen: &AttemptResponse<'_>) -> NextStep {
    decide(&rules(), Safety::Keyed, AttemptHistory::NONE, seen, PLENTY, 0.0)
}

const REPLAYED: &[(&str, &[u8])] = &[("idempotent-replayed", b"true")];
const PROCESSING: &[(&str, &[u8])] = &[("Idempotency-Status", b"processing"), ("Retry-After", b"3")];

#[test]
fn only_faults_5xx_408_and_429_are_retried() {
    for status in 200..=999 {
        let is_again = matches!(first(&seen(status)), NextStep::Retry { .. });
        assert_eq!(is_again, matches!(status, 408 | 429 | 500..=599), "{status}");
        let is_done = first(&seen(status)) == NextStep::Done;
        assert_eq!(is_done, (200..=299).contains(&status), "{status}");
    }
    for fault in [NetworkFault::ConnectRefused, NetworkFault::Broken, NetworkFault::Timeout] {
        assert!(matches!(first(&AttemptResponse::Network(fault)), NextStep::Retry { .. }), "{fault:?}");
    }
}

#[test]
fn default_backoff_doubles_and_makes_three_attempts() {
    for (dice, waits) in [(0.0, [1_000, 2_000]), (1.0, [1_100, 2_200])] {
        let mut attempts = AttemptHistory::NONE;
        for millis in waits {
            let NextStep::Retry { wait, attempts: so_far } =
                decide(&rules(), Safety::Keyed, attempts, &seen(503), PLENTY, dice)
            else {
                panic!("it is made again");
            };
            assert_eq!(wait, Duration::from_millis(millis));
            attempts = so_far;
        }
        let end = decide(&rules(), Safety::Keyed, attempts, &seen(503), PLENTY, dice);
        assert_eq!(end, NextStep::GiveUp { why: GiveUpReason::TriesSpent, effect: Effect::Unknown });
    }
}

#[test]
fn retry_after_is_a_minimum_in_seconds_or_date() {
    let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(1_800_000_030));
    for (value, millis) in [("30", 30_000), (date.as_str(), 30_000), ("0", 1_000), ("soon", 1_000)] {
        let headers: &[(&str, &[u8])] = &[("Retry-After", value.as_bytes())];
        let NextStep::Retry { wait, .. } =
            first(&AttemptResponse::Http(HttpResponse { headers, ..answer(429) }))
        else {
            panic!("{value} is waited for");
        };
        assert_eq!(wait, Duration::from_millis(millis), "{value}");
    }
}

#[test]
fn retry_after_beyond_the_cap_gives_up_and_says_when() {
    let far = httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(1_800_003_605));
    for (value, secs) in [("61", 61), (far.as_str(), 3_605)] {
        let headers: &[(&str, &[u8])] = &[("Retry-After", value.as_bytes())];
        let why = GiveUpReason::AskedToWait { come_back_at: NOW.plus(Duration::from_secs(secs)) };
        let end = first(&AttemptResponse::Http(HttpResponse { headers, ..answer(503) }));
        assert_eq!(end, NextStep::GiveUp { why, effect: Effect::Unknown }, "{value}");
        let end = first(&AttemptResponse::Http(HttpResponse { headers, ..answer(429) }));
        assert_eq!(end, NextStep::GiveUp { why, effect: Effect::NotDone }, "{value}");
    }
}

#[test]
fn attempt_after_the_deadline_is_given_up_at_once() {
    let context = |left| DecisionContext { now: NOW, left: Duration::from_millis(left), budget: None };
    let decided =
        |left| decide(&rules(), Safety::Keyed, AttemptHistory::NONE, &seen(503), context(left), 0.0);
    assert!(matches!(decided(1_001), NextStep::Retry { .. }));
    let why = GiveUpReason::OutOfTime { come_back_at: NOW.plus(Duration::from_secs(1)) };
    assert_eq!(decided(1_000), NextStep::GiveUp { why, effect: Effect::Unknown });
}

#[test]
fn in_flight_is_polled_and_uses_no_attempt() {
    let in_flight = AttemptResponse::Http(HttpResponse { headers: PROCESSING, ..answer(202) });
    let mut attempts = AttemptHistory::NONE;
    for asked in 1..=100 {
        let NextStep::Retry { wait, attempts: so_far } =
            decide(&rules(), Safety::Keyed, attempts, &in_flight, PLENTY, 0.0)
        else {
            panic!("it is asked again");
        };
        assert_eq!(wait, Duration::from_secs(3), "as the server says, and no longer from time to time");
        assert_eq!(so_far, AttemptHistory { sent: asked, failed: 0, effect: Effect::Unknown });
        attempts = so_far;
    }
    assert_eq!(decide(&rules(), Safety::Keyed, attempts, &seen(201), PLENTY, 0.0), NextStep::Done);
    let spent = AttemptHistory { sent: MAX_ATTEMPTS - 1, ..attempts };
    let end = decide(&rules(), Safety::Keyed, spent, &in_flight, PLENTY, 0.0);
    assert_eq!(
        end,
        NextStep::GiveUp { why: GiveUpReason::TriesSpent, effect: Effect::Unknown },
        "not for ever"
    );
}

#[test]
fn known_effect_combines_all_attempts() {
    let never = AttemptResponse::Network(NetworkFault::ConnectRefused);
    let NextStep::Retry { attempts, .. } = first(&never) else { panic!("it is made again") };
    assert_eq!(attempts.effect, Effect::NotDone);
    assert_eq!(
        first(&seen(422)),
        NextStep::Refused { effect: Effect::NotDone, reason: RefusalReason::ByServer }
    );
    let lost = AttemptHistory { sent: 1, failed: 1, effect: Effect::Unknown };
    for status in [401, 422] {
        let refused = decide(&rules(), Safety::Keyed, lost, &seen(status), PLENTY, 0.0);
        assert_eq!(
            refused,
            NextStep::Refused { effect: Effect::Unknown, reason: RefusalReason::ByServer },
            "the first may have done it"
        );
    }
    let at_last = AttemptHistory { sent: 2, failed: 2, effect: Effect::NotDone };
    let end = decide(&rules(), Safety::Keyed, at_last, &never, PLENTY, 0.0);
    assert_eq!(
        end,
        NextStep::GiveUp { why: GiveUpReason::TriesSpent, effect: Effect::NotDone },
        "nothing ever arrived"
    );
}

#[test]
fn response_for_another_key_is_not_an_outcome() {
    for status in [201, 409, 503] {
        let others = AttemptResponse::Http(HttpResponse { echo: Echo::Other, ..answer(status) });
        assert_eq!(
            first(&others),
            NextStep::GiveUp { why: GiveUpReason::AnotherKey, effect: Effect::Unknown },
            "{status}"
        );
    }
}

#[test]
fn retry_without_a_key_needs_proof_that_nothing_was_done() {
    let unkeyed =
        |seen: &AttemptResponse<'_>| decide(&rules(), Safety::None, AttemptHistory::NONE, seen, PLENTY, 0.0);
    let no_key = NextStep::GiveUp { why: GiveUpReason::NoKey, effect: Effect::Unknown };
    for status in [408, 500, 502, 503, 504] {
        assert_eq!(unkeyed(&seen(status)), no_key, "{status}");
    }
    for fault in [NetworkFault::Timeout, NetworkFault::Broken, NetworkFault::ResponseCut] {
        assert_eq!(unkeyed(&AttemptResponse::Network(fault)), no_key, "{fault:?}");
    }
    assert_eq!(unkeyed(&AttemptResponse::Http(HttpResponse { headers: PROCESSING, ..answer(202) })), no_key);
    assert!(matches!(unkeyed(&seen(429)), NextStep::Retry { .. }));
    assert!(matches!(
        unkeyed(&AttemptResponse::Network(NetworkFault::ConnectRefused)),
        NextStep::Retry { .. }
    ));
    let lost = AttemptHistory { sent: 1, failed: 1, effect: Effect::Unknown };
    let after_a_doubt = decide(&rules(), Safety::None, lost, &seen(429), PLENTY, 0.0);
    assert_eq!(after_a_doubt, no_key, "this one was turned away, the one before it may not have been");
    assert_eq!(unkeyed(&seen(201)), NextStep::Done);
    assert_eq!(unkeyed(&seen(422)), first(&seen(422)));
}

#[test]
fn replayed_failure_is_a_refusal_and_replayed_success_is_not() {
    let replayed =
        |status| first(&AttemptResponse::Http(HttpResponse { headers: REPLAYED, ..answer(status) }));
    for status in [408, 500, 503] {
        let refused = NextStep::Refused { effect: Effect::Unknown, reason: RefusalReason::KeptFailure };
        assert_eq!(replayed(status), refused, "{status}");
    }
    assert_eq!(replayed(201), NextStep::Done);
    let not_done = NextStep::Refused { effect: Effect::NotDone, reason: RefusalReason::ByServer };
    assert_eq!(replayed(400), not_done);
}

#[test]
fn response_is_not_about_a_key_if_none_was_sent() {
    for profile in Profile::ALL {
        for safety in [Safety::None, Safety::Idempotent] {
            let next = |seen: &AttemptResponse<'_>| {
                decide(&rules_for(profile), safety, AttemptHistory::NONE, seen, PLENTY, 0.0)
            };
            let refused = |effect| NextStep::Refused { effect, reason: RefusalReason::ByServer };
            assert_eq!(next(&seen(409)), refused(Effect::Unknown), "{profile:?} {safety:?}");
            assert_eq!(next(&seen(422)), refused(Effect::NotDone), "{profile:?} {safety:?}");
        }
    }
    let replayed = AttemptResponse::Http(HttpResponse { headers: REPLAYED, ..answer(503) });
    let read = decide(&rules(), Safety::Idempotent, AttemptHistory::NONE, &replayed, PLENTY, 0.0);
    assert!(matches!(read, NextStep::Retry { .. }), "{read:?}");
}

#[test]
fn retry_that_is_not_made_costs_no_budget() {
    let one = Some(Budget::full(BudgetSettings { capacity: 100, earned_per_success: 0 }));
    let context = DecisionContext { budget: one, ..PLENTY };
    let decided =
        |attempts, context| super::decide(&rules(), Safety::Keyed, attempts, &seen(503), context, 0.0);
    let spent = AttemptHistory { sent: 2, failed: 2, effect: Effect::Unknown };
    assert_eq!(decided(spent, context).budget, one, "no try is left");
    let late = DecisionContext { left: Duration::ZERO, ..context };
    assert_eq!(decided(AttemptHistory::NONE, late).budget, one, "no time is left");
    let paid = decided(AttemptHistory::NONE, context);
    assert!(matches!(paid.next, NextStep::Retry { .. }) && paid.budget != one);
    let broke = decided(AttemptHistory::NONE, DecisionContext { budget: paid.budget, ..context });
    assert_eq!(broke.next, NextStep::GiveUp { why: GiveUpReason::BudgetSpent, effect: Effect::Unknown });
}
