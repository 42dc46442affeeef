//! `axum-idempotent`: the client's key, and sessions in PostgreSQL, so that a stored response survives a restart.
//!
//! <https://docs.rs/axum-idempotent/0.6.0/axum_idempotent/struct.IdempotentOptions.html>

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use ichido_bench_peers::{Task, ready};
use ruts::store::postgres::{PostgresStore, PostgresStoreBuilder};
use ruts::{CookieOptions, SessionLayer};
use sqlx08::postgres::{PgPool, PgPoolOptions};
use tokio::net::TcpListener;
use tower_cookies::CookieManagerLayer;
use uuid::Uuid;

/// As many as the other endpoints: for the handler and the store each.
const CONNECTIONS: u32 = 16;

#[tokio::main]
async fn main() {
    let task = Task::read();
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(&task.url).await.expect("connected");
    sqlx08::query("CREATE TABLE bookmarks (id TEXT PRIMARY KEY, url TEXT NOT NULL)")
        .execute(&pool)
        .await
        .expect("a table");
    let sessions =
        PgPoolOptions::new().max_connections(CONNECTIONS).connect(&task.url).await.expect("connected");
    let store =
        Arc::new(PostgresStoreBuilder::new(sessions).create_table(true).build().await.expect("a store"));
    let options = IdempotentOptions::default().use_idempotency_key_header(Some("Idempotency-Key"), true);
    let router = Router::new()
        .route("/bookmarks", post(create))
        .layer(IdempotentLayer::<PostgresStore>::new(options))
        .layer(SessionLayer::new(store).with_cookie_options(CookieOptions::build().name("session")))
        .layer(CookieManagerLayer::new())
        .with_state(pool);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("served") });
    ready(Some(port)).await;
    serving.abort();
}

async fn create(State(pool): State<PgPool>, body: String) -> (StatusCode, String) {
    let id = Uuid::now_v7().to_string();
    let mut open = pool.begin().await.expect("begun");
    let insert = sqlx08::query("INSERT INTO bookmarks (id, url) VALUES ($1, $2)").bind(&id).bind(body);
    insert.execute(&mut *open).await.expect("inserted");
    open.commit().await.expect("committed");
    (StatusCode::CREATED, id)
}
