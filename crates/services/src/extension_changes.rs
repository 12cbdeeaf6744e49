//! MCP servers added and taken away while the server runs, for every door that has the notion.

use gander_domain::caller::Caller;
use gander_domain::{ServiceError, SessionId, SessionView};
use gander_mcp::Spec;

use crate::Services;
use crate::errors::{denied, refusal, unavailable};
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
pub fn may_start(desk: &Services, caller: &Caller) -> bool {
    caller.may_name_program(desk.remote_commands).is_ok()
}

/// Adds a server to a session of this client's, or to all.
pub async fn add(
    desk: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
    entry: Entry,
) -> Result<(), ServiceError> {
    let (range, view) = range(desk, caller, session).await?;
    let rights = if may_start(desk, caller) { Rights::Programs } else { Rights::Addresses };
    desk.extensions.add(range, name, entry, rights).await.map_err(|error| refused(&error))?;
    // It starts at once, also where the session had none before.
    view.iter().for_each(|view| desk.extensions.bring(view, Vec::new()));
    Ok(())
}

/// Uses a server that is known in a session of this client's, or in all.
pub async fn restore(
    desk: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
) -> Result<(), ServiceError> {
    let (range, view) = range(desk, caller, session).await?;
    desk.extensions.restore(range, name).await.map_err(|error| refused(&error))?;
    view.iter().for_each(|view| desk.extensions.bring(view, Vec::new()));
    Ok(())
}

/// What is known for a session of this client's, or for all: also what is not used there.
pub async fn known(desk: &Services, caller: &Caller, session: Option<SessionId>) -> Result<Vec<Spec>, ServiceError> {
    let (_, view) = range(desk, caller, session).await?;
    let Some(view) = view else { return Ok(desk.extensions.switches().into_iter().map(|(spec, _)| spec).collect()) };
    let mut known = desk.extensions.specs(&view);
    known.extend(desk.extensions.everywhere());
    Ok(known)
}

/// This entry with the secrets of the server that it changes. What belongs to the owner is handed on by the owner alone.
pub async fn keeping(
    desk: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
    entry: Entry,
) -> Result<Entry, ServiceError> {
    let is_owner = caller.is_owner();
    let before = match session {
        Some(session) if !is_owner => {
            range(desk, caller, Some(session)).await?;
            desk.extensions.own(session, &caller.principal)
        }
        Some(_) | None => known(desk, caller, session).await?,
    };
    Ok(desk.extensions.keeping(entry, before.iter().find(|spec| spec.name == name)))
}

/// Takes a server away from a session of this client's, or from all.
pub async fn remove(
    desk: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
) -> Result<(), ServiceError> {
    let (range, view) = range(desk, caller, session).await?;
    desk.extensions.remove(range, view.as_ref(), name).await.map_err(|error| refused(&error))
}

/// Uses a server in every session, or no longer; it is kept either way.
pub async fn switch(desk: &Services, caller: &Caller, name: &str, switch: Switch) -> Result<(), ServiceError> {
    range(desk, caller, None).await?;
    let switched = match switch {
        Switch::On => desk.extensions.switch_on(name).await,
        Switch::Off => desk.extensions.switch_off(name).await,
    };
    switched.map_err(|error| refused(&error))
}

/// Begins a login at a server for this client; the answer is what its person opens.
pub async fn login(
    desk: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
) -> Result<String, ServiceError> {
    let spec = named(desk, caller, session, name).await?;
    desk.extensions.login(&caller.principal, &spec).await.map_err(|error| refused(&error))
}

/// Until the login is over.
pub async fn logged_in(desk: &Services, caller: &Caller, name: &str) -> Result<(), ServiceError> {
    desk.extensions.logged_in(&caller.principal, name).await.map_err(|error| refused(&error))
}

/// Forgets what a login yielded.
pub async fn log_out(
    desk: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
) -> Result<(), ServiceError> {
    let spec = named(desk, caller, session, name).await?;
    desk.extensions.log_out(&caller.principal, &spec).map_err(|error| refused(&error))
}

async fn named(desk: &Services, caller: &Caller, session: Option<SessionId>, name: &str) -> Result<Spec, ServiceError> {
    let specs = match session {
        None => desk.extensions.everywhere(),
        Some(session) => {
            let view = desk.hub.view_for(session, &caller.principal).await.map_err(|error| refusal(session, &error))?;
            desk.extensions.specs(&view)
        }
    };
    let found = specs.into_iter().find(|spec| spec.name == name);
    found.ok_or_else(|| refused(&ExtensionError::NoSuch(name.to_owned())))
}

/// What every session has is the owner's to change.
async fn range(
    desk: &Services,
    caller: &Caller,
    session: Option<SessionId>,
) -> Result<(Range, Option<SessionView>), ServiceError> {
    let Some(session) = session else {
        caller.may_change_server_settings().map_err(denied)?;
        return Ok((Range::Everywhere, None));
    };
    let view = desk.hub.view_for(session, &caller.principal).await.map_err(|error| refusal(session, &error))?;
    Ok((Range::Session(session), Some(view)))
}

fn refused(error: &ExtensionError) -> ServiceError {
    match error {
        ExtensionError::Refused(_) | ExtensionError::NoSuch(_) => ServiceError::BadParams(error.to_string()),
        ExtensionError::Program => ServiceError::Forbidden("server.allow_remote_commands".to_owned()),
        ExtensionError::Store(error) => unavailable(error),
    }
}
