//! The check of one token: its header against what is allowed, its signature with a key of the issuer, its claims.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, new_error};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::signature::Verifier;
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey, Validation};
use ring::signature as ring_signature;
use serde_json::Value;

use super::OidcError;
use super::settings::{OidcSettings, SignatureAlgorithm};

/// The longest token that is looked at.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Signatures are checked by the library that everything else here uses for TLS; nothing is signed.
const RING: &CryptoProvider = &CryptoProvider {
    signer_factory: refuse_signing,
    verifier_factory: ring_verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// What a token says of itself before anything of it is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JwtHeader {
    pub(super) algorithm: SignatureAlgorithm,
    pub(super) kid: Option<String>,
}

/// The header of a token, if a token with such a header may count at all.
pub(super) fn read_jwt_header(token: &str, settings: &OidcSettings) -> Result<JwtHeader, OidcError> {
    let (header, _) = token.split_once('.').filter(|_| token.len() <= MAX_TOKEN_BYTES).ok_or(OidcError::Malformed)?;
    let decoded = URL_SAFE_NO_PAD.decode(header).map_err(|_| OidcError::Malformed)?;
    let header: Value = serde_json::from_slice(&decoded).map_err(|_| OidcError::Malformed)?;
    let named = header["alg"].as_str().ok_or(OidcError::Malformed)?;
    let algorithm = settings.algorithms.iter().copied().find(|allowed| allowed.name() == named);
    let algorithm = algorithm.ok_or_else(|| OidcError::Algorithm(named.chars().take(20).collect()))?;
    // What a token demands to be understood is not understood here.
    if !header["crit"].is_null() || !header["b64"].is_null() {
        return Err(OidcError::Malformed);
    }
    match header["typ"].as_str().map(str::to_ascii_lowercase).as_deref() {
        None | Some("jwt" | "at+jwt" | "application/at+jwt") => {}
        Some(other) => return Err(OidcError::Type(other.chars().take(40).collect())),
    }
    Ok(JwtHeader { algorithm, kid: header["kid"].as_str().map(str::to_owned) })
}

/// The claims of a token whose signature, issuer, audience and times are right.
pub(super) fn verify_jwt(
    token: &str,
    header: &JwtHeader,
    key: &Jwk,
    settings: &OidcSettings,
) -> Result<Value, OidcError> {
    // Does nothing from the second time on.
    RING.install_default().ok();
    let key = DecodingKey::from_jwk(key).map_err(|_| OidcError::UnknownKey)?;
    let mut validation = Validation::new(header.algorithm.as_jwt_algorithm());
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[&settings.issuer]);
    validation.set_audience(&[&settings.audience]);
    validation.validate_nbf = true;
    validation.leeway = settings.clock_skew.as_secs();
    let claims =
        jsonwebtoken::decode::<Value>(token, &key, &validation).map_err(|error| jwt_refusal(error.kind()))?.claims;
    // A time of another type is not passed over: it would never come.
    if !claims["nbf"].is_null() && !claims["nbf"].is_number() {
        return Err(OidcError::Claim("nbf".to_owned()));
    }
    // One issuer in words: a list of them would let a token speak for several.
    if claims["iss"].as_str() != Some(&settings.issuer) {
        return Err(OidcError::Issuer);
    }
    Ok(claims)
}

/// The library's errors, of which there will be more: whatever is not named here is a token that cannot be read.
#[allow(clippy::wildcard_enum_match_arm)]
fn jwt_refusal(kind: &ErrorKind) -> OidcError {
    match kind {
        ErrorKind::ExpiredSignature => OidcError::Expired,
        ErrorKind::ImmatureSignature => OidcError::NotYetValid,
        ErrorKind::InvalidAudience => OidcError::Audience,
        ErrorKind::InvalidIssuer => OidcError::Issuer,
        ErrorKind::InvalidSignature => OidcError::Signature,
        ErrorKind::MissingRequiredClaim(name) => OidcError::Claim(name.clone()),
        ErrorKind::InvalidClaimFormat(name) => OidcError::Claim(name.clone()),
        _ => OidcError::Malformed,
    }
}

impl SignatureAlgorithm {
    /// Its name in a token's header.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
        }
    }

    fn as_jwt_algorithm(self) -> Algorithm {
        match self {
            Self::RS256 => Algorithm::RS256,
            Self::RS384 => Algorithm::RS384,
            Self::RS512 => Algorithm::RS512,
            Self::PS256 => Algorithm::PS256,
            Self::PS384 => Algorithm::PS384,
            Self::PS512 => Algorithm::PS512,
            Self::ES256 => Algorithm::ES256,
            Self::ES384 => Algorithm::ES384,
            Self::EdDSA => Algorithm::EdDSA,
        }
    }
}

/// Checks signatures of one kind with one key.
struct RingVerifier {
    algorithm: Algorithm,
    check: RingCheck,
    key: DecodingKey,
}

enum RingCheck {
    Rsa(&'static ring_signature::RsaParameters),
    Curve(&'static dyn ring_signature::VerificationAlgorithm),
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), jsonwebtoken::signature::Error> {
        let wrong = |_| jsonwebtoken::signature::Error::new();
        match (&self.check, self.key.kind()) {
            (RingCheck::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                ring_signature::RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).map_err(wrong)
            }
            (RingCheck::Curve(curve), DecodingKeyKind::SecretOrDer(point)) => {
                ring_signature::UnparsedPublicKey::new(*curve, point).verify(message, signature).map_err(wrong)
            }
            (RingCheck::Rsa(_), DecodingKeyKind::SecretOrDer(_))
            | (RingCheck::Curve(_), DecodingKeyKind::RsaModulusExponent { .. }) => {
                Err(jsonwebtoken::signature::Error::new())
            }
        }
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// RSA keys have 2,048 bits at least.
fn ring_verifier(algorithm: &Algorithm, key: &DecodingKey) -> jsonwebtoken::errors::Result<Box<dyn JwtVerifier>> {
    #[allow(clippy::wildcard_enum_match_arm)]
    let check = match algorithm {
        Algorithm::RS256 => RingCheck::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => RingCheck::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => RingCheck::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => RingCheck::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => RingCheck::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => RingCheck::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => RingCheck::Curve(&ring_signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => RingCheck::Curve(&ring_signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => RingCheck::Curve(&ring_signature::ED25519),
        // The library's enum: shared secrets, and whatever it learns in a later version.
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    };
    Ok(Box::new(RingVerifier { algorithm: *algorithm, check, key: key.clone() }))
}

fn refuse_signing(_: &Algorithm, _: &EncodingKey) -> jsonwebtoken::errors::Result<Box<dyn JwtSigner>> {
    Err(new_error(ErrorKind::UnsupportedAlgorithm))
}
