//! The MCP servers that a recipe names. It starts no program that its user did not agree to.

use std::path::PathBuf;

use gander_agent::mcp::{Reach, Spec, Transport};
use gander_agent::recipe::{Extension, Recipe};
use gander_agent::tools::{BuiltIn, Guard};
use gander_wire::acp::Refusal;
use serde_json::Value;

use crate::app::Peer;
use crate::door::Desk;

/// Servers to bring along, tools of our own to switch on, and the names of those that are not to be had here.
pub(super) struct Wanted {
    pub(super) specs: Vec<Spec>,
    pub(super) built_ins: Vec<BuiltIn>,
    pub(super) absent: Vec<String>,
}

/// What a recipe's extensions mean. The owner's own servers are there for every session already.
pub(super) fn wanted(desk: &Desk, peer: &Peer, recipe: &Recipe, approved: &[String]) -> Result<Wanted, Refusal> {
    let mut wanted = Wanted { specs: Vec::new(), built_ins: Vec::new(), absent: Vec::new() };
    for extension in &recipe.extensions {
        let name = extension.name.as_str();
        if desk.extensions.is_configured(name) {
            continue;
        }
        match extension.kind.as_str() {
            "stdio" if peer.local && approved.iter().any(|approved| approved == name) => {
                wanted.specs.push(program(extension));
            }
            "stdio" => {
                let text = format!(
                    "a recipe starts no program unasked: put it into the settings as [extensions.{name}], or run the recipe \
                     with `gander run --recipe`, which asks: {name}"
                );
                return Err(Refusal::BadParams(text));
            }
            "streamable_http" => wanted.specs.push(address(extension, peer.local || desk.remote_commands)),
            _ => match BuiltIn::named(name) {
                Some(built_in) => wanted.built_ins.push(built_in),
                None => wanted.absent.push(name.to_owned()),
            },
        }
    }
    Ok(wanted)
}

/// Its environment holds what the recipe says and none of the owner's keys.
fn program(extension: &Extension) -> Spec {
    let transport = Transport::Stdio {
        command: PathBuf::from(extension.cmd.clone().unwrap_or_default()),
        args: extension.args.clone(),
        env: pairs(extension.more.get("envs")),
    };
    Spec::new(extension.name.clone(), transport)
}

fn address(extension: &Extension, anywhere: bool) -> Spec {
    let transport = Transport::Http {
        url: extension.uri.clone().unwrap_or_default(),
        headers: pairs(extension.more.get("headers")),
        reach: if anywhere { Reach::Anywhere } else { Reach::Guarded(Guard::default()) },
        client_id: None,
    };
    Spec::new(extension.name.clone(), transport)
}

fn pairs(fields: Option<&Value>) -> Vec<(String, String)> {
    let fields = fields.and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}
