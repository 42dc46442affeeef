//! From a URL to whom it leads to.
//!
//! Guarantee: what is wrong with a URL is said with its place, and without a part of it that may be a secret. TLS is set up once,
//! where it is needed.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::Problems;
use super::peer::{Host, Peer, Tls};
use super::pool::Pool;
use super::way::Way;
use crate::destination::trust;

/// How receivers are reached.
pub(crate) struct Reach<'a> {
    /// The certificates in PEM that are believed in place of the system's.
    roots: Option<&'a str>,
    /// Hosts that may be at link-local addresses.
    allow_link_local: &'a [String],
    client: Option<Arc<ClientConfig>>,
}

impl<'a> Reach<'a> {
    pub(crate) fn new(roots: Option<&'a str>, allow_link_local: &'a [String]) -> Self {
        Self { roots, allow_link_local, client: None }
    }

    /// Whom a URL leads to, and what is asked for there.
    pub(crate) fn peer(&mut self, place: &str, url: &str, problems: &mut Problems) -> Option<(Peer, Way)> {
        let way = problems.check(place, Way::parse(url))?;
        let host = way.authority.host();
        let allows_link_local =
            self.allow_link_local.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
        if way.names_link_local() && !allows_link_local {
            problems.add(place, format!("{host} is a link-local address, where clouds hand out credentials; if it is meant, name it in allow_link_local"));
        }
        let tls = if way.is_tls { Some(self.tls(place, &way, problems)?) } else { None };
        let peer = Peer {
            authority: way.authority.clone(),
            host: way.host.clone(),
            port: way.port,
            tls,
            allows_link_local,
            pool: Pool::default(),
        };
        Some((peer, way))
    }

    fn tls(&mut self, place: &str, way: &Way, problems: &mut Problems) -> Option<Tls> {
        let config = if let Some(config) = &self.client {
            Arc::clone(config)
        } else {
            let mut config = problems.check("trusted_roots", trust::client(self.roots))?;
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Arc::new(config)
        };
        self.client = Some(Arc::clone(&config));
        let name = match &way.host {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => {
                let name = ServerName::try_from(name.clone());
                problems.check(place, name.map_err(|_| "its host is no name that a certificate can have"))?
            }
        };
        Some(Tls { config, name })
    }
}
