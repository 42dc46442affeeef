//! Each rule finds what its page says, and nothing in the page's corrected example.

use ichido_boundary::{BoundaryRule, Example, rule, rules};

use super::set::Set;

/// The files of a rule's example, before anything is changed.
fn given(example: &Example) -> Set {
    example.without.iter().fold(Set::starting(), |set, file| set.with(file, "", "null"))
}

fn example(rule: &BoundaryRule) -> Example {
    rule.example().unwrap_or_else(|| panic!("the page of {} has an example", rule.id))
}

fn failing(rule: &BoundaryRule) -> Set {
    let example @ Example { file, pointer, failing, .. } = example(rule);
    given(&example).with(file, pointer, failing)
}

#[test]
fn starting_set_satisfies_every_rule() {
    let findings = Set::starting().findings();
    assert_eq!(findings, [], "{findings:#?}");
}

#[test]
fn each_failing_example_breaks_only_its_rule() {
    for rule in rules() {
        assert_eq!(failing(rule).broken(), [rule.id], "{:#?}", failing(rule).findings());
    }
}

#[test]
fn each_fixed_example_satisfies_every_rule() {
    for rule in rules() {
        let example @ Example { file, pointer, fixed, .. } = example(rule);
        let findings = given(&example).with(file, pointer, fixed).findings();
        assert_eq!(findings, [], "{}: {findings:#?}", rule.id);
    }
}

#[test]
fn rules_are_listed_in_the_order_of_their_ids() {
    let ids: Vec<&str> = rules().map(|rule| rule.id).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    let mut once = ids.clone();
    once.dedup();
    assert_eq!(once, ids, "an id belongs to one rule");
    assert!(ids.iter().all(|id| id.strip_prefix("ICH-B").is_some_and(|number| number.len() == 3)), "{ids:?}");
    assert_eq!(rule("ich-b020").map(|rule| rule.id), Some("ICH-B020"));
    assert!(rule("ICH-B999").is_none());
}

#[test]
fn each_rule_has_title_reason_and_help() {
    for rule in rules() {
        let (id, title) = (rule.id, rule.title);
        assert!(!title.ends_with('.') && title.len() < 100, "{id}: {title}");
        assert!(rule.why.ends_with('.') && rule.help.ends_with('.'), "{id}");
    }
}
