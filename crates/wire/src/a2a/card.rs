//! Agent cards: one for both versions, from the agent's one manifest.

use gander_domain::{AgentManifest, SlashCommand};
use serde_json::{Map, Value, json};

use super::{A2aDialect, EXTENSION};
use crate::slash_command_list::slash_command_list;

/// Where and how an agent is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardDetails {
    /// The address of its JSON-RPC and HTTP+JSON bindings, without a slash at the end.
    pub url: String,
    /// `host:port` of gRPC, if that is on.
    pub grpc: Option<String>,
    /// Version of the server.
    pub version: String,
    /// Who may come in.
    pub access: CardAccess,
    /// Are updates sent to whoever asks?
    pub push: bool,
    /// The slash commands that a message may begin with.
    pub commands: Vec<SlashCommand>,
}

/// Who may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardAccess {
    /// Whoever has a token.
    Token,
    /// Everybody.
    Open,
}

/// The card that clients of 1.0 and of 0.3 both understand.
pub fn agent_card(manifest: &AgentManifest, details: &CardDetails) -> Value {
    let mut card = common_card_fields(manifest, details);
    card["supportedInterfaces"] = card_interfaces(details);
    card["capabilities"]["extendedAgentCard"] = json!(true);
    if details.access == CardAccess::Token {
        card["securitySchemes"] = json!({ "token": {
            // 1.0 reads the one, 0.3 the other.
            "httpAuthSecurityScheme": { "scheme": "Bearer", "description": TOKEN_DESCRIPTION },
            "type": "http", "scheme": "Bearer", "description": TOKEN_DESCRIPTION,
        }});
        card["securityRequirements"] = json!([{ "schemes": { "token": { "list": [] } } }]);
    }
    merge_card_fields(&mut card, v03_card_fields(details));
    card
}

/// The card in the form of one version only.
pub fn agent_card_in_dialect(dialect: A2aDialect, manifest: &AgentManifest, details: &CardDetails) -> Value {
    let mut card = match dialect {
        A2aDialect::V1 => {
            let mut card = agent_card(manifest, details);
            v03_card_fields(details)
                .keys()
                .for_each(|name| drop(card.as_object_mut().and_then(|card| card.remove(name))));
            if let Some(token) = card.pointer_mut("/securitySchemes/token").and_then(Value::as_object_mut) {
                token.retain(|name, _| name == "httpAuthSecurityScheme");
            }
            return card;
        }
        A2aDialect::V03 | A2aDialect::V03Rest => common_card_fields(manifest, details),
    };
    if details.access == CardAccess::Token {
        card["securitySchemes"] =
            json!({ "token": { "type": "http", "scheme": "Bearer", "description": TOKEN_DESCRIPTION } });
    }
    merge_card_fields(&mut card, v03_card_fields(details));
    card
}

/// The list of agents on this host. `agents` are names and where their cards are.
pub fn agent_catalog(host: &str, agents: &[(AgentManifest, String)]) -> Value {
    let entries: Vec<Value> = agents
        .iter()
        .map(|(manifest, url)| {
            json!({
                "identifier": format!("urn:air:{host}:{}", manifest.name),
                "displayName": manifest.title,
                "description": manifest.description,
                "mediaType": "application/a2a-agent-card+json",
                "url": url,
            })
        })
        .collect();
    json!({ "specVersion": "1.0", "host": { "displayName": host }, "entries": entries })
}

const TOKEN_DESCRIPTION: &str = "the token of this server";

fn common_card_fields(manifest: &AgentManifest, details: &CardDetails) -> Value {
    let skills: Vec<Value> = manifest
        .modes
        .iter()
        .map(|mode| {
            let tags = [manifest.name.as_str(), mode.category.name()];
            json!({ "id": mode.id, "name": mode.name, "description": mode.description, "tags": tags })
        })
        .collect();
    json!({
        "name": manifest.title,
        "description": manifest.description,
        "version": manifest.version.as_ref().unwrap_or(&details.version),
        "capabilities": {
            "streaming": true,
            "pushNotifications": details.push,
            "extensions": [{
                "uri": EXTENSION,
                "description": "thoughts, tool calls, plans and questions as data; slash commands",
                "params": { "commands": slash_command_list(&details.commands) },
            }],
        },
        "defaultInputModes": manifest.takes,
        "defaultOutputModes": manifest.gives,
        "skills": skills,
    })
}

fn card_interfaces(details: &CardDetails) -> Value {
    let interface = |url: &str, binding: &str, version: &str| json!({ "url": url, "protocolBinding": binding, "protocolVersion": version });
    let mut interfaces = vec![interface(&details.url, "JSONRPC", "1.0"), interface(&details.url, "HTTP+JSON", "1.0")];
    interfaces.extend(details.grpc.as_deref().map(|address| interface(address, "GRPC", "1.0")));
    interfaces.extend([interface(&details.url, "JSONRPC", "0.3"), interface(&details.url, "HTTP+JSON", "0.3")]);
    interfaces.into()
}

fn v03_card_fields(details: &CardDetails) -> Map<String, Value> {
    let old = json!({
        "protocolVersion": "0.3.0",
        "url": details.url,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [
            { "url": details.url, "transport": "JSONRPC" },
            { "url": details.url, "transport": "HTTP+JSON" },
        ],
        "supportsAuthenticatedExtendedCard": true,
        "security": match details.access {
            CardAccess::Token => json!([{ "token": [] }]),
            CardAccess::Open => json!([]),
        },
    });
    if let Value::Object(old) = old { old } else { Map::new() }
}

fn merge_card_fields(card: &mut Value, more: Map<String, Value>) {
    if let Some(card) = card.as_object_mut() {
        card.extend(more);
    }
}
