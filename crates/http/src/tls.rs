//! TLS with a certificate of our own making, for clients that pin it by its fingerprint.

use std::io;
use std::path::Path;
use std::sync::Arc;

use gander_client::CertificatePin;
use gander_services::paths::{Paths, write_private_file};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// What a certificate of our own is made for.
const CERTIFICATE_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Made(#[from] rcgen::Error),
    /// It cannot be used.
    #[error("cannot use the certificate: {0}")]
    Used(#[from] rustls::Error),
    /// It cannot be kept.
    #[error("cannot keep the certificate: {0}")]
    Kept(#[from] io::Error),
}

/// TLS with a certificate of our own making.
#[derive(Clone)]
pub struct SelfSigned {
    /// Takes connections.
    pub acceptor: TlsAcceptor,
    /// What clients pin: SHA-256 of the certificate, as goosed prints it.
    pub fingerprint: String,
}

impl std::fmt::Debug for SelfSigned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SelfSigned").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl SelfSigned {
    /// The certificate of a data directory. It is made once: whoever pinned it can go on.
    pub fn load_or_create(paths: &Paths) -> Result<Self, TlsError> {
        let (certificate, key) =
            (paths.data_directory().join("tls.cert.der"), paths.data_directory().join("tls.key.der"));
        if !certificate.exists() || !key.exists() {
            let made = rcgen::generate_simple_self_signed(CERTIFICATE_NAMES.map(str::to_owned))?;
            write_private_file(&key, made.signing_key.serialized_der())?;
            write_private_file(&certificate, made.cert.der())?;
        }
        Self::from_files(&certificate, &key)
    }

    fn from_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let certificate = std::fs::read(certificate)?;
        let key = PrivateKeyDer::try_from(std::fs::read(key)?).map_err(|_| rustls::Error::General("no key".into()))?;
        let fingerprint = CertificatePin::of_certificate(&certificate).to_string();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certificate)], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint })
    }
}
