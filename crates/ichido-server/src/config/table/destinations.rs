//! The settings of `[destinations.NAME]`, by kind.

use std::time::Duration;

use ichido::destination::http::{MAX_ANSWER_BYTES, ReconcileMeaning, ResponseMeaning};
use ichido::worker::limits::MAX_PARALLELISM;
use ichido_core::pace::PerSecond;
use ichido_core::retry::MAX_WAIT;
use ichido_llm::destination::MAX_TOKENS_LIMIT;
use ichido_llm::models::{LimitBy, SchemaMode};

use super::super::destinations::http::mock_broker_presets;
use super::super::kind::Kind::{
    self, Count, Fields, Flag, Number, Path, Reference, References, Rows, Secret, Secrets, Size,
    Table as One, Text, Texts, Time, Word,
};
use super::super::kind::{ANY_TIME, Variant};
use super::super::setting::Absent::{AtLeast, AtMost, Is, Members, Required, Unset};
use super::super::setting::Setting;
use super::settings;

/// Maximum failures and probes.
const MAX_COUNT: u32 = 1_000_000;
/// A wait up to the maximum.
const WAIT: Kind = Time(Duration::ZERO, MAX_WAIT);
const RATE: Kind = Number(PerSecond::MIN.get(), PerSecond::MAX.get());

pub(super) const VARIANTS: &[Variant] = &[
    Variant { word: "http", table: &[ANY, PACE, HTTP], presets: None },
    Variant { word: "mock", table: &[ANY, PACE, HTTP], presets: Some(mock_broker_presets) },
    Variant { word: "nats", table: &[ANY, PACE, NATS], presets: None },
    Variant { word: "openai", table: &[ANY, PACE, MODEL, OPENAI], presets: None },
    Variant { word: "anthropic", table: &[ANY, PACE, MODEL, ANTHROPIC], presets: None },
];

const ANY: &[Setting] = settings! {
    "kind": Word(&["anthropic", "http", "mock", "nats", "openai"]), Required("http");
        "Kind of destination: `http` (a receiver of POST requests), `mock` (the mock broker, `ichido mock-broker`: an `http` destination with different defaults), `nats` (a NATS JetStream stream), `openai` or `anthropic` (a language model)."
};

pub(in super::super) const PACE: &[Setting] = settings! {
    "max_parallel": Count(1, MAX_PARALLELISM), Unset("4");
        "Maximum concurrent calls of one worker to this destination. If unset, as many as the queues allow."
    "interval": WAIT, Is("0ms");
        "Delay before a message's first call; the message occupies a slot of `parallelism` meanwhile."
    "max_rate": RATE, Unset("50");
        "Maximum calls per second of all workers together. If unset, there is no limit until the receiver returns 429."
    "min_rate": RATE, Is("0.1");
        "Minimum calls per second, however many the receiver refuses."
    "max_pause": WAIT, Is("1h");
        "Longest pause that the receiver's `Retry-After` can cause."
    "circuit": One(&[CIRCUIT]), Members;
        "Circuit breaker. It opens after `failures` failures in a row, and probes again after `rest`. The rest doubles, up to `max_rest`, while probes fail."
};

const CIRCUIT: &[Setting] = settings! {
    "failures": Count(1, MAX_COUNT), Is("10");
        "Failures in a row that open the circuit."
    "rest": WAIT, Is("5s");
        "Time without calls after the circuit opens."
    "max_rest": WAIT, AtLeast("rest", "5m");
        "Longest time without calls."
    "probes": Count(1, MAX_COUNT), Is("1");
        "Concurrent calls that probe the receiver."
};

pub(in super::super) const HTTP: &[Setting] = settings! {
    "url": Reference, Required("https://mail.example.com/v1/send");
        "URL that messages are posted to. Redirects are not followed."
    "headers": Fields, Unset("{ Accept = \"application/json\", Authorization = \"env:MAIL_AUTHORIZATION\" }");
        "Additional header fields. Secret ones, such as Authorization, must be references."
    "signing_secrets": Secrets, Unset("[\"env:MAIL_SIGNING_SECRET\", \"file:mail-signing-secret-before\"]");
        "Up to two secrets, `whsec_` and base64. Each call is signed with all of them (Standard Webhooks)."
    "trusted_roots": Path, Unset("mail-ca.pem");
        "File of PEM certificates to trust instead of the system's."
    "allow_link_local": Texts, Is("[]");
        "Hosts that may have link-local addresses. Others are refused, because cloud metadata services hand out credentials there."
    "connect_timeout": ANY_TIME, AtMost("total_timeout", "3s");
        "Timeout for connecting."
    "response_timeout": ANY_TIME, AtMost("total_timeout", "10s");
        "Timeout from connecting until the response begins."
    "total_timeout": ANY_TIME, Is("15s");
        "Timeout for the whole call."
    "max_response_bytes": Size(1, MAX_ANSWER_BYTES), Is("1 MiB");
        "Maximum bytes of a response. A longer response is judged by its status and header fields only."
    "settle_grace": ANY_TIME, Is("1m");
        "How long after the timeout a delayed call may still reach the receiver."
    "guarantee": Word(&["idempotent", "keyed", "none"]), Required("keyed");
        "What the receiver does with a second call for the same message. `idempotent`: a second call does no harm, so a failed call is retried. `keyed`: the receiver deduplicates by Idempotency-Key for `keeps_keys_for`, so a failed call is retried within that time. `none`: the receiver may act twice, so a failed call that may have taken effect is not retried: the receiver is queried (`reconcile`), or the message is parked until somebody decides."
    "keeps_keys_for": ANY_TIME, Unset("24h");
        "How long the receiver remembers a key, counted from the first attempt whose effect is unknown. Required with `guarantee = \"keyed\"`, and only valid with it."
    "echoes_key": Flag, Is("false");
        "Whether the receiver's responses repeat the key. A response with another key, or without one, is then not a success."
    "key_pointer": Text, Is("/idempotency_key");
        "JSON pointer to the key in a response. A header field `Idempotency-Key` counts as well."
    "receipt_pointer": Text, Unset("/id");
        "JSON pointer to the receiver's own id in a response, such as an order id."
    "rules": Rows(&[RULE, MEANING]), Unset("[{ status = \"409\", at = \"/error\", is = \"already_processed\", means = \"processed\" }, { status = \"409\", at = \"/error\", is = \"in_progress\", means = \"in_progress\" }]");
        "Meanings of responses that differ from HTTP's. The first matching rule wins."
    "reconcile": One(&[RECONCILE]), Unset("{ url = \"https://mail.example.com/v1/by-key/{key}\", rules = [{ status = \"200\", means = \"done\" }, { status = \"404\", at = \"/error\", is = \"not_found\", means = \"not_done\" }] }");
        "How the worker queries the receiver for the effect of a call."
};

const RULE: &[Setting] = settings! {
    "status": Text, Required("409");
        "Status, or a range: `520-527`."
    "at": Text, Unset("/error");
        "JSON pointer into the response."
    "is": Text, Unset("already_processed");
        "Text that must be there. `at` and `is` belong together."
};
const MEANING: &[Setting] = settings! {
    "means": Word(&ResponseMeaning::WORDS), Required("processed");
        "Meaning of the response."
};
const FINDING: &[Setting] = settings! {
    "means": Word(&ReconcileMeaning::WORDS), Required("done");
        "Effect that the response reports."
};

const RECONCILE: &[Setting] = settings! {
    "url": Reference, Required("https://mail.example.com/v1/by-key/{key}");
        "URL to query, with `{key}` in place of the key."
    "rules": Rows(&[RULE, FINDING]), Is("[]");
        "Meanings of responses. Without a matching rule, the effect stays unknown."
};

pub(in super::super) const NATS: &[Setting] = settings! {
    "urls": References, Required("[\"nats://nats-1.internal:4222\", \"nats://nats-2.internal:4222\"]");
        "Servers of one cluster: `nats://`, or `tls://` to require TLS. The worker needs one of them to start: it reads the duplicate window from the stream."
    "subject": Text, Required("orders.placed");
        "Subject to publish to, with the outbound key as Nats-Msg-Id. A stream must cover it. Its `duplicate_window` (default 2 minutes) should exceed the duration of all retries of the queue: after it, a message of unknown effect is parked."
    "credentials": One(&[CREDENTIALS]), Unset("{ user = \"ichido\", password = \"env:NATS_PASSWORD\" }");
        "Credentials: `{ user = \"…\", password = \"env:…\" }`, `{ token = \"env:…\" }`, `{ nkey = \"env:…\" }` or `{ creds = \"file:…\" }`."
    "trusted_roots": Path, Unset("nats-ca.pem");
        "File of PEM certificates to trust instead of the system's."
    "connect_timeout": ANY_TIME, AtMost("timeout", "3s");
        "Timeout for connecting."
    "timeout": ANY_TIME, Is("10s");
        "Timeout for a whole call."
    "settle_grace": ANY_TIME, Is("1m");
        "How long after its timeout a publish may still arrive; at least 15s."
};

const CREDENTIALS: &[Setting] = settings! {
    "user": Reference, Unset("ichido");
        "User name, with a password."
    "password": Secret, Unset("env:NATS_PASSWORD");
        "Password, with a user name."
    "token": Secret, Unset("env:NATS_TOKEN");
        "Access token."
    "nkey": Secret, Unset("env:NATS_SEED");
        "Seed of a user NKey."
    "creds": Secret, Unset("file:nats.creds");
        "Text of a `.creds` file."
};

pub(in super::super) const MODEL: &[Setting] = settings! {
    "model": Text, Required("gpt-5-mini");
        "Name of the model at its provider."
    "api_key": Secret, Unset("env:OPENAI_API_KEY");
        "API key. If unset, none is sent."
    "system": Text, Unset("You write for people in a hurry.");
        "System prompt, with the same placeholders as `prompt`."
    "prompt": Text, Required("Summarise in two sentences: {/title}\n\n{/text}");
        "Prompt. `{/title}` is replaced by the message's value at that JSON pointer. A message without that value becomes a dead letter immediately."
    "max_tokens": Count(1, MAX_TOKENS_LIMIT), Is("1024");
        "Maximum tokens of an answer. A truncated answer is a failure."
    "schema": Path, Unset("summary.schema.json");
        "File with the JSON Schema that answers must match. If unset, any text is an answer."
    "answers_to": Text, Required("mail");
        "Queue for the answers, one per message: `{ \"message_id\", \"key\", \"answer\", \"model\", \"usage\" }`."
    "trusted_roots": Path, Unset("mail-ca.pem");
        "File of PEM certificates to trust instead of the system's."
    "allow_link_local": Texts, Is("[]");
        "Hosts that may have link-local addresses. Others are refused, because cloud metadata services hand out credentials there."
    "connect_timeout": ANY_TIME, AtMost("timeout", "3s");
        "Timeout for connecting."
    "timeout": ANY_TIME, Is("2m");
        "Timeout for a whole call. A model responds only when it has finished."
};

pub(in super::super) const OPENAI: &[Setting] = settings! {
    "base_urls": References, Is("[\"https://api.openai.com/v1\"]");
        "Servers with OpenAI's chat completions, such as OpenAI, vLLM, Ollama or llama.cpp. The worker calls the least busy one, and avoids one that refuses calls for a while."
    "schema_mode": Word(&SchemaMode::WORDS), Is("json_schema");
        "How the model gets `schema`: `json_schema`, `json_object` (the schema is written into the prompt, for servers without schema support) or `none`."
    "limit_by": Word(&LimitBy::WORDS), Unset("max_tokens");
        "Parameter that carries `max_tokens`. If unset, `max_completion_tokens` for OpenAI's own hosts, else `max_tokens`."
};
const ANTHROPIC: &[Setting] = settings! {
    "base_urls": References, Is("[\"https://api.anthropic.com\"]");
        "Servers with Anthropic's messages API."
    "schema_mode": Word(&[SchemaMode::JsonSchema.as_str(), SchemaMode::None.as_str()]), Is("json_schema");
        "How the model gets `schema`: `json_schema` or `none`."
};
