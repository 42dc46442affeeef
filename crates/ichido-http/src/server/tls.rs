//! TLS of a server: its certificate, which is read again when its files change.
//!
//! Guarantee: each connection gets the newest certificate that was usable. Files that are not (half written, or a key of another
//! certificate) leave the last one in use, and are logged once.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::sync::lock;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::small_file;

/// How often the files are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// Why files are not the certificate of a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is not PEM, or has nothing of this kind.
    #[error("{} contains no {what} in PEM format", .path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: &'static str,
    },
    /// Certificate and key cannot be used together.
    #[error("cannot use the certificate in {} with its key: {error}", .path.display())]
    Setup {
        /// The certificate.
        path: PathBuf,
        /// Why.
        error: rustls::Error,
    },
}

/// The files of a server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate in PEM format, followed by those that issued it.
    pub cert: PathBuf,
    /// Its private key, in PEM format.
    pub key: PathBuf,
}

/// The TLS of a server.
pub struct ServerTls {
    files: TlsFiles,
    current: Mutex<CurrentTls>,
}

struct CurrentTls {
    config: Arc<ServerConfig>,
    /// The digest of the files when they were last read, usable or not.
    seen: [u8; 32],
}

impl ServerTls {
    /// Reads the files.
    pub fn load(files: TlsFiles) -> Result<Self, ServerTlsError> {
        let (cert, key) = files.read()?;
        let current = CurrentTls { config: files.config(&cert, &key)?, seen: digest(&cert, &key) };
        Ok(Self { files, current: Mutex::new(current) })
    }

    /// Reads the files again. Returns whether they have a new certificate or key, which is used from now on.
    pub fn reload(&self) -> Result<bool, ServerTlsError> {
        let (cert, key) = self.files.read()?;
        let seen = digest(&cert, &key);
        if std::mem::replace(&mut lock(&self.current).seen, seen) == seen {
            return Ok(false);
        }
        let config = self.files.config(&cert, &key)?;
        lock(&self.current).config = config;
        Ok(true)
    }

    /// Reloads the files when they change, forever.
    pub async fn keep_current(self: Arc<Self>) {
        let mut was_readable = true;
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            let this = Arc::clone(&self);
            let Ok(reloaded) = tokio::task::spawn_blocking(move || this.reload()).await else { continue };
            match &reloaded {
                Ok(true) => tracing::info!(file = %self.files.cert.display(), "certificate reloaded"),
                Ok(false) => (),
                // Between two files of a renewal, one may be missing for a moment.
                Err(ServerTlsError::Read { .. }) if !was_readable => (),
                Err(error) => tracing::warn!(%error, "failed to reload the certificate"),
            }
            was_readable = !matches!(reloaded, Err(ServerTlsError::Read { .. }));
        }
    }

    /// Returns what accepts connections with the current certificate.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&lock(&self.current).config))
    }
}

impl TlsFiles {
    fn read(&self) -> Result<(Vec<u8>, Vec<u8>), ServerTlsError> {
        let read = |path: &Path| {
            small_file::read(path).map_err(|error| ServerTlsError::Read { path: path.to_owned(), error })
        };
        Ok((read(&self.cert)?, read(&self.key)?))
    }

    fn config(&self, cert: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, ServerTlsError> {
        let no_pem = |path: &Path, what| ServerTlsError::Pem { path: path.to_owned(), what };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(cert)
            .collect::<Result<_, _>>()
            .map_err(|_| no_pem(&self.cert, "certificate"))?;
        if chain.is_empty() {
            return Err(no_pem(&self.cert, "certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| no_pem(&self.key, "private key"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| ServerTlsError::Setup { path: self.cert.clone(), error })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn digest(cert: &[u8], key: &[u8]) -> [u8; 32] {
    let length = (cert.len() as u64).to_be_bytes();
    *Digest::of_bytes(&[&length[..], cert, key].concat()).as_bytes()
}

/// An accepted connection, encrypted or not.
pub(super) enum ServerStream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl From<TcpStream> for ServerStream {
    fn from(stream: TcpStream) -> Self {
        Self::Plain(stream)
    }
}

/// Calls a method of the stream inside.
macro_rules! inner {
    ($this:expr, $stream:ident => $call:expr) => {
        match $this.get_mut() {
            ServerStream::Plain(plain) => {
                let $stream = Pin::new(plain);
                $call
            }
            ServerStream::Encrypted(encrypted) => {
                let $stream = Pin::new(&mut **encrypted);
                $call
            }
        }
    };
}

impl AsyncRead for ServerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        inner!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inner!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Encrypted(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => stream.poll_shutdown(cx))
    }
}
