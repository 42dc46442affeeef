//! The wire: one connection, one request, one answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, HOST, USER_AGENT};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Position, Url};

use super::Fetcher;
use crate::settings::limits;
use crate::trouble::{Fault, Trouble};

/// The most header fields of an answer.
const HEADERS_MAX: usize = 128;
/// How long one address may take to connect, so that one that is silent leaves time to the next.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const WHO: &str = concat!("bookmarks/", env!("CARGO_PKG_VERSION"));

/// TLS with the system's roots; `None` where there are none.
pub(super) fn trusting_the_system() -> Option<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    // A system may hold one that is too old to be used; the others still count.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return None;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    Some(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// A certificate that nobody vouches for is there at the next try too.
fn no_tls(error: &std::io::Error) -> Fault {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    let is_untrusted = matches!(cause, Some(rustls::Error::InvalidCertificate(_)));
    let trouble = if is_untrusted { Trouble::PageUntrusted } else { Trouble::PageUnreachable };
    Fault::new(trouble, format!("no TLS connection came about: {error}"))
}

fn unreachable(why: impl std::fmt::Display) -> Fault {
    Fault::new(Trouble::PageUnreachable, why.to_string())
}

impl Fetcher {
    /// Sends one request to where a URL leads, if that may be reached.
    pub(super) async fn ask(&self, url: &Url) -> Result<Response<Incoming>, Fault> {
        let stream = self.connect(url).await?;
        if url.scheme() == "http" {
            return exchange(stream, url).await;
        }
        let tls = self
            .tls
            .clone()
            .ok_or_else(|| unreachable("the system trusts nobody, so that https cannot be spoken"))?;
        let name = match url.host() {
            Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()).map_err(unreachable)?,
            Some(Host::Ipv4(address)) => ServerName::from(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => ServerName::from(IpAddr::V6(address)),
            None => return Err(unreachable("there is no host")),
        };
        let stream = TlsConnector::from(tls).connect(name, stream).await.map_err(|error| no_tls(&error))?;
        exchange(stream, url).await
    }

    /// Connects to the first address that may be reached and answers. It is looked up once: what was checked is what is connected to.
    async fn connect(&self, url: &Url) -> Result<TcpStream, Fault> {
        let port = url.port_or_known_default().ok_or_else(|| unreachable("there is no port"))?;
        let found: Vec<SocketAddr> = match url.host() {
            Some(Host::Domain(name)) => {
                tokio::net::lookup_host((name, port)).await.map_err(unreachable)?.collect()
            }
            Some(Host::Ipv4(address)) => vec![(address, port).into()],
            Some(Host::Ipv6(address)) => vec![(address, port).into()],
            None => Vec::new(),
        };
        let mut fault = match found.len() {
            0 => unreachable("it has no address"),
            _ => Fault::new(Trouble::AddressRefused, "its address is not of the public Internet"),
        };
        for address in found.into_iter().filter(|address| (self.may_reach)(address.ip())) {
            match timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => fault = unreachable(error),
                Err(_) => fault = Fault::new(Trouble::PageTooSlow, "no connection came about in time"),
            }
        }
        Err(fault)
    }
}

async fn exchange<S>(stream: S, url: &Url) -> Result<Response<Incoming>, Fault>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_headers(HEADERS_MAX).max_buf_size(limits::PAGE_HEAD_BYTES_MAX);
    let (mut line, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(unreachable)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a page ended early");
        }
    });
    let request = Request::get(&url[Position::BeforePath..Position::AfterQuery])
        .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
        .header(USER_AGENT, WHO)
        .header(ACCEPT, "text/html, application/xhtml+xml, text/plain;q=0.8")
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(unreachable)?;
    line.send_request(request).await.map_err(unreachable)
}

/// Reads a page to its end, if that is not too far.
pub(super) async fn read(answer: Response<Incoming>) -> Result<Bytes, Fault> {
    let too_large = || {
        let detail = format!("it is over {} bytes", limits::PAGE_BYTES_MAX);
        Fault::new(Trouble::PageTooLarge, detail)
    };
    let mut incoming = answer.into_body();
    if (limits::PAGE_BYTES_MAX as u64) < incoming.size_hint().lower() {
        return Err(too_large());
    }
    let mut body = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame.map_err(unreachable)?.into_data() else { continue };
        if limits::PAGE_BYTES_MAX < body.len() + data.len() {
            return Err(too_large());
        }
        body.extend_from_slice(&data);
    }
    Ok(body.freeze())
}
