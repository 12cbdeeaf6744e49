//! Methods of our own (`_gander/…`), for our own command line. Local clients only.

use std::path::PathBuf;

use gander_agent::tools::BuiltIn;
use gander_domain::{Command, SessionId};
use gander_wire::acp::Refusal;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::intents::{own, refusal, unavailable};
use crate::app::Peer;
use crate::door::Desk;
use crate::door::extensions as door;
use crate::exchange;
use crate::extensions::Entry;
use crate::hub::Ack;
use crate::trust::TrustError;

/// Carries out one of our own methods.
pub(super) async fn call(desk: &Desk, peer: &Peer, method: &str, params: Value) -> Result<Value, Refusal> {
    if !peer.local {
        return Err(Refusal::UnknownMethod(method.to_owned()));
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
        "_gander/grants/list" => grants(desk).await,
        "_gander/grants/revoke" => revoke(desk, params).await,
        "_gander/trust/list" => Ok(trusted(desk)),
        "_gander/trust/add" => trust(desk, params).await,
        "_gander/trust/revoke" => distrust(desk, params).await,
        "_gander/listen" => (desk.control)(crate::door::Control::Listen(read::<Listen>(params)?.listen))
            .await
            .map_err(Refusal::Unavailable),
        "_gander/unlisten" => (desk.control)(crate::door::Control::Unlisten).await.map_err(Refusal::Unavailable),
        "_gander/drain" => (desk.control)(crate::door::Control::Drain).await.map_err(Refusal::Unavailable),
        _ => Err(Refusal::UnknownMethod(method.to_owned())),
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
}

async fn export(desk: &Desk, peer: &Peer, params: &Value) -> Result<Value, Refusal> {
    let Named { session_id } = read(params.clone())?;
    own(desk, peer, session_id).await?;
    exchange::export(&**desk.hub.store(), session_id).await.map_err(|error| refusal(session_id, &error.into()))
}

async fn import(desk: &Desk, peer: &Peer, params: Value) -> Result<Value, Refusal> {
    let Import { log } = read(params)?;
    let session = exchange::import(&desk.hub, &peer.principal, log).await;
    session.map(|session| json!({ "sessionId": session })).map_err(|error| match error {
        exchange::ImportError::Refused(text) => Refusal::BadParams(text),
        exchange::ImportError::Store(error) => unavailable(&error),
    })
}

async fn rename(desk: &Desk, peer: &Peer, params: Value) -> Result<Value, Refusal> {
    let Rename { session_id, title } = read(params)?;
    let title = title.trim().to_owned();
    if title.is_empty() || title.chars().count() > 200 || title.chars().any(char::is_control) {
        return Err(Refusal::BadParams("title must have 1 to 200 characters on one line".to_owned()));
    }
    own(desk, peer, session_id).await?;
    let renamed = desk.hub.command(session_id, Command::SetTitle { title: title.clone() }, Ack::Synced).await;
    renamed.map(|_| json!({ "title": title })).map_err(|error| refusal(session_id, &error))
}

async fn show(desk: &Desk, peer: &Peer, params: &Value) -> Result<Value, Refusal> {
    let Named { session_id } = read(params.clone())?;
    own(desk, peer, session_id).await?;
    let view = desk.hub.view(session_id).await.map_err(|error| refusal(session_id, &error))?;
    serde_json::to_value(view).map_err(|error| Refusal::Internal(error.to_string()))
}

async fn extensions(desk: &Desk, peer: &Peer, params: Value) -> Result<Value, Refusal> {
    let MaybeNamed { session_id } = read(params)?;
    let on = match session_id {
        Some(session) => {
            let view = desk.hub.view_for(session, &peer.principal).await.map_err(|error| refusal(session, &error))?;
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

async fn add_extension(desk: &Desk, peer: &Peer, params: Value) -> Result<Value, Refusal> {
    let Extension { session_id, name, entry } = read(params)?;
    door::add(desk, peer, session_id, &name, entry).await.map(|()| json!({}))
}

async fn remove_extension(desk: &Desk, peer: &Peer, params: Value) -> Result<Value, Refusal> {
    let Extension { session_id, name, .. } = read(params)?;
    door::remove(desk, peer, session_id, &name).await.map(|()| json!({}))
}

#[derive(Deserialize)]
struct Switched {
    name: String,
    on: bool,
}

async fn switch_extension(desk: &Desk, peer: &Peer, params: Value) -> Result<Value, Refusal> {
    let Switched { name, on } = read(params)?;
    let switch = if on { door::Switch::On } else { door::Switch::Off };
    door::switch(desk, peer, &name, switch).await.map(|()| json!({}))
}

async fn log_in(desk: &Desk, peer: &Peer, params: Value) -> Result<Value, Refusal> {
    let Extension { session_id, name, .. } = read(params)?;
    door::login(desk, peer, session_id, &name).await.map(|url| json!({ "url": url }))
}

async fn logged_in(desk: &Desk, peer: &Peer, params: Value) -> Result<Value, Refusal> {
    let Extension { name, .. } = read(params)?;
    door::logged_in(desk, peer, &name).await.map(|()| json!({}))
}

async fn log_out(desk: &Desk, peer: &Peer, params: Value) -> Result<Value, Refusal> {
    let Extension { session_id, name, .. } = read(params)?;
    door::log_out(desk, peer, session_id, &name).await.map(|()| json!({}))
}

async fn grants(desk: &Desk) -> Result<Value, Refusal> {
    let grants = desk.grants.list().await.map_err(|error| unavailable(&error))?;
    Ok(json!({ "grants": grants }))
}

async fn revoke(desk: &Desk, params: Value) -> Result<Value, Refusal> {
    let Revoke { id } = read(params)?;
    match desk.grants.revoke(id).await.map_err(|error| unavailable(&error))? {
        true => Ok(json!({})),
        false => Err(Refusal::BadParams(format!("no such grant: {id}"))),
    }
}

fn trusted(desk: &Desk) -> Value {
    let folders = desk.trust.list().into_iter().map(|(folder, since)| json!({ "folder": folder, "since": since }));
    json!({ "folders": folders.collect::<Vec<_>>() })
}

async fn trust(desk: &Desk, params: Value) -> Result<Value, Refusal> {
    let Folder { folder } = read(params)?;
    match desk.trust.trust(&folder).await {
        Ok(folder) => Ok(json!({ "folder": folder })),
        Err(TrustError::Store(error)) => Err(unavailable(&error)),
        Err(error @ TrustError::NoFolder { .. }) => Err(Refusal::BadParams(error.to_string())),
    }
}

async fn distrust(desk: &Desk, params: Value) -> Result<Value, Refusal> {
    let Folder { folder } = read(params)?;
    match desk.trust.revoke(&folder).await.map_err(|error| unavailable(&error))? {
        true => Ok(json!({})),
        false => Err(Refusal::BadParams(format!("not trusted: {}", folder.display()))),
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params).map_err(|error| Refusal::BadParams(error.to_string()))
}
