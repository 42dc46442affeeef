//! Certificates for test servers.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// Creates an authority of this name.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("it is signed"))
    }

    /// Returns its own certificate, in PEM, for clients that should trust it.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Returns a TLS acceptor with a certificate for this host.
    pub fn acceptor(&self, host: &str) -> TlsAcceptor {
        self.acceptor_for(host, &[])
    }

    /// Returns the same with protocols to choose from, in the order of preference.
    pub fn acceptor_for(&self, host: &str, protocols: &[&[u8]]) -> TlsAcceptor {
        let own = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(vec![host.to_owned()]).expect("a name");
        let certificate = certificate.signed_by(&own, &self.0).expect("it is signed");
        let key = PrivateKeyDer::try_from(own.serialize_der()).expect("a key");
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("they are known")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("they belong together");
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}
