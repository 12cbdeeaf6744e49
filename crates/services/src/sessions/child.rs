//! Sessions of sub-agents: they belong to whoever owns the parent, and work where it works.

use gander_domain::caller::Caller;
use gander_domain::{SessionId, SessionInit, SessionView, Settings, TextMark};
use gander_runtime::backend::ClientResources;
use gander_runtime::hub::{Hub, StartedSession};

use super::FirstPrompt;

/// A sub-agent's session.
#[derive(Clone, Debug)]
pub struct ChildSession {
    /// Its id.
    pub id: SessionId,
    /// What it is set to: never more than its parent may.
    pub settings: Settings,
    /// What it is to do.
    pub prompt: FirstPrompt,
    /// What is known about the origin of the text that it is told.
    pub inherited: TextMark,
}

/// Starts a session below another. The client of the parent's run lends its resources to the child as well.
///
/// The back-end that calls this is part of what the hub runs, so it brings the hub along.
pub async fn start_child_session(
    hub: &Hub,
    caller: &Caller,
    parent: &SessionView,
    child: ChildSession,
    client_resources: ClientResources,
) -> StartedSession {
    let ChildSession { id: session, settings, prompt: FirstPrompt { command, ack }, inherited } = child;
    let SessionView { session: parent, owner, workspace, folders, .. } = parent.clone();
    let init =
        SessionInit { session, owner, workspace, folders, settings, parent: Some(parent), meta: None, inherited };
    hub.create_with_prompt(caller, init, Vec::new(), command, ack, client_resources).await
}

/// True for the session of a sub-agent: its id is made from the call that began it, all others are drawn. A copy of a
/// session has a parent too, but is a session in its own right.
pub fn is_subagent_session(session: SessionId) -> bool {
    session.uuid().get_version() == Some(uuid::Version::Custom)
}
