//! `final_output`: takes the result of a recipe, if it has the form that was asked for.

use async_trait::async_trait;
use gander_domain::{ToolCall, ToolCallId, ToolEnd, ToolResult, ToolSpec};
use gander_tools::ToolEvent;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::tool_provider::{ToolProvider, plain_call};
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

    fn faults(&self, given: &Value) -> Vec<String> {
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
impl ToolProvider for FinalOutput {
    fn specs(&self) -> Vec<ToolSpec> {
        let description = "Gives the result of the whole task. Call it once, when everything else is done; its arguments \
                           are the result.";
        // Providers take only objects as the form of arguments.
        let mut schema = self.schema.clone();
        if let Some(fields) = schema.as_object_mut() {
            fields.insert("type".to_owned(), Value::from("object"));
        }
        vec![ToolSpec { name: OUTPUT.to_owned(), description: description.to_owned(), schema }]
    }

    fn needed(&self) -> bool {
        true
    }

    fn describe(&self, id: ToolCallId, name: &str, arguments: &Value) -> Option<Result<ToolCall, ToolResult>> {
        if name != OUTPUT {
            return None;
        }
        let faults = self.faults(arguments);
        if !faults.is_empty() {
            let text = format!("the result does not have the form that was asked for:\n- {}", faults.join("\n- "));
            return Some(Err(ToolResult::text(ToolEnd::Failed, text)));
        }
        Some(Ok(plain_call(id, name, "Result".to_owned(), arguments)))
    }

    async fn run(
        &self,
        call: &ToolCall,
        _signals: &mpsc::Sender<ToolEvent>,
        _cancel: &CancellationToken,
    ) -> Option<ToolResult> {
        if call.name != OUTPUT {
            return None;
        }
        let text = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        Some(ToolResult { raw: Some(call.arguments.clone()), ..ToolResult::text(ToolEnd::Completed, text) })
    }
}
