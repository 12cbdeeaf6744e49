//! Sessions made, found again and forked for a client.

use std::sync::Arc;

use gander_domain::{Command, RunOrigin, Seq, ServiceError, SessionId, SessionView, SettingsPatch};
use gander_runtime::hub::Ack;
use gander_services::errors::service_error_from_hub;
use gander_services::sessions::{Fork, NewSession, SessionFolder};
use gander_services::{Services, permission_changes};
use gander_store::{Alias, SessionSummary};
use gander_wire::acp::SessionParams;

use super::mcp_servers::mcp_server_specs;
use crate::ClientPeer;
use crate::protocols::goose;

/// Where a session is followed from.
#[derive(Clone, Copy)]
pub(super) enum FollowFrom {
    First,
    Head,
}

/// The session that an introduction brings along. Under a reserved id it is made once, and found ever after.
pub(super) async fn initial_acp_session(
    services: Arc<Services>,
    peer: ClientPeer,
    reserved: Option<SessionId>,
) -> Result<(Box<SessionView>, Seq), ServiceError> {
    let Some(session) = reserved else { return create_acp_session(&services, &peer, SessionParams::default()).await };
    match open_acp_session(Arc::clone(&services), peer.clone(), session, None, FollowFrom::Head).await {
        Err(ServiceError::UnknownSession(_)) => {
            let new = NewSession { id: session, ..new_acp_session(&services, &peer, SessionParams::default())? };
            Ok(session_from_head(services.sessions.create(&peer.caller, new).await?))
        }
        found => found,
    }
}

pub(super) async fn create_acp_session(
    services: &Services,
    peer: &ClientPeer,
    params: SessionParams,
) -> Result<(Box<SessionView>, Seq), ServiceError> {
    let servers = mcp_server_specs(services, peer, &params.mcp_servers)?;
    let alias = params.reuse.as_deref().map(|name| session_workspace_alias(peer, name));
    let reused = match &alias {
        Some(alias) => find_reused_acp_session(services, peer, alias).await?,
        None => None,
    };
    let view = match reused {
        Some(old) => start_acp_session_over(services, peer, &old, &params).await?,
        None => {
            let mut new = new_acp_session(services, peer, params)?;
            goose::apply_goose_config(services, peer, &mut new.settings).await?;
            let id = services.sessions.new_id().await?;
            let new = NewSession { id, aliases: alias.into_iter().collect(), ..new };
            services.sessions.create(&peer.caller, new).await?
        }
    };
    services.extensions.attach_client(&view, servers);
    Ok(session_from_head(view))
}

/// The client's own session of before, without what was said in it. It cannot move to other folders.
async fn start_acp_session_over(
    services: &Services,
    peer: &ClientPeer,
    old: &SessionView,
    params: &SessionParams,
) -> Result<SessionView, ServiceError> {
    let is_same = |one: &str, other: &str| services.workspaces.is_same_folder(one, other);
    if params.cwd.as_deref().is_some_and(|cwd| !is_same(cwd, &old.workspace)) {
        let advice = "the session that is reused works in another folder, leave cwd out or make a new session";
        return Err(ServiceError::BadWorkspace(format!("{advice}: {}", old.workspace)));
    }
    let is_known = |folder: &String| old.folders.iter().any(|known| is_same(folder, known));
    if let Some(folder) = params.folders.iter().find(|folder| !is_known(folder)) {
        let advice = "the session that is reused does not have this folder, make a new session";
        return Err(ServiceError::BadWorkspace(format!("{advice}: {folder}")));
    }
    let patch = match &params.agent {
        Some(agent) => services.agents.roster_in_folder(&old.workspace).patch_for_name(agent, &old.settings),
        None => Some(SettingsPatch::default()),
    };
    let patch = patch.ok_or_else(|| unknown_session_agent(services, params.agent.as_deref().unwrap_or_default()))?;
    let view = services.sessions.start_over(&peer.caller, old.session, acp_session_run_origin(peer)).await?;
    if patch == SettingsPatch::default() {
        return Ok(view);
    }
    let command = Command::Configure { patch };
    let configured = services.hub.execute_command(&peer.caller, old.session, command, Ack::Synced).await;
    configured.map_err(|error| service_error_from_hub(old.session, &error))?;
    Ok(services.sessions.stored_view(&peer.caller, old.session).await?)
}

fn unknown_session_agent(services: &Services, named: &str) -> ServiceError {
    let known: Vec<String> = services.agents.manifests().iter().map(|agent| agent.name.clone()).collect();
    let named = &named[..named.floor_char_boundary(64)];
    ServiceError::BadParams(format!("unknown agent '{named}', available: {}", known.join(", ")))
}

fn new_acp_session(services: &Services, peer: &ClientPeer, params: SessionParams) -> Result<NewSession, ServiceError> {
    let mut settings = services.default_session_settings();
    if let Some(agent) = &params.agent {
        settings = services
            .agents
            .settings_for_agent(agent, &settings)
            .ok_or_else(|| unknown_session_agent(services, agent))?;
    }
    settings.model = peer.model.clone().or(settings.model);
    if let Some(wanted) = peer.policy {
        permission_changes::choose_policy(services, &peer.caller, &mut settings, wanted);
    }
    let workspace = params.cwd.map(SessionFolder::Chosen);
    let folders = params.folders.into_iter().map(SessionFolder::Chosen).collect();
    Ok(NewSession { workspace, folders, meta: params.meta, ..NewSession::new(settings) })
}

fn session_from_head(view: SessionView) -> (Box<SessionView>, Seq) {
    let head = view.head;
    (Box::new(view), head)
}

fn session_workspace_alias(peer: &ClientPeer, name: &str) -> Alias {
    let (door, namespace) = ("acp".to_owned(), "workspace".to_owned());
    Alias { principal: peer.caller.principal.clone(), door, namespace, text: name.to_owned() }
}

/// The session whose workspace a client wants to go on in, if it is there and the client's own.
async fn find_reused_acp_session(
    services: &Services,
    peer: &ClientPeer,
    alias: &Alias,
) -> Result<Option<SessionView>, ServiceError> {
    let named = services.sessions.find_by_alias(alias).await?;
    let Some(session) = named.or_else(|| alias.text.parse().ok()) else { return Ok(None) };
    match services.sessions.view(&peer.caller, session).await {
        Ok(view) => Ok(Some(view)),
        Err(error) if error.is_unknown() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A new session with the messages of this one; a turn that is under way is not among them.
pub(super) async fn fork_acp_session(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
    params: SessionParams,
) -> Result<(Box<SessionView>, Seq), ServiceError> {
    let source = services.sessions.view(&peer.caller, session).await?;
    services.require_load(&source)?;
    let servers = mcp_server_specs(services, peer, &params.mcp_servers)?;
    let messages = services.sessions.messages_before_run(&source).await?;
    let other = params.cwd.filter(|cwd| !services.workspaces.is_same_folder(cwd, &source.workspace));
    let inherited = || SessionFolder::Inherited(source.workspace.clone());
    let workspace = Some(other.map_or_else(inherited, SessionFolder::Chosen));
    let folders = params.folders.into_iter().map(SessionFolder::Chosen).collect();
    let fork = Fork { workspace, folders, messages, title: source.title.clone(), meta: params.meta };
    let view = services.sessions.fork(&peer.caller, &source, fork).await?;
    services.extensions.attach_client(&view, servers);
    Ok(session_from_head(view))
}

pub(super) async fn open_acp_session(
    services: Arc<Services>,
    peer: ClientPeer,
    session: SessionId,
    params: Option<SessionParams>,
    from: FollowFrom,
) -> Result<(Box<SessionView>, Seq), ServiceError> {
    let view = services.sessions.view(&peer.caller, session).await?;
    services.require_load(&view)?;
    if let Some(params) = params {
        let servers = mcp_server_specs(&services, &peer, &params.mcp_servers)?;
        if let Some(cwd) = params.cwd.filter(|cwd| !services.workspaces.is_same_folder(cwd, &view.workspace)) {
            services.sessions.choose_folder(&peer.caller, &cwd).await?;
        }
        services.extensions.attach_client(&view, servers);
    }
    let view = services.sessions.as_stored(view).await?;
    let after = match from {
        FollowFrom::First => Seq::ZERO,
        FollowFrom::Head => view.head,
    };
    Ok((Box::new(view), after))
}

/// Who asks, by this protocol.
pub(super) fn acp_session_run_origin(peer: &ClientPeer) -> RunOrigin {
    RunOrigin { by: peer.caller.principal.clone(), door: "acp".to_owned() }
}

/// Another's session is as unknown as none.
pub(super) async fn find_own_acp_session(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
) -> Result<SessionSummary, ServiceError> {
    Ok(services.sessions.find(&peer.caller, session).await?)
}
