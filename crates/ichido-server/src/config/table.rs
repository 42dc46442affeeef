//! The table of settings: every name in `ichido.toml`, with its values, default, variable and meaning.
//!
//! The reader, `ichido config show`, `init` and `schema`, and `docs/configuration.md` are generated from it.

mod destinations;

use std::time::Duration;

use ichido::worker::limits::MAX_PARALLELISM;
use ichido::worker::{AlertFormat, OutboundKey};
use ichido_core::alert::{MAX_WINDOW, MIN_WINDOW};
use ichido_core::retry::{MAX_ATTEMPTS, MAX_WAIT};
use ichido_http::server::bounds::MAX_COUNT;
use ichido_http::server::limits::{MAX_HEAD_BYTES, MAX_HEADERS};
use ichido_store::message::limits::{MAX_CLAIM, MAX_RESPONSE_BYTES};

use super::kind::Kind::{
    Address, Count, Flag, FlagOr, Named, Number, Path, Reference, Secret, Share, Size, Table as One, Text,
    Texts, Time, Word, WordOr,
};
use super::kind::{self, ANY_TIME, SOME_TIME, Variant, words};
use super::queues::presets;
use super::retry::PRESETS;
use super::setting::Absent::{Is, Members, Required, Unset};
use super::setting::Variable::{self, Elsewhere};
use super::setting::{Setting, SettingTable};
use crate::instance::COLOURS;
use crate::limits::{
    MAX_BATCH_BYTES, MAX_BATCH_LINES, MAX_BODY_BYTES, MAX_LISTENERS, MIN_HEAD_BYTES, MIN_HEADERS,
};

pub(super) use destinations::{HTTP, MODEL, NATS, OPENAI, PACE};

/// The setting that decides which others a table has.
pub(super) const KIND: &str = "kind";
/// Maximum connections to PostgreSQL.
const MAX_CONNECTIONS: u32 = 1_000;
/// Maximum for waiting messages and alert samples: more is a typing error.
const BILLION: u32 = 1_000_000_000;
/// Maximum header fields of a request.
const HEADERS: u32 = 100;
const _: () = assert!(HEADERS as usize == MAX_HEADERS, "the parser accepts the same number");
/// Maximum factor from one wait to the next.
const MAX_FACTOR: u32 = 100;

/// Declares rows of the table: name, values, default, optional variable, and meaning.
macro_rules! settings {
    ($($name:literal: $kind:expr, $absent:expr $(, by $variable:expr)?; $about:literal)*) => {
        &[$($crate::config::setting::Setting {
            name: $name,
            kind: $kind,
            absent: $absent,
            variable: settings!(@ $($variable)?),
            about: $about,
        }),*]
    };
    (@) => { None };
    (@ $variable:expr) => { Some($variable) };
}
pub(super) use settings;

/// The document.
pub(super) const ROOT: SettingTable = &[settings! {
    "store": One(&[STORE]), Members;
        "The database."
    "serve": One(&[SERVE]), Members;
        "The server, `ichido serve`. Its flags, such as `--listen` and `--max-connections`, win over this section."
    "worker": One(&[WORKER]), Members;
        "The worker, in `ichido worker` and in `ichido serve`."
    "traces": One(&[TRACES]), Members;
        "Traces: a span for each accepted message, and for each attempt."
    "alerts": One(&[ALERT_RULES, ALERTS]), Members;
        "Alerts. One worker at a time watches for them, and `ichido alerts` lists them. An alert looks back over `window`, needs at least `min_samples` samples, and fires above `above`; it resolves after two minutes below. `false` instead of a table switches it off. All workers on one store should have the same settings here."
    "queue_defaults": One(&[QUEUE_DEFAULTS]), Members;
        "Defaults for all queues. A queue's own setting wins over them, and over their variables."
    "queues": Named(kind::NamedTables { variants: QUEUE_VARIANTS, fallback: Some("queue_defaults"), has_no_defaults: false }), Unset("");
        "Queues, by name."
    "destinations": Named(kind::NamedTables { variants: destinations::VARIANTS, fallback: None, has_no_defaults: false }), Unset("");
        "Destinations, by name. `kind` determines a destination's other settings."
}];

const STORE: &[Setting] = settings! {
    "url": Reference, Unset("sqlite:ichido.db"), by Elsewhere("ICHIDO_STORE");
        "Database: `sqlite:FILE`, relative to this file's folder, or `postgres://…`. The flag `--store` wins over it."
    "max_connections": Count(2, MAX_CONNECTIONS), Is("16");
        "Maximum connections to PostgreSQL. Writes are batched, so few are busy at once."
};

const SERVE: &[Setting] = settings! {
    "listen": Address, Is("127.0.0.1:4180");
        "Address and port to listen on. Beyond loopback, the server starts only if a token exists, and only with `tls` or an https `public_url`."
    "tls": One(&[TLS]), Unset("{ cert = \"server.pem\", key = \"server.key\" }");
        "Certificate and key, for HTTPS. The files are read again within 10 seconds after they change."
    "public_url": Text, Unset("https://ichido.example.com");
        "URL at which callers reach the server. If it is https without `tls`, a proxy in front of the server encrypts."
    "name": Text, Unset("orders, production");
        "Name of this server, which the dashboard shows in the header and the title of every page; at most 40 characters. If unset, it shows the host of its address."
    "colour": Word(&words(&COLOURS)), Is("blue");
        "Colour of the header and the icon of the dashboard, so production looks different from a test."
    "boundaries": Texts, Unset("[\"boundaries/bff_to_gateway.json\", \"boundaries/adapter.json\"]");
        "Boundary files, relative to this file's folder, which `GET /v1/boundaries` and the dashboard show with the findings of `ichido check`. A finding does not keep the server from starting. A change needs a restart."
    "max_connections": Count(1, MAX_COUNT), Is("1024");
        "Maximum concurrent connections, and concurrent requests over all of them. Others wait up to 5 seconds, then get 503. An idle connection is closed when its slot is needed. `/livez`, `/readyz` and `/metrics` always get a response."
    "max_peer_connections": Count(1, MAX_COUNT), Unset("768");
        "The same limit for one client address (for IPv6, one /64 network). If unset, three quarters of `max_connections`. Behind a load balancer, which is one address, raise it to `max_connections`."
    "head_timeout": SOME_TIME, Is("15s");
        "Timeout for a request's head, and for an idle connection."
    "body_idle_timeout": SOME_TIME, Is("30s");
        "Timeout for a request or response body without progress. After 20 seconds, a request body must also arrive at 512 bytes per second or more."
    "body_timeout": SOME_TIME, Is("5m");
        "Timeout for a whole request body."
    "drain_timeout": SOME_TIME, Is("30s");
        "Timeout for requests in flight after SIGTERM."
    "max_headers": Count(MIN_HEADERS, HEADERS), Is("64");
        "Maximum header fields of a request; a request with more gets 431."
    "max_head_bytes": Size(MIN_HEAD_BYTES, MAX_HEAD_BYTES), Is("16 KiB");
        "Maximum bytes of a request's target and header fields; a larger request gets 431."
    "max_body_bytes": Size(1, MAX_BODY_BYTES), Is("4 MiB");
        "Maximum size of a message's body; a larger one gets 413."
    "max_batch_lines": Count(1, MAX_BATCH_LINES), Is("10000");
        "Maximum lines of a batch. Further lines are not read, and the last result of the batch says so."
    "max_batch_bytes": Size(1, MAX_BATCH_BYTES), Is("64 MiB");
        "Maximum bytes of a batch. Further lines are not read either."
    "max_waiters": Count(0, MAX_COUNT), Is("512");
        "Maximum requests that wait (`?wait=5s`) for their message's outcome, and never more than half of `max_connections`. Others get a response immediately."
    "max_listeners": Count(0, MAX_LISTENERS), Is("64");
        "Maximum concurrent listeners on `/v1/events`; others get 503."
};

pub(super) const TLS: &[Setting] = settings! {
    "cert": Path, Required("server.pem");
        "File with the certificate in PEM format, followed by those that issued it."
    "key": Path, Required("server.key");
        "File with its private key in PEM format."
};

const WORKER: &[Setting] = settings! {
    "name": Text, Is("worker");
        "Name of the worker in logs and in the audit trail."
    "idle_sleep": SOME_TIME, Is("200ms"), by Variable::Number("OUTBOX_IDLE_SLEEP_MS", "ms", "worker");
        "How long an idle worker waits before it polls a queue again, unless it is woken."
    "stop_timeout": ANY_TIME, Is("25s");
        "Timeout for calls in flight after SIGTERM. The effect of a call that is cut off is unknown."
    "keep_finished": ANY_TIME, Is("90d");
        "How long sent and cancelled messages are kept. Afterwards, their keys can be used again."
    "audit_key": Secret, Unset("file:audit.key");
        "Key that seals the audit trail, at least 32 bytes: `openssl rand -hex 32 > audit.key`. Without a key, anybody with write access to the database can change an entry and seal it again. All workers need the same key."
};

const TRACES: &[Setting] = settings! {
    "endpoint": Reference, Unset("http://127.0.0.1:4318"), by Elsewhere("OTEL_EXPORTER_OTLP_ENDPOINT");
        "URL of an OTLP collector (JSON over HTTP or HTTPS), without `/v1/traces`. If unset, nothing is traced. OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is the whole URL and wins. OTEL_EXPORTER_OTLP_HEADERS can hold a vendor's API key."
    "hash_keys": Flag, Is("false");
        "Whether spans carry the hash of the idempotency key, as logs do, instead of the key itself (`idempotency.key`)."
};

/// The alerts on queues.
const ALERT_RULES: &[Setting] = settings! {
    "dead_letter": FlagOr(&[WINDOW, LEAST, ABOVE_COUNT]), Is("{ window = \"15m\", min_samples = 1, above = 0 }");
        "Any dead letter."
    "dead_letters": FlagOr(&[WINDOW, LEAST, ABOVE_COUNT]), Is("{ window = \"1h\", min_samples = 1, above = 10 }");
        "Many dead letters."
    "dead_surge": FlagOr(&[WINDOW, LEAST, ABOVE_COUNT]), Is("{ window = \"5m\", min_samples = 10, above = 5 }");
        "`above` times more dead letters than the mean of the previous twelve windows."
    "failed_retries": FlagOr(&[WINDOW, LEAST, ABOVE_SHARE]), Is("{ window = \"15m\", min_samples = 20, above = 0.05 }");
        "Share of retries that fail."
    "duplicates": FlagOr(&[WINDOW, LEAST, ABOVE_SHARE]), Is("{ window = \"15m\", min_samples = 100, above = 0.5 }");
        "Share of arriving messages that are duplicates."
    "processing_delay": FlagOr(&[WINDOW, LEAST, ABOVE_TIME]), Is("{ window = \"5m\", min_samples = 5, above = \"5m\" }");
        "Mean time from a message's arrival until it is sent or dead."
    "lag_p95": FlagOr(&[WINDOW, LEAST, ABOVE_TIME]), Is("{ window = \"5m\", min_samples = 20, above = \"2m\" }");
        "95th percentile of the same time."
    "oldest_waiting": FlagOr(&[LEAST, ABOVE_TIME]), Is("{ min_samples = 1, above = \"10m\" }");
        "How long the oldest message that is due has waited."
    "parked": FlagOr(&[LEAST, ABOVE_COUNT]), Is("{ min_samples = 1, above = 0 }");
        "Number of parked messages."
};

const WINDOW: &[Setting] = settings! {
    "window": Time(MIN_WINDOW, MAX_WINDOW), Unset("15m");
        "How far the alert looks back."
};
const LEAST: &[Setting] = settings! {
    "min_samples": Count(1, BILLION), Unset("1");
        "Minimum samples."
};
const ABOVE_COUNT: &[Setting] = settings! {
    "above": Number(0.0, f64::MAX), Unset("10");
        "Fires above this number."
};
const ABOVE_SHARE: &[Setting] = settings! {
    "above": Share, Unset("0.05");
        "Fires above this share."
};
const ABOVE_TIME: &[Setting] = settings! {
    "above": ANY_TIME, Unset("5m");
        "Fires above this duration."
};

const ALERTS: &[Setting] = settings! {
    "circuit_open": Flag, Is("true");
        "A destination's circuit breaker is open. This alert has no thresholds."
    "audit_broken": Flag, Is("true");
        "The audit trail differs from its seals. This alert has no thresholds."
    "unknown_outcome": Flag, Is("true");
        "Keys of unknown outcome wait for a person. This alert has no thresholds."
    "queues": Named(kind::NamedTables { variants: &[Variant { word: "", table: &[ALERT_RULES], presets: None }], fallback: None, has_no_defaults: true }), Unset("");
        "Thresholds for one queue. Settings left out are as above; `true` switches an alert on that is off above."
    "to": Named(kind::NamedTables { variants: &[Variant { word: "", table: &[RECEIVER], presets: None }], fallback: None, has_no_defaults: true }), Unset("");
        "Receivers, by name, which are notified when an alert fires and when it resolves. Each has a queue of its own, which raises no alerts."
};

pub(super) const RECEIVER: &[Setting] = settings! {
    "destination": Text, Required("ops");
        "Name of the destination."
    "format": Word(&AlertFormat::WORDS), Required("webhook");
        "Body: `webhook` (a JSON event with type, timestamp and data) or `slack` (`{ \"text\": \"…\" }`)."
};

const QUEUE_DEFAULTS: &[Setting] = settings! {
    "parallelism": Count(1, MAX_PARALLELISM), Is("4"), by Variable::Number("OUTBOX_PARALLELISM", "", "queue_defaults");
        "Maximum calls at once for one queue, in one process. It does not set the number of processes: each `ichido serve` and `ichido worker` on the same store is one, and N of them make up to N times as many calls. The destination's `max_rate` limits all of them together."
    "batch_size": Count(1, MAX_CLAIM), Is("32"), by Variable::Number("OUTBOX_BATCH_SIZE", "", "queue_defaults");
        "Maximum messages claimed at once."
    "max_retries": Count(0, MAX_ATTEMPTS - 1), Is("8"), by Variable::Number("OUTBOX_RETRY_MAX", "", "queue_defaults");
        "Maximum retries after the first attempt. A change applies to messages that arrive later. If unset, a named `retry` schedule has its own maximum: order 8, webhook 17, job 2, llm 4, client 2. The maximum of webhook is lower if the receiver forgets keys (`keeps_keys_for`) before its last retry."
    "lease": ANY_TIME, Is("10m"), by Variable::Number("OUTBOX_STUCK_THRESHOLD_MIN", "m", "queue_defaults");
        "How long a claim lasts without renewal. A live worker renews its claims; if it is stuck, another worker rescues its messages after this time. The messages of a worker that died are rescued within 15 seconds, whatever this is. 1s to 24h, and longer than the destination's `total_timeout` or `timeout`."
};

const QUEUE_VARIANTS: &[Variant] =
    &[Variant { word: "", table: &[QUEUE_DESTINATION, QUEUE_DEFAULTS, QUEUE], presets: Some(presets) }];

pub(super) const QUEUE_DESTINATION: &[Setting] = settings! {
    "destination": Text, Required("mail");
        "Name of the destination."
};

pub(super) const QUEUE: &[Setting] = settings! {
    "retry": WordOr(&words(&PRESETS), &[RETRY]), Is("order");
        "Backoff after a failure. If unset, `webhook` for `http` destinations, else `order`. A named schedule: `order` (2s, 4s … 256s, each ±10 %), `webhook` (5s, 10s … 4h, each ±10 %), `job` (2m, 4m, 8m …), `llm` (2s … 20s, up to half longer), `client` (1s, 2s, 4s …, up to a tenth longer); or a table with a list of waits, or with `base`, `factor` and `cap`."
    "requeue": Flag, Unset("true");
        "Whether operators may requeue dead letters. If unset, only if the destination's guarantee makes a repetition safe: not if it is `none`."
    "outbound_key": Word(&OutboundKey::WORDS), Is("derived");
        "Idempotency key that calls carry: `derived` from queue, identity and key, so the same key of two identities becomes two keys; or `own`, the message's own key, for keys that are globally unique (UUID, ULID) or for a single identity. The choice of a queue's first worker is permanent, because a retry with another key would take effect again."
    "start_marks": Flag, Unset("true");
        "Whether the worker stores a start mark before each call. After a crash, it shows which calls had not started. If unset, only if the destination's guarantee is none."
    "schema": Path, Unset("order.schema.json");
        "File with a JSON Schema (draft 2020-12, without references to other documents) that messages must match. With a schema, the queue accepts only JSON; without, anything."
    "digest_without": Texts, Unset("[\"/trace_id\"]");
        "JSON pointers to members that the request digest ignores, such as a trace id. Decide early: messages accepted before a change keep their old digest."
    "trace_id": Text, Is("/trace_id");
        "JSON pointer to the correlation id in a message, up to 128 bytes of visible text. The audit trail and the logs show it, and messages are found by it."
    "item": Text, Unset("/title");
        "JSON pointer to what names a message to people, such as a title or a URL. Dead letters, their log lines and notifications show it, cut to 200 characters. If unset, `/title`, else `/url`; if a message has none, its key."
    "keep_response": Size(0, MAX_RESPONSE_BYTES), Is("64 KiB");
        "Largest response to a successful call that is kept whole, for `http` destinations. It is returned with the message. Of a larger one, only size and digest are kept."
    "redact": Texts, Unset("[\"/card/number\", \"/customers/*/email\"]");
        "JSON pointers to values that people do not see, in requests and in responses; the step `*` is any member or element. The API shows `[redacted]` instead, and error texts are stored without these values. Receivers get them, and the database has them. A request that is not JSON is not shown at all. Set it on every server and worker of the queue."
    "drain_within": SOME_TIME, Unset("10m");
        "Maximum time to deliver all waiting messages at the rate of the last minute; above it, the server returns 429. If unset, there is no limit, and messages wait while the receiver is down. With a limit, an outage of the receiver becomes an outage of the API. Delayed messages and retries count as waiting."
    "max_waiting": Count(1, BILLION), Unset("100000");
        "Maximum waiting messages; above it, the server returns 429. Several servers on one store may exceed it by the messages that the others accept in one second."
};

pub(super) const RETRY: &[Setting] = settings! {
    "waits": Texts, Unset("[\"1s\", \"5s\", \"30s\"]");
        "List of waits; the last one repeats."
    "base": ANY_TIME, Unset("2s");
        "First wait. Wait n is base × factor^(n − 1)."
    "factor": Count(1, MAX_FACTOR), Is("2");
        "Factor from one wait to the next."
    "cap": Time(Duration::ZERO, MAX_WAIT), Is("30d");
        "Longest wait."
    "jitter": Text, Is("+-10%");
        "`none`, `full` (0 to the wait), `+10%` (longer) or `+-10%` (either way)."
};
