//! `skill`: loads what somebody wrote about how a thing is done.

use std::path::PathBuf;

use async_trait::async_trait;
use gander_domain::sanitize;
use gander_domain::{ToolCall, ToolEnd, ToolKind, ToolResult, ToolSpec};
use gander_tools::{Group, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace, arguments};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::context_files::{Skill, skills};

pub(crate) struct LoadSkill {
    /// Where the person keeps their own.
    pub(crate) own: Vec<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: String,
    #[serde(default)]
    file: Option<String>,
}

#[async_trait]
impl Tool for LoadSkill {
    fn name(&self) -> &str {
        "skill"
    }

    fn group(&self) -> Group {
        Group::Skills
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Internal
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description:
                "Loads a skill: instructions for a kind of task, by the name it is listed under. Load it before \
                          you begin such a task. With file it gives one of the skill's further files."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "The skill's name"},
                    "file": {"type": "string", "description": "A file of the skill, as its instructions name it"}
                },
                "required": ["name"],
                "additionalProperties": false
            })
            .into(),
        }
    }

    fn preview(&self, arguments: &Value, workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let Arguments { name, file } = arguments::parse_tool_arguments(arguments)?;
        self.find_skill(&name, workspace)?;
        let of = file.map(|file| format!(", file {}", sanitize::sanitized_line(&file))).unwrap_or_default();
        let title = format!("Skill {}{of}", sanitize::sanitized_line(&name));
        Ok(ToolPreview { title, kind: ToolKind::Read, locations: vec![], idempotent: true })
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { name, file } = arguments::parse_tool_arguments(&call.arguments)?;
        let skill = self.find_skill(&name, &context.workspace)?;
        let loaded = match file {
            Some(file) => skill.read_file(context.workspace.file_access(), &file),
            None => skill.load_skill_text(context.workspace.file_access()),
        };
        loaded.map(|text| ToolResult::text(ToolEnd::Completed, text)).map_err(ToolError::failed)
    }
}

impl LoadSkill {
    fn find_skill(&self, name: &str, workspace: &Workspace) -> Result<Skill, ToolError> {
        let (skills, _) = skills::find_skills(workspace.file_access(), &self.own, workspace.root());
        let names: Vec<String> = skills.iter().map(|skill| skill.name.clone()).collect();
        skills.into_iter().find(|skill| skill.name == name).ok_or_else(|| {
            ToolError::failed(match names.is_empty() {
                true => "there are no skills here".to_owned(),
                false => format!("no such skill: {name:?} (there are: {})", names.join(", ")),
            })
        })
    }
}
