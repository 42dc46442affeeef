//! The rule for request ids: proxies handle `x-request-id` as the file says.
// SPEC C3, C5.

use super::Violation;
use crate::HopChain;

/// The only header that proxies read a request's id from.
const HEADER: &str = "x-request-id";

pub(super) fn is_handled<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found = Vec::new();
    for file in chain.files() {
        let Some(handling) = &file.observability.request_id else { continue };
        if let Some(other) = handling.header.as_ref().filter(|header| !header.eq_ignore_ascii_case(HEADER)) {
            let what = format!("the id is in `{other}`, but proxies use {HEADER}");
            found.push(Violation::new(file, "/observability/request_id/header", what));
        }
        if handling.generate_if_missing == Some(false) {
            let what = "proxies always create a missing id";
            found.push(Violation::new(file, "/observability/request_id/generate_if_missing", what));
        }
    }
    found
}
