//! URLs and header fields, redacted for display.
//!
//! Guarantee: a URL has no user name and password, no value of a query parameter, no fragment, and no part of a path that looks
//! like a token. A header field whose name says that it is a secret has no value.
//!
//! [`ichido_core::json::Redaction`] hides values of requests and responses.

use ichido_core::json::REDACTED;

/// Replaces a secret.
const HIDDEN: &str = "…";
/// A longer part of a path is a token, not a word.
const MAX_WORD_CHARS: usize = 20;
/// A part of a path with more digits is a token. Words such as `v1` and `index-2026` have fewer.
const MAX_WORD_DIGITS: usize = 4;

/// A header field with one of these in its name is a secret.
const SECRET_NAMES: [&str; 9] =
    ["auth", "cookie", "token", "secret", "password", "api-key", "apikey", "signature", "session"];

/// Hides the value of a header field that is a secret by its name.
pub(crate) fn header<'a>(name: &str, value: &'a str) -> &'a str {
    let name = name.to_ascii_lowercase();
    if SECRET_NAMES.iter().any(|secret| name.contains(secret)) { REDACTED } else { value }
}

/// Hides everything in a URL that may be secret; returns any other text unchanged.
pub(crate) fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| *scheme != "sqlite") else {
        return text.to_owned();
    };
    let (credentials, rest) = match rest.rsplit_once('@') {
        Some((before, rest)) if may_be_credentials(scheme, before) => (true, rest),
        _ => (false, rest),
    };
    let (rest, fragment) = cut(rest, '#');
    let (rest, query) = cut(rest, '?');
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = if credentials { format!("{HIDDEN}@{authority}") } else { authority.to_owned() };
    let path: Vec<&str> = path.split('/').map(|part| if is_word(part) { part } else { HIDDEN }).collect();
    let query = query.map_or_else(String::new, |query| {
        let parameter = |parameter: &str| match parameter.split_once('=') {
            Some((name, _)) => format!("{name}={HIDDEN}"),
            None => HIDDEN.to_owned(),
        };
        format!("?{}", query.split('&').map(parameter).collect::<Vec<_>>().join("&"))
    });
    let fragment = fragment.map_or("", |_| "#…");
    format!("{scheme}://{authority}{}{query}{fragment}", path.join("/"))
}

/// Returns scheme, host and port of a URL.
///
/// The path and query may hold a secret.
pub(crate) fn origin(url: &str) -> &str {
    let host_at = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[host_at..].find(['/', '?', '#']).map_or(url.len(), |at| host_at + at);
    &url[..end]
}

/// Whether the text before an `@` may be a name and a password.
///
/// They may have an unescaped `/`, `?` or `#`. An `@` in the path of a plain web address, as in `https://a.test/users/@me`, is
/// not credentials.
fn may_be_credentials(scheme: &str, before: &str) -> bool {
    let (authority, path) = before.split_at(before.find(['/', '?', '#']).unwrap_or(before.len()));
    path.is_empty() || authority.contains([':', '@']) || !scheme.starts_with("http")
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// Whether a part of a path is a word that a person chose.
///
/// Tokens are long, or have capitals and digits.
fn is_word(part: &str) -> bool {
    let is_plain = |char: char| matches!(char, 'a'..='z' | '0'..='9' | '-' | '_' | '.' | '{' | '}');
    part.len() <= MAX_WORD_CHARS
        && part.chars().all(is_plain)
        && part.chars().filter(char::is_ascii_digit).count() <= MAX_WORD_DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possible_secrets_in_a_url_are_hidden() {
        for (text, shown) in [
            ("https://ann:s3cret@a.test/orders", "https://…@a.test/orders"),
            ("https://s3cret@a.test", "https://…@a.test"),
            (
                "https://a.test/v1/send?apikey=s3cret&tenant=x&s3cret",
                "https://a.test/v1/send?apikey=…&tenant=…&…",
            ),
            ("https://a.test/orders#s3cret", "https://a.test/orders#…"),
            (
                "https://hooks.slack.test/services/T0AAAAAAA/B0BBBBBBB/abcdefghijklmnopqrstuvwx",
                "https://hooks.slack.test/services/…/…/…",
            ),
            ("https://a.test/0f8fad5b-d9cb-469f-a165-70867728950e/in", "https://a.test/…/in"),
            ("nats://ann:s3cret@bus:4222", "nats://…@bus:4222"),
            ("postgres://db/ichido?sslpassword=s3cret", "postgres://db/ichido?sslpassword=…"),
            ("postgres://bob:s3/cret@db/ichido", "postgres://…@db/ichido"),
            ("postgres://bob:s3?cret@db/ichido", "postgres://…@db/ichido"),
            ("postgres://bob:s3#cr@et@db/ichido", "postgres://…@db/ichido"),
            ("postgres://s3/cret@db/ichido", "postgres://…@db/ichido"),
            ("https://ann:12/34@a.test/orders", "https://…@a.test/orders"),
            ("https://ann:s3cret@a.test/@me?to=ann@a.test", "https://…@a.test"),
        ] {
            assert_eq!(url(text), shown);
        }
    }

    #[test]
    fn header_fields_are_hidden_by_their_names() {
        for (name, shown) in [
            ("content-type", "s3cret"),
            ("etag", "s3cret"),
            ("location", "s3cret"),
            ("x-order-id", "s3cret"),
            ("Set-Cookie", REDACTED),
            ("www-authenticate", REDACTED),
            ("authorization", REDACTED),
            ("x-api-key", REDACTED),
            ("x-amz-security-token", REDACTED),
        ] {
            assert_eq!(header(name, "s3cret"), shown, "{name}");
        }
    }

    #[test]
    fn urls_without_secrets_are_shown_unchanged() {
        for text in [
            "http://127.0.0.1:8090/orders",
            "https://mail.example.com/v1/by-key/{key}",
            "nats://nats-1.internal:4222",
            "https://a.test/",
            "https://a.test/users/by-mail",
            "env:HOOK_URL",
            "sqlite://data/ichido.db?mode=rwc",
            "orders",
        ] {
            assert_eq!(url(text), text);
        }
    }

    #[test]
    fn an_origin_has_no_path_and_no_query() {
        for (url, expected) in [
            ("https://a.test:8443/hook?token=s3cret", "https://a.test:8443"),
            ("http://a.test", "http://a.test"),
            ("http://a.test?s3cret", "http://a.test"),
            ("nonsense/s3cret", "nonsense"),
        ] {
            assert_eq!(origin(url), expected);
        }
    }
}
