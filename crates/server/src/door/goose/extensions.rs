//! MCP servers as goose clients write them down (`ExtensionConfig`), and what we make of them.

use std::collections::BTreeMap;
use std::time::Duration;

use gander_agent::mcp::{Spec, Transport};
use gander_agent::tools::BuiltIn;
use gander_domain::{SessionId, SessionView};
use gander_wire::acp::Refusal;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Peer;
use crate::config::Span;
use crate::door::extensions::Switch;
use crate::door::{Desk, extensions};
use crate::extensions::Entry;

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
pub async fn add(desk: &Desk, peer: &Peer, session: Option<SessionId>, config: &Value) -> Result<(), Refusal> {
    let (name, entry) = entry(config).map_err(Refusal::BadParams)?;
    match is_as_shown(desk, peer, session, config).await? {
        true => extensions::restore(desk, peer, session, &name).await,
        false => {
            let entry = extensions::keeping(desk, peer, session, &name, entry).await?;
            extensions::add(desk, peer, session, &name, entry).await
        }
    }
}

/// True if this is what we show of one that is known there.
async fn is_as_shown(desk: &Desk, peer: &Peer, session: Option<SessionId>, given: &Value) -> Result<bool, Refusal> {
    let known = extensions::known(desk, peer, session).await?;
    let known = known.iter().find(|spec| spec.name == name(given));
    Ok(known.is_some_and(|spec| is_same(given, &config(spec))))
}

fn is_same(given: &Value, shown: &Value) -> bool {
    let read = |config: &Value| serde_json::from_value::<Config>(config.clone());
    matches!((read(given), read(shown)), (Ok(given), Ok(shown)) if given == shown)
}

/// Takes one away from a session, or from all.
pub async fn remove(desk: &Desk, peer: &Peer, session: Option<SessionId>, name: &str) -> Result<(), Refusal> {
    extensions::remove(desk, peer, session, name).await
}

/// Uses one in every session, or no longer.
pub async fn switch(desk: &Desk, peer: &Peer, name: &str, switch: Switch) -> Result<(), Refusal> {
    extensions::switch(desk, peer, name, switch).await
}

/// Those that are known for every session, each with whether it is used; our own tools first.
pub fn known(desk: &Desk) -> Vec<(Value, bool)> {
    let servers = desk.extensions.switches().into_iter().map(|(spec, on)| (config(&spec), on));
    let ours = desk.extensions.built_in_switches().into_iter().map(|(known, on)| (built_in(known), on));
    ours.chain(servers).collect()
}

/// Those of a session, without secrets; our own tools first.
pub fn of_session(desk: &Desk, view: &SessionView) -> Vec<Value> {
    let ours = desk.extensions.built_ins(view);
    ours.iter().map(built_in).chain(desk.extensions.specs(view).iter().map(config)).collect()
}

/// Those of every session, in the same form.
pub fn everywhere(desk: &Desk) -> Vec<Value> {
    let ours = desk.extensions.built_ins_everywhere();
    ours.iter().map(built_in).chain(desk.extensions.everywhere().iter().map(config)).collect()
}

/// Its name in a list of configurations.
pub fn name(config: &Value) -> &str {
    config["name"].as_str().unwrap_or_default()
}

/// A configuration that can be written down.
pub fn without_secrets(mut config: Value) -> Value {
    for field in ["envs", "headers"] {
        if config.get(field).is_some() {
            config[field] = json!({});
        }
    }
    config
}

fn entry(config: &Value) -> Result<(String, Entry), String> {
    let config: Config = serde_json::from_value(config.clone()).map_err(|error| error.to_string())?;
    if config.name.is_empty() {
        return Err("missing field `name`".to_owned());
    }
    let timeout = config.timeout.map(|seconds| Span(Duration::from_secs(seconds)));
    let common = Entry { timeout, env_keys: config.env_keys, ..Entry::default() };
    let entry = match config.kind.as_str() {
        "stdio" => Entry { command: Some(config.cmd.into()), args: config.args, env: config.envs, ..common },
        "streamable_http" => Entry { url: Some(config.uri), headers: config.headers, ..common },
        // Only a name: one of our own, or one that the settings file has.
        "" | "builtin" | "platform" => Entry::default(),
        other => return Err(format!("extensions of this type are not supported: {other}")),
    };
    Ok((config.name, entry))
}

/// Tools of our own, as goose shows its own.
fn built_in(built_in: BuiltIn) -> Value {
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

fn config(spec: &Spec) -> Value {
    let timeout = spec.patience.as_secs();
    match &spec.transport {
        Transport::Stdio { command, args, env } => json!({
            "type": "stdio", "name": spec.name, "description": "", "cmd": command, "args": args, "envs": {},
            "env_keys": env.iter().map(|(name, _)| name).collect::<Vec<_>>(), "timeout": timeout, "bundled": false,
        }),
        Transport::Http { .. } => json!({
            "type": "streamable_http", "name": spec.name, "description": "", "uri": spec.place(), "headers": {},
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
        let (name, entry) = entry(&given).unwrap();
        let spec = entry.spec(&name, &crate::config::Keys::default(), gander_agent::mcp::Reach::Anywhere).unwrap();
        let shown = config(&spec);
        assert_eq!((&shown["cmd"], &shown["env_keys"], &shown["timeout"]), (&json!("npx"), &json!(["KEY"]), &json!(5)));
        assert!(!shown.to_string().contains("hush"));
    }

    #[test]
    fn other_types_are_refused_with_a_reason() {
        let refused = |config: Value| entry(&config).map(|_| ()).unwrap_err();
        assert!(refused(json!({"type": "sse", "name": "old", "uri": "http://x"})).contains("sse"));
        assert!(refused(json!({"type": "inline_python", "name": "code", "code": "1"})).contains("inline_python"));
        assert_eq!(refused(json!({"type": "stdio", "cmd": "x"})), "missing field `name`");
    }
}
