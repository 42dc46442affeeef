//! Replay, in-flight and conflict are explicit, and a client can tell them apart (SPEC C5, C6, C8, A3, A4).

use super::{Found, Rule, declare};
use crate::boundary::Way;
use crate::ledger::limits::IN_FLIGHT_WAIT_MAX;

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
        why: "A client that lost the answer asks again to learn it. A refusal or a fresh run tells it something else than \
              what happened.",
        mend: "Say `\"on_duplicate_after_success\": {\"action\": \"replay\"}`.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/response_replay/on_duplicate_after_success",
        check: duplicates_are_replayed,
    },
    declare! {
        "ICH-B042", Error, "C6, C8",
        "A duplicate of a running request waits for a stated time and is then told so",
        why: "What is not said is decided by whatever the adapter happens to do: run it a second time, or hang until \
              somebody's timeout.",
        mend: "Say `inflight_lock`, `wait_up_to_ms` (at most 60000) and `on_timeout` with its status: 202, or 409 in the \
               IETF profile.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight",
        check: running_is_said,
    },
    declare! {
        "ICH-B043", Error, "A4, C6",
        "A conflict and a running request have statuses that a client can tell apart",
        why: "After the one it must stop, after the other it must come back. If both are 409 it guesses, and retries what is \
              refused for good or gives up on what is about to succeed.",
        mend: "Use 409 for a conflict and 202 while it runs; or 422 and 409 (IETF), or 400 and 409 (Stripe).",
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
        why: "An old `Set-Cookie` brings back an old session, an old `x-request-id` sends people to the wrong log lines, and \
              hop-by-hop and CORS headers are the connection's and the gateway's to say.",
        mend: "Take it out of `response_headers_subset_allowlist`.",
        example: "gateway_to_adapter.json" at "/http/idempotency/enabled/response_replay/response_headers_subset_allowlist",
        check: replayed_headers_are_lasting,
    },
];

/// Headers of one exchange: cookies, dates, what belongs to a connection, ids of a request.
const OF_ONE_EXCHANGE: [&str; 18] = [
    "age",
    "connection",
    "date",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "request-id",
    "set-cookie",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-correlation-id",
    "x-request-id",
    "x-trace-id",
    "*",
];

fn conflicts_are_refused<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    way.owners()
        .filter_map(|(file, promises, base)| {
            let what = match &promises.conflict_rule.same_key_different_fingerprint {
                None => "it is not said",
                Some(reaction) if !reaction.refuses() => "it is not refused",
                Some(reaction) if reaction.status.is_none() => "its status is not said",
                Some(_) => return None,
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
                None => "it is not said".to_owned(),
                Some(reaction) if reaction.replays() => return None,
                Some(reaction) => match &reaction.action {
                    Some(action) => format!("`{action}` is not a replay"),
                    None => "the action is not said".to_owned(),
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
        if promises.inflight_lock.is_none() {
            let what = "it is not said what holds a key while its request runs";
            found.push(Found::at(file, format!("{base}/inflight_lock"), what));
        }
        match promises.in_flight_wait() {
            None => {
                found.push(Found::at(
                    file,
                    format!("{pointer}/wait_up_to_ms"),
                    "how long a duplicate waits is not said",
                ));
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
        if on_timeout.as_ref().is_none_or(|reaction| reaction.status.is_none()) {
            let what = "the status after waiting is not said";
            found.push(Found::at(file, format!("{pointer}/on_timeout"), what));
        }
    }
    found
}

fn statuses_differ<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (file, promises, base) in way.owners() {
        let (Some(conflict), Some(running)) = (promises.conflict_status(), promises.in_flight_status())
        else {
            continue;
        };
        if promises.profile().is_none() {
            let what =
                format!("{conflict} for a conflict and {running} while it runs are no profile's statuses");
            let pointer = format!("{base}/response_replay/on_duplicate_while_inflight/on_timeout");
            found.push(Found::at(file, pointer, what));
        } else if promises.inflight_lock.as_ref().and_then(|lock| lock.status_on_lock_conflict)
            == Some(conflict)
        {
            let pointer = format!("{base}/inflight_lock/status_on_lock_conflict");
            found.push(Found::at(file, pointer, format!("{conflict} is also the status of a conflict")));
        }
    }
    found
}

fn replayed_headers_are_said<'a>(way: &Way<'a>) -> Vec<Found<'a>> {
    way.owners()
        .filter_map(|(file, promises, base)| {
            let what = match &promises.response_replay.response_headers_subset_allowlist {
                None => "it is not said",
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
        let list = promises.response_replay.response_headers_subset_allowlist.iter().flatten().enumerate();
        let passing = list.filter(|(_, header)| {
            let header = header.to_ascii_lowercase();
            OF_ONE_EXCHANGE.contains(&header.as_str()) || header.starts_with("access-control-")
        });
        for (index, header) in passing {
            let pointer = format!("{base}/response_replay/response_headers_subset_allowlist/{index}");
            found.push(Found::at(file, pointer, format!("`{header}` belongs to the first exchange alone")));
        }
    }
    found
}
