//! The files of the dashboard, compiled into the program.
//!
//! Guarantee: the address of a file has a hash of its content, so browsers keep it for a year and a new release never meets an old file.
//! No third-party script or style is loaded.

use std::sync::LazyLock;

use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use ichido_core::digest::Digest;

use super::super::response::with_type;

/// A year.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The hexadecimal digits of a hash in an address.
const HASH_CHARS: usize = 16;

/// The files with their names, types and contents.
pub(super) const FILES: [(&str, &str, &str); 3] = [
    ("dashboard.css", "text/css; charset=utf-8", include_str!("dashboard.css")),
    ("dashboard.js", "text/javascript; charset=utf-8", include_str!("dashboard.js")),
    ("icon.svg", "image/svg+xml", include_str!("icon.svg")),
];

/// The addresses of the files, below the dashboard's own path.
pub(super) struct AssetPaths {
    pub(super) css: String,
    pub(super) js: String,
    pub(super) icon: String,
}

/// The addresses, computed once.
pub(super) static PATHS: LazyLock<AssetPaths> = LazyLock::new(|| {
    let [css, js, icon] = FILES.map(|(name, _, content)| format!("/assets/{}", hashed(name, content)));
    AssetPaths { css, js, icon }
});

/// Returns the name of a file with the hash of its content: `dashboard-1f2e3d4c5b6a7980.css`.
fn hashed(name: &str, content: &str) -> String {
    let digest = Digest::of_bytes(content.as_bytes()).to_string();
    let hash: String = digest.chars().skip_while(|mark| *mark != ':').skip(1).take(HASH_CHARS).collect();
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    format!("{stem}-{hash}.{extension}")
}

/// Returns a file by its name with the hash.
pub(super) fn get(name: &str) -> Response {
    let found = FILES.iter().find(|(known, _, content)| hashed(known, content) == name);
    let Some((_, media_type, content)) = found else { return StatusCode::NOT_FOUND.into_response() };
    let mut response = with_type(StatusCode::OK, media_type, *content);
    response.headers_mut().insert(CACHE_CONTROL, CACHED);
    debug_assert!(response.headers().contains_key(CONTENT_TYPE));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum bytes of all files, and of the script.
    const MAX_ALL: usize = 100 * 1024;
    const MAX_SCRIPT: usize = 20 * 1024;

    #[test]
    fn assets_stay_small() {
        let size = |name: &str| {
            FILES.iter().filter(|(known, _, _)| known.ends_with(name)).map(|file| file.2.len()).sum::<usize>()
        };
        assert!(size("") <= MAX_ALL, "{}", size(""));
        assert!(size(".js") <= MAX_SCRIPT, "{}", size(".js"));
    }

    #[test]
    fn an_address_changes_with_the_content() {
        assert_ne!(hashed("a.css", "1"), hashed("a.css", "2"));
        let name = PATHS.css.strip_prefix("/assets/").expect("a path");
        let found = get(name);
        assert_eq!(found.status(), StatusCode::OK);
        assert_eq!(found.headers().get(CACHE_CONTROL), Some(&CACHED));
        assert_eq!(get("dashboard.css").status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn no_file_refers_to_another_host() {
        for (name, _, content) in FILES {
            let text = content.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("://"), "{name}");
        }
    }
}
