//! What the owner of the outcome guarantees.

use super::{ChangeEffect, GATEWAY, NAME_ONLY, after, free, gone, put};

/// Under `/http/idempotency/enabled`.
pub(super) const PROMISES: &[(&str, ChangeEffect)] = &[
    ("", gone("ICH-B030", GATEWAY, "`body_hash`: was in the fingerprint, now is not")),
    ("/owner", put("ICH-B071", GATEWAY, r#""gateway""#, r#"was "adapter", now "gateway""#)),
    ("/require_key", put("ICH-B002", GATEWAY, "false", "the key was required, now is not")),
    (
        "/require_key/apply_to_methods",
        free("The rule ICH-B007 finds what no longer fits; the starting set has a plain true here."),
    ),
    (
        "/require_key/require_header_on_route_operations",
        free("The rule ICH-B007 finds what no longer fits; the starting set has a plain true here."),
    ),
    (
        "/require_key/missing_key",
        free("As for /on_missing_key, which the same lines compare; the starting set has a plain true here."),
    ),
    (
        "/require_key/missing_key/action",
        free("As for /on_missing_key, which the same lines compare; the starting set has a plain true here."),
    ),
    (
        "/require_key/missing_key/status",
        free("As for /on_missing_key, which the same lines compare; the starting set has a plain true here."),
    ),
    ("/require_key/missing_key/error_code", free(NAME_ONLY)),
    (
        "/on_missing_key",
        put("ICH-B003", GATEWAY, r#""generate""#, "a missing key: was reject 400, now generate"),
    ),
    (
        "/on_missing_key/action",
        put("ICH-B003", GATEWAY, r#""generate""#, "a missing key: was reject 400, now generate 400"),
    ),
    ("/on_missing_key/status", put("ICH-B003", GATEWAY, "422", "was 400, now 422")),
    ("/on_missing_key/error_code", free(NAME_ONLY)),
    ("/fingerprint", gone("ICH-B030", GATEWAY, "`identity`: was in the fingerprint, now is not")),
    (
        "/fingerprint/include",
        put(
            "ICH-B030",
            GATEWAY,
            r#"["identity", "route.operation", "idempotency-key", "method", "path", "body_hash"]"#,
            "`query`: was in the fingerprint, now is not",
        ),
    ),
    ("/fingerprint/body_hash", gone("ICH-B032", GATEWAY, r#"was "sha256", now not set"#)),
    ("/fingerprint/body_hash/algorithm", put("ICH-B032", GATEWAY, r#""md5""#, r#"was "sha256", now "md5""#)),
    ("/fingerprint/body_hash/input", gone("ICH-B033", GATEWAY, r#"was "canonical_json", now not set"#)),
    (
        "/fingerprint/body_hash/input/encoding",
        gone("ICH-B033", GATEWAY, r#"was "canonical_json", now not set"#),
    ),
    (
        "/fingerprint/body_hash/input/encoding/type",
        put("ICH-B033", GATEWAY, r#""jcs""#, "canonical form of the body: was canonical_json, now jcs"),
    ),
    ("/fingerprint/body_hash/input/encoding/rules", gone("ICH-B033", GATEWAY, r#"was "exact", now not set"#)),
    (
        "/fingerprint/body_hash/input/encoding/rules/object_member_order",
        gone("ICH-B033", GATEWAY, r#"was "sorted", now not set"#),
    ),
    (
        "/fingerprint/body_hash/input/encoding/rules/number_representation",
        put("ICH-B034", GATEWAY, r#""double""#, "numbers: was compared exactly, now compared as doubles"),
    ),
    (
        "/fingerprint/body_hash/input/encoding/rules/unicode_normalization",
        put("ICH-B033", GATEWAY, r#""nfc""#, "strings: was compared as written, now compared in NFC"),
    ),
    (
        "/fingerprint/body_hash/input/encoding/rules/array_order",
        put("ICH-B033", GATEWAY, r#""sorted""#, r#"was not set, now "sorted""#),
    ),
    (
        "/fingerprint/body_hash/input/encoding/rules/string_encoding",
        put("ICH-B033", GATEWAY, r#""latin1""#, r#"was not set, now "latin1""#),
    ),
    (
        "/fingerprint/body_hash/input/encoding/rules/string_escaping",
        put("ICH-B033", GATEWAY, r#""all""#, r#"was not set, now "all""#),
    ),
    (
        "/fingerprint/body_hash/input/encoding/rules/trim_strings",
        put("ICH-B033", GATEWAY, r"true", r"was not set, now true"),
    ),
    (
        "/fingerprint/body_hash/input/encoding/rules/whitespace",
        put("ICH-B033", GATEWAY, r#""kept""#, r#"was not set, now "kept""#),
    ),
    (
        "/fingerprint/body_hash/input/leave_out",
        put(
            "ICH-B033",
            GATEWAY,
            r#"["/trace_id", "/idempotency_key", "/amount"]"#,
            "`/amount` in the body: was hashed, now left out",
        ),
    ),
    (
        "/fingerprint/body_hash/max_body_bytes_to_hash",
        put("ICH-B035", GATEWAY, "2048", "maximum body size in bytes: was 1048576, now 2048"),
    ),
    (
        "/fingerprint/body_hash/on_body_too_large",
        put("ICH-B035", GATEWAY, r#""skip_hash""#, r#"now "skip_hash""#),
    ),
    (
        "/fingerprint/body_hash/on_body_too_large/action",
        put("ICH-B035", GATEWAY, r#""skip_hash""#, r#"action was "reject", now "skip_hash""#),
    ),
    (
        "/fingerprint/body_hash/on_body_too_large/status",
        free("The request is refused whatever the status, and 413 is what it is taken for."),
    ),
    ("/fingerprint/body_hash/on_body_too_large/error_code", free(NAME_ONLY)),
    ("/inflight_lock", gone("ICH-B042", GATEWAY, "now not set")),
    ("/inflight_lock/enabled", put("ICH-B042", GATEWAY, "false", "was not set, now false")),
    ("/inflight_lock/status_on_lock_conflict", put("ICH-B043", GATEWAY, "409", "was 202, now 409")),
    ("/conflict_rule", gone("ICH-B040", GATEWAY, "now not set")),
    (
        "/conflict_rule/same_key_different_fingerprint",
        put("ICH-B040", GATEWAY, r#""replay""#, r#"now "replay""#),
    ),
    (
        "/conflict_rule/same_key_different_fingerprint/action",
        put("ICH-B040", GATEWAY, r#""replay""#, r#"action was "reject", now "replay""#),
    ),
    (
        "/conflict_rule/same_key_different_fingerprint/status",
        put(
            "ICH-B043",
            GATEWAY,
            "422",
            "the status for a different request with a used key: was 409, now 422",
        ),
    ),
    ("/conflict_rule/same_key_different_fingerprint/error_code", free(NAME_ONLY)),
    ("/response_replay", gone("ICH-B044", GATEWAY, "`location`: was repeated by a replay, now is not")),
    ("/response_replay/on_duplicate_after_success", put("ICH-B041", GATEWAY, r#""run""#, r#"now "run""#)),
    ("/response_replay/on_duplicate_after_success/action", put("ICH-B041", GATEWAY, r#""run""#, "run")),
    (
        "/response_replay/on_duplicate_after_success/status",
        free("A replay has the status of the first response, whatever this member says."),
    ),
    (
        "/response_replay/on_duplicate_after_success/error_code",
        free("A replay is the first response, and has no code of its own."),
    ),
    ("/response_replay/on_duplicate_while_inflight", gone("ICH-B042", GATEWAY, "now not set")),
    (
        "/response_replay/on_duplicate_while_inflight/wait_up_to_ms",
        put("ICH-B042", GATEWAY, "250", "wait of a duplicate for the outcome: was 2 seconds, now 250 ms"),
    ),
    ("/response_replay/on_duplicate_while_inflight/on_timeout", gone("ICH-B042", GATEWAY, "now not set")),
    (
        "/response_replay/on_duplicate_while_inflight/on_timeout/action",
        free("The status says it all: 202 in our profile, 409 in the others."),
    ),
    (
        "/response_replay/on_duplicate_while_inflight/on_timeout/status",
        put("ICH-B043", GATEWAY, "409", "the status for a request in flight: was 202, now 409"),
    ),
    ("/response_replay/on_duplicate_while_inflight/on_timeout/error_code", free(NAME_ONLY)),
    (
        "/response_replay/response_headers_subset_allowlist",
        put(
            "ICH-B045",
            GATEWAY,
            r#"["content-language", "content-type", "etag", "location", "x-internal"]"#,
            "`x-internal`: was not repeated by a replay, now is",
        ),
    ),
    ("/storage", gone("ICH-B050", GATEWAY, "now not set")),
    (
        "/storage/ttl",
        put("ICH-B052", GATEWAY, r#"{ "days": 2 }"#, "retention of outcomes: was 3 days, now 2 days"),
    ),
    ("/storage/ttl/days", put("ICH-B052", GATEWAY, "2", "retention of outcomes: was 3 days, now 2 days")),
    (
        "/storage/ttl/hours",
        after("48", put("ICH-B052", GATEWAY, "24", "retention of outcomes: was 5 days, now 4 days")),
    ),
    (
        "/storage/ttl/minutes",
        after("30", put("ICH-B052", GATEWAY, "0", "retention of outcomes: was 4350 minutes, now 3 days")),
    ),
    (
        "/storage/ttl/reason",
        free("It is asked for where the time is short, and a cut is found whatever the reason."),
    ),
];
