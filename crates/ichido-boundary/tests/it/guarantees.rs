//! No guarantee of the starting set can be removed unnoticed.

mod harmless;
mod table;

use ichido_boundary::{Finding, Schema, rule};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::dialect;
use super::set::Set;
use harmless::HARMLESS;
use table::{MemberGuard, TABLE};

/// The pattern of the table for a concrete pointer: names that the file chooses become `*`, and an index belongs to its
/// list.
pub(crate) fn pattern(pointer: &str) -> String {
    let mut steps: Vec<&str> = pointer.split('/').collect();
    if let [_, "headers" | "operations", name, ..] = &mut steps[..]
        && !matches!(*name, "pipeline_order" | "drop_hop_by_hop")
    {
        *name = "*";
    }
    // The redaction is read in any form.
    if let [_, "observability", "redaction", ..] = &steps[..] {
        steps.truncate(3);
    }
    if steps.last().is_some_and(|step| step.parse::<usize>().is_ok()) {
        steps.pop();
    }
    steps.join("/")
}

/// The table's entry for the member at a concrete pointer.
#[track_caller]
fn member_guard(pointer: &str) -> &'static MemberGuard {
    let pattern = pattern(pointer);
    let row = TABLE.iter().find(|(member, _)| *member == pattern);
    &row.unwrap_or_else(|| panic!("{pattern} has neither a rule nor a reason to be free")).1
}

/// Every value inside `value`, by its pointer, including list elements.
pub(crate) fn pointers(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((pointer, value)) = open.pop() {
        let inside: Vec<(String, &Value)> = match value {
            Value::Object(members) => {
                members.iter().map(|(name, value)| (format!("{pointer}/{name}"), value)).collect()
            }
            Value::Array(elements) => elements
                .iter()
                .enumerate()
                .map(|(index, value)| (format!("{pointer}/{index}"), value))
                .collect(),
            _ => Vec::new(),
        };
        found.extend(inside.iter().map(|(pointer, _)| pointer.clone()));
        open.extend(inside);
    }
    found.sort();
    found
}

#[test]
fn each_member_has_a_rule_or_a_reason() {
    let members: Vec<String> = dialect::members().into_iter().map(|(member, _)| member).collect();
    let listed: Vec<&str> = TABLE.iter().map(|(member, _)| *member).collect();
    assert_eq!(listed, members);
    for (member, member_guard) in TABLE {
        match member_guard {
            MemberGuard::Rule(id, _) => assert!(rule(id).is_some(), "{member}: there is no {id}"),
            MemberGuard::Free(reason) => assert!(reason.ends_with('.'), "{member}: {reason}"),
        }
    }
}

#[test]
fn each_rule_of_the_table_finds_its_change() {
    for (member, member_guard) in TABLE {
        let MemberGuard::Rule(id, change) = member_guard else { continue };
        assert_eq!(pattern(change.pointer), *member, "the change is about another member");
        let set = match change.to {
            Some(text) => Set::starting().with(change.file, change.pointer, text),
            None => Set::starting().without(change.file, change.pointer),
        };
        assert!(set.broken().contains(id), "{member}: {:?} and not {id}", set.broken());
    }
}

#[test]
fn each_harmless_removal_from_the_starting_set_has_a_reason() {
    let mut unseen = Vec::new();
    for (file, value) in Set::starting().0 {
        for pointer in pointers(&value) {
            if !Set::starting().without(&file, &pointer).findings().is_empty() {
                continue;
            }
            // A list element is identified by its text, not by its index.
            let summary = match value.pointer(&pointer) {
                Some(Value::String(text)) if pointer.ends_with(|end: char| end.is_ascii_digit()) => {
                    format!("{file}{} {text}", pointer.rsplit_once('/').map_or("", |(list, _)| list))
                }
                Some(Value::Number(number)) if pointer.ends_with(|end: char| end.is_ascii_digit()) => {
                    format!("{file}{} {number}", pointer.rsplit_once('/').map_or("", |(list, _)| list))
                }
                _ => format!("{file}{pointer}"),
            };
            unseen.push(summary);
        }
    }
    let listed: Vec<&str> = HARMLESS.iter().flat_map(|(_, removals)| *removals).copied().collect();
    let unlisted: Vec<&String> = unseen.iter().filter(|one| !listed.contains(&one.as_str())).collect();
    assert!(unlisted.is_empty(), "removed without a finding: {unlisted:#?}");
    let seen: Vec<&&str> = listed.iter().filter(|one| !unseen.iter().any(|other| other == **one)).collect();
    assert!(seen.is_empty(), "listed as harmless, and found: {seen:#?}");
    assert_eq!(unseen.len(), listed.len(), "one is listed twice");
}

/// A change of one value.
#[derive(Clone, Copy, Debug)]
enum Twist {
    Remove,
    Widen,
    Retype,
}

/// More of the same: another element, a greater number, the other boolean, another word.
fn widened(value: &Value) -> Value {
    match value {
        Value::Bool(truth) => json!(!truth),
        Value::Number(number) => json!(number.as_u64().unwrap_or(1) * 1_000),
        Value::String(text) => json!(format!("{text}_and_more")),
        Value::Array(elements) if elements.iter().all(Value::is_number) => {
            json!([elements.as_slice(), &[json!(599)]].concat())
        }
        Value::Array(elements) => json!([elements.as_slice(), &[json!("*")]].concat()),
        Value::Object(members) => {
            let mut members = members.clone();
            members.insert("more".to_owned(), json!({}));
            Value::Object(members)
        }
        Value::Null => json!({}),
    }
}

/// A value of another kind.
fn retyped(value: &Value) -> Value {
    match value {
        Value::Object(_) => json!([]),
        Value::Array(_) | Value::Number(_) => json!({}),
        Value::Bool(_) | Value::String(_) | Value::Null => json!([true]),
    }
}

proptest! {
    #[test]
    fn checking_a_random_change_never_panics(
        file in 0_usize..4,
        at in any::<prop::sample::Index>(),
        twist in prop::sample::select(vec![Twist::Remove, Twist::Widen, Twist::Retype]),
        again in any::<prop::sample::Index>(),
    ) {
        let mut set = Set::starting();
        let (file, value) = set.0[file].clone();
        let all = pointers(&value);
        let pointer = at.get(&all);
        let old = value.pointer(pointer).expect("it was found there");
        member_guard(pointer);
        set = match twist {
            Twist::Remove => set.without(&file, pointer),
            Twist::Widen => set.with(&file, pointer, &widened(old).to_string()),
            Twist::Retype => set.with(&file, pointer, &retyped(old).to_string()),
        };
        let findings = set.findings();
        if matches!(twist, Twist::Retype) && !takes_anything(pointer) {
            prop_assert_eq!(findings.len(), 1, "{}: {:?}", pointer, findings);
            // Some members take one text or a list of texts: there the wrong element is named.
            let place = findings[0].place.pointer.as_str();
            let is_there = place == pointer || place.strip_suffix("/0") == Some(pointer.as_str());
            prop_assert!(is_there, "{place} is not {pointer}");
            prop_assert_eq!(findings[0].rule.id, "ICH-B000");
        }
        locations_are_in_their_files(&set, &findings);

        // A second change, anywhere: a broken file must not make a check fail.
        let left: Vec<(String, String)> = set
            .0
            .iter()
            .flat_map(|(file, value)| pointers(value).into_iter().map(|pointer| (file.clone(), pointer)))
            .collect();
        let (file, pointer) = again.get(&left);
        let set = set.without(file, pointer);
        locations_are_in_their_files(&set, &set.findings());
    }
}

/// Whether a value of another kind is as good as the existing one.
fn takes_anything(pointer: &str) -> bool {
    let pattern = pattern(pointer);
    let mut members = dialect::members().into_iter();
    members.any(|(member, schema)| member == pattern && schema == Schema::Any)
}

fn locations_are_in_their_files(set: &Set, findings: &[Finding]) {
    for finding in findings {
        let (_, value) =
            set.0.iter().find(|(file, _)| *file == finding.place.file).expect("a file of the set");
        let lines = serde_json::to_string_pretty(value).expect("a value has a text").lines().count();
        assert!((1..=lines).contains(&finding.place.at.line), "{finding:?}");
    }
}
