//! Sessions made, found again and forked for a client.

use std::sync::Arc;

use gander_domain::{Birth, Command, Context, ResetReason, Seq, SessionId, SessionView};
use gander_wire::acp::{Refusal, SessionParams};

use super::intents::{refusal, unavailable};
use super::mcp::specs;
use crate::app::Peer;
use crate::clock::SystemIds;
use crate::door::{Desk, goose};
use crate::hub::Ack;
use crate::log::{Alias, Form, read_all};

/// Where a session is followed from.
#[derive(Clone, Copy)]
pub(super) enum Place {
    First,
    Head,
}

/// The session that an introduction brings along. Under a reserved id it is made once, and found ever after.
pub(super) async fn first(
    desk: Arc<Desk>,
    peer: Peer,
    reserved: Option<SessionId>,
) -> Result<(Box<SessionView>, Seq), Refusal> {
    let Some(session) = reserved else { return create(&desk, &peer, SessionParams::default()).await };
    match open(Arc::clone(&desk), peer.clone(), session, None, Place::Head).await {
        Err(Refusal::UnknownSession(_)) => {
            let birth = birth(&desk, &peer, session, SessionParams::default())?;
            make(&desk, birth, Vec::new()).await
        }
        found => found,
    }
}

pub(super) async fn create(
    desk: &Desk,
    peer: &Peer,
    params: SessionParams,
) -> Result<(Box<SessionView>, Seq), Refusal> {
    let session = SessionId::make(&mut SystemIds);
    let servers = specs(desk, peer, &params.mcp_servers)?;
    let alias = params.reuse.as_deref().map(|name| workspace_name(peer, name));
    let reused = match &alias {
        Some(alias) => reused(desk, peer, alias).await?,
        None => None,
    };
    let aliases = alias.filter(|_| reused.is_none()).into_iter().collect();
    let birth = match reused {
        Some(old) => Birth {
            session,
            owner: peer.principal.clone(),
            workspace: old.workspace,
            folders: old.folders,
            settings: old.settings,
            parent: None,
            meta: params.meta,
        },
        None => {
            let mut birth = birth(desk, peer, session, params)?;
            goose::preset(desk, peer, &mut birth.settings).await?;
            birth
        }
    };
    let (view, head) = make(desk, birth, aliases).await?;
    desk.extensions.bring(&view, servers);
    Ok((view, head))
}

async fn make(desk: &Desk, birth: Birth, aliases: Vec<Alias>) -> Result<(Box<SessionView>, Seq), Refusal> {
    let session = birth.session;
    let view = desk.hub.create(birth, aliases).await.map_err(|error| refusal(session, &error))?;
    let head = view.head;
    Ok((Box::new(view), head))
}

fn birth(desk: &Desk, peer: &Peer, session: SessionId, params: SessionParams) -> Result<Birth, Refusal> {
    let workspace = workspace(desk, session, params.cwd.as_deref())?;
    let folders = folders(desk, &params.folders)?;
    let mut settings = desk.settings.clone();
    settings.model = peer.model.clone().or(settings.model);
    let owner = peer.principal.clone();
    Ok(Birth { session, owner, workspace, folders, settings, parent: None, meta: params.meta })
}

fn workspace_name(peer: &Peer, name: &str) -> Alias {
    let (door, namespace) = ("acp".to_owned(), "workspace".to_owned());
    Alias { principal: peer.principal.clone(), door, namespace, text: name.to_owned() }
}

/// The session whose workspace a client wants to go on in, if it is there and the client's own.
async fn reused(desk: &Desk, peer: &Peer, alias: &Alias) -> Result<Option<SessionView>, Refusal> {
    let named = desk.hub.store().resolve_alias(alias).await.map_err(|error| unavailable(&error))?;
    let Some(session) = named.or_else(|| alias.text.parse().ok()) else { return Ok(None) };
    match desk.hub.view_for(session, &peer.principal).await.map_err(|error| refusal(session, &error)) {
        Ok(view) => Ok(Some(view)),
        Err(Refusal::UnknownSession(_)) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// A new session with the messages of this one; a turn that is under way is not among them.
pub(super) async fn fork(
    desk: &Desk,
    peer: &Peer,
    session: SessionId,
    params: SessionParams,
) -> Result<(Box<SessionView>, Seq), Refusal> {
    let old = desk.hub.view_for(session, &peer.principal).await.map_err(|error| refusal(session, &error))?;
    let servers = specs(desk, peer, &params.mcp_servers)?;
    let log = read_all(&**desk.hub.store(), session, Form::Joined).await.map_err(|error| unavailable(&error))?;
    let end = old.run.as_ref().map_or(old.head.next(), |run| run.from);
    let context = Context::replay(log.iter().take_while(|entry| entry.seq < end));
    let messages = context.map(|context| context.messages).unwrap_or_default();
    let fork = SessionId::make(&mut SystemIds);
    let asked = SessionParams { cwd: Some(params.cwd.unwrap_or(old.workspace)), ..params };
    let birth = Birth { parent: Some(session), settings: old.settings, ..birth(desk, peer, fork, asked)? };
    desk.hub.create(birth, Vec::new()).await.map_err(|error| refusal(fork, &error))?;
    let replacement = messages.into_iter().map(Arc::unwrap_or_clone).collect();
    let history = Command::Reset { keep_to: Seq::ZERO, replacement, reason: ResetReason::Replaced };
    for command in std::iter::once(history).chain(old.title.map(|title| Command::SetTitle { title })) {
        desk.hub.command(fork, command, Ack::Synced).await.map_err(|error| refusal(fork, &error))?;
    }
    let view = desk.hub.view(fork).await.map_err(|error| refusal(fork, &error))?;
    desk.extensions.bring(&view, servers);
    let head = view.head;
    Ok((Box::new(view), head))
}

pub(super) async fn open(
    desk: Arc<Desk>,
    peer: Peer,
    session: SessionId,
    params: Option<SessionParams>,
    place: Place,
) -> Result<(Box<SessionView>, Seq), Refusal> {
    let view = desk.hub.view_for(session, &peer.principal).await.map_err(|error| refusal(session, &error))?;
    if let Some(params) = params {
        let servers = specs(&desk, &peer, &params.mcp_servers)?;
        params.cwd.map_or(Ok(()), |cwd| workspace(&desk, session, Some(&cwd)).map(drop))?;
        desk.extensions.bring(&view, servers);
    }
    // The view may be ahead of what is stored and can be read. The log's own end is where live begins.
    let head = desk.hub.store().head(session).await.map_err(|error| refusal(session, &error.into()))?;
    let view = if view.head > head {
        desk.hub.view_at(session, head).await.map_err(|error| refusal(session, &error))?
    } else {
        view
    };
    let after = match place {
        Place::First => Seq::ZERO,
        Place::Head => view.head,
    };
    Ok((Box::new(view), after))
}

fn workspace(desk: &Desk, session: SessionId, cwd: Option<&str>) -> Result<String, Refusal> {
    let found = match cwd {
        Some(cwd) => desk.workspaces.named(cwd),
        None => desk.workspaces.private(session),
    };
    found.map_err(|error| Refusal::BadWorkspace(error.to_string()))
}

fn folders(desk: &Desk, folders: &[String]) -> Result<Vec<String>, Refusal> {
    let named = folders.iter().map(|folder| desk.workspaces.named(folder));
    named.collect::<Result<_, _>>().map_err(|error| Refusal::BadWorkspace(error.to_string()))
}
