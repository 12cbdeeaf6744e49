//! `final_output`: takes the result of a recipe, if it has the form that was asked for.

use async_trait::async_trait;
use gander_domain::{ToolCall, ToolEnd, ToolKind, ToolResult, ToolSpec};
use gander_tools::{Group, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace};
use serde_json::Value;

use crate::turn::OUTPUT;

/// Faults of a result that are told at once.
const MAX_FAULTS: usize = 10;

/// Takes the result.
pub(super) struct FinalOutput {
    schema: Value,
    validator: jsonschema::Validator,
}

impl FinalOutput {
    /// For results of this form; none if it is no form.
    pub(super) fn new(schema: &Value) -> Option<Self> {
        let validator = jsonschema::validator_for(schema).ok()?;
        Some(Self { schema: schema.clone(), validator })
    }

    fn find_faults(&self, given: &Value) -> Vec<String> {
        if given.as_object().is_none_or(serde_json::Map::is_empty) {
            return vec!["the result is missing: call final_output with all of it".to_owned()];
        }
        let fault = |error: jsonschema::ValidationError<'_>| match error.instance_path().to_string() {
            path if path.is_empty() => error.to_string(),
            path => format!("{path}: {error}"),
        };
        self.validator.iter_errors(given).take(MAX_FAULTS).map(fault).collect()
    }
}

#[async_trait]
impl Tool for FinalOutput {
    fn name(&self) -> &str {
        OUTPUT
    }

    fn group(&self) -> Group {
        Group::Recipes
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Internal
    }

    fn is_required(&self) -> bool {
        true
    }

    fn spec(&self) -> ToolSpec {
        let description = "Gives the result of the whole task. Call it once, when everything else is done; its arguments \
                           are the result.";
        // Providers take only objects as the form of arguments.
        let mut schema = self.schema.clone();
        if let Some(fields) = schema.as_object_mut() {
            fields.insert("type".to_owned(), Value::from("object"));
        }
        ToolSpec { name: OUTPUT.to_owned(), description: description.to_owned(), schema: schema.into() }
    }

    fn preview(&self, arguments: &Value, _workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let faults = self.find_faults(arguments);
        if !faults.is_empty() {
            let text = format!("the result does not have the form that was asked for:\n- {}", faults.join("\n- "));
            return Err(ToolError::failed(text));
        }
        Ok(ToolPreview { title: "Result".to_owned(), kind: ToolKind::Other, locations: Vec::new(), idempotent: true })
    }

    async fn run(&self, call: &ToolCall, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        let text = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        Ok(ToolResult { raw: Some(call.arguments.clone()), ..ToolResult::text(ToolEnd::Completed, text) })
    }
}
