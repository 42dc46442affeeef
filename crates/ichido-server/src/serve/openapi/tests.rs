//! The description matches the code, and values that it calls valid are accepted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::Body;
use http::{HeaderValue, Method, Request};
use http_body_util::BodyExt as _;
use ichido_core::key::IdempotencyKey;
use ichido_store::Store;
use ichido_store::ledger::limits::MAX_OPERATION_BYTES;
use ichido_store::message::limits::{MAX_EXCERPT_BYTES, MAX_IDENTITY_BYTES, MAX_QUEUE_BYTES};
use ichido_store::testing::sqlite::{SqliteTestFile, fresh_file};
use jsonschema::{Draft, Validator};
use serde_json::{Value, json};
use tower_service::Service as _;

use super::super::api::{router, served};
use super::super::caller::ApiCaller;
use super::super::in_process;
use super::text;
use crate::config::{self, ConfigSources};
use crate::limits::{MAX_FEED_MESSAGES, MAX_LIST, MAX_UNKNOWN};

/// Statuses of requests that are refused for their form.
const REFUSED: [u16; 5] = [400, 413, 415, 422, 431];
const CONFIG: &str = r#"
[destinations.shop]
kind = "http"
url = "http://127.0.0.1:9/orders"
guarantee = "keyed"
keeps_keys_for = "24h"

[queues.orders]
destination = "shop"
"#;

#[test]
fn the_checked_in_description_matches_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("ICHIDO_BLESS").is_some() {
        std::fs::write(&file, text(served().into_openapi())).expect("it can be written");
    }
    let checked_in = std::fs::read_to_string(&file).expect("docs/openapi.json is there");
    assert!(
        checked_in == text(served().into_openapi()),
        "docs/openapi.json is out of date; regenerate it with ICHIDO_BLESS=1 cargo test -p ichido-server openapi"
    );
}

#[tokio::test]
async fn parameters_that_fit_their_schema_are_accepted() {
    let app = App::start().await;
    let mut accepted = BTreeSet::new();
    for operation in app.operations() {
        for parameter in operation.parameters() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            // Only a page's own `next` is accepted, an event stream never ends, and operations with an actor need a body too.
            if name == "cursor"
                || name == "Ichido-Actor"
                || parameter["in"] == "path"
                || operation.path == "/v1/events"
            {
                continue;
            }
            let fits = app.validator(schema);
            for sample in samples() {
                if !fits.is_valid(&app.instance(schema, &sample)) || is_far_ahead(name, &sample) {
                    continue;
                }
                let (status, problem) = app.call(&operation.request(name, &sample)).await;
                assert!(
                    !REFUSED.contains(&status),
                    "{} {} {name}={sample:?}: {problem}",
                    operation.method,
                    operation.path
                );
                accepted.insert((operation.path.clone(), name.to_owned()));
            }
            assert!(accepted.contains(&(operation.path.clone(), name.to_owned())), "no sample fits {name}");
        }
    }
}

#[tokio::test]
async fn parameters_one_step_over_their_bounds_are_refused() {
    let app = App::start().await;
    let (limit, records) = ((MAX_LIST + 1).to_string(), (MAX_UNKNOWN + 1).to_string());
    let (queue, key) = ("q".repeat(MAX_QUEUE_BYTES + 1), "k".repeat(IdempotencyKey::MAX_LEN + 1));
    let identity = "i".repeat(MAX_IDENTITY_BYTES + 1);
    let subject = format!("operation:{}", "o".repeat(MAX_OPERATION_BYTES + 1));
    for (path, name, sample) in [
        ("/v1/messages", "queue", queue.as_str()),
        ("/v1/messages", "queue", ""),
        ("/v1/messages", "queue", "a b"),
        ("/v1/messages", "state", "gone"),
        ("/v1/messages", "key", &key),
        ("/v1/messages", "key", "a b"),
        ("/v1/messages", "identity", "\0"),
        ("/v1/messages", "code", "TEAPOT"),
        ("/v1/messages", "created_from", "2026-11-15T03:00:00.1234567Z"),
        ("/v1/messages", "created_before", "2026-11-31T03:00:00Z"),
        ("/v1/messages", "created_before", "2026-13-01T03:00:00Z"),
        ("/v1/messages", "field", "symbol"),
        ("/v1/messages", "field", "/a~2"),
        ("/v1/messages", "limit", "0"),
        ("/v1/messages", "limit", &limit),
        ("/v1/dead-letters", "state", "sent"),
        ("/v1/dead-letters", "disposition", "closed"),
        ("/v1/dead-letters", "effect", "maybe"),
        ("/v1/dead-letters", "text", "\0"),
        ("/v1/dead-letters", "limit", &limit),
        ("/v1/dead-letters", "group", "8c1f6c0e"),
        ("/v1/failure-groups", "limit", &limit),
        ("/v1/alerts", "state", "resolved"),
        ("/v1/series", "subject", "node:1"),
        ("/v1/series", "subject", "queue:"),
        ("/v1/series", "subject", &subject),
        ("/v1/series", "step", "30s"),
        ("/v1/series", "step", "0m"),
        ("/v1/series", "step", "91d"),
        ("/v1/series", "from", "2026-11-31T03:00:00Z"),
        ("/v1/keys/unknown", "limit", "0"),
        ("/v1/keys/unknown", "limit", &records),
        ("/v1/keys", "key", &key),
        ("/v1/keys", "hash", "0123456789abcde"),
        ("/v1/keys", "message", "01995b1c"),
        ("/v1/messages/{id}/events", "limit", &limit),
        ("/v1/queues/{queue}/messages", "Idempotency-Key", &key),
        ("/v1/queues/{queue}/messages", "Idempotency-Key", "\"k"),
        ("/v1/queues/{queue}/messages", "Ichido-Identity", &identity),
        ("/v1/queues/{queue}/messages", "wait", "31s"),
        ("/v1/queues/{queue}/messages", "wait", "30001ms"),
        ("/v1/queues/{queue}/messages", "priority", "256"),
        ("/v1/queues/{queue}/messages", "priority", "-1"),
        ("/v1/queues/{queue}/messages", "delay", "367d"),
        ("/v1/queues/{queue}/messages", "delay", "30"),
        ("/v1/queues/{queue}/messages", "run_at", "2026-11-15T03:00:00+01:00"),
        ("/v1/messages/{id}/replace", "although_done", "maybe"),
    ] {
        let operation = app.operations().into_iter().find(|operation| {
            operation.path == path && operation.parameters().iter().any(|parameter| parameter["name"] == name)
        });
        let operation = operation.expect("it is there");
        let parameter =
            operation.parameters().into_iter().find(|parameter| parameter["name"] == name).unwrap();
        let schema = &parameter["schema"];
        assert!(!app.validator(schema).is_valid(&app.instance(schema, sample)), "{path} {name}={sample:?}");
        let (status, problem) = app.call(&operation.request(name, sample)).await;
        assert!(REFUSED.contains(&status), "{path} {name}={sample:?}: {status} {problem}");
    }
}

/// utoipa needs the limit of a repeated parameter as a literal.
#[tokio::test]
async fn the_number_of_watched_messages_matches_the_description() {
    let app = App::start().await;
    let events = &app.description["paths"]["/v1/events"]["get"]["parameters"][0]["schema"];
    assert_eq!(events["maxItems"], MAX_FEED_MESSAGES, "{events}");
}

#[tokio::test]
async fn bodies_that_fit_their_schema_are_accepted() {
    let app = App::start().await;
    let bases = [
        ("/v1/messages/{id}/cancel", "Because", json!({})),
        ("/v1/messages/{id}/requeue", "Because", json!({})),
        ("/v1/messages/{id}/discard", "Discard", json!({"reason": "x"})),
        ("/v1/messages/{id}/decide", "Decide", json!({"decision": "done"})),
        ("/v1/destinations/{name}/pace", "SetPace", json!({"rate": null})),
        (
            "/v1/keys/decide",
            "DecideRecord",
            json!({"operation": "o", "identity": "i", "key": "k", "decision": "done"}),
        ),
        ("/v1/operations", "Begin", json!({"action": "requeue", "all": true, "preview": true})),
    ];
    for (path, schema, base) in bases {
        let fits = app.validator(&reference(schema));
        let members = app.description["components"]["schemas"][schema]["properties"].as_object().unwrap();
        for body in variants(&base, members.keys()) {
            let is_valid = fits.is_valid(&body);
            let (status, problem) = app.send_json(path, &body).await;
            assert!(!is_valid || !REFUSED.contains(&status), "{path} {body}: {problem}");
        }
        let (status, problem) = app.send_json(path, &base).await;
        assert!(fits.is_valid(&base) && !REFUSED.contains(&status), "{path} {base}: {problem}");
    }
}

/// Tests every combination of members whose values depend on each other.
#[tokio::test]
async fn operations_are_refused_exactly_where_their_schema_says() {
    let app = App::start().await;
    let fits = app.validator(&reference("Begin"));
    let filters = [
        None,
        Some(json!({})),
        Some(json!({"queue": "orders"})),
        Some(json!({"queue": null})),
        Some(json!({"discarded": true})),
        Some(json!({"discarded": false})),
        Some(json!({"discarded": true, "replaced": true})),
        Some(json!({"state": "parked"})),
        Some(json!({"state": "dead", "discarded": true})),
        Some(json!({"state": "parked", "replaced": true})),
    ];
    let actions = [
        json!({"action": "requeue"}),
        json!({"action": "requeue", "decision": "done"}),
        json!({"action": "discard"}),
        json!({"action": "discard", "decision": null}),
        json!({"action": "decide"}),
        json!({"action": "decide", "decision": null}),
        json!({"action": "decide", "decision": "not_done"}),
        json!({"action": "decide", "decision": "give_up"}),
    ];
    let truths = [None, Some(json!(false)), Some(json!(true))];
    let (mut valid, mut refused) = (0, 0);
    for action in &actions {
        for filter in &filters {
            for all in &truths {
                for canary in &truths {
                    for reason in [None, Some(json!(null)), Some(json!("why"))] {
                        let mut body = action.clone();
                        body["preview"] = json!(true);
                        let members =
                            [("filter", filter), ("all", all), ("canary", canary), ("reason", &reason)];
                        for (name, value) in members {
                            if let Some(value) = value {
                                body[name] = value.clone();
                            }
                        }
                        let (status, problem) = app.send_json("/v1/operations", &body).await;
                        assert!(fits.is_valid(&body) != REFUSED.contains(&status), "{body}: {problem}");
                        *if fits.is_valid(&body) { &mut valid } else { &mut refused } += 1;
                    }
                }
            }
        }
    }
    assert!(20 < valid && 20 < refused, "{valid} {refused}");
}

#[test]
fn a_reason_is_refused_exactly_beyond_its_schema() {
    for fitting in ["", "é", &"é".repeat(MAX_EXCERPT_BYTES)] {
        assert_eq!(text::Reason::read(fitting).as_deref(), Ok(fitting));
    }
    for beyond in ["why\0", &"x".repeat(MAX_EXCERPT_BYTES + 1)] {
        assert!(text::Reason::read(beyond).is_err(), "{beyond}");
    }
}

#[tokio::test]
async fn rates_are_refused_exactly_beyond_their_bounds() {
    let app = App::start().await;
    let fits = app.validator(&reference("SetPace"));
    let rates = [json!(null), json!(2e-5), json!(2.5), json!(100_000)];
    for rate in rates {
        let body = json!({ "rate": rate });
        let (status, problem) = app.send_json("/v1/destinations/{name}/pace", &body).await;
        assert!(fits.is_valid(&body) && status == 200, "{body}: {problem}");
    }
    for rate in [json!(0), json!(1e-5), json!(-1), json!(100_000.1), json!("fast")] {
        let body = json!({ "rate": rate });
        let (status, _) = app.send_json("/v1/destinations/{name}/pace", &body).await;
        assert!(!fits.is_valid(&body) && status == 422, "{body}");
    }
}

#[tokio::test]
async fn lines_of_a_batch_are_refused_where_their_schema_says() {
    let app = App::start().await;
    let fits = app.validator(&reference("Line"));
    let bases = [
        json!({"key": "k", "body": {"qty": 1}}),
        json!({"key": "k", "body_base64": "", "content_type": "text/plain"}),
    ];
    let members = ["key", "body", "body_base64", "content_type", "priority", "delay", "run_at", "due"];
    let members = members.map(str::to_owned);
    let mut accepted = 0;
    for (number, base) in bases.iter().enumerate() {
        for (index, mut line) in variants(base, members.iter()).into_iter().enumerate() {
            if is_far_ahead("run_at", line["run_at"].as_str().unwrap_or_default()) {
                continue;
            }
            if line["key"] == "k" {
                line["key"] = json!(format!("k-{number}-{index}"));
            }
            // Bytes that are not JSON are refused as JSON, which a schema cannot express.
            let is_json = line["content_type"].as_str().is_some_and(|said| said.contains("json"));
            let is_valid = fits.is_valid(&line) && !(is_json && line.get("body_base64").is_some());
            let text = line.to_string();
            let (status, result) = app.call(&TestRequest::ndjson(&text)).await;
            let refused = [400, 413, 415, 422].contains(&result["status"].as_u64().unwrap());
            assert_eq!(status, 200);
            assert!(!is_valid || !refused, "{text}: {result}");
            assert!(is_valid || refused || is_json, "{text}: {result}");
            accepted += u32::from(is_valid);
        }
    }
    assert!(20 < accepted, "{accepted}");
}

/// Returns whether a value is more than a year ahead, which a schema cannot say.
fn is_far_ahead(name: &str, sample: &str) -> bool {
    name == "run_at" && ("2027".."A").contains(&sample)
}

/// Returns texts at, within and beyond all limits.
fn samples() -> Vec<String> {
    let lengths = [1, 127, 128, 129, 254, 255, 256, 257, 1_023, 1_024, 1_025];
    let long = lengths.into_iter().flat_map(|length| ["a", "é"].map(|unit| unit.repeat(length)));
    let odd = [
        "",
        " ",
        "a b",
        "\"",
        "\"quoted\"",
        "a\"b",
        "\0",
        "a\0b",
        "\n",
        "\u{7f}",
        "日本",
        "text/plain; charset=utf-8",
    ];
    let plain = "orders a.b_c-d:e / ~ 0 1 50 100 101 200 201 -1 1.5 true false null \
        0s 1s 30s 31s 030s 0ms 250ms 29999ms 30000ms 30001ms 1m 10m 9999m 1h 168h 169h 7d 8d 99999s soon \
        2026-11-15T03:00:00Z 2026-11-15T03:00:00.5Z 2026-11-15T03:00:00.123456Z 2026-11-15T03:00:00.1234567Z \
        2028-02-29T23:59:59Z 2027-02-29T00:00:00Z 2026-13-01T00:00:00Z 2026-11-15T24:00:00Z 2026-11-15T03:00:00+01:00 \
        0000-01-01T00:00:00Z 9999-12-31T23:59:59.999999Z 8c1f6c0e-52b7-8d1a-9a55-0f4a7b1f2c33 \
        /symbol /a/0/b~0~1 /a~2 /~ // symbol \
        dead parked open discarded replaced firing resolved not_done done unknown \
        queued sending failed sent cancelled BROKER_5XX TEAPOT \
        queue:orders destination:shop operation:a:b queues operations 5m 90d 91d \
        text/plain application/json text/plain; text a/b/c AA== AB== AAA= AAB= AAAA A AA AA= 0123456789abcdef 01995b1c-0000-7000-8000-0123456789ab";
    let deep = [64, 65].map(|steps| "/a".repeat(steps));
    plain.split_whitespace().chain(odd).map(str::to_owned).chain(long).chain(deep).collect()
}

/// Returns a body with each member removed, or set to each sample.
fn variants<'a>(base: &Value, members: impl Iterator<Item = &'a String>) -> Vec<Value> {
    let mut variants = Vec::new();
    for member in members {
        let texts = samples().into_iter().map(Value::String);
        let others = [
            json!(null),
            json!(true),
            json!(false),
            json!(1),
            json!({}),
            json!({"queue": "orders"}),
            json!([]),
        ];
        for value in texts.chain(others) {
            let mut body = base.clone();
            body[member.as_str()] = value;
            variants.push(body);
        }
        let mut body = base.clone();
        body.as_object_mut().unwrap().remove(member);
        variants.push(body);
    }
    variants
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// The API on a store of its own, with its description.
struct App {
    router: Router,
    description: Value,
    /// The id of an existing message.
    message: String,
    _file: SqliteTestFile,
}

impl App {
    async fn start() -> Self {
        let file = fresh_file();
        let store = Store::open(&file.url, 2).await.unwrap();
        let outside = ConfigSources::of_files(PathBuf::new());
        let config = config::resolve("ichido.toml", CONFIG, &outside).unwrap();
        let router = router(std::sync::Arc::new(in_process::api(store, Some(&config))));
        let description = serde_json::from_str(&text(served().into_openapi())).unwrap();
        let mut app = Self { router, description, message: String::new(), _file: file };
        let put = TestRequest {
            key: Some("first".to_owned()),
            ..TestRequest::to(Method::POST, "/v1/queues/orders/messages")
        };
        let (status, accepted) = app.call(&put).await;
        assert_eq!(status, 201, "{accepted}");
        app.message = accepted["id"].as_str().unwrap().to_owned();
        app
    }

    fn operations(&self) -> Vec<DescribedOperation<'_>> {
        let paths = self.description["paths"].as_object().unwrap().iter();
        let operations = paths.flat_map(|(path, item)| {
            item.as_object().unwrap().iter().map(move |(method, described)| DescribedOperation {
                app: self,
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                described,
            })
        });
        operations.collect()
    }

    fn validator(&self, schema: &Value) -> Validator {
        let mut whole = schema.clone();
        whole["components"] = self.description["components"].clone();
        let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
        options.offline().build(&whole).unwrap_or_else(|error| panic!("{schema}: {error}"))
    }

    /// Returns the value that a parameter's text stands for.
    fn instance(&self, schema: &Value, text: &str) -> Value {
        let named =
            schema["$ref"].as_str().and_then(|path| self.description.pointer(path.trim_start_matches('#')));
        match named.unwrap_or(schema)["type"].as_str() {
            Some("integer" | "boolean") => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            _ => json!(text),
        }
    }

    /// Fills in the variable part of a path.
    fn target(&self, path: &str) -> String {
        path.replace("{queue}", "orders").replace("{name}", "shop").replace("{id}", &self.message)
    }

    async fn send_json(&self, path: &str, body: &Value) -> (u16, Value) {
        let method = if path.ends_with("/pace") { Method::PUT } else { Method::POST };
        let body = body.to_string();
        self.call(&TestRequest {
            body,
            content_type: "application/json",
            ..TestRequest::to(method, &self.target(path))
        })
        .await
    }

    async fn call(&self, sent: &TestRequest) -> (u16, Value) {
        let mut request = Request::new(Body::from(sent.body.clone()));
        *request.method_mut() = sent.method.clone();
        *request.uri_mut() = sent.target.parse().unwrap();
        request.headers_mut().insert("content-type", HeaderValue::from_static(sent.content_type));
        for (name, value) in [("idempotency-key", &sent.key), ("ichido-identity", &sent.identity)] {
            // Values that a header cannot carry are left out.
            if let Some(value) = value.as_ref().and_then(|value| HeaderValue::from_str(value).ok()) {
                request.headers_mut().insert(name, value);
            }
        }
        request.extensions_mut().insert(ApiCaller::local());
        let response = self.router.clone().call(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }
}

/// A request to send.
struct TestRequest {
    method: Method,
    target: String,
    key: Option<String>,
    identity: Option<String>,
    content_type: &'static str,
    body: String,
}

impl TestRequest {
    fn to(method: Method, target: &str) -> Self {
        let (target, content_type) = (target.to_owned(), "application/octet-stream");
        Self { method, target, key: None, identity: None, content_type, body: String::new() }
    }

    fn ndjson(line: &str) -> Self {
        let sent = Self::to(Method::POST, "/v1/queues/orders/messages:batch");
        Self { content_type: "application/x-ndjson", body: line.to_owned(), ..sent }
    }
}

/// An operation in the description.
struct DescribedOperation<'a> {
    app: &'a App,
    method: Method,
    path: String,
    described: &'a Value,
}

impl DescribedOperation<'_> {
    fn parameters(&self) -> Vec<Value> {
        self.described["parameters"].as_array().cloned().unwrap_or_default()
    }

    /// Returns a request with everything required, and one parameter set.
    fn request(&self, name: &str, value: &str) -> TestRequest {
        let mut sent = TestRequest::to(self.method.clone(), "");
        let mut query: Vec<(&str, &str)> = Vec::new();
        match name {
            "Idempotency-Key" => sent.key = Some(value.to_owned()),
            "Ichido-Identity" => sent.identity = Some(value.to_owned()),
            "Ichido-Hops" => (),
            // The two belong together.
            "field" => query.extend([("field", value), ("value", "1")]),
            "value" => query.extend([("field", "/a"), ("value", value)]),
            name => query.push((name, value)),
        }
        if self.path.ends_with("/messages") && self.method == Method::POST || self.path.ends_with("/replace")
        {
            sent.key.get_or_insert_with(|| format!("{name}-{}", query.len()));
        }
        if self.path.ends_with(":batch") {
            sent.content_type = "application/x-ndjson";
        }
        // One of the three.
        if self.path == "/v1/keys" && !["key", "hash", "message"].contains(&name) {
            query.push(("key", "x"));
        }
        if self.path == "/v1/series" && name != "subject" {
            query.push(("subject", "queues"));
        }
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        sent.target = format!("{}?{query}", self.app.target(&self.path));
        sent
    }
}
