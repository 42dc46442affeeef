//! Rules for headers: the key, and what makes its path visible, pass every list of headers.
// SPEC C1, C5, C6, C8, F1.

pub(super) mod answers;
pub(super) mod order;

use ichido_core::key::NAMES;

use super::Violation;
use crate::model::list_pointer;
use crate::{HeaderLists, HopChain, Name, Traceparent, Traffic};

/// Finds the lists of this traffic that stop a header, given by its spellings.
pub(super) fn stopped<'a>(chain: &HopChain<'a>, of: Traffic, spellings: &[&str]) -> Vec<Violation<'a>> {
    chain
        .lists(of)
        .filter(|(_, _, lists)| !spellings.iter().any(|header| lists.passes(header)))
        .map(|(file, direction, lists)| {
            let header = spellings[0].to_ascii_lowercase();
            let is_dropped = spellings.iter().any(|header| lists.allows(header));
            let (member, what) =
                if is_dropped { ("drop", "is dropped") } else { ("allow", "is not allowed") };
            Violation::new(file, list_pointer(direction, member), format!("{header} {what}"))
        })
        .collect()
}

pub(super) fn key_passes_cors<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let lists = chain.files().filter_map(|file| Some((file, file.cors.as_ref()?)));
    lists
        .filter(|(_, cors)| !NAMES.iter().any(|header| cors.allowed_headers.names(header)))
        .map(|(file, _)| Violation::new(file, "/cors/allowed_headers/items", "idempotency-key is not listed"))
        .collect()
}

pub(super) fn one_spelling_passes_all<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    // The rules about single lists find a list that stops both.
    let by_lists = chain.lists(Traffic::Requests).map(|(file, direction, lists)| {
        (file, list_pointer(direction, "allow"), NAMES.map(|header| lists.passes(header)))
    });
    let by_cors = chain.files().filter_map(|file| {
        let allowed = &file.cors.as_ref()?.allowed_headers;
        Some((file, "/cors/allowed_headers/items".to_owned(), NAMES.map(|header| allowed.names(header))))
    });
    let lists: Vec<_> = by_cors.chain(by_lists).filter(|(_, _, passes)| passes.contains(&true)).collect();
    let mut left = [true; NAMES.len()];
    let mut found = Vec::new();
    for (file, pointer, passes) in lists {
        let still = [left[0] && passes[0], left[1] && passes[1]];
        if still == [false; NAMES.len()] {
            let (here, before) = if passes[0] { (NAMES[0], NAMES[1]) } else { (NAMES[1], NAMES[0]) };
            let what = format!("only {here} passes here, but only {before} passes earlier hops")
                .to_ascii_lowercase();
            // The lists after it are compared with the same ones before it.
            found.push(Violation::new(file, pointer, what));
        } else {
            left = still;
        }
    }
    found
}

pub(super) fn trace_passes<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = stopped(chain, Traffic::Requests, &["traceparent"]);
    let dropped = chain.files().filter(|file| file.observability.traceparent == Some(Traceparent::Drop));
    found.extend(
        dropped
            .map(|file| Violation::new(file, "/observability/traceparent", "the trace context is dropped")),
    );
    found
}

pub(super) fn lists_name_headers<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let wide = |lists: &HeaderLists| lists.allow.iter().flatten().position(|entry| entry == "*");
    chain
        .lists(Traffic::Requests)
        .filter_map(|(file, direction, lists)| {
            let pointer = format!("{}/{}", list_pointer(direction, "allow"), wide(lists)?);
            Some(Violation::new(file, pointer, "`*` allows every header"))
        })
        .collect()
}

pub(super) fn type_passes<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let is_json = chain
        .owners()
        .any(|(_, guarantees, _)| guarantees.fingerprint.body_hash.input.encoding.r#type.is_some());
    // What the adapter sends on is no longer hashed.
    let lists = stopped(chain, Traffic::Requests, &["content-type"]).into_iter();
    lists.filter(|found| is_json && found.file.name() != Name::Adapter).collect()
}

/// Returns the spellings in which the key passes all lists of requests.
///
/// Returns both if another rule finds that none does.
pub(super) fn spellings_sent(chain: &HopChain<'_>) -> [bool; NAMES.len()] {
    let passes = NAMES.map(|header| {
        let by_lists = chain.lists(Traffic::Requests).all(|(_, _, lists)| lists.passes(header));
        let by_cors = chain.files().filter_map(|file| file.cors.as_ref());
        by_lists && by_cors.into_iter().all(|cors| cors.allowed_headers.names(header))
    });
    if passes.contains(&true) { passes } else { [true; NAMES.len()] }
}
