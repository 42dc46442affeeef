//! Tests the broker's decisions without a socket.

use std::time::Duration;

use super::*;
use crate::failure_mode::Rates;

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

fn behaviour(deduplicates: bool) -> Behaviour {
    Behaviour {
        deduplicates,
        refuses_old_fences: false,
        latency: Duration::ZERO,
        slow: Duration::ZERO,
        retry_after: Duration::ZERO,
        rates: Rates::default(),
        fault_text: String::new(),
    }
}

fn order_request(key: &str, fence: Option<u64>, body: &str) -> OrderRequest {
    let body = Bytes::copy_from_slice(body.as_bytes());
    OrderRequest { key: key.to_owned(), fence, digest: Digest::of_bytes(&body), body }
}

fn effects(log: &EffectLog, key: &str) -> u64 {
    log.entries.get(key).map_or(0, |entry| entry.effects)
}

#[test]
fn a_key_takes_effect_once_only_if_keys_are_deduplicated() {
    for (deduplicates, expected) in [(true, 1), (false, 3)] {
        let mut log = EffectLog::default();
        for _ in 0..3 {
            log.take(&order_request("k", None, "x"), &behaviour(deduplicates), 0.5, NOW);
        }
        assert_eq!((effects(&log, "k"), log.calls), (expected, 3));
    }
}

#[test]
fn a_repeated_key_returns_the_first_order() {
    let mut log = EffectLog::default();
    let take = |log: &mut EffectLog| log.take(&order_request("k", None, "x"), &behaviour(true), 0.5, NOW);
    let order = RecordedOrder { number: 1, accepted_at: NOW };
    assert_eq!(take(&mut log), OrderOutcome::Taken { order, is_replay: false, fault: None });
    assert_eq!(take(&mut log), OrderOutcome::Taken { order, is_replay: true, fault: None });
    let other = log.take(&order_request("k", None, "y"), &behaviour(true), 0.5, NOW);
    assert_eq!(other, OrderOutcome::Refused(OrderRefusal::KeyReused));
    assert_eq!(effects(&log, "k"), 1);
}

#[test]
fn every_fault_has_its_named_effect_and_is_counted() {
    for (fault, name, meaning) in FailureMode::ALL {
        let rates = Rates::new([(name, Some(1.0))]).expect("it fits");
        let behaviour = Behaviour { rates, ..behaviour(true) };
        let mut log = EffectLog::default();
        let outcome = log.take(&order_request("k", None, "x"), &behaviour, 0.5, NOW);
        assert_eq!(
            meaning.ends_with("without the effect"),
            matches!(outcome, OrderOutcome::Failed(_)),
            "{name}"
        );
        assert_eq!(effects(&log, "k"), u64::from(fault.has_effect()), "{name}");
        assert_eq!(log.faults, BTreeMap::from([(fault, 1)]), "{name}");
        // Whatever the response was, a second call under the key has no second effect.
        log.take(&order_request("k", None, "x"), &behaviour, 0.5, NOW);
        assert_eq!(effects(&log, "k"), u64::from(fault.has_effect()), "{name}");
    }
}

#[test]
fn old_fences_are_refused_if_configured() {
    let refuses = Behaviour { refuses_old_fences: true, ..behaviour(false) };
    let mut log = EffectLog::default();
    for (fence, is_refused) in
        [(Some(7), false), (Some(5), true), (Some(7), false), (None, true), (Some(9), false)]
    {
        let outcome = log.take(&order_request("k", fence, "x"), &refuses, 0.5, NOW);
        assert_eq!(outcome == OrderOutcome::Refused(OrderRefusal::OldFence), is_refused, "{fence:?}");
    }
    assert_eq!((effects(&log, "k"), log.refusals[&OrderRefusal::OldFence]), (3, 2));
    assert_eq!(log.entries["k"].fences, [7, 5, 9]);
    let outcome = log.take(&order_request("k", Some(1), "x"), &behaviour(false), 0.5, NOW);
    assert!(matches!(outcome, OrderOutcome::Taken { .. }), "another broker does not look");
    for fence in 100..200 {
        log.take(&order_request("k", Some(fence), "x"), &refuses, 0.5, NOW);
    }
    assert_eq!((log.entries["k"].fences.len(), log.entries["k"].max_fence), (MAX_FENCES, Some(199)));
}

#[test]
fn a_full_log_refuses_new_keys_and_knows_old_ones() {
    let mut log = EffectLog::default();
    for number in 0..MAX_KEYS {
        log.entries.insert(number.to_string(), KeyEntry::default());
    }
    let outcome = log.take(&order_request("new", None, "x"), &behaviour(true), 0.5, NOW);
    assert_eq!(outcome, OrderOutcome::Refused(OrderRefusal::Full));
    assert!(!log.entries.contains_key("new"));
    let outcome = log.take(&order_request("7", None, "x"), &behaviour(true), 0.5, NOW);
    assert!(matches!(outcome, OrderOutcome::Taken { .. }));
}
