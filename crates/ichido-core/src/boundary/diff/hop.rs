//! What a hop asks for, and when it tries again.

use super::{Loose, list, loose, lost};
use crate::boundary::{Boundary, Mode, Name, Reaction, RetryPlan};

pub(super) fn compare(before: &Boundary, after: &Boundary) -> Vec<Loose> {
    let mut found = key(before, after);
    found.extend(methods(before, after));
    found.extend(retry(before, after));
    found
}

fn key(before: &Boundary, after: &Boundary) -> Vec<Loose> {
    let (old, new) = (&before.http.idempotency, &after.http.idempotency);
    let mut found = Vec::new();
    let may_own = matches!(after.name(), Name::GatewayToAdapter | Name::Adapter);
    let mode = |mode: Option<Mode>| mode.map_or("not said", Mode::as_str);
    let change = format!("the mode was {}, and is {}", mode(old.mode), mode(new.mode));
    match (old.mode, new.mode) {
        (Some(Mode::Enabled), now) if may_own && now != Some(Mode::Enabled) => {
            found.push(loose("ICH-B072", "/http/idempotency/mode", change));
        }
        (Some(Mode::ValidateOnly | Mode::Enabled), None | Some(Mode::Disabled)) => {
            found.push(loose("ICH-B001", "/http/idempotency/mode", change));
        }
        _ => (),
    }
    let is_on = matches!(new.mode, Some(Mode::ValidateOnly | Mode::Enabled));
    if is_on && old.requires_key() && !new.requires_key() {
        found.push(loose("ICH-B002", "/http/idempotency", "the key was required, and is not"));
    }
    let refuses = |reaction: Option<&Reaction>| reaction.is_some_and(Reaction::refuses);
    if refuses(old.on_missing_key()) && new.on_missing_key().is_some_and(|reaction| !reaction.refuses()) {
        found.push(loose("ICH-B003", "/http/idempotency", "a missing key was refused, and is not"));
    }
    if old.echo_key == Some(true) && new.echo_key != Some(true) {
        found.push(loose("ICH-B073", "/http/idempotency/echo_key", "the key was echoed, and is not"));
    }
    let redacted = |file: &Boundary| file.observability.redaction.clone().unwrap_or_default().0;
    for name in lost(&redacted(before), &redacted(after)) {
        found.push(loose(
            "ICH-B090",
            "/observability/redaction",
            format!("`{name}` was kept out of the logs, and is not"),
        ));
    }
    found
}

fn methods(before: &Boundary, after: &Boundary) -> Vec<Loose> {
    let (old, new) = (&before.http.methods, &after.http.methods);
    let said = list(old.state_changing.as_ref()).iter().map(String::as_str);
    let known = said.chain(["POST", "PATCH"]).filter(|method| old.changes_state(method));
    let mut dropped: Vec<&str> =
        known.filter(|method| !new.changes_state(method) && new.allows(method)).collect();
    dropped.sort_unstable();
    dropped.dedup();
    dropped
        .into_iter()
        .map(|method| {
            let what = format!("{method} counted as state-changing, and does not");
            loose("ICH-B004", "/http/methods/state_changing", what)
        })
        .collect()
}

fn retry(before: &Boundary, after: &Boundary) -> Vec<Loose> {
    let Some(new) = after.http.retry.plan() else {
        return Vec::new();
    };
    let old = before.http.retry.plan();
    let mut found = Vec::new();
    let attempts = old.as_ref().map_or(1, |plan| plan.attempts.get());
    if attempts < new.attempts.get() {
        let what = format!("{attempts} tries have become {}", new.attempts);
        found.push(loose("ICH-B023", "/http/retry/max_attempts", what));
    }
    let was = |part: fn(&RetryPlan) -> bool| old.as_ref().is_some_and(part);
    if was(|plan| plan.needs_key) && !new.needs_key {
        let pointer = "/http/retry/retry_gate/require_idempotency_key_when_state_changing";
        found.push(loose("ICH-B020", pointer, "a key was asked for before another try, and is not"));
    }
    if !was(|plan| plan.on_network_error) && new.on_network_error {
        let what = "it is tried again when no answer came, and was not";
        found.push(loose("ICH-B022", "/http/retry/retry_on_network_error", what));
    }
    let statuses = old.as_ref().map_or(&[][..], |plan| &plan.statuses);
    for status in lost(&new.statuses, statuses) {
        let what = format!("it is tried again after {status}, and was not");
        found.push(loose("ICH-B022", "/http/retry/retry_on_status", what));
    }
    let methods = old.as_ref().map_or(&[][..], |plan| &plan.methods);
    for method in lost(&new.methods, methods) {
        let what = format!("{method} is tried again, and was not");
        found.push(loose("ICH-B021", "/http/retry/apply_to_methods", what));
    }
    found
}
