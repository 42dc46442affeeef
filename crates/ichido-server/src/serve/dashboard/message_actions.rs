//! Which actions a message offers, and what each would do.

use super::super::dead_letters::Letter;
use super::super::models::Message;
use super::key_texts::Texts as KeyTexts;
use super::texts::{Texts, fill};

/// An action with its form.
pub(super) struct OfferedAction {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    /// What happens when it is pressed.
    pub(super) effect: String,
    pub(super) button: &'static str,
    /// Why the API would refuse it now.
    pub(super) refused: Option<String>,
    pub(super) has_choice: bool,
    pub(super) needs_reason: bool,
    pub(super) is_open: bool,
    pub(super) is_quiet: bool,
    /// Whether it has a page of its own.
    pub(super) is_page: bool,
}

/// Returns the actions for a message in its current state, the most likely one first. `local` is the name that is recorded if nobody
/// signs in.
pub(super) fn offered(
    t: &'static Texts,
    k: &'static KeyTexts,
    message: &Message,
    letter: Option<&Letter>,
    local: Option<&str>,
) -> Vec<OfferedAction> {
    let facts = &message.facts;
    let action = |name, path, effect: &str, button| OfferedAction {
        name,
        path,
        effect: effect.to_owned(),
        button,
        refused: None,
        has_choice: false,
        needs_reason: false,
        is_open: false,
        is_quiet: true,
        is_page: false,
    };
    let decide_effect =
        local.map_or_else(|| t.decide_effect.to_owned(), |who| fill(t.decide_effect_local, &[("who", who)]));
    let decide = || OfferedAction {
        has_choice: true,
        is_open: facts.status == "parked",
        is_quiet: false,
        ..action(t.decide, "decide", &decide_effect, t.decide_button)
    };
    let requeue_refused = letter.and_then(|letter| letter.requeue_refused.clone());
    let requeue = || OfferedAction {
        is_quiet: requeue_refused.is_some(),
        refused: requeue_refused.clone(),
        ..action(t.requeue, "requeue", t.requeue_effect, t.requeue_button)
    };
    let discard = || OfferedAction {
        refused: letter.and_then(|letter| letter.discard_refused.clone()),
        needs_reason: true,
        ..action(t.discard, "discard", t.discard_effect, t.discard_button)
    };
    // A message that must be decided first has nothing to requeue: a button that only refuses would hide the decision.
    let requeue_unless_refused = || requeue_refused.is_none().then(&requeue);
    let edit = || OfferedAction { is_page: true, ..action(k.edit, "replace", k.edit_effect, k.edit_title) };
    let cancel = || action(t.cancel, "cancel", t.cancel_effect, t.cancel_button);
    let is_closed = letter.is_some_and(|letter| letter.disposition != "open");
    match (facts.status.as_str(), facts.effect.as_str()) {
        _ if is_closed => Vec::new(),
        ("parked", _) => [decide()].into_iter().chain(requeue_unless_refused()).collect(),
        ("dead", "unknown") => {
            [decide()].into_iter().chain(requeue_unless_refused()).chain([discard()]).collect()
        }
        ("dead", "done") => vec![discard()],
        ("dead", _) => vec![requeue(), edit(), discard()],
        ("failed", _) => {
            vec![action(t.retry_now, "requeue", t.retry_now_effect, t.retry_now_button), cancel()]
        }
        ("queued" | "sending", _) => vec![cancel()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::serve::dashboard::language::Language;

    fn message(status: &str, effect: &str) -> Message {
        let value = json!({
            "id": "01995b1c-0000-7000-8000-000000000001", "queue": "orders", "identity": "shop", "idempotency_key": "order-1",
            "content_type": "application/json", "request_bytes": 2, "request_digest": "sha256:00", "status": status, "effect": effect,
            "attempts": 1, "max_attempts": 5, "next_attempt_at": null, "last_error": null, "priority": 2, "trace": null, "trace_id": null,
            "item": null, "replacement_of": null, "created_at": "00", "updated_at": "09", "held_by": null, "replaced_by": null,
            "cancel_requested": null, "result": null, "hops": null,
        });
        serde_json::from_value(value).expect("a message")
    }

    #[test]
    fn each_state_offers_what_the_lifecycle_allows() {
        let (t, k) = (Texts::of(Language::English), KeyTexts::of(Language::English));
        for (status, effect, expected) in [
            ("queued", "not_done", &["cancel"][..]),
            ("sending", "in_flight", &["cancel"]),
            ("failed", "unknown", &["requeue", "cancel"]),
            ("parked", "unknown", &["decide", "requeue"]),
            ("dead", "unknown", &["decide", "requeue", "discard"]),
            ("dead", "not_done", &["requeue", "replace", "discard"]),
            ("dead", "done", &["discard"]),
            ("sent", "done", &[]),
            ("cancelled", "not_done", &[]),
        ] {
            let offered: Vec<&str> = offered(t, k, &message(status, effect), None, None)
                .iter()
                .map(|action| action.path)
                .collect();
            assert_eq!(offered, expected, "{status} {effect}");
        }
    }

    #[test]
    fn a_message_that_must_be_decided_first_has_no_button_that_only_refuses() {
        let (t, k) = (Texts::of(Language::English), KeyTexts::of(Language::English));
        let letter = |state: &str| -> Letter {
            let value = json!({
                "id": "01995b1c-0000-7000-8000-000000000001", "state": state, "disposition": "open", "queue": "orders", "identity": "shop",
                "idempotency_key": "order-1", "item": "order-1", "outbound_key": null, "effect": "unknown", "last_error": null,
                "failure_group": null, "attempts": 1, "max_attempts": 5, "created_at": "00", "since": "05", "in_flight_until": null,
                "asked_every_seconds": null, "asked_at": null, "replacement_of": null, "request_bytes": 2,
                "requeue_refused": "it may have taken effect", "discard_refused": null, "cursor": "c", "href": "/",
            });
            serde_json::from_value(value).expect("a letter")
        };
        for (state, expected) in [("parked", &["decide"][..]), ("dead", &["decide", "discard"])] {
            let offered = offered(t, k, &message(state, "unknown"), Some(&letter(state)), None);
            let paths: Vec<&str> = offered.iter().map(|action| action.path).collect();
            assert_eq!(paths, expected, "{state}");
        }
    }

    #[test]
    fn a_decision_says_the_name_under_which_it_is_recorded() {
        let (t, k) = (Texts::of(Language::English), KeyTexts::of(Language::English));
        for (local, said) in
            [(None, "is recorded with your name."), (Some("local"), "is recorded as “local”.")]
        {
            let offered = offered(t, k, &message("parked", "unknown"), None, local);
            assert!(offered[0].effect.ends_with(said), "{}", offered[0].effect);
        }
    }
}
