//! Opens connections to a server.
//!
//! Guarantee: an error here means that no byte of a request was written. The client connects to the address that it
//! checked, so a name cannot change in between. It uses no proxy from the environment.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use ichido_core::verdict::NetworkFault;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{NetworkError, RequestBody};
use crate::url::Host;

/// The maximum number of header fields of a response.
const MAX_HEADERS: usize = 256;
/// The maximum size of a response's status line and header fields together.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// A connection that carries one request at a time.
pub(super) type ClientConnection<B> = SendRequest<B>;

/// A server and how to connect to it.
pub(super) struct Connector {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) tls: Option<Tls>,
    pub(super) may_connect: fn(IpAddr) -> bool,
}

/// TLS, and the name that the server's certificate must have.
pub(super) struct Tls {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// A stream to a server.
enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A stream that carries the caller's own bytes.
pub type RawStream = Box<dyn RawIo>;

/// What a raw stream can do.
pub trait RawIo: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> RawIo for S {}

fn late() -> NetworkError {
    NetworkError::new(NetworkFault::ConnectTimeout, "no connection was established in time")
}

impl Connector {
    /// Opens a connection before `deadline`.
    pub(super) async fn connect<B: RequestBody>(
        &self,
        deadline: Instant,
    ) -> Result<ClientConnection<B>, NetworkError> {
        timeout_at(deadline, self.open(deadline)).await.map_err(|_| late())?
    }

    async fn open<B: RequestBody>(&self, deadline: Instant) -> Result<ClientConnection<B>, NetworkError> {
        match self.stream(deadline).await? {
            ClientStream::Plain(stream) => handshake(stream).await,
            ClientStream::Tls(stream) => handshake(*stream).await,
        }
    }

    /// Opens a stream, which has carried no byte of HTTP yet.
    async fn stream(&self, deadline: Instant) -> Result<ClientStream, NetworkError> {
        let stream = connect_to_first(&self.addresses().await?, deadline).await?;
        let Some(tls) = &self.tls else {
            return Ok(ClientStream::Plain(stream));
        };
        let stream = TlsConnector::from(Arc::clone(&tls.config)).connect(tls.name.clone(), stream).await;
        Ok(ClientStream::Tls(Box::new(stream.map_err(|error| NetworkError::tls(&error))?)))
    }

    /// Opens a stream for a caller that writes its own bytes, before `deadline`.
    pub(super) async fn raw(&self, deadline: Instant) -> Result<RawStream, NetworkError> {
        Ok(match timeout_at(deadline, self.stream(deadline)).await.map_err(|_| late())?? {
            ClientStream::Plain(stream) => Box::new(stream),
            ClientStream::Tls(stream) => stream,
        })
    }

    /// Resolves the host to its addresses, without those that must not be called.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, NetworkError> {
        let unknown = |why: String| NetworkError::new(NetworkFault::NameNotResolved, why);
        let mut found: Vec<SocketAddr> = match &self.host {
            Host::Address(address) => vec![SocketAddr::new(*address, self.port)],
            Host::Name(name) => tokio::net::lookup_host((name.as_str(), self.port))
                .await
                .map_err(|error| unknown(format!("cannot resolve host {name}: {error}")))?
                .collect(),
        };
        if found.is_empty() {
            return Err(unknown("the host has no address".to_owned()));
        }
        found.retain(|address| (self.may_connect)(address.ip()));
        if found.is_empty() {
            // This is our own decision: nothing was sent, and it says nothing about the server's health.
            return Err(NetworkError::new(
                NetworkFault::NotSent,
                "every address of the host is link-local or otherwise not allowed",
            ));
        }
        Ok(found)
    }
}

/// Connects to the first address that accepts.
///
/// Each address gets its share of the time, so a silent one leaves time for the rest.
async fn connect_to_first(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, NetworkError> {
    let mut last = None;
    for (index, address) in addresses.iter().enumerate() {
        let left = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let now = Instant::now();
        let share = deadline.saturating_duration_since(now) / left;
        let error = match timeout_at(now + share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Only a hint to the system: without it requests are slightly delayed.
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
        last = Some(NetworkError::new(kind, format!("cannot connect to {address}: {error}")));
    }
    Err(last.unwrap_or_else(|| NetworkError::new(NetworkFault::NameNotResolved, "the host has no address")))
}

/// Starts HTTP/1.1 on a stream.
///
/// HTTP/1.1 only: a connection that carries one request at a time leaves no doubt about whose request broke.
pub(super) async fn handshake<S, B>(stream: S) -> Result<ClientConnection<B>, NetworkError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: RequestBody,
{
    let mut builder = http1::Builder::new();
    builder.max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD_BYTES);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| {
        NetworkError::new(NetworkFault::ConnectRefused, format!("no HTTP connection: {error}"))
    })?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection ended early");
        }
    });
    Ok(sender)
}
