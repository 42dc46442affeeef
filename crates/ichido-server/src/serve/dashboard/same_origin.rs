//! Where a change comes from: only from the dashboard's own pages.
//!
//! Guarantee: a form on a page of another origin changes nothing, in a browser of any age and behind a proxy that ends TLS. The session
//! cookie is also `SameSite=Strict`; this check does not rely on it.

use http::header::{HOST, HeaderName, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Uri};

/// The header in which a browser says where a request comes from. Browsers send it over HTTPS and to this machine.
pub(super) const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether a change may be made: its browser says that it comes from our own page.
///
/// Without `Sec-Fetch-Site` the `Origin` must be ours. A request with neither does not come from a page, and uses the API.
pub(super) fn is_same_origin(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(FETCH_SITE).iter().peekable();
    if sites.peek().is_some() {
        return sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none"));
    }
    let Some(host) = host(uri, headers) else { return false };
    let mut origins = headers.get_all(ORIGIN).iter().peekable();
    let own = |origin: &str| {
        origin.split_once("://").is_some_and(|(scheme, origin)| {
            matches!(scheme, "http" | "https") && origin.eq_ignore_ascii_case(host)
        })
    };
    origins.peek().is_some() && origins.all(|origin| origin.to_str().is_ok_and(own))
}

/// Returns the host that a request names. HTTP/2 has it in the target.
pub(super) fn host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let target = || uri.authority().map(Authority::as_str);
    headers.get(HOST).map_or_else(target, |host| host.to_str().ok())
}

/// Whether the browser says that the page which sent this request was loaded over HTTPS.
pub(super) fn is_from_https(headers: &HeaderMap) -> bool {
    headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).expect("a name"), value.parse().expect("a value"))
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn only_own_pages_change_something() {
        let host = ("host", "ichido.example");
        let table: &[(&[(&str, &str)], bool)] = &[
            (&[host], false),
            (&[host, ("sec-fetch-site", "same-origin")], true),
            (&[host, ("sec-fetch-site", "none")], true),
            (&[host, ("sec-fetch-site", "same-site")], false),
            (&[host, ("sec-fetch-site", "cross-site")], false),
            (&[host, ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false),
            (&[host, ("sec-fetch-site", "cross-site"), ("origin", "https://ichido.example")], false),
            (&[host, ("origin", "http://ichido.example")], true),
            (&[host, ("origin", "https://ICHIDO.example")], true),
            (&[host, ("origin", "https://ichido.example:8443")], false),
            (&[host, ("origin", "https://evil.example")], false),
            (&[host, ("origin", "null")], false),
            (&[("origin", "http://ichido.example")], false),
            // A proxy replaced the host: the browser's word is enough.
            (
                &[
                    ("host", "127.0.0.1:4180"),
                    ("origin", "https://ichido.example"),
                    ("sec-fetch-site", "same-origin"),
                ],
                true,
            ),
        ];
        let uri = Uri::from_static("/messages");
        for (fields, allowed) in table {
            assert_eq!(is_same_origin(&uri, &headers(fields)), *allowed, "{fields:?}");
        }
        let http2 = Uri::from_static("http://ichido.example/messages");
        assert!(is_same_origin(&http2, &headers(&[("origin", "http://ichido.example")])));
    }
}
