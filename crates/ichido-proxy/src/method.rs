//! Method overrides: requests that ask for a method other than their own.
//!
//! Guarantee: every override that a service may follow is detected, in the headers and in the query. An override that
//! names the request's own method changes nothing and does not count.

use std::borrow::Cow;

use http::{HeaderMap, Method};

/// The header fields that frameworks read as a method override.
const FIELDS: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];
/// The query parameter that frameworks read as a method override.
///
/// PHP reads a dot, a space or a bracket in a name as `_`, skips blanks before it, and ends it at a NUL.
const PARAMETER: &str = "_method";

/// Whether a header asks for another method.
pub(crate) fn header_overrides(method: &Method, headers: &HeaderMap) -> bool {
    let mut lines = FIELDS.into_iter().flat_map(|name| headers.get_all(name));
    lines.any(|line| !is_same(method, line.as_bytes()))
}

/// Whether the query asks for another method.
pub(crate) fn query_overrides(method: &Method, query: Option<&str>) -> bool {
    // Some services still treat a semicolon as an ampersand.
    let query = query.unwrap_or_default().replace(';', "&");
    let is_parameter = |name: &Cow<'_, str>| {
        let name = name.split('\0').next().unwrap_or_default();
        let spelt = [name, name.trim_start(), name.trim()].map(|name| name.replace(['.', ' ', '['], "_"));
        spelt.iter().any(|name| name.eq_ignore_ascii_case(PARAMETER))
    };
    let mut asked = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| is_parameter(name));
    asked.any(|(_, value)| !is_same(method, value.as_bytes()))
}

fn is_same(method: &Method, asked: &[u8]) -> bool {
    asked.trim_ascii().eq_ignore_ascii_case(method.as_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn method_override_is_detected_in_every_place() {
        for name in FIELDS {
            for (value, expected) in
                [("DELETE", true), ("delete", true), ("", true), ("get", false), (" GET ", false)]
            {
                let mut headers = HeaderMap::new();
                headers.insert(HeaderName::from_static(name), value.trim().parse().expect("a value"));
                assert_eq!(header_overrides(&Method::GET, &headers), expected, "{name}: {value}");
                // The last line may be the one that counts.
                headers.append(HeaderName::from_static(name), "PUT".parse().expect("a value"));
                assert!(header_overrides(&Method::GET, &headers), "{name}: {value}");
            }
        }
        for query in [
            "_method=DELETE",
            "%20_method=DELETE",
            "+_method=DELETE",
            "_method%00=DELETE",
            "_method%20=DELETE",
            "%5Bmethod=DELETE",
            "a=b&_method=put",
            "%5Fmethod=PUT",
            "_Method=PUT",
            ".method=PUT",
            "a;_method=PUT",
        ] {
            assert!(query_overrides(&Method::GET, Some(query)), "{query}");
        }
        for query in ["", "_method=GET", "a=_method", "method=PUT", "x_method=PUT"] {
            assert!(!query_overrides(&Method::GET, Some(query)), "{query}");
        }
        assert!(!query_overrides(&Method::GET, None) && !header_overrides(&Method::GET, &HeaderMap::new()));
    }
}
