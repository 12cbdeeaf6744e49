//! Addresses of what was said, which prove that they are ours.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gander_domain::{Seq, SessionId, Timestamp};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::sessions::MessageReference;

/// How long an address of a message is good for.
pub(super) const RESOURCE_TTL_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// Bytes of an address that prove it is ours.
const PROOF_LEN: usize = 16;

/// Makes and checks the addresses of messages: unguessable, and good for a day.
#[derive(Clone)]
pub struct ResourceUrls {
    key: [u8; 32],
    pub(super) forwarded: bool,
}

impl ResourceUrls {
    /// Proven by this secret. What is not forwarded has no address.
    pub fn new(key: [u8; 32], forwarded: bool) -> Self {
        Self { key, forwarded }
    }

    pub(super) fn resource_id(&self, reference: MessageReference, until: Timestamp) -> String {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend_from_slice(reference.session.uuid().as_bytes());
        bytes.extend_from_slice(&reference.seq.0.to_be_bytes());
        bytes.extend_from_slice(&reference.index.to_be_bytes());
        bytes.extend_from_slice(&until.as_micros().to_be_bytes());
        let proof = self.sign_resource(&bytes);
        bytes.extend_from_slice(&proof);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(super) fn verify_resource_id(&self, id: &str, now: Timestamp) -> Option<MessageReference> {
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (body, proof) = bytes.split_at_checked(bytes.len().checked_sub(PROOF_LEN)?)?;
        if !bool::from(self.sign_resource(body).ct_eq(proof)) {
            return None;
        }
        let (session, rest) = body.split_first_chunk::<16>()?;
        let (seq, rest) = rest.split_first_chunk::<8>()?;
        let (index, rest) = rest.split_first_chunk::<4>()?;
        let until = i64::from_be_bytes(rest.try_into().ok()?);
        let session = SessionId::new(uuid::Uuid::from_bytes(*session));
        let (seq, index) = (Seq(u64::from_be_bytes(*seq)), u32::from_be_bytes(*index));
        (now.as_micros() < until).then_some(MessageReference { session, seq, index })
    }

    /// Hashed twice, so that nobody can lengthen what was proven.
    fn sign_resource(&self, body: &[u8]) -> [u8; PROOF_LEN] {
        let inner = Sha256::new().chain_update(self.key).chain_update(body).finalize();
        let outer = Sha256::new().chain_update(self.key).chain_update(inner).finalize();
        let mut proof = [0; PROOF_LEN];
        proof.copy_from_slice(&outer[..PROOF_LEN]);
        proof
    }
}
