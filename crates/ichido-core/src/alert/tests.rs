use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::measure::{Took, share, slot, surge};
use super::*;
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

fn reading(value: f64, samples: u64) -> Reading {
    Reading { value, samples }
}

fn took(each: &[Duration]) -> Took {
    let mut took = Took::default();
    for each in each {
        *took.slots.entry(slot(*each)).or_default() += 1;
        took.micros += u64::try_from(each.as_micros()).unwrap();
    }
    took
}

#[test]
fn too_few_samples_never_fire() {
    let terms = Rule::FailedRetries.terms();
    assert_eq!(judge(terms, Standing::Quiet, reading(1.0, 19), NOW), Step::Stay);
    assert_eq!(judge(terms, Standing::Quiet, reading(1.0, 20), NOW), Step::Open);
}

#[test]
fn value_equal_to_threshold_does_not_fire() {
    for rule in Rule::ALL {
        let terms = rule.terms();
        let at = reading(terms.above, u64::MAX);
        assert_eq!(judge(terms, Standing::Quiet, at, NOW), Step::Stay, "{rule:?}");
        let above = reading(terms.above + 0.01, u64::MAX);
        assert_eq!(judge(terms, Standing::Quiet, above, NOW), Step::Open, "{rule:?}");
    }
}

/// A measure that hovers around the threshold is one incident: it is clear only below it by a margin, for a while.
#[test]
fn an_incident_ends_only_after_it_stayed_clear_for_a_while() {
    let terms = Rule::Duplicates.terms();
    let firing = Standing::Firing { clear_since: None };
    assert_eq!(judge(terms, firing, reading(0.5, 200), NOW), Step::Stay, "at the bound");
    assert_eq!(judge(terms, firing, reading(0.46, 200), NOW), Step::Stay, "within the margin");
    assert_eq!(judge(terms, firing, reading(0.45, 200), NOW), Step::Clear);
    assert_eq!(
        judge(terms, firing, reading(0.9, 99), NOW),
        Step::Clear,
        "what happened is out of the window"
    );
    let clear = Standing::Firing { clear_since: Some(NOW) };
    let before = NOW.plus(CLEAR_FOR.saturating_sub(Duration::from_micros(1)));
    assert_eq!(judge(terms, clear, reading(0.1, 200), before), Step::Stay);
    assert_eq!(judge(terms, clear, reading(0.1, 200), NOW.plus(CLEAR_FOR)), Step::Resolve);
    assert_eq!(judge(terms, clear, reading(0.48, 200), NOW.plus(CLEAR_FOR)), Step::Relapse);
}

#[test]
fn queue_terms_default_to_the_common_ones() {
    let mut rules = Rules::default();
    let (orders, mail) = (About::Queue("orders".to_owned()), About::Queue("mail".to_owned()));
    assert_eq!(rules.terms(Rule::DeadLetters, &orders), Some(Rule::DeadLetters.terms()));
    let hours = Duration::from_hours(2);
    let change = RuleChange::On(TermsChange { above: Some(20.0), ..TermsChange::default() });
    rules.change(Rule::DeadLetters, change);
    let own = RuleChange::On(TermsChange { window: Some(hours), least: Some(3), above: None });
    rules.change_for(Rule::DeadLetters, "orders", own);
    let expected = Terms { window: Some(hours), least: 3, above: 20.0 };
    assert_eq!(rules.terms(Rule::DeadLetters, &orders), Some(expected));
    let expected = Terms { above: 20.0, ..Rule::DeadLetters.terms() };
    assert_eq!(rules.terms(Rule::DeadLetters, &mail), Some(expected));
    assert_eq!(rules.windows(Rule::DeadLetters), [Duration::from_hours(1), hours]);
    assert_eq!(rules.windows(Rule::Parked), []);
}

#[test]
fn rule_can_be_switched_per_queue_or_for_all() {
    let queue = |name: &str| About::Queue(name.to_owned());
    let (rule, least) =
        (Rule::DeadLetters, RuleChange::On(TermsChange { least: Some(3), ..TermsChange::default() }));
    let mut rules = Rules::default();
    rules.change_for(rule, "mail", RuleChange::Off);
    assert_eq!(rules.terms(rule, &queue("mail")), None);
    assert_eq!(rules.terms(rule, &queue("orders")), Some(rule.terms()));
    rules.change(rule, RuleChange::Off);
    rules.change_for(rule, "orders", least);
    assert_eq!((rules.common(rule), rules.terms(rule, &queue("other"))), (None, None));
    assert_eq!(rules.terms(rule, &queue("orders")), Some(Terms { least: 3, ..rule.terms() }));
    assert_eq!(rules.windows(rule), [Duration::from_hours(1)], "one queue still looks back");
    rules.change_for(rule, "orders", RuleChange::Off);
    assert_eq!(rules.windows(rule), [], "nobody looks");
    rules.change(Rule::CircuitOpen, RuleChange::Off);
    assert_eq!(rules.terms(Rule::CircuitOpen, &About::Destination("broker".to_owned())), None);
}

#[test]
fn subject_names_parse_back() {
    for rule in Rule::ALL {
        assert_eq!(Rule::parse(rule.as_str()), Some(rule));
    }
    assert_eq!(Rule::parse("nothing"), None);
    for about in [
        About::Queue("mail.eu:1".to_owned()),
        About::Operation("POST /orders of all".to_owned()),
        About::Destination("a broker".to_owned()),
        About::Trail,
    ] {
        assert_eq!(About::parse(&about.to_string()), Some(about));
    }
    for text in ["", "queue", "queue ", "letters orders"] {
        assert_eq!(About::parse(text), None, "{text:?}");
    }
}

#[test]
fn no_data_gives_no_reading() {
    assert_eq!(Took::default().mean(), Reading::NOTHING);
    assert_eq!(Took::default().p95(), Reading::NOTHING);
    assert_eq!(share(0, 0), Reading::NOTHING);
    assert_eq!(surge(0, 1_000), Reading::NOTHING);
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
fn one_slow_message_in_a_hundred_is_not_p95() {
    let mut all = vec![Duration::from_secs(1); 99];
    all.push(Duration::from_hours(1));
    assert!(took(&all).p95().value < 1.3);
}

#[test]
fn every_alert_text_names_the_measured_value() {
    let about = About::Queue("orders".to_owned());
    for rule in Rule::ALL {
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
    let text = words::opened(Rule::FailedRetries, &about, Rule::FailedRetries.terms(), reading(0.0625, 160));
    assert_eq!(text, "queue orders: 6.2 % of 160 retries within 15m failed, more than 5 %");
}

proptest! {
    #[test]
    fn a_slot_is_within_a_quarter_of_the_duration(millis in 0_u64..100_000_000_000, count in 1_u64..1_000) {
        let took = Took { slots: BTreeMap::from([(slot(Duration::from_millis(millis)), count)]), micros: 0 };
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
