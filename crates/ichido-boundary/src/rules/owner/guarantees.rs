//! Rules for the owner's guarantees: declared once, where they are read.

use super::Violation;
use crate::rules::refusal::not_refused;
use crate::{Enabled, HopChain, Mode, Name, ValidateOnly};

pub(in crate::rules) fn are_in_the_right_member<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in chain.files() {
        let idempotency = &file.http.idempotency;
        let is_enabled = idempotency.mode == Some(Mode::Enabled);
        found.extend(idempotency.unread_members.iter().map(|member| {
            let what = if is_enabled {
                format!("`enabled` contradicts or omits `{member}`")
            } else {
                format!("`{member}` is declared, but the mode is not `enabled`")
            };
            Violation::new(file, format!("/http/idempotency/{member}"), what)
        }));
        if is_enabled && !agrees_with_enabled(&idempotency.validate_only) {
            let what = "`validate_only` allows requests without a key, but the mode is `enabled`";
            found.push(Violation::new(file, "/http/idempotency/validate_only", what));
        }
        if idempotency.has_two_reactions() {
            let what = "`missing_key` and `on_missing_key` declare different responses";
            found.push(Violation::new(file, idempotency.require_key_pointer(), what));
        }
        let guarantees = &idempotency.enabled;
        let only_names_owner = Enabled { owner: Some("adapter".to_owned()), ..Enabled::default() };
        if !is_enabled && *guarantees != Enabled::default() && *guarantees != only_names_owner {
            let what = "`enabled` declares guarantees, but the mode is not `enabled`";
            found.push(Violation::new(file, "/http/idempotency/enabled", what));
        }
    }
    found
}

/// Returns whether members for another mode next to `enabled` also require the key, or are absent.
fn agrees_with_enabled(beside: &ValidateOnly) -> bool {
    let refuses = beside.on_missing_key.as_ref().is_none_or(|reaction| not_refused(reaction).is_none());
    beside.require_header_when_state_changing != Some(false) && refuses
}

pub(in crate::rules) fn agree<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let guarantees = |name: Name| chain.owners().find(|(file, ..)| file.name() == name);
    let (Some((gateway, before, _)), Some((file, own, base))) =
        (guarantees(Name::GatewayToAdapter), guarantees(Name::Adapter))
    else {
        return Vec::new();
    };
    // Another rule finds who owns, and a missing key is refused alike at every hop.
    let members = Enabled::NAMES.iter().filter(|name| !matches!(**name, "owner" | "on_missing_key"));
    let differing = members.filter(|member| !own.agrees(before, member));
    let what = format!("{} declares something else", gateway.name());
    differing.map(|member| Violation::new(file, format!("{base}/{member}"), what.clone())).collect()
}
