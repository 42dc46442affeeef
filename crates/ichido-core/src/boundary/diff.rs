//! Two versions of the files: which changes loosen a guarantee.
//!
//! A change loosens when a rule finds more than before, or when it takes from what was promised although every rule
//! still holds: a status more to retry after, a shorter time that outcomes are kept, a header that no longer passes.

mod adapter;
mod headers;
mod hop;
mod owner;

use super::read::Boundary;
use super::rules::{Finding, check, rule};

/// Takes the changes of one file, from its old to its new version.
type Compare = fn(&Boundary, &Boundary) -> Vec<Loose>;

const COMPARISONS: [Compare; 4] = [hop::compare, headers::compare, owner::compare, adapter::compare];

/// A change that loosens, before its place is looked up in the new file.
struct Loose {
    rule: &'static str,
    pointer: String,
    what: String,
}

fn loose(rule: &'static str, pointer: impl Into<String>, what: impl Into<String>) -> Loose {
    Loose { rule, pointer: pointer.into(), what: what.into() }
}

/// The changes from `old` to `new` that loosen a guarantee, each with the rule that it concerns.
///
/// Files are paired by their boundary, and by their folder's name where there are several of one boundary.
pub fn loosened(old: &[Boundary], new: &[Boundary]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for before in old {
        match counterpart(before, old, new) {
            Some(after) => findings.extend(compare(before, after)),
            None => findings.extend(finding(before, &loose("ICH-B075", "/boundary", "the file is gone"))),
        }
    }
    findings.extend(newly_found(old, new, &findings));
    findings.sort_by(|a, b| (&a.place, a.rule.id, &a.what).cmp(&(&b.place, b.rule.id, &b.what)));
    findings
}

fn compare(before: &Boundary, after: &Boundary) -> Vec<Finding> {
    let changes = COMPARISONS.iter().flat_map(|compare| compare(before, after));
    changes.filter_map(|change| finding(after, &change)).collect()
}

fn finding(file: &Boundary, change: &Loose) -> Option<Finding> {
    Some(Finding::new(rule(change.rule)?, file.place(&change.pointer), &change.what))
}

/// The file of `new` that `before` has become.
fn counterpart<'a>(before: &Boundary, old: &[Boundary], new: &'a [Boundary]) -> Option<&'a Boundary> {
    let is_alone = |files: &[Boundary]| files.iter().filter(|file| file.name() == before.name()).count() == 1;
    let mut same = new.iter().filter(|file| file.name() == before.name());
    if is_alone(old) && is_alone(new) {
        return same.next();
    }
    same.find(|file| folder_name(file) == folder_name(before))
}

fn folder_name(file: &Boundary) -> &str {
    let mut steps = file.file().rsplit(['/', '\\']).skip(1);
    steps.next().unwrap_or_default()
}

/// What is found in `new` and was not in `old`, but for what `known` says already.
fn newly_found(old: &[Boundary], new: &[Boundary], known: &[Finding]) -> Vec<Finding> {
    let name = |files: &[Boundary], finding: &Finding| {
        files.iter().find(|file| file.file() == finding.place.file).map(Boundary::name)
    };
    // A list that grew moves what comes after, so that pointers say less than words.
    let was_there: Vec<_> =
        check(old).into_iter().map(|finding| (finding.rule.id, name(old, &finding), finding.what)).collect();
    let is_known = |finding: &Finding| {
        known.iter().any(|other| (other.rule.id, &other.place.file) == (finding.rule.id, &finding.place.file))
    };
    check(new)
        .into_iter()
        .filter(|finding| !was_there.contains(&(finding.rule.id, name(new, finding), finding.what.clone())))
        .filter(|finding| !is_known(finding))
        .collect()
}

/// The entries of `before` that are not in `after`.
fn lost<'a, T: PartialEq>(before: &'a [T], after: &'a [T]) -> impl Iterator<Item = &'a T> {
    before.iter().filter(|entry| !after.contains(entry))
}

fn list<T>(list: Option<&Vec<T>>) -> &[T] {
    list.map_or(&[], Vec::as_slice)
}
