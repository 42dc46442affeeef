//! URLs of HTTP servers.
//!
//! Guarantee: an error never contains a part of the URL, which may hold a secret.

use std::net::IpAddr;

use http::uri::{Authority, PathAndQuery, Uri};

use crate::guard::is_link_local;

/// The parts of a URL.
#[derive(Clone, Debug)]
pub struct HttpUrl {
    /// Whether the scheme is `https`.
    pub is_tls: bool,
    /// Host and port as written.
    pub authority: Authority,
    /// The host.
    pub host: Host,
    /// The port, by default the scheme's.
    pub port: u16,
    /// Path and query, by default `/`.
    pub target: PathAndQuery,
}

/// A host name or an IP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name to resolve.
    Name(String),
    /// A literal address.
    Address(IpAddr),
}

/// Why a text is not an [`HttpUrl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It cannot be parsed.
    #[error(
        "is not a URL; write it like https://host.example/path, with non-ASCII characters percent-encoded"
    )]
    Malformed,
    /// The scheme is neither `https` nor `http`.
    #[error("must begin with https:// or http://")]
    Scheme,
    /// It contains a user name or a password.
    #[error("must not contain a user name or a password; put credentials into a header field")]
    UserInfo,
    /// Its port is 0.
    #[error("must not have port 0")]
    Port,
    /// A base URL has a query or a fragment.
    #[error("must not have a query or a fragment; paths are appended to it")]
    Query,
}

impl HttpUrl {
    /// Parses a URL.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let uri: Uri = url.parse().map_err(|_| UrlError::Malformed)?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(UrlError::Scheme),
        };
        let parts = uri.into_parts();
        let authority = parts.authority.ok_or(UrlError::Malformed)?;
        if authority.as_str().contains('@') {
            return Err(UrlError::UserInfo);
        }
        let port = match (authority.port(), is_tls) {
            (Some(port), _) => port.as_u16(),
            // `host:` and `host:99999` parse as a host without a port.
            (None, _) if authority.as_str().len() != authority.host().len() => {
                return Err(UrlError::Malformed);
            }
            (None, true) => 443,
            (None, false) => 80,
        };
        if port == 0 {
            return Err(UrlError::Port);
        }
        let host = Host::parse(authority.host()).ok_or(UrlError::Malformed)?;
        let target = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { is_tls, authority, host, port, target })
    }

    /// Parses a base URL, to which paths are appended.
    ///
    /// Also returns its own path, without a trailing slash.
    pub fn parse_base(url: &str) -> Result<(Self, String), UrlError> {
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UrlError::Malformed);
        }
        let parsed = Self::parse(url)?;
        if parsed.target.query().is_some() || url.contains('#') {
            return Err(UrlError::Query);
        }
        let prefix = parsed.target.path().trim_end_matches('/').to_owned();
        Ok((parsed, prefix))
    }

    /// Whether its host is a link-local address.
    pub fn names_link_local(&self) -> bool {
        matches!(self.host, Host::Address(address) if is_link_local(address))
    }
}

impl Host {
    fn parse(host: &str) -> Option<Self> {
        if host.is_empty() {
            return None;
        }
        if let Some(inner) = host.strip_prefix('[') {
            return inner.strip_suffix(']')?.parse().ok().map(|address| Self::Address(IpAddr::V6(address)));
        }
        Some(host.parse().map_or_else(|_| Self::Name(host.to_owned()), Self::Address))
    }
}

/// Decodes percent-encoding. Returns `None` for a lone `%` or a result that is not UTF-8.
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut decoded = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        decoded.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_decoded_or_refused() {
        for (text, expected) in [
            ("", Some("")),
            ("a b+c=", Some("a b+c=")),
            ("a%2Fb%3fc%25", Some("a/b?c%")),
            ("%C3%B6ö", Some("öö")),
            ("50%", None),
            ("%4", None),
            ("%zz", None),
            ("%+1", None),
            ("%1ö", None),
            ("%ff", None),
        ] {
            assert_eq!(percent_decoded(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn url_is_parsed_into_its_parts() {
        let url = HttpUrl::parse("https://broker.example/v1/orders?dry=1").unwrap();
        assert_eq!((url.is_tls, url.port), (true, 443));
        assert_eq!(url.host, Host::Name("broker.example".to_owned()));
        assert_eq!(url.target.as_str(), "/v1/orders?dry=1");
        let url = HttpUrl::parse("http://[::1]:8080").unwrap();
        assert_eq!((url.host, url.port), (Host::Address("::1".parse().unwrap()), 8080));
        assert_eq!((url.target.as_str(), url.authority.as_str()), ("/", "[::1]:8080"));
    }

    #[test]
    fn base_url_is_parsed_into_its_parts() {
        let prefix = |url| HttpUrl::parse_base(url).map(|(_, prefix)| prefix);
        assert_eq!(prefix("https://ichido.example"), Ok(String::new()));
        assert_eq!(prefix("http://[::1]:4180/inner/"), Ok("/inner".to_owned()));
        for (url, error) in [
            ("https://ichido.example/?a=b", UrlError::Query),
            ("https://ichido.example/#a", UrlError::Query),
            ("https://ichido.example/ö", UrlError::Malformed),
        ] {
            assert_eq!(prefix(url), Err(error), "{url}");
        }
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for (url, error) in [
            ("", UrlError::Malformed),
            ("127.0.0.1", UrlError::Scheme),
            ("broker.example/orders", UrlError::Malformed),
            ("/orders", UrlError::Scheme),
            ("ftp://broker.example/", UrlError::Scheme),
            ("https://ann:secret@broker.example/", UrlError::UserInfo),
            ("https://broker.example:0/", UrlError::Port),
            ("https://broker.example:99999/", UrlError::Malformed),
            ("https://bröker.example/", UrlError::Malformed),
        ] {
            assert_eq!(HttpUrl::parse(url).err(), Some(error), "{url}");
            assert_eq!(HttpUrl::parse_base(url).err(), Some(error), "{url}");
        }
    }

    #[test]
    fn a_link_local_host_is_recognised() {
        for (url, expected) in [
            ("http://169.254.169.254/", true),
            ("http://[::ffff:169.254.169.254]/", true),
            ("http://127.0.0.1/", false),
        ] {
            assert_eq!(HttpUrl::parse(url).unwrap().names_link_local(), expected, "{url}");
        }
    }
}
