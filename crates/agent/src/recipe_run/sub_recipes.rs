//! Recipes that a recipe uses: each is a tool, carried out by a sub-agent in a session of its own.

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{ToolCall, ToolCallId, ToolEnd, ToolResult, ToolSpec};
use gander_tools::ToolEvent;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::delegate::{Parent, SubEnd, SubTask, SubagentRunner, UserPrompter};
use crate::recipe::{FillSources, Flaw, InputType, Parameter, Recipe, Values, fill};
use crate::tool_provider::{ToolProvider, plain_call};

/// The tools' names begin like this.
const PREFIX: &str = "recipe_";

/// One recipe that another uses.
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
pub type ReadFile = Box<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// The recipes that one uses, as tools.
pub struct SubRecipes {
    pub subs: Vec<SubRecipeSource>,
    /// Who starts sub-agents.
    pub office: Arc<dyn SubagentRunner>,
    /// Who is asked what they ask.
    pub people: Arc<dyn UserPrompter>,
    /// Reads what a parameter of type file names.
    pub read: ReadFile,
}

impl SubRecipes {
    fn find_sub_recipe(&self, tool: &str) -> Option<&SubRecipeSource> {
        let name = tool.strip_prefix(PREFIX)?;
        self.subs.iter().find(|sub| sub.name == name)
    }

    /// What the sub-agent is asked.
    fn to_sub_task(&self, sub: &SubRecipeSource, arguments: &Value) -> Result<SubTask, Flaw> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let given = arguments.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value)));
        let values: Values = given.chain(sub.values.clone()).collect();
        let ways = FillSources { folder: sub.folder.as_deref(), read: &*self.read };
        let recipe = fill(&sub.recipe, &values, &ways)?;
        let settings = recipe.settings.clone().unwrap_or_default();
        let model = settings.goose_provider.zip(settings.goose_model);
        Ok(SubTask {
            model: model.map(|(provider, model)| format!("{provider}/{model}")),
            max_turns: settings.max_turns,
            recipe: Some(Box::new(recipe.clone())),
            ..SubTask::new(sub.name.clone(), recipe.first_prompt())
        })
    }
}

#[async_trait]
impl ToolProvider for SubRecipes {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |sub: &SubRecipeSource| ToolSpec {
            name: format!("{PREFIX}{}", sub.name),
            description: format!("Has the recipe \"{}\" carried out: {}", sub.recipe.title, sub.description),
            schema: open_parameters_schema(sub),
        };
        self.subs.iter().map(spec).collect()
    }

    fn needed(&self) -> bool {
        true
    }

    fn describe(&self, id: ToolCallId, name: &str, arguments: &Value) -> Option<Result<ToolCall, ToolResult>> {
        let sub = self.find_sub_recipe(name)?;
        let task = self.to_sub_task(sub, arguments).map_err(|flaw| flaw.to_string());
        if let Err(wrong) = task.and_then(|task| self.office.check(&task)) {
            return Some(Err(ToolResult::text(ToolEnd::Failed, wrong)));
        }
        // The same call again finds the sub-agent that it began.
        Some(Ok(plain_call(id, name, format!("Recipe {}", sanitize::visible_line(&sub.recipe.title)), arguments)))
    }

    async fn run(
        &self,
        call: &ToolCall,
        signals: &mpsc::Sender<ToolEvent>,
        cancel: &CancellationToken,
    ) -> Option<ToolResult> {
        let sub = self.find_sub_recipe(&call.name)?;
        let task = match self.to_sub_task(sub, &call.arguments) {
            Ok(task) => task,
            Err(flaw) => return Some(ToolResult::text(ToolEnd::Failed, flaw.to_string())),
        };
        let result = self.office.run(call.id, &task, Parent { people: &*self.people, signals, cancel }).await;
        let end = match result.end {
            SubEnd::Completed => ToolEnd::Completed,
            SubEnd::Failed => ToolEnd::Failed,
            SubEnd::Cancelled => ToolEnd::Cancelled,
        };
        let raw = Some(json!({ "session": result.session }));
        Some(ToolResult { raw, ..ToolResult::text(end, result.text) })
    }
}

/// The parameters that are open still.
fn open_parameters_schema(sub: &SubRecipeSource) -> Value {
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
