//! The settings of `[destinations.NAME]`, by kind.

use std::time::Duration;

use ichido::destination::http::{ANSWER_BYTES_MAX, Found, Meaning};
use ichido::worker::limits::PARALLELISM_MAX;
use ichido_core::pace::PerSecond;
use ichido_core::retry::WAIT_MAX;
use ichido_llm::destination::MAX_TOKENS_MAX;
use ichido_llm::models::{FormBy, LimitBy};

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
const COUNT_MAX: u32 = 1_000_000;
/// A wait up to the maximum.
const WAIT: Kind = Time(Duration::ZERO, WAIT_MAX);
const RATE: Kind = Number(PerSecond::MIN.get(), PerSecond::MAX.get());

pub(super) const VARIANTS: &[Variant] = &[
    Variant { word: "http", table: &[ANY, PACE, HTTP], presets: None },
    Variant { word: "paper", table: &[ANY, PACE, HTTP], presets: Some(mock_broker_presets) },
    Variant { word: "nats", table: &[ANY, PACE, NATS], presets: None },
    Variant { word: "openai", table: &[ANY, PACE, MODEL, OPENAI], presets: None },
    Variant { word: "anthropic", table: &[ANY, PACE, MODEL, ANTHROPIC], presets: None },
];

const ANY: &[Setting] = settings! {
    "kind": Word(&["anthropic", "http", "nats", "openai", "paper"]), Required("http");
        "What the destination is: `http` (a receiver of POST requests), `paper` (the mock broker, `ichido paper`: an http destination with other defaults), `nats` (a stream of NATS JetStream), `openai` or `anthropic` (a language model)."
};

pub(in super::super) const PACE: &[Setting] = settings! {
    "max_parallel": Count(1, PARALLELISM_MAX), Unset("4");
        "Maximum calls of one worker at once, over all its queues. Unset, as many as the queues allow."
    "interval": WAIT, Is("0ms");
        "How long each message waits in its slot before its first call."
    "rate_max": RATE, Unset("50");
        "Maximum calls a second, of all workers together. Unset, no limit until the receiver refuses too many (429)."
    "rate_floor": RATE, Is("0.1");
        "Minimum calls a second, however many are refused."
    "pause_max": WAIT, Is("1h");
        "Longest pause that a `Retry-After` of the receiver may ask for."
    "circuit": One(&[CIRCUIT]), Members;
        "Circuit breaker: opens after so many failures in a row, and rests before it probes again. The rest doubles, up to `rest_max`, while probes fail."
};

const CIRCUIT: &[Setting] = settings! {
    "failures": Count(1, COUNT_MAX), Is("10");
        "Failures in a row that open it."
    "rest": WAIT, Is("5s");
        "First rest."
    "rest_max": WAIT, AtLeast("rest", "5m");
        "Longest rest."
    "probes": Count(1, COUNT_MAX), Is("1");
        "Calls that probe at once."
};

pub(in super::super) const HTTP: &[Setting] = settings! {
    "url": Reference, Required("https://mail.example.com/v1/send");
        "URL that messages are posted to. Redirects are not followed."
    "headers": Fields, Unset("{ Accept = \"application/json\", Authorization = \"env:MAIL_AUTHORIZATION\" }");
        "Additional header fields. Secret ones, such as Authorization, must be references."
    "signing_secrets": Secrets, Unset("[\"env:MAIL_SIGNING_SECRET\", \"file:mail-signing-secret-before\"]");
        "Up to two secrets, `whsec_` and base64. Calls are signed with all of them, as in Standard Webhooks."
    "trusted_roots": Path, Unset("mail-ca.pem");
        "File of PEM certificates to trust instead of the system's."
    "allow_link_local": Texts, Is("[]");
        "Hosts that may have link-local addresses, where clouds hand out credentials."
    "connect_timeout": ANY_TIME, AtMost("total_timeout", "3s");
        "Time limit for connecting."
    "response_timeout": ANY_TIME, AtMost("total_timeout", "10s");
        "Time limit from then until the response begins."
    "total_timeout": ANY_TIME, Is("15s");
        "Time limit for the whole call."
    "answer_bytes_max": Size(1, ANSWER_BYTES_MAX), Is("1 MiB");
        "Maximum bytes of a response; a longer one is judged by its status and header fields."
    "settles_within": ANY_TIME, Is("1m");
        "How long a call may still arrive after its time limit: proxies on the way may hold it."
    "honours_key": Flag, Is("false");
        "Whether the receiver deduplicates by key. Without it, and without `repeatable`, a call whose effect is unknown is not repeated: the receiver is asked, or the message is parked."
    "keeps_keys_for": ANY_TIME, Unset("24h");
        "How long it remembers a key, from the first call on. Required with `honours_key`."
    "repeatable": Flag, Is("false");
        "Whether a second effect does no harm. Calls are then retried without a key, and counted as possibly done twice."
    "echoes_key": Flag, Is("false");
        "Whether responses carry the key back; one with another key or none is then not a success."
    "key_pointer": Text, Is("/idempotency_key");
        "Where their JSON carries it; a header field `Idempotency-Key` counts as well."
    "receipt_pointer": Text, Unset("/id");
        "Where their JSON has the receiver's own id of what it did."
    "rules": Rows(&[RULE, MEANING]), Unset("[{ status = \"409\", at = \"/error\", is = \"already_processed\", means = \"processed\" }, { status = \"409\", at = \"/error\", is = \"in_progress\", means = \"in_progress\" }]");
        "What responses mean where they differ from HTTP; the first rule that matches wins."
    "reconcile": One(&[RECONCILE]), Unset("{ url = \"https://mail.example.com/v1/by-key/{key}\", rules = [{ status = \"200\", means = \"done\" }, { status = \"404\", at = \"/error\", is = \"not_found\", means = \"not_done\" }] }");
        "How the receiver is asked about the effect of a call."
};

const RULE: &[Setting] = settings! {
    "status": Text, Required("409");
        "A status, or two with a dash: `520-527`."
    "at": Text, Unset("/error");
        "A JSON pointer into the response."
    "is": Text, Unset("already_processed");
        "The text that must be there. `at` and `is` belong together."
};
const MEANING: &[Setting] = settings! {
    "means": Word(&Meaning::WORDS), Required("processed");
        "What the response means."
};
const FINDING: &[Setting] = settings! {
    "means": Word(&Found::WORDS), Required("done");
        "What the response says of the effect."
};

const RECONCILE: &[Setting] = settings! {
    "url": Reference, Required("https://mail.example.com/v1/by-key/{key}");
        "URL to ask, with `{key}` in place of the key."
    "rules": Rows(&[RULE, FINDING]), Is("[]");
        "What responses mean; without a rule that matches the effect stays unknown."
};

pub(in super::super) const NATS: &[Setting] = settings! {
    "urls": References, Required("[\"nats://nats-1.internal:4222\", \"nats://nats-2.internal:4222\"]");
        "Servers of one cluster: `nats://`, or `tls://` to require TLS. The worker needs one of them to start: it reads from the stream how long keys are deduplicated."
    "subject": Text, Required("orders.placed");
        "Subject to publish to, with the outbound key as Nats-Msg-Id. A stream must cover it, and its duplicate_window (2 minutes unless configured) should exceed the retries of the queue: later, a message of unknown effect is parked."
    "credentials": One(&[CREDENTIALS]), Unset("{ user = \"ichido\", password = \"env:NATS_PASSWORD\" }");
        "Credentials: `{ user = \"…\", password = \"env:…\" }`, `{ token = \"env:…\" }`, `{ nkey = \"env:…\" }` or `{ creds = \"file:…\" }`."
    "trusted_roots": Path, Unset("nats-ca.pem");
        "File of PEM certificates to trust instead of the system's."
    "connect_timeout": ANY_TIME, AtMost("timeout", "3s");
        "Time limit for connecting."
    "timeout": ANY_TIME, Is("10s");
        "Time limit for a whole call."
    "settles_within": ANY_TIME, Is("1m");
        "How long a publish may still arrive after its time limit; at least 15s."
};

const CREDENTIALS: &[Setting] = settings! {
    "user": Reference, Unset("ichido");
        "User name, with a password."
    "password": Secret, Unset("env:NATS_PASSWORD");
        "Password, with a user name."
    "token": Secret, Unset("env:NATS_TOKEN");
        "Token."
    "nkey": Secret, Unset("env:NATS_SEED");
        "Seed of a user's NKey."
    "creds": Secret, Unset("file:nats.creds");
        "Text of a `.creds` file."
};

pub(in super::super) const MODEL: &[Setting] = settings! {
    "model": Text, Required("gpt-5-mini");
        "Model, as its provider names it."
    "api_key": Secret, Unset("env:OPENAI_API_KEY");
        "API key. Unset, none is sent."
    "system": Text, Unset("You write for people in a hurry.");
        "System prompt, with the same placeholders as `prompt`."
    "prompt": Text, Required("Summarise in two sentences: {/title}\n\n{/text}");
        "Prompt. `{/title}` is replaced by what the message has at that JSON pointer; a message without it is a dead letter at once."
    "max_tokens": Count(1, MAX_TOKENS_MAX), Is("1024");
        "Maximum tokens of an answer; one that is cut off is not an answer."
    "form": Path, Unset("summary.schema.json");
        "File with the JSON Schema that answers must match. Unset, any text is an answer."
    "answers_to": Text, Required("mail");
        "Queue for the answers, one per message: `{ \"message_id\", \"key\", \"answer\", \"model\", \"usage\" }`."
    "trusted_roots": Path, Unset("mail-ca.pem");
        "File of PEM certificates to trust instead of the system's."
    "allow_link_local": Texts, Is("[]");
        "Hosts that may have link-local addresses, where clouds hand out credentials."
    "connect_timeout": ANY_TIME, AtMost("timeout", "3s");
        "Time limit for connecting."
    "timeout": ANY_TIME, Is("2m");
        "Time limit for a whole call: a model responds when it has finished."
};

pub(in super::super) const OPENAI: &[Setting] = settings! {
    "base_urls": References, Is("[\"https://api.openai.com/v1\"]");
        "Servers with OpenAI's chat completions, such as OpenAI, vLLM, Ollama or llama.cpp. The least busy one is asked, and one that refuses calls is left alone for a while."
    "form_by": Word(&FormBy::WORDS), Is("json_schema");
        "How the model gets the form: `json_schema`, `json_object` (for servers without schemas: in words) or `nothing`."
    "limit_by": Word(&LimitBy::WORDS), Unset("max_tokens");
        "How the model gets `max_tokens`. Unset, as `max_completion_tokens` at OpenAI's own hosts, else as `max_tokens`."
};
const ANTHROPIC: &[Setting] = settings! {
    "base_urls": References, Is("[\"https://api.anthropic.com\"]");
        "Servers with Anthropic's messages API."
    "form_by": Word(&[FormBy::JsonSchema.as_str(), FormBy::Nothing.as_str()]), Is("json_schema");
        "How the model gets the form: `json_schema` or `nothing`."
};
