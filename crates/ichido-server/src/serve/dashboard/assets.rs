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
use crate::instance::{COLOURS, InstanceColour};

/// A year.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The hexadecimal digits of a hash in an address.
const HASH_CHARS: usize = 16;

/// The icon, with its colour to fill in.
const ICON: &str = include_str!("icon.svg");

/// The files with their names, types and contents.
pub(super) static FILES: LazyLock<[(&str, &str, String); 2]> = LazyLock::new(|| {
    let script = without_comments(include_str!("dashboard.js"));
    [
        ("dashboard.css", "text/css; charset=utf-8", include_str!("dashboard.css").to_owned()),
        ("dashboard.js", "text/javascript; charset=utf-8", script),
    ]
});

/// Returns a script without the lines that are comments.
fn without_comments(script: &str) -> String {
    let lines = script.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The addresses of the files, below the dashboard's own path.
pub(super) struct AssetPaths {
    pub(super) css: String,
    pub(super) js: String,
}

/// The addresses, computed once.
pub(super) static PATHS: LazyLock<AssetPaths> = LazyLock::new(|| {
    let [css, js] = FILES.each_ref().map(|(name, _, content)| format!("/assets/{}", hashed(name, content)));
    AssetPaths { css, js }
});

/// Returns the address of the icon in a colour.
pub(super) fn icon_path(colour: InstanceColour) -> String {
    format!("/assets/{}", icon(colour).0)
}

/// Returns the name and the content of the icon in a colour.
fn icon(colour: InstanceColour) -> (String, String) {
    let content = ICON.replace("{colour}", colour_code(colour));
    (hashed(&format!("icon-{}.svg", colour.name()), &content), content)
}

/// Returns a colour as in the style sheet, on which white can be read.
const fn colour_code(colour: InstanceColour) -> &'static str {
    match colour {
        InstanceColour::Blue => "#1f5a96",
        InstanceColour::Green => "#1a7046",
        InstanceColour::Orange => "#8a5300",
        InstanceColour::Red => "#ad2b2b",
        InstanceColour::Purple => "#6d3fa8",
        InstanceColour::Grey => "#566273",
    }
}

/// Returns the name of a file with the hash of its content: `dashboard-1f2e3d4c5b6a7980.css`.
fn hashed(name: &str, content: &str) -> String {
    let digest = Digest::of_bytes(content.as_bytes()).to_string();
    let hash: String = digest.chars().skip_while(|mark| *mark != ':').skip(1).take(HASH_CHARS).collect();
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    format!("{stem}-{hash}.{extension}")
}

/// Returns a file by its name with the hash.
pub(super) fn get(name: &str) -> Response {
    let file = FILES.iter().find(|(known, _, content)| hashed(known, content) == name);
    let file = file.map(|(_, media_type, content)| (*media_type, content.clone()));
    let icon = || COLOURS.iter().map(|(_, colour)| icon(*colour)).find(|(known, _)| known == name);
    let icon = || icon().map(|(_, content)| ("image/svg+xml", content));
    let Some((media_type, content)) = file.or_else(icon) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut response = with_type(StatusCode::OK, media_type, content);
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

    /// The lightness of a colour such as `#1f5a96`, from 0 to 1.
    fn luminance(code: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&code[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// Returns the value of a variable in the light and in the dark.
    fn values(name: &str) -> Vec<&'static str> {
        let before = format!("--{name}: ");
        let values = FILES[0].2.as_str().split(before.as_str()).skip(1).map(|rest| &rest[..7]);
        values.filter(|value| value.starts_with('#')).collect()
    }

    #[test]
    fn instance_colours_can_be_read_in_the_light_and_in_the_dark() {
        for (name, colour) in COLOURS {
            let tones = values(colour.tone());
            let grounds = values(&format!("{}-bg", colour.tone()));
            assert_eq!((tones.len(), grounds.len()), (2, 2), "{name}");
            for (tone, ground) in tones.iter().zip(&grounds) {
                assert!(4.5 <= contrast(tone, ground), "{name}: {tone} on {ground}");
            }
            assert_eq!(tones[0], colour_code(colour), "{name}");
            assert!(4.5 <= contrast(colour_code(colour), "#ffffff"), "{name}");
        }
    }

    #[test]
    fn each_colour_has_its_icon() {
        let mut paths: Vec<String> = COLOURS.iter().map(|(_, colour)| icon_path(*colour)).collect();
        for path in &paths {
            let found = get(path.strip_prefix("/assets/").unwrap());
            assert_eq!(
                (found.status(), found.headers()[CONTENT_TYPE].as_bytes()),
                (StatusCode::OK, &b"image/svg+xml"[..])
            );
        }
        paths.dedup();
        assert_eq!(paths.len(), COLOURS.len());
    }

    #[test]
    fn no_file_refers_to_another_host() {
        for (name, content) in
            FILES.iter().map(|(name, _, content)| (*name, content.as_str())).chain([("icon.svg", ICON)])
        {
            let text = content.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("://"), "{name}");
        }
    }
}
