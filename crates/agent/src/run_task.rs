//! The task of a run: what it works towards, if somebody prepared it.

use std::sync::Arc;

use serde_json::Value;

use crate::tool_provider::ToolProvider;
use crate::turn::Goal;

/// What a run works towards, if somebody prepared it.
#[derive(Clone, Default)]
pub struct RunTask {
    /// What it is told for the whole session; may be empty.
    pub instructions: String,
    /// What must hold before it may end.
    pub goal: Option<Goal>,
    /// The server's own tools.
    pub providers: Vec<Arc<dyn ToolProvider>>,
    /// The sub-tasks that a fresh run hands out before the model is asked: arguments of `delegate`.
    pub parts: Option<Value>,
}
