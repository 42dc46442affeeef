//! The root certificates that TLS trusts.
//!
//! Guarantee: a configuration trusts either the given roots or the system's; never none, and never both.

use std::sync::Arc;

pub use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The given roots are not PEM.
    #[error("is not valid PEM: {0}")]
    Pem(rustls::pki_types::pem::Error),
    /// The given roots are empty.
    #[error("contains no certificate; add at least one in PEM format")]
    Empty,
    /// One of the given roots is not a certificate.
    #[error("contains an unusable certificate: {0}")]
    Certificate(rustls::Error),
    /// The system has no usable roots.
    #[error("cannot read the system's trusted certificates, and none are configured: {0}")]
    System(String),
    /// rustls rejects the setup.
    #[error("cannot set up TLS: {0}")]
    Setup(rustls::Error),
}

/// Builds the TLS configuration of an [`HttpClient`](crate::client::HttpClient).
pub fn https(roots_pem: Option<&str>) -> Result<Arc<ClientConfig>, TrustError> {
    let mut config = client(roots_pem)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Builds a TLS 1.2 and 1.3 configuration with the given PEM roots, or the system's.
pub fn client(roots_pem: Option<&str>) -> Result<ClientConfig, TrustError> {
    let roots = match roots_pem {
        Some(pem) => from_pem(pem)?,
        None => from_system()?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Setup)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn from_pem(pem: &str) -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.map_err(TrustError::Pem)?).map_err(TrustError::Certificate)?;
    }
    if roots.is_empty() { Err(TrustError::Empty) } else { Ok(roots) }
}

fn from_system() -> Result<RootCertStore, TrustError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A system may hold a certificate that is too old to use; the others still count.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        let why = if why.is_empty() { "none found".to_owned() } else { why.join("; ") };
        return Err(TrustError::System(why));
    }
    Ok(roots)
}
