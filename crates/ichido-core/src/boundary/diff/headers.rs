//! Which headers pass.

use super::{Loose, list, loose};
use crate::boundary::member::escape;
use crate::boundary::model::traffic;
use crate::boundary::{Boundary, HOPS_HEADER, HeaderLists, Name, Named, STATUS_HEADER, Traffic};
use crate::key::NAMES;

/// The headers that must pass, each with the rule that says so.
const OF_REQUESTS: [(&str, &str); 4] =
    [(NAMES[0], "ICH-B010"), (NAMES[1], "ICH-B010"), (HOPS_HEADER, "ICH-B013"), ("traceparent", "ICH-B014")];
const OF_ANSWERS: [(&str, &str); 4] = [
    ("Idempotency-Replayed", "ICH-B016"),
    ("Idempotent-Replayed", "ICH-B016"),
    (STATUS_HEADER, "ICH-B016"),
    ("Retry-After", "ICH-B016"),
];

pub(super) fn compare(before: &Boundary, after: &Boundary) -> Vec<Loose> {
    let mut directions: Vec<&str> = names(before).chain(names(after)).collect();
    directions.sort_unstable();
    directions.dedup();
    directions.into_iter().flat_map(|direction| direction_of(before, after, direction)).collect()
}

fn names(file: &Boundary) -> impl Iterator<Item = &str> {
    file.headers.iter().flat_map(Named::iter).map(|(direction, _)| direction)
}

/// The lists of a direction; where there are none, everything passes.
fn lists(file: &Boundary, direction: &str) -> HeaderLists {
    let mut all = file.headers.iter().flat_map(Named::iter);
    all.find(|(name, _)| *name == direction).map(|(_, lists)| lists.clone()).unwrap_or_default()
}

fn direction_of(before: &Boundary, after: &Boundary, direction: &str) -> Vec<Loose> {
    let (old, new) = (lists(before, direction), lists(after, direction));
    let pointer = format!("/headers/{}", escape(direction));
    let wanted = match traffic(direction) {
        Traffic::Requests => OF_REQUESTS,
        Traffic::Answers => OF_ANSWERS,
    };
    let mut found = Vec::new();
    for (header, rule) in wanted {
        if old.passes(header) && !new.passes(header) {
            let what = format!("{} passed, and does not", header.to_ascii_lowercase());
            found.push(loose(rule, pointer.clone(), what));
        }
    }
    if traffic(direction) == Traffic::Answers {
        return found;
    }
    if old.allow.is_some() && new.allow.is_none() {
        found.push(loose("ICH-B015", pointer.clone(), "only named headers passed, and now all do"));
    }
    for header in list(old.drop.as_ref()).iter().filter(|header| !old.passes(header) && new.passes(header)) {
        let rule = if after.name() == Name::BrowserToBff { "ICH-B083" } else { "ICH-B015" };
        found.push(loose(rule, pointer.clone(), format!("`{header}` was dropped, and passes")));
    }
    found
}
