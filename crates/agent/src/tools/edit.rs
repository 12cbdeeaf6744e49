//! `edit`: replaces an exact piece of a file.

use async_trait::async_trait;
use gander_domain::{ToolCall, ToolKind, ToolResult};
use serde::Deserialize;
use serde_json::{Value, json};
use similar::TextDiff;

use super::{Limits, Sketch, Tool, ToolContext, ToolError, Workspace, arguments, change, locations};
use crate::model::ToolSpec;
use crate::permission::show;

/// Lines of a file that are searched for something similar.
const SEARCHED: usize = 20_000;

/// How similar something must be to be worth a hint.
const SIMILAR: f32 = 0.6;

pub(super) struct Edit {
    pub(super) limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    replace_all: bool,
}

#[async_trait]
impl Tool for Edit {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "edit".into(),
            description: "Replaces an exact piece of a file. old must occur exactly once, letter for letter with its \
                          indentation and without the line numbers that read shows; take in more lines to make it unique, \
                          or set replace_all."
                .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace's root, or absolute inside it"},
                    "old": {"type": "string", "description": "The exact text to replace"},
                    "new": {"type": "string", "description": "The text to put in its place"},
                    "replace_all": {"type": "boolean", "description": "Replace every occurrence; default false"}
                },
                "required": ["path", "old", "new"],
                "additionalProperties": false
            }),
        }
    }

    fn sketch(&self, arguments: &Value, workspace: &Workspace) -> Result<Sketch, ToolError> {
        let Arguments { path, old, new, .. } = arguments::parse(arguments)?;
        match () {
            () if old.is_empty() => return Err(ToolError::failed("old is empty: use write to make a file")),
            () if old == new => return Err(ToolError::failed("old and new are the same")),
            () => {}
        }
        let located = workspace.locate(&path)?;
        Ok(Sketch {
            title: format!("Edit {}", show::line(&workspace.name(&located))),
            kind: ToolKind::Edit,
            locations: vec![locations::of(&located)],
            idempotent: false,
        })
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments::parse(&call.arguments)?;
        let located = locations::same(call, &arguments.path, &context.workspace)?;
        tokio::select! {
            () = context.cancel.cancelled() => Err(ToolError::cancelled()),
            result = async {
                let text = change::current(&located, context, self.limits.file).await?;
                let text = text.ok_or_else(|| ToolError::failed(format!("no such file: {}", arguments.path)))?;
                let new = replaced(&text, &arguments)?;
                change::apply(&located, Some(text), new, context).await
            } => result,
        }
    }
}

fn replaced(text: &str, arguments: &Arguments) -> Result<String, ToolError> {
    let Arguments { old, new, replace_all, .. } = arguments;
    // A file with CR LF is shown with LF: what was copied from there is meant with CR LF.
    let windows = text.contains("\r\n") && !old.contains('\r') && !text.contains(old.as_str());
    let (old, new) = match windows {
        true => (old.replace('\n', "\r\n"), new.replace('\n', "\r\n")),
        false => (old.clone(), new.clone()),
    };
    match text.matches(&old).count() {
        0 => Err(ToolError::failed(missing(text, &arguments.old))),
        1 => Ok(text.replacen(&old, &new, 1)),
        _ if *replace_all => Ok(text.replace(&old, &new)),
        many => {
            let lines: Vec<String> =
                text.match_indices(&old).take(10).map(|(at, _)| line_of(text, at).to_string()).collect();
            let lines = lines.join(", ");
            Err(ToolError::failed(format!(
                "old occurs {many} times (lines {lines}): take in more of its surroundings, or set replace_all"
            )))
        }
    }
}

/// Why the text is not there: the likeliest mistake.
fn missing(text: &str, old: &str) -> String {
    let bare: Vec<&str> = old.lines().map(without_number).collect();
    let bare = bare.join("\n");
    if bare != old && text.contains(bare.trim_end()) {
        return "old does not occur: leave out the line numbers that read shows".into();
    }
    match nearest(text, old) {
        Some((line, found)) => format!("old does not occur; the most similar text is at line {line}:\n{found}"),
        None => "old does not occur, nor anything similar: read the file again".into(),
    }
}

fn without_number(line: &str) -> &str {
    match line.trim_start().split_once('\t') {
        Some((number, rest)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => line,
    }
}

/// The window of as many lines that resembles the text most.
fn nearest(text: &str, old: &str) -> Option<(usize, String)> {
    let lines: Vec<&str> = text.lines().take(SEARCHED).collect();
    let wanted: Vec<&str> = old.lines().collect();
    let first = wanted.iter().find(|line| !line.trim().is_empty())?;
    let lead = wanted.iter().take_while(|line| line.trim().is_empty()).count();
    let score = |line: &str| match line.trim() == first.trim() {
        true => 1.0,
        false if line.len().abs_diff(first.len()) > first.len() => 0.0,
        false => TextDiff::from_chars(line.trim(), first.trim()).ratio(),
    };
    let scored = lines.iter().enumerate().map(|(at, line)| (at, score(line)));
    let (at, score) = scored.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best });
    let from = at.saturating_sub(lead);
    let to = (from + wanted.len()).min(lines.len());
    (score >= SIMILAR).then(|| (from + 1, lines[from..to].join("\n")))
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}
