//! Replay, in-flight and conflict are explicit, and a client can tell them apart (SPEC C5, C6, C8, A3, A4).

use ichido_core::ledger::limits::IN_FLIGHT_WAIT_MAX;

use super::exchange::is_of_one_exchange;
use super::refusal::not_refused;
use super::{Found, Rule, declare};
use crate::{InFlightLock, Reaction, Way};

pub(super) const RULES: &[Rule] = &[
    declare! {
        "ICH-B040", Error, "A4, C8",
        "Another request under a used key is refused",
        why: "Answering it from memory would hide that its work was never done; running it would make the key worthless.",
        mend: "Say `\"same_key_different_fingerprint\": {\"action\": \"reject\", \"status\": 409}` (422 in the IETF profile).",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/conflict_rule",
        check: conflicts_are_refused,
    },
    declare! {
        "ICH-B041", Error, "A3, C5, C8",
        "A duplicate of a finished request gets the first answer again",
        why: "A client that lost the answer asks again to learn it. A refusal, a fresh run or another status tells it \
              something else than what happened.",
        mend: "Say `\"on_duplicate_after_success\": {\"action\": \"replay\"}`, without a status.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/response_replay/on_duplicate_after_success",
        check: duplicates_are_replayed,
    },
    declare! {
        "ICH-B042", Error, "C6, C8",
        "A duplicate of a running request waits for a stated time and is then told so",
        why: "What is not said is decided by whatever the adapter happens to do: run it a second time, or hang until \
              somebody's timeout.",
        mend: "Say `inflight_lock`, `wait_up_to_ms` (at most 60000) and `on_timeout`: `processing` with 202, or `reject` \
               with 409 in the IETF profile.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight",
        check: running_is_said,
    },
    declare! {
        "ICH-B043", Error, "A4, C6",
        "A conflict and a running request are answered as one profile has it",
        why: "After the one it must stop, after the other it must come back. If both are 409 it guesses, and retries what is \
              refused for good or gives up on what is about to succeed. A duplicate that meets the lock is answered like one that \
              waited in vain; as a 200 it would be taken for the outcome.",
        mend: "Use 409 for a conflict and 202 while it runs; or 422 and 409 (IETF), or 400 and 409 (Stripe). \
               `status_on_lock_conflict` is the same as the status after waiting.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight",
        check: statuses_differ,
    },
    declare! {
        "ICH-B044", Error, "C5, C8",
        "It is said which headers of the first answer a replay repeats",
        why: "A replay without `Location` or `Content-Type` is another answer than the first, and clients break on the second \
              try only.",
        mend: "Name them in `response_headers_subset_allowlist`, `content-type` among them.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/response_replay/response_headers_subset_allowlist",
        check: replayed_headers_are_said,
    },
    declare! {
        "ICH-B045", Error, "C5",
        "A replay repeats no header that belongs to the first exchange alone",
        why: "An old `Set-Cookie` brings back an old session, an old `WWW-Authenticate` an old challenge, an old \
              `x-request-id` sends people to the wrong log lines, and hop-by-hop and CORS headers are the connection's and \
              the gateway's to say. A `*` takes in headers that come tomorrow.",
        mend: "Take it out of `response_headers_subset_allowlist`; name each header that is needed.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/response_replay/response_headers_subset_allowlist",
        check: replayed_headers_are_lasting,
    },
];

fn conflicts_are_refused<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
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

fn duplicates_are_replayed<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
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

fn running_is_said<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
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

fn statuses_differ<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
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

fn replayed_headers_are_said<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
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

fn replayed_headers_are_lasting<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
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
