use std::borrow::Cow;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::key::IdempotencyKey;
use crate::ledger::Profile;
use Advice::{Accept, GiveUp, Reconcile, Retry, RetryAnswer};
use Effect::{Done, NotDone, Unknown};

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

const fn answer(status: u16) -> HttpResponse<'static> {
    HttpResponse { status, headers: &[], body: b"", echo: Echo::Absent }
}

fn judge(table: &VerdictTable, seen: AttemptResponse<'_>) -> (&'static str, Effect, Advice) {
    let verdict = table.judge(&seen, NOW);
    (verdict.code.map_or("-", ErrorCode::as_str), verdict.effect, verdict.advice)
}

fn assert_statuses(table: &VerdictTable, expected: &[(u16, &str, Effect, Advice)]) {
    for (status, code, effect, advice) in expected {
        assert_eq!(
            judge(table, AttemptResponse::Http(answer(*status))),
            (*code, *effect, *advice),
            "status {status}"
        );
    }
}

#[test]
fn outbox_distinguishes_statuses() {
    assert_statuses(
        &VerdictTable::http(),
        &[
            (200, "-", Done, Accept),
            (201, "-", Done, Accept),
            (202, "-", Done, Accept),
            (204, "-", Done, Accept),
            (301, "REDIRECTED", Unknown, GiveUp),
            (303, "REDIRECTED", Unknown, GiveUp),
            (307, "REDIRECTED", NotDone, GiveUp),
            (400, "BAD_REQUEST", NotDone, GiveUp),
            (401, "UNAUTHORIZED", NotDone, GiveUp),
            (403, "UNAUTHORIZED", NotDone, GiveUp),
            (404, "BAD_REQUEST", NotDone, GiveUp),
            (408, "NETWORK_TIMEOUT", Unknown, Retry),
            (409, "BAD_REQUEST", Unknown, GiveUp),
            (410, "GONE", NotDone, GiveUp),
            (413, "BAD_REQUEST", NotDone, GiveUp),
            (422, "BAD_REQUEST", NotDone, GiveUp),
            (425, "NETWORK_TIMEOUT", NotDone, Retry),
            (429, "RATE_LIMITED", NotDone, Retry),
            (500, "BROKER_5XX", Unknown, Retry),
            (503, "BROKER_5XX", Unknown, Retry),
            (599, "BROKER_5XX", Unknown, Retry),
            (0, "UNKNOWN", Unknown, Retry),
            (999, "UNKNOWN", Unknown, Retry),
        ],
    );
}

#[test]
fn a_client_retries_5xx_408_and_429_and_no_other_4xx() {
    let retried: Vec<u16> = (200..=999)
        .filter(|status| {
            VerdictTable::client().judge(&AttemptResponse::Http(answer(*status)), NOW).advice == Retry
        })
        .collect();
    let expected: Vec<u16> = [408, 429].into_iter().chain(500..=599).collect();
    assert_eq!(retried, expected);
    assert_eq!(
        judge(&VerdictTable::client(), AttemptResponse::Network(NetworkFault::Broken)),
        ("NETWORK_TIMEOUT", Unknown, Retry)
    );
}

#[test]
fn client_profiles_differ_only_in_key_responses() {
    for status in 0..=999 {
        let judged = |profile: Profile| judge(&profile.client_table(), AttemptResponse::Http(answer(status)));
        assert_eq!(Profile::Ichido.client_table(), VerdictTable::client());
        assert_eq!(judged(Profile::Stripe), judged(Profile::Ichido), "{status}");
        match status {
            409 => assert_eq!(judged(Profile::Ietf), ("UNKNOWN", Unknown, Retry)),
            422 => assert_eq!(judged(Profile::Ietf), ("KEY_CONFLICT", Unknown, GiveUp)),
            _ => assert_eq!(judged(Profile::Ietf), judged(Profile::Ichido), "{status}"),
        }
    }
}

#[test]
fn client_distinguishes_key_in_flight_from_key_conflict() {
    use Profile::{Ichido, Ietf, Stripe};
    let in_flight = ("IN_PROGRESS", Unknown, Retry);
    let conflict = ("KEY_CONFLICT", Unknown, GiveUp);
    let refused = ("BAD_REQUEST", Unknown, GiveUp);
    let in_use = r#"{"error":{"type":"invalid_request_error","code":"idempotency_key_in_use"}}"#;
    for (profile, status, body, expected) in [
        (Ichido, 409, r#"{"code":"key_conflict"}"#, conflict),
        (Ichido, 409, r#"{"code":"outcome_unknown"}"#, refused),
        (Ichido, 409, in_use, refused),
        (Ietf, 409, r#"{"code":"key_in_flight"}"#, in_flight),
        (Ietf, 409, r#"{"code":"outcome_unknown"}"#, refused),
        (Ietf, 409, r#"{"code":"response_not_stored"}"#, refused),
        (Ietf, 422, r#"{"code":"key_conflict"}"#, conflict),
        (Ietf, 422, r#"{"code":"key_mismatch"}"#, ("BAD_REQUEST", NotDone, GiveUp)),
        (Stripe, 409, in_use, in_flight),
        (Stripe, 409, r#"{"code":"key_in_flight"}"#, in_flight),
        (Stripe, 409, r#"{"error":{"type":"invalid_request_error"}}"#, refused),
        (Stripe, 400, r#"{"error":{"type":"idempotency_error"}}"#, conflict),
        (Stripe, 400, r#"{"code":"key_conflict"}"#, conflict),
        (Stripe, 400, r#"{"error":{"type":"card_error"}}"#, ("BAD_REQUEST", NotDone, GiveUp)),
    ] {
        let seen = AttemptResponse::Http(HttpResponse { body: body.as_bytes(), ..answer(status) });
        assert_eq!(judge(&profile.client_table(), seen), expected, "{profile:?} {status} {body}");
    }
    let headers: &[(&str, &[u8])] = &[("Retry-After", b"1")];
    let come_back = AttemptResponse::Http(HttpResponse { headers, ..answer(409) });
    assert_eq!(judge(&VerdictTable::client_ietf(), come_back), in_flight, "no last word");
    assert_eq!(judge(&VerdictTable::client(), come_back), refused, "409 means something else there");
}

#[test]
fn unsent_is_not_done_and_lost_is_unknown() {
    use NetworkFault::{
        Broken, ClosedUnused, ConnectRefused, ConnectTimeout, NameNotResolved, NotSent, ResponseCut,
        StreamRefused, Timeout, Tls,
    };
    for table in [VerdictTable::http(), VerdictTable::client(), VerdictTable::llm()] {
        for fault in [NameNotResolved, ConnectRefused, Tls] {
            assert_eq!(
                judge(&table, AttemptResponse::Network(fault)),
                ("CONNECT_FAILED", NotDone, Retry),
                "{fault:?}"
            );
        }
        for fault in [ConnectTimeout, StreamRefused, NotSent, ClosedUnused] {
            assert_eq!(
                judge(&table, AttemptResponse::Network(fault)),
                ("NETWORK_TIMEOUT", NotDone, Retry),
                "{fault:?}"
            );
        }
        for fault in [Timeout, Broken, ResponseCut] {
            assert_eq!(
                judge(&table, AttemptResponse::Network(fault)),
                ("NETWORK_TIMEOUT", Unknown, Retry),
                "{fault:?}"
            );
        }
    }
}

#[test]
fn in_flight_202_is_not_a_success() {
    let headers: &[(&str, &[u8])] = &[("Idempotency-Status", b" Processing "), ("Retry-After", b"3")];
    let seen = AttemptResponse::Http(HttpResponse { headers, ..answer(202) });
    let any_2xx =
        VerdictRow { when: RowMatch::StatusFrom(200, 299), code: None, effect: Done, advice: Accept };
    let own = VerdictTable { own_rows: vec![any_2xx], ..VerdictTable::http() };
    for table in [VerdictTable::http(), VerdictTable::client(), VerdictTable::llm(), own] {
        assert_eq!(judge(&table, seen), ("IN_PROGRESS", Unknown, Retry));
        assert_eq!(table.judge(&seen, NOW).hint, Some(Duration::from_secs(3)));
    }
    let headers: &[(&str, &[u8])] = &[("Idempotency-Status", b"done")];
    assert_eq!(
        judge(&VerdictTable::http(), AttemptResponse::Http(HttpResponse { headers, ..answer(202) })),
        ("-", Done, Accept)
    );
}

/// A gateway's status, a lost response and a response about another key leave the call in transit.
#[test]
fn complete_answer_of_the_receiver_ends_the_call() {
    let answer = |status, echo| AttemptResponse::Http(HttpResponse { status, headers: &[], body: b"", echo });
    let table = VerdictTable::http();
    let is_answered = |seen: AttemptResponse<'_>| table.judge(&seen, NOW).is_answered();
    for status in [200, 302, 400, 409, 500, 501, 505] {
        assert!(is_answered(answer(status, Echo::Absent)), "{status}");
    }
    for status in [100, 408, 444, 460, 499, 502, 503, 504, 520, 524, 530, 561, 598, 599] {
        assert!(!is_answered(answer(status, Echo::Absent)), "{status}");
    }
    assert!(!is_answered(answer(500, Echo::Other)), "not the answer to our call");
    assert!(!is_answered(AttemptResponse::Network(NetworkFault::ResponseCut)));
    assert!(!is_answered(AttemptResponse::Network(NetworkFault::Timeout)));
    let processing: &[(&str, &[u8])] = &[("Idempotency-Status", b"processing")];
    let in_flight = HttpResponse { status: 202, headers: processing, body: b"", echo: Echo::Absent };
    assert!(!is_answered(AttemptResponse::Http(in_flight)), "an earlier call still runs");
}

#[test]
fn a_held_key_ends_the_retries_of_clients_and_hops() {
    let headers: &[(&str, &[u8])] = &[("Idempotency-Status", b" Unknown ")];
    let held = AttemptResponse::Http(HttpResponse { headers, ..answer(503) });
    for table in [VerdictTable::client(), VerdictTable::client_ietf(), VerdictTable::client_stripe()] {
        assert_eq!(judge(&table, held), ("BROKER_5XX", Unknown, GiveUp));
    }
    assert!(!hop_may_repeat("POST", true, &held));
    assert!(hop_may_repeat("POST", true, &AttemptResponse::Http(answer(503))));
    // The outbox has its own guarantee for a destination, and its own record of what it did.
    assert_eq!(judge(&VerdictTable::http(), held), ("BROKER_5XX", Unknown, Retry));
}

/// A row as the docs of its table show it.
fn doc_row(row: &VerdictRow) -> String {
    let when = match &row.when {
        RowMatch::Status(status) => status.to_string(),
        RowMatch::StatusFrom(first, last) => format!("{first} to {last}"),
        RowMatch::Name(name) => format!("`{name}`"),
        RowMatch::StatusAndName(status, name) => format!("{status}, `{name}`"),
        RowMatch::StatusAndWait(status) => format!("{status}, with a time to wait"),
        RowMatch::InFlight => "202, in flight".to_owned(),
        RowMatch::Held => "5xx, key held".to_owned(),
        RowMatch::NotConnected => "not connected".to_owned(),
        RowMatch::NeverSent => "never sent".to_owned(),
        RowMatch::Lost => "lost".to_owned(),
        RowMatch::UnusableAnswer => "unusable answer".to_owned(),
        RowMatch::Anything => "anything else".to_owned(),
    };
    let code = row.code.map_or("–".to_owned(), |code| format!("`{code}`"));
    let effect = match row.effect {
        NotDone => "not done",
        Done => "done",
        Unknown => "unknown",
    };
    let advice = match row.advice {
        Accept => "accept",
        Advice::AcceptAsProcessed => "accept as processed",
        Retry => "retry",
        RetryAnswer => "ask again for an answer",
        GiveUp => "give up",
        Reconcile => "ask after it",
    };
    format!("    /// | {when} | {code} | {effect} | {advice} |\n")
}

#[test]
fn the_docs_of_a_table_show_its_rows() {
    let source = include_str!("tables.rs");
    for (constructor, rows) in [
        ("http", [tables::IN_FLIGHT, tables::HTTP].concat()),
        ("client", tables::CLIENT.to_vec()),
        ("client_ietf", tables::IETF.to_vec()),
        ("client_stripe", tables::STRIPE.to_vec()),
        ("llm", [tables::IN_FLIGHT, tables::LLM].concat()),
    ] {
        let rows: String = rows.iter().map(doc_row).collect();
        let expected = format!("    /// |---|---|---|---|\n{rows}    pub const fn {constructor}() ");
        assert!(source.contains(&expected), "the docs of Table::{constructor} must read:\n{expected}");
    }
}

#[test]
fn pace_signal_is_up_throttled_or_failed() {
    use PaceReport::{Failure, Success, Throttled};
    let pace_report = |table: &VerdictTable, seen| table.judge(&seen, NOW).pace_report();
    for (status, expected) in [
        (200, Some(Success)),
        (202, Some(Success)),
        (303, Some(Success)),
        (400, Some(Success)),
        (401, Some(Success)),
        (408, Some(Success)),
        (409, Some(Success)),
        (429, Some(Throttled)),
        (500, Some(Failure)),
        (503, Some(Failure)),
        (0, None),
        (999, None),
    ] {
        for table in [VerdictTable::http(), VerdictTable::client(), VerdictTable::llm()] {
            assert_eq!(pace_report(&table, AttemptResponse::Http(answer(status))), expected, "{status}");
        }
        let others = AttemptResponse::Http(HttpResponse { echo: Echo::Other, ..answer(status) });
        assert_eq!(pace_report(&VerdictTable::http(), others), expected, "{status} about another key");
    }
    let llm = VerdictTable::llm();
    for (seen, expected) in [
        (AttemptResponse::Http(answer(529)), Some(Throttled)),
        (AttemptResponse::Named("ThrottlingException"), Some(Throttled)),
        (AttemptResponse::Named("ServiceUnavailableException"), Some(Failure)),
        (AttemptResponse::Named("ModelTimeoutException"), Some(Failure)),
        (AttemptResponse::Named("ValidationException"), Some(Success)),
        (AttemptResponse::Named("ServiceQuotaExceededException"), Some(Success)),
        (AttemptResponse::Named("SomethingNewException"), None),
        (AttemptResponse::UnusableAnswer, Some(Success)),
        (AttemptResponse::Network(NetworkFault::ConnectRefused), Some(Failure)),
        (AttemptResponse::Network(NetworkFault::Timeout), Some(Failure)),
        (AttemptResponse::Network(NetworkFault::NotSent), None),
        (AttemptResponse::Network(NetworkFault::ClosedUnused), None),
    ] {
        assert_eq!(pace_report(&llm, seen), expected, "{seen:?}");
    }
}

fn broker() -> VerdictTable {
    let row = |name: &'static str, code, effect, advice| VerdictRow {
        when: RowMatch::StatusAndName(409, Cow::Borrowed(name)),
        code: Some(code),
        effect,
        advice,
    };
    VerdictTable {
        own_rows: vec![
            row("already_processed", ErrorCode::ConflictProcessed, Done, Advice::AcceptAsProcessed),
            row("in_progress", ErrorCode::InProgress, Unknown, Retry),
        ],
        expects_echo: true,
        ..VerdictTable::http()
    }
}

#[test]
fn a_409_has_three_meanings() {
    let conflict = |body, echo| AttemptResponse::Http(HttpResponse { body, echo, ..answer(409) });
    let processed = br#"{"code":"already_processed"}"#;
    assert_eq!(
        judge(&broker(), conflict(processed, Echo::Same)),
        ("CONFLICT_PROCESSED", Done, Advice::AcceptAsProcessed)
    );
    let untied = judge(&broker(), conflict(processed, Echo::Absent));
    assert_eq!(untied, ("KEY_NOT_ECHOED", Unknown, GiveUp), "not tied to our key");
    let named = VerdictRow { when: RowMatch::Name("Duplicate".into()), ..broker().own_rows[0].clone() };
    let table = VerdictTable { own_rows: vec![named], ..VerdictTable::http() };
    assert_eq!(
        judge(&table, AttemptResponse::Named("Duplicate")),
        ("KEY_NOT_ECHOED", Unknown, GiveUp),
        "a name ties nothing"
    );
    let in_progress = br#"{"error":{"code":"in_progress"}}"#;
    assert_eq!(judge(&broker(), conflict(in_progress, Echo::Same)), ("IN_PROGRESS", Unknown, Retry));
    for other in [b"".as_slice(), b"{}", b"already_processed", br#"{"code":"price_moved"}"#, b"{\"code\":"] {
        assert_eq!(judge(&broker(), conflict(other, Echo::Same)), ("BAD_REQUEST", Unknown, GiveUp));
    }
}

#[test]
fn a_success_that_does_not_carry_our_key_is_unknown() {
    let created = |echo| AttemptResponse::Http(HttpResponse { echo, ..answer(201) });
    assert_eq!(judge(&broker(), created(Echo::Same)), ("-", Done, Accept));
    for echo in [Echo::Absent, Echo::Other] {
        assert_eq!(judge(&broker(), created(echo)), ("KEY_NOT_ECHOED", Unknown, Reconcile), "{echo:?}");
    }
    assert_eq!(
        judge(&VerdictTable::http(), created(Echo::Absent)),
        ("-", Done, Accept),
        "nothing was promised"
    );
    assert_eq!(
        judge(&VerdictTable::http(), created(Echo::Other)),
        ("KEY_NOT_ECHOED", Unknown, Reconcile),
        "somebody else's answer"
    );
}

#[test]
fn an_echo_is_ours_in_either_spelling_under_either_name() {
    let ours = IdempotencyKey::parse("k-1").unwrap();
    for (headers, expected) in [
        (vec![], Echo::Absent),
        (vec![("Content-Type", "text/plain")], Echo::Absent),
        (vec![("idempotency-key", "k-1")], Echo::Same),
        (vec![("X-Idempotency-Key", "\"k-1\"")], Echo::Same),
        (vec![("Idempotency-Key", "K-1")], Echo::Other),
        (vec![("Idempotency-Key", "k 1")], Echo::Other),
        (vec![("Idempotency-Key", "k-1"), ("X-Idempotency-Key", "k-2")], Echo::Other),
    ] {
        assert_eq!(Echo::read(&ours, headers.iter().copied()), expected, "{headers:?}");
    }
}

#[test]
fn response_for_another_key_proves_nothing() {
    for status in [201, 202, 400, 409, 429, 500] {
        let seen = AttemptResponse::Http(HttpResponse { echo: Echo::Other, ..answer(status) });
        for table in [VerdictTable::http(), broker(), VerdictTable::llm()] {
            assert_eq!(judge(&table, seen), ("KEY_NOT_ECHOED", Unknown, Reconcile), "{status}");
            assert_eq!(table.judge(&seen, NOW).next(Safety::Keyed, NotDone), NextStep::Reconcile, "{status}");
        }
    }
}

#[test]
fn bedrock_errors_are_distinguished_by_name() {
    let table = [
        ("ThrottlingException", "RATE_LIMITED", NotDone, Retry),
        ("ServiceUnavailableException", "BROKER_5XX", Unknown, Retry),
        ("ModelNotReadyException", "BROKER_5XX", NotDone, Retry),
        ("InternalServerException", "BROKER_5XX", Unknown, Retry),
        ("ModelTimeoutException", "NETWORK_TIMEOUT", Unknown, GiveUp),
        ("ModelErrorException", "BROKER_5XX", Unknown, GiveUp),
        ("ServiceQuotaExceededException", "QUOTA_SPENT", NotDone, GiveUp),
        ("ValidationException", "BAD_REQUEST", NotDone, GiveUp),
        ("ResourceNotFoundException", "BAD_REQUEST", NotDone, GiveUp),
        ("AccessDeniedException", "UNAUTHORIZED", NotDone, GiveUp),
        ("SomethingNewException", "UNKNOWN", Unknown, GiveUp),
    ];
    for (name, code, effect, advice) in table {
        assert_eq!(
            judge(&VerdictTable::llm(), AttemptResponse::Named(name)),
            (code, effect, advice),
            "{name}"
        );
    }
}

#[test]
fn a_services_name_for_the_error_wins_over_the_status() {
    let header: &[(&str, &[u8])] =
        &[("X-Amzn-ErrorType", b"ValidationException:http://internal.amazon.com/")];
    let seen = AttemptResponse::Http(HttpResponse { headers: header, ..answer(429) });
    assert_eq!(judge(&VerdictTable::llm(), seen), ("BAD_REQUEST", NotDone, GiveUp));
    let body = br#"{"__type":"com.amazon.coral#ThrottlingException","message":"slow"}"#;
    let seen = AttemptResponse::Http(HttpResponse { body, ..answer(400) });
    assert_eq!(judge(&VerdictTable::llm(), seen), ("RATE_LIMITED", NotDone, Retry));
}

#[test]
fn most_specific_error_name_is_used() {
    let name = |status, body| HttpResponse { body, ..answer(status) }.error_name();
    assert_eq!(
        name(429, br#"{"error":{"type":"requests","code":"rate_limit_exceeded"}}"#).as_deref(),
        Some("rate_limit_exceeded")
    );
    assert_eq!(
        name(529, br#"{"type":"error","error":{"type":"overloaded_error"}}"#).as_deref(),
        Some("overloaded_error")
    );
    assert_eq!(name(502, b"<html>"), None);
    assert_eq!(name(200, br#"{"code":"fine"}"#), None, "no error");
}

#[test]
fn both_meanings_of_429_are_distinguished() {
    let slow_down: &[&[u8]] = &[
        br#"{"error":{"message":"slow","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
        br#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"},"request_id":"r"}"#,
        b"",
        b"Too Many Requests",
    ];
    for body in slow_down {
        let seen = AttemptResponse::Http(HttpResponse { body, ..answer(429) });
        assert_eq!(judge(&VerdictTable::llm(), seen), ("RATE_LIMITED", NotDone, Retry));
    }
    let spent: &[&[u8]] = &[
        br#"{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        br#"{"error":{"type":"insufficient_quota","code":null}}"#,
        br#"{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
    ];
    for body in spent {
        let seen = AttemptResponse::Http(HttpResponse { body, ..answer(429) });
        assert_eq!(judge(&VerdictTable::llm(), seen), ("QUOTA_SPENT", NotDone, GiveUp));
    }
}

#[test]
fn model_is_retried_when_throttled_or_down_only() {
    assert_statuses(
        &VerdictTable::llm(),
        &[
            (200, "-", Done, Accept),
            (400, "BAD_REQUEST", NotDone, GiveUp),
            (401, "UNAUTHORIZED", NotDone, GiveUp),
            (402, "QUOTA_SPENT", NotDone, GiveUp),
            (403, "UNAUTHORIZED", NotDone, GiveUp),
            (404, "BAD_REQUEST", NotDone, GiveUp),
            (429, "RATE_LIMITED", NotDone, Retry),
            (500, "BROKER_5XX", Unknown, Retry),
            (503, "BROKER_5XX", Unknown, Retry),
            (529, "RATE_LIMITED", NotDone, Retry),
            (418, "BAD_REQUEST", NotDone, GiveUp),
            (501, "UNKNOWN", Unknown, GiveUp),
            (999, "UNKNOWN", Unknown, GiveUp),
        ],
    );
    assert_eq!(
        judge(&VerdictTable::llm(), AttemptResponse::UnusableAnswer),
        ("ANSWER_UNUSABLE", Done, RetryAnswer)
    );
}

#[test]
fn destination_rows_come_first() {
    let rejects_before_work = VerdictRow {
        when: RowMatch::Status(503),
        code: Some(ErrorCode::Broker5xx),
        effect: NotDone,
        advice: Retry,
    };
    let table = VerdictTable { own_rows: vec![rejects_before_work], ..VerdictTable::http() };
    assert_eq!(judge(&table, AttemptResponse::Http(answer(503))), ("BROKER_5XX", NotDone, Retry));
    assert_eq!(
        judge(&table, AttemptResponse::Http(answer(502))),
        ("BROKER_5XX", Unknown, Retry),
        "the others stay"
    );
}

#[test]
fn an_unknown_effect_is_repeated_only_where_that_is_safe() {
    let lost = VerdictTable::http().judge(&AttemptResponse::Network(NetworkFault::Timeout), NOW);
    assert_eq!(lost.next(Safety::Keyed, NotDone), NextStep::Retry);
    assert_eq!(lost.next(Safety::Idempotent, NotDone), NextStep::Retry);
    assert_eq!(lost.next(Safety::None, NotDone), NextStep::Reconcile);
    let refused = VerdictTable::http().judge(&AttemptResponse::Http(answer(429)), NOW);
    assert_eq!(refused.next(Safety::None, NotDone), NextStep::Retry, "known not done");
    assert_eq!(refused.next(Safety::None, Unknown), NextStep::Reconcile, "an earlier attempt was lost");
    let bad = VerdictTable::http().judge(&AttemptResponse::Http(answer(400)), NOW);
    assert_eq!(bad.next(Safety::Keyed, NotDone), NextStep::Dead);
    let unusable = VerdictTable::llm().judge(&AttemptResponse::UnusableAnswer, NOW);
    assert_eq!(unusable.next(Safety::Idempotent, NotDone), NextStep::RetryAnswer);
    assert_eq!(unusable.next(Safety::Keyed, NotDone), NextStep::Dead, "a key would only replay it");
}

#[test]
fn a_doubt_stays_until_it_is_settled() {
    assert_eq!(NotDone.after(NotDone), NotDone);
    assert_eq!(Unknown.after(NotDone), Unknown);
    assert_eq!(NotDone.after(Unknown), Unknown);
    assert_eq!(Unknown.after(Done), Done);
    assert_eq!(Done.after(NotDone), Done);
}

#[test]
fn retry_after_is_read_in_seconds_and_as_a_date() {
    let secs = |secs| Some(Duration::from_secs(secs));
    // 1,800,000,000 is Fri, 15 Jan 2027 08:00:00 GMT.
    for (value, expected) in [
        ("0", secs(0)),
        ("120", secs(120)),
        (" 7 ", secs(7)),
        ("1.5", Some(Duration::from_millis(1_500))),
        ("Fri, 15 Jan 2027 08:00:30 GMT", secs(30)),
        ("Friday, 15-Jan-27 08:00:30 GMT", secs(30)),
        ("Fri Jan 15 08:00:30 2027", secs(30)),
        ("Fri, 15 Jan 2027 07:00:00 GMT", secs(0)),
        ("99999999999999999999999", Some(MAX_WAIT)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", Some(MAX_WAIT)),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("1e3", None),
        ("soon", None),
        ("inf", None),
        (".5", None),
        ("5.", None),
        ("Fri, 32 Jan 2027 08:00:30 GMT", None),
    ] {
        assert_eq!(retry_after(value, NOW), expected, "{value:?}");
    }
}

#[test]
fn a_hint_in_milliseconds_wins_over_seconds() {
    let hint = |headers: &[(&str, &[u8])]| hint_of(headers.iter().copied(), NOW);
    assert_eq!(hint(&[]), None);
    assert_eq!(hint(&[("Retry-After", b"2")]), Some(Duration::from_secs(2)));
    assert_eq!(
        hint(&[("Retry-After", b"2"), ("retry-after-ms", b"1500")]),
        Some(Duration::from_millis(1_500))
    );
    assert_eq!(hint(&[("X-Amz-Retry-After", b"9000")]), Some(Duration::from_secs(9)));
    assert_eq!(hint(&[("retry-after-ms", b"x"), ("Retry-After", b"2")]), Some(Duration::from_secs(2)));
    assert_eq!(hint(&[("Retry-After", b"2"), ("Retry-After", b"5")]), Some(Duration::from_secs(5)));
    assert_eq!(hint(&[("Retry-After", b"\xff")]), None);
}

proptest! {
    #[test]
    fn reading_a_hint_never_panics_and_stays_in_bounds(value in ".{0,40}", now in any::<i64>()) {
        if let Some(wait) = retry_after(&value, Timestamp::from_micros(now)) {
            prop_assert!(wait <= MAX_WAIT);
        }
    }

    #[test]
    fn every_response_gets_a_verdict_and_only_2xx_is_done(status in any::<u16>(), body in proptest::collection::vec(any::<u8>(), 0..60)) {
        let (ietf, stripe) = (VerdictTable::client_ietf(), VerdictTable::client_stripe());
        for table in [VerdictTable::http(), VerdictTable::client(), ietf, stripe, VerdictTable::llm()] {
            let verdict = table.judge(&AttemptResponse::Http(HttpResponse { body: &body, ..answer(status) }), NOW);
            prop_assert_eq!(verdict.advice == Accept, (200..300).contains(&status));
            prop_assert_eq!(verdict.effect == Done, (200..300).contains(&status));
        }
    }
}
