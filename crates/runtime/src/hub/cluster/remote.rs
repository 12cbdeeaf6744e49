//! Requests and answers as they travel between nodes, as JSON in a row.

use gander_domain::authorize::Denied;
use gander_domain::caller::Caller;
use gander_domain::{Accepted, Command, CommandError, Notice, SessionId, Severity};
use gander_store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hub::{Ack, HubError};

/// What a node asks the owner of a session. A newer node's that this one cannot read is refused, never guessed.
#[derive(Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub(in crate::hub) enum RemoteRequest {
    Command {
        caller: Box<Caller>,
        command: Box<Command>,
        ack: Ack,
        /// The client lends files, terminals or keys, which stay with the node that it is connected to.
        lent: bool,
    },
    Delete,
}

/// What became of it.
#[derive(Serialize, Deserialize)]
#[serde(tag = "answer", content = "why", rename_all = "snake_case")]
pub(in crate::hub) enum RemoteAnswer {
    Accepted(Accepted),
    Refused(CommandError),
    Denied(Denied),
    NotFound(SessionId),
    /// The owner's node could not read it, or failed.
    Failed(String),
}

impl RemoteAnswer {
    pub(in crate::hub) fn from_result(result: Result<Accepted, HubError>) -> Self {
        match result {
            Ok(accepted) => Self::Accepted(accepted),
            Err(HubError::Refused(refused)) => Self::Refused(refused),
            Err(HubError::Denied(denied)) => Self::Denied(denied),
            Err(HubError::Store(StoreError::NotFound(session))) => Self::NotFound(session),
            Err(error @ (HubError::Store(_) | HubError::Draining | HubError::Gone(_))) => {
                Self::Failed(error.to_string())
            }
        }
    }

    pub(super) fn read(body: Value) -> Result<Accepted, HubError> {
        let answer = serde_json::from_value(body).unwrap_or_else(|error| Self::Failed(error.to_string()));
        match answer {
            Self::Accepted(accepted) => Ok(accepted),
            Self::Refused(refused) => Err(refused.into()),
            Self::Denied(denied) => Err(denied.into()),
            Self::NotFound(session) => Err(StoreError::NotFound(session).into()),
            Self::Failed(reason) => Err(StoreError::Failed(reason).into()),
        }
    }

    /// As it goes into the row.
    pub(in crate::hub) fn into_body(self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}

/// For a run whose client is connected to another node than the one that runs it.
pub(in crate::hub) fn remote_lent_notice() -> Notice {
    Notice {
        severity: Severity::Warning,
        title: "This run uses the server's disk and keys: the client is connected to another node".to_owned(),
        detail: None,
    }
}

/// For a run that begins with an empty private folder: what the session wrote before is on another node's disk.
pub(in crate::hub) fn empty_folder_notice() -> Notice {
    Notice {
        severity: Severity::Warning,
        title: "This run begins with an empty private folder: the session's files are on another node".to_owned(),
        detail: None,
    }
}
