//! Changes to when a hop retries.

use std::num::NonZeroU32;

use super::render::render_duration;
use super::{Loosening, Pair, loosening, lost};
use crate::RetryPlan;

pub(super) fn compare(Pair { before, after, .. }: &Pair<'_>) -> Vec<Loosening> {
    let Some(new) = after.http.retry.plan() else {
        return Vec::new();
    };
    let old = before.http.retry.plan();
    let mut found = Vec::new();
    let attempts = old.as_ref().map_or(1, |plan| plan.attempts.get());
    if attempts < new.attempts.get() {
        let what = format!("attempts: was {attempts}, now {}", new.attempts);
        found.push(loosening("ICH-B023", "/http/retry/max_attempts", what));
    }
    let was = |part: fn(&RetryPlan) -> bool| old.as_ref().is_some_and(part);
    if was(|plan| plan.needs_key) && !new.needs_key {
        let pointer = "/http/retry/retry_gate/require_idempotency_key_when_state_changing";
        found.push(loosening("ICH-B020", pointer, "a key for a retry: was required, now is not"));
    }
    if !was(|plan| plan.on_network_error) && new.on_network_error {
        let what = "a request without a response: was not retried, now is";
        found.push(loosening("ICH-B022", "/http/retry/retry_on_network_error", what));
    }
    let statuses = old.as_ref().map_or(&[][..], |plan| &plan.statuses);
    for status in lost(&new.statuses, statuses) {
        let what = format!("status {status}: was not retried, now is");
        found.push(loosening("ICH-B022", "/http/retry/retry_on_status", what));
    }
    let methods = old.as_ref().map_or(&[][..], |plan| &plan.methods);
    for method in lost(&new.methods, methods) {
        let what = format!("{method}: was not retried, now is");
        found.push(loosening("ICH-B021", "/http/retry/apply_to_methods", what));
    }
    found.extend(old.and_then(|old| sooner(&old, &new)));
    found
}

/// Finds the first wait that has become shorter.
///
/// An overloaded receiver gets the next attempt sooner.
fn sooner(old: &RetryPlan, new: &RetryPlan) -> Option<Loosening> {
    let mut failures = (1..new.attempts.get()).filter_map(NonZeroU32::new);
    failures.find_map(|failure| {
        let (was, is) = (old.wait_after(failure)?, new.wait_after(failure)?);
        let what = format!(
            "the wait before attempt {}: was {}, now {}",
            failure.get() + 1,
            render_duration(was),
            render_duration(is)
        );
        (is < was).then(|| loosening("ICH-B023", "/http/retry/backoff_ms", what))
    })
}
