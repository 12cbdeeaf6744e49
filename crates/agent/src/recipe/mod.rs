//! Recipes: sessions that are prepared beforehand, in the form that goose gave them. Nothing here runs or reads anything.

mod check;
mod draft;
mod fill;
mod filters;
mod growth;
mod link;
mod parse;
mod template;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use check::recipe_hidden_characters;
pub use draft::RecipeDraftSource;
pub use fill::{FillSources, Values, fill_recipe_parameters};
pub use link::{decode_recipe_link, encode_recipe_link};
pub use parse::{parse_recipe, parse_whole_recipe, recipe_from_value, recipe_to_yaml};

/// A recipe, read and found to be in order. Texts may hold `{{ parameter }}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// Of the form, such as `1.0.0`.
    pub version: String,
    /// For people.
    pub title: String,
    /// For people.
    pub description: String,
    /// What the agent is told for the whole session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What it is asked first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What can be filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// The MCP servers it wants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<RecipeExtension>,
    /// The model and its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// The form of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
    /// What must hold in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Recipes it can use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_recipes: Vec<SubRecipe>,
    /// Suggestions for what to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activities: Vec<String>,
    /// Who wrote it, as they say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Value>,
}

/// Something that can be filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name in texts.
    pub key: String,
    /// What it takes.
    pub input_type: InputType,
    /// Who must give it.
    pub requirement: Requirement,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// What holds if nobody gives it.
    #[serde(default, deserialize_with = "parse::deserialize_scalar_as_text", skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What can be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    /// Any text.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A day, such as `2026-01-31`.
    Date,
    /// A file of the workspace, whose text is filled in.
    File,
    /// One of its options.
    Select,
}

/// Who must give a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// Whoever runs it.
    Required,
    /// Nobody.
    Optional,
    /// A person, who is asked.
    UserPrompt,
}

/// An MCP server that a recipe wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecipeExtension {
    /// Its name.
    pub name: String,
    /// How it is reached.
    #[serde(rename = "type", default = "default_extension_type")]
    pub kind: String,
    /// The program, for `stdio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cmd: Option<String>,
    /// What the program is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The address, for `streamable_http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// What else is said about it.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

/// The model and its limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The provider.
    #[serde(default, alias = "provider", skip_serializing_if = "Option::is_none")]
    pub goose_provider: Option<String>,
    /// The model.
    #[serde(default, alias = "model", skip_serializing_if = "Option::is_none")]
    pub goose_model: Option<String>,
    /// How freely it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Model calls in one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
}

/// The form of the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// What the result must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<Value>,
}

/// What must hold in the end, or the agent has to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// How often it may go on.
    pub max_retries: u32,
    /// What must hold.
    pub checks: Vec<Check>,
    /// A command after a check that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    /// How long a check may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// How long that command may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure_timeout_seconds: Option<u64>,
}

/// Something that must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Check {
    /// A command that ends with 0.
    Shell {
        /// For a shell.
        command: String,
    },
}

/// A recipe that a recipe can use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubRecipe {
    /// Its name in the recipe.
    pub name: String,
    /// Its file, in the folder of the recipe.
    pub path: String,
    /// What is filled in already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<std::collections::BTreeMap<String, Value>>,
    /// For the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// One after another, if it is used more than once?
    #[serde(default)]
    pub sequential_when_repeated: bool,
}

/// What is wrong with a recipe, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Flaw {
    /// The field, such as `parameters[1].key`.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Flaw {
    fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

impl Recipe {
    /// What it is as JSON.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// What a session that only follows its words is asked: for a recipe that is used inside another conversation.
    pub fn all_text(&self) -> String {
        let said = [self.instructions.as_deref(), self.prompt.as_deref()];
        said.into_iter().flatten().map(str::trim).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// What a session that follows it is asked first.
    pub fn first_prompt(&self) -> String {
        self.prompt.clone().filter(|prompt| !prompt.trim().is_empty()).unwrap_or_else(|| self.all_text())
    }

    /// The parameters that nobody gives a value.
    pub fn missing_parameters(&self, given: &Values) -> Vec<&str> {
        let open = self.parameters.iter().filter(|known| known.default.is_none() && !given.contains_key(&known.key));
        open.map(|parameter| parameter.key.as_str()).collect()
    }

    /// The form that the result must have.
    pub fn response_schema(&self) -> Option<&Value> {
        self.response.as_ref()?.json_schema.as_ref()
    }
}

fn default_extension_type() -> String {
    "builtin".to_owned()
}
