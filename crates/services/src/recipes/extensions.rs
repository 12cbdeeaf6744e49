//! The MCP servers that a recipe names. It starts no program that its user did not agree to.

use std::path::PathBuf;

use gander_agent::recipe::{Extension, Recipe};
use gander_domain::ServiceError;
use gander_domain::caller::Caller;
use gander_mcp::{Reach, Spec, Transport};
use gander_tools::{BuiltIn, Guard};
use serde_json::Value;

use crate::Services;
use crate::extensions::Extensions;

/// What a recipe's extensions mean, where its user may be asked.
#[derive(Default)]
pub struct Wanted {
    /// Programs to start, once its user agreed.
    pub programs: Vec<Spec>,
    /// Addresses to connect to.
    pub addresses: Vec<Spec>,
    /// Tools of our own to switch on.
    pub built_ins: Vec<BuiltIn>,
    /// Names of those that are not to be had here.
    pub absent: Vec<String>,
}

/// What a recipe's extensions mean. The owner's own servers are there for every session already.
pub fn wanted(extensions: &Extensions, recipe: &Recipe, reach: &Reach) -> Wanted {
    let mut wanted = Wanted::default();
    for extension in recipe.extensions.iter().filter(|extension| !extensions.is_configured(&extension.name)) {
        match (extension.kind.as_str(), BuiltIn::named(&extension.name)) {
            ("stdio", _) => wanted.programs.push(program(extension)),
            ("streamable_http", _) => wanted.addresses.push(address(extension, reach.clone())),
            (_, Some(built_in)) => wanted.built_ins.push(built_in),
            (_, None) => wanted.absent.push(extension.name.clone()),
        }
    }
    wanted
}

/// The same, if every program that it starts was agreed to.
pub(super) fn agreed(
    desk: &Services,
    caller: &Caller,
    recipe: &Recipe,
    approved: &[String],
) -> Result<Wanted, ServiceError> {
    let anywhere = caller.may_name_program(desk.remote_commands).is_ok();
    let reach = if anywhere { Reach::Anywhere } else { Reach::Guarded(Guard::default()) };
    let wanted = wanted(&desk.extensions, recipe, &reach);
    match wanted
        .programs
        .iter()
        .find(|program| !(caller.may_name_program(false).is_ok() && approved.contains(&program.name)))
    {
        None => Ok(wanted),
        Some(Spec { name, .. }) => Err(ServiceError::BadParams(format!(
            "a recipe starts no program unasked: put it into the settings as [extensions.{name}], or run the recipe \
             with `gander run --recipe`, which asks: {name}"
        ))),
    }
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

fn address(extension: &Extension, reach: Reach) -> Spec {
    let transport = Transport::Http {
        url: extension.uri.clone().unwrap_or_default(),
        headers: pairs(extension.more.get("headers")),
        reach,
        client_id: None,
    };
    Spec::new(extension.name.clone(), transport)
}

fn pairs(fields: Option<&Value>) -> Vec<(String, String)> {
    let fields = fields.and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}
