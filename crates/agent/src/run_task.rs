//! The task of a run: what it works towards, if somebody prepared it.

use std::sync::Arc;

use gander_tools::Tool;

use crate::turn::Goal;

/// What a run works towards, if somebody prepared it.
#[derive(Clone, Default)]
pub struct RunTask {
    /// What it is told for the whole session; may be empty.
    pub instructions: String,
    /// What must hold before it may end.
    pub goal: Option<Goal>,
    /// The tools that it brings along.
    pub tools: Vec<Arc<dyn Tool>>,
}
