//! Methods of our own (`_gander/…`), for our own command line. Local clients only.

use std::path::PathBuf;

use gander_domain::caller::Transport;
use gander_domain::{Command, Principal, ServiceError, SessionId, Timestamp};
use gander_runtime::hub::Ack;
use gander_services::audit::AuditQuery;
use gander_services::errors::{service_error_from_hub, service_error_from_store};
use gander_services::extensions::{self, Confinement, ExtensionEntry, TrialNetwork};
use gander_services::permission_changes::{self, change_control_server};
use gander_services::sessions::{ImportedDocument, PruneMode, PrunedSession, SessionFolder};
use gander_services::{Control, ListenSecurity, Services, TicketReach, extension_changes as changes};
use gander_tools::BuiltIn;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::session_overview;
use super::sessions::find_own_acp_session;
use crate::ClientPeer;

/// Carries out one of our own methods.
pub(super) async fn handle_gander_method(
    services: &Services,
    peer: &ClientPeer,
    method: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    if peer.caller.transport != Transport::Local {
        return Err(ServiceError::UnknownMethod(method.to_owned()));
    }
    match method {
        "_gander/status" => Ok((services.status)()),
        "_gander/session/export" => handle_gander_export(services, peer, &params).await,
        "_gander/session/import" => handle_gander_import(services, peer, params).await,
        "_gander/session/rename" => handle_gander_rename(services, peer, params).await,
        "_gander/sessions/list" => {
            session_overview::list_session_overview(services, peer, read_gander_params(params)?).await
        }
        "_gander/sessions/prune" => handle_gander_prune(services, peer, params).await,
        "_gander/session/find" => {
            session_overview::find_session_by_prefix(services, peer, read_gander_params(params)?).await
        }
        "_gander/catalog" => Ok(session_overview::catalog_overview(services, read_gander_params(params)?).await),
        "_gander/session/show" => handle_gander_show_session(services, peer, &params).await,
        "_gander/extensions/list" => handle_gander_list_extensions(services, peer, params).await,
        "_gander/extensions/add" => handle_gander_add_extension(services, peer, params).await,
        "_gander/extensions/try" => handle_gander_try_extension(services, peer, params).await,
        "_gander/extensions/show" => handle_gander_show_extension(services, peer, params).await,
        "_gander/extensions/remove" => handle_gander_remove_extension(services, peer, params).await,
        "_gander/extensions/switch" => handle_gander_switch_extension(services, peer, params).await,
        "_gander/extensions/logout" => handle_gander_log_out(services, peer, params).await,
        "_gander/audit" => handle_gander_audit(services, peer, params).await,
        "_gander/grants/list" => handle_gander_list_grants(services, peer).await,
        "_gander/grants/revoke" => handle_gander_revoke_grant(services, peer, params).await,
        "_gander/trust/list" => Ok(handle_gander_list_trusted_folders(services)),
        "_gander/trust/add" => handle_gander_trust_folder(services, peer, params).await,
        "_gander/trust/revoke" => handle_gander_distrust_folder(services, peer, params).await,
        "_gander/listen" => {
            let Listen { listen: address, security } = read_gander_params(params)?;
            change_control_server(services, &peer.caller, Control::Listen { address, security }).await
        }
        "_gander/unlisten" => change_control_server(services, &peer.caller, Control::Unlisten).await,
        "_gander/ticket" => {
            let Ticket { listen: address, reach } = read_gander_params(params)?;
            change_control_server(services, &peer.caller, Control::Ticket { reach, address }).await
        }
        "_gander/browsers/revoke" => change_control_server(services, &peer.caller, Control::RevokeBrowsers).await,
        "_gander/server" => change_control_server(services, &peer.caller, Control::Describe).await,
        "_gander/settings" => change_control_server(services, &peer.caller, Control::Settings).await,
        "_gander/drain" => change_control_server(services, &peer.caller, Control::Drain).await,
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
#[serde(rename_all = "camelCase")]
struct Prune {
    /// Microseconds since 1970: whatever was used since then stays.
    before: Timestamp,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize)]
struct Import {
    log: Value,
    #[serde(default)]
    cwd: Option<String>,
}

#[derive(Deserialize)]
struct AuditParams {
    session: Option<SessionId>,
    /// Microseconds since 1970.
    since: Option<i64>,
    principal: Option<String>,
    limit: usize,
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

#[derive(Deserialize)]
struct Ticket {
    #[serde(default)]
    listen: Option<String>,
    #[serde(default)]
    reach: TicketReach,
}

async fn handle_gander_export(services: &Services, peer: &ClientPeer, params: &Value) -> Result<Value, ServiceError> {
    let Named { session_id } = read_gander_params(params.clone())?;
    Ok(services.sessions.export_document(&peer.caller, session_id).await?)
}

async fn handle_gander_prune(services: &Services, peer: &ClientPeer, params: Value) -> Result<Value, ServiceError> {
    let Prune { before, dry_run } = read_gander_params(params)?;
    let mode = if dry_run { PruneMode::DryRun } else { PruneMode::Delete };
    let pruned = services.sessions.prune(&peer.caller, before, mode).await?;
    let rows = pruned.iter().map(|PrunedSession { summary, bytes }| {
        json!({ "sessionId": summary.session, "title": summary.title, "updatedAt": summary.updated_at, "bytes": bytes })
    });
    Ok(json!({ "sessions": rows.collect::<Vec<_>>() }))
}

async fn handle_gander_import(services: &Services, peer: &ClientPeer, params: Value) -> Result<Value, ServiceError> {
    let Import { log, cwd } = read_gander_params(params)?;
    let imported = services.sessions.import_document(&peer.caller, cwd.map(SessionFolder::Chosen), log).await?;
    let ImportedDocument { session, workspace, ignored } = imported;
    Ok(json!({ "sessionId": session, "workspace": workspace, "reset": ignored }))
}

async fn handle_gander_rename(services: &Services, peer: &ClientPeer, params: Value) -> Result<Value, ServiceError> {
    let Rename { session_id, title } = read_gander_params(params)?;
    let title = title.trim().to_owned();
    if title.is_empty() || title.chars().count() > 200 || title.chars().any(char::is_control) {
        return Err(ServiceError::BadParams("title must have 1 to 200 characters on one line".to_owned()));
    }
    find_own_acp_session(services, peer, session_id).await?;
    let renamed = services
        .hub
        .execute_command(&peer.caller, session_id, Command::SetTitle { title: title.clone() }, Ack::Synced)
        .await;
    renamed.map(|_| json!({ "title": title })).map_err(|error| service_error_from_hub(session_id, &error))
}

async fn handle_gander_show_session(
    services: &Services,
    peer: &ClientPeer,
    params: &Value,
) -> Result<Value, ServiceError> {
    let Named { session_id } = read_gander_params(params.clone())?;
    let view = services.sessions.view(&peer.caller, session_id).await?;
    serde_json::to_value(view).map_err(|error| ServiceError::Internal(error.to_string()))
}

async fn handle_gander_list_extensions(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let MaybeNamed { session_id } = read_gander_params(params)?;
    let on = match session_id {
        Some(session) => {
            let view = services
                .hub
                .view_for(session, &peer.caller.principal)
                .await
                .map_err(|error| service_error_from_hub(session, &error))?;
            services.extensions.built_ins(&view)
        }
        None => services.extensions.built_ins_everywhere(),
    };
    let shown = |known: BuiltIn| {
        let state = if on.is_enabled(known) { "on" } else { "off" };
        json!({ "name": known.name(), "place": "built in", "state": state, "description": known.description() })
    };
    let servers = services.extensions.list_json(session_id).as_array().cloned().unwrap_or_default();
    // A server takes the place of built-in tools of the same name.
    let is_replaced = |known: &BuiltIn| servers.iter().any(|server| server["name"] == known.name());
    let ours: Vec<Value> = BuiltIn::ALL.into_iter().filter(|known| !is_replaced(known)).map(shown).collect();
    Ok(json!({ "extensions": ours.into_iter().chain(servers).collect::<Vec<_>>() }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExtensionParams {
    session_id: Option<SessionId>,
    name: String,
    #[serde(default)]
    entry: ExtensionEntry,
}

async fn handle_gander_add_extension(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let ExtensionParams { session_id, name, entry } = read_gander_params(params)?;
    changes::add_extension(services, &peer.caller, session_id, &name, entry).await.map(|()| json!({}))
}

async fn handle_gander_remove_extension(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let ExtensionParams { session_id, name, .. } = read_gander_params(params)?;
    changes::remove_extension(services, &peer.caller, session_id, &name).await.map(|()| json!({}))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trial {
    #[serde(default)]
    session_id: Option<SessionId>,
    name: String,
    cwd: String,
    /// A person lets its program use the network from now on.
    #[serde(default)]
    grant_network: bool,
}

async fn handle_gander_try_extension(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Trial { session_id, name, cwd, grant_network } = read_gander_params(params)?;
    let network = if grant_network { TrialNetwork::Granted } else { TrialNetwork::Unchanged };
    let tried = changes::try_extension(services, &peer.caller, session_id, &name, &cwd, network).await?;
    let mut answer = extensions::extension_status_json(tried.status);
    answer["wantsNetwork"] = tried.wants_network.into();
    answer["stderr"] = tried.stderr.into();
    Ok(answer)
}

async fn handle_gander_show_extension(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let ExtensionParams { session_id, name, .. } = read_gander_params(params)?;
    let (spec, home) = match changes::show_extension(services, &peer.caller, session_id, &name).await {
        Ok(shown) => shown,
        // The caller may know which servers there are, and there is none of this name.
        Err(error @ ServiceError::BadParams(_)) => {
            let built_in = BuiltIn::from_name(&name).ok_or(error)?;
            return Ok(json!({ "name": built_in.name(), "place": format!("built in: {}", built_in.description()) }));
        }
        Err(error) => return Err(error),
    };
    let sandbox = match spec.confinement {
        Confinement::Free => "none: its program runs with your rights and uses your home",
        Confinement::Networked => "in the sandbox, with the network",
        Confinement::Fenced => "in the sandbox; the network if you granted it",
    };
    let program = spec.is_program();
    let home = Some(home).filter(|_| program && spec.confinement != Confinement::Free);
    let sandbox = Some(sandbox).filter(|_| program);
    Ok(
        json!({ "name": spec.name, "place": spec.command_or_url(), "shared": spec.shared, "sandbox": sandbox, "home": home }),
    )
}

#[derive(Deserialize)]
struct Switched {
    name: String,
    on: bool,
}

async fn handle_gander_switch_extension(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Switched { name, on } = read_gander_params(params)?;
    let switch = if on { changes::Switch::On } else { changes::Switch::Off };
    changes::switch_extension(services, &peer.caller, &name, switch).await.map(|()| json!({}))
}

async fn handle_gander_log_out(services: &Services, peer: &ClientPeer, params: Value) -> Result<Value, ServiceError> {
    let ExtensionParams { session_id, name, .. } = read_gander_params(params)?;
    changes::log_out_of_extension(services, &peer.caller, session_id, &name).await.map(|()| json!({}))
}

async fn handle_gander_audit(services: &Services, peer: &ClientPeer, params: Value) -> Result<Value, ServiceError> {
    let AuditParams { session, since, principal, limit } = read_gander_params(params)?;
    let since = since.map(Timestamp::from_micros);
    let query = AuditQuery { session, since, principal: principal.map(Principal::named), limit };
    let records = services.audit.list(&peer.caller, &query).await?;
    Ok(json!({ "records": records }))
}

async fn handle_gander_list_grants(services: &Services, peer: &ClientPeer) -> Result<Value, ServiceError> {
    let grants =
        services.grants.list(&peer.caller.principal).await.map_err(|error| service_error_from_store(&error))?;
    Ok(json!({ "grants": grants }))
}

async fn handle_gander_revoke_grant(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Revoke { id } = read_gander_params(params)?;
    permission_changes::change_revoke_grant(services, &peer.caller, id).await.map(|()| json!({}))
}

fn handle_gander_list_trusted_folders(services: &Services) -> Value {
    let folders = services.trust.list().into_iter().map(|(folder, since)| json!({ "folder": folder, "since": since }));
    json!({ "folders": folders.collect::<Vec<_>>() })
}

async fn handle_gander_trust_folder(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Folder { folder } = read_gander_params(params)?;
    let folder = permission_changes::trust_folder(services, &peer.caller, &folder).await?;
    Ok(json!({ "folder": folder }))
}

async fn handle_gander_distrust_folder(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let Folder { folder } = read_gander_params(params)?;
    permission_changes::distrust_folder(services, &peer.caller, &folder).await.map(|()| json!({}))
}

pub(super) fn read_gander_params<T: DeserializeOwned>(params: Value) -> Result<T, ServiceError> {
    serde_json::from_value(params).map_err(|error| ServiceError::BadParams(error.to_string()))
}
