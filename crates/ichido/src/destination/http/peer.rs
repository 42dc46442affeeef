//! The receiver: how it is reached.
//!
//! Guarantee: whatever fails here fails before a byte of the request was written. The address that was looked at is the one that is
//! connected to, so that a name cannot change its mind in between; no proxy is taken from the environment.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Authority;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use ichido_core::verdict::NetworkFault;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::address::is_link_local;
use super::pool::Pool;

/// The most header fields of an answer.
const HEADERS_MAX: usize = 256;
/// The most bytes of an answer's status line and header fields together.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A request's way onto the wire: one connection that carries one call at a time.
pub(super) type Line = SendRequest<Full<Bytes>>;

/// Whom to call.
pub(crate) struct Peer {
    /// As the field `Host` has it.
    pub(crate) authority: Authority,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) tls: Option<Tls>,
    /// Whether it may be where link-local addresses are.
    pub(super) allows_link_local: bool,
    pub(super) pool: Pool,
}

/// A name to look up, or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

/// How to speak TLS, and whose certificate is asked for.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// There is no whole answer: what that says of the request, and why, in words for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: NetworkFault,
    pub(crate) why: String,
}

impl Fault {
    pub(crate) fn new(kind: NetworkFault, why: impl Into<String>) -> Self {
        Self { kind, why: why.into() }
    }
}

impl Peer {
    /// A new connection, ready for a request, before `deadline`.
    pub(super) async fn connect(&self, deadline: Instant) -> Result<Line, Fault> {
        let late = |_| Fault::new(NetworkFault::ConnectTimeout, "no connection came about in time");
        timeout_at(deadline, self.open(deadline)).await.map_err(late)?
    }

    async fn open(&self, deadline: Instant) -> Result<Line, Fault> {
        let addresses = self.addresses().await?;
        let stream = reach(&addresses, deadline).await?;
        let Some(tls) = &self.tls else {
            return speak(stream).await;
        };
        let shaken = TlsConnector::from(Arc::clone(&tls.config)).connect(tls.name.clone(), stream).await;
        let stream =
            shaken.map_err(|error| Fault::new(NetworkFault::Tls, format!("no TLS connection: {error}")))?;
        speak(stream).await
    }

    /// Where it is, less where it must not be.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, Fault> {
        let unknown = |why: String| Fault::new(NetworkFault::NameNotResolved, why);
        let mut found: Vec<SocketAddr> = match &self.host {
            Host::Address(address) => vec![SocketAddr::new(*address, self.port)],
            Host::Name(name) => tokio::net::lookup_host((name.as_str(), self.port))
                .await
                .map_err(|error| unknown(format!("the name {name} was not resolved: {error}")))?
                .collect(),
        };
        if found.is_empty() {
            return Err(unknown(format!("the name of {} has no address", self.authority)));
        }
        if !self.allows_link_local {
            found.retain(|address| !is_link_local(address.ip()));
        }
        if found.is_empty() {
            // We hold it back ourselves: nothing was sent, and it says nothing of how the receiver fares.
            return Err(Fault::new(
                NetworkFault::HeldBack,
                format!("{} is at a link-local address only, which is not allowed for it", self.authority),
            ));
        }
        Ok(found)
    }
}

/// The first of the addresses that answers. Each has its share of the time, so that one that is silent leaves some to the rest.
async fn reach(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, Fault> {
    let mut last = None;
    for (index, address) in addresses.iter().enumerate() {
        let left = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let now = Instant::now();
        let share: Duration = deadline.saturating_duration_since(now) / left;
        let tried = timeout_at(now + share, TcpStream::connect(address)).await;
        let error = match tried {
            Ok(Ok(stream)) => {
                // Only a hint to the system: without it calls are a little later.
                drop(stream.set_nodelay(true));
                return Ok(stream);
            }
            Ok(Err(error)) => error,
            Err(_) => Error::from(ErrorKind::TimedOut),
        };
        let kind = match error.kind() {
            ErrorKind::TimedOut => NetworkFault::ConnectTimeout,
            _ => NetworkFault::ConnectRefused,
        };
        last = Some(Fault::new(kind, format!("no connection to {address}: {error}")));
    }
    Err(last.unwrap_or_else(|| Fault::new(NetworkFault::NameNotResolved, "there is no address")))
}

/// HTTP/1.1 alone: where one connection carries one call, a connection that breaks leaves no doubt about whose call it was.
pub(super) async fn speak<S>(stream: S) -> Result<Line, Fault>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_headers(HEADERS_MAX).max_buf_size(HEAD_BYTES_MAX);
    let (line, connection) = builder
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Fault::new(NetworkFault::ConnectRefused, format!("no HTTP connection: {error}")))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a destination ended early");
        }
    });
    Ok(line)
}
