//! Each member of the dialect: the rule that guards it and a change that it finds, or why the member is free.

/// What guards a member.
pub(super) enum MemberGuard {
    /// This rule, which finds the change to the starting set.
    Rule(&'static str, Change),
    /// No rule, for this reason.
    Free(&'static str),
}

/// A change to the starting set.
pub(super) struct Change {
    pub(super) file: &'static str,
    pub(super) pointer: &'static str,
    /// The new value; `None` removes the member.
    pub(super) to: Option<&'static str>,
}

const fn gone(rule: &'static str, file: &'static str, pointer: &'static str) -> MemberGuard {
    MemberGuard::Rule(rule, Change { file, pointer, to: None })
}

const fn put(rule: &'static str, file: &'static str, pointer: &'static str, to: &'static str) -> MemberGuard {
    MemberGuard::Rule(rule, Change { file, pointer, to: Some(to) })
}

const fn free(reason: &'static str) -> MemberGuard {
    MemberGuard::Free(reason)
}

const BROWSER: &str = "browser_to_bff.json";
const BFF: &str = "bff_to_gateway.json";
const GATEWAY: &str = "gateway_to_adapter.json";
const ADAPTER: &str = "adapter.json";

/// In the order in which the code lists the members.
pub(super) const TABLE: &[(&str, MemberGuard)] = &[
    ("/boundary", gone("ICH-B000", BFF, "/boundary")),
    ("/http", gone("ICH-B001", BFF, "/http")),
    ("/http/methods", gone("ICH-B004", BFF, "/http/methods")),
    ("/http/methods/allowed", put("ICH-B004", BFF, "/http/methods/allowed", r#"["GET", "POST", "LINK"]"#)),
    ("/http/methods/state_changing", gone("ICH-B004", BFF, "/http/methods/state_changing")),
    ("/http/idempotency", gone("ICH-B001", BFF, "/http/idempotency")),
    ("/http/idempotency/mode", gone("ICH-B001", BFF, "/http/idempotency/mode")),
    ("/http/idempotency/echo_key", gone("ICH-B073", BFF, "/http/idempotency/echo_key")),
    ("/http/idempotency/validate_only", gone("ICH-B002", BFF, "/http/idempotency/validate_only")),
    (
        "/http/idempotency/validate_only/require_header_when_state_changing",
        gone("ICH-B002", BFF, "/http/idempotency/validate_only/require_header_when_state_changing"),
    ),
    (
        "/http/idempotency/validate_only/on_missing_key",
        gone("ICH-B003", BFF, "/http/idempotency/validate_only/on_missing_key"),
    ),
    (
        "/http/idempotency/validate_only/on_missing_key/action",
        put("ICH-B003", BFF, "/http/idempotency/validate_only/on_missing_key/action", r#""generate""#),
    ),
    (
        "/http/idempotency/validate_only/on_missing_key/status",
        gone("ICH-B003", BFF, "/http/idempotency/validate_only/on_missing_key/status"),
    ),
    (
        "/http/idempotency/validate_only/on_missing_key/error_code",
        free("Clients depend on the status; the code is for people and logs."),
    ),
    ("/http/idempotency/enabled", gone("ICH-B030", GATEWAY, "/http/idempotency/enabled")),
    ("/http/idempotency/enabled/owner", gone("ICH-B071", GATEWAY, "/http/idempotency/enabled/owner")),
    (
        "/http/idempotency/enabled/require_key",
        gone("ICH-B002", GATEWAY, "/http/idempotency/enabled/require_key"),
    ),
    (
        "/http/idempotency/enabled/require_key/apply_to_methods",
        free("ICH-B007 compares it with the state-changing methods; the starting set has a plain true here."),
    ),
    (
        "/http/idempotency/enabled/require_key/require_header_on_route_operations",
        free("ICH-B007 looks for the operations; the starting set has a plain true here."),
    ),
    (
        "/http/idempotency/enabled/require_key/missing_key",
        free("ICH-B003 checks it like `on_missing_key`; the starting set has a plain true here."),
    ),
    (
        "/http/idempotency/enabled/require_key/missing_key/action",
        free("ICH-B003 checks it like `on_missing_key`; the starting set has a plain true here."),
    ),
    (
        "/http/idempotency/enabled/require_key/missing_key/status",
        free("ICH-B003 checks it like `on_missing_key`; the starting set has a plain true here."),
    ),
    (
        "/http/idempotency/enabled/require_key/missing_key/error_code",
        free("Clients depend on the status; the code is for people and logs."),
    ),
    (
        "/http/idempotency/enabled/on_missing_key",
        put("ICH-B003", GATEWAY, "/http/idempotency/enabled/on_missing_key", r#""generate""#),
    ),
    (
        "/http/idempotency/enabled/on_missing_key/action",
        put("ICH-B003", GATEWAY, "/http/idempotency/enabled/on_missing_key/action", r#""generate""#),
    ),
    (
        "/http/idempotency/enabled/on_missing_key/status",
        gone("ICH-B003", GATEWAY, "/http/idempotency/enabled/on_missing_key/status"),
    ),
    (
        "/http/idempotency/enabled/on_missing_key/error_code",
        free("Clients depend on the status; the code is for people and logs."),
    ),
    (
        "/http/idempotency/enabled/fingerprint",
        gone("ICH-B030", GATEWAY, "/http/idempotency/enabled/fingerprint"),
    ),
    (
        "/http/idempotency/enabled/fingerprint/include",
        gone("ICH-B030", GATEWAY, "/http/idempotency/enabled/fingerprint/include"),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash",
        gone("ICH-B032", GATEWAY, "/http/idempotency/enabled/fingerprint/body_hash"),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/algorithm",
        gone("ICH-B032", GATEWAY, "/http/idempotency/enabled/fingerprint/body_hash/algorithm"),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input",
        gone("ICH-B033", GATEWAY, "/http/idempotency/enabled/fingerprint/body_hash/input"),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding",
        gone("ICH-B033", GATEWAY, "/http/idempotency/enabled/fingerprint/body_hash/input/encoding"),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/type",
        gone("ICH-B033", GATEWAY, "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/type"),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules",
        gone("ICH-B033", GATEWAY, "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules"),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/object_member_order",
        gone(
            "ICH-B033",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/object_member_order",
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/number_representation",
        gone(
            "ICH-B033",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/number_representation",
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/unicode_normalization",
        put(
            "ICH-B033",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/unicode_normalization",
            r#""nfkc""#,
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/array_order",
        put(
            "ICH-B033",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/array_order",
            r#""sorted""#,
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/string_encoding",
        put(
            "ICH-B033",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/string_encoding",
            r#""latin1""#,
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/string_escaping",
        put(
            "ICH-B033",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/string_escaping",
            r#""all""#,
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/trim_strings",
        put(
            "ICH-B033",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/trim_strings",
            r"true",
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/whitespace",
        put(
            "ICH-B033",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/encoding/rules/whitespace",
            r#""kept""#,
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/input/leave_out",
        put(
            "ICH-B033",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/input/leave_out",
            r#"["trace_id"]"#,
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/max_body_bytes_to_hash",
        gone("ICH-B035", GATEWAY, "/http/idempotency/enabled/fingerprint/body_hash/max_body_bytes_to_hash"),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/on_body_too_large",
        gone("ICH-B035", GATEWAY, "/http/idempotency/enabled/fingerprint/body_hash/on_body_too_large"),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/on_body_too_large/action",
        put(
            "ICH-B035",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/on_body_too_large/action",
            r#""skip_hash""#,
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/on_body_too_large/status",
        put(
            "ICH-B035",
            GATEWAY,
            "/http/idempotency/enabled/fingerprint/body_hash/on_body_too_large/status",
            "200",
        ),
    ),
    (
        "/http/idempotency/enabled/fingerprint/body_hash/on_body_too_large/error_code",
        free("Clients depend on the status; the code is for people and logs."),
    ),
    (
        "/http/idempotency/enabled/inflight_lock",
        gone("ICH-B042", GATEWAY, "/http/idempotency/enabled/inflight_lock"),
    ),
    (
        "/http/idempotency/enabled/inflight_lock/enabled",
        put("ICH-B042", GATEWAY, "/http/idempotency/enabled/inflight_lock/enabled", "false"),
    ),
    (
        "/http/idempotency/enabled/inflight_lock/status_on_lock_conflict",
        put("ICH-B043", GATEWAY, "/http/idempotency/enabled/inflight_lock/status_on_lock_conflict", "200"),
    ),
    (
        "/http/idempotency/enabled/conflict_rule",
        gone("ICH-B040", GATEWAY, "/http/idempotency/enabled/conflict_rule"),
    ),
    (
        "/http/idempotency/enabled/conflict_rule/same_key_different_fingerprint",
        gone("ICH-B040", GATEWAY, "/http/idempotency/enabled/conflict_rule/same_key_different_fingerprint"),
    ),
    (
        "/http/idempotency/enabled/conflict_rule/same_key_different_fingerprint/action",
        put(
            "ICH-B040",
            GATEWAY,
            "/http/idempotency/enabled/conflict_rule/same_key_different_fingerprint/action",
            r#""replay""#,
        ),
    ),
    (
        "/http/idempotency/enabled/conflict_rule/same_key_different_fingerprint/status",
        gone(
            "ICH-B040",
            GATEWAY,
            "/http/idempotency/enabled/conflict_rule/same_key_different_fingerprint/status",
        ),
    ),
    (
        "/http/idempotency/enabled/conflict_rule/same_key_different_fingerprint/error_code",
        free("Clients depend on the status; the code is for people and logs."),
    ),
    (
        "/http/idempotency/enabled/response_replay",
        gone("ICH-B041", GATEWAY, "/http/idempotency/enabled/response_replay"),
    ),
    (
        "/http/idempotency/enabled/response_replay/on_duplicate_after_success",
        gone("ICH-B041", GATEWAY, "/http/idempotency/enabled/response_replay/on_duplicate_after_success"),
    ),
    (
        "/http/idempotency/enabled/response_replay/on_duplicate_after_success/action",
        gone(
            "ICH-B041",
            GATEWAY,
            "/http/idempotency/enabled/response_replay/on_duplicate_after_success/action",
        ),
    ),
    (
        "/http/idempotency/enabled/response_replay/on_duplicate_after_success/status",
        put(
            "ICH-B041",
            GATEWAY,
            "/http/idempotency/enabled/response_replay/on_duplicate_after_success/status",
            "200",
        ),
    ),
    (
        "/http/idempotency/enabled/response_replay/on_duplicate_after_success/error_code",
        free("A replay is the first response, and has no code of its own."),
    ),
    (
        "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight",
        gone("ICH-B042", GATEWAY, "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight"),
    ),
    (
        "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/wait_up_to_ms",
        gone(
            "ICH-B042",
            GATEWAY,
            "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/wait_up_to_ms",
        ),
    ),
    (
        "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/on_timeout",
        gone(
            "ICH-B042",
            GATEWAY,
            "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/on_timeout",
        ),
    ),
    (
        "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/on_timeout/action",
        put(
            "ICH-B042",
            GATEWAY,
            "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/on_timeout/action",
            r#""execute""#,
        ),
    ),
    (
        "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/on_timeout/status",
        gone(
            "ICH-B042",
            GATEWAY,
            "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/on_timeout/status",
        ),
    ),
    (
        "/http/idempotency/enabled/response_replay/on_duplicate_while_inflight/on_timeout/error_code",
        free("Clients depend on the status; the code is for people and logs."),
    ),
    (
        "/http/idempotency/enabled/response_replay/response_headers_subset_allowlist",
        gone(
            "ICH-B044",
            GATEWAY,
            "/http/idempotency/enabled/response_replay/response_headers_subset_allowlist",
        ),
    ),
    ("/http/idempotency/enabled/storage", gone("ICH-B050", GATEWAY, "/http/idempotency/enabled/storage")),
    (
        "/http/idempotency/enabled/storage/ttl",
        gone("ICH-B050", GATEWAY, "/http/idempotency/enabled/storage/ttl"),
    ),
    (
        "/http/idempotency/enabled/storage/ttl/days",
        gone("ICH-B050", GATEWAY, "/http/idempotency/enabled/storage/ttl/days"),
    ),
    (
        "/http/idempotency/enabled/storage/ttl/hours",
        put("ICH-B050", GATEWAY, "/http/idempotency/enabled/storage/ttl/hours", "900000"),
    ),
    (
        "/http/idempotency/enabled/storage/ttl/minutes",
        put("ICH-B050", GATEWAY, "/http/idempotency/enabled/storage/ttl/minutes", "9000000"),
    ),
    (
        "/http/idempotency/enabled/storage/ttl/reason",
        free("It is asked for where the time is short, and ICH-B051 misses it there."),
    ),
    ("/http/retry", free("Without it there are no retries, which is safe.")),
    ("/http/retry/mode", put("ICH-B023", GATEWAY, "/http/retry/mode", r#""enabled""#)),
    ("/http/retry/apply_to_methods", gone("ICH-B023", BFF, "/http/retry/apply_to_methods")),
    ("/http/retry/max_attempts", gone("ICH-B023", BFF, "/http/retry/max_attempts")),
    ("/http/retry/retry_on_status", put("ICH-B022", BFF, "/http/retry/retry_on_status", "[500]")),
    (
        "/http/retry/retry_on_network_error",
        free("With a key it is allowed at every hop, and without a key ICH-B020 stops it."),
    ),
    ("/http/retry/backoff_ms", gone("ICH-B023", BFF, "/http/retry/backoff_ms")),
    ("/http/retry/retry_gate", gone("ICH-B020", BFF, "/http/retry/retry_gate")),
    (
        "/http/retry/retry_gate/require_idempotency_key_when_state_changing",
        gone("ICH-B020", BFF, "/http/retry/retry_gate/require_idempotency_key_when_state_changing"),
    ),
    ("/http/timeouts", gone("ICH-B060", BFF, "/http/timeouts")),
    ("/http/timeouts/upstream_timeout_ms", gone("ICH-B060", BFF, "/http/timeouts/upstream_timeout_ms")),
    (
        "/http/timeouts/client_timeout_ms",
        put("ICH-B061", BROWSER, "/http/timeouts/client_timeout_ms", "1000"),
    ),
    (
        "/headers",
        free(
            "Without lists every header passes, the key too; who may not be believed is ICH-B083's to find.",
        ),
    ),
    (
        "/headers/pipeline_order",
        put("ICH-B019", BFF, "/headers/pipeline_order", r#"["set", "drop_hop_by_hop"]"#),
    ),
    (
        "/headers/drop_hop_by_hop",
        put("ICH-B010", BFF, "/headers/drop_hop_by_hop", r#"["idempotency-key", "x-idempotency-key"]"#),
    ),
    ("/headers/*", put("ICH-B010", BFF, "/headers/gateway_inbound", r#"{ "allow": ["accept"] }"#)),
    ("/headers/*/allow", put("ICH-B010", BFF, "/headers/gateway_inbound/allow", r#"["accept"]"#)),
    ("/headers/*/drop", put("ICH-B010", BFF, "/headers/gateway_inbound/drop", r#"["idempotency-key"]"#)),
    ("/cors", free("Without it only pages of the same origin call, and no list can stop the key.")),
    ("/cors/allowed_headers", gone("ICH-B011", BROWSER, "/cors/allowed_headers")),
    ("/cors/allowed_headers/items", gone("ICH-B011", BROWSER, "/cors/allowed_headers/items")),
    ("/cors/exposed_headers", gone("ICH-B017", BROWSER, "/cors/exposed_headers")),
    ("/cors/exposed_headers/items", gone("ICH-B017", BROWSER, "/cors/exposed_headers/items")),
    ("/observability", gone("ICH-B090", BFF, "/observability")),
    ("/observability/redaction", gone("ICH-B090", BFF, "/observability/redaction")),
    (
        "/observability/request_id",
        free("Kept or new, every request has one of its own, and ICH-B045 keeps a replay from repeating it."),
    ),
    (
        "/observability/request_id/header",
        free("ICH-B091 accepts x-request-id only; the starting set has a word here."),
    ),
    (
        "/observability/request_id/trust_inbound",
        free("Kept or new, every request has one of its own, and ICH-B045 keeps a replay from repeating it."),
    ),
    (
        "/observability/request_id/generate_if_missing",
        free("ICH-B091 accepts true only; the starting set has a word here."),
    ),
    ("/observability/traceparent", put("ICH-B014", BFF, "/observability/traceparent", r#""drop""#)),
    ("/identity", gone("ICH-B080", ADAPTER, "/identity")),
    ("/identity/source", gone("ICH-B080", ADAPTER, "/identity/source")),
    ("/identity/name", gone("ICH-B080", ADAPTER, "/identity/name")),
    ("/operations", gone("ICH-B081", ADAPTER, "/operations")),
    ("/operations/*", put("ICH-B081", ADAPTER, "/operations/orders.create", "{}")),
    ("/operations/*/methods", put("ICH-B081", ADAPTER, "/operations/orders.create/methods", "[]")),
    ("/operations/*/path", gone("ICH-B081", ADAPTER, "/operations/orders.create/path")),
    ("/operations/*/class", gone("ICH-B081", ADAPTER, "/operations/orders.create/class")),
    ("/operations/*/guarantee", gone("ICH-B081", ADAPTER, "/operations/orders.create/guarantee")),
    (
        "/operations/*/identity",
        put("ICH-B080", ADAPTER, "/operations/orders.create/identity", r#"{ "source": "header" }"#),
    ),
    (
        "/operations/*/identity/source",
        free("ICH-B080 requires it in every identity; the starting set has none here."),
    ),
    (
        "/operations/*/identity/name",
        free("ICH-B080 requires it in every identity; the starting set has none here."),
    ),
    ("/operations/*/ttl", put("ICH-B051", ADAPTER, "/operations/orders.create/ttl", r#"{ "hours": 1 }"#)),
    ("/operations/*/ttl/days", put("ICH-B050", ADAPTER, "/operations/orders.create/ttl/days", "0")),
    ("/operations/*/ttl/hours", put("ICH-B050", ADAPTER, "/operations/orders.create/ttl/hours", "900000")),
    (
        "/operations/*/ttl/minutes",
        put("ICH-B050", ADAPTER, "/operations/orders.create/ttl/minutes", "9000000"),
    ),
    (
        "/operations/*/ttl/reason",
        free("It is asked for where the time is short, and ICH-B051 misses it there."),
    ),
    ("/operations/*/keeps_keys_for", gone("ICH-B081", ADAPTER, "/operations/profiles.update/keeps_keys_for")),
    (
        "/operations/*/keeps_keys_for/days",
        put("ICH-B082", ADAPTER, "/operations/profiles.update/keeps_keys_for/days", "0"),
    ),
    ("/operations/*/keeps_keys_for/hours", free("Added to the days, which ICH-B082 checks as one sum.")),
    ("/operations/*/keeps_keys_for/minutes", free("Added to the days, which ICH-B082 checks as one sum.")),
];
