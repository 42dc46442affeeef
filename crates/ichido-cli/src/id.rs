//! Ids as command-line arguments.

use uuid::Uuid;

/// Parses an id that was typed or pasted.
pub(crate) fn parse(text: &str) -> Result<Uuid, String> {
    Uuid::try_parse(text).map_err(|_| {
        "not an id; copy it from a list, such as 01a1df2e-24dc-702a-8000-3798d20b2380".to_owned()
    })
}
