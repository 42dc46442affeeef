use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::time::Timestamp;
use crate::verdict::{AttemptResponse, Echo, Effect, HttpResponse, NetworkFault};

fn nth(failure: u32) -> NonZeroU32 {
    NonZeroU32::new(failure).unwrap()
}

fn wait_secs(retry: &Retry, failure: u32, dice: f64) -> f64 {
    retry.wait(nth(failure), dice, None).as_secs_f64()
}

/// The minimum and maximum wait after each failure, in seconds.
fn ranges(retry: &Retry, failures: u32) -> Vec<(f64, f64)> {
    (1..=failures).map(|n| (wait_secs(retry, n, 0.0), wait_secs(retry, n, 1.0))).collect()
}

fn assert_ranges(retry: &Retry, expected: &[(f64, f64)]) {
    let found = ranges(retry, u32::try_from(expected.len()).unwrap());
    for (n, (found, expected)) in found.iter().zip(expected).enumerate() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(
            near(found.0, expected.0) && near(found.1, expected.1),
            "failure {}: {found:?}, expected {expected:?}",
            n + 1
        );
    }
}

#[test]
fn client_waits_1_2_4_seconds_plus_tenth_jitter() {
    assert_ranges(&Retry::CLIENT, &[(1.0, 1.1), (2.0, 2.2), (4.0, 4.4)]);
    assert!(Retry::CLIENT.has_attempts_left(2) && !Retry::CLIENT.has_attempts_left(3));
}

#[test]
fn the_llm_waits_double_from_2_up_to_20_seconds_and_half_as_much_more() {
    assert_ranges(
        &Retry::LLM,
        &[(2.0, 3.0), (4.0, 6.0), (8.0, 12.0), (16.0, 24.0), (20.0, 30.0), (20.0, 30.0)],
    );
    assert!(
        Retry::LLM.has_attempts_left(4) && !Retry::LLM.has_attempts_left(5),
        "4 retries after the first attempt"
    );
}

#[test]
fn an_order_is_retried_8_times_after_2_to_256_seconds_give_or_take_a_tenth() {
    let expected: Vec<_> = (1..=8).map(|n| f64::from(1_u32 << n)).map(|d| (0.9 * d, 1.1 * d)).collect();
    assert_ranges(&Retry::ORDER, &expected);
    assert!(Retry::ORDER.has_attempts_left(8) && !Retry::ORDER.has_attempts_left(9));
    assert_eq!(Retry::ORDER.waits().sum::<Duration>(), Duration::from_secs(510));
    assert_eq!(Retry::ORDER.horizon(Duration::ZERO, Duration::ZERO), Duration::from_secs(561));
}

#[test]
fn a_webhook_is_retried_17_times_within_26_hours() {
    let seconds = [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_120, 10_240];
    let expected: Vec<f64> = seconds.into_iter().chain([14_400; 5]).map(f64::from).collect();
    let waits: Vec<f64> = Retry::WEBHOOK.waits().map(|wait| wait.as_secs_f64()).collect();
    assert_eq!(waits, expected, "17 retries");
    let ranges: Vec<_> = expected.into_iter().map(|wait| (0.9 * wait, 1.1 * wait)).collect();
    assert_ranges(&Retry::WEBHOOK, &ranges);
    assert!(Retry::WEBHOOK.has_attempts_left(17) && !Retry::WEBHOOK.has_attempts_left(18));
    assert_eq!(Retry::WEBHOOK.waits().sum::<Duration>(), Duration::from_secs(92_475), "25 h 41 min");
}

#[test]
fn webhook_retries_end_before_receiver_forgets_key() {
    let (call, delay) = (Duration::from_secs(15), Duration::from_mins(1));
    let keyed = |keeps_for| Retry::webhook(Guarantee::Keyed { keeps_for }, call, delay);
    for (keeps_for, attempts) in [
        (Duration::ZERO, 1),
        (Duration::from_secs(95), 1),
        // Two calls, a wait of 5 s and a tenth, and a call that arrives a minute late.
        (Duration::from_millis(95_500), 2),
        (Duration::from_hours(24), 17),
        (Duration::from_hours(7 * 24), 18),
    ] {
        let retry = keyed(keeps_for);
        assert_eq!(retry.max_attempts.get(), attempts, "{keeps_for:?}");
        assert_eq!((retry.schedule, retry.jitter), (Retry::WEBHOOK.schedule, Retry::WEBHOOK.jitter));
    }
    for guarantee in [Guarantee::Idempotent, Guarantee::None] {
        assert_eq!(Retry::webhook(guarantee, call, delay), Retry::WEBHOOK, "no key can be forgotten");
    }
}

#[test]
fn the_horizon_counts_every_call_and_the_longest_hints() {
    let (call, hint) = (Duration::from_secs(30), Duration::from_secs(100));
    // 9 calls of 30 s, 6 waits that the hint extends to 110 s, then 128 s and 256 s and a tenth of each.
    let expected = Duration::from_millis(270_000 + 660_000 + 140_800 + 281_600);
    assert_eq!(Retry::ORDER.horizon(call, hint), expected);
    let once = Retry { max_attempts: nth(1), ..Retry::ORDER };
    assert_eq!(once.horizon(call, hint), call, "one attempt has no wait");
    assert_eq!(Retry::ORDER.horizon(Duration::MAX, hint), Duration::MAX);
}

#[test]
fn a_job_waits_two_to_the_nth_minutes_after_failure_n() {
    assert_ranges(&Retry::JOB, &[(120.0, 120.0), (240.0, 240.0), (480.0, 480.0)]);
    let job = Retry { max_attempts: nth(5), ..Retry::JOB };
    assert!(
        job.has_attempts_left(4) && !job.has_attempts_left(5),
        "failure n is final when n reaches the allowed attempts"
    );
}

#[test]
fn the_waits_of_clients_and_jobs_double_up_to_30_days() {
    let wait = |retry: &Retry, failure| retry.schedule.wait(nth(failure));
    assert_eq!(wait(&Retry::CLIENT, 11).as_secs(), 1_024);
    assert_eq!(wait(&Retry::JOB, 11).as_secs(), 122_880);
    for retry in [Retry::CLIENT, Retry::JOB] {
        assert_eq!(wait(&retry, 100), MAX_WAIT);
    }
}

#[test]
fn a_list_gives_its_waits_in_order_and_then_the_last() {
    let waits = [5, 300, 1_800].map(Duration::from_secs).to_vec();
    let retry = Retry { schedule: Schedule::List(waits), jitter: Jitter::None, max_attempts: nth(6) };
    assert_ranges(&retry, &[(5.0, 5.0), (300.0, 300.0), (1_800.0, 1_800.0), (1_800.0, 1_800.0)]);
}

#[test]
fn full_jitter_spreads_from_nothing_to_the_wait() {
    let retry = Retry { jitter: Jitter::Full, ..Retry::ORDER };
    assert_ranges(&retry, &[(0.0, 2.0), (0.0, 4.0)]);
}

#[test]
fn a_servers_hint_is_a_floor_with_jitter_above_it() {
    let hint = Some(Duration::from_secs(100));
    for (name, retry, most) in [
        ("client", Retry::CLIENT, 110.0),
        ("llm", Retry::LLM, 150.0),
        ("order", Retry::ORDER, 110.0),
        ("job", Retry { schedule: Schedule::List(vec![Duration::ZERO]), ..Retry::JOB }, 100.0),
        ("full", Retry { jitter: Jitter::Full, ..Retry::CLIENT }, 150.0),
    ] {
        assert_eq!(retry.wait(nth(1), 0.0, hint), Duration::from_secs(100), "{name}");
        assert!((retry.wait(nth(1), 1.0, hint).as_secs_f64() - most).abs() < 1e-6, "{name}");
    }
    let short = Some(Duration::from_secs(1));
    assert!(Retry::ORDER.wait(nth(8), 0.0, short) >= Duration::from_secs(230), "the schedule still holds");
}

#[test]
fn invalid_schedules_are_refused() {
    let day = Duration::from_hours(24);
    let (second, half) = (Duration::from_secs(1), Duration::from_millis(500));
    let exponential = |factor, cap| Schedule::Exponential { base: second, factor, cap };
    let cases = [
        (exponential(0, day), Jitter::None, ScheduleError::FactorZero),
        (exponential(2, 31 * day), Jitter::None, ScheduleError::WaitTooLong { wait: 31 * day }),
        (exponential(2, half), Jitter::None, ScheduleError::CapBelowBase { base: second, cap: half }),
        (Schedule::List(vec![]), Jitter::None, ScheduleError::EmptyList),
        (Schedule::List(vec![day, 31 * day]), Jitter::None, ScheduleError::WaitTooLong { wait: 31 * day }),
        (exponential(2, day), Jitter::Add(-0.1), ScheduleError::ShareOutOfRange),
        (exponential(2, day), Jitter::PlusMinus(1.5), ScheduleError::ShareOutOfRange),
        (exponential(2, day), Jitter::Add(f64::NAN), ScheduleError::ShareOutOfRange),
    ];
    for (schedule, jitter, error) in cases {
        let retry = Retry { schedule, jitter, max_attempts: nth(1) };
        assert_eq!(retry.clone().checked(), Err(error), "{retry:?}");
    }
    let below = ScheduleError::CapBelowBase { base: second, cap: half };
    let expected = "the cap, 500ms, is below the first wait, 1s; raise the cap, or lower the base";
    assert_eq!(below.to_string(), expected);
    for preset in [Retry::CLIENT, Retry::LLM, Retry::ORDER, Retry::WEBHOOK, Retry::JOB] {
        assert_eq!(preset.clone().checked(), Ok(preset));
    }
}

#[test]
fn unbounded_attempts_are_refused() {
    let with_attempts = |attempts| Retry { max_attempts: nth(attempts), ..Retry::ORDER };
    let most = with_attempts(MAX_ATTEMPTS);
    assert_eq!(most.clone().checked(), Ok(most.clone()));
    for attempts in [MAX_ATTEMPTS + 1, u32::MAX] {
        let retry = with_attempts(attempts);
        assert_eq!(retry.clone().checked(), Err(ScheduleError::TooManyAttempts));
        // Unchecked, it is the longest possible schedule, and no slower to add up.
        assert_eq!(retry.waits().count(), 999);
        let (call, hint) = (Duration::from_secs(30), Duration::from_secs(100));
        assert_eq!(retry.horizon(call, hint), most.horizon(call, hint));
        assert!(retry.has_attempts_left(MAX_ATTEMPTS - 1) && !retry.has_attempts_left(MAX_ATTEMPTS));
    }
    assert_eq!(
        ScheduleError::TooManyAttempts.to_string(),
        "more than 1000 attempts; allow fewer and wait longer between them"
    );
}

#[test]
fn attempt_beyond_deadline_is_refused_with_retry_time() {
    let now = Timestamp::from_secs(100);
    let wait = Duration::from_secs(10);
    assert_eq!(Retry::due(now, wait, None), Ok(Timestamp::from_secs(110)));
    assert_eq!(Retry::due(now, wait, Some(Timestamp::from_secs(111))), Ok(Timestamp::from_secs(110)));
    let late = TooLate { come_back_at: Timestamp::from_secs(110) };
    assert_eq!(Retry::due(now, wait, Some(Timestamp::from_secs(110))), Err(late));
    assert_eq!(late.to_string(), "the next attempt would be at 1970-01-01T00:01:50Z, after the deadline");
}

#[test]
fn a_budget_lets_a_fifth_be_retries_once_its_savings_are_spent() {
    let mut budget = Budget::full(BudgetSettings::DEFAULT);
    for retry in 0..10 {
        budget = budget.spend().unwrap_or_else(|| panic!("retry {retry} comes from the savings"));
    }
    assert_eq!(budget.spend(), None, "nothing left");
    let mut retries = 0;
    for _ in 0..1_000 {
        budget = budget.after_success();
        if let Some(left) = budget.spend() {
            (budget, retries) = (left, retries + 1);
        }
    }
    assert_eq!(retries, 200);
    for _ in 0..1_000 {
        budget = budget.after_success();
    }
    assert_eq!(budget, Budget::full(BudgetSettings::DEFAULT), "savings have a bound");
}

#[test]
fn without_a_key_only_undone_calls_are_repeated() {
    use RepeatRefused::{EffectDone, EffectUnknown};
    let table = [
        (Safety::None, Effect::NotDone, Ok(())),
        (Safety::None, Effect::Unknown, Err(EffectUnknown)),
        (Safety::None, Effect::Done, Err(EffectDone)),
        (Safety::Keyed, Effect::NotDone, Ok(())),
        (Safety::Keyed, Effect::Unknown, Ok(())),
        (Safety::Keyed, Effect::Done, Err(EffectDone)),
        (Safety::Idempotent, Effect::NotDone, Ok(())),
        (Safety::Idempotent, Effect::Unknown, Ok(())),
        (Safety::Idempotent, Effect::Done, Ok(())),
        (Safety::Transactional, Effect::NotDone, Ok(())),
        (Safety::Transactional, Effect::Unknown, Err(EffectUnknown)),
        (Safety::Transactional, Effect::Done, Err(EffectDone)),
    ];
    for (safety, effect, expected) in table {
        assert_eq!(may_repeat(safety, effect), expected, "{safety:?}, {effect:?}");
    }
}

#[test]
fn receiver_deduplicates_only_while_it_keeps_the_key() {
    let keyed = Guarantee::Keyed { keeps_for: Duration::from_secs(100) };
    let since = Some(Timestamp::from_secs(50));
    assert_eq!(keyed.safety(None, Timestamp::MAX), Safety::Keyed, "nothing is in doubt");
    assert_eq!(keyed.safety(since, Timestamp::from_secs(149)), Safety::Keyed);
    assert_eq!(keyed.safety(since, Timestamp::from_secs(150)), Safety::None);
    let ahead = Some(Timestamp::from_secs(1_000));
    assert_eq!(keyed.safety(ahead, Timestamp::from_secs(100)), Safety::None, "the clock was set back");
    assert_eq!(Guarantee::Idempotent.safety(since, Timestamp::MAX), Safety::Idempotent);
    assert_eq!(Guarantee::None.safety(None, Timestamp::EPOCH), Safety::None);
    assert_eq!(Guarantee::Transactional.safety(None, Timestamp::MAX), Safety::Transactional);
    let before = "the doubt is about a call under another guarantee";
    assert_eq!(Guarantee::Transactional.safety(since, Timestamp::MAX), Safety::None, "{before}");
}

#[test]
fn weaker_guarantee_wins() {
    let keyed = |secs| Guarantee::Keyed { keeps_for: Duration::from_secs(secs) };
    let of = |one: Guarantee, other: Guarantee| {
        assert_eq!(one.weaker(other), other.weaker(one), "in any order");
        one.weaker(other)
    };
    for any in [Guarantee::None, Guarantee::Idempotent, keyed(10)] {
        assert_eq!(of(any, any), any);
        assert_eq!(of(any, Guarantee::None), Guarantee::None);
        assert_eq!(of(any, Guarantee::Idempotent), any);
    }
    assert_eq!(of(keyed(10), keyed(20)), keyed(10));
    assert_eq!(of(Guarantee::Transactional, Guarantee::Transactional), Guarantee::Transactional);
    for other in [Guarantee::None, Guarantee::Idempotent, keyed(10)] {
        assert_eq!(of(Guarantee::Transactional, other), Guarantee::None);
    }
}

#[test]
fn a_hop_repeats_a_keyed_post_after_network_faults_and_502_to_504_only() {
    let answer =
        |status| AttemptResponse::Http(HttpResponse { status, headers: &[], body: b"", echo: Echo::Absent });
    for status in [502, 503, 504] {
        assert!(hop_may_repeat("POST", true, &answer(status)), "{status}");
    }
    for status in [200, 202, 400, 408, 409, 425, 429, 500, 501, 505] {
        assert!(!hop_may_repeat("POST", true, &answer(status)), "{status} is the origin's decision");
    }
    let fault = AttemptResponse::Network(NetworkFault::Timeout);
    assert!(hop_may_repeat("POST", true, &fault));
    assert!(!hop_may_repeat("POST", false, &fault), "no key");
    for method in ["PUT", "PATCH", "DELETE", "post"] {
        assert!(!hop_may_repeat(method, true, &fault), "{method}");
    }
}

fn retries() -> impl Strategy<Value = Retry> {
    let millis = |most| (0_u64..most).prop_map(Duration::from_millis);
    let schedule = prop_oneof![
        (millis(100_000), 1_u32..5, millis(1_000_000))
            .prop_map(|(base, factor, more)| Schedule::Exponential { base, factor, cap: base + more }),
        proptest::collection::vec(millis(1_000_000), 1..6).prop_map(Schedule::List),
    ];
    let jitter = prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        (0.0..=1.0).prop_map(Jitter::Add),
        (0.0..=1.0).prop_map(Jitter::PlusMinus),
    ];
    (schedule, jitter, 1_u32..20).prop_map(|(schedule, jitter, attempts)| Retry {
        schedule,
        jitter,
        max_attempts: nth(attempts),
    })
}

fn cap(retry: &Retry) -> Duration {
    match &retry.schedule {
        Schedule::Exponential { cap, .. } => *cap,
        Schedule::List(waits) => *waits.iter().max().unwrap(),
    }
}

fn guarantees() -> impl Strategy<Value = Guarantee> {
    prop_oneof![
        Just(Guarantee::None),
        Just(Guarantee::Idempotent),
        Just(Guarantee::Transactional),
        (0_u64..100).prop_map(|secs| Guarantee::Keyed { keeps_for: Duration::from_secs(secs) }),
    ]
}

proptest! {
    #[test]
    fn webhook_attempts_stay_within_key_window(keeps_for in 0_u64..200_000, call in 0_u64..3_600, delay in 0_u64..3_600) {
        let [keeps_for, call, delay] = [keeps_for, call, delay].map(Duration::from_secs);
        let retry = Retry::webhook(Guarantee::Keyed { keeps_for }, call, delay);
        let fits = |retry: &Retry| retry.horizon(call, Duration::ZERO) + delay <= keeps_for;
        prop_assert!(fits(&retry) || retry.max_attempts == NonZeroU32::MIN);
        let longer = Retry { max_attempts: nth(retry.max_attempts.get() + 1), ..retry.clone() };
        prop_assert!(!fits(&longer) || retry == Retry::WEBHOOK, "no attempt is lost");
    }

    /// A repetition that the weaker of two guarantees allows is allowed by each of them.
    #[test]
    fn weaker_guarantee_allows_only_what_both_allow(
        one in guarantees(),
        other in guarantees(),
        doubt in proptest::option::of(0_i64..100),
        effect in prop_oneof![Just(Effect::NotDone), Just(Effect::Unknown)],
    ) {
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        let may = |guarantee: Guarantee| may_repeat(guarantee.safety(doubt.map(at), at(100)), effect).is_ok();
        prop_assert_eq!(may(one.weaker(other)), may(one) && may(other));
    }

    #[test]
    fn a_wait_is_never_below_the_hint_nor_above_cap_plus_jitter(
        retry in retries(),
        failure in 1_u32..=u32::MAX,
        dice in 0.0..1.0,
        hint in proptest::option::of((0_u64..10_000_000).prop_map(Duration::from_millis)),
    ) {
        let retry = retry.checked().unwrap();
        let wait = retry.wait(nth(failure), dice, hint);
        prop_assert!(hint.unwrap_or_default() <= wait);
        let share = match retry.jitter {
            Jitter::None => 0.0,
            Jitter::Add(share) | Jitter::PlusMinus(share) => share,
            Jitter::Full => 0.5,
        };
        let most = cap(&retry).max(hint.unwrap_or_default()).as_secs_f64() * (1.0 + share) + 1e-6;
        prop_assert!(wait.as_secs_f64() <= most, "{wait:?} over {most}");
    }

    #[test]
    fn attempts_never_outlast_the_horizon(
        retry in retries(),
        runs in proptest::collection::vec((0.0..1.0, 0_u64..100_000, 0_u64..10_000_000), 20),
    ) {
        let max_call = Duration::from_secs(100);
        let max_hint = Duration::from_secs(10_000);
        let mut passed = Duration::ZERO;
        for (failure, (dice, call, hint)) in (1..).zip(runs) {
            passed += Duration::from_millis(call);
            if !retry.has_attempts_left(failure) {
                break;
            }
            passed += retry.wait(nth(failure), dice, Some(Duration::from_millis(hint)));
        }
        prop_assert!(passed <= retry.horizon(max_call, max_hint));
    }

    #[test]
    fn waiting_never_panics_whatever_the_numbers(
        share in any::<f64>(),
        dice in any::<f64>(),
        failure in 1_u32..=u32::MAX,
        secs in any::<u64>(),
    ) {
        let base = Duration::from_secs(secs);
        for jitter in [Jitter::Add(share), Jitter::PlusMinus(share), Jitter::Full] {
            let schedule = Schedule::Exponential { base, factor: u32::MAX, cap: Duration::MAX };
            let retry = Retry { schedule, jitter, max_attempts: nth(3) };
            let _ = retry.wait(nth(failure), dice, Some(base));
            let _ = retry.horizon(base, base);
        }
    }
}
