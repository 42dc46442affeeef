//! What hops and the adapter do.

use super::{ADAPTER, BFF, BROWSER, ChangeEffect, GATEWAY, NAME_ONLY, after, at, free, gone, put};

/// The members before the owner's guarantees.
pub(super) const FIRST: &[(&str, ChangeEffect)] = &[
    ("/boundary", put("ICH-B075", BFF, r#""adapter""#, "the file is gone")),
    ("/http", gone("ICH-B001", BFF, "the mode was validate_only, is not said")),
    ("/http/methods", gone("ICH-B004", BFF, "was GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE, is not said")),
    (
        "/http/methods/allowed",
        gone("ICH-B004", BFF, "was GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE, is not said"),
    ),
    (
        "/http/methods/state_changing",
        put("ICH-B004", BFF, r#"["POST"]"#, "DELETE: was state-changing and needed a key, is not"),
    ),
    ("/http/idempotency", gone("ICH-B001", BFF, "the mode was validate_only, is not said")),
    (
        "/http/idempotency/mode",
        put("ICH-B072", GATEWAY, r#""validate_only""#, "the mode was enabled, is validate_only"),
    ),
    (
        "/http/idempotency/echo_key",
        put("ICH-B073", BFF, "false", "the answers carried the key: was true, is not"),
    ),
    ("/http/idempotency/validate_only", gone("ICH-B002", BFF, "the key was required, is not")),
    (
        "/http/idempotency/validate_only/require_header_when_state_changing",
        put("ICH-B002", BFF, "false", "the key was required, is not"),
    ),
    (
        "/http/idempotency/validate_only/on_missing_key",
        put("ICH-B003", BFF, r#""generate""#, "a missing key: was reject 400, is generate"),
    ),
    (
        "/http/idempotency/validate_only/on_missing_key/action",
        put("ICH-B003", BFF, r#""generate""#, "a missing key: was reject 400, is generate 400"),
    ),
    ("/http/idempotency/validate_only/on_missing_key/status", put("ICH-B003", BFF, "422", "was 400, is 422")),
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
            "tries in all: was 1, is 2",
        ),
    ),
    (
        "/http/retry/mode",
        after(
            r#""disabled""#,
            put("ICH-B021", BFF, r#""enabled""#, "another try of POST: was not made, is made"),
        ),
    ),
    (
        "/http/retry/apply_to_methods",
        put("ICH-B021", BFF, r#"["POST", "PATCH"]"#, "another try of PATCH: was not made, is made"),
    ),
    ("/http/retry/max_attempts", put("ICH-B023", BFF, "4", "tries in all: was 2, is 4")),
    (
        "/http/retry/retry_on_status",
        put("ICH-B022", BFF, "[502, 503, 504, 500]", "another try after 500: was not made, is made"),
    ),
    (
        "/http/retry/retry_on_network_error",
        after(
            "false",
            put("ICH-B022", BFF, "true", "another try when no answer came: was not made, is made"),
        ),
    ),
    (
        "/http/retry/backoff_ms",
        put("ICH-B023", BROWSER, "[1000, 50]", "the wait before try 3: was 2 seconds, is 50 ms"),
    ),
    ("/http/retry/retry_gate", gone("ICH-B020", BFF, "a key before another try: was required, is not")),
    (
        "/http/retry/retry_gate/require_idempotency_key_when_state_changing",
        put("ICH-B020", BFF, "false", "a key before another try: was required, is not"),
    ),
    ("/http/timeouts", gone("ICH-B060", BFF, "the bound on each try: was 7000 ms, is left out")),
    (
        "/http/timeouts/upstream_timeout_ms",
        gone("ICH-B060", BROWSER, "the bound on each try: was 15000 ms, is left out"),
    ),
    (
        "/http/timeouts/client_timeout_ms",
        gone("ICH-B061", BROWSER, "the bound on all tries together: was 60000 ms, is left out"),
    ),
    ("/headers", gone("ICH-B015", BFF, "the headers that pass: was those of a list, is all of them")),
    (
        "/headers/*",
        at("/headers/inbound", gone("ICH-B083", BROWSER, "`x-user-id`: was dropped, is let through")),
    ),
    (
        "/headers/*/allow",
        at(
            "/headers/bff_outbound/allow",
            put(
                "ICH-B015",
                BFF,
                r#"["authorization", "content-type", "ichido-hops", "idempotency-key", "traceparent", "tracestate", "x-request-id"]"#,
                "`accept`: was let through, is not allowed",
            ),
        ),
    ),
    (
        "/headers/*/drop",
        at(
            "/headers/inbound/drop",
            gone("ICH-B083", BROWSER, "`x-tenant-id`: was dropped, is no longer named in `drop`"),
        ),
    ),
    ("/cors", free("Without it only the page's own origin calls, and no list stands in the key's way.")),
    (
        "/cors/allowed_headers",
        gone("ICH-B011", BROWSER, "`traceparent`: was sent by pages on other origins, is not"),
    ),
    (
        "/cors/allowed_headers/items",
        put(
            "ICH-B011",
            BROWSER,
            r#"["authorization", "content-type", "idempotency-key", "traceparent", "tracestate", "*"]"#,
            "`*`: was not in the list, is",
        ),
    ),
    (
        "/cors/exposed_headers",
        gone("ICH-B017", BROWSER, "`location`: was read by pages on other origins, is not"),
    ),
    (
        "/cors/exposed_headers/items",
        put(
            "ICH-B017",
            BROWSER,
            r#"["idempotency-key", "idempotency-replayed", "idempotency-status", "retry-after", "x-request-id"]"#,
            "`location`: was read by pages on other origins, is not",
        ),
    ),
    ("/observability", gone("ICH-B090", BFF, "`authorization`: was kept out of the logs, is not")),
    (
        "/observability/redaction",
        put(
            "ICH-B090",
            BFF,
            r#"{ "headers": ["authorization", "idempotency-key"] }"#,
            "`cookie`: was kept out of the logs, is not",
        ),
    ),
    ("/observability/request_id", free("Kept or new, every request has one of its own.")),
    ("/observability/traceparent", put("ICH-B014", BFF, r#""drop""#, r#"was "pass", is "drop""#)),
    ("/identity", gone("ICH-B080", ADAPTER, "who asks: was jwt_claim sub, is not said")),
    (
        "/identity/source",
        put("ICH-B080", ADAPTER, r#""single""#, "who asks: was jwt_claim sub, is single sub"),
    ),
    (
        "/identity/name",
        put("ICH-B080", ADAPTER, r#""email""#, "who asks: was jwt_claim sub, is jwt_claim email"),
    ),
    ("/operations", gone("ICH-B081", ADAPTER, "the operation was there, is gone")),
    (
        "/operations/*",
        at("/operations/orders.create", gone("ICH-B081", ADAPTER, "the operation was there, is gone")),
    ),
    (
        "/operations/*/methods",
        at(
            "/operations/orders.create/methods",
            after(
                r#"["POST", "PUT"]"#,
                put("ICH-B081", ADAPTER, r#"["POST"]"#, "its methods: was POST, PUT, is POST"),
            ),
        ),
    ),
    (
        "/operations/*/path",
        at(
            "/operations/orders.create/path",
            put("ICH-B081", ADAPTER, r#""/v2/orders""#, "its path: was `/v1/orders`, is `/v2/orders`"),
        ),
    ),
    (
        "/operations/*/class",
        at(
            "/operations/orders.create/class",
            put("ICH-B081", ADAPTER, r#""mutate""#, "its class: was external_effect, is mutate"),
        ),
    ),
    (
        "/operations/*/effect",
        at(
            "/operations/orders.create/effect",
            put("ICH-B081", ADAPTER, r#""keyed""#, "its effect: was opaque, is keyed"),
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
                "who asks: was jwt_claim sub, is jwt_claim org",
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
            gone("ICH-B052", ADAPTER, "its outcomes are kept: was 7 days, is 3 days"),
        ),
    ),
    (
        "/operations/*/ttl/days",
        at(
            "/operations/orders.create/ttl/days",
            put("ICH-B052", ADAPTER, "5", "its outcomes are kept: was 7 days, is 5 days"),
        ),
    ),
    (
        "/operations/*/ttl/hours",
        at(
            "/operations/orders.create/ttl/hours",
            after("2", put("ICH-B052", ADAPTER, "1", "its outcomes are kept: was 170 hours, is 169 hours")),
        ),
    ),
    (
        "/operations/*/ttl/minutes",
        at(
            "/operations/orders.create/ttl/minutes",
            after(
                "2",
                put("ICH-B052", ADAPTER, "1", "its outcomes are kept: was 10082 minutes, is 10081 minutes"),
            ),
        ),
    ),
    (
        "/operations/*/ttl/reason",
        free("It is asked for where the time is short, and a cut is found whatever the reason."),
    ),
    (
        "/operations/*/upstream_keeps_keys_for",
        at(
            "/operations/profiles.update/upstream_keeps_keys_for",
            put(
                "ICH-B082",
                ADAPTER,
                r#"{ "days": 30 }"#,
                "its service is relied on to remember a key: was 1 day, is 30 days",
            ),
        ),
    ),
    (
        "/operations/*/upstream_keeps_keys_for/days",
        at(
            "/operations/profiles.update/upstream_keeps_keys_for/days",
            put("ICH-B082", ADAPTER, "2", "was 1 day, is 2 days"),
        ),
    ),
    (
        "/operations/*/upstream_keeps_keys_for/hours",
        at(
            "/operations/profiles.update/upstream_keeps_keys_for/hours",
            put("ICH-B082", ADAPTER, "1", "was 1 day, is 25 hours"),
        ),
    ),
    (
        "/operations/*/upstream_keeps_keys_for/minutes",
        at(
            "/operations/profiles.update/upstream_keeps_keys_for/minutes",
            put("ICH-B082", ADAPTER, "1", "was 1 day, is 1441 minutes"),
        ),
    ),
];
