//! The table of settings: every name in `ichido.toml`, with its values, default, variable and meaning.
//!
//! The reader, `ichido config show`, `init` and `schema`, and `docs/configuration.md` are generated from it.

mod destinations;

use std::time::Duration;

use ichido::worker::limits::PARALLELISM_MAX;
use ichido::worker::{Form, OutboundKey};
use ichido_core::alert::{WINDOW_MAX, WINDOW_MIN};
use ichido_core::retry::{TRIES_MAX, WAIT_MAX};
use ichido_http::server::bounds::COUNT_MAX;
use ichido_http::server::limits::{HEAD_BYTES_MAX, HEADERS_MAX};
use ichido_store::message::limits::CLAIM_MAX;

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
use crate::limits::{
    MAX_BATCH_BYTES, MAX_BATCH_LINES, MAX_BODY_BYTES, MAX_LISTENERS, MIN_HEAD_BYTES, MIN_HEADERS,
};

pub(super) use destinations::{HTTP, MODEL, NATS, OPENAI, PACE};

/// The setting that decides which others a table has.
pub(super) const KIND: &str = "kind";
/// Maximum connections to PostgreSQL.
const CONNECTIONS_MAX: u32 = 1_000;
/// Maximum for waiting messages and alert samples: more is a typing error.
const BILLION: u32 = 1_000_000_000;
/// Maximum header fields of a request.
const HEADERS: u32 = 100;
const _: () = assert!(HEADERS as usize == HEADERS_MAX, "the parser takes as many");
/// Maximum factor from one wait to the next.
const FACTOR_MAX: u32 = 100;

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
        "The server, `ichido serve`. Its flags, such as `--listen` and `--connections-max`, win over this section."
    "worker": One(&[WORKER]), Members;
        "The worker, in `ichido worker` and in `ichido serve`."
    "traces": One(&[TRACES]), Members;
        "Traces: a span for each accepted message, and for each attempt."
    "alerts": One(&[ALERT_RULES, ALERTS]), Members;
        "Alerts. One worker at a time watches for them, and `ichido alerts` lists them. An alert looks back over its window, needs at least so many samples, and fires above its bound; it resolves after two minutes without. `false` in place of the terms switches it off. All workers on one store should have the same settings here."
    "queue_defaults": One(&[QUEUE_DEFAULTS]), Members;
        "Defaults for all queues. What a queue itself says wins over them, and over their variables."
    "queues": Named(kind::NamedTables { variants: QUEUE_VARIANTS, fallback: Some("queue_defaults"), has_no_defaults: false }), Unset("");
        "Queues, each under its name."
    "destinations": Named(kind::NamedTables { variants: destinations::VARIANTS, fallback: None, has_no_defaults: false }), Unset("");
        "Destinations, each under its name. `kind` decides which other settings one has."
}];

const STORE: &[Setting] = settings! {
    "url": Reference, Unset("sqlite:ichido.db"), by Elsewhere("ICHIDO_STORE");
        "Database: `sqlite:FILE`, relative to this file's folder, or `postgres://…`. The flag `--store` wins over it."
    "connections_max": Count(2, CONNECTIONS_MAX), Is("16");
        "Maximum connections to PostgreSQL. Writes are batched, so few are busy at once."
};

const SERVE: &[Setting] = settings! {
    "listen": Address, Is("127.0.0.1:4180");
        "Address and port to listen on. Beyond this machine the server starts only if there are tokens."
    "connections_max": Count(1, COUNT_MAX), Is("1024");
        "Maximum connections at once, and requests on all of them. Others wait for 5 seconds, and then get 503. An idle connection is closed when its slot is needed. `/livez`, `/readyz` and `/metrics` always get a response."
    "peer_connections_max": Count(1, COUNT_MAX), Unset("768");
        "The same for one address (for IPv6, one /64 network); unset, three quarters of `connections_max`. Behind a load balancer, which is one address, raise it to `connections_max`."
    "head_timeout": SOME_TIME, Is("15s");
        "Time limit for a request's head, and for an idle connection."
    "body_idle_timeout": SOME_TIME, Is("30s");
        "Time limit for a body without progress, either way. After 20 seconds a request's body must also arrive with 512 bytes a second."
    "body_timeout": SOME_TIME, Is("5m");
        "Time limit for a whole request body."
    "drain_timeout": SOME_TIME, Is("30s");
        "Time limit for requests in flight after SIGTERM."
    "headers_max": Count(MIN_HEADERS, HEADERS), Is("64");
        "Maximum header fields of a request; more get 431."
    "head_bytes_max": Size(MIN_HEAD_BYTES, HEAD_BYTES_MAX), Is("16 KiB");
        "Maximum bytes of a request's target and header fields; more get 431."
    "body_bytes_max": Size(1, MAX_BODY_BYTES), Is("4 MiB");
        "Maximum body of a message; a larger one gets 413."
    "batch_lines_max": Count(1, MAX_BATCH_LINES), Is("10000");
        "Maximum lines of a batch. Lines beyond are not read, and the last result of the batch says so."
    "batch_bytes_max": Size(1, MAX_BATCH_BYTES), Is("64 MiB");
        "Maximum bytes of a batch, with the same effect."
    "waiters_max": Count(0, COUNT_MAX), Is("512");
        "Maximum requests that wait (`?wait=5s`) for the outcome of their message, and never more than half of `connections_max`. Others get a response at once."
    "listeners_max": Count(0, MAX_LISTENERS), Is("64");
        "Maximum listeners to `/v1/events`; others get 503."
};

const WORKER: &[Setting] = settings! {
    "name": Text, Is("worker");
        "Name of the worker in logs and in the audit trail."
    "idle_sleep": SOME_TIME, Is("200ms"), by Variable::Number("OUTBOX_IDLE_SLEEP_MS", "ms", "worker");
        "How long an idle queue waits before it looks again, unless it is woken."
    "stop_within": ANY_TIME, Is("25s");
        "Time limit for calls in flight after SIGTERM. The effect of a call that is cut off is unknown."
    "keep_finished": ANY_TIME, Is("90d");
        "How long sent and cancelled messages are kept. Their keys are new again afterwards."
    "audit_key": Secret, Unset("file:audit.key");
        "Key that seals the audit trail, at least 32 bytes: `openssl rand -hex 32 > audit.key`. Without one, anybody who can write the database can also seal a changed entry. All workers need the same key."
};

const TRACES: &[Setting] = settings! {
    "endpoint": Reference, Unset("http://127.0.0.1:4318"), by Elsewhere("OTEL_EXPORTER_OTLP_ENDPOINT");
        "Collector of OTLP as JSON over HTTP or HTTPS, without `/v1/traces`; unset, nothing is traced. OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is the whole URL and wins. OTEL_EXPORTER_OTLP_HEADERS carries a vendor's API key."
};

/// The alerts on queues.
const ALERT_RULES: &[Setting] = settings! {
    "dead_letter": FlagOr(&[WINDOW, LEAST, ABOVE_COUNT]), Is("{ window = \"15m\", least = 1, above = 0 }");
        "Any message became a dead letter."
    "dead_letters": FlagOr(&[WINDOW, LEAST, ABOVE_COUNT]), Is("{ window = \"1h\", least = 1, above = 10 }");
        "Many messages became dead letters."
    "dead_surge": FlagOr(&[WINDOW, LEAST, ABOVE_COUNT]), Is("{ window = \"5m\", least = 10, above = 5 }");
        "So many times more dead letters than usual in the twelve windows before."
    "failed_retries": FlagOr(&[WINDOW, LEAST, ABOVE_SHARE]), Is("{ window = \"15m\", least = 20, above = 0.05 }");
        "The share of retries that fail."
    "duplicates": FlagOr(&[WINDOW, LEAST, ABOVE_SHARE]), Is("{ window = \"15m\", least = 100, above = 0.5 }");
        "The share of arriving messages that arrived before."
    "processing_delay": FlagOr(&[WINDOW, LEAST, ABOVE_TIME]), Is("{ window = \"5m\", least = 5, above = \"5m\" }");
        "The mean time from a message's arrival until it is sent or dead."
    "lag_p95": FlagOr(&[WINDOW, LEAST, ABOVE_TIME]), Is("{ window = \"5m\", least = 20, above = \"2m\" }");
        "The same time, which one in twenty messages exceeds."
    "oldest_waiting": FlagOr(&[LEAST, ABOVE_TIME]), Is("{ least = 1, above = \"10m\" }");
        "How long the oldest message that could be sent has waited."
    "parked": FlagOr(&[LEAST, ABOVE_COUNT]), Is("{ least = 1, above = 0 }");
        "How many messages are parked."
};

const WINDOW: &[Setting] = settings! {
    "window": Time(WINDOW_MIN, WINDOW_MAX), Unset("15m");
        "How far the alert looks back."
};
const LEAST: &[Setting] = settings! {
    "least": Count(1, BILLION), Unset("1");
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
        "Fires above this length of time."
};

const ALERTS: &[Setting] = settings! {
    "circuit_open": Flag, Is("true");
        "A destination's circuit breaker is open. This alert has no terms."
    "audit_broken": Flag, Is("true");
        "The audit trail differs from its seals. This alert has no terms."
    "queues": Named(kind::NamedTables { variants: &[Variant { word: "", table: &[ALERT_RULES], presets: None }], fallback: None, has_no_defaults: true }), Unset("");
        "Terms for one queue. Left out, they are as above; `true` switches an alert on where it is off above."
    "to": Named(kind::NamedTables { variants: &[Variant { word: "", table: &[RECEIVER], presets: None }], fallback: None, has_no_defaults: true }), Unset("");
        "Receivers, each under its name, which are notified when an alert opens and when it resolves, through a queue of their own that raises no alert."
};

pub(super) const RECEIVER: &[Setting] = settings! {
    "destination": Text, Required("ops");
        "One of the destinations."
    "form": Word(&Form::WORDS), Required("webhook");
        "Body: `webhook` (a JSON event with type, timestamp and data) or `slack` (`{ \"text\": \"…\" }`)."
};

const QUEUE_DEFAULTS: &[Setting] = settings! {
    "parallelism": Count(1, PARALLELISM_MAX), Is("4"), by Variable::Number("OUTBOX_PARALLELISM", "", "queue_defaults");
        "How many messages of a queue one worker delivers at once."
    "batch_size": Count(1, CLAIM_MAX), Is("32"), by Variable::Number("OUTBOX_BATCH_SIZE", "", "queue_defaults");
        "Maximum messages of one claim."
    "retries_max": Count(0, TRIES_MAX - 1), Is("8"), by Variable::Number("OUTBOX_RETRY_MAX", "", "queue_defaults");
        "Maximum retries after the first attempt, for messages that arrive from then on. Unset, a named `retry` schedule has its own maximum: outbox 8, job 2, llm 4, client 2."
    "lease": ANY_TIME, Is("10m"), by Variable::Number("OUTBOX_STUCK_THRESHOLD_MIN", "m", "queue_defaults");
        "How long a worker may be silent before another one rescues its messages; the worker renews it all the while. 1s to 24h, and longer than the destination's `total_timeout` or `timeout`."
};

const QUEUE_VARIANTS: &[Variant] =
    &[Variant { word: "", table: &[QUEUE_DESTINATION, QUEUE_DEFAULTS, QUEUE], presets: Some(presets) }];

pub(super) const QUEUE_DESTINATION: &[Setting] = settings! {
    "destination": Text, Required("mail");
        "One of the destinations."
};

pub(super) const QUEUE: &[Setting] = settings! {
    "retry": WordOr(&words(&PRESETS), &[RETRY]), Is("outbox");
        "Backoff after a failure, by name: `outbox` (2s, 4s … 256s, each ±10 %), `job` (2m, 4m, 8m …), `llm` (2s … 20s, up to half longer), `client` (1s, 2s, 4s …, up to a tenth longer); or a table with a list of waits, or with base, factor and cap."
    "requeue": Flag, Is("false");
        "Whether operators may requeue dead letters."
    "outbound_key": Word(&OutboundKey::WORDS), Is("derived");
        "Key that calls carry: `derived` from queue, identity and key, so the same key of two identities is two keys; or `own`, the message's, where keys are unique by themselves (UUID, ULID) or there is one identity. The choice of the first worker of a queue is permanent, since a retry under another key would take effect again."
    "marks": Flag, Unset("true");
        "Whether a start mark is stored before each call, so it is known after a crash which calls had not begun. Unset, where the destination's guarantee is none."
    "schema": Path, Unset("order.schema.json");
        "File with a JSON Schema (draft 2020-12, without references to other documents) that messages must match. Unset, a queue accepts anything; with one, only JSON."
    "digest_without": Texts, Unset("[\"/trace_id\"]");
        "JSON pointers to members that do not make it a different request, such as a trace id. Decide early: messages that were accepted before a change count as they did then."
    "drain_within": SOME_TIME, Unset("10m");
        "How long the waiting messages may take to leave, at the speed of the last minute; a server answers 429 to more. Unset, there is no limit, and messages wait while the receiver is down; with one, its outage becomes one of the API. Delayed messages and retries count as waiting."
    "waiting_max": Count(1, BILLION), Unset("100000");
        "Maximum messages that wait; a server answers 429 to more. Several servers on one store may exceed it by what the others accept in a second."
};

pub(super) const RETRY: &[Setting] = settings! {
    "waits": Texts, Unset("[\"1s\", \"5s\", \"30s\"]");
        "The waits one after another; the last one repeats."
    "base": ANY_TIME, Unset("2s");
        "First wait. Wait n is base × factor^(n − 1)."
    "factor": Count(1, FACTOR_MAX), Is("2");
        "Factor from one wait to the next."
    "cap": Time(Duration::ZERO, WAIT_MAX), Is("30d");
        "Longest wait."
    "jitter": Text, Is("+-10%");
        "`none`, `full` (anything from 0 to the wait), `+10%` (longer) or `+-10%` (either way)."
};
