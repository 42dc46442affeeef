//! Signs people in and out: a token becomes a cookie.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use crate::access::{Origin, comes_from, cookie, foreign, needs_json, session};
use crate::app::App;
use crate::credential::Credential;
use crate::people;
use crate::problem::{Code, Problem};
use crate::settings::limits;

#[derive(Deserialize)]
struct Shown {
    token: String,
}

pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let body = body.map_err(|_| Problem::too_large(limits::MAX_BODY_BYTES))?;
    // Otherwise a foreign page could sign somebody in as somebody else.
    if comes_from(&headers, &app.settings) == Origin::Foreign {
        return Err(foreign());
    }
    needs_json(&headers, !body.is_empty())?;
    let shown: Shown = serde_json::from_slice(&body)
        .map_err(|_| Problem::new(Code::BodyInvalid, r#"the body does not match {"token": "bm_…"}"#))?;
    let wrong = || app.guesses.wrong();
    let token = Credential::parse(&shown.token).ok_or_else(wrong)?;
    let mut pooled = app.database.connect().await?;
    people::by_token(&mut pooled.connection(), &token).await?.ok_or_else(wrong)?;
    drop(pooled);
    let now = app.store.now().await?;
    let made = people::sign_in(&app.database, &token, now).await?.ok_or_else(wrong)?;
    // This ends the session that was open in this browser.
    if let Some(before) = session(&headers, &app.settings) {
        let mut pooled = app.database.connect().await?;
        people::sign_out(&mut pooled.connection(), &before).await?;
    }
    Ok(with_cookie(&app, Some(&made)))
}

pub(super) async fn sign_out(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    if comes_from(&headers, &app.settings) == Origin::Foreign {
        return Err(foreign());
    }
    if let Some(session) = session(&headers, &app.settings) {
        let mut pooled = app.database.connect().await?;
        people::sign_out(&mut pooled.connection(), &session).await?;
    }
    Ok(with_cookie(&app, None))
}

fn with_cookie(app: &App, session: Option<&Credential>) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(cookie) = cookie(session, &app.settings) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
