//! Changes to what a hop requires, and how long it waits.

use ichido_core::key::NAMES;

use super::render::render_names;
use super::{Loosening, Pair, list, loosening};
use crate::rules::SAFE_METHODS;
use crate::{Boundary, Mode, Name, Reaction};

pub(super) fn compare(pair: &Pair<'_>) -> Vec<Loosening> {
    [key(pair), methods(pair), timeouts(pair), redaction(pair)].into_iter().flatten().collect()
}

fn key(Pair { before, after, .. }: &Pair<'_>) -> Vec<Loosening> {
    let (old, new) = (&before.http.idempotency, &after.http.idempotency);
    let mut found = Vec::new();
    let may_own = matches!(after.name(), Name::GatewayToAdapter | Name::Adapter);
    let mode = |mode: Option<Mode>| mode.map_or("not set", Mode::as_str);
    let change = format!("the mode was {}, now {}", mode(old.mode), mode(new.mode));
    match (old.mode, new.mode) {
        (Some(Mode::Enabled), now) if may_own && now != Some(Mode::Enabled) => {
            found.push(loosening("ICH-B072", "/http/idempotency/mode", change));
        }
        (Some(Mode::ValidateOnly | Mode::Enabled), None | Some(Mode::Disabled)) => {
            found.push(loosening("ICH-B001", "/http/idempotency/mode", change));
        }
        _ => (),
    }
    let is_on = matches!(new.mode, Some(Mode::ValidateOnly | Mode::Enabled));
    if is_on && old.requires_key() && !new.requires_key() {
        found.push(loosening("ICH-B002", "/http/idempotency", "the key was required, now is not"));
    }
    let (was, is) = (old.on_missing_key(), new.on_missing_key());
    if is_on && was.is_some_and(Reaction::refuses) && !is.is_some_and(Reaction::refuses) {
        let is = is.map_or("not set".to_owned(), reaction);
        let what = format!("a missing key: was {}, now {is}", was.map_or_else(String::new, reaction));
        found.push(loosening("ICH-B003", "/http/idempotency", what));
    }
    if old.echo_key == Some(true) && new.echo_key != Some(true) {
        let what = "the key was echoed in responses, now is not";
        found.push(loosening("ICH-B073", "/http/idempotency/echo_key", what));
    }
    found
}

fn reaction(reaction: &Reaction) -> String {
    let status = reaction.status.map(|status| status.to_string());
    let words: Vec<String> = reaction.action.clone().into_iter().chain(status).collect();
    render_names(&words).replace(", ", " ")
}

fn methods(Pair { before, after, .. }: &Pair<'_>) -> Vec<Loosening> {
    let (old, new) = (&before.http.methods, &after.http.methods);
    let mut found = Vec::new();
    let is_opened = old.allowed.is_some() && new.allowed.is_none();
    if is_opened {
        let was = render_names(list(old.allowed.as_ref()));
        let what = format!("allowed methods: was {was}, now not set, so all pass");
        found.push(loosening("ICH-B004", "/http/methods/allowed", what));
    }
    let lists = [&old.allowed, &new.allowed, &old.state_changing];
    let named = lists.into_iter().flatten().flatten().map(String::as_str);
    let mut known: Vec<&str> = named.chain(["POST", "PATCH"]).collect();
    known.sort_unstable();
    known.dedup();
    // A safe method needs no key, and the rules require that it does not count.
    known.retain(|method| !SAFE_METHODS.contains(method));
    for method in known.into_iter().filter(|method| new.allows(method) && !new.changes_state(method)) {
        if old.changes_state(method) {
            let what = format!("{method}: was state-changing and needed a key, now is not");
            found.push(loosening("ICH-B004", "/http/methods/state_changing", what));
        } else if !old.allows(method) {
            let what = format!("{method}: was refused, now passes without a key");
            found.push(loosening("ICH-B004", "/http/methods/allowed", what));
        }
    }
    found
}

/// A longer or shorter time is not looser.
///
/// The rules about time find what no longer fits.
fn timeouts(Pair { before, after, .. }: &Pair<'_>) -> Vec<Loosening> {
    let (old, new) = (&before.http.timeouts, &after.http.timeouts);
    let bounds = [
        ("ICH-B060", "upstream_timeout_ms", "each attempt", old.upstream_timeout_ms, new.upstream_timeout_ms),
        (
            "ICH-B061",
            "client_timeout_ms",
            "all attempts together",
            old.client_timeout_ms,
            new.client_timeout_ms,
        ),
    ];
    let gone = bounds.into_iter().filter_map(|(rule, member, what, old, new)| {
        let was = old.filter(|_| new.is_none())?;
        let what = format!("the time limit of {what}: was {was} ms, now not set");
        Some(loosening(rule, format!("/http/timeouts/{member}"), what))
    });
    gone.collect()
}

fn redaction(Pair { before, after, .. }: &Pair<'_>) -> Vec<Loosening> {
    let redacted = |file: &Boundary| file.observability.redaction.clone().unwrap_or_default();
    let (old, new) = (redacted(before), redacted(after));
    let mut lost: Vec<String> = old.0.iter().chain(&old.2).map(|name| name.to_ascii_lowercase()).collect();
    // The key is meant to be recorded.
    let is_key = |name: &str| NAMES.iter().any(|key| key.eq_ignore_ascii_case(name));
    lost.retain(|name| old.names(name) && !new.names(name) && !is_key(name));
    lost.sort_unstable();
    lost.dedup();
    let lost = lost.into_iter().map(|name| format!("`{name}`: was kept out of the logs, now is not"));
    lost.map(|what| loosening("ICH-B090", "/observability/redaction", what)).collect()
}
