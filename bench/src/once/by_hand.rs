//! Idempotency keys by hand, as a careful programmer would write them: a look-up, then the row, the key and the
//! response in one transaction.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::INSERT;

pub(super) const TABLE: &str = "CREATE TABLE idempotency_keys (key text PRIMARY KEY, request text NOT NULL, \
                                response text NOT NULL, created_at timestamptz NOT NULL DEFAULT now())";
const FIND: &str = "SELECT request, response FROM idempotency_keys WHERE key = $1";
const STORE: &str =
    "INSERT INTO idempotency_keys (key, request, response) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";

pub(super) async fn create(State(pool): State<PgPool>, headers: HeaderMap, body: String) -> Response {
    let Some(key) = headers.get("idempotency-key").and_then(|key| key.to_str().ok()) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    if let Some(stored) = replay(&pool, key, &body).await {
        return stored;
    }
    let id = Uuid::now_v7().to_string();
    let mut open = pool.begin().await.expect("begun");
    sqlx::query(INSERT).bind(&id).bind(&body).execute(&mut *open).await.expect("inserted");
    let stored =
        sqlx::query(STORE).bind(key).bind(&body).bind(&id).execute(&mut *open).await.expect("stored");
    if stored.rows_affected() == 1 {
        open.commit().await.expect("committed");
        return (StatusCode::CREATED, id).into_response();
    }
    // A duplicate was faster: nothing of this run remains.
    open.rollback().await.expect("rolled back");
    replay(&pool, key, &body).await.unwrap_or_else(|| StatusCode::CONFLICT.into_response())
}

async fn replay(pool: &PgPool, key: &str, body: &str) -> Option<Response> {
    let found = sqlx::query_as::<_, (String, String)>(FIND).bind(key).fetch_optional(pool).await;
    let (request, response) = found.expect("looked up")?;
    if request != body {
        return Some(StatusCode::CONFLICT.into_response());
    }
    Some((StatusCode::CREATED, [("idempotency-replayed", "true")], response).into_response())
}
