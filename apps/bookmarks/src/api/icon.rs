//! Serves the icon of a site.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use uuid::Uuid;

use crate::access::AuthenticatedCaller;
use crate::app::App;
use crate::icons;
use crate::problem::{Code, Problem};

/// A week: an icon changes seldom.
const CACHED: HeaderValue = HeaderValue::from_static("private, max-age=604800");

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<AuthenticatedCaller>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let unknown = || Problem::new(Code::PathUnknown, "the icon does not exist");
    let id = id.ok().and_then(|Path(id)| Uuid::parse_str(&id).ok()).ok_or_else(unknown)?;
    let mut pooled = app.database.connect().await?;
    let icon = icons::find(&mut pooled.connection(), caller.person.id, id).await?;
    let (media, bytes) = icon.ok_or_else(unknown)?;
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    if let Ok(media) = HeaderValue::try_from(media) {
        headers.insert(CONTENT_TYPE, media);
    }
    headers.insert(CACHE_CONTROL, CACHED);
    Ok(response)
}
