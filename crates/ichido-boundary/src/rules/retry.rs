//! Whoever tries again does so only with a key, and a hop only where it may (SPEC C4, A8).

use super::key::{SAFE_METHODS, is_method};
use super::{Found, Rule, declare};
use crate::{Boundary, Effect, Name, OperationClass, Party, Way};

/// The most tries that a boundary may allow. Three hops of ten would already make a thousand calls of one.
const ATTEMPTS_MAX: u64 = 10;

pub(super) const RULES: &[Rule] = &[
    declare! {
        "ICH-B020", Error, "C4",
        "A state-changing request is tried again only with a key",
        why: "Without a key nobody can tell the second try from a second order. The answer that got lost may have been \
              a success.",
        mend: "Set `retry_gate.require_idempotency_key_when_state_changing` to true, or set the mode to `disabled`.",
        example: "bff_to_gateway.json" at "/http/retry",
        check: retries_need_the_key,
    },
    declare! {
        "ICH-B021", Error, "C4",
        "A hop that does not own idempotency tries POST again and nothing else",
        why: "A BFF or gateway cannot know what a PUT, PATCH or DELETE meant between two tries of it: another change may \
              have come in between. Who began the request decides about those.",
        mend: "Say `\"apply_to_methods\": [\"POST\"]`.",
        example: "bff_to_gateway.json" at "/http/retry/apply_to_methods",
        check: hops_retry_post_alone,
    },
    declare! {
        "ICH-B022", Error, "C4, A8",
        "A request is sent again only after the statuses that allow it",
        why: "A BFF or gateway repeats after 502, 503 and 504, when the answer did not come from the owner. A 500 or a 409 \
              is the owner's answer and is passed on. The browser, where the request began, also repeats after 408, 429 and \
              other 5xx, never after any other 4xx.",
        mend: "For a hop keep `retry_on_status` within 502, 503, 504; for the browser and the adapter within 408, 429, 500 \
               to 599.",
        example: "bff_to_gateway.json" at "/http/retry/retry_on_status",
        check: statuses_are_repeatable,
    },
    declare! {
        "ICH-B023", Error, "C8",
        "A retry says how often, how far apart and for which methods",
        why: "How long a request may take, and how long its outcome must be kept, follows from the number of tries. A retry \
              without a number, or with a huge one, has no end that anything could fit into; one without waits strikes a \
              service that is already down.",
        mend: "Say `max_attempts` (the first try counts; 1 to 10), `backoff_ms` and `apply_to_methods`, or set the mode to \
               `disabled`.",
        example: "browser_to_bff.json" at "/http/retry",
        check: retries_are_bounded,
    },
    declare! {
        "ICH-B024", Error, "C4, F2",
        "The adapter does not repeat a call whose service does not honour keys",
        why: "An opaque operation that got no answer may have taken effect. A blind second call is the double charge that \
              all of this is there to prevent; it is held for a person instead.",
        mend: "Set the adapter's retry mode to `disabled`, or declare the operation `keyed` if the service honours the key.",
        example: "adapter.json" at "/http",
        check: opaque_calls_are_not_repeated,
    },
];

fn retries_need_the_key<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let found = |file: &'a Boundary| {
        let plan = file.http.retry.plan()?;
        // Whatever is not known to be safe may change state: `*` as well.
        let is_safe = |method: &String| SAFE_METHODS.contains(&method.as_str());
        let is_at_risk = plan.methods.is_empty() || !plan.methods.iter().all(is_safe);
        let pointer = "/http/retry/retry_gate/require_idempotency_key_when_state_changing";
        let what = "a state-changing request without a key would be sent again";
        (is_at_risk && !plan.needs_key).then(|| Found::at(file, pointer, what))
    };
    way.files().filter_map(found).collect()
}

/// Whether the sender stands between the one who began and the one who owns.
fn sender_is_a_hop(file: &Boundary) -> bool {
    matches!(file.name().sender(), Party::Bff | Party::Gateway)
}

fn hops_retry_post_alone<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for file in way.files().filter(|file| sender_is_a_hop(file)) {
        let Some(plan) = file.http.retry.plan() else { continue };
        let others = plan.methods.iter().enumerate().filter(|(_, method)| *method != "POST");
        found.extend(others.map(|(index, method)| {
            let pointer = format!("/http/retry/apply_to_methods/{index}");
            Found::at(
                file,
                pointer,
                format!("the {} would send {method} again", file.name().sender().as_str()),
            )
        }));
    }
    found
}

fn statuses_are_repeatable<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for file in way.files() {
        let Some(plan) = file.http.retry.plan() else { continue };
        let is_repeatable = |status: u16| match status {
            502..=504 => true,
            408 | 429 | 500..=599 => !sender_is_a_hop(file),
            _ => false,
        };
        for (index, status) in plan.statuses.iter().enumerate().filter(|(_, status)| !is_repeatable(**status))
        {
            let what = format!("the {} would send again after {status}", file.name().sender().as_str());
            found.push(Found::at(file, format!("/http/retry/retry_on_status/{index}"), what));
        }
    }
    found
}

fn retries_are_bounded<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for file in way.files() {
        let retry = &file.http.retry;
        match retry.max_attempts {
            _ if retry.is_off() => continue,
            None => found.push(Found::at(file, "/http/retry/max_attempts", "`max_attempts` is missing")),
            Some(1..=ATTEMPTS_MAX) => (),
            Some(attempts) => {
                let what = format!("{attempts} tries, where 1 to {ATTEMPTS_MAX} make sense");
                found.push(Found::at(file, "/http/retry/max_attempts", what));
            }
        }
        if retry.backoff_ms.as_ref().is_none_or(|backoff| backoff.0.is_empty()) {
            found.push(Found::at(file, "/http/retry/backoff_ms", "`backoff_ms` is missing, or empty"));
        }
        found.extend(unknown_methods(way, file));
    }
    found
}

/// What is wrong with the methods that are tried again.
fn unknown_methods<'a>(way: &Way<'a>, file: &'a Boundary) -> Vec<Found<'a>> {
    const POINTER: &str = "/http/retry/apply_to_methods";
    let Some(methods) = file.http.retry.apply_to_methods.as_ref().filter(|methods| !methods.is_empty())
    else {
        return vec![Found::at(file, POINTER, "`apply_to_methods` is missing, or empty")];
    };
    // Of a hop another rule finds all but POST.
    let unknown =
        methods.iter().enumerate().filter(|(_, method)| !sender_is_a_hop(file) && !is_method(way, method));
    unknown
        .map(|(index, method)| {
            let what = format!("`{method}` is no method; write POST, PATCH and so on");
            Found::at(file, format!("{POINTER}/{index}"), what)
        })
        .collect()
}

fn opaque_calls_are_not_repeated<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let found = |file: &'a Boundary| {
        file.http.retry.plan()?;
        let operations = file.operations.as_ref()?.iter();
        let mut opaque = operations.filter(|(_, operation)| {
            let changes = operation.class != Some(OperationClass::Read);
            changes && operation.effect.is_none_or(|effect| effect == Effect::Opaque)
        });
        let (name, _) = opaque.next()?;
        Some(Found::at(file, "/http/retry/mode", format!("`{name}` is opaque and would be called again")))
    };
    way.files().filter(|file| file.name() == Name::Adapter).filter_map(found).collect()
}
