//! The key, and what makes its way visible, survives every list of headers (SPEC C1, C5, C6, C8, F1).

mod answers;

use ichido_core::key::NAMES;

use super::{Found, Rule, declare};
use crate::member::escape;
use crate::{HOPS_HEADER, HeaderLists, Name, Traceparent, Traffic, Way};

pub(super) const RULES: &[Rule] = &[
    declare! {
        "ICH-B010", Error, "C1, C8",
        "The key passes every list of request headers",
        why: "A list that leaves the key out takes it off every request, silently: all that comes after sees requests \
              without a key, or refuses them all.",
        mend: "Name `idempotency-key` in `allow`, and take it out of `drop`.",
        example: "bff_to_gateway.json" at "/headers/gateway_inbound",
        check: key_passes_the_lists,
    },
    declare! {
        "ICH-B011", Error, "C1, C8",
        "The key passes the CORS list",
        why: "A browser asks first which headers it may send to another origin. If the key is not among them it sends \
              nothing at all; `*` does not count on requests with credentials.",
        mend: "Name `idempotency-key` in `cors.allowed_headers.items`.",
        example: "browser_to_bff.json" at "/cors/allowed_headers",
        check: key_passes_cors,
    },
    declare! {
        "ICH-B012", Error, "C1, C8",
        "One spelling of the key passes the whole way",
        why: "`Idempotency-Key` and `X-Idempotency-Key` are one header to whoever reads the key, but two to a list. If \
              one hop lets only the first through and the next only the second, no key arrives.",
        mend: "Use the same spelling in every list.",
        example: "gateway_to_adapter.json" at "/headers/adapter_inbound/allow",
        check: one_spelling_passes_all,
    },
    declare! {
        "ICH-B013", Warning, "F1",
        "Ichido-Hops passes every list of request headers",
        why: "Each hop adds itself to this header, and the adapter keeps it. Where it is dropped, the timeline of an \
              action loses the hops before.",
        mend: "Name `ichido-hops` in `allow`, and take it out of `drop`.",
        example: "gateway_to_adapter.json" at "/headers/gateway_outbound",
        check: hops_pass,
    },
    declare! {
        "ICH-B014", Warning, "C5, F1",
        "The trace context passes every list of request headers",
        why: "The trace of an action carries its key. Where `traceparent` is dropped the trace breaks in two, and a search \
              by key finds one half.",
        mend: "Name `traceparent` in `allow` and take it out of `drop`, and let `observability.traceparent` be `pass`.",
        example: "bff_to_gateway.json" at "/headers/bff_outbound",
        check: trace_passes,
    },
    declare! {
        "ICH-B015", Warning, "C8",
        "A list of allowed request headers names them",
        why: "`*` lets everything through, also headers by which somebody could pass for somebody else.",
        mend: "Name each header that is needed; a beginning such as `x-app-*` is fine.",
        example: "browser_to_bff.json" at "/headers/inbound/allow",
        check: lists_name_headers,
    },
    declare! {
        "ICH-B016", Error, "C5, C6, A8",
        "What tells a replay or a wait from an outcome passes every list of answer headers",
        why: "A 202 that says *in flight* is not success, and only `Idempotency-Status` says so; `Retry-After` says when to \
              ask again; the marker tells a replay. A client that cannot see them takes work that is not done for done.",
        mend: "Let `idempotency-replayed`, `idempotency-status` and `retry-after` pass, and the key where it is echoed.",
        example: "gateway_to_adapter.json" at "/headers",
        check: answers::pass,
    },
    declare! {
        "ICH-B017", Error, "C5, C6, A8",
        "A page on another origin can read what tells a replay or a wait from an outcome",
        why: "A browser hides an answer's headers from pages on other origins unless they are exposed. Without \
              `Idempotency-Status` the page takes a 202 that says *in flight* for success.",
        mend: "Name `idempotency-replayed`, `idempotency-status` and `retry-after` in `cors.exposed_headers.items`, and the \
               key where it is echoed.",
        example: "browser_to_bff.json" at "/cors/exposed_headers",
        check: answers::are_exposed,
    },
    declare! {
        "ICH-B018", Error, "C8, C9",
        "The type of the body passes every list of request headers",
        why: "Only a body that is said to be JSON is brought to its normal form. Without `Content-Type` the adapter hashes \
              the bytes, and a client that writes the same request with other white space is refused for a conflict.",
        mend: "Name `content-type` in `allow`, and take it out of `drop`.",
        example: "bff_to_gateway.json" at "/headers/bff_outbound",
        check: type_passes,
    },
];

/// Finds the lists of this traffic that stop a header, given by its spellings.
fn stopped<'a>(way: &Way<'a>, of: Traffic, spellings: &[&str]) -> Vec<Found<'a>> {
    way.lists(of)
        .filter(|(_, _, lists)| !spellings.iter().any(|header| lists.passes(header)))
        .map(|(file, direction, lists)| {
            let header = spellings[0].to_ascii_lowercase();
            let is_dropped = spellings.iter().any(|header| lists.allows(header));
            let (member, what) =
                if is_dropped { ("drop", "is dropped") } else { ("allow", "is not allowed") };
            let pointer = format!("/headers/{}/{member}", escape(direction));
            Found::at(file, pointer, format!("{header} {what}"))
        })
        .collect()
}

fn key_passes_the_lists<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    stopped(way, Traffic::Requests, &NAMES)
}

fn key_passes_cors<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let lists = way.files().filter_map(|file| Some((file, file.cors.as_ref()?)));
    lists
        .filter(|(_, cors)| !NAMES.iter().any(|header| cors.allowed_headers.names(header)))
        .map(|(file, _)| Found::at(file, "/cors/allowed_headers/items", "idempotency-key is not among them"))
        .collect()
}

fn one_spelling_passes_all<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    // A list that stops both is found by the rules about single lists.
    let by_lists = way.lists(Traffic::Requests).map(|(file, direction, lists)| {
        (file, format!("/headers/{}/allow", escape(direction)), NAMES.map(|header| lists.passes(header)))
    });
    let by_cors = way.files().filter_map(|file| {
        let passes =
            NAMES.map(|header| file.cors.as_ref().is_none_or(|cors| cors.allowed_headers.names(header)));
        file.cors.as_ref().map(|_| (file, "/cors/allowed_headers/items".to_owned(), passes))
    });
    let lists: Vec<_> = by_cors.chain(by_lists).filter(|(_, _, passes)| passes.contains(&true)).collect();
    let mut left = [true; NAMES.len()];
    for (file, pointer, passes) in lists {
        let still = [left[0] && passes[0], left[1] && passes[1]];
        if still == [false; NAMES.len()] {
            let (here, before) = if passes[0] { (NAMES[0], NAMES[1]) } else { (NAMES[1], NAMES[0]) };
            let what =
                format!("only {here} passes here, and only {before} passed before").to_ascii_lowercase();
            return vec![Found::at(file, pointer, what)];
        }
        left = still;
    }
    Vec::new()
}

fn hops_pass<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    stopped(way, Traffic::Requests, &[HOPS_HEADER])
}

fn trace_passes<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = stopped(way, Traffic::Requests, &["traceparent"]);
    let dropped = way.files().filter(|file| file.observability.traceparent == Some(Traceparent::Drop));
    found.extend(
        dropped.map(|file| Found::at(file, "/observability/traceparent", "the trace context is dropped")),
    );
    found
}

fn lists_name_headers<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let wide = |lists: &HeaderLists| lists.allow.iter().flatten().position(|entry| entry == "*");
    way.lists(Traffic::Requests)
        .filter_map(|(file, direction, lists)| {
            let pointer = format!("/headers/{}/allow/{}", escape(direction), wide(lists)?);
            Some(Found::at(file, pointer, "`*` lets every header through"))
        })
        .collect()
}

fn type_passes<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let is_json =
        way.owners().any(|(_, promises, _)| promises.fingerprint.body_hash.input.encoding.r#type.is_some());
    // What the adapter sends on is not hashed any more.
    let lists = stopped(way, Traffic::Requests, &["content-type"]).into_iter();
    lists.filter(|found| is_json && found.file.name() != Name::Adapter).collect()
}

/// The spellings in which the key passes all lists of requests; both, where another rule finds that none does.
pub(super) fn spellings_sent(way: &Way<'_>) -> [bool; NAMES.len()] {
    let passes = NAMES.map(|header| {
        let by_lists = way.lists(Traffic::Requests).all(|(_, _, lists)| lists.passes(header));
        let by_cors = way.files().filter_map(|file| file.cors.as_ref());
        by_lists && by_cors.into_iter().all(|cors| cors.allowed_headers.names(header))
    });
    if passes.contains(&true) { passes } else { [true; NAMES.len()] }
}
