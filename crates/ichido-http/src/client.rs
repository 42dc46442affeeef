//! An HTTP client of one server that reports what a failure means for the request.
//!
//! Guarantee: a request is written once. It moves to another connection only if the first one returns it whole, with
//! no byte written. An error before that point means that the request never arrived; an error after it means that it
//! may have arrived. Each stage has a timeout, and a response has a maximum size.
//!
//! The client uses hyper's connections and not hyper-util's client, because it must distinguish the stages: that
//! client does not report when a connection gets the request, which starts the response timeout.

mod connect;
mod pool;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Body;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ichido_core::verdict::NetworkFault;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout_at};

use self::connect::{ClientConnection, Connector, Tls};
pub use self::connect::{RawIo, RawStream};
use self::pool::Pool;
use crate::server::body::BoxError;
use crate::url::{Host, HttpUrl};

/// How often a request moves on because an idle connection had closed unused. After that it gets a new connection.
const MAX_UNUSED: u32 = 3;

/// A client of one server.
pub struct HttpClient<B> {
    authority: Authority,
    connector: Connector,
    pool: Arc<Pool<B>>,
}

/// The timeouts of each stage, and how much is read.
#[derive(Clone, Copy, Debug)]
pub struct CallLimits {
    /// The timeout for name lookup, TCP and TLS.
    pub connect: Duration,
    /// The timeout from when a connection gets the request until the response head arrives.
    pub response: Duration,
    /// The timeout for everything, to the last byte of the response.
    pub total: Duration,
    /// The largest response body that is read completely.
    pub max_response_bytes: usize,
}

/// A response with its body, up to the limit.
#[derive(Debug)]
pub struct FullResponse {
    /// The status.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whether the body is complete. If not, the rest was not read.
    pub is_whole: bool,
}

/// Why there is no complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkError {
    /// The meaning of the error for the request.
    pub kind: NetworkFault,
    /// The reason as text.
    pub why: String,
    /// Whether the server's certificate is not trusted.
    pub is_untrusted: bool,
}

/// The host of an `https` URL cannot appear in a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("has a host that no certificate can name")]
pub struct ServerNameError;

impl NetworkError {
    /// Creates an error of this kind.
    pub fn new(kind: NetworkFault, why: impl Into<String>) -> Self {
        Self { kind, why: why.into(), is_untrusted: false }
    }

    fn tls(error: &std::io::Error) -> Self {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        let is_untrusted = matches!(cause, Some(rustls::Error::InvalidCertificate(_)));
        Self { is_untrusted, ..Self::new(NetworkFault::Tls, format!("no TLS connection: {error}")) }
    }

    /// Creates the error for a request that was written at least in part.
    fn broken(error: &hyper::Error) -> Self {
        let kind = if error.is_parse() { NetworkFault::ResponseCut } else { NetworkFault::Broken };
        Self::new(kind, format!("the connection broke after the request was written: {error}"))
    }
}

impl<B> fmt::Debug for HttpClient<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// A body that a request can have.
pub trait RequestBody: Body<Data: Send, Error: Into<BoxError>> + Send + 'static {}

impl<B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static> RequestBody for B {}

impl<B: RequestBody> HttpClient<B> {
    /// Creates a client of the server in `url`.
    ///
    /// For `https` it uses `tls`, which [`crate::trust::https`] creates. It connects only to addresses that
    /// `may_connect` allows.
    pub fn new(
        url: &HttpUrl,
        tls: Option<Arc<ClientConfig>>,
        may_connect: fn(IpAddr) -> bool,
    ) -> Result<Self, ServerNameError> {
        let name = match &url.host {
            Host::Address(address) => Ok(ServerName::from(*address)),
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| ServerNameError),
        };
        let tls = match tls.filter(|_| url.is_tls) {
            Some(config) => Some(Tls { config, name: name? }),
            None => None,
        };
        let connector = Connector { host: url.host.clone(), port: url.port, tls, may_connect };
        Ok(Self { authority: url.authority.clone(), connector, pool: Arc::default() })
    }

    /// Returns host and port, as in the field `Host`.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns the value of the field `Host`.
    pub fn host_field(&self) -> HeaderValue {
        // An authority is visible ASCII, so this always succeeds.
        HeaderValue::from_str(self.authority.as_str()).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    /// Opens a connection of its own for a caller that writes its own bytes.
    pub async fn raw(&self, connect: Duration) -> Result<RawStream, NetworkError> {
        self.connector.raw(Instant::now() + connect).await
    }

    /// Sends a request and reads its response.
    pub async fn exchange(
        &self,
        request: Request<B>,
        limits: &CallLimits,
    ) -> Result<FullResponse, NetworkError> {
        let deadline = Instant::now() + limits.total;
        let patience = || tokio::time::sleep_until(deadline.min(Instant::now() + limits.response));
        let (connection, response) = self.send_on(request, limits.connect, deadline, patience).await?;
        let response = read(response, deadline, limits.max_response_bytes).await?;
        // Close a connection whose response was not read completely.
        if response.is_whole {
            self.pool.put(connection);
        }
        Ok(response)
    }

    /// Sends a request and returns its response as soon as the head arrives.
    ///
    /// `patience` is called when a connection gets the request; the wait for the response ends when its future
    /// completes.
    pub async fn send<F: Future<Output = ()>>(
        &self,
        request: Request<B>,
        connect: Duration,
        deadline: Instant,
        patience: impl Fn() -> F,
    ) -> Result<Response<Incoming>, NetworkError> {
        let (mut connection, response) = self.send_on(request, connect, deadline, patience).await?;
        let pool = Arc::clone(&self.pool);
        tokio::spawn(async move {
            // It is ready again once the body was read completely.
            if connection.ready().await.is_ok() {
                pool.put(connection);
            }
        });
        Ok(response)
    }

    async fn send_on<F: Future<Output = ()>>(
        &self,
        mut request: Request<B>,
        connect: Duration,
        deadline: Instant,
        patience: impl Fn() -> F,
    ) -> Result<(ClientConnection<B>, Response<Incoming>), NetworkError> {
        let mut unused = 0;
        loop {
            let connect_by = deadline.min(Instant::now() + connect);
            let idle = if unused < MAX_UNUSED { self.take_idle(connect_by).await } else { None };
            let is_reused = idle.is_some();
            let mut connection = match idle {
                Some(connection) => connection,
                None => self.connector.connect(connect_by).await?,
            };
            let mut error = tokio::select! {
                biased;
                sent = connection.try_send_request(request) => match sent {
                    Ok(response) => return Ok((connection, response)),
                    Err(error) => error,
                },
                () = patience() => {
                    return Err(NetworkError::new(NetworkFault::Timeout, "no response arrived in time"));
                }
            };
            // A returned request means that no byte of it was written.
            match error.take_message() {
                Some(returned) if is_reused => request = returned,
                Some(_) => {
                    return Err(NetworkError::new(
                        NetworkFault::ClosedUnused,
                        "a new connection was closed before the request was written",
                    ));
                }
                None => return Err(NetworkError::broken(error.error())),
            }
            unused += 1;
        }
    }

    async fn take_idle(&self, deadline: Instant) -> Option<ClientConnection<B>> {
        timeout_at(deadline, self.pool.take()).await.ok().flatten()
    }
}

async fn read(
    response: Response<Incoming>,
    deadline: Instant,
    max_bytes: usize,
) -> Result<FullResponse, NetworkError> {
    let (head, mut incoming) = response.into_parts();
    let cut = |why: String| NetworkError::new(NetworkFault::ResponseCut, why);
    let mut body = BytesMut::new();
    let is_whole = loop {
        let frame = timeout_at(deadline, incoming.frame()).await;
        let frame = frame.map_err(|_| cut("the response did not complete in time".to_owned()))?;
        let Some(frame) = frame else {
            break true;
        };
        let frame = frame.map_err(|error| cut(format!("the response did not complete: {error}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let left = max_bytes - body.len();
        body.extend_from_slice(&data[..data.len().min(left)]);
        if left < data.len() {
            break false;
        }
    };
    Ok(FullResponse { status: head.status.as_u16(), headers: head.headers, body: body.freeze(), is_whole })
}
