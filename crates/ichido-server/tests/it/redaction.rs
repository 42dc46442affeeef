//! Redaction: whatever the API shows of a message, the values at the queue's pointers are not in it.

// Spec: E3, H9.

use axum::Router;
use axum::routing::post;
use http::{Method, StatusCode};
use ichido_server::config::Config;
use ichido_server::worker;
use ichido_store::Store;
use ichido_store::testing::{postgres, sqlite};
use ichido_store::token::TokenRole;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use crate::api::{TestApi, configure};
use crate::mounting::{app_of, token_of};

const CARD: &str = "4111111111111111";
const EMAIL: &str = "ann@example.com";
/// The receiver's own: no request has it.
const IBAN: &str = "JP7600000000001234";
const REDACTED: &str = "[redacted]";
/// Paths that show no message, and those that never end.
const LEFT_OUT: [&str; 1] = ["/v1/events"];

/// Answers with what it got: a success, an error as JSON, an error as text, or an error that is cut.
async fn receiver() -> String {
    let answer = async |body: String| {
        let echo = format!(
            r#"{{"card":{{"number":"{CARD}"}},"echo":["{EMAIL}"],"account":{{"iban":"{IBAN}"}},"id":7}}"#
        );
        match serde_json::from_str::<Value>(&body).unwrap()["mode"].as_str() {
            Some("json") => (StatusCode::BAD_REQUEST, echo),
            Some("text") => (StatusCode::BAD_REQUEST, format!("card {CARD} of {EMAIL} was refused")),
            Some("cut") => (
                StatusCode::BAD_REQUEST,
                format!(r#"{{"account":{{"iban":"{IBAN}"}},"x":"{}"}}"#, "x".repeat(2_000)),
            ),
            _ => (StatusCode::OK, echo),
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/pay", post(answer))).await });
    format!("http://{address}/pay")
}

async fn config() -> Config {
    let url = receiver().await;
    let text = format!(
        r#"
[destinations.shop]
kind = "http"
url = "{url}"
guarantee = "keyed"
keeps_keys_for = "24h"

[queues.payments]
destination = "shop"
redact = ["/card/number", "/customers/*/email", "/account", "/title"]

[queues.open]
destination = "shop"
"#
    );
    configure(&text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn request(mode: &str) -> String {
    format!(
        r#"{{"mode":"{mode}","card":{{"number":{CARD},"kind":"visa"}},"customers":[{{"email":"{EMAIL}"}}],"title":"{CARD}","qty":9007199254740993}}"#
    )
}

/// Messages that were sent, or died, in every way.
struct Delivered {
    api: TestApi,
    /// By mode.
    ids: Vec<(&'static str, String)>,
}

impl Delivered {
    async fn new(store: &Store, config: &Config) -> Self {
        let api = TestApi::new(store, config);
        let mut ids = Vec::new();
        for mode in ["ok", "json", "text", "cut"] {
            ids.push((mode, api.enqueue("payments", mode, &request(mode)).await));
        }
        let targets = worker::connect(config).await.unwrap();
        let worker = worker::start(store, config, worker::on_store(config, store, targets)).unwrap();
        for (_, id) in &ids {
            while !matches!(
                api.get(&format!("/v1/messages/{id}")).await["status"].as_str(),
                Some("sent" | "dead")
            ) {
                tokio::task::yield_now().await;
            }
        }
        worker.stop();
        worker.ended().await;
        Self { api, ids }
    }

    fn id(&self, mode: &str) -> &str {
        &self.ids.iter().find(|(known, _)| *known == mode).unwrap().1
    }

    async fn get(&self, mode: &str, rest: &str) -> Value {
        self.api.get(&format!("/v1/messages/{}{rest}", self.id(mode))).await
    }
}

fn assert_hidden(what: &str, text: &str) {
    for secret in [CARD, EMAIL, IBAN] {
        assert!(!text.contains(secret), "{what} shows {secret}: {text}");
    }
}

/// Calls every operation of the description, on every message. A new route is called without being named here.
async fn walk(delivered: &Delivered) -> Vec<String> {
    let description = delivered.api.get("/openapi.json").await;
    let mut shown = Vec::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        if LEFT_OUT.contains(&path.as_str()) {
            continue;
        }
        for method in operations.as_object().unwrap().keys() {
            let method: Method = method.to_ascii_uppercase().parse().unwrap();
            for (mode, id) in &delivered.ids {
                let target =
                    path.replace("{id}", id).replace("{queue}", "payments").replace("{destination}", "shop");
                let target = target.replace("{code}", "key_missing");
                let target = if path == "/v1/keys" { format!("{target}?key={mode}") } else { target };
                let (status, body) = delivered.api.ask_text(method.clone(), &target, "{}").await;
                assert_hidden(&format!("{method} {path}, {status}"), &body);
                if status == 200 && body.contains(id.as_str()) {
                    shown.push(format!("{method} {path}"));
                }
            }
        }
    }
    shown
}

#[tokio::test]
async fn no_route_shows_a_redacted_value() {
    let (database, file) = (postgres::fresh_database().await, sqlite::fresh_file());
    for url in [&database.url, &file.url] {
        let store = Store::open(url, 4).await.unwrap();
        let delivered = Delivered::new(&store, &config().await).await;
        let shown = walk(&delivered).await;
        for route in [
            "GET /v1/messages",
            "GET /v1/messages/{id}",
            "GET /v1/dead-letters",
            "GET /v1/dead-letters/{id}",
            "GET /v1/keys",
        ] {
            assert!(shown.iter().any(|known| known == route), "{route} showed no message: {shown:?}");
        }
        assert_feed_hides(&store, &config().await, delivered.id("text")).await;
    }
}

#[tokio::test]
async fn what_is_not_redacted_is_shown() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 4).await.unwrap();
    let delivered = Delivered::new(&store, &config().await).await;
    let (status, request) = delivered
        .api
        .ask_text(Method::GET, &format!("/v1/messages/{}/request", delivered.id("ok")), "")
        .await;
    assert_eq!(status, 200);
    assert_eq!(
        request,
        r#"{"mode":"ok","card":{"number":"[redacted]","kind":"visa"},"customers":[{"email":"[redacted]"}],"title":"[redacted]","qty":9007199254740993}"#
    );
    let sent = delivered.get("ok", "").await;
    let response = json!({"card":{"number":REDACTED},"echo":[REDACTED],"account":REDACTED,"id":7});
    assert_eq!((&sent["result"]["response"]["body"], &sent["item"]), (&response, &Value::Null));
    for (mode, error) in [
        (
            "json",
            format!(
                r#"400 Bad Request: {{"card":{{"number":"{REDACTED}"}},"echo":["{REDACTED}"],"account":"{REDACTED}","id":7}}"#
            ),
        ),
        ("text", format!("400 Bad Request: card {REDACTED} of {REDACTED} was refused")),
        ("cut", format!("400 Bad Request: {REDACTED}")),
    ] {
        assert_eq!(delivered.get(mode, "").await["last_error"]["text"], json!(error), "{mode}");
        // It is stored like this, so logs and alerts show no more.
        let id = Uuid::try_parse(delivered.id(mode)).unwrap();
        let stored = store.messages().get(id).await.unwrap().unwrap().last_error_text;
        assert_eq!(stored.as_deref(), Some(&*error), "{mode}");
    }
    // Another queue hides nothing.
    let id = delivered.api.enqueue("open", "other", &self::request("ok")).await;
    let (_, open) = delivered.api.ask_text(Method::GET, &format!("/v1/messages/{id}/request"), "").await;
    assert_eq!(open, self::request("ok"));
}

#[tokio::test]
async fn redacted_field_cannot_be_searched() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    let api = TestApi::new(&store, &config().await);
    api.enqueue("payments", "p1", &request("ok")).await;
    api.enqueue("open", "o1", &request("ok")).await;
    for (query, status) in [
        (format!("queue=payments&field=/card/number&value={CARD}"), 400),
        (format!("field=/card/number&value={CARD}"), 400),
        ("queue=payments&field=/card&value=x".to_owned(), 400),
        (format!("queue=payments&field=/customers/0/email&value={EMAIL}"), 400),
        ("queue=payments&field=/qty&value=9007199254740993".to_owned(), 200),
        (format!("queue=open&field=/card/number&value={CARD}"), 200),
    ] {
        let (found, body) = api.ask(Method::GET, &format!("/v1/messages?{query}"), "").await;
        assert_eq!(found, status, "{query}: {body}");
        match status {
            200 => assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{query}"),
            _ => {
                assert!(body["detail"].as_str().unwrap().contains("is redacted in queue payments"), "{body}");
            }
        }
    }
}

/// The person who edits a request does not see the values; its replacement has them.
#[tokio::test]
async fn edited_request_is_sent_with_its_hidden_values() {
    let file = sqlite::fresh_file();
    let store = Store::open(&file.url, 4).await.unwrap();
    let delivered = Delivered::new(&store, &config().await).await;
    let id = delivered.id("json");
    let (_, shown) = delivered.api.ask_text(Method::GET, &format!("/v1/messages/{id}/request"), "").await;
    let edited = shown.replace(r#""mode":"json""#, r#""mode":"ok""#);
    let replaced = delivered.api.put(&format!("/v1/messages/{id}/replace"), "json-2", &edited).await;
    assert_eq!(replaced.0, 201, "{}", replaced.1);
    let new = Uuid::try_parse(replaced.1["id"].as_str().unwrap()).unwrap();
    let stored = store.messages().get(new).await.unwrap().unwrap().request;
    assert_eq!(String::from_utf8(stored).unwrap(), request("ok"));
    let id = delivered.id("text");
    let nowhere = r#"{"customers":[{},{"email":"[redacted]"}]}"#;
    let refused = delivered.api.put(&format!("/v1/messages/{id}/replace"), "text-2", nowhere).await;
    assert_eq!((refused.0, refused.1["code"].as_str()), (422, Some("body_unexpected")), "{}", refused.1);
}

/// Reads the event stream until it has shown the end of a message.
async fn assert_feed_hides(store: &Store, config: &Config, id: &str) {
    let token = token_of(store, TokenRole::Viewer).await;
    let address = app_of(store, config).await.replace("http://", "");
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "GET /v1/events?message={id} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut shown = String::new();
    let mut buffer = vec![0; 64 * 1024];
    while !shown.contains("was refused") {
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "it ended: {shown}");
        shown.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    assert_hidden("GET /v1/events", &shown);
    assert!(shown.contains(REDACTED), "{shown}");
}

#[test]
fn wrong_pointers_are_refused_with_their_place() {
    let queue = |setting: &str| {
        let text = format!(
            "[destinations.shop]\nkind = \"http\"\nurl = \"http://127.0.0.1:9/\"\nguarantee = \"idempotent\"\n\n[queues.payments]\ndestination = \"shop\"\n{setting}\n"
        );
        configure(&text).map(drop).unwrap_err()
    };
    let error = queue("redact = [\"/card\", \"email\"]");
    assert!(
        error.contains(":8")
            && error.contains("`email` is not a JSON pointer: a pointer must begin with `/`"),
        "{error}"
    );
    let error = queue("redact = [\"/customer\"]\nitem = \"/customer/name\"");
    assert!(
        error.contains(":9") && error.contains("/customer/name is redacted, but a label is shown"),
        "{error}"
    );
}
