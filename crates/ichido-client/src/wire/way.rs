//! A base URL, taken apart.

use std::net::IpAddr;

use http::uri::{Authority, Uri};

/// Where a URL leads.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) is_tls: bool,
    pub(super) authority: Authority,
    pub(super) host: Host,
    pub(super) port: u16,
    /// What stands before every path, without a slash at its end.
    pub(super) prefix: String,
}

/// A name to look up, or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

/// Why a text is no [`Way`]. No variant holds a part of it: a URL may hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WayError {
    #[error("is no URL; write it like https://ichido.example, other than ASCII percent-encoded")]
    Malformed,
    #[error("must begin with https:// or http://")]
    Scheme,
    #[error("must not hold a user or a password; a token goes into a header field")]
    UserInfo,
    #[error("must not have port 0")]
    Port,
    #[error("must not have a query; paths are put behind it")]
    Query,
}

impl Way {
    pub(super) fn parse(url: &str) -> Result<Self, WayError> {
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(WayError::Malformed);
        }
        let uri: Uri = url.parse().map_err(|_| WayError::Malformed)?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(WayError::Scheme),
        };
        if uri.query().is_some() || url.contains('#') {
            return Err(WayError::Query);
        }
        let prefix = uri.path().trim_end_matches('/').to_owned();
        let authority = uri.into_parts().authority.ok_or(WayError::Malformed)?;
        if authority.as_str().contains('@') {
            return Err(WayError::UserInfo);
        }
        let port = match (authority.port(), is_tls) {
            (Some(port), _) => port.as_u16(),
            // `host:` and `host:99999` are taken for a host without a port.
            (None, _) if authority.as_str().len() != authority.host().len() => {
                return Err(WayError::Malformed);
            }
            (None, true) => 443,
            (None, false) => 80,
        };
        if port == 0 {
            return Err(WayError::Port);
        }
        let host = host_of(authority.host()).ok_or(WayError::Malformed)?;
        Ok(Self { is_tls, authority, host, port, prefix })
    }
}

fn host_of(host: &str) -> Option<Host> {
    if host.is_empty() {
        return None;
    }
    if let Some(inner) = host.strip_prefix('[') {
        return inner.strip_suffix(']')?.parse().ok().map(|address| Host::Address(IpAddr::V6(address)));
    }
    Some(host.parse().map_or_else(|_| Host::Name(host.to_owned()), Host::Address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_taken_apart() {
        let way = Way::parse("https://ichido.example").unwrap();
        assert_eq!((way.is_tls, way.port, way.prefix.as_str()), (true, 443, ""));
        assert_eq!(way.host, Host::Name("ichido.example".to_owned()));
        let way = Way::parse("http://[::1]:4180/inner/").unwrap();
        assert_eq!((way.host, way.port), (Host::Address("::1".parse().unwrap()), 4180));
        assert_eq!(
            (way.is_tls, way.prefix.as_str(), way.authority.as_str()),
            (false, "/inner", "[::1]:4180")
        );
    }

    #[test]
    fn what_is_no_base_url_is_refused() {
        for (url, error) in [
            ("", WayError::Malformed),
            ("127.0.0.1", WayError::Scheme),
            ("ichido.example/v1", WayError::Malformed),
            ("ftp://ichido.example/", WayError::Scheme),
            ("https://ann:secret@ichido.example/", WayError::UserInfo),
            ("https://ichido.example:0/", WayError::Port),
            ("https://ichido.example:99999/", WayError::Malformed),
            ("https://ichido.example/?a=b", WayError::Query),
            ("https://ichido.example/#a", WayError::Query),
            ("https://ichidö.example/", WayError::Malformed),
            ("https://ichido.example/ö", WayError::Malformed),
        ] {
            assert_eq!(Way::parse(url).err(), Some(error), "{url}");
        }
    }
}
