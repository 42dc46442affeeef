//! Changes to which headers pass.

use ichido_core::key::NAMES;

use super::{Loosening, Pair, list, loosening};
use crate::member::escape;
use crate::model::{applies, traffic};
use crate::{Boundary, Crossing, HOPS_HEADER, HeaderLists, Name, Party, STATUS_HEADER, Traffic};

/// The headers that must pass, each with its rule.
///
/// The rule for any other is [`rule_about_lists`].
const OF_REQUESTS: [(&str, &str); 5] = [
    (NAMES[0], "ICH-B010"),
    (NAMES[1], "ICH-B010"),
    (HOPS_HEADER, "ICH-B013"),
    ("traceparent", "ICH-B014"),
    ("authorization", "ICH-B084"),
];
const OF_ANSWERS: [(&str, &str); 4] = [
    ("Idempotency-Replayed", "ICH-B016"),
    ("Idempotent-Replayed", "ICH-B016"),
    (STATUS_HEADER, "ICH-B016"),
    ("Retry-After", "ICH-B016"),
];

/// Returns the rule about the lists themselves.
const fn rule_about_lists(traffic: Traffic) -> &'static str {
    match traffic {
        Traffic::Requests => "ICH-B015",
        Traffic::Responses => "ICH-B016",
    }
}

pub(super) fn compare(pair: &Pair<'_>) -> Vec<Loosening> {
    let (before, after) = (pair.before, pair.after);
    let mut directions: Vec<(&str, &str)> = names(before).map(|old| (old, renamed(pair, old))).collect();
    let is_new = |new: &&str| !directions.iter().any(|(_, known)| known == new);
    let added: Vec<(&str, &str)> = names(after).filter(is_new).map(|new| (new, new)).collect();
    directions.extend(added);
    directions.into_iter().flat_map(|(old, new)| direction_of(pair, old, new)).collect()
}

/// Returns the name of a direction in the new file.
///
/// `inbound` may have become `bff_inbound`, which means the same there.
fn renamed<'a>(pair: &Pair<'a>, old: &'a str) -> &'a str {
    if names(pair.after).any(|new| new == old) {
        return old;
    }
    let meaning = |direction: &str| {
        let crossings = [Crossing::Arriving, Crossing::Leaving];
        let who = Party::ALL
            .map(|party| crossings.map(|crossing| applies(direction, pair.after.name(), party, crossing)));
        (traffic(direction, pair.after.name()), who)
    };
    let mut others = names(pair.after).filter(|new| !names(pair.before).any(|known| known == *new));
    others.find(|new| meaning(new) == meaning(old)).unwrap_or(old)
}

fn names(file: &Boundary) -> impl Iterator<Item = &str> {
    file.headers.lists().map(|(direction, _)| direction)
}

/// Returns the lists of a direction; without any, everything passes.
fn lists(file: &Boundary, direction: &str) -> HeaderLists {
    let mut all = file.headers.lists();
    all.find(|(name, _)| *name == direction).map(|(_, lists)| lists.clone()).unwrap_or_default()
}

fn direction_of(pair: &Pair<'_>, was: &str, is: &str) -> Vec<Loosening> {
    let (old, new) = (lists(pair.before, was), lists(pair.after, is));
    let traffic = traffic(is, pair.after.name());
    let pointer = format!("/headers/{}", escape(is));
    let wanted: &[(&str, &str)] = match traffic {
        Traffic::Requests => &OF_REQUESTS,
        Traffic::Responses => &OF_ANSWERS,
    };
    let mut found = Vec::new();
    if old.allow.is_some() && new.allow.is_none() {
        let what = "allowed headers: was a list, now all headers";
        found.push(loosening(rule_about_lists(traffic), pointer.clone(), what));
    }
    let relied_on_headers = relied_on_headers(pair.before, &old, traffic, wanted);
    for header in known(&[&old, &new], &relied_on_headers) {
        // `x-app-*` is checked like a header: it passes if all headers with this prefix do.
        if relied_on_headers.contains(&header) && old.passes(&header) && !new.passes(&header) {
            let rule = wanted.iter().find(|(name, _)| name.eq_ignore_ascii_case(&header));
            let rule = rule.map_or(rule_about_lists(traffic), |(_, rule)| rule);
            let how = if new.drops(&header) { "dropped" } else { "not allowed" };
            found.push(loosening(rule, pointer.clone(), format!("`{header}`: was passed on, now {how}")));
        } else if old.drops(&header) && !new.drops(&header) && named(old.drop.as_ref(), &header) {
            let is_from_browser = pair.after.name() == Name::BrowserToBff && traffic == Traffic::Requests;
            let rule = if is_from_browser { "ICH-B083" } else { rule_about_lists(traffic) };
            let how = if new.passes(&header) { "passed on" } else { "no longer listed in `drop`" };
            found.push(loosening(rule, pointer.clone(), format!("`{header}`: was dropped, now {how}")));
        } else if header.ends_with('*') && !old.allows(&header) && new.passes(&header) && new.allow.is_some()
        {
            let what = format!("`{header}`: was not allowed, now is, with every header that has this prefix");
            found.push(loosening(rule_about_lists(traffic), pointer.clone(), what));
        }
    }
    found
}

fn named(names: Option<&Vec<String>>, header: &str) -> bool {
    list(names).iter().any(|name| name.eq_ignore_ascii_case(header))
}

/// Returns the headers that callers rely on: those that must pass, and those an old list names.
///
/// If this direction had no list, those of the file's other directions count, because they passed here as well.
fn relied_on_headers(
    before: &Boundary,
    old: &HeaderLists,
    of: Traffic,
    wanted: &[(&str, &str)],
) -> Vec<String> {
    let mut relied_on_headers: Vec<String> =
        wanted.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    let allowed: Vec<String> = if let Some(allow) = &old.allow {
        allow.clone()
    } else {
        let directions = names(before).filter(|direction| traffic(direction, before.name()) == of);
        directions.flat_map(|direction| lists(before, direction).allow.unwrap_or_default()).collect()
    };
    relied_on_headers.extend(allowed.iter().map(|name| name.to_ascii_lowercase()));
    relied_on_headers
}

/// Returns the headers to check.
///
/// They are those that are relied on, what they cover, and those that the lists name.
fn known(here: &[&HeaderLists; 2], relied_on_headers: &[String]) -> Vec<String> {
    let entries = here.iter().flat_map(|lists| [&lists.allow, &lists.drop]).flatten().flatten();
    let mut known: Vec<String> = entries.map(|name| name.to_ascii_lowercase()).collect();
    known.extend_from_slice(relied_on_headers);
    known.sort_unstable();
    known.dedup();
    known
}
