//! Changes to what pages on other origins may send and read.

use super::{Loosening, Pair, list, loosening, lost_names};
use crate::Items;

/// Compares the CORS lists of two versions.
///
/// If one version has no `cors`, only the page's own origin calls in it, and there is nothing to compare.
pub(super) fn compare(Pair { before, after, .. }: &Pair<'_>) -> Vec<Loosening> {
    let (Some(old), Some(new)) = (&before.cors, &after.cors) else {
        return Vec::new();
    };
    let mut found = lists("ICH-B011", "allowed_headers", "sent", &old.allowed_headers, &new.allowed_headers);
    found.extend(lists("ICH-B017", "exposed_headers", "read", &old.exposed_headers, &new.exposed_headers));
    found
}

fn lists(rule: &'static str, member: &str, done: &str, old: &Items, new: &Items) -> Vec<Loosening> {
    let (old, new) = (list(old.items.as_ref()), list(new.items.as_ref()));
    let lost = lost_names(old, new).into_iter();
    let lost =
        lost.map(|header| format!("`{header}`: could be {done} by pages on other origins, now cannot"));
    // Adding a header name is what the list is for; a star is not a name.
    let wide = lost_names(new, old).into_iter().filter(|header| header.contains('*'));
    let wide =
        wide.map(|header| format!("`{header}`: was not in the list, now is, and matches every header"));
    lost.chain(wide).map(|what| loosening(rule, format!("/cors/{member}/items"), what)).collect()
}
