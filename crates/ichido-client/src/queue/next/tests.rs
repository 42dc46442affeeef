//! Tests the decisions, by case and by property.

use std::time::Duration;

use ichido_core::ledger::Profile;
use ichido_core::retry::{Retry, Safety};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{self, AttemptResponse, Echo, Effect, NetworkFault};
use proptest::prelude::*;

use super::*;
use crate::decision::{self as client, AttemptHistory, DecisionContext, RetryRules};

const KEPT: Duration = Duration::from_hours(72);
const TRY: Duration = Duration::from_secs(30);

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(1_800_000_000 + secs)
}

fn fresh() -> EntryHistory {
    EntryHistory {
        attempts: 0,
        sends: 0,
        first_sent: None,
        due: Duration::ZERO,
        is_released: false,
        effect: Effect::NotDone,
    }
}

/// Decides after an attempt, as the sender does.
fn decide_after(history: &EntryHistory, seen: &AttemptResponse<'_>) -> AfterSend {
    let rules =
        RetryRules { retry: Retry::CLIENT, max_retry_after: MAX_RETRY_AFTER, profile: Profile::Ichido };
    let attempts = AttemptHistory { sent: 0, failed: history.attempts, effect: history.effect };
    let context = DecisionContext { now: at(0), left: Duration::MAX, budget: None };
    let fault = match seen {
        AttemptResponse::Network(fault) => Some(*fault),
        _ => None,
    };
    after(history, client::decide(&rules, Safety::Keyed, attempts, seen, context, 0.0).next, fault)
}

fn answer<'a>(status: u16, headers: &'a [(&'a str, &'a [u8])]) -> AttemptResponse<'a> {
    AttemptResponse::Http(verdict::HttpResponse { status, headers, body: b"", echo: Echo::Absent })
}

#[test]
fn definite_response_ends_the_entry() {
    for status in [200, 201, 202, 204] {
        assert_eq!(decide_after(&fresh(), &answer(status, &[])), AfterSend::Remove, "{status}");
    }
    for status in [301, 400, 401, 403, 404, 409, 410, 422] {
        let failed = decide_after(&fresh(), &answer(status, &[]));
        assert!(matches!(failed, AfterSend::Fail { why: None, .. }), "{status}: {failed:?}");
    }
}

#[test]
fn failed_attempts_count_and_the_third_is_the_last() {
    let lost = AttemptResponse::Network(NetworkFault::Broken);
    for seen in [&lost, &answer(500, &[]), &answer(503, &[]), &answer(408, &[]), &answer(429, &[])] {
        for (attempts, secs) in [(0, 1), (1, 2)] {
            let outcome = decide_after(&EntryHistory { attempts, ..fresh() }, seen);
            assert!(
                matches!(outcome, AfterSend::Retry { wait, .. } if wait == Duration::from_secs(secs)),
                "{seen:?}: {outcome:?}"
            );
        }
        let third = decide_after(&EntryHistory { attempts: 2, ..fresh() }, seen);
        assert!(
            matches!(third, AfterSend::Fail { why: Some(GiveUpReason::TriesSpent), .. }),
            "{seen:?}: {third:?}"
        );
    }
}

#[test]
fn retry_after_is_respected_and_too_long_a_wait_fails() {
    let wish = |secs: &'static [u8]| decide_after(&fresh(), &answer(429, &[("retry-after", secs)]));
    assert_eq!(wish(b"3600"), AfterSend::Retry { wait: Duration::from_hours(1), effect: Effect::NotDone });
    assert!(matches!(wish(b"90000"), AfterSend::Fail { why: Some(GiveUpReason::AskedToWait { .. }), .. }));
}

#[test]
fn attempts_that_never_left_do_not_count() {
    use NetworkFault::{ClosedUnused, ConnectRefused, ConnectTimeout, NameNotResolved, StreamRefused, Tls};
    for fault in [NameNotResolved, ConnectRefused, ConnectTimeout, Tls, StreamRefused, ClosedUnused] {
        assert_eq!(
            decide_after(&EntryHistory { attempts: 2, ..fresh() }, &AttemptResponse::Network(fault)),
            AfterSend::Offline,
            "{fault:?}"
        );
    }
    // Waiting would not help.
    let unwritable = decide_after(
        &EntryHistory { attempts: 2, ..fresh() },
        &AttemptResponse::Network(NetworkFault::NotSent),
    );
    assert!(matches!(unwritable, AfterSend::Fail { .. }));
}

#[test]
fn action_in_flight_is_polled_less_and_less_often() {
    let processing: [(&str, &[u8]); 2] = [("idempotency-status", b"processing"), ("retry-after", b"1")];
    let waits = [0, 1, 2, 5, 6, 50].map(|sends| {
        match decide_after(&EntryHistory { sends, ..fresh() }, &answer(202, &processing)) {
            AfterSend::Ask { wait } => wait.as_secs(),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(waits, [1, 2, 4, 32, 60, 60]);
}

#[test]
fn entry_is_not_sent_forever() {
    let watch = FileClock::begin(at(0));
    let sent =
        |sends| before(&EntryHistory { sends, first_sent: Some(watch.mark()), ..fresh() }, watch, KEPT, TRY);
    assert_eq!(sent(MAX_SENDS - 1), BeforeSend::Send);
    assert_eq!(sent(MAX_SENDS), BeforeSend::Fail);
}

#[test]
fn entry_waits_until_it_is_due() {
    let watch = FileClock::begin(at(0)).look(at(10));
    let due = |secs| before(&EntryHistory { due: Duration::from_secs(secs), ..fresh() }, watch, KEPT, TRY);
    assert_eq!(due(10), BeforeSend::Send);
    assert_eq!(due(13), BeforeSend::Wait(Duration::from_secs(3)));
}

#[test]
fn sent_entry_is_held_when_its_key_may_be_forgotten() {
    let then = FileClock::begin(at(0));
    let sent = EntryHistory { sends: 1, first_sent: Some(then.mark()), ..fresh() };
    let hours = |hours: i64| then.look(at(hours * 3_600));
    assert_eq!(before(&sent, hours(71), KEPT, TRY), BeforeSend::Send);
    // It could be in transit for up to 30 s and arrive too late.
    assert_eq!(
        before(&sent, then.look(at(72 * 3_600 - 30)), KEPT, TRY),
        BeforeSend::Hold(HoldReason::KeysForgotten)
    );
    assert_eq!(before(&sent, then.look(at(72 * 3_600 - 31)), KEPT, TRY), BeforeSend::Send);
    assert_eq!(before(&fresh(), hours(10_000), KEPT, TRY), BeforeSend::Send, "it was never sent");
    let released = EntryHistory { is_released: true, ..sent };
    assert_eq!(before(&released, hours(10_000), KEPT, TRY), BeforeSend::Send, "a person said so");
}

#[test]
fn entry_sent_before_a_clock_set_back_is_held() {
    let then = FileClock::begin(at(0));
    let sent = EntryHistory { sends: 1, first_sent: Some(then.mark()), ..fresh() };
    let back = then.look(at(7_200)).look(at(60));
    assert_eq!(before(&sent, back, KEPT, TRY), BeforeSend::Hold(HoldReason::AgeUnknown));
    let after = EntryHistory { first_sent: Some(back.mark()), ..sent };
    assert_eq!(before(&after, back.look(at(120)), KEPT, TRY), BeforeSend::Send, "it was sent after that");
}

proptest! {
    #[test]
    fn old_entry_is_never_sent_automatically(age in 0_u64..400_000, kept in 60_u64..400_000, attempts in 0_u32..5, sends in 0_u32..200) {
        let then = FileClock::begin(at(0));
        let sent = EntryHistory { attempts, sends, first_sent: Some(then.mark()), ..fresh() };
        let watch = then.look(at(i64::try_from(age).unwrap()));
        let decided = before(&sent, watch, Duration::from_secs(kept), TRY);
        if kept <= age + TRY.as_secs() {
            prop_assert_eq!(decided, BeforeSend::Hold(HoldReason::KeysForgotten));
        } else {
            prop_assert!(matches!(decided, BeforeSend::Send | BeforeSend::Fail));
            prop_assert_eq!(decided == BeforeSend::Send, sends < MAX_SENDS);
        }
    }

    #[test]
    fn queue_backoff_grows_within_its_limits(nth in 0_u32..u32::MAX - 1) {
        prop_assert!((MIN_OFFLINE_WAIT..=MAX_OFFLINE_WAIT).contains(&offline_backoff(nth, 0.0)));
        prop_assert!(offline_backoff(nth, 0.0) <= offline_backoff(nth + 1, 0.0));
        prop_assert!(offline_backoff(nth, 0.999) <= MAX_OFFLINE_WAIT + MAX_OFFLINE_WAIT / 10);
    }
}
