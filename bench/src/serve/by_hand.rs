//! A handler written by hand: it parses the JSON and does one plain INSERT.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::SqlitePool;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::floor_sqlite;

/// More than the machine's cores, fewer than the callers.
const CONNECTIONS: u32 = 16;
const TABLE: &str = "CREATE TABLE messages (id TEXT PRIMARY KEY, body TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO messages (id, body) VALUES ($1, $2)";

type JsonAnswer = (StatusCode, Json<Value>);

/// Serves until it is killed.
pub(crate) async fn serve(url: &str) {
    let router = if url.starts_with("sqlite:") {
        let pool = floor_sqlite::pool(url, TABLE).await;
        Router::new().route("/messages", post(on_sqlite)).with_state(pool)
    } else {
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(url).await.expect("a pool");
        sqlx::query(TABLE).execute(&pool).await.expect("a table");
        Router::new().route("/messages", post(on_postgres)).with_state(pool)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("serving on http://{}", listener.local_addr().expect("an address"));
    axum::serve(listener, router).await.expect("served");
}

async fn on_postgres(State(pool): State<PgPool>, Json(body): Json<Value>) -> JsonAnswer {
    let id = Uuid::now_v7().to_string();
    sqlx::query(INSERT).bind(&id).bind(body.to_string()).execute(&pool).await.expect("inserted");
    (StatusCode::CREATED, Json(json!({ "id": id })))
}

async fn on_sqlite(State(pool): State<SqlitePool>, Json(body): Json<Value>) -> JsonAnswer {
    let id = Uuid::now_v7().to_string();
    sqlx::query(INSERT).bind(&id).bind(body.to_string()).execute(&pool).await.expect("inserted");
    (StatusCode::CREATED, Json(json!({ "id": id })))
}
