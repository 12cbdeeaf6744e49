//! `plan`: notes down what is to be done, for people to follow.

use async_trait::async_trait;
use gander_domain::{Plan, PlanItem, PlanStatus, Priority, ToolCall, ToolEnd, ToolKind, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Group, Tool, ToolContext, ToolEffect, ToolError, ToolEvent, ToolPreview, Workspace, arguments};

const MOST_STEPS: usize = Plan::MAX_ITEMS;

pub(crate) struct SetPlan;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    items: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    text: String,
    status: PlanStatus,
    #[serde(default)]
    priority: Priority,
}

#[async_trait]
impl Tool for SetPlan {
    fn name(&self) -> &str {
        "plan"
    }

    fn group(&self) -> Group {
        Group::Plan
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Internal
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description:
                "Sets the plan that people see, whole: every call replaces the list. Use it for work of several \
                          steps; keep one step in_progress and update it as you go."
                    .into(),
            schema: plan_steps_schema(
                0,
                &json!({
                    "text": {"type": "string"},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    "priority": {"type": "string", "enum": ["high", "medium", "low"]}
                }),
                &["text", "status"],
            )
            .into(),
        }
    }

    fn preview(&self, arguments: &Value, _workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let plan = parse_plan_steps(arguments)?;
        let title = format!("Plan {} steps", plan.items.len());
        Ok(ToolPreview { title, kind: ToolKind::Think, locations: vec![], idempotent: true })
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let plan = parse_plan_steps(&call.arguments)?;
        let done = plan.items.iter().filter(|item| item.status == PlanStatus::Completed).count();
        let told = format!("plan set: {done} of {} steps completed", plan.items.len());
        tokio::select! {
            () = context.cancel.cancelled() => Err(ToolError::cancelled()),
            sent = context.signals.send(ToolEvent::Plan(plan)) => match sent {
                Ok(()) => Ok(ToolResult::text(ToolEnd::Completed, told)),
                Err(_) => Err(ToolError::failed("nobody takes the plan")),
            },
        }
    }
}

/// What a model may say as a list of at least so many steps, each with these properties.
pub fn plan_steps_schema(least: usize, properties: &Value, required: &[&str]) -> Value {
    let step = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let items = json!({"type": "array", "minItems": least, "maxItems": MOST_STEPS, "items": step});
    json!({"type": "object", "properties": {"items": items}, "required": ["items"], "additionalProperties": false})
}

fn parse_plan_steps(arguments: &Value) -> Result<Plan, ToolError> {
    let Arguments { items } = arguments::parse_tool_arguments(arguments)?;
    if items.len() > MOST_STEPS {
        return Err(ToolError::failed(format!("a plan has at most {MOST_STEPS} steps: {}", items.len())));
    }
    let item = |Step { text, status, priority }| PlanItem { text, priority, status };
    Ok(Plan { items: items.into_iter().map(item).collect() })
}
