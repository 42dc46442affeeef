//! Rules for retries: only with a key, and at a hop only where it may.
// SPEC C4, A8.

use super::Violation;
use super::key::{SAFE_METHODS, is_method};
use crate::{Boundary, Guarantee, HopChain, Name, NamedValues, OperationClass, Party};

/// The maximum number of attempts of a boundary.
///
/// Three hops of ten would already turn one call into a thousand.
const MAX_ATTEMPTS: u64 = 10;

pub(super) fn retries_need_the_key<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let found = |file: &'a Boundary| {
        let plan = file.http.retry.plan()?;
        // Anything not known to be safe may change state, including `*`.
        let is_safe = |method: &String| SAFE_METHODS.contains(&method.as_str());
        let is_at_risk = plan.methods.is_empty() || !plan.methods.iter().all(is_safe);
        let pointer = "/http/retry/retry_gate/require_idempotency_key_when_state_changing";
        let what = "a state-changing request without a key would be retried";
        (is_at_risk && !plan.needs_key).then(|| Violation::new(file, pointer, what))
    };
    chain.files().filter_map(found).collect()
}

/// Returns whether the sender is between the origin and the owner.
fn sender_is_a_hop(file: &Boundary) -> bool {
    matches!(file.name().sender(), Party::Bff | Party::Gateway)
}

pub(super) fn hops_retry_post_alone<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in chain.files().filter(|file| sender_is_a_hop(file)) {
        let Some(plan) = file.http.retry.plan() else { continue };
        let others = plan.methods.iter().enumerate().filter(|(_, method)| *method != "POST");
        found.extend(others.map(|(index, method)| {
            let pointer = format!("/http/retry/apply_to_methods/{index}");
            Violation::new(
                file,
                pointer,
                format!("the {} would retry {method}", file.name().sender().as_str()),
            )
        }));
    }
    found
}

pub(super) fn statuses_are_repeatable<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in chain.files() {
        let Some(plan) = file.http.retry.plan() else { continue };
        let is_repeatable = |status: u16| match status {
            502..=504 => true,
            408 | 429 | 500..=599 => !sender_is_a_hop(file),
            _ => false,
        };
        for (index, status) in plan.statuses.iter().enumerate().filter(|(_, status)| !is_repeatable(**status))
        {
            let what = format!("the {} would retry after {status}", file.name().sender().as_str());
            found.push(Violation::new(file, format!("/http/retry/retry_on_status/{index}"), what));
        }
    }
    found
}

pub(super) fn retries_are_bounded<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in chain.files() {
        let retry = &file.http.retry;
        match retry.max_attempts {
            _ if retry.is_off() => continue,
            None => found.push(Violation::new(file, "/http/retry/max_attempts", "`max_attempts` is missing")),
            Some(1..=MAX_ATTEMPTS) => (),
            Some(attempts) => {
                let what = format!("{attempts} attempts; use 1 to {MAX_ATTEMPTS}");
                found.push(Violation::new(file, "/http/retry/max_attempts", what));
            }
        }
        if retry.backoff_ms.as_ref().is_none_or(|backoff| backoff.0.is_empty()) {
            found.push(Violation::new(file, "/http/retry/backoff_ms", "`backoff_ms` is missing or empty"));
        }
        found.extend(unknown_methods(chain, file));
    }
    found
}

pub(super) fn waits_are_used<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in chain.files() {
        let Some(plan) = file.http.retry.plan() else { continue };
        let used = plan.attempts.get() as usize - 1;
        let needs = match used {
            0 => "1 attempt needs no wait".to_owned(),
            1 => "2 attempts need only 1 wait".to_owned(),
            _ => format!("{} attempts need only {used} waits", plan.attempts),
        };
        found.extend(plan.unused_waits().iter().enumerate().map(|(index, wait)| {
            let what = format!("{needs}, so the wait of {} ms is never used", wait.as_millis());
            Violation::new(file, format!("/http/retry/backoff_ms/{}", used + index), what)
        }));
    }
    found
}

/// Returns what is wrong with the methods that are retried.
fn unknown_methods<'a>(chain: &HopChain<'a>, file: &'a Boundary) -> Vec<Violation<'a>> {
    const POINTER: &str = "/http/retry/apply_to_methods";
    let Some(methods) = file.http.retry.apply_to_methods.as_ref().filter(|methods| !methods.is_empty())
    else {
        return vec![Violation::new(file, POINTER, "`apply_to_methods` is missing or empty")];
    };
    // For a hop, another rule finds everything but POST.
    let unknown =
        methods.iter().enumerate().filter(|(_, method)| !sender_is_a_hop(file) && !is_method(chain, method));
    unknown
        .map(|(index, method)| {
            let what = format!("`{method}` is not an HTTP method; use POST, PATCH and so on");
            Violation::new(file, format!("{POINTER}/{index}"), what)
        })
        .collect()
}

pub(super) fn unguarded_calls_are_not_repeated<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let own = chain.files().filter(|file| file.name() == Name::Adapter && file.http.retry.plan().is_some());
    let unguarded = own.flat_map(|file| {
        let operations = file.operations.iter().flat_map(NamedValues::iter);
        let unguarded = operations.filter(|(_, operation)| {
            let changes = operation.class != Some(OperationClass::Read);
            changes && operation.guarantee.is_none_or(|guarantee| guarantee == Guarantee::None)
        });
        unguarded.map(move |(name, _)| (file, name))
    });
    unguarded
        .map(|(file, name)| {
            let what = format!("`{name}` has no guarantee and would be retried");
            Violation::new(file, "/http/retry/mode", what)
        })
        .collect()
}
