//! A destination's URL, taken apart.

use std::net::IpAddr;

use http::HeaderValue;
use http::uri::{Authority, PathAndQuery, Uri};

use super::address::is_link_local;
use super::peer::{Host, Peer};

/// Where a URL leads.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) is_tls: bool,
    pub(crate) authority: Authority,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(crate) target: PathAndQuery,
}

/// Why a text is no [`Way`]. No variant holds a part of it: a URL may hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WayError {
    #[error("is no URL; write it like https://broker.example/orders, other than ASCII percent-encoded")]
    Malformed,
    #[error("must begin with https:// or http://")]
    Scheme,
    #[error("must not hold a user or a password; put them into a header field")]
    UserInfo,
    #[error("must not have port 0")]
    Port,
}

impl Way {
    pub(super) fn parse(url: &str) -> Result<Self, WayError> {
        let uri: Uri = url.parse().map_err(|_| WayError::Malformed)?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(WayError::Scheme),
        };
        let parts = uri.into_parts();
        let authority = parts.authority.ok_or(WayError::Malformed)?;
        if authority.as_str().contains('@') {
            return Err(WayError::UserInfo);
        }
        let port = match (authority.port(), is_tls) {
            (Some(port), _) => port.as_u16(),
            // `host:` and `host:99999` are taken for a host without a port.
            (None, _) if has_bad_port(&authority) => return Err(WayError::Malformed),
            (None, true) => 443,
            (None, false) => 80,
        };
        if port == 0 {
            return Err(WayError::Port);
        }
        let host = host_of(authority.host()).ok_or(WayError::Malformed)?;
        let target = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { is_tls, authority, host, port, target })
    }

    /// Whether its address is written out, and link-local.
    pub(super) fn names_link_local(&self) -> bool {
        matches!(self.host, Host::Address(address) if is_link_local(address))
    }
}

fn has_bad_port(authority: &Authority) -> bool {
    authority.as_str().len() != authority.host().len()
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

impl Peer {
    /// Its name, as the field `Host` carries it.
    pub(crate) fn host_field(&self) -> HeaderValue {
        // An authority is visible ASCII, so that there is always a value.
        HeaderValue::from_str(self.authority.as_str()).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let way = Way::parse("https://broker.example/v1/orders?dry=1").expect("a URL");
        assert_eq!((way.is_tls, way.port), (true, 443));
        assert_eq!(way.host, Host::Name("broker.example".to_owned()));
        assert_eq!(way.target.as_str(), "/v1/orders?dry=1");
        let way = Way::parse("http://[::1]:8080").expect("a URL");
        assert_eq!((way.host, way.port), (Host::Address("::1".parse().expect("an address")), 8080));
        assert_eq!((way.target.as_str(), way.authority.as_str()), ("/", "[::1]:8080"));
    }

    #[test]
    fn what_is_no_url_of_a_destination_is_refused() {
        for (url, error) in [
            ("", WayError::Malformed),
            ("broker.example/orders", WayError::Malformed),
            ("/orders", WayError::Scheme),
            ("ftp://broker.example/", WayError::Scheme),
            ("https://ann:secret@broker.example/", WayError::UserInfo),
            ("https://broker.example:0/", WayError::Port),
            ("https://broker.example:99999/", WayError::Malformed),
            ("https://bröker.example/", WayError::Malformed),
        ] {
            assert_eq!(Way::parse(url).err(), Some(error), "{url}");
        }
    }

    #[test]
    fn a_link_local_address_is_seen_where_it_is_written_out() {
        assert!(Way::parse("http://169.254.169.254/").expect("a URL").names_link_local());
        assert!(Way::parse("http://[::ffff:169.254.169.254]/").expect("a URL").names_link_local());
        assert!(!Way::parse("http://127.0.0.1/").expect("a URL").names_link_local());
    }
}
