//! The MCP servers that a recipe names. It starts no program that its user did not agree to.

use std::path::PathBuf;

use gander_agent::recipe::{Recipe, RecipeExtension};
use gander_mcp::{Reach, Spec, Transport};
use gander_tools::BuiltIn;
use serde_json::Value;

use crate::extensions::Extensions;

/// A recipe's extensions, by what each takes to have it.
#[derive(Default)]
pub struct RecipeExtensions {
    /// Programs to start, once its user agreed.
    pub programs: Vec<Spec>,
    /// Addresses to connect to.
    pub addresses: Vec<Spec>,
    /// Tools of our own to switch on.
    pub built_ins: Vec<BuiltIn>,
    /// Names of those that are not to be had here.
    pub absent: Vec<String>,
}

/// Tells what each extension of a recipe takes. The owner's own servers are there for every session already.
pub fn resolve_recipe_extensions(extensions: &Extensions, recipe: &Recipe, reach: &Reach) -> RecipeExtensions {
    let mut resolved = RecipeExtensions::default();
    for extension in recipe.extensions.iter().filter(|extension| !extensions.is_configured(&extension.name)) {
        match (extension.kind.as_str(), BuiltIn::from_name(&extension.name)) {
            ("stdio", _) => resolved.programs.push(recipe_program_spec(extension)),
            ("streamable_http", _) => resolved.addresses.push(recipe_address_spec(extension, reach.clone())),
            (_, Some(built_in)) => resolved.built_ins.push(built_in),
            (_, None) => resolved.absent.push(extension.name.clone()),
        }
    }
    resolved
}

/// Its environment holds what the recipe says and none of the owner's keys.
fn recipe_program_spec(extension: &RecipeExtension) -> Spec {
    let transport = Transport::Stdio {
        command: PathBuf::from(extension.cmd.clone().unwrap_or_default()),
        args: extension.args.clone(),
        env: recipe_extension_pairs(extension.more.get("envs")),
    };
    Spec::new(extension.name.clone(), transport)
}

fn recipe_address_spec(extension: &RecipeExtension, reach: Reach) -> Spec {
    let transport = Transport::Http {
        url: extension.uri.clone().unwrap_or_default(),
        headers: recipe_extension_pairs(extension.more.get("headers")),
        reach,
        client_id: None,
    };
    Spec::new(extension.name.clone(), transport)
}

fn recipe_extension_pairs(fields: Option<&Value>) -> Vec<(String, String)> {
    let fields = fields.and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}
