//! MCP servers as goose clients write them down (`ExtensionConfig`), and what we make of them.

use std::collections::BTreeMap;
use std::time::Duration;

use gander_domain::caller::Caller;
use gander_domain::{ServiceError, SessionId, SessionView};
use gander_mcp::{Spec, Transport};
use gander_services::extensions::ExtensionEntry;
use gander_services::units::DurationSetting;
use gander_services::{Services, extension_changes};
use gander_tools::BuiltIn;
use serde::Deserialize;
use serde_json::{Value, json};

use super::sessions;
use crate::ClientPeer;

pub use gander_services::extension_changes::{remove_extension, switch_extension};

/// The fields of a configuration that mean something here.
#[derive(Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Config {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    cmd: String,
    args: Vec<String>,
    envs: BTreeMap<String, String>,
    env_keys: Vec<String>,
    uri: String,
    headers: BTreeMap<String, String>,
    timeout: Option<u64>,
}

/// Adds one to a session, or to all. What comes back as it was shown, or changed, was shown without its secrets and
/// keeps them.
pub async fn add_goose_extension(
    services: &Services,
    peer: &ClientPeer,
    session: Option<SessionId>,
    config: &Value,
) -> Result<(), ServiceError> {
    let (name, entry) = parse_extension_config(config).map_err(ServiceError::BadParams)?;
    match is_unchanged_extension(services, peer, session, config).await? {
        true => extension_changes::restore_extension(services, &peer.caller, session, &name).await,
        false => {
            let entry =
                extension_changes::extension_with_hidden_values_kept(services, &peer.caller, session, &name, entry)
                    .await?;
            extension_changes::add_extension(services, &peer.caller, session, &name, entry).await
        }
    }
}

/// True if this is what we show of one that is known there.
async fn is_unchanged_extension(
    services: &Services,
    peer: &ClientPeer,
    session: Option<SessionId>,
    given: &Value,
) -> Result<bool, ServiceError> {
    let known = extension_changes::known_extensions(services, &peer.caller, session).await?;
    let Some(spec) = known.iter().find(|spec| spec.name == extension_config_name(given)) else { return Ok(false) };
    let shown = match session {
        Some(session) => {
            session_extension_config(services, &sessions::find_own_goose_session(services, peer, session).await?, spec)
        }
        None => global_extension_config(&peer.caller, spec),
    };
    Ok(is_same_extension_config(given, &shown))
}

fn is_same_extension_config(given: &Value, shown: &Value) -> bool {
    let read = |config: &Value| serde_json::from_value::<Config>(config.clone());
    matches!((read(given), read(shown)), (Ok(given), Ok(shown)) if given == shown)
}

/// Those that are known for every session, each with whether it is used; our own tools first.
pub fn list_known_goose_extensions(services: &Services, caller: &Caller) -> Vec<(Value, bool)> {
    let servers = services
        .extensions
        .known_with_switch()
        .into_iter()
        .map(|(spec, on)| (global_extension_config(caller, &spec), on));
    let ours =
        services.extensions.built_in_switches().into_iter().map(|(known, on)| (built_in_extension_config(known), on));
    ours.chain(servers).collect()
}

/// Those of a session, without secrets; our own tools first.
pub fn goose_session_extensions(services: &Services, view: &SessionView) -> Vec<Value> {
    let ours = services.extensions.built_ins(view);
    let servers = services.extensions.specs_for_session(view);
    ours.iter()
        .map(built_in_extension_config)
        .chain(servers.iter().map(|spec| session_extension_config(services, view, spec)))
        .collect()
}

/// Those of every session, in the same form.
pub fn goose_global_extensions(services: &Services, caller: &Caller) -> Vec<Value> {
    let ours = services.extensions.built_ins_everywhere();
    let servers = services.extensions.global_specs();
    ours.iter()
        .map(built_in_extension_config)
        .chain(servers.iter().map(|spec| global_extension_config(caller, spec)))
        .collect()
}

/// How a server of every session is shown to this caller.
fn global_extension_config(caller: &Caller, spec: &Spec) -> Value {
    if caller.is_owner() { server_extension_config(spec) } else { client_extension_config(spec) }
}

/// How a session's server is shown to the session's principal.
fn session_extension_config(services: &Services, view: &SessionView, spec: &Spec) -> Value {
    if services.extensions.shows_config(view, &spec.name) {
        server_extension_config(spec)
    } else {
        client_extension_config(spec)
    }
}

/// A server that the owner lends to everybody's sessions: which program or address it is, with which arguments and
/// which keys, is the owner's business. The name alone brings it back where it was taken away.
fn client_extension_config(spec: &Spec) -> Value {
    json!({
        "type": "platform", "name": spec.name, "display_name": spec.name, "bundled": true,
        "description": "configured by the owner of this server",
    })
}

/// Its name in a list of configurations.
pub fn extension_config_name(config: &Value) -> &str {
    config["name"].as_str().unwrap_or_default()
}

/// A configuration that can be written down.
pub fn extension_config_without_secrets(mut config: Value) -> Value {
    for field in ["envs", "headers"] {
        if config.get(field).is_some() {
            config[field] = json!({});
        }
    }
    config
}

fn parse_extension_config(config: &Value) -> Result<(String, ExtensionEntry), String> {
    let config: Config = serde_json::from_value(config.clone()).map_err(|error| error.to_string())?;
    if config.name.is_empty() {
        return Err("missing field `name`".to_owned());
    }
    let timeout = config.timeout.map(|seconds| DurationSetting(Duration::from_secs(seconds)));
    let common = ExtensionEntry { timeout, env_keys: config.env_keys, ..ExtensionEntry::default() };
    let entry = match config.kind.as_str() {
        "stdio" => ExtensionEntry { command: Some(config.cmd.into()), args: config.args, env: config.envs, ..common },
        "streamable_http" => ExtensionEntry { url: Some(config.uri), headers: config.headers, ..common },
        // Only a name: one of our own, or one that the settings file has.
        "" | "builtin" | "platform" => ExtensionEntry::default(),
        other => return Err(format!("extensions of this type are not supported: {other}")),
    };
    Ok((config.name, entry))
}

/// Tools of our own, as goose shows its own.
fn built_in_extension_config(built_in: BuiltIn) -> Value {
    let kind = match built_in {
        BuiltIn::Developer | BuiltIn::Memory => "builtin",
        BuiltIn::Todo | BuiltIn::Skills | BuiltIn::Apps | BuiltIn::Summon => "platform",
    };
    let mut title = built_in.name().to_owned();
    title[..1].make_ascii_uppercase();
    json!({
        "type": kind, "name": built_in.name(), "display_name": title, "bundled": true,
        "description": built_in.description(),
    })
}

fn server_extension_config(spec: &Spec) -> Value {
    let timeout = spec.patience.as_secs();
    match &spec.transport {
        Transport::Stdio { command, args, env } => json!({
            "type": "stdio", "name": spec.name, "description": "", "cmd": command, "args": args, "envs": {},
            "env_keys": env.iter().map(|(name, _)| name).collect::<Vec<_>>(), "timeout": timeout, "bundled": false,
        }),
        Transport::Http { .. } => json!({
            "type": "streamable_http", "name": spec.name, "description": "", "uri": spec.command_or_url(), "headers": {},
            "envs": {}, "env_keys": [], "timeout": timeout, "bundled": false,
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn configurations_are_read_and_shown_without_their_secrets() {
        let given = json!({
            "type": "stdio", "name": "files", "description": "x", "cmd": "npx", "args": ["-y"],
            "envs": {"KEY": "hush"}, "timeout": 5, "available_tools": [], "bundled": null,
        });
        let (name, entry) = parse_extension_config(&given).unwrap();
        let spec = entry.to_mcp_spec(&name, &gander_models::Keys::default(), gander_mcp::Reach::Anywhere).unwrap();
        let shown = server_extension_config(&spec);
        assert_eq!((&shown["cmd"], &shown["env_keys"], &shown["timeout"]), (&json!("npx"), &json!(["KEY"]), &json!(5)));
        assert!(!shown.to_string().contains("hush"));
    }

    #[test]
    fn other_types_are_refused_with_a_reason() {
        let refused = |config: Value| parse_extension_config(&config).map(|_| ()).unwrap_err();
        assert!(refused(json!({"type": "sse", "name": "old", "uri": "http://x"})).contains("sse"));
        assert!(refused(json!({"type": "inline_python", "name": "code", "code": "1"})).contains("inline_python"));
        assert_eq!(refused(json!({"type": "stdio", "cmd": "x"})), "missing field `name`");
    }
}
