//! Lists bookmarks, newest first, one page at a time.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use ichido_core::digest::Digest;
use serde_json::json;
use uuid::Uuid;

use super::{answer, as_json};
use crate::access::AuthenticatedCaller;
use crate::app::App;
use crate::bookmark::Bookmark;
use crate::bookmarks::{self, BookmarkFilter};
use crate::problem::{Code, Problem};
use crate::settings::limits::{MAX_PAGE, MAX_SEARCH_CHARS, PAGE_DEFAULT};

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wanted = read(caller.person.id, uri.query().unwrap_or_default())?;
    let mut pooled = app.database.connect().await?;
    // One more than is shown tells whether there is a next page.
    let filter = BookmarkFilter { limit: wanted.limit + 1, ..wanted };
    let mut found = bookmarks::list(&mut pooled.connection(), &filter).await?;
    let is_more = wanted.limit < u32::try_from(found.len()).unwrap_or(u32::MAX);
    found.truncate(usize::try_from(wanted.limit).unwrap_or(usize::MAX));
    let next = found.last().filter(|_| is_more).map(|last| last.id);
    let found: Vec<_> = found.iter().map(Bookmark::to_json).collect();
    let body = json!({ "bookmarks": found, "next": next });
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

fn read(person: Uuid, query: &str) -> Result<BookmarkFilter, Problem> {
    let bad = |detail: String| Problem::new(Code::ParameterInvalid, detail);
    let mut filter = BookmarkFilter { person, search: None, before: None, limit: PAGE_DEFAULT };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "q" if MAX_SEARCH_CHARS < value.chars().count() || value.contains('\0') => {
                return Err(bad(format!("`q` must have at most {MAX_SEARCH_CHARS} characters and no NUL")));
            }
            "q" => filter.search = Some(value.trim().to_owned()),
            "before" => {
                let id = Uuid::parse_str(&value);
                filter.before =
                    Some(id.map_err(|_| bad("`before` must be the `next` of an earlier page".to_owned()))?);
            }
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
                filter.limit = limit.ok_or_else(|| bad(format!("`limit` must be from 1 to {MAX_PAGE}")))?;
            }
            _ => return Err(bad(format!("unknown parameter `{name}`; use q, before or limit"))),
        }
    }
    Ok(filter)
}
