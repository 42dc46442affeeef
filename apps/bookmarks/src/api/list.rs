//! Lists or searches bookmarks, one page at a time.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use ichido::digest::Digest;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{answer, as_json};
use crate::access::AuthenticatedCaller;
use crate::app::App;
use crate::bookmark::Bookmark;
use crate::bookmarks;
use crate::database::DbConnection;
use crate::problem::{Code, Problem};
use crate::search::{self, Position, Query};
use crate::settings::limits::{MAX_PAGE, MAX_SEARCH_CHARS, PAGE_DEFAULT};

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wanted = read(uri.query().unwrap_or_default())?;
    let mut pooled = app.database.connect().await?;
    let body = page(&mut pooled.connection(), caller.person.id, &wanted).await?;
    drop(pooled);
    let tag = format!("\"{}\"", Digest::of_bytes(body.to_string().as_bytes()));
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| *known == tag);
    let mut response = if is_known {
        (StatusCode::NOT_MODIFIED, as_json()).into_response()
    } else {
        answer(StatusCode::OK, &body)
    };
    response.headers_mut().extend(HeaderValue::try_from(tag).map(|tag| (ETAG, tag)));
    Ok(response)
}

/// The page that is asked for.
struct Wanted {
    query: Option<Query>,
    after: Position,
    limit: u32,
}

async fn page(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    wanted: &Wanted,
) -> Result<Value, sqlx::Error> {
    // One more than is shown tells whether there is a next page.
    let limit = wanted.limit + 1;
    let (mut found, total) = if let Some(query) = &wanted.query {
        (search::find(connection, person, query, wanted.after, limit).await?, None)
    } else {
        let listed = bookmarks::list(connection, person, wanted.after.id, limit).await?;
        let position = |bookmark: &Bookmark| Position { id: bookmark.id, ..Position::START };
        let found = listed.into_iter().map(|bookmark| {
            let at = position(&bookmark);
            (bookmark, at)
        });
        (found.collect(), Some(bookmarks::count(connection, person).await?))
    };
    let shown = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let is_more = shown < found.len();
    found.truncate(shown);
    let next = found.last().filter(|_| is_more).map(|(_, position)| cursor(*position));
    let found: Vec<_> = found.iter().map(|(bookmark, _)| bookmark.to_json()).collect();
    Ok(json!({ "bookmarks": found, "next": next, "total": total }))
}

/// Writes a position for the caller, who does not look inside.
fn cursor(Position { level, id }: Position) -> String {
    URL_SAFE_NO_PAD.encode([&[u8::try_from(level).unwrap_or(u8::MAX)], &id.as_bytes()[..]].concat())
}

fn position(cursor: &str) -> Option<Position> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (level, id) = bytes.split_first()?;
    Some(Position { level: i64::from(*level), id: Uuid::from_slice(id).ok()? })
}

fn read(query: &str) -> Result<Wanted, Problem> {
    let bad = |detail: String| Problem::new(Code::ParameterInvalid, detail);
    let not_next = || bad("`before` must be the `next` of an earlier page".to_owned());
    let mut wanted = Wanted { query: None, after: Position::START, limit: PAGE_DEFAULT };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "q" if MAX_SEARCH_CHARS < value.chars().count() => {
                return Err(bad(format!("`q` must have at most {MAX_SEARCH_CHARS} characters")));
            }
            "q" => wanted.query = Query::parse(&value),
            "before" => wanted.after = position(&value).ok_or_else(not_next)?,
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
                wanted.limit = limit.ok_or_else(|| bad(format!("`limit` must be from 1 to {MAX_PAGE}")))?;
            }
            _ => return Err(bad(format!("unknown parameter `{name}`; use q, before or limit"))),
        }
    }
    // A search has levels, and the list has none.
    let is_search = wanted.query.is_some();
    let is_its_own = wanted.after == Position::START || (wanted.after.level != 0) == is_search;
    if is_its_own { Ok(wanted) } else { Err(not_next()) }
}
