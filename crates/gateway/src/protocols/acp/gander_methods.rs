//! Methods of our own (`_gander/…`), for our own command line. Local clients only.

use std::path::PathBuf;

use gander_domain::caller::Transport;
use gander_domain::{Command, ServiceError, SessionId};
use gander_runtime::hub::Ack;
use gander_services::errors::{denied, refusal, unavailable};
use gander_services::extensions::Entry;
use gander_services::trust::TrustError;
use gander_services::{Control, ListenSecurity, Services, exchange, extension_changes as door};
use gander_store::clock::SystemIds;
use gander_tools::BuiltIn;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::intents::own;
use crate::Peer;

/// Carries out one of our own methods.
pub(super) async fn call(desk: &Services, peer: &Peer, method: &str, params: Value) -> Result<Value, ServiceError> {
    if peer.caller.transport != Transport::Local {
        return Err(ServiceError::UnknownMethod(method.to_owned()));
    }
    match method {
        "_gander/status" => Ok((desk.status)()),
        "_gander/session/export" => export(desk, peer, &params).await,
        "_gander/session/import" => import(desk, peer, params).await,
        "_gander/session/rename" => rename(desk, peer, params).await,
        "_gander/session/show" => show(desk, peer, &params).await,
        "_gander/extensions/list" => extensions(desk, peer, params).await,
        "_gander/extensions/add" => add_extension(desk, peer, params).await,
        "_gander/extensions/remove" => remove_extension(desk, peer, params).await,
        "_gander/extensions/switch" => switch_extension(desk, peer, params).await,
        "_gander/extensions/login" => log_in(desk, peer, params).await,
        "_gander/extensions/login/wait" => logged_in(desk, peer, params).await,
        "_gander/extensions/logout" => log_out(desk, peer, params).await,
        "_gander/grants/list" => grants(desk, peer).await,
        "_gander/grants/revoke" => revoke(desk, peer, params).await,
        "_gander/trust/list" => Ok(trusted(desk)),
        "_gander/trust/add" => trust(desk, peer, params).await,
        "_gander/trust/revoke" => distrust(desk, peer, params).await,
        "_gander/listen" => {
            let Listen { listen: address, security } = read(params)?;
            control(desk, peer, Control::Listen { address, security }).await
        }
        "_gander/unlisten" => control(desk, peer, Control::Unlisten).await,
        "_gander/drain" => control(desk, peer, Control::Drain).await,
        _ => Err(ServiceError::UnknownMethod(method.to_owned())),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: SessionId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rename {
    session_id: SessionId,
    title: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MaybeNamed {
    session_id: Option<SessionId>,
}

#[derive(Deserialize)]
struct Import {
    log: Value,
    #[serde(default)]
    cwd: Option<String>,
}

#[derive(Deserialize)]
struct Revoke {
    id: u64,
}

#[derive(Deserialize)]
struct Folder {
    folder: PathBuf,
}

#[derive(Deserialize)]
struct Listen {
    listen: Option<String>,
    #[serde(default)]
    security: Option<ListenSecurity>,
}

async fn export(desk: &Services, peer: &Peer, params: &Value) -> Result<Value, ServiceError> {
    let Named { session_id } = read(params.clone())?;
    own(desk, peer, session_id).await?;
    exchange::export(&**desk.hub.store(), session_id).await.map_err(|error| refusal(session_id, &error.into()))
}

async fn import(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let Import { log, cwd } = read(params)?;
    let session = SessionId::make(&mut SystemIds);
    let workspace = match cwd {
        Some(cwd) => desk.workspaces.choose(&desk.hub, &peer.caller, &cwd).await,
        None => desk.workspaces.private(session),
    };
    let workspace = workspace.map_err(|error| ServiceError::BadWorkspace(error.to_string()))?;
    let (owner, policy) = (peer.caller.principal.clone(), desk.settings.policy);
    let target = exchange::ImportTarget { session, owner, workspace, policy };
    let reset = exchange::import(&desk.hub, &target, log).await.map_err(|error| match error {
        exchange::ImportError::Refused(text) => ServiceError::BadParams(text),
        exchange::ImportError::Store(error) => unavailable(&error),
    })?;
    Ok(json!({ "sessionId": session, "workspace": target.workspace, "reset": reset }))
}

async fn rename(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let Rename { session_id, title } = read(params)?;
    let title = title.trim().to_owned();
    if title.is_empty() || title.chars().count() > 200 || title.chars().any(char::is_control) {
        return Err(ServiceError::BadParams("title must have 1 to 200 characters on one line".to_owned()));
    }
    own(desk, peer, session_id).await?;
    let renamed =
        desk.hub.command(&peer.caller, session_id, Command::SetTitle { title: title.clone() }, Ack::Synced).await;
    renamed.map(|_| json!({ "title": title })).map_err(|error| refusal(session_id, &error))
}

async fn show(desk: &Services, peer: &Peer, params: &Value) -> Result<Value, ServiceError> {
    let Named { session_id } = read(params.clone())?;
    own(desk, peer, session_id).await?;
    let view = desk.hub.view(session_id).await.map_err(|error| refusal(session_id, &error))?;
    serde_json::to_value(view).map_err(|error| ServiceError::Internal(error.to_string()))
}

async fn extensions(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let MaybeNamed { session_id } = read(params)?;
    let on = match session_id {
        Some(session) => {
            let view =
                desk.hub.view_for(session, &peer.caller.principal).await.map_err(|error| refusal(session, &error))?;
            desk.extensions.built_ins(&view)
        }
        None => desk.extensions.built_ins_everywhere(),
    };
    let shown = |known: BuiltIn| {
        let state = if on.has(known) { "on" } else { "off" };
        json!({ "name": known.name(), "place": "built in", "state": state, "description": known.description() })
    };
    let ours = BuiltIn::ALL.map(shown).into_iter();
    let servers = desk.extensions.list(session_id).as_array().cloned().unwrap_or_default();
    Ok(json!({ "extensions": ours.chain(servers).collect::<Vec<_>>() }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extension {
    session_id: Option<SessionId>,
    name: String,
    #[serde(default)]
    entry: Entry,
}

async fn add_extension(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let Extension { session_id, name, entry } = read(params)?;
    door::add(desk, &peer.caller, session_id, &name, entry).await.map(|()| json!({}))
}

async fn remove_extension(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let Extension { session_id, name, .. } = read(params)?;
    door::remove(desk, &peer.caller, session_id, &name).await.map(|()| json!({}))
}

#[derive(Deserialize)]
struct Switched {
    name: String,
    on: bool,
}

async fn switch_extension(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let Switched { name, on } = read(params)?;
    let switch = if on { door::Switch::On } else { door::Switch::Off };
    door::switch(desk, &peer.caller, &name, switch).await.map(|()| json!({}))
}

async fn log_in(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let Extension { session_id, name, .. } = read(params)?;
    door::login(desk, &peer.caller, session_id, &name).await.map(|url| json!({ "url": url }))
}

async fn logged_in(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let Extension { name, .. } = read(params)?;
    door::logged_in(desk, &peer.caller, &name).await.map(|()| json!({}))
}

async fn log_out(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let Extension { session_id, name, .. } = read(params)?;
    door::log_out(desk, &peer.caller, session_id, &name).await.map(|()| json!({}))
}

async fn grants(desk: &Services, peer: &Peer) -> Result<Value, ServiceError> {
    let grants = desk.grants.list(&peer.caller.principal).await.map_err(|error| unavailable(&error))?;
    Ok(json!({ "grants": grants }))
}

async fn control(desk: &Services, peer: &Peer, control: Control) -> Result<Value, ServiceError> {
    peer.caller.may_change_server_settings().map_err(denied)?;
    (desk.control)(control).await.map_err(ServiceError::Unavailable)
}

async fn revoke(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    peer.caller.may_grant().map_err(denied)?;
    let Revoke { id } = read(params)?;
    match desk.grants.revoke(&peer.caller.principal, id).await.map_err(|error| unavailable(&error))? {
        true => Ok(json!({})),
        false => Err(ServiceError::BadParams(format!("no such grant: {id}"))),
    }
}

fn trusted(desk: &Services) -> Value {
    let folders = desk.trust.list().into_iter().map(|(folder, since)| json!({ "folder": folder, "since": since }));
    json!({ "folders": folders.collect::<Vec<_>>() })
}

async fn trust(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    peer.caller.may_trust().map_err(denied)?;
    let Folder { folder } = read(params)?;
    match desk.trust.trust(&folder).await {
        Ok(folder) => Ok(json!({ "folder": folder })),
        Err(TrustError::Store(error)) => Err(unavailable(&error)),
        Err(error @ TrustError::NoFolder { .. }) => Err(ServiceError::BadParams(error.to_string())),
    }
}

async fn distrust(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    peer.caller.may_trust().map_err(denied)?;
    let Folder { folder } = read(params)?;
    match desk.trust.revoke(&folder).await.map_err(|error| unavailable(&error))? {
        true => Ok(json!({})),
        false => Err(ServiceError::BadParams(format!("not trusted: {}", folder.display()))),
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, ServiceError> {
    serde_json::from_value(params).map_err(|error| ServiceError::BadParams(error.to_string()))
}
