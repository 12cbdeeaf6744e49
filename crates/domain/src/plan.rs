//! The plan of a session: its steps, and how a person sends an edited one back.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A plan, whole each time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Its items, in order.
    pub items: Vec<PlanItem>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanItem {
    /// What is to be done.
    pub text: String,
    /// How much it matters.
    pub priority: Priority,
    /// How far it is.
    pub status: PlanStatus,
}

impl Plan {
    /// A plan as a person sends it back: `items`, or `plan` with `items`; an item is a text or an object with one.
    pub fn parse_edited(content: &Value) -> Result<Self, String> {
        let items = content.get("items").or_else(|| content.get("plan")?.get("items"));
        let items = items.and_then(Value::as_array).ok_or("a plan has items")?;
        if items.len() > Self::MAX_ITEMS {
            return Err(format!("a plan has at most {} items: {}", Self::MAX_ITEMS, items.len()));
        }
        items.iter().map(parse_edited_item).collect::<Result<_, _>>().map(|items| Self { items })
    }

    /// More items than this are no plan.
    pub const MAX_ITEMS: usize = 100;
}

fn parse_edited_item(value: &Value) -> Result<PlanItem, String> {
    let text = value.as_str().or_else(|| value.get("text").or_else(|| value.get("content"))?.as_str());
    let text = text.filter(|text| !text.trim().is_empty()).ok_or("an item of a plan has a text")?.to_owned();
    let field = |name: &str| value.get(name).cloned().unwrap_or(Value::Null);
    let priority = Option::deserialize(field("priority")).map_err(|error| format!("priority: {error}"))?;
    let status = Option::deserialize(field("status")).map_err(|error| format!("status: {error}"))?;
    Ok(PlanItem { text, priority: priority.unwrap_or_default(), status: status.unwrap_or_default() })
}

/// How much a step matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Much.
    High,
    /// Some.
    #[default]
    Medium,
    /// Little.
    Low,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}
