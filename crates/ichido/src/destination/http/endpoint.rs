//! From a URL to a client of its server.
//!
//! Guarantee: an error about a URL names its setting, and no part of it that may be a secret. TLS is set up once, when
//! needed.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use ichido_core::settings::ConfigErrors;
use ichido_http::client::HttpClient;
use ichido_http::guard::is_link_local;
use ichido_http::trust;
use ichido_http::url::HttpUrl;
use rustls::ClientConfig;

use super::AGENT;

/// Creates HTTP clients for URLs.
pub struct EndpointClients<'a> {
    /// The trusted certificates in PEM, instead of the system's.
    roots: Option<&'a str>,
    /// Hosts that may have link-local addresses.
    allow_link_local: &'a [String],
    tls: Option<Arc<ClientConfig>>,
}

impl<'a> EndpointClients<'a> {
    /// Uses these roots, if any, instead of the system's.
    ///
    /// These hosts may be link-local.
    pub fn new(roots: Option<&'a str>, allow_link_local: &'a [String]) -> Self {
        Self { roots, allow_link_local, tls: None }
    }

    /// Creates a client of the URL's server. Returns it with the parsed URL.
    pub fn client(
        &mut self,
        place: &str,
        url: &str,
        problems: &mut ConfigErrors,
    ) -> Option<(HttpClient<Full<Bytes>>, HttpUrl)> {
        let url = problems.check(place, HttpUrl::parse(url))?;
        let host = url.authority.host();
        let allows_link_local =
            self.allow_link_local.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
        if url.names_link_local() && !allows_link_local {
            let why = format!(
                "{host} is a link-local address, where clouds serve credentials; \
                 if this is intended, add it to allow_link_local"
            );
            problems.add(place, why);
        }
        if url.is_tls && self.tls.is_none() {
            self.tls = Some(problems.check("trusted_roots", trust::https(self.roots))?);
        }
        let may_connect = if allows_link_local { |_| true } else { |address| !is_link_local(address) };
        let client = problems.check(place, HttpClient::new(&url, self.tls.clone(), may_connect))?;
        Some((client, url))
    }
}

/// Builds a request with these fields, the server's host and our user agent. It asks for a response without encoding.
pub fn request(
    client: &HttpClient<Full<Bytes>>,
    method: Method,
    target: impl Into<Uri>,
    headers: &HeaderMap,
    body: Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    (*request.method_mut(), *request.uri_mut()) = (method, target.into());
    let fields = request.headers_mut();
    fields.clone_from(headers);
    fields.insert(HOST, client.host_field());
    fields.insert(USER_AGENT, AGENT);
    // Nothing here decodes a response.
    fields.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
    request
}
