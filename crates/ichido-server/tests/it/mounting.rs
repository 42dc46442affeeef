//! The API inside a foreign axum app.

// Spec: D11.

use axum::Router;
use axum::routing::get;
use http::Method;
use ichido_client::{Action, Client, ClientSettings, Outcome, Response, Token};
use ichido_core::digest::Digest;
use ichido_core::key::IdempotencyKey;
use ichido_server::config::Config;
use ichido_server::serve::{mount, token};
use ichido_store::Store;
use ichido_store::testing::sqlite::fresh_file;
use ichido_store::token::{NewToken, TokenRole};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::api::configure;

pub(crate) const CONFIG: &str = r#"
[destinations.shop]
kind = "http"
url = "http://127.0.0.1:9/orders"
guarantee = "keyed"
keeps_keys_for = "24h"

[queues.orders]
destination = "shop"
"#;

#[tokio::test]
async fn the_api_works_inside_a_foreign_app() {
    let file = fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    let url = foreign_app(&store).await;
    let stranger = client(&url, None);
    let bearer = client(&url, Some(&admin(&store).await));

    let message = action("order-1");
    assert_eq!(answer(stranger.send(&message).await).problem().code.as_deref(), Some("token_missing"));
    let first = answer(bearer.send(&message).await);
    assert_eq!((first.status, first.is_replay()), (201, false), "{first:?}");
    let again = answer(bearer.send(&message).await);
    assert_eq!((again.status, again.is_replay()), (201, true), "{again:?}");
    let id = first.text_at("/id").unwrap();
    let shown = answer(bearer.read(&format!("/v1/messages/{id}")).await.unwrap());
    assert_eq!(shown.text_at("/idempotency_key").as_deref(), Some("order-1"));

    // The other routes still belong to the app.
    assert_eq!(answer(stranger.read("/hello").await.unwrap()).body, "hello");
    let missing = answer(stranger.read("/missing").await.unwrap());
    assert_eq!((missing.status, &missing.body[..]), (404, &b"not here"[..]));
}

/// Starts an app with its own routes and fallback; returns its address.
pub(crate) async fn foreign_app(store: &Store) -> String {
    app_of(store, &config()).await
}

/// Starts the same app with another configuration.
pub(crate) async fn app_of(store: &Store, config: &Config) -> String {
    let app = Router::new()
        .route("/hello", get(async || "hello"))
        .merge(mount(store.clone(), config).await)
        .fallback(async || (http::StatusCode::NOT_FOUND, "not here"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

/// Returns the configuration of the app.
pub(crate) fn config() -> Config {
    configure(CONFIG).unwrap()
}

async fn admin(store: &Store) -> String {
    token_of(store, TokenRole::Admin).await
}

/// Adds a token and returns its text.
pub(crate) async fn token_of(store: &Store, role: TokenRole) -> String {
    let (id, secret) = (Uuid::now_v7(), "5e".repeat(token::SECRET_BYTES));
    let hash = *Digest::of_bytes(secret.as_bytes()).as_bytes();
    let new = NewToken { id, name: "ops".to_owned(), role, hash, ttl: None };
    store.tokens().add(&new, "tests").await.unwrap();
    token::text(id, &secret)
}

pub(crate) fn client(url: &str, token: Option<&str>) -> Client {
    let token = token.map(|text| Token::parse(text).unwrap());
    ClientSettings { token, ..ClientSettings::new(url) }.resolve().unwrap()
}

fn action(key: &str) -> Action {
    let key = IdempotencyKey::parse(key).unwrap();
    Action::new(Method::POST, "/v1/queues/orders/messages", key, "application/json", r#"{"qty":1}"#).unwrap()
}

pub(crate) fn answer(outcome: Outcome) -> Response {
    match outcome {
        Outcome::Done { answer, .. } | Outcome::Refused { answer, .. } => answer,
        Outcome::GaveUp { why, .. } => panic!("{why:?}"),
    }
}
