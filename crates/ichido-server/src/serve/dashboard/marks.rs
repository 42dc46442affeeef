//! The shape, colour and word of each state: states differ by shape, not by colour alone.

use super::texts::Texts;

/// How a state is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateMark {
    /// The symbol in `marks.html`.
    pub(super) mark: &'static str,
    /// The class in the style sheet.
    pub(super) class: &'static str,
}

/// Returns how a state of a message is shown.
pub(super) fn of_state(state: &str) -> StateMark {
    let (mark, class) = match state {
        "queued" => ("wait", "calm"),
        "sending" => ("go", "busy"),
        "failed" => ("retry", "warn"),
        "parked" => ("ask", "doubt"),
        "sent" => ("check", "good"),
        "dead" => ("cross", "bad"),
        "cancelled" => ("slash", "quiet"),
        _ => ("dot", "quiet"),
    };
    StateMark { mark, class }
}

/// Returns how an effect is shown.
pub(super) fn of_effect(effect: &str) -> StateMark {
    let (mark, class) = match effect {
        "done" => ("check", "good"),
        "not_done" => ("none", "quiet"),
        "in_flight" => ("go", "busy"),
        _ => ("ask", "doubt"),
    };
    StateMark { mark, class }
}

/// Returns the name of a state; that of a later release as it is.
pub(super) fn state_name<'s>(t: &'static Texts, state: &'s str) -> &'s str {
    match state {
        "queued" => t.state_queued,
        "sending" => t.state_sending,
        "failed" => t.state_failed,
        "parked" => t.state_parked,
        "sent" => t.state_sent,
        "dead" => t.state_dead,
        "cancelled" => t.state_cancelled,
        other => other,
    }
}

/// Returns the name of an effect.
pub(super) fn effect_name<'s>(t: &'static Texts, effect: &'s str) -> &'s str {
    match effect {
        "done" => t.effect_done,
        "not_done" => t.effect_not_done,
        "unknown" => t.effect_unknown,
        "in_flight" => t.effect_in_flight,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ichido_core::lifecycle::StateName;

    use super::*;

    #[test]
    fn states_differ_by_shape_and_shapes_exist() {
        let symbols = include_str!("../../../templates/marks.html");
        let marks: BTreeSet<&str> = StateName::WORDS.iter().map(|state| of_state(state).mark).collect();
        assert_eq!(marks.len(), StateName::WORDS.len(), "each state has its own shape");
        assert!(!marks.contains("dot"), "each state is known");
        for mark in marks {
            assert!(symbols.contains(&format!("id=\"m-{mark}\"")), "{mark}");
        }
    }
}
