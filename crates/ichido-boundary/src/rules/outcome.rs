//! Rules for outcomes: replay, in-flight and conflict are explicit, and a client can distinguish them.
// SPEC C5, C6, C8, A3, A4.

use ichido_core::ledger::limits::MAX_IN_FLIGHT_WAIT;

use super::exchange::is_of_one_exchange;
use super::refusal::not_refused;
use super::{Violation, in_guarantees};
use crate::{HopChain, Reaction};

pub(super) fn conflicts_are_refused<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    in_guarantees(chain, |guarantees| {
        let what = match &guarantees.conflict_rule.same_key_different_fingerprint {
            None => "`same_key_different_fingerprint` is missing".to_owned(),
            Some(reaction) => not_refused(reaction)
                .or_else(|| reaction.status.is_none().then(|| "`status` is missing".to_owned()))?,
        };
        Some(("conflict_rule/same_key_different_fingerprint", what))
    })
}

pub(super) fn duplicates_are_replayed<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    in_guarantees(chain, |guarantees| {
        let what = match &guarantees.response_replay.on_duplicate_after_success {
            None => "`on_duplicate_after_success` is missing".to_owned(),
            Some(Reaction { action: None, .. }) => "`action` is missing".to_owned(),
            Some(reaction @ Reaction { action: Some(action), .. }) => match reaction.status {
                _ if !reaction.replays() => format!("`{action}` is not a replay"),
                Some(status) => format!("a replay has the status of the first response, not always {status}"),
                None => return None,
            },
        };
        Some(("response_replay/on_duplicate_after_success", what))
    })
}

pub(super) fn in_flight_is_reported<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    const UNHELD: &str = "nothing locks a key while its request is in flight";
    in_guarantees(chain, |guarantees| {
        let mut found = Vec::new();
        match &guarantees.inflight_lock {
            None => found.push(("inflight_lock", format!("`inflight_lock` is missing: {UNHELD}"))),
            Some(lock) if lock.enabled == Some(false) => {
                found.push(("inflight_lock/enabled", UNHELD.to_owned()));
            }
            Some(_) => (),
        }
        let wait = match guarantees.in_flight_wait() {
            None => Some("`wait_up_to_ms` is missing".to_owned()),
            Some(wait) => (MAX_IN_FLIGHT_WAIT < wait).then(|| {
                let (wait, most) = (wait.as_millis(), MAX_IN_FLIGHT_WAIT.as_millis());
                format!("a duplicate waits {wait} ms; the maximum is {most} ms")
            }),
        };
        found.extend(wait.map(|what| ("response_replay/on_duplicate_while_inflight/wait_up_to_ms", what)));
        let on_timeout = &guarantees.response_replay.on_duplicate_while_inflight.on_timeout;
        let problem = timeout_reaction_problem(on_timeout.as_ref());
        found.extend(problem.map(|what| ("response_replay/on_duplicate_while_inflight/on_timeout", what)));
        found
    })
}

/// Returns what is wrong with the response to a duplicate that waited without an outcome.
fn timeout_reaction_problem(on_timeout: Option<&Reaction>) -> Option<String> {
    let Some(reaction) = on_timeout else {
        return Some("`on_timeout` is missing".to_owned());
    };
    match (&reaction.action, reaction.status) {
        (Some(action), _) if !reaction.reports_in_flight() => {
            Some(format!("`{action}` does not say that the first request is in flight"))
        }
        (_, None) => Some("`status` is missing".to_owned()),
        (_, Some(status)) => {
            let named = reaction.conflicting_status()?;
            Some(format!("the action says {named}, but the status is {status}"))
        }
    }
}

pub(super) fn statuses_differ<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    in_guarantees(chain, |guarantees| {
        let (conflict, running) = (guarantees.conflict_status()?, guarantees.in_flight_status()?);
        if guarantees.profile().is_none() {
            let what =
                format!("no profile has {conflict} for a conflict and {running} for a request in flight");
            return Some(("response_replay/on_duplicate_while_inflight/on_timeout", what));
        }
        let on_lock = guarantees.inflight_lock.as_ref().and_then(|lock| lock.status_on_lock_conflict);
        let status = on_lock.filter(|status| *status != running)?;
        let what = if status == conflict {
            format!("{status} is also the status of a conflict")
        } else {
            format!("a duplicate gets {status} from the lock, but {running} after waiting")
        };
        Some(("inflight_lock/status_on_lock_conflict", what))
    })
}

pub(super) fn replayed_headers_are_declared<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    in_guarantees(chain, |guarantees| {
        let what = match &guarantees.response_replay.response_headers_subset_allowlist {
            None => "`response_headers_subset_allowlist` is missing",
            Some(list) if list.iter().any(|header| header.eq_ignore_ascii_case("content-type")) => {
                return None;
            }
            Some(_) => "content-type is not listed",
        };
        Some(("response_replay/response_headers_subset_allowlist", what))
    })
}

pub(super) fn replayed_headers_are_lasting<'a>(chain: &HopChain<'a>) -> Vec<Violation<'a>> {
    in_guarantees(chain, |guarantees| {
        let list = guarantees.response_replay.response_headers_subset_allowlist.iter().flatten();
        list.enumerate().filter_map(|(index, header)| {
            let what = match () {
                () if header.contains('*') => format!("`{header}` also matches headers that are not listed"),
                () if is_of_one_exchange(header) => format!("`{header}` belongs only to the first exchange"),
                () => return None,
            };
            Some((format!("response_replay/response_headers_subset_allowlist/{index}"), what))
        })
    })
}
