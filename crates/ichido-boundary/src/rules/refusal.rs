//! What is refused is refused in words and by its status.
// SPEC A8, C8.

use crate::Reaction;

/// Statuses below 500 after which a client tries again by itself.
// SPEC A8.
const REPEATED: [u16; 3] = [408, 425, 429];

/// Why what becomes of a request is not a refusal for good; `None` where it is one.
///
/// A status that is missing is not judged here.
pub(super) fn not_refused(reaction: &Reaction) -> Option<String> {
    match (&reaction.action, reaction.status) {
        (Some(action), _) if !reaction.refuses() => Some(format!("`{action}` is not a refusal")),
        (_, Some(status)) if !(400..500).contains(&status) => {
            Some(format!("it is answered {status}, which is not a refusal"))
        }
        (_, Some(status)) if REPEATED.contains(&status) => {
            Some(format!("it is answered {status}, after which clients try again"))
        }
        (_, Some(status)) => {
            let named = reaction.status_at_odds()?;
            Some(format!("the action says {named}, and the status is {status}"))
        }
        (Some(_), None) => None,
        (None, None) => Some("its `action` and its `status` are missing".to_owned()),
    }
}
