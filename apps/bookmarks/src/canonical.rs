//! The canonical form of a URL: two spellings of one address are one bookmark.
// SPEC A7.

use std::fmt::Write as _;

use url::Url;

use crate::settings::limits::MAX_URL_BYTES;

/// Parameters that say how somebody reached a page, not which page it is.
const TRACKING: [&str; 17] = [
    "fbclid", "gclid", "gclsrc", "gbraid", "wbraid", "dclid", "msclkid", "twclid", "ttclid", "yclid",
    "igshid", "mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "vero_id",
];
const TRACKING_PREFIX: &str = "utm_";

/// Why a text is not a URL that can be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The URL is too long.
    #[error("it is longer than {MAX_URL_BYTES} bytes")]
    TooLong,
    /// The text is not a URL.
    #[error("it is not a URL; write it like https://example.com/page")]
    Malformed,
    /// The URL does not lead to a page.
    #[error("only http:// and https:// URLs lead to pages")]
    Scheme,
    /// The URL has a user or a password, which would be stored and sent.
    #[error("it contains a user name or a password; remove it")]
    Credentials,
}

/// Converts a URL to its canonical form.
///
/// That has a lowercase scheme and host (IDNA), no default port, no trailing dot, no dot segments, no fragment, no
/// needless percent-encoding and no tracking parameters. The order of the other parameters is kept, and `http` and
/// `https` are two pages. A canonical URL stays unchanged.
///
/// ```
/// use bookmarks::canonical;
///
/// let saved = canonical("HTTPS://Example.COM.:443/a/../%7Eann?utm_source=mail&page=2#top")?;
/// assert_eq!(saved, "https://example.com/~ann?page=2");
/// # Ok::<(), bookmarks::UrlError>(())
/// ```
pub fn canonical(text: &str) -> Result<String, UrlError> {
    if MAX_URL_BYTES < text.len() {
        return Err(UrlError::TooLong);
    }
    let mut url = Url::parse(text).map_err(|_| UrlError::Malformed)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlError::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlError::Credentials);
    }
    url.set_fragment(None);
    if let Some(host) = url.host_str().filter(|host| host.ends_with('.')) {
        let host = host.trim_end_matches('.').to_owned();
        url.set_host(Some(&host)).map_err(|_| UrlError::Malformed)?;
    }
    let path = plain(url.path());
    url.set_path(&path);
    let query = url.query().map(without_tracking).filter(|query| !query.is_empty());
    url.set_query(query.as_deref());
    let canonical = String::from(url);
    if MAX_URL_BYTES < canonical.len() { Err(UrlError::TooLong) } else { Ok(canonical) }
}

fn without_tracking(query: &str) -> String {
    let kept = query.split('&').filter(|pair| {
        let name = form_urlencoded::parse(pair.as_bytes()).next().map(|(name, _)| name.to_ascii_lowercase());
        name.is_none_or(|name| !TRACKING.contains(&name.as_str()) && !name.starts_with(TRACKING_PREFIX))
    });
    plain(&kept.collect::<Vec<_>>().join("&"))
}

/// Normalizes percent-encoding (RFC 3986, 6.2.2): unreserved characters are decoded, and digits are uppercase. An
/// invalid sequence, such as a lone percent sign, stays.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let digits = after.get(..2).filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(char::from(byte));
            }
            // Writing to a `String` does not fail.
            Some(byte) => drop(write!(out, "%{byte:02X}")),
            None => out.push('%'),
        }
        rest = if digits.is_some() { &after[2..] } else { after };
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_url_have_one_form() {
        for (spelling, form) in [
            ("http://example.com", "http://example.com/"),
            ("  https://example.com/a \n", "https://example.com/a"),
            ("HTTP://EXAMPLE.com/Path", "http://example.com/Path"),
            ("http://example.com:80/", "http://example.com/"),
            ("https://example.com:443/", "https://example.com/"),
            ("https://example.com:8443/", "https://example.com:8443/"),
            ("http://example.com./a", "http://example.com/a"),
            ("http://example.com/a#part", "http://example.com/a"),
            ("http://example.com/a/./b/../c", "http://example.com/a/c"),
            ("http://example.com/a/%2e%2E/c", "http://example.com/c"),
            ("http://example.com/%7eann/%e3%81%82", "http://example.com/~ann/%E3%81%82"),
            ("http://example.com/あ", "http://example.com/%E3%81%82"),
            ("http://example.com/100%", "http://example.com/100%"),
            ("http://example.com/?", "http://example.com/"),
            ("http://example.com/?b=2&a=1", "http://example.com/?b=2&a=1"),
            ("http://example.com/?q=a%2Bb+c", "http://example.com/?q=a%2Bb+c"),
            ("http://example.com/?utm_source=x&a=1&UTM_Medium=y&fbclid=z", "http://example.com/?a=1"),
            ("http://example.com/?%75tm_source=x", "http://example.com/"),
            ("http://example.com/?gclid=x#top", "http://example.com/"),
            ("http://日本語.jp/", "http://xn--wgv71a119e.jp/"),
            ("http://XN--WGV71A119E.jp/", "http://xn--wgv71a119e.jp/"),
            ("http://127.1/", "http://127.0.0.1/"),
            ("http://[::1]:80/", "http://[::1]/"),
        ] {
            assert_eq!(canonical(spelling).as_deref(), Ok(form), "{spelling}");
        }
    }

    #[test]
    fn different_urls_stay_different() {
        let apart = [
            "http://a.example/",
            "https://a.example/",
            "http://a.example/b",
            "http://a.example/B",
            "http://a.example/?b",
            "http://www.a.example/",
        ];
        let forms: std::collections::BTreeSet<String> =
            apart.iter().map(|url| canonical(url).unwrap()).collect();
        assert_eq!(forms.len(), apart.len());
    }

    #[test]
    fn urls_that_are_not_pages_are_refused() {
        let long = format!("http://example.com/{}", "a".repeat(MAX_URL_BYTES));
        let grows = format!("http://example.com/{}", "あ".repeat(500));
        for (text, why) in [
            ("", UrlError::Malformed),
            ("example.com/a", UrlError::Malformed),
            ("/a", UrlError::Malformed),
            ("http://", UrlError::Malformed),
            ("http://.../", UrlError::Malformed),
            ("http://a b/", UrlError::Malformed),
            ("ftp://example.com/", UrlError::Scheme),
            ("javascript:alert(1)", UrlError::Scheme),
            ("data:text/html,hello", UrlError::Scheme),
            ("file:///etc/passwd", UrlError::Scheme),
            ("https://ann@example.com/", UrlError::Credentials),
            ("https://ann:secret@example.com/", UrlError::Credentials),
            (&long, UrlError::TooLong),
            (&grows, UrlError::TooLong),
        ] {
            assert_eq!(canonical(text), Err(why), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_canonical_url_stays_unchanged(
            host in "[a-zA-Z0-9あ.-]{1,12}",
            path in r"[a-z0-9A-Z./%~あ ?&=#+_-]{0,40}",
            encoded in "(%[0-9a-fA-F]{2}){0,6}",
        ) {
            let spelling = format!("http://{host}/{encoded}{path}");
            if let Ok(form) = canonical(&spelling) {
                prop_assert_eq!(canonical(&form), Ok(form), "{}", spelling);
            }
        }

        #[test]
        fn any_text_is_parsed_without_a_panic(text in any::<String>()) {
            drop(canonical(&text));
        }
    }
}
