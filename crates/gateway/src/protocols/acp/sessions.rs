//! Sessions made, found again and forked for a client.

use std::sync::Arc;

use gander_domain::{Command, Context, ResetReason, Seq, ServiceError, SessionId, SessionInit, SessionView};
use gander_runtime::hub::Ack;
use gander_services::Services;
use gander_services::errors::{refusal, unavailable};
use gander_store::clock::SystemIds;
use gander_store::{Alias, DeltaForm, SessionSummary, read_all};
use gander_wire::acp::SessionParams;

use super::mcp_servers::server_specs;
use crate::ClientPeer;
use crate::protocols::goose;

/// Where a session is followed from.
#[derive(Clone, Copy)]
pub(super) enum FollowFrom {
    First,
    Head,
}

/// The session that an introduction brings along. Under a reserved id it is made once, and found ever after.
pub(super) async fn initial_session(
    services: Arc<Services>,
    peer: ClientPeer,
    reserved: Option<SessionId>,
) -> Result<(Box<SessionView>, Seq), ServiceError> {
    let Some(session) = reserved else { return create_session(&services, &peer, SessionParams::default()).await };
    match open_session(Arc::clone(&services), peer.clone(), session, None, FollowFrom::Head).await {
        Err(ServiceError::UnknownSession(_)) => {
            let init = session_init(&services, &peer, session, SessionParams::default()).await?;
            store_session(&services, &peer, init, Vec::new()).await
        }
        found => found,
    }
}

pub(super) async fn create_session(
    services: &Services,
    peer: &ClientPeer,
    params: SessionParams,
) -> Result<(Box<SessionView>, Seq), ServiceError> {
    let session = SessionId::make(&mut SystemIds);
    let servers = server_specs(services, peer, &params.mcp_servers)?;
    let alias = params.reuse.as_deref().map(|name| workspace_alias(peer, name));
    let reused = match &alias {
        Some(alias) => find_reused_session(services, peer, alias).await?,
        None => None,
    };
    let aliases = alias.filter(|_| reused.is_none()).into_iter().collect();
    let init = match reused {
        Some(old) => SessionInit {
            session,
            owner: peer.caller.principal.clone(),
            workspace: old.workspace,
            folders: old.folders,
            settings: peer.caller.inherited_settings(services.settings.policy, old.settings),
            parent: None,
            meta: params.meta,
        },
        None => {
            let mut init = session_init(services, peer, session, params).await?;
            goose::apply_saved_settings(services, peer, &mut init.settings).await?;
            init
        }
    };
    let (view, head) = store_session(services, peer, init, aliases).await?;
    services.extensions.attach(&view, servers);
    Ok((view, head))
}

async fn store_session(
    services: &Services,
    peer: &ClientPeer,
    init: SessionInit,
    aliases: Vec<Alias>,
) -> Result<(Box<SessionView>, Seq), ServiceError> {
    let session = init.session;
    let view = services.hub.create(&peer.caller, init, aliases).await.map_err(|error| refusal(session, &error))?;
    let head = view.head;
    Ok((Box::new(view), head))
}

async fn session_init(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
    params: SessionParams,
) -> Result<SessionInit, ServiceError> {
    let workspace = match params.cwd.as_deref() {
        Some(cwd) => chosen_folder(services, peer, cwd).await?,
        None => scratch_folder(services, session)?,
    };
    let mut folders = Vec::with_capacity(params.folders.len());
    for folder in &params.folders {
        folders.push(chosen_folder(services, peer, folder).await?);
    }
    let mut settings = services.settings.clone();
    settings.model = peer.model.clone().or(settings.model);
    let owner = peer.caller.principal.clone();
    Ok(SessionInit { session, owner, workspace, folders, settings, parent: None, meta: params.meta })
}

fn workspace_alias(peer: &ClientPeer, name: &str) -> Alias {
    let (door, namespace) = ("acp".to_owned(), "workspace".to_owned());
    Alias { principal: peer.caller.principal.clone(), door, namespace, text: name.to_owned() }
}

/// The session whose workspace a client wants to go on in, if it is there and the client's own.
async fn find_reused_session(
    services: &Services,
    peer: &ClientPeer,
    alias: &Alias,
) -> Result<Option<SessionView>, ServiceError> {
    let named = services.hub.store().resolve_alias(alias).await.map_err(|error| unavailable(&error))?;
    let Some(session) = named.or_else(|| alias.text.parse().ok()) else { return Ok(None) };
    match services.hub.view_for(session, &peer.caller.principal).await.map_err(|error| refusal(session, &error)) {
        Ok(view) => Ok(Some(view)),
        Err(ServiceError::UnknownSession(_)) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// A new session with the messages of this one; a turn that is under way is not among them.
pub(super) async fn fork_session(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
    params: SessionParams,
) -> Result<(Box<SessionView>, Seq), ServiceError> {
    let old = services.hub.view_for(session, &peer.caller.principal).await.map_err(|error| refusal(session, &error))?;
    let servers = server_specs(services, peer, &params.mcp_servers)?;
    let log =
        read_all(&**services.hub.store(), session, DeltaForm::Joined).await.map_err(|error| unavailable(&error))?;
    let end = old.run.as_ref().map_or(old.head.next(), |run| run.from);
    let context = Context::replay(log.iter().take_while(|entry| entry.seq < end));
    let messages = context.map(|context| context.messages).unwrap_or_default();
    let fork = SessionId::make(&mut SystemIds);
    // Whoever has the session has its folder too, however it was chosen.
    let inherited = params.cwd.as_deref().is_none_or(|cwd| services.workspaces.is_same_folder(cwd, &old.workspace));
    let asked = SessionParams { cwd: params.cwd.filter(|_| !inherited), ..params };
    let settings = peer.caller.inherited_settings(services.settings.policy, old.settings);
    let mut init = SessionInit { parent: Some(session), settings, ..session_init(services, peer, fork, asked).await? };
    if inherited {
        init.workspace = old.workspace;
    }
    services.hub.create(&peer.caller, init, Vec::new()).await.map_err(|error| refusal(fork, &error))?;
    let replacement = messages.into_iter().map(Arc::unwrap_or_clone).collect();
    let history = Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced };
    for command in std::iter::once(history).chain(old.title.map(|title| Command::SetTitle { title })) {
        services.hub.command(&peer.caller, fork, command, Ack::Synced).await.map_err(|error| refusal(fork, &error))?;
    }
    let view = services.hub.view(fork).await.map_err(|error| refusal(fork, &error))?;
    services.extensions.attach(&view, servers);
    let head = view.head;
    Ok((Box::new(view), head))
}

pub(super) async fn open_session(
    services: Arc<Services>,
    peer: ClientPeer,
    session: SessionId,
    params: Option<SessionParams>,
    place: FollowFrom,
) -> Result<(Box<SessionView>, Seq), ServiceError> {
    let view =
        services.hub.view_for(session, &peer.caller.principal).await.map_err(|error| refusal(session, &error))?;
    if let Some(params) = params {
        let servers = server_specs(&services, &peer, &params.mcp_servers)?;
        if let Some(cwd) = params.cwd.filter(|cwd| !services.workspaces.is_same_folder(cwd, &view.workspace)) {
            chosen_folder(&services, &peer, &cwd).await?;
        }
        services.extensions.attach(&view, servers);
    }
    // The view may be ahead of what is stored and can be read. The log's own end is where live begins.
    let head = services.hub.store().head(session).await.map_err(|error| refusal(session, &error.into()))?;
    let view = if view.head > head {
        services.hub.view_at(session, head).await.map_err(|error| refusal(session, &error))?
    } else {
        view
    };
    let after = match place {
        FollowFrom::First => Seq::ZERO,
        FollowFrom::Head => view.head,
    };
    Ok((Box::new(view), after))
}

async fn chosen_folder(services: &Services, peer: &ClientPeer, folder: &str) -> Result<String, ServiceError> {
    let chosen = services.workspaces.choose(&services.hub, &peer.caller, folder).await;
    chosen.map_err(|error| ServiceError::BadWorkspace(error.to_string()))
}

fn scratch_folder(services: &Services, session: SessionId) -> Result<String, ServiceError> {
    services.workspaces.create_scratch(session).map_err(|error| ServiceError::BadWorkspace(error.to_string()))
}

/// Another's session is as unknown as none.
pub(super) async fn find_own_session(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
) -> Result<SessionSummary, ServiceError> {
    let summary =
        services.hub.store().session_summary(session).await.map_err(|error| refusal(session, &error.into()))?;
    if summary.owner == peer.caller.principal { Ok(summary) } else { Err(ServiceError::UnknownSession(session)) }
}
