//! Stores header fields in the file, except for secrets.

use http::header::{COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The identity, if a token stands for several. It is part of an action's identification.
const IDENTITY: HeaderName = HeaderName::from_static("ichido-identity");
/// Names of fields that carry secrets, besides `Authorization`, which no action has.
const SECRETS: [HeaderName; 3] = [COOKIE, PROXY_AUTHORIZATION, HeaderName::from_static("x-api-key")];

/// Encodes the fields in order: `name: value` and CRLF for each.
pub(super) fn encode(fields: &HeaderMap) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out
}

/// Decodes the fields, or returns `None` for any other format.
pub(super) fn decode(written: &[u8]) -> Option<HeaderMap> {
    let mut fields = HeaderMap::new();
    let mut rest = written;
    while !rest.is_empty() {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let (line, after) = (&rest[..end], &rest[end + 2..]);
        let middle = line.windows(2).position(|two| two == b": ")?;
        let name = HeaderName::from_bytes(&line[..middle]).ok()?;
        fields.append(name, HeaderValue::from_bytes(&line[middle + 2..]).ok()?);
        rest = after;
    }
    Some(fields)
}

/// Finds a field that must not be stored.
pub(super) fn secret(fields: &HeaderMap) -> Option<HeaderName> {
    let found = fields.iter().find(|(name, value)| value.is_sensitive() || SECRETS.contains(name));
    found.map(|(name, _)| name.clone())
}

/// Returns the identity that the fields name, or an empty text.
pub(super) fn identity(fields: &HeaderMap) -> String {
    fields
        .get(IDENTITY)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_encoding_and_decoding() {
        let mut fields = HeaderMap::new();
        for (name, value) in
            [("content-type", "a/b; c=\": \""), ("x-two", "1"), ("x-two", ""), ("x-odd", "\u{e9}: x")]
        {
            fields.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        assert_eq!(decode(&encode(&fields)), Some(fields));
        assert_eq!(decode(b""), Some(HeaderMap::new()));
        for broken in [&b"x"[..], b"x: y", b"x y\r\n", b"\r\n"] {
            assert_eq!(decode(broken), None);
        }
    }

    #[test]
    fn secrets_are_found_by_name_or_sensitive_mark() {
        let one = |name: &'static str, is_sensitive| {
            let mut value = HeaderValue::from_static("x");
            value.set_sensitive(is_sensitive);
            secret(&HeaderMap::from_iter([(HeaderName::from_static(name), value)])).is_some()
        };
        assert!(one("cookie", false) && one("x-api-key", false) && one("x-mine", true));
        assert!(!one("x-mine", false) && !one("ichido-identity", false));
    }
}
