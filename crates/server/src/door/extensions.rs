//! MCP servers added and taken away while the server runs, for every door that has the notion.

use gander_agent::mcp::Spec;
use gander_domain::{Principal, SessionId, SessionView};
use gander_wire::acp::Refusal;

use super::Desk;
use super::acp::{refusal, unavailable};
use crate::app::Peer;
use crate::extensions::{Entry, ExtensionError, Range, Rights};

/// Whether something known is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// True if this client may name programs to start.
pub fn may_start(desk: &Desk, peer: &Peer) -> bool {
    peer.local || desk.remote_commands
}

/// Adds a server to a session of this client's, or to all.
pub async fn add(
    desk: &Desk,
    peer: &Peer,
    session: Option<SessionId>,
    name: &str,
    entry: Entry,
) -> Result<(), Refusal> {
    let (range, view) = range(desk, peer, session).await?;
    let rights = if may_start(desk, peer) { Rights::Programs } else { Rights::Addresses };
    desk.extensions.add(range, name, entry, rights).await.map_err(|error| refused(&error))?;
    // It starts at once, also where the session had none before.
    view.iter().for_each(|view| desk.extensions.bring(view, Vec::new()));
    Ok(())
}

/// Uses a server that is known in a session of this client's, or in all.
pub async fn restore(desk: &Desk, peer: &Peer, session: Option<SessionId>, name: &str) -> Result<(), Refusal> {
    let (range, view) = range(desk, peer, session).await?;
    desk.extensions.restore(range, name).await.map_err(|error| refused(&error))?;
    view.iter().for_each(|view| desk.extensions.bring(view, Vec::new()));
    Ok(())
}

/// What is known for a session of this client's, or for all: also what is not used there.
pub async fn known(desk: &Desk, peer: &Peer, session: Option<SessionId>) -> Result<Vec<Spec>, Refusal> {
    let (_, view) = range(desk, peer, session).await?;
    let Some(view) = view else { return Ok(desk.extensions.switches().into_iter().map(|(spec, _)| spec).collect()) };
    let mut known = desk.extensions.specs(&view);
    known.extend(desk.extensions.everywhere());
    Ok(known)
}

/// This entry with the secrets of the server that it changes. What belongs to the owner is handed on by the owner alone.
pub async fn keeping(
    desk: &Desk,
    peer: &Peer,
    session: Option<SessionId>,
    name: &str,
    entry: Entry,
) -> Result<Entry, Refusal> {
    let is_owner = peer.principal == Principal::owner();
    let before = match session {
        Some(session) if !is_owner => {
            range(desk, peer, Some(session)).await?;
            desk.extensions.own(session)
        }
        Some(_) | None => known(desk, peer, session).await?,
    };
    Ok(desk.extensions.keeping(entry, before.iter().find(|spec| spec.name == name)))
}

/// Takes a server away from a session of this client's, or from all.
pub async fn remove(desk: &Desk, peer: &Peer, session: Option<SessionId>, name: &str) -> Result<(), Refusal> {
    let (range, view) = range(desk, peer, session).await?;
    desk.extensions.remove(range, view.as_ref(), name).await.map_err(|error| refused(&error))
}

/// Uses a server in every session, or no longer; it is kept either way.
pub async fn switch(desk: &Desk, peer: &Peer, name: &str, switch: Switch) -> Result<(), Refusal> {
    range(desk, peer, None).await?;
    let switched = match switch {
        Switch::On => desk.extensions.switch_on(name).await,
        Switch::Off => desk.extensions.switch_off(name).await,
    };
    switched.map_err(|error| refused(&error))
}

/// Begins a login at a server for this client; the answer is what its person opens.
pub async fn login(desk: &Desk, peer: &Peer, session: Option<SessionId>, name: &str) -> Result<String, Refusal> {
    let spec = named(desk, peer, session, name).await?;
    desk.extensions.login(&peer.principal, &spec).await.map_err(|error| refused(&error))
}

/// Until the login is over.
pub async fn logged_in(desk: &Desk, peer: &Peer, name: &str) -> Result<(), Refusal> {
    desk.extensions.logged_in(&peer.principal, name).await.map_err(|error| refused(&error))
}

/// Forgets what a login yielded.
pub async fn log_out(desk: &Desk, peer: &Peer, session: Option<SessionId>, name: &str) -> Result<(), Refusal> {
    let spec = named(desk, peer, session, name).await?;
    desk.extensions.log_out(&peer.principal, &spec).map_err(|error| refused(&error))
}

async fn named(desk: &Desk, peer: &Peer, session: Option<SessionId>, name: &str) -> Result<Spec, Refusal> {
    let specs = match session {
        None => desk.extensions.everywhere(),
        Some(session) => {
            let view = desk.hub.view_for(session, &peer.principal).await.map_err(|error| refusal(session, &error))?;
            desk.extensions.specs(&view)
        }
    };
    let found = specs.into_iter().find(|spec| spec.name == name);
    found.ok_or_else(|| refused(&ExtensionError::NoSuch(name.to_owned())))
}

/// What every session has is the owner's to change.
async fn range(desk: &Desk, peer: &Peer, session: Option<SessionId>) -> Result<(Range, Option<SessionView>), Refusal> {
    let Some(session) = session else {
        return match peer.principal == Principal::owner() {
            true => Ok((Range::Everywhere, None)),
            false => Err(Refusal::BadParams("only the owner changes what every session has".to_owned())),
        };
    };
    let view = desk.hub.view_for(session, &peer.principal).await.map_err(|error| refusal(session, &error))?;
    Ok((Range::Session(session), Some(view)))
}

fn refused(error: &ExtensionError) -> Refusal {
    match error {
        ExtensionError::Refused(_) | ExtensionError::NoSuch(_) => Refusal::BadParams(error.to_string()),
        ExtensionError::Program => Refusal::Forbidden("server.allow_remote_commands".to_owned()),
        ExtensionError::Store(error) => unavailable(error),
    }
}
