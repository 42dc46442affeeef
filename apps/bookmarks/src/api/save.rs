//! Saves a bookmark: `POST /v1/bookmarks`.
//!
//! Everything here happens in the layer's transaction: the bookmark, the message that has its page read, and the
//! response under the request's key commit together or not at all.
// SPEC A1 to A7.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use ichido::once::{Claim, EnqueuedMessage, SameContent};
use serde::Deserialize;
use uuid::Uuid;

use super::answer;
use crate::access::AuthenticatedCaller;
use crate::app::App;
use crate::bookmarks::{self, NewBookmark};
use crate::canonical::canonical;
use crate::database::LayerTransaction;
use crate::problem::{Code, Problem};
use crate::source::{CreatedFrom, SourceHint};
use crate::tags::Tags;
use crate::{jobs, reading, saving};

/// The body of the request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaveRequest {
    url: String,
    /// Shown until the page is read, and after that if the page has no title.
    #[serde(default)]
    title: Option<String>,
    /// Detected from the URL if it is missing.
    #[serde(default)]
    source_hint: Option<String>,
    #[serde(default)]
    created_from: Option<String>,
    /// The layer has compared it with the header.
    // SPEC D11.
    #[serde(default, rename = "idempotency_key")]
    _key: Option<String>,
}

pub(super) async fn save(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<AuthenticatedCaller>,
    claim: Claim,
    transaction: LayerTransaction,
    body: Bytes,
) -> Result<Response, Problem> {
    let new = read(&body, &caller, &claim)?;
    let mut guard = transaction.lock().await?;
    let mut connection = guard.connection();
    let turn = jobs::turn(&mut connection, &caller.person).await?;
    let (id, made) = saving::save_one(&app, &mut connection, &caller.person, (&new, turn)).await?;
    let bookmark = bookmarks::find(&mut connection, new.person, id).await?.ok_or(sqlx::Error::RowNotFound)?;
    let status = if made.is_some() { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = answer(status, &bookmark.to_json());
    if let Ok(location) = HeaderValue::try_from(format!("/v1/bookmarks/{id}")) {
        response.headers_mut().insert(LOCATION, location);
    }
    if let Some(made) = made {
        // The key is kept while the message may still be sent (SPEC A5).
        response.extensions_mut().insert(EnqueuedMessage(made));
    } else {
        // It counts as a duplicate, though its key is new (SPEC A14).
        response.extensions_mut().insert(SameContent);
    }
    Ok(response)
}

/// Reads the body of a request.
fn read(body: &[u8], caller: &AuthenticatedCaller, claim: &Claim) -> Result<NewBookmark, Problem> {
    let save_request: SaveRequest = serde_json::from_slice(body).map_err(|error| {
        let form = r#"{"url": "https://…", "title": "…", "source_hint": "article", "created_from": "web"}"#;
        Problem::new(Code::BodyInvalid, format!("the body does not match {form}: {error}"))
    })?;
    let url = canonical(&save_request.url)
        .map_err(|why| Problem::new(Code::UrlRefused, format!("`url` cannot be saved: {why}")))?;
    let hint = save_request.source_hint.as_deref();
    let hint = known("source_hint", hint, SourceHint::parse, &SourceHint::WORDS)?;
    let from = save_request.created_from.as_deref();
    let from = known("created_from", from, CreatedFrom::parse, &CreatedFrom::WORDS)?;
    Ok(NewBookmark {
        id: Uuid::now_v7(),
        person: caller.person.id,
        title: save_request.title.as_deref().and_then(reading::title),
        edited_title: None,
        tags: Tags::default(),
        idempotency_key: claim.name.key.as_str().to_owned(),
        source_hint: hint.unwrap_or_else(|| SourceHint::detect(&url)),
        created_from: from,
        now: caller.now,
        summary: None,
        is_done: false,
        url,
    })
}

/// Parses an optional member that has one of a few values.
fn known<T>(
    member: &str,
    word: Option<&str>,
    parse: fn(&str) -> Option<T>,
    words: &[&str],
) -> Result<Option<T>, Problem> {
    let Some(word) = word else { return Ok(None) };
    let known = parse(word).map(Some);
    known.ok_or_else(|| {
        Problem::new(Code::BodyInvalid, format!("`{member}` must be one of {}", words.join(", ")))
    })
}
