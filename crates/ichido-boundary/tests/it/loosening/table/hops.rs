//! What hops and the adapter do.

use super::{ADAPTER, BFF, BROWSER, ChangeEffect, GATEWAY, NAME_ONLY, after, at, free, gone, put};

/// The members before the owner's guarantees.
pub(super) const FIRST: &[(&str, ChangeEffect)] = &[
    ("/boundary", put("ICH-B075", BFF, r#""adapter""#, "the file was removed")),
    ("/http", gone("ICH-B001", BFF, "the mode was validate_only, now not set")),
    ("/http/methods", gone("ICH-B004", BFF, "was GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE, now not set")),
    (
        "/http/methods/allowed",
        gone("ICH-B004", BFF, "was GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE, now not set"),
    ),
    (
        "/http/methods/state_changing",
        put("ICH-B004", BFF, r#"["POST"]"#, "DELETE: was state-changing and needed a key, now is not"),
    ),
    ("/http/idempotency", gone("ICH-B001", BFF, "the mode was validate_only, now not set")),
    (
        "/http/idempotency/mode",
        put("ICH-B072", GATEWAY, r#""validate_only""#, "the mode was enabled, now validate_only"),
    ),
    (
        "/http/idempotency/echo_key",
        put("ICH-B073", BFF, "false", "the key was echoed in responses, now is not"),
    ),
    ("/http/idempotency/validate_only", gone("ICH-B002", BFF, "the key was required, now is not")),
    (
        "/http/idempotency/validate_only/require_header_when_state_changing",
        put("ICH-B002", BFF, "false", "the key was required, now is not"),
    ),
    (
        "/http/idempotency/validate_only/on_missing_key",
        put("ICH-B003", BFF, r#""generate""#, "a missing key: was reject 400, now generate"),
    ),
    (
        "/http/idempotency/validate_only/on_missing_key/action",
        put("ICH-B003", BFF, r#""generate""#, "a missing key: was reject 400, now generate 400"),
    ),
    (
        "/http/idempotency/validate_only/on_missing_key/status",
        put("ICH-B003", BFF, "422", "was 400, now 422"),
    ),
    ("/http/idempotency/validate_only/on_missing_key/error_code", free(NAME_ONLY)),
];

/// The members after them.
pub(super) const REST: &[(&str, ChangeEffect)] = &[
    (
        "/http/retry",
        put(
            "ICH-B023",
            GATEWAY,
            r#"{ "mode": "enabled", "apply_to_methods": ["POST"], "max_attempts": 2, "retry_on_status": [503], "backoff_ms": 10 }"#,
            "attempts: was 1, now 2",
        ),
    ),
    (
        "/http/retry/mode",
        after(r#""disabled""#, put("ICH-B021", BFF, r#""enabled""#, "POST: was not retried, now is")),
    ),
    (
        "/http/retry/apply_to_methods",
        put("ICH-B021", BFF, r#"["POST", "PATCH"]"#, "PATCH: was not retried, now is"),
    ),
    ("/http/retry/max_attempts", put("ICH-B023", BFF, "4", "attempts: was 2, now 4")),
    (
        "/http/retry/retry_on_status",
        put("ICH-B022", BFF, "[502, 503, 504, 500]", "status 500: was not retried, now is"),
    ),
    (
        "/http/retry/retry_on_network_error",
        after("false", put("ICH-B022", BFF, "true", "a request without a response: was not retried, now is")),
    ),
    (
        "/http/retry/backoff_ms",
        put("ICH-B023", BROWSER, "[1000, 50]", "the wait before attempt 3: was 2 seconds, now 50 ms"),
    ),
    ("/http/retry/retry_gate", gone("ICH-B020", BFF, "a key for a retry: was required, now is not")),
    (
        "/http/retry/retry_gate/require_idempotency_key_when_state_changing",
        put("ICH-B020", BFF, "false", "a key for a retry: was required, now is not"),
    ),
    ("/http/timeouts", gone("ICH-B060", BFF, "the time limit of each attempt: was 7000 ms, now not set")),
    (
        "/http/timeouts/upstream_timeout_ms",
        gone("ICH-B060", BROWSER, "the time limit of each attempt: was 15000 ms, now not set"),
    ),
    (
        "/http/timeouts/client_timeout_ms",
        gone("ICH-B061", BROWSER, "the time limit of all attempts together: was 60000 ms, now not set"),
    ),
    ("/headers", gone("ICH-B015", BFF, "allowed headers: was a list, now all headers")),
    (
        "/headers/pipeline_order",
        put(
            "ICH-B019",
            BFF,
            r#"["set", "drop_hop_by_hop"]"#,
            "comes after `set`, but proxies set headers last",
        ),
    ),
    (
        "/headers/drop_hop_by_hop",
        put("ICH-B010", BFF, r#"["idempotency-key"]"#, "`idempotency-key`: was passed on, now dropped"),
    ),
    (
        "/headers/*",
        at("/headers/inbound", gone("ICH-B083", BROWSER, "`x-user-id`: was dropped, now passed on")),
    ),
    (
        "/headers/*/allow",
        at(
            "/headers/bff_outbound/allow",
            put(
                "ICH-B015",
                BFF,
                r#"["authorization", "content-type", "ichido-hops", "idempotency-key", "traceparent", "tracestate", "x-request-id"]"#,
                "`accept`: was passed on, now not allowed",
            ),
        ),
    ),
    (
        "/headers/*/drop",
        at(
            "/headers/inbound/drop",
            gone("ICH-B083", BROWSER, "`x-tenant-id`: was dropped, now no longer listed in `drop`"),
        ),
    ),
    ("/cors", free("Without it only pages of the same origin call, and no list can stop the key.")),
    (
        "/cors/allowed_headers",
        gone("ICH-B011", BROWSER, "`traceparent`: could be sent by pages on other origins, now cannot"),
    ),
    (
        "/cors/allowed_headers/items",
        put(
            "ICH-B011",
            BROWSER,
            r#"["authorization", "content-type", "idempotency-key", "traceparent", "tracestate", "*"]"#,
            "`*`: was not in the list, now is",
        ),
    ),
    (
        "/cors/exposed_headers",
        gone("ICH-B017", BROWSER, "`location`: could be read by pages on other origins, now cannot"),
    ),
    (
        "/cors/exposed_headers/items",
        put(
            "ICH-B017",
            BROWSER,
            r#"["idempotency-key", "idempotency-replayed", "idempotency-status", "retry-after", "x-request-id"]"#,
            "`location`: could be read by pages on other origins, now cannot",
        ),
    ),
    ("/observability", gone("ICH-B090", BFF, "`authorization`: was kept out of the logs, now is not")),
    (
        "/observability/redaction",
        put(
            "ICH-B090",
            BFF,
            r#"{ "headers": ["authorization"] }"#,
            "`cookie`: was kept out of the logs, now is not",
        ),
    ),
    ("/observability/request_id", free("Kept or new, every request has one of its own.")),
    (
        "/observability/request_id/header",
        free("The rule ICH-B091 accepts x-request-id only; the starting set has a word here."),
    ),
    ("/observability/request_id/trust_inbound", free("Kept or new, every request has one of its own.")),
    (
        "/observability/request_id/generate_if_missing",
        free("The rule ICH-B091 accepts true only; the starting set has a word here."),
    ),
    ("/observability/traceparent", put("ICH-B014", BFF, r#""drop""#, r#"was "pass", now "drop""#)),
    ("/identity", gone("ICH-B080", ADAPTER, "the caller's identity: was jwt_claim sub, now not set")),
    (
        "/identity/source",
        put("ICH-B080", ADAPTER, r#""single""#, "the caller's identity: was jwt_claim sub, now single sub"),
    ),
    (
        "/identity/name",
        put(
            "ICH-B080",
            ADAPTER,
            r#""email""#,
            "the caller's identity: was jwt_claim sub, now jwt_claim email",
        ),
    ),
    ("/operations", gone("ICH-B081", ADAPTER, "the operation was removed")),
    (
        "/operations/*",
        at("/operations/orders.create", gone("ICH-B081", ADAPTER, "the operation was removed")),
    ),
    (
        "/operations/*/methods",
        at(
            "/operations/orders.create/methods",
            after(
                r#"["POST", "PUT"]"#,
                put("ICH-B081", ADAPTER, r#"["POST"]"#, "its methods: was POST, PUT, now POST"),
            ),
        ),
    ),
    (
        "/operations/*/path",
        at(
            "/operations/orders.create/path",
            put("ICH-B081", ADAPTER, r#""/v2/orders""#, "its path: was `/v1/orders`, now `/v2/orders`"),
        ),
    ),
    (
        "/operations/*/class",
        at(
            "/operations/orders.create/class",
            put("ICH-B081", ADAPTER, r#""mutate""#, "its class: was external_effect, now mutate"),
        ),
    ),
    (
        "/operations/*/guarantee",
        at(
            "/operations/orders.create/guarantee",
            put("ICH-B081", ADAPTER, r#""keyed""#, "its guarantee: was none, now keyed"),
        ),
    ),
    (
        "/operations/*/identity",
        at(
            "/operations/orders.create/identity",
            put(
                "ICH-B080",
                ADAPTER,
                r#"{ "source": "jwt_claim", "name": "org" }"#,
                "the caller's identity: was jwt_claim sub, now jwt_claim org",
            ),
        ),
    ),
    (
        "/operations/*/identity/source",
        free("As for /identity/source, which the same lines compare; the starting set has none here."),
    ),
    (
        "/operations/*/identity/name",
        free("As for /identity/name, which the same lines compare; the starting set has none here."),
    ),
    (
        "/operations/*/ttl",
        at(
            "/operations/orders.create/ttl",
            gone("ICH-B052", ADAPTER, "retention of its outcomes: was 7 days, now 3 days"),
        ),
    ),
    (
        "/operations/*/ttl/days",
        at(
            "/operations/orders.create/ttl/days",
            put("ICH-B052", ADAPTER, "5", "retention of its outcomes: was 7 days, now 5 days"),
        ),
    ),
    (
        "/operations/*/ttl/hours",
        at(
            "/operations/orders.create/ttl/hours",
            after(
                "2",
                put("ICH-B052", ADAPTER, "1", "retention of its outcomes: was 170 hours, now 169 hours"),
            ),
        ),
    ),
    (
        "/operations/*/ttl/minutes",
        at(
            "/operations/orders.create/ttl/minutes",
            after(
                "2",
                put(
                    "ICH-B052",
                    ADAPTER,
                    "1",
                    "retention of its outcomes: was 10082 minutes, now 10081 minutes",
                ),
            ),
        ),
    ),
    (
        "/operations/*/ttl/reason",
        free("It is asked for where the time is short, and a cut is found whatever the reason."),
    ),
    (
        "/operations/*/keeps_keys_for",
        at(
            "/operations/profiles.update/keeps_keys_for",
            put(
                "ICH-B082",
                ADAPTER,
                r#"{ "days": 30 }"#,
                "how long its service must keep a key: was 1 day, now 30 days",
            ),
        ),
    ),
    (
        "/operations/*/keeps_keys_for/days",
        at(
            "/operations/profiles.update/keeps_keys_for/days",
            put("ICH-B082", ADAPTER, "2", "was 1 day, now 2 days"),
        ),
    ),
    (
        "/operations/*/keeps_keys_for/hours",
        at(
            "/operations/profiles.update/keeps_keys_for/hours",
            put("ICH-B082", ADAPTER, "1", "was 1 day, now 25 hours"),
        ),
    ),
    (
        "/operations/*/keeps_keys_for/minutes",
        at(
            "/operations/profiles.update/keeps_keys_for/minutes",
            put("ICH-B082", ADAPTER, "1", "was 1 day, now 1441 minutes"),
        ),
    ),
];
