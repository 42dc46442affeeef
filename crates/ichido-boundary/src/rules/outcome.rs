//! Replay, in-flight and conflict are explicit, and a client can tell them apart (SPEC C5, C6, C8, A3, A4).

use ichido_core::ledger::limits::IN_FLIGHT_WAIT_MAX;

use super::Found;
use super::exchange::is_of_one_exchange;
use super::refusal::not_refused;
use crate::{InFlightLock, Reaction, Way};

pub(super) fn conflicts_are_refused<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    way.owners()
        .filter_map(|(file, promises, base)| {
            let what = match &promises.conflict_rule.same_key_different_fingerprint {
                None => "`same_key_different_fingerprint` is missing".to_owned(),
                Some(reaction) => not_refused(reaction)
                    .or_else(|| reaction.status.is_none().then(|| "its `status` is missing".to_owned()))?,
            };
            let pointer = format!("{base}/conflict_rule/same_key_different_fingerprint");
            Some(Found::at(file, pointer, what))
        })
        .collect()
}

pub(super) fn duplicates_are_replayed<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    way.owners()
        .filter_map(|(file, promises, base)| {
            let what = match &promises.response_replay.on_duplicate_after_success {
                None => "`on_duplicate_after_success` is missing".to_owned(),
                Some(Reaction { action: None, .. }) => "its `action` is missing".to_owned(),
                Some(reaction @ Reaction { action: Some(action), .. }) => match reaction.status {
                    _ if !reaction.replays() => format!("`{action}` is not a replay"),
                    Some(status) => format!("a replay has the first answer's status, not always {status}"),
                    None => return None,
                },
            };
            Some(Found::at(file, format!("{base}/response_replay/on_duplicate_after_success"), what))
        })
        .collect()
}

pub(super) fn running_is_said<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (file, promises, base) in way.owners() {
        let pointer = format!("{base}/response_replay/on_duplicate_while_inflight");
        let is_off = |lock: &InFlightLock| lock.enabled == Some(false);
        let unheld = match &promises.inflight_lock {
            None => Some((
                "inflight_lock",
                "`inflight_lock` is missing: nothing holds a key while its request runs",
            )),
            Some(lock) if is_off(lock) => {
                Some(("inflight_lock/enabled", "nothing holds a key while its request runs"))
            }
            Some(_) => None,
        };
        found.extend(unheld.map(|(member, what)| Found::at(file, format!("{base}/{member}"), what)));
        match promises.in_flight_wait() {
            None => {
                found.push(Found::at(file, format!("{pointer}/wait_up_to_ms"), "`wait_up_to_ms` is missing"));
            }
            Some(wait) if IN_FLIGHT_WAIT_MAX < wait => {
                let what = format!(
                    "a duplicate waits {} ms; the most is {}",
                    wait.as_millis(),
                    IN_FLIGHT_WAIT_MAX.as_millis()
                );
                found.push(Found::at(file, format!("{pointer}/wait_up_to_ms"), what));
            }
            Some(_) => (),
        }
        let on_timeout = &promises.response_replay.on_duplicate_while_inflight.on_timeout;
        if let Some(what) = not_told(on_timeout.as_ref()) {
            found.push(Found::at(file, format!("{pointer}/on_timeout"), what));
        }
    }
    found
}

/// What is wrong with the answer to a duplicate that has waited in vain.
fn not_told(on_timeout: Option<&Reaction>) -> Option<String> {
    let Some(reaction) = on_timeout else {
        return Some("`on_timeout` is missing".to_owned());
    };
    match (&reaction.action, reaction.status) {
        (Some(action), _) if !reaction.tells_of_running() => {
            Some(format!("`{action}` does not tell that the first request still runs"))
        }
        (_, None) => Some("its `status` is missing".to_owned()),
        (_, Some(status)) => {
            let named = reaction.status_at_odds()?;
            Some(format!("the action says {named}, and the status is {status}"))
        }
    }
}

pub(super) fn statuses_differ<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (file, promises, base) in way.owners() {
        let (Some(conflict), Some(running)) = (promises.conflict_status(), promises.in_flight_status())
        else {
            continue;
        };
        let on_lock = promises.inflight_lock.as_ref().and_then(|lock| lock.status_on_lock_conflict);
        if promises.profile().is_none() {
            let what =
                format!("{conflict} for a conflict and {running} while it runs are no profile's statuses");
            let pointer = format!("{base}/response_replay/on_duplicate_while_inflight/on_timeout");
            found.push(Found::at(file, pointer, what));
        } else if let Some(status) = on_lock.filter(|status| *status != running) {
            let pointer = format!("{base}/inflight_lock/status_on_lock_conflict");
            let what = if status == conflict {
                format!("{status} is also the status of a conflict")
            } else {
                format!("{status} meets a running request, and {running} one that waited for it")
            };
            found.push(Found::at(file, pointer, what));
        }
    }
    found
}

pub(super) fn replayed_headers_are_said<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    way.owners()
        .filter_map(|(file, promises, base)| {
            let what = match &promises.response_replay.response_headers_subset_allowlist {
                None => "`response_headers_subset_allowlist` is missing",
                Some(list) if list.iter().any(|header| header.eq_ignore_ascii_case("content-type")) => {
                    return None;
                }
                Some(_) => "content-type is not among them",
            };
            Some(Found::at(file, format!("{base}/response_replay/response_headers_subset_allowlist"), what))
        })
        .collect()
}

pub(super) fn replayed_headers_are_lasting<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (file, promises, base) in way.owners() {
        let list = promises.response_replay.response_headers_subset_allowlist.iter().flatten();
        for (index, header) in list.enumerate() {
            let what = match () {
                () if header.contains('*') => format!("`{header}` stands for headers that nobody named"),
                () if is_of_one_exchange(header) => format!("`{header}` belongs to the first exchange alone"),
                () => continue,
            };
            let pointer = format!("{base}/response_replay/response_headers_subset_allowlist/{index}");
            found.push(Found::at(file, pointer, what));
        }
    }
    found
}
