//! Compares two versions of the files: which changes loosen a guarantee.
//!
//! A change loosens if a rule finds more than before, or if it weakens a guarantee although every rule still holds: one
//! more status to retry after, a shorter time to keep outcomes, a header that no longer passes. Every member of the
//! dialect has a row in the test `loosening`: which change of it loosens, or why none does.

mod adapter;
mod cors;
mod headers;
mod hop;
mod owner;
mod render;
mod retry;

use std::time::Duration;

use super::hop_chain::hop_chains;
use super::read::Boundary;
use super::rules::{Finding, check, rule};
use super::{Enabled, HopChain};

/// Rules whose findings loosen nothing: with fewer attempts, a wait may not be used.
const LOOSENING_NOTHING: [&str; 1] = ["ICH-B025"];

/// Finds the loosening changes of one file, from its old to its new version.
type Compare = fn(&Pair<'_>) -> Vec<Loosening>;

const COMPARISONS: [Compare; 6] =
    [hop::compare, retry::compare, headers::compare, cors::compare, owner::compare, adapter::compare];

/// One file in its two versions.
struct Pair<'a> {
    before: &'a Boundary,
    after: &'a Boundary,
    /// How long outcomes are kept by default, before and after.
    default_ttl: (Option<Duration>, Option<Duration>),
}

/// A loosening change, before its location in the new file is looked up.
struct Loosening {
    rule: &'static str,
    pointer: String,
    what: String,
}

fn loosening(rule: &'static str, pointer: impl Into<String>, what: impl Into<String>) -> Loosening {
    Loosening { rule, pointer: pointer.into(), what: what.into() }
}

/// Returns the changes from `old` to `new` that loosen a guarantee, each with its rule.
///
/// Files are paired by their boundary, and by their folder's name if several files have the same boundary.
pub fn loosened(old: &[Boundary], new: &[Boundary]) -> Vec<Finding> {
    let (old_chains, new_chains) = (hop_chains(old), hop_chains(new));
    let mut findings: Vec<Finding> = Vec::new();
    let mut pairs = Vec::new();
    for before in old {
        match counterpart(before, old, new) {
            Some(after) => {
                pairs.push(Pair {
                    before,
                    after,
                    default_ttl: (default_ttl(before, &old_chains), default_ttl(after, &new_chains)),
                });
            }
            None => {
                findings.extend(finding(before, &loosening("ICH-B075", "/boundary", "the file was removed")));
            }
        }
    }
    findings.extend(pairs.iter().flat_map(compare));
    findings.extend(newly_found(old, new, &pairs, &findings));
    findings.sort_by(|a, b| a.order().cmp(&b.order()));
    findings
}

fn compare(pair: &Pair<'_>) -> Vec<Finding> {
    let changes = COMPARISONS.iter().flat_map(|compare| compare(pair));
    changes.filter_map(|change| finding(pair.after, &change)).collect()
}

fn finding(file: &Boundary, change: &Loosening) -> Option<Finding> {
    let rule = rule(change.rule)?;
    let help = format!("Revert the change, or allow it with a reason: --allow {}=REASON.", rule.id);
    Some(Finding { help, ..Finding::new(rule, file.place(&change.pointer), &change.what) })
}

/// Returns how long this file's hop chain keeps outcomes.
fn default_ttl(file: &Boundary, chains: &[HopChain<'_>]) -> Option<Duration> {
    let chain = chains.iter().find(|chain| chain.files().any(|one| std::ptr::eq(one, file)));
    chain.and_then(HopChain::owner).and_then(|owner| Enabled::ttl(&owner.http.idempotency.enabled))
}

/// Returns the file of `new` that `before` has become.
///
/// It is the only one about its boundary, or the one with its name in a folder of the same name, or the only one there.
fn counterpart<'a>(before: &Boundary, old: &[Boundary], new: &'a [Boundary]) -> Option<&'a Boundary> {
    let is_alike = |file: &&Boundary| file.name() == before.name();
    let is_beside = |file: &&Boundary| is_alike(file) && folder_and_name(file).0 == folder_and_name(before).0;
    let new_one = only(new.iter().filter(is_alike));
    if let (Some(_), Some(one)) = (only(old.iter().filter(is_alike)), new_one) {
        return Some(one);
    }
    let mut beside = new.iter().filter(is_beside);
    beside.find(|file| folder_and_name(file).1 == folder_and_name(before).1).or_else(|| {
        let is_left =
            |file: &&Boundary| !old.iter().any(|other| folder_and_name(other) == folder_and_name(file));
        only(old.iter().filter(is_beside)).and(only(new.iter().filter(is_beside).filter(is_left)))
    })
}

fn only<'a>(mut files: impl Iterator<Item = &'a Boundary>) -> Option<&'a Boundary> {
    files.next().filter(|_| files.next().is_none())
}

/// Returns the names of a file's folder and of the file itself.
fn folder_and_name(file: &Boundary) -> (&str, &str) {
    let mut steps = file.file().rsplit(['/', '\\']);
    let name = steps.next().unwrap_or_default();
    (steps.next().unwrap_or_default(), name)
}

/// Returns the findings in `new` that were not in `old`, except those in `known`.
fn newly_found(old: &[Boundary], new: &[Boundary], pairs: &[Pair<'_>], known: &[Finding]) -> Vec<Finding> {
    let pair = |finding: &Finding| pairs.iter().find(|pair| pair.after.file() == finding.place.file);
    let mut were = check(old);
    let mut news = check(new);
    news.retain(|finding| !LOOSENING_NOTHING.contains(&finding.rule.id));
    // Findings at the same location are matched first: a longer list shifts what follows, so after that only the words
    // can match.
    for by_location in [true, false] {
        news.retain(|finding| {
            let before = pair(finding).map(|pair| pair.before.file());
            let index = were.iter().position(|was| {
                was.rule == finding.rule
                    && before == Some(was.place.file.as_str())
                    && (!by_location || was.place.pointer == finding.place.pointer)
                    && words(was) == words(finding)
            });
            index.map(|index| were.swap_remove(index)).is_none()
        });
    }
    news.retain(|finding| {
        !known.iter().any(|other| {
            (other.rule, &other.place.file, group(other))
                == (finding.rule, &finding.place.file, group(finding))
        })
    });
    let describe = |finding: Finding| {
        let change = pair(&finding).and_then(|pair| render::change(pair, &finding.place.pointer));
        let what =
            change.map_or_else(|| finding.what.clone(), |change| format!("{}: {change}", finding.what));
        let help = format!(
            "{} Or allow the change with a reason: --allow {}=REASON.",
            finding.help, finding.rule.id
        );
        Finding { help, ..Finding::new(finding.rule, finding.place, &what) }
    };
    news.into_iter().map(describe).collect()
}

/// Returns the words of a finding, sorted.
///
/// The order of listed items is that of the file, which has no meaning.
fn words(finding: &Finding) -> Vec<&str> {
    let mut words: Vec<&str> = finding.what.split([' ', ',']).collect();
    words.sort_unstable();
    words
}

/// Returns the subject of a finding, such as one operation or one list of headers.
///
/// It is the first two steps of its pointer.
fn group(finding: &Finding) -> &str {
    let pointer = finding.place.pointer.as_str();
    let mut slashes = pointer.match_indices('/').map(|(index, _)| index);
    slashes.nth(2).and_then(|end| pointer.get(..end)).unwrap_or(pointer)
}

/// Returns the entries of `before` that are not in `after`.
fn lost<'a, T: PartialEq>(before: &'a [T], after: &'a [T]) -> impl Iterator<Item = &'a T> {
    before.iter().filter(|entry| !after.contains(entry))
}

/// Returns the texts of `before` that are not in `after`, ignoring case.
///
/// Each is returned once, in lower case.
fn lost_names(before: &[String], after: &[String]) -> Vec<String> {
    let is_lost = |name: &&String| !after.iter().any(|other| other.eq_ignore_ascii_case(name));
    let mut lost: Vec<String> = before.iter().filter(is_lost).map(|name| name.to_ascii_lowercase()).collect();
    lost.sort_unstable();
    lost.dedup();
    lost
}

fn list<T>(list: Option<&Vec<T>>) -> &[T] {
    list.map_or(&[], Vec::as_slice)
}
