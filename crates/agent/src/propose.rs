//! `propose_plan`: puts a plan to the person. Nothing is done before they have approved it.

use async_trait::async_trait;
use gander_domain::{
    Choice, ChoiceKind, Plan, PlanProposal, PlanStatus, Question, QuestionId, QuestionKind, QuestionOrigin, ToolCall,
    ToolEnd, ToolKind, ToolResult, ToolSpec,
};
use gander_tools::builtin::plan::plan_steps_schema;
use gander_tools::permission::permission_call_fingerprint;
use gander_tools::{Group, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace, arguments};
use serde::Deserialize;
use serde_json::{Value, json};

/// Its name.
pub(crate) const NAME: &str = gander_tools::PROPOSE_PLAN;

pub(crate) struct ProposePlan;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    items: Vec<Value>,
}

#[async_trait]
impl Tool for ProposePlan {
    fn name(&self) -> &str {
        NAME
    }

    fn group(&self) -> Group {
        Group::Propose
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Internal
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Puts a plan to the person, who may change it, approve it or turn it down. Its result is the \
                          plan as it was approved: carry out that one."
                .into(),
            schema: plan_steps_schema(
                1,
                &json!({
                    "text": {"type": "string", "description": "One step: what, where, how it is checked"},
                    "priority": {"type": "string", "enum": ["high", "medium", "low"]}
                }),
                &["text"],
            )
            .into(),
        }
    }

    fn preview(&self, arguments: &Value, _workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let plan = parse_proposed_plan(arguments)?;
        let title = format!("Propose a plan of {} steps", plan.items.len());
        Ok(ToolPreview { title, kind: ToolKind::Think, locations: vec![], idempotent: true })
    }

    async fn run(&self, call: &ToolCall, _context: &ToolContext) -> Result<ToolResult, ToolError> {
        Ok(approved_proposal_result(&parse_proposed_plan(&call.arguments)?))
    }
}

/// The question that a proposal is. `then` is the mode that carries it out.
pub(crate) fn proposal_question(id: QuestionId, call: &ToolCall, then: Option<String>) -> Option<Question> {
    let plan = parse_proposed_plan(&call.arguments).ok()?;
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    let choices = vec![
        choice("approve", "Approve and carry it out", ChoiceKind::AllowOnce),
        choice("reject", "Turn it down", ChoiceKind::RejectOnce),
    ];
    Some(Question {
        id,
        call: Some(call.id),
        title: format!("Carry out this plan of {} steps?", plan.items.len()),
        ask: QuestionKind::Choose { choices },
        origin: QuestionOrigin::Parked,
        fingerprint: Some(permission_call_fingerprint(call)),
        plan: Some(Box::new(PlanProposal { plan, then })),
        subagent: None,
        preview: Vec::new(),
        outward: None,
        meta: None,
    })
}

/// What the model is told of a plan that was approved, as it then stands.
pub(crate) fn approved_proposal_result(plan: &Plan) -> ToolResult {
    let steps = plan.items.iter().enumerate().map(|(place, item)| format!("{}. {}", place + 1, item.text));
    let steps: Vec<String> = steps.collect();
    let told = format!(
        "The person approved this plan, which may differ from what you proposed:\n{}\nCarry it out now, step by step, \
         and keep it up to date with the plan tool.",
        steps.join("\n")
    );
    ToolResult::text(ToolEnd::Completed, told)
}

fn parse_proposed_plan(arguments: &Value) -> Result<Plan, ToolError> {
    let Arguments { items } = arguments::parse_tool_arguments(arguments)?;
    let mut plan = Plan::parse_edited(&json!({ "items": items })).map_err(ToolError::failed)?;
    if plan.items.is_empty() {
        return Err(ToolError::failed("a plan has at least one step"));
    }
    plan.items.iter_mut().for_each(|item| item.status = PlanStatus::Pending);
    Ok(plan)
}
