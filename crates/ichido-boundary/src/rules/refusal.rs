//! Rules for refusals: the words and the status agree that it is one.
// SPEC A8, C8.

use crate::Reaction;

/// Statuses below 500 after which a client retries automatically.
// SPEC A8.
const REPEATED: [u16; 3] = [408, 425, 429];

/// Returns why a reaction is not a final refusal; `None` if it is one.
///
/// A missing status is not judged here.
pub(super) fn not_refused(reaction: &Reaction) -> Option<String> {
    match (&reaction.action, reaction.status) {
        (Some(action), _) if !reaction.refuses() => Some(format!("`{action}` is not a refusal")),
        (_, Some(status)) if !(400..500).contains(&status) => {
            Some(format!("status {status} is not a refusal"))
        }
        (_, Some(status)) if REPEATED.contains(&status) => {
            Some(format!("clients retry after status {status}"))
        }
        (_, Some(status)) => {
            let named = reaction.conflicting_status()?;
            Some(format!("the action says {named}, but the status is {status}"))
        }
        (Some(_), None) => None,
        (None, None) => Some("`action` and `status` are missing".to_owned()),
    }
}
