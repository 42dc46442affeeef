use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Fri, 15 Jan 2027 08:00:00 GMT.
const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

fn at(millis: u64) -> Timestamp {
    NOW.plus(Duration::from_millis(millis))
}

const fn counter(limit: u64, remaining: u64, reset: Timestamp) -> LimitCounter {
    LimitCounter { limit, remaining, reset }
}

fn requests(limit: &str, remaining: &str, reset: &str) -> Option<LimitCounter> {
    let headers = [
        ("X-RateLimit-Limit-Requests", limit),
        ("X-RateLimit-Remaining-Requests", remaining),
        ("X-RateLimit-Reset-Requests", reset),
    ];
    Limits::read(headers, NOW).requests
}

#[test]
fn openais_counters_are_read_with_their_durations() {
    for (reset, millis) in [
        ("12ms", 12),
        ("1s", 1_000),
        ("6m0s", 360_000),
        ("1h2m3.5s", 3_723_500),
        ("2d", 172_800_000),
        ("59.7s", 59_700),
        ("3", 3_000),
        ("0.25", 250),
        (" 1s ", 1_000),
    ] {
        assert_eq!(requests("60", "59", reset), Some(counter(60, 59, at(millis))), "{reset}");
    }
    let long = requests("60", "59", "999999999h");
    assert_eq!(long, Some(counter(60, 59, NOW.plus(MAX_WAIT))));
}

#[test]
fn invalid_limits_are_ignored() {
    for (limit, remaining, reset) in [
        ("-1", "59", "1s"),
        ("0", "0", "1s"),
        ("many", "59", "1s"),
        ("60", "-1", "1s"),
        ("60", "", "1s"),
        ("60", "59", ""),
        ("60", "59", "soon"),
        ("60", "59", "1x"),
        ("60", "59", "-1s"),
        ("60", "59", "1s2"),
        ("60", "59", "."),
        ("60", "59", "1.s"),
        ("60", "59", "s"),
        ("60.5", "59", "1s"),
    ] {
        assert_eq!(requests(limit, remaining, reset), None, "{limit} {remaining} {reset}");
    }
    assert_eq!(Limits::read([("x-ratelimit-remaining-requests", "0")], NOW), Limits::default());
    assert_eq!(
        requests("60", "80", "1s"),
        Some(counter(60, 60, at(1_000))),
        "no more is left than there can be"
    );
}

#[test]
fn anthropics_counters_are_read_with_their_moments() {
    let headers = [
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", "2027-01-15T08:00:01Z"),
        ("anthropic-ratelimit-tokens-limit", "48000"),
        ("anthropic-ratelimit-tokens-remaining", "40000"),
        ("anthropic-ratelimit-tokens-reset", "2027-01-15T08:00:10.5Z"),
        ("anthropic-ratelimit-input-tokens-limit", "40000"),
        ("anthropic-ratelimit-input-tokens-remaining", "40000"),
        ("anthropic-ratelimit-input-tokens-reset", "2027-01-15T08:00:00Z"),
        ("anthropic-ratelimit-output-tokens-limit", "8000"),
        ("anthropic-ratelimit-output-tokens-remaining", "0"),
        ("anthropic-ratelimit-output-tokens-reset", "2027-01-15T08:00:30+00:00"),
    ];
    let limits = Limits::read(headers, NOW);
    assert_eq!(limits.requests, Some(counter(50, 49, at(1_000))));
    assert_eq!(limits.tokens, Some(counter(48_000, 40_000, at(10_500))));
    assert_eq!(limits.input_tokens, Some(counter(40_000, 40_000, NOW)));
    assert_eq!(limits.output_tokens, Some(counter(8_000, 0, at(30_000))));
    assert_eq!(limits.spent_until(), Some(at(30_000)));
    let parts = Limits { tokens: None, ..limits };
    assert_eq!(parts.tokens_in_all(), Some(counter(48_000, 40_000, at(30_000))), "the sum of its parts");
}

#[test]
fn the_fields_of_the_draft_are_read_with_their_policies() {
    let read = |headers: &[(&str, &str)]| Limits::read(headers.iter().copied(), NOW);
    let both = read(&[
        ("RateLimit-Policy", r#""burst";q=10;w=1, "day";q=1000;w=86400;qu="requests""#),
        ("RateLimit-Policy", r#""t";q=5000;w=60;qu="tokens", "bytes";q=9;w=1;qu="content-bytes""#),
        ("RateLimit", r#""burst";r=9;t=1, "day";r=3;t=600"#),
        ("RateLimit", r#""t";r=4000;t=12, "bytes";r=0;t=9"#),
    ]);
    assert_eq!(both.requests, Some(counter(1_000, 3, at(600_000))), "the one of which less is left");
    assert_eq!(both.tokens, Some(counter(5_000, 4_000, at(12_000))));
    assert_eq!(both.spent_until(), None, "bytes are none of ours");
    for state in
        [r#""other";r=1;t=1"#, r#""burst";r=-1;t=1"#, r#""burst";r=1"#, "burst", r#"("burst");r=1;t=1"#, "\""]
    {
        let limits = read(&[("RateLimit-Policy", r#""burst";q=10;w=1"#), ("RateLimit", state)]);
        assert_eq!(limits, Limits::default(), "{state}");
    }
    assert_eq!(read(&[("RateLimit", r#""burst";r=0;t=1"#)]), Limits::default(), "of an unknown policy");
}

fn budget_with(requests: Option<LimitCounter>, tokens: Option<LimitCounter>) -> Budget {
    Budget::NEW.update(&Limits { requests, tokens, ..Limits::default() }, NOW)
}

#[test]
fn budget_without_limits_delays_nothing() {
    let mut budget = Budget::NEW;
    for _ in 0..1_000 {
        budget = budget.take(NOW, u64::MAX).expect("nothing is known");
    }
    assert_eq!(budget.update(&Limits::default(), NOW), Budget::NEW);
}

#[test]
fn remaining_budget_is_used_and_refills_at_the_reset() {
    // 7 of 10 were taken, and are back in 70 s: one in 10 s.
    let mut budget = budget_with(Some(counter(10, 3, at(70_000))), None);
    for _ in 0..3 {
        budget = budget.take(NOW, 0).expect("3 are left");
    }
    let next = budget.take(NOW, 0).expect_err("none is left");
    assert!(at(10_000) <= next && next <= at(10_001), "{next}");
    assert!(budget.take(next, 0).is_ok());
    assert!(budget.take(at(9_900), 0).is_err());
}

#[test]
fn tokens_count_as_requests_do() {
    // 500 of 1000 tokens are left, and 500 come back in 5 s.
    let budget = budget_with(Some(counter(10, 10, NOW)), Some(counter(1_000, 500, at(5_000))));
    let budget = budget.take(NOW, 400).expect("enough is left");
    let next = budget.take(NOW, 300).expect_err("100 are left");
    assert!(at(2_000) <= next && next <= at(2_001), "{next}");
}

#[test]
fn oversized_call_waits_for_the_full_limit() {
    let full = budget_with(None, Some(counter(1_000, 1_000, at(1_000))));
    let after = full.take(NOW, 5_000).expect("rather than held for ever");
    assert!(after.take(NOW, 1).is_err(), "all of it is taken then");
    let half = budget_with(None, Some(counter(1_000, 500, at(5_000))));
    let next = half.take(NOW, 5_000).expect_err("half of it is taken");
    assert!(at(5_000) <= next && next <= at(5_001), "{next}");
    assert!(half.take(next, 5_000).is_ok());
}

#[test]
fn response_corrects_the_reservation() {
    let spent = budget_with(Some(counter(10, 0, at(10_000))), None);
    assert!(spent.take(NOW, 0).is_err());
    let limits = Limits { requests: Some(counter(10, 5, at(5_000))), ..Limits::default() };
    let mut budget = spent.update(&limits, NOW);
    for _ in 0..5 {
        budget = budget.take(NOW, 0).expect("5 are left");
    }
    assert!(budget.take(NOW, 0).is_err());
    let only_tokens = Limits { tokens: Some(counter(9, 9, NOW)), ..Limits::default() };
    assert!(budget.update(&only_tokens, NOW).take(NOW, 1).is_err(), "what was not said stays");
}

#[test]
fn one_call_passes_after_a_silent_reset() {
    // A fixed window: 10 of 10,000 were taken, and it ends in a minute. By its refill the next call would be 50 minutes away.
    let window = budget_with(None, Some(counter(10_000, 9_990, at(60_000))));
    let budget = window.take(NOW, 9_990).expect("it is left");
    assert_eq!(budget.take(NOW, 500), Err(at(60_000)));
    let after = budget.take(at(60_000), 500).expect("one, to hear");
    assert_eq!(after.take(at(60_000), 500), Err(at(120_000)), "and not a second");
}

fn counters() -> impl Strategy<Value = Option<LimitCounter>> {
    let number = prop_oneof![1..100_u64, any::<u64>()];
    let known = (number.clone(), number, 0..200_000_000_u64).prop_filter_map(
        "a limit",
        |(limit, remaining, micros)| {
            LimitCounter::new(limit, remaining, NOW.plus(Duration::from_micros(micros)), NOW)
        },
    );
    proptest::option::of(known)
}

proptest! {
    #[test]
    fn reading_never_panics(value in ".{0,40}", draft in "[\"a;rtq=0-9, ]{0,40}", now in any::<i64>()) {
        let now = Timestamp::from_micros(now);
        let read = |headers: &[(&str, &str)]| {
            let limits = Limits::read(headers.iter().copied(), now);
            assert!(limits.spent_until().is_none_or(|moment| moment <= now.plus(MAX_WAIT)));
        };
        for name in ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"] {
            read(&[(name, &value)]);
        }
        let headers = [("x-ratelimit-limit-tokens", "9"), ("x-ratelimit-remaining-tokens", "9"), ("x-ratelimit-reset-tokens", &value)];
        read(&headers);
        read(&[("ratelimit", &draft), ("ratelimit-policy", &draft)]);
    }

    #[test]
    fn delayed_call_passes_at_the_named_time(
        requests in counters(), tokens in counters(), calls in proptest::collection::vec((0..5_000_000_u64, any::<u64>()), 1..20),
    ) {
        let mut budget = budget_with(requests, tokens);
        let mut now = NOW;
        for (micros, tokens) in calls {
            now = now.plus(Duration::from_micros(micros));
            budget = match budget.take(now, tokens) {
                Ok(budget) => budget,
                Err(moment) => {
                    prop_assert!(now < moment, "{now} {moment}");
                    now = moment;
                    budget.take(moment, tokens).expect("let through")
                }
            };
        }
    }

    #[test]
    fn usage_never_exceeds_remaining_plus_refilled(remaining in 0..50_u32, reset_secs in 1..100_u32, waits in proptest::collection::vec(0..3_000_u32, 1..200)) {
        let limit = 50_u32;
        let reset = at(u64::from(reset_secs) * 1_000);
        let mut budget = budget_with(Some(counter(limit.into(), remaining.into(), reset)), None);
        let (mut millis, mut taken) = (0_u32, 0_u32);
        for wait in waits {
            millis += wait;
            if let Ok(after) = budget.take(at(millis.into()), 1) {
                (budget, taken) = (after, taken + 1);
            }
        }
        let (secs, reset) = (f64::from(millis) / 1_000.0, f64::from(reset_secs));
        let came_back = f64::from(limit - remaining) / reset * secs;
        let listened = secs / reset + 1.0;
        prop_assert!(f64::from(taken) <= f64::from(remaining) + came_back + listened + 1e-6);
    }
}
