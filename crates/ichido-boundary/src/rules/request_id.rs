//! The rule for request ids: proxies handle `x-request-id` as the file says.
// SPEC C3, C5.

use super::Violation;
use crate::{Boundary, HopChain};

/// The only header that proxies read a request's id from.
const HEADER: &str = "x-request-id";

pub(super) fn is_handled<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let found = |file: &'a Boundary| {
        let handling = file.observability.request_id.as_ref()?;
        let other = handling.header.as_ref().filter(|header| !header.eq_ignore_ascii_case(HEADER));
        let (member, what) = match other {
            Some(other) => ("header", format!("the id is in `{other}`, but proxies use {HEADER}")),
            None if handling.generate_if_missing == Some(false) => {
                ("generate_if_missing", "proxies always create a missing id".to_owned())
            }
            None => return None,
        };
        Some(Violation::new(file, format!("/observability/request_id/{member}"), what))
    };
    chain.files().filter_map(found).collect()
}
