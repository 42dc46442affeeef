use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::measure::{Durations, share, slot, surge};
use super::*;
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

fn reading(value: f64, samples: u64) -> Measurement {
    Measurement { value, samples }
}

fn took(each: &[Duration]) -> Durations {
    let mut took = Durations::default();
    for each in each {
        *took.slots.entry(slot(*each)).or_default() += 1;
        took.micros += u64::try_from(each.as_micros()).unwrap();
    }
    took
}

#[test]
fn too_few_samples_never_fire() {
    let terms = AlertRule::FailedRetries.terms();
    assert_eq!(judge(terms, AlertStatus::Quiet, reading(1.0, 19), NOW), AlertStep::Stay);
    assert_eq!(judge(terms, AlertStatus::Quiet, reading(1.0, 20), NOW), AlertStep::Open);
}

#[test]
fn value_equal_to_threshold_does_not_fire() {
    for rule in AlertRule::ALL {
        let terms = rule.terms();
        let at = reading(terms.above, u64::MAX);
        assert_eq!(judge(terms, AlertStatus::Quiet, at, NOW), AlertStep::Stay, "{rule:?}");
        let above = reading(terms.above + 0.01, u64::MAX);
        assert_eq!(judge(terms, AlertStatus::Quiet, above, NOW), AlertStep::Open, "{rule:?}");
    }
}

/// A measure that hovers around the threshold is one incident: it is clear only below it by a margin, for a while.
#[test]
fn an_incident_ends_only_after_it_stayed_clear_for_a_while() {
    let terms = AlertRule::Duplicates.terms();
    let firing = AlertStatus::Firing { clear_since: None };
    assert_eq!(judge(terms, firing, reading(0.5, 200), NOW), AlertStep::Stay, "at the bound");
    assert_eq!(judge(terms, firing, reading(0.46, 200), NOW), AlertStep::Stay, "within the margin");
    assert_eq!(judge(terms, firing, reading(0.45, 200), NOW), AlertStep::Clear);
    assert_eq!(
        judge(terms, firing, reading(0.9, 99), NOW),
        AlertStep::Clear,
        "what happened is out of the window"
    );
    let clear = AlertStatus::Firing { clear_since: Some(NOW) };
    let before = NOW.plus(CLEAR_FOR.saturating_sub(Duration::from_micros(1)));
    assert_eq!(judge(terms, clear, reading(0.1, 200), before), AlertStep::Stay);
    assert_eq!(judge(terms, clear, reading(0.1, 200), NOW.plus(CLEAR_FOR)), AlertStep::Resolve);
    assert_eq!(judge(terms, clear, reading(0.48, 200), NOW.plus(CLEAR_FOR)), AlertStep::Relapse);
}

#[test]
fn queue_terms_default_to_the_common_ones() {
    let mut rules = AlertRules::default();
    let (orders, mail) = (AlertSubject::Queue("orders".to_owned()), AlertSubject::Queue("mail".to_owned()));
    assert_eq!(rules.terms(AlertRule::DeadLetters, &orders), Some(AlertRule::DeadLetters.terms()));
    let hours = Duration::from_hours(2);
    let change = RuleChange::On(TermsChange { above: Some(20.0), ..TermsChange::default() });
    rules.change(AlertRule::DeadLetters, change);
    let own = RuleChange::On(TermsChange { window: Some(hours), min_samples: Some(3), above: None });
    rules.change_for(AlertRule::DeadLetters, "orders", own);
    let expected = AlertTerms { window: Some(hours), min_samples: 3, above: 20.0 };
    assert_eq!(rules.terms(AlertRule::DeadLetters, &orders), Some(expected));
    let expected = AlertTerms { above: 20.0, ..AlertRule::DeadLetters.terms() };
    assert_eq!(rules.terms(AlertRule::DeadLetters, &mail), Some(expected));
    assert_eq!(rules.windows(AlertRule::DeadLetters), [Duration::from_hours(1), hours]);
    assert_eq!(rules.windows(AlertRule::Parked), []);
}

#[test]
fn rule_can_be_switched_per_queue_or_for_all() {
    let queue = |name: &str| AlertSubject::Queue(name.to_owned());
    let (rule, least) = (
        AlertRule::DeadLetters,
        RuleChange::On(TermsChange { min_samples: Some(3), ..TermsChange::default() }),
    );
    let mut rules = AlertRules::default();
    rules.change_for(rule, "mail", RuleChange::Off);
    assert_eq!(rules.terms(rule, &queue("mail")), None);
    assert_eq!(rules.terms(rule, &queue("orders")), Some(rule.terms()));
    rules.change(rule, RuleChange::Off);
    rules.change_for(rule, "orders", least);
    assert_eq!((rules.common(rule), rules.terms(rule, &queue("other"))), (None, None));
    assert_eq!(rules.terms(rule, &queue("orders")), Some(AlertTerms { min_samples: 3, ..rule.terms() }));
    assert_eq!(rules.windows(rule), [Duration::from_hours(1)], "one queue still looks back");
    rules.change_for(rule, "orders", RuleChange::Off);
    assert_eq!(rules.windows(rule), [], "nobody looks");
    rules.change(AlertRule::CircuitOpen, RuleChange::Off);
    assert_eq!(rules.terms(AlertRule::CircuitOpen, &AlertSubject::Destination("broker".to_owned())), None);
}

#[test]
fn subject_names_parse_back() {
    for rule in AlertRule::ALL {
        assert_eq!(AlertRule::parse(rule.as_str()), Some(rule));
    }
    assert_eq!(AlertRule::parse("nothing"), None);
    for about in [
        AlertSubject::Queue("mail.eu:1".to_owned()),
        AlertSubject::Operation("POST /orders of all".to_owned()),
        AlertSubject::Destination("a broker".to_owned()),
        AlertSubject::Trail,
    ] {
        assert_eq!(AlertSubject::parse(&about.to_string()), Some(about));
    }
    for text in ["", "queue", "queue ", "letters orders"] {
        assert_eq!(AlertSubject::parse(text), None, "{text:?}");
    }
}

#[test]
fn no_data_gives_no_reading() {
    assert_eq!(Durations::default().mean(), Measurement::NOTHING);
    assert_eq!(Durations::default().p95(), Measurement::NOTHING);
    assert_eq!(share(0, 0), Measurement::NOTHING);
    assert_eq!(surge(0, 1_000), Measurement::NOTHING);
}

#[test]
fn a_surge_is_measured_by_the_windows_before() {
    // Two a window is usual.
    assert_eq!(surge(12, 24), reading(6.0, 12));
    // Nothing is usual: the first few alone are not a surge.
    assert_eq!(surge(4, 0), reading(4.0, 4));
    assert_eq!(share(3, 4), reading(0.75, 4));
}

#[test]
fn mean_is_exact_and_p95_is_found() {
    let mut all = vec![Duration::from_secs(1); 18];
    all.extend([Duration::from_mins(10); 2]);
    let took = took(&all);
    assert_eq!(took.mean(), reading(60.9, 20));
    let p95 = took.p95();
    assert!((480.0..=750.0).contains(&p95.value) && p95.samples == 20, "{p95:?}");
}

#[test]
fn percentiles_are_those_of_all_merged_durations() {
    let each: Vec<Duration> = (1..=1_000).map(Duration::from_millis).collect();
    let (fast, slow) = each.split_at(300);
    let mut merged = took(fast);
    merged.merge(&took(slow));
    assert_eq!(merged, took(&each));
    for (percent, exact) in [(50, 0.5), (95, 0.95), (99, 0.99), (100, 1.0)] {
        let found = merged.percentile(percent);
        assert!((exact * 0.8..=exact * 1.26).contains(&found.value) && found.samples == 1_000, "{found:?}");
    }
    assert_eq!(Durations::default().percentile(50), Measurement::NOTHING);
}

#[test]
fn one_slow_message_in_a_hundred_is_not_p95() {
    let mut all = vec![Duration::from_secs(1); 99];
    all.push(Duration::from_hours(1));
    assert!(took(&all).p95().value < 1.3);
}

#[test]
fn every_alert_text_names_the_measured_value() {
    let about = AlertSubject::Queue("orders".to_owned());
    for rule in AlertRule::ALL {
        let text = words::opened(rule, &about, rule.terms(), reading(1_234.0, 56));
        assert!(text.starts_with("queue orders: "), "{text}");
        let over = words::resolved(rule, &about, Duration::from_secs(3_725));
        assert!(over.starts_with("queue orders: resolved after 1h 2m 5s: "), "{over}");
        let off = words::switched_off(rule, &about, Duration::from_secs(3_725));
        assert!(
            off.starts_with("queue orders: closed after 1h 2m 5s: ") && off.contains(rule.as_str()),
            "{off}"
        );
    }
    let text = words::opened(
        AlertRule::FailedRetries,
        &about,
        AlertRule::FailedRetries.terms(),
        reading(0.0625, 160),
    );
    assert_eq!(text, "queue orders: 6.2 % of 160 retries within 15m failed (limit: 5 %)");
}

proptest! {
    #[test]
    fn a_slot_is_within_a_quarter_of_the_duration(millis in 0_u64..100_000_000_000, count in 1_u64..1_000) {
        let took = Durations { slots: BTreeMap::from([(slot(Duration::from_millis(millis)), count)]), micros: 0 };
        #[expect(clippy::cast_precision_loss, reason = "exact for so few")]
        let exact = millis as f64 / 1e3;
        let p95 = took.p95().value;
        prop_assert!(exact * 0.79 <= p95 && p95 <= (exact + 0.001) * 1.26, "{exact} {p95}");
    }

    #[test]
    fn slots_are_in_the_order_of_durations(a in any::<u64>(), b in any::<u64>()) {
        let (less, more) = (a.min(b), a.max(b));
        prop_assert!(slot(Duration::from_millis(less)) <= slot(Duration::from_millis(more)));
    }
}
