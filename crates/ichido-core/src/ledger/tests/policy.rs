//! Which policies are valid.

use super::*;
use crate::key::{IdempotencyKey, KeyError};

#[test]
fn the_class_sets_the_defaults() {
    for (class, is_kept_a_day) in
        [(Class::Mutate, false), (Class::Irreversible, true), (Class::ExternalEffect, true)]
    {
        let policy = Policy::build(PolicyDraft::new(class)).unwrap();
        assert_eq!(
            (policy.guarantee(), policy.on_unknown()),
            (OperationGuarantee::None, OnUnknown::Hold),
            "{class:?}: unknown is never guessed"
        );
        assert_eq!(policy.ttl(), 72 * HOUR);
        assert_eq!(policy.key_need(), KeyNeed::Required);
        assert_eq!(policy.in_flight_wait(), Duration::from_secs(2));
        let short = Policy::build(PolicyDraft { ttl: Some(HOUR), ..PolicyDraft::new(class) });
        assert_eq!(short.is_err(), is_kept_a_day, "{class:?}");
    }
}

#[test]
fn repeatable_modes_rerun_by_default() {
    for mode in [OperationGuarantee::Transactional, OperationGuarantee::Idempotent, OperationGuarantee::Keyed]
    {
        assert_eq!(policy(mode).on_unknown(), OnUnknown::RunAgain, "{mode:?}");
    }
}

fn faults(draft: PolicyDraft) -> Vec<PolicyError> {
    Policy::build(draft).unwrap_err().to_vec()
}

#[test]
fn missing_key_is_refused_where_required() {
    let key = || Some(IdempotencyKey::parse("k").unwrap());
    let with_need =
        |need| Policy::build(PolicyDraft { key: Some(need), ..PolicyDraft::new(Class::Mutate) }).unwrap();
    assert_eq!(with_need(KeyNeed::Required).require(None), Err(KeyError::Missing));
    assert_eq!(with_need(KeyNeed::Required).require(key()), Ok(key()));
    assert_eq!(with_need(KeyNeed::Optional).require(None), Ok(None));
    assert_eq!(with_need(KeyNeed::Optional).require(key()), Ok(key()));
}

#[test]
fn reads_are_not_deduplicated() {
    assert_eq!(faults(PolicyDraft::new(Class::Read)), [PolicyError::ReadIsNotDeduplicated]);
}

#[test]
fn effect_keys_live_24_hours_unless_a_reason_is_given() {
    for class in [Class::Irreversible, Class::ExternalEffect] {
        let short = PolicyDraft { ttl: Some(23 * HOUR), ..PolicyDraft::new(class) };
        assert_eq!(faults(short.clone()), [PolicyError::TtlTooShort { ttl: 23 * HOUR }]);
        let blank = PolicyDraft { short_ttl_reason: Some("  ".into()), ..short.clone() };
        assert_eq!(faults(blank), [PolicyError::TtlTooShort { ttl: 23 * HOUR }]);
        let reasoned = PolicyDraft { short_ttl_reason: Some("the broker forgets at noon".into()), ..short };
        assert!(Policy::build(reasoned).is_ok());
        assert!(Policy::build(PolicyDraft { ttl: Some(24 * HOUR), ..PolicyDraft::new(class) }).is_ok());
    }
    assert!(Policy::build(PolicyDraft { ttl: Some(HOUR), ..PolicyDraft::new(Class::Mutate) }).is_ok());
}

#[test]
fn opaque_operation_cannot_be_set_to_rerun() {
    let draft =
        PolicyDraft { on_unknown: Some(OnUnknown::RunAgain), ..PolicyDraft::new(Class::ExternalEffect) };
    assert_eq!(faults(draft.clone()), [PolicyError::NoGuaranteeRunsAgain]);
    assert!(Policy::build(PolicyDraft { guarantee: Some(OperationGuarantee::Keyed), ..draft }).is_ok());
}

#[test]
fn key_outlives_every_retry() {
    let draft = PolicyDraft {
        ttl: Some(48 * HOUR),
        dedupe_window: Some(HOUR),
        retry_horizon: Some(49 * HOUR),
        ..PolicyDraft::new(Class::Mutate)
    };
    let shorter = |what, window| PolicyError::ShorterThanRetries { what, window, horizon: 49 * HOUR };
    assert_eq!(faults(draft.clone()), [shorter("ttl", 48 * HOUR), shorter("dedupe_window", HOUR)]);
    assert!(Policy::build(PolicyDraft { retry_horizon: Some(HOUR), ..draft }).is_ok());
}

#[test]
fn default_horizon_is_the_client_schedule() {
    // 3 calls of 30 s, and 2 waits of 10 minutes and a tenth.
    let horizon = Duration::from_secs(3 * 30 + 2 * 660);
    let with_ttl = |ttl| PolicyDraft { ttl: Some(ttl), ..PolicyDraft::new(Class::Mutate) };
    assert!(Policy::build(with_ttl(horizon)).is_ok());
    let window = Duration::from_secs(3 * 30 + 2 * 660 - 1);
    assert_eq!(faults(with_ttl(window)), [PolicyError::ShorterThanRetries { what: "ttl", window, horizon }]);
    let nobody = PolicyDraft { retry_horizon: Some(Duration::ZERO), ..with_ttl(window) };
    assert!(Policy::build(nobody).is_ok());
}

#[test]
fn a_transactional_operation_is_never_unknown() {
    let with = |mode, on_unknown| PolicyDraft {
        guarantee: Some(mode),
        on_unknown: Some(on_unknown),
        ..PolicyDraft::new(Class::Mutate)
    };
    for on_unknown in [OnUnknown::Hold, OnUnknown::Reconcile] {
        let draft = with(OperationGuarantee::Transactional, on_unknown);
        assert_eq!(faults(draft), [PolicyError::TransactionalIsNeverUnknown], "{on_unknown:?}");
        assert!(Policy::build(with(OperationGuarantee::Keyed, on_unknown)).is_ok());
    }
    assert!(Policy::build(with(OperationGuarantee::Transactional, OnUnknown::RunAgain)).is_ok());
}

#[test]
fn upstream_window_below_the_lease_is_not_keyed() {
    let lease = Duration::from_mins(1);
    let with = |mode, keeps_for| PolicyDraft {
        guarantee: Some(mode),
        lease: Some(lease),
        keeps_keys_for: Some(keeps_for),
        ..PolicyDraft::new(Class::ExternalEffect)
    };
    for keeps_for in [Duration::ZERO, Duration::from_secs(59)] {
        let expected = [PolicyError::UpstreamForgetsTooSoon { keeps_for, lease }];
        assert_eq!(faults(with(OperationGuarantee::Keyed, keeps_for)), expected);
        assert!(Policy::build(with(OperationGuarantee::None, keeps_for)).is_ok(), "it is not asked");
    }
    assert!(Policy::build(with(OperationGuarantee::Keyed, lease)).is_ok());
}

#[test]
fn numbers_out_of_bounds_are_all_reported_at_once() {
    let draft = PolicyDraft {
        ttl: Some(Duration::ZERO),
        in_flight_wait: Some(Duration::from_secs(61)),
        lease: Some(Duration::from_millis(999)),
        settle_grace: Some(169 * HOUR),
        retry_horizon: Some(Duration::ZERO),
        ..PolicyDraft::new(Class::Mutate)
    };
    let expected = [
        PolicyError::TtlOutOfRange { ttl: Duration::ZERO },
        PolicyError::InFlightWaitTooLong { wait: Duration::from_secs(61) },
        PolicyError::LeaseOutOfRange { lease: Duration::from_millis(999) },
        PolicyError::SettleGraceOutOfRange { settle_grace: 169 * HOUR },
    ];
    assert_eq!(faults(draft.clone()), expected);
    assert_eq!(faults(PolicyDraft { ttl: Some(Duration::MAX), ..draft.clone() }).len(), 4);
    assert_eq!(faults(PolicyDraft { settle_grace: Some(Duration::ZERO), ..draft }).len(), 4);
}

#[test]
fn errors_are_one_per_line_with_values() {
    let draft = PolicyDraft {
        lease: Some(Duration::from_millis(500)),
        in_flight_wait: Some(Duration::from_millis(60_500)),
        ..PolicyDraft::new(Class::Mutate)
    };
    let errors = Policy::build(draft).unwrap_err();
    assert_eq!(errors.len(), 2);
    assert_eq!(
        errors.to_string(),
        "a duplicate may wait at most 60s for the first request's outcome, but in_flight_wait is 60.5s\n\
         the lease must be between 1s and 3600s, but is 500ms"
    );
    let early = ResolveError::TooEarly { from: Timestamp::from_secs(1_800_000_000) };
    assert!(early.to_string().ends_with("only from 2027-01-15T08:00:00Z"), "{early}");
}

#[test]
fn profiles_differ_in_their_numbers() {
    let numbers = |profile: Profile| {
        let numbers = profile.numbers();
        (numbers.mismatch_status, numbers.in_flight_status, numbers.in_flight_wait.as_secs())
    };
    assert_eq!(numbers(Profile::Ichido), (409, 202, 2));
    assert_eq!(numbers(Profile::Ietf), (422, 409, 0));
    assert_eq!(numbers(Profile::Stripe), (400, 409, 0));
    assert_eq!(numbers(Profile::Acp), (422, 409, 0));
    for profile in Profile::ALL {
        let numbers = profile.numbers();
        assert_eq!((numbers.unknown_status, numbers.not_kept_status), (409, 409), "{profile:?}");
    }
}
