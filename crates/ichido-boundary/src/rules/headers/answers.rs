//! Rules for response headers: what a response says about itself comes back, and a page can read it.
// SPEC C5, C6.

use ichido_core::key::NAMES;
use ichido_core::ledger::Profile;

use super::{Violation, spellings_sent, stopped};
use crate::member::escape;
use crate::{Boundary, HopChain, STATUS_HEADER, Traffic};

pub(in crate::rules) fn pass<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    let mut found: Vec<_> = status_headers(chain)
        .into_iter()
        .flat_map(|header| stopped(chain, Traffic::Responses, &[header]))
        .collect();
    found.extend(echo(chain).into_iter().filter(|one| one.is_of_lists).map(|one| one.found));
    found
}

pub(in crate::rules) fn are_exposed<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    const POINTER: &str = "/cors/exposed_headers/items";
    let status_headers = status_headers(chain);
    let found = |file: &'a Boundary| {
        let exposed = &file.cors.as_ref()?.exposed_headers;
        let hidden: Vec<&str> =
            status_headers.iter().filter(|header| !exposed.names(header)).copied().collect();
        let what = format!("a page cannot read {}", hidden.join(", ")).to_ascii_lowercase();
        (!hidden.is_empty()).then(|| Violation::new(file, POINTER, what))
    };
    let mut found: Vec<_> = chain.files().filter_map(found).collect();
    found.extend(echo(chain).into_iter().filter(|one| !one.is_of_lists).map(|one| one.found));
    found
}

/// Returns the headers that tell a client what kind of response it has.
fn status_headers(chain: &HopChain<'_>) -> Vec<&'static str> {
    let profile = chain
        .owners()
        .last()
        .map_or(Profile::Ichido, |(_, guarantees, _)| guarantees.profile().unwrap_or_default());
    let numbers = profile.numbers();
    let mut headers = vec![numbers.replay_marker, "Retry-After"];
    // Only a 202 can be taken for success.
    if numbers.in_flight_status == 202 {
        headers.push(STATUS_HEADER);
    }
    headers
}

/// A location where the echo of the key gets lost.
struct Lost<'a> {
    found: Violation<'a>,
    /// Whether a list of headers loses it, rather than what a page may read.
    is_of_lists: bool,
}

/// Finds where an echoed key gets lost on its way back.
///
/// It returns in a spelling in which it was sent, which every list must pass.
fn echo<'a>(chain: &HopChain<'a>) -> Vec<Lost<'a>> {
    if !chain.files().any(|file| file.http.idempotency.echo_key == Some(true)) {
        return Vec::new();
    }
    let lists = chain.lists(Traffic::Responses).map(|(file, direction, lists)| {
        (true, file, format!("/headers/{}", escape(direction)), NAMES.map(|header| lists.passes(header)))
    });
    let exposed = chain.files().filter_map(|file| {
        let exposed = &file.cors.as_ref()?.exposed_headers;
        let pointer = "/cors/exposed_headers/items".to_owned();
        Some((false, file, pointer, NAMES.map(|header| exposed.names(header))))
    });
    let mut left = spellings_sent(chain);
    let mut lost = Vec::new();
    for (is_of_lists, file, pointer, passes) in lists.chain(exposed) {
        let still = [left[0] && passes[0], left[1] && passes[1]];
        if still.contains(&true) {
            left = still;
            continue;
        }
        let header = if left[0] { NAMES[0] } else { NAMES[1] };
        let what = format!("the key is echoed, but {header} does not pass").to_ascii_lowercase();
        lost.push(Lost { found: Violation::new(file, pointer, what), is_of_lists });
    }
    lost
}
