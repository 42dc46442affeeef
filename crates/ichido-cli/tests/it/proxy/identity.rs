//! Identities from headers, tokens and API keys; nobody reaches another caller's action.
// Spec: C3.

use std::time::{SystemTime, UNIX_EPOCH};

use ichido_core::digest::Digest;
use ichido_store::testing::sqlite::{SqliteTestFile, fresh_file};
use serde_json::{Value, json};

use super::client::{ProxyRequest, send};
use super::program::ProxyProcess;
use super::service::{FakeService, ServiceAction, answer};
use super::token;
use crate::folder::{self, TempFolder};
use crate::http_message::HttpMessage;

pub(crate) const SECRET: &str = "a secret of at least thirty-two bytes";
const RSA: &[u8] = include_bytes!("keys_for_tests/rsa.pem");
const RSA_PUBLIC: &str = include_str!("keys_for_tests/rsa_pub.pem");
const EC: &[u8] = include_bytes!("keys_for_tests/ec.pem");
const EC_PUBLIC: &str = include_str!("keys_for_tests/ec_pub.pem");

/// An adapter in front of a service that numbers its responses.
struct Guarded {
    service: FakeService,
    proxy: ProxyProcess,
    _store: SqliteTestFile,
    _folder: TempFolder,
}

async fn guarded(identity: &str, flags: impl FnOnce(&TempFolder) -> Vec<String>) -> Guarded {
    let service = FakeService::start(|_, before| {
        ServiceAction::Answer(answer("201 Created", &[], &format!("order {before}")))
    })
    .await;
    let (store, folder) = (fresh_file(), folder::fresh());
    let mut all: Vec<String> = ["--store", &store.url, "--operation", "POST /orders", "--identity", identity]
        .map(str::to_owned)
        .to_vec();
    all.extend(flags(&folder));
    let flags: Vec<&str> = all.iter().map(String::as_str).collect();
    let proxy = ProxyProcess::start("adapter", service.address, &flags);
    Guarded { service, proxy, _store: store, _folder: folder }
}

impl Guarded {
    async fn order(&self, fields: &[(&str, &str)]) -> HttpMessage {
        let request = ProxyRequest::post("/orders").key("k").body("same");
        let request = fields.iter().fold(request, |request, (name, value)| request.field(name, value));
        send(self.proxy.address, &request).await
    }

    async fn order_with_token(&self, token: &str) -> HttpMessage {
        self.order(&[("Authorization", &format!("Bearer {token}"))]).await
    }
}

#[expect(clippy::disallowed_methods, reason = "tokens are valid by the machine's own clock")]
pub(crate) fn seconds_from_now(seconds: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    i64::try_from(now).expect("before the end of time") + seconds
}

pub(crate) fn claims(subject: &str) -> Value {
    json!({"sub": subject, "aud": "orders", "exp": seconds_from_now(600)})
}

pub(crate) fn hs256(claims: &Value) -> String {
    token::hs256(claims, SECRET)
}

fn jwt_flags(folder: &TempFolder, algorithm: &str, key: &str) -> Vec<String> {
    let key = folder.write("key", key);
    ["--jwt-algorithm", algorithm, "--jwt-key", &key, "--jwt-audience", "orders"].map(str::to_owned).to_vec()
}

#[tokio::test]
async fn missing_identity_header_is_logged_once() {
    let service = FakeService::start(|_, _| ServiceAction::Answer(answer("201 Created", &[], "made"))).await;
    let store = fresh_file();
    let flags = ["--store", &store.url, "--operation", "POST /orders", "--identity", "header:x-user-id"];
    let mut adapter = ProxyProcess::start_logged("adapter", service.address, &flags);
    // The bff must drop it: a browser could send anything.
    let bff = ProxyProcess::start("bff", adapter.address, &["--drop-headers", "x-user-id"]);
    for key in ["one", "two"] {
        let order = ProxyRequest::post("/orders").key(key).field("x-user-id", "7").body("same");
        assert_eq!(send(bff.address, &order).await.status(), 403);
    }
    adapter.signal("TERM");
    assert!(adapter.wait().await.success());
    let log = adapter.log();
    assert_eq!(log.matches("rejected request without the identity header").count(), 1, "{log}");
    assert!(log.contains("x-user-id") && log.contains("take the identity from a JWT"), "{log}");
}

#[tokio::test]
async fn same_key_from_two_callers_is_two_actions() {
    let guarded = guarded("header:x-user-id", |_| Vec::new()).await;
    let alice = guarded.order(&[("x-user-id", "alice")]).await;
    let bob = guarded.order(&[("x-user-id", "bob")]).await;
    assert_eq!((alice.text(), bob.text()), ("order 0", "order 1"));
    let again = guarded.order(&[("x-user-id", "alice")]).await;
    assert_eq!((again.text(), again.one("idempotency-replayed")), ("order 0", Some("true")));
    assert_eq!(guarded.service.seen().len(), 2);
}

#[tokio::test]
async fn missing_or_ambiguous_identity_is_refused() {
    let guarded = guarded("header:x-user-id", |_| Vec::new()).await;
    let twice = [("x-user-id", "alice"), ("x-user-id", "bob")];
    let named = [("connection", "x-user-id"), ("x-user-id", "alice")];
    for (fields, status) in [(&[][..], 403), (&[("x-user-id", "")], 403), (&twice, 403), (&named, 400)] {
        assert_eq!(guarded.order(fields).await.status(), status, "{fields:?}");
    }
    assert_eq!(guarded.service.seen().len(), 0);
}

#[tokio::test]
async fn a_renewed_token_is_the_same_caller() {
    let guarded = guarded("jwt:sub", |folder| jwt_flags(folder, "HS256", &format!("{SECRET}\n"))).await;
    assert_eq!(guarded.order_with_token(&hs256(&claims("alice"))).await.text(), "order 0");
    let mut renewed = claims("alice");
    renewed["exp"] = json!(seconds_from_now(1200));
    renewed["jti"] = json!("another");
    let again = guarded.order_with_token(&hs256(&renewed)).await;
    assert_eq!((again.text(), again.one("idempotency-replayed")), ("order 0", Some("true")));
    assert_eq!(guarded.order_with_token(&hs256(&claims("bob"))).await.text(), "order 1");
}

#[tokio::test]
async fn invalid_tokens_are_refused() {
    let guarded = guarded("jwt:sub", |folder| jwt_flags(folder, "HS256", SECRET)).await;
    let with = |name: &str, value: Value| {
        let mut claims = claims("alice");
        claims[name] = value;
        hs256(&claims)
    };
    let without = |name: &str| {
        let mut claims = claims("alice");
        claims.as_object_mut().expect("an object").remove(name);
        hs256(&claims)
    };
    let good = hs256(&claims("alice"));
    let (head, rest) = good.split_once('.').expect("three parts");
    let (payload, _) = rest.split_once('.').expect("three parts");
    // `{"alg":"none","typ":"JWT"}`
    let none = format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{payload}.");
    for (what, token) in [
        ("expired", with("exp", json!(seconds_from_now(-3600)))),
        ("without an end", without("exp")),
        ("not yet", with("nbf", json!(seconds_from_now(3600)))),
        ("for another", with("aud", json!("billing"))),
        ("for nobody", without("aud")),
        ("about nobody", without("sub")),
        ("about nothing", with("sub", json!(""))),
        ("about an object", with("sub", json!({"a": 1}))),
        ("another key", token::hs256(&claims("alice"), "another secret of at least 32 bytes!!")),
        ("another algorithm", token::hs512(&claims("alice"), SECRET)),
        ("no algorithm", none),
        ("no signature", format!("{head}.{payload}.")),
        ("no token", "abc".to_owned()),
        ("too long", "a".repeat(17_000)),
    ] {
        let refused = guarded.order_with_token(&token).await;
        assert_eq!((refused.status(), refused.one("www-authenticate")), (401, Some("Bearer")), "{what}");
    }
    for fields in [&[][..], &[("Authorization", "Basic YTpi")], &[("Authorization", "Bearer")]] {
        assert_eq!(guarded.order(fields).await.status(), 401, "{fields:?}");
    }
    assert_eq!(guarded.service.seen().len(), 0);
    assert_eq!(guarded.order_with_token(&good).await.status(), 201);
}

#[tokio::test]
async fn public_keys_verify_tokens_and_cannot_forge_them() {
    for (name, signed, public) in [
        ("RS256", token::rs256(&claims("alice"), RSA), RSA_PUBLIC),
        ("ES256", token::es256(&claims("alice"), EC), EC_PUBLIC),
    ] {
        let guarded = guarded("jwt:sub", |folder| jwt_flags(folder, name, public)).await;
        assert_eq!(guarded.order_with_token(&signed).await.status(), 201, "{name}");
        // The public key used as the secret of HS256: a classic attack.
        let forged = token::hs256(&claims("alice"), public);
        assert_eq!(guarded.order_with_token(&forged).await.status(), 401, "{name}");
        let mut cut = signed.clone();
        cut.truncate(signed.len() - 4);
        assert_eq!(guarded.order_with_token(&cut).await.status(), 401, "{name}");
    }
}

#[tokio::test]
async fn api_key_is_configured_by_hash() {
    let guarded = guarded("api-key:X-Api-Key", |folder| {
        let line = |key: &str, whose: &str| format!("{} {whose}\n", Digest::of_bytes(key.as_bytes()));
        let keys =
            format!("# ours\n{}{}{}", line("key-a1", "alice"), line("key-a2", "alice"), line("key-b", "bob"));
        vec!["--api-keys".to_owned(), folder.write("api-keys", &keys)]
    })
    .await;
    assert_eq!(guarded.order(&[("x-api-key", "key-a1")]).await.text(), "order 0");
    assert_eq!(guarded.order(&[("x-api-key", "key-a2")]).await.text(), "order 0", "two keys, one caller");
    assert_eq!(guarded.order(&[("x-api-key", "key-b")]).await.text(), "order 1");
    for wrong in ["", "key-c", "KEY-B"] {
        assert_eq!(guarded.order(&[("x-api-key", wrong)]).await.status(), 401, "{wrong}");
    }
    assert_eq!(guarded.service.seen().len(), 2);
}
