//! The pages: static files, built into the program. They contain no one's data, so everybody may load them.

use std::sync::Arc;

use axum::Router;
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use ichido::digest::Digest;

use crate::app::App;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const MANIFEST: &str = "application/manifest+json";
const SVG: &str = "image/svg+xml";
const PNG: &str = "image/png";

/// The path, the content and the media type.
const FILES: &[(&str, &[u8], &str)] = &[
    ("/", include_bytes!("../page/index.html"), HTML),
    ("/save", include_bytes!("../page/save.html"), HTML),
    ("/sign-in", include_bytes!("../page/sign-in.html"), HTML),
    ("/address.js", include_bytes!("../page/address.js"), SCRIPT),
    ("/api.js", include_bytes!("../page/api.js"), SCRIPT),
    ("/app.js", include_bytes!("../page/app.js"), SCRIPT),
    ("/bookmarklet.js", include_bytes!("../page/bookmarklet.js"), SCRIPT),
    ("/editor.js", include_bytes!("../page/editor.js"), SCRIPT),
    ("/find.js", include_bytes!("../page/find.js"), SCRIPT),
    ("/keys.js", include_bytes!("../page/keys.js"), SCRIPT),
    ("/menu.js", include_bytes!("../page/menu.js"), SCRIPT),
    ("/messages.js", include_bytes!("../page/messages.js"), SCRIPT),
    ("/person.js", include_bytes!("../page/person.js"), SCRIPT),
    ("/place.js", include_bytes!("../page/place.js"), SCRIPT),
    ("/press.js", include_bytes!("../page/press.js"), SCRIPT),
    ("/removal.js", include_bytes!("../page/removal.js"), SCRIPT),
    ("/save.js", include_bytes!("../page/save.js"), SCRIPT),
    ("/saves.js", include_bytes!("../page/saves.js"), SCRIPT),
    ("/shelf.js", include_bytes!("../page/shelf.js"), SCRIPT),
    ("/sign-in.js", include_bytes!("../page/sign-in.js"), SCRIPT),
    ("/state.js", include_bytes!("../page/state.js"), SCRIPT),
    ("/sw.js", include_bytes!("../page/sw.js"), SCRIPT),
    ("/view.js", include_bytes!("../page/view.js"), SCRIPT),
    ("/words.js", include_bytes!("../page/words.js"), SCRIPT),
    ("/ichido/client.js", include_bytes!("../../../clients/js/client.js"), SCRIPT),
    ("/ichido/entry.js", include_bytes!("../../../clients/js/entry.js"), SCRIPT),
    ("/ichido/ichido.js", include_bytes!("../../../clients/js/ichido.js"), SCRIPT),
    ("/ichido/key.js", include_bytes!("../../../clients/js/key.js"), SCRIPT),
    ("/ichido/next.js", include_bytes!("../../../clients/js/next.js"), SCRIPT),
    ("/ichido/outside.js", include_bytes!("../../../clients/js/outside.js"), SCRIPT),
    ("/ichido/queue.js", include_bytes!("../../../clients/js/queue.js"), SCRIPT),
    ("/ichido/store.js", include_bytes!("../../../clients/js/store.js"), SCRIPT),
    ("/ichido/sw.js", include_bytes!("../../../clients/js/sw.js"), SCRIPT),
    ("/ichido/wire.js", include_bytes!("../../../clients/js/wire.js"), SCRIPT),
    ("/app.css", include_bytes!("../page/app.css"), STYLE),
    ("/list.css", include_bytes!("../page/list.css"), STYLE),
    ("/panel.css", include_bytes!("../page/panel.css"), STYLE),
    ("/manifest.webmanifest", include_bytes!("../page/manifest.webmanifest"), MANIFEST),
    ("/icon.svg", include_bytes!("../page/icon.svg"), SVG),
    ("/icon-180.png", include_bytes!("../page/icon-180.png"), PNG),
    ("/icon-192.png", include_bytes!("../page/icon-192.png"), PNG),
    ("/icon-512.png", include_bytes!("../page/icon-512.png"), PNG),
    ("/icon-512-maskable.png", include_bytes!("../page/icon-512-maskable.png"), PNG),
    // Browsers ask for it by this name, without a link.
    ("/apple-touch-icon.png", include_bytes!("../page/icon-180.png"), PNG),
];

pub(crate) fn routes() -> Router<Arc<App>> {
    FILES.iter().fold(Router::new(), |routes, (path, bytes, media)| {
        let tag = format!("\"{}\"", Digest::of_bytes(bytes));
        routes.route(path, get(async move |headers: HeaderMap| file(&headers, bytes, media, &tag)))
    })
}

/// The page for unknown paths.
pub(crate) fn not_found() -> Html<&'static str> {
    Html(include_str!("../page/not-found.html"))
}

/// Browsers revalidate each time and get 304 if nothing has changed, so a new release is visible at once.
fn file(headers: &HeaderMap, bytes: &'static [u8], media: &'static str, tag: &str) -> Response {
    let is_known = headers.get(IF_NONE_MATCH).is_some_and(|known| *known == *tag);
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { bytes.into_response() };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(ETAG, tag);
    }
    response
}
