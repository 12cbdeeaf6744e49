//! Recipes that a recipe uses: each is a tool, carried out by a sub-agent in a session of its own.

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{ToolCall, ToolEnd, ToolKind, ToolResult, ToolSpec};
use gander_tools::{Group, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace};
use serde_json::{Map, Value, json};

use crate::delegate::{Parent, SubEnd, SubTask, SubagentRunner, UserPrompter};
use crate::recipe::{FillSources, Flaw, InputType, Parameter, Recipe, Values, fill_recipe_parameters};

/// The tools' names begin like this.
const PREFIX: &str = "recipe_";

/// One recipe that another uses, as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SubRecipeSource {
    /// Its name there.
    pub name: String,
    /// What it is for.
    pub description: String,
    pub recipe: Recipe,
    /// What is filled in already.
    pub values: Values,
    /// Its folder.
    pub folder: Option<String>,
}

/// Reads a file of the workspace.
pub type ReadFile = Arc<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// What the tools of a recipe's sub-recipes share.
#[derive(Clone)]
pub struct SubRecipeEnv {
    /// Starts sub-agents.
    pub subagents: Arc<dyn SubagentRunner>,
    /// Asks the user what sub-agents ask.
    pub prompter: Arc<dyn UserPrompter>,
    /// Reads what a parameter of type file names.
    pub read: ReadFile,
}

/// A recipe that another uses, as a tool.
struct SubRecipeTool {
    name: String,
    source: SubRecipeSource,
    env: SubRecipeEnv,
}

/// Each of the recipes that one uses, as a tool.
pub fn sub_recipe_tools(sources: Vec<SubRecipeSource>, env: &SubRecipeEnv) -> Vec<Arc<dyn Tool>> {
    let tool = |source: SubRecipeSource| {
        let name = format!("{PREFIX}{}", source.name);
        Arc::new(SubRecipeTool { name, source, env: env.clone() }) as Arc<dyn Tool>
    };
    sources.into_iter().map(tool).collect()
}

impl SubRecipeTool {
    /// What the sub-agent is asked.
    fn to_sub_task(&self, arguments: &Value) -> Result<SubTask, Flaw> {
        let source = &self.source;
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let given = arguments.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value)));
        let values: Values = given.chain(source.values.clone()).collect();
        let sources = FillSources { folder: source.folder.as_deref(), read: &*self.env.read };
        let recipe = fill_recipe_parameters(&source.recipe, &values, &sources)?;
        let settings = recipe.settings.clone().unwrap_or_default();
        let model = settings.goose_provider.zip(settings.goose_model);
        Ok(SubTask {
            model: model.map(|(provider, model)| format!("{provider}/{model}")),
            max_turns: settings.max_turns,
            recipe: Some(Box::new(recipe.clone())),
            ..SubTask::new(source.name.clone(), recipe.first_prompt())
        })
    }
}

#[async_trait]
impl Tool for SubRecipeTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn group(&self) -> Group {
        Group::Recipes
    }

    /// What the sub-agent does asks for itself.
    fn effect(&self) -> ToolEffect {
        ToolEffect::Internal
    }

    fn is_required(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        let SubRecipeSource { recipe, description, .. } = &self.source;
        ToolSpec {
            name: self.name.clone(),
            description: format!("Has the recipe \"{}\" carried out: {description}", recipe.title),
            schema: sub_recipe_parameters_schema(&self.source).into(),
        }
    }

    fn preview(&self, arguments: &Value, _workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let task = self.to_sub_task(arguments).map_err(|flaw| flaw.to_string());
        task.and_then(|task| self.env.subagents.check(&task)).map_err(ToolError::failed)?;
        let title = format!("Recipe {}", sanitize::sanitized_line(&self.source.recipe.title));
        // The same call again finds the sub-agent that it began.
        Ok(ToolPreview { title, kind: ToolKind::Other, locations: Vec::new(), idempotent: true })
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let task = self.to_sub_task(&call.arguments).map_err(|flaw| ToolError::failed(flaw.to_string()))?;
        let parent = Parent { prompter: &*self.env.prompter, signals: &context.signals, cancel: &context.cancel };
        let result = self.env.subagents.run(call.id, &task, parent).await;
        let end = match result.end {
            SubEnd::Completed => ToolEnd::Completed,
            SubEnd::Failed => ToolEnd::Failed,
            SubEnd::Cancelled => ToolEnd::Cancelled,
        };
        let raw = Some(json!({ "session": result.session }));
        Ok(ToolResult { raw, ..ToolResult::text(end, result.text) })
    }
}

/// The parameters that are open still.
fn sub_recipe_parameters_schema(sub: &SubRecipeSource) -> Value {
    let open = || sub.recipe.parameters.iter().filter(|parameter| !sub.values.contains_key(&parameter.key));
    let property = |parameter: &Parameter| {
        let mut field = json!({ "type": "string", "description": parameter.description });
        match parameter.input_type {
            InputType::Number => field["type"] = json!("number"),
            InputType::Boolean => field["type"] = json!("boolean"),
            InputType::Select => field["enum"] = json!(parameter.options),
            InputType::String | InputType::Date | InputType::File => {}
        }
        (parameter.key.clone(), field)
    };
    let required: Vec<&str> =
        open().filter(|parameter| parameter.default.is_none()).map(|parameter| parameter.key.as_str()).collect();
    let properties: Map<String, Value> = open().map(property).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
