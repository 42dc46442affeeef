//! The language of a page: English or Japanese.
//!
//! Guarantee: the person's own choice wins over the browser's languages, and English is the default.

use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;

use super::cookie;

/// The cookie with a person's choice.
pub(super) const COOKIE: &str = "ichido_language";

/// A language of the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Japanese,
}

impl Language {
    /// Returns the language with this code.
    pub(super) fn parse(code: &str) -> Option<Self> {
        match code {
            "en" => Some(Self::English),
            "ja" => Some(Self::Japanese),
            _ => None,
        }
    }

    /// Returns the language for a request.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let chosen = cookie::get(headers, COOKIE).and_then(Self::parse);
        let accepted = || {
            let lines = headers.get_all(ACCEPT_LANGUAGE).iter().filter_map(|line| line.to_str().ok());
            best(lines.flat_map(|line| line.split(',')))
        };
        chosen.or_else(accepted).unwrap_or(Self::English)
    }
}

/// Returns the known language with the highest weight, the first of equal ones.
fn best<'h>(ranges: impl Iterator<Item = &'h str>) -> Option<Language> {
    let mut best: Option<(f32, Language)> = None;
    for range in ranges {
        let (tag, parameters) = range.split_once(';').unwrap_or((range, ""));
        let primary = tag.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
        let weight =
            parameters.trim().strip_prefix("q=").map_or(Some(1.0), |weight| weight.trim().parse().ok());
        let (Some(language), Some(weight)) = (Language::parse(&primary), weight) else { continue };
        if 0.0 < weight && best.is_none_or(|(known, _)| known < weight) {
            best = Some((weight, language));
        }
    }
    best.map(|(_, language)| language)
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE as COOKIE_FIELD;

    use super::*;

    #[test]
    fn the_browser_or_the_person_chooses() {
        use Language::{English, Japanese};
        for (accepted, cookie, language) in [
            ("", "", English),
            ("ja", "", Japanese),
            ("ja-JP,ja;q=0.9,en-US;q=0.8,en;q=0.7", "", Japanese),
            ("en-GB,en;q=0.9,ja;q=0.8", "", English),
            ("fr, ja;q=0.5", "", Japanese),
            ("en;q=0.2, ja;q=0.7", "", Japanese),
            ("ja;q=0, en", "", English),
            ("ja;q=x", "", English),
            ("de", "", English),
            ("ja", "ichido_language=en", English),
            ("en", "other=1; ichido_language=ja", Japanese),
            ("ja", "ichido_language=tlh", Japanese),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, accepted.parse().expect("a value"));
            headers.insert(COOKIE_FIELD, cookie.parse().expect("a value"));
            assert_eq!(Language::of(&headers), language, "{accepted} {cookie}");
        }
    }
}
