//! What a message of ours is, told from its envelope alone.

use gander_wire::jsonrpc::RequestId;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Requests and answers begin like this, notifications do not.
const ENVELOPE_WITH_ID: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// What a message of ours is.
pub(super) enum MessageKind {
    Answer(RequestId),
    Request,
    /// About the client's own files and terminals: of no use to anybody later.
    HostCall,
    Notification,
}

#[derive(Deserialize)]
struct OutgoingEnvelope<'a> {
    id: Option<RequestId>,
    #[serde(borrow)]
    method: Option<std::borrow::Cow<'a, str>>,
    #[serde(rename = "params")]
    _params: Option<IgnoredAny>,
}

/// The request that a message answers, if it answers one.
pub(super) fn answered_request_in_envelope(message: &[u8]) -> Option<RequestId> {
    MessageKind::classify(message).answered_id().cloned()
}

impl MessageKind {
    pub(super) fn classify(message: &[u8]) -> Self {
        if !message.starts_with(ENVELOPE_WITH_ID) {
            return Self::Notification;
        }
        match serde_json::from_slice::<OutgoingEnvelope<'_>>(message) {
            Ok(OutgoingEnvelope { id: Some(id), method: None, .. }) => Self::Answer(id),
            Ok(OutgoingEnvelope { method: Some(method), .. })
                if method.starts_with("fs/") || method.starts_with("terminal/") =>
            {
                Self::HostCall
            }
            Ok(_) | Err(_) => Self::Request,
        }
    }

    pub(super) fn answered_id(&self) -> Option<&RequestId> {
        match self {
            Self::Answer(id) => Some(id),
            Self::Request | Self::HostCall | Self::Notification => None,
        }
    }
}
