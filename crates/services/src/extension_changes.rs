//! MCP servers added and taken away while the server runs, for every door that has the notion.

use std::path::{Path, PathBuf};

use gander_domain::caller::Caller;
use gander_domain::{ServiceError, SessionId, SessionView};
use gander_mcp::{Spec, TriedServer};

use crate::Services;
use crate::errors::{service_error_from_denied, service_error_from_store};
use crate::extensions::{ExtensionEntry, ExtensionError, ExtensionScope, Rights, TrialNetwork};

/// Whether something known is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// True if this client may name programs to start.
pub fn may_name_program(services: &Services, caller: &Caller) -> bool {
    caller.may_name_program(services.remote_commands).is_ok()
}

/// Adds a server to a session of this client's, or to all.
pub async fn add_extension(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
    entry: ExtensionEntry,
) -> Result<(), ServiceError> {
    let (scope, view) = authorized_extension_scope(services, caller, session).await?;
    let rights = if may_name_program(services, caller) { Rights::Programs } else { Rights::Addresses };
    services.extensions.add(scope, name, entry, rights).await.map_err(|error| extension_change_error(&error))?;
    // It starts at once, also where the session had none before.
    view.iter().for_each(|view| services.extensions.attach_session(view, Vec::new()));
    Ok(())
}

/// Starts a server once in a folder that the caller may use, and says what came of it.
pub async fn try_extension(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
    folder: &str,
    network: TrialNetwork,
) -> Result<TriedServer, ServiceError> {
    authorized_extension_scope(services, caller, session).await?;
    let spec = find_extension_to_change(services, caller, session, name).await?;
    let chosen = services.workspaces.choose_workspace(&services.hub, caller, folder).await;
    let folder = chosen.map_err(|why| ServiceError::BadParams(format!("cwd {why}")))?;
    let tried = services.extensions.try_server(&caller.principal, spec, Path::new(&folder), network).await;
    tried.ok_or_else(|| extension_change_error(&ExtensionError::NoSuch(name.to_owned())))
}

/// What is known of one server: how it is reached, whether it is used, and where its program keeps things.
pub async fn show_extension(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
) -> Result<(Spec, PathBuf), ServiceError> {
    let known = known_extensions(services, caller, session).await?;
    let spec = known.into_iter().find(|spec| spec.name == name);
    let spec = spec.ok_or_else(|| extension_change_error(&ExtensionError::NoSuch(name.to_owned())))?;
    Ok((spec, services.extensions.home_of(&caller.principal, name)))
}

/// Uses a server that is known in a session of this client's, or in all.
pub async fn restore_extension(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
) -> Result<(), ServiceError> {
    let (scope, view) = authorized_extension_scope(services, caller, session).await?;
    services.extensions.restore(scope, name).await.map_err(|error| extension_change_error(&error))?;
    view.iter().for_each(|view| services.extensions.attach_session(view, Vec::new()));
    Ok(())
}

/// What is known for a session of this client's, or for all: also what is not used there.
pub async fn known_extensions(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
) -> Result<Vec<Spec>, ServiceError> {
    let (_, view) = authorized_extension_scope(services, caller, session).await?;
    let Some(view) = view else {
        return Ok(services.extensions.known_with_switch().into_iter().map(|(spec, _)| spec).collect());
    };
    let mut known = services.extensions.specs_for_session(&view);
    known.extend(services.extensions.global_specs());
    Ok(known)
}

/// This entry with the secrets of the server that it changes. What belongs to the owner is handed on by the owner alone.
pub async fn extension_with_hidden_values_kept(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
    entry: ExtensionEntry,
) -> Result<ExtensionEntry, ServiceError> {
    let is_owner = caller.is_owner();
    let before = match session {
        Some(session) if !is_owner => {
            authorized_extension_scope(services, caller, Some(session)).await?;
            services.extensions.session_specs(session, &caller.principal)
        }
        Some(_) | None => known_extensions(services, caller, session).await?,
    };
    Ok(services.extensions.with_hidden_values_kept(entry, before.iter().find(|spec| spec.name == name)))
}

/// Takes a server away from a session of this client's, or from all.
pub async fn remove_extension(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
) -> Result<(), ServiceError> {
    let (scope, view) = authorized_extension_scope(services, caller, session).await?;
    services.extensions.remove(scope, view.as_ref(), name).await.map_err(|error| extension_change_error(&error))
}

/// Uses a server in every session, or no longer; it is kept either way.
pub async fn switch_extension(
    services: &Services,
    caller: &Caller,
    name: &str,
    switch: Switch,
) -> Result<(), ServiceError> {
    authorized_extension_scope(services, caller, None).await?;
    let switched = match switch {
        Switch::On => services.extensions.switch_on(name).await,
        Switch::Off => services.extensions.switch_off(name).await,
    };
    switched.map_err(|error| extension_change_error(&error))
}

/// Begins a login at a server for this client; the answer is what its person opens.
pub async fn begin_extension_login(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
) -> Result<String, ServiceError> {
    let spec = find_extension_to_change(services, caller, session, name).await?;
    services.extensions.begin_login(&caller.principal, &spec).await.map_err(|error| extension_change_error(&error))
}

/// Until the login is over.
pub async fn wait_for_extension_login(services: &Services, caller: &Caller, name: &str) -> Result<(), ServiceError> {
    services.extensions.wait_for_login(&caller.principal, name).await.map_err(|error| extension_change_error(&error))
}

/// Forgets what a login yielded.
pub async fn log_out_of_extension(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
) -> Result<(), ServiceError> {
    let spec = find_extension_to_change(services, caller, session, name).await?;
    services.extensions.log_out(&caller.principal, &spec).await.map_err(|error| extension_change_error(&error))
}

async fn find_extension_to_change(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
    name: &str,
) -> Result<Spec, ServiceError> {
    let specs = match session {
        None => services.extensions.global_specs(),
        Some(session) => {
            let view = services.sessions.view(caller, session).await?;
            services.extensions.specs_for_session(&view)
        }
    };
    let found = specs.into_iter().find(|spec| spec.name == name);
    found.ok_or_else(|| extension_change_error(&ExtensionError::NoSuch(name.to_owned())))
}

/// What every session has is the owner's to change.
async fn authorized_extension_scope(
    services: &Services,
    caller: &Caller,
    session: Option<SessionId>,
) -> Result<(ExtensionScope, Option<SessionView>), ServiceError> {
    let Some(session) = session else {
        caller.may_change_server_settings().map_err(service_error_from_denied)?;
        return Ok((ExtensionScope::Everywhere, None));
    };
    let view = services.sessions.view(caller, session).await?;
    Ok((ExtensionScope::Session(session), Some(view)))
}

fn extension_change_error(error: &ExtensionError) -> ServiceError {
    match error {
        ExtensionError::Refused(_) | ExtensionError::NoSuch(_) => ServiceError::BadParams(error.to_string()),
        ExtensionError::Program => ServiceError::Forbidden("server.allow_remote_commands".to_owned()),
        ExtensionError::Store(error) => service_error_from_store(error),
    }
}
