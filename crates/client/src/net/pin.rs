//! A server known by its certificate alone: nobody has to vouch for one that it made itself.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use sha2::{Digest as _, Sha256};

/// SHA-256 of the one certificate that a server may show, as `GOOSED_CERT_FINGERPRINT` says it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CertificatePin([u8; 32]);

/// Not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 32 pairs of hexadecimal digits, with or without colons between them: {0}")]
pub struct InvalidPin(String);

impl CertificatePin {
    /// That of a certificate.
    pub fn of_certificate(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }

    /// What encrypts to whoever has this certificate, and to nobody else.
    pub fn tls_config(self) -> Result<ClientConfig, Error> {
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(PinnedVerifier { pin: self, algorithms }))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl FromStr for CertificatePin {
    type Err = InvalidPin;

    fn from_str(text: &str) -> Result<Self, InvalidPin> {
        let bad = || InvalidPin(text[..text.floor_char_boundary(100)].to_owned());
        let digits: Vec<u32> = text
            .chars()
            .filter(|letter| *letter != ':')
            .map(|letter| letter.to_digit(16))
            .collect::<Option<_>>()
            .ok_or_else(bad)?;
        let pairs = digits.chunks_exact(2).filter_map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok());
        let bytes: Vec<u8> = pairs.collect();
        let even = digits.len() == 64;
        bytes.try_into().ok().filter(|_| even).map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for CertificatePin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02X}", if place == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for CertificatePin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Takes one certificate, whatever name and age it has.
#[derive(Debug)]
struct PinnedVerifier {
    pin: CertificatePin,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (wanted, found) = (self.pin, CertificatePin::of_certificate(end_entity));
        if found == wanted {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::General(format!(
            "the server's certificate is another one than is pinned: pinned {wanted}, found {found}"
        )))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_written() {
        let pin = CertificatePin::of_certificate(b"");
        let text = pin.to_string();
        assert!(text.starts_with("E3:B0:C4:42:98") && text.len() == 95, "{text}");
        for same in [text.clone(), text.to_lowercase(), text.replace(':', "")] {
            assert_eq!(same.parse(), Ok(pin), "{same}");
        }
    }

    #[test]
    fn anything_else_is_none() {
        let text = CertificatePin::of_certificate(b"").to_string();
        for other in ["", "E3:B0", &text[3..], &format!("{text}:00"), &format!("{text}0"), &text.replace('E', "G")] {
            let error = other.parse::<CertificatePin>().unwrap_err();
            assert!(error.to_string().starts_with("a fingerprint is 32 pairs"), "{error}");
        }
    }
}
