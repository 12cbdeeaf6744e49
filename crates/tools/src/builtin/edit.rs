//! `edit`: replaces an exact piece of a file.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use gander_domain::{ToolCall, ToolContent, ToolKind, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use similar::TextDiff;

use super::change::WriteLock;
use super::{change, locations};
use crate::blocking::BlockingPool;
use crate::protected::text_has_relevant_part;
use crate::{Group, Limits, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace, arguments};
use gander_domain::sanitize;

/// Lines of a file that are searched for something similar.
const SEARCHED: usize = 20_000;

/// Bytes of a line that is compared letter by letter.
const LONGEST_LINE: usize = 4 << 10;

/// How long something similar is looked for.
const HINT_TIMEOUT: Duration = Duration::from_millis(500);

/// How similar something must be to be worth a hint.
const SIMILAR: f32 = 0.6;

pub(crate) struct Edit {
    pub(crate) limits: Limits,
    pub(crate) blocking: BlockingPool,
    pub(crate) lock: WriteLock,
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
    fn name(&self) -> &str {
        "edit"
    }

    fn group(&self) -> Group {
        Group::Edit
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::FileWrite
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
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
            }).into(),
        }
    }

    fn preview(&self, arguments: &Value, workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let Arguments { path, old, new, .. } = arguments::parse_tool_arguments(arguments)?;
        match () {
            () if old.is_empty() => return Err(ToolError::failed("old is empty: use write to make a file")),
            () if old == new => return Err(ToolError::failed("old and new are the same")),
            () => {}
        }
        let located = workspace.locate_path(&path)?;
        Ok(ToolPreview {
            title: format!("Edit {}", sanitize::sanitized_line(&workspace.display_name(&located))),
            kind: ToolKind::Edit,
            locations: vec![locations::location_of(&located)],
            idempotent: false,
        })
    }

    fn proposal(&self, arguments: &Value, workspace: &Workspace) -> Vec<ToolContent> {
        let Ok(arguments) = arguments::parse_tool_arguments::<Arguments>(arguments) else { return Vec::new() };
        let Ok(located) = workspace.locate_path(&arguments.path) else { return Vec::new() };
        let old = change::text_on_disk_before_change(&located, workspace, self.limits.file);
        let new = old.as_deref().and_then(|old| edit_once(old, &arguments).ok());
        vec![match new {
            Some(new) => change::change_diff_content(&located, old, new),
            // An editor may hold another text than the disk does: then the pieces are all that is known.
            None => change::change_diff_content(&located, Some(arguments.old), arguments.new),
        }]
    }

    fn find_objection(&self, arguments: &Value, workspace: &Workspace) -> Option<String> {
        let arguments: Arguments = arguments::parse_tool_arguments(arguments).ok()?;
        let located = workspace.locate_path(&arguments.path).ok()?;
        let old = change::text_on_disk_before_change(&located, workspace, self.limits.file);
        let new = old.as_deref().and_then(|old| edit_once(old, &arguments).ok());
        match new {
            Some(new) => change::change_objection(&located, workspace, old.as_deref(), &new),
            // An editor may hold another text than the disk does.
            None => {
                text_has_relevant_part(located.relative_path()).then(|| "what it changes cannot be foreseen".to_owned())
            }
        }
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments::parse_tool_arguments(&call.arguments)?;
        let located = locations::locate_again(call, &arguments.path, &context.workspace)?;
        tokio::select! {
            () = context.cancel.cancelled() => Err(ToolError::cancelled()),
            result = async {
                let text = change::text_before_change(&located, context, self.limits.file).await?;
                let text = text.ok_or_else(|| ToolError::failed(format!("no such file: {}", arguments.path)))?;
                let deadline = Instant::now() + HINT_TIMEOUT;
                let (text, new) = self.blocking.run_blocking(move || (replace_edited_text(&text, &arguments, deadline), text))
                    .await
                    .and_then(|(new, text)| Ok((text, new?)))?;
                change::apply_change(&located, Some(text), new, context, (&self.blocking, &self.lock)).await
            } => result,
        }
    }
}

fn replace_edited_text(text: &str, arguments: &Arguments, deadline: Instant) -> Result<String, ToolError> {
    edit_once(text, arguments).map_err(|wrong| {
        ToolError::failed(match wrong {
            EditMiss::Missing => missing_edit_text_hint(text, &arguments.old, deadline),
            EditMiss::Ambiguous { count, lines } => format!(
                "old occurs {count} times (lines {lines}): take in more of its surroundings, or set replace_all"
            ),
        })
    })
}

/// Why a piece is not replaced.
enum EditMiss {
    Missing,
    Ambiguous { count: usize, lines: String },
}

/// The text with its piece replaced.
fn edit_once(text: &str, arguments: &Arguments) -> Result<String, EditMiss> {
    let Arguments { old, new, replace_all, .. } = arguments;
    // A file with CR LF is shown with LF: what was copied from there is meant with CR LF.
    let windows = text.contains("\r\n") && !old.contains('\r') && !text.contains(old.as_str());
    let (old, new) = match windows {
        true => (old.replace('\n', "\r\n"), new.replace('\n', "\r\n")),
        false => (old.clone(), new.clone()),
    };
    match text.matches(&old).count() {
        0 => Err(EditMiss::Missing),
        1 => Ok(text.replacen(&old, &new, 1)),
        _ if *replace_all => Ok(text.replace(&old, &new)),
        count => {
            let lines: Vec<String> =
                text.match_indices(&old).take(10).map(|(at, _)| edited_line_of(text, at).to_string()).collect();
            Err(EditMiss::Ambiguous { count, lines: lines.join(", ") })
        }
    }
}

/// Why the text is not there: the likeliest mistake.
fn missing_edit_text_hint(text: &str, old: &str, deadline: Instant) -> String {
    let bare: Vec<&str> = old.lines().map(strip_edited_line_number).collect();
    let bare = bare.join("\n");
    if bare != old && text.contains(bare.trim_end()) {
        return "old does not occur: leave out the line numbers that read shows".into();
    }
    match nearest_edit_match(text, old, deadline) {
        Some((line, found)) => format!("old does not occur; the most similar text is at line {line}:\n{found}"),
        None => "old does not occur, nor anything similar: read the file again".into(),
    }
}

fn strip_edited_line_number(line: &str) -> &str {
    match line.trim_start().split_once('\t') {
        Some((number, rest)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => line,
    }
}

/// The window of as many lines that resembles the text most, among those that are looked at before the deadline.
fn nearest_edit_match(text: &str, old: &str, deadline: Instant) -> Option<(usize, String)> {
    let lines: Vec<&str> = text.lines().take(SEARCHED).collect();
    let wanted: Vec<&str> = old.lines().collect();
    let first = wanted.iter().find(|line| !line.trim().is_empty())?;
    let lead = wanted.iter().take_while(|line| line.trim().is_empty()).count();
    let score = |line: &str| match line.trim() == first.trim() {
        true => 1.0,
        false if line.len().abs_diff(first.len()) > first.len() || line.len() > LONGEST_LINE => 0.0,
        false => TextDiff::configure().deadline(deadline).diff_chars(line.trim(), first.trim()).ratio(),
    };
    let scored = lines.iter().enumerate().take_while(|_| Instant::now() < deadline);
    let scored = scored.map(|(at, line)| (at, score(line)));
    let (at, score) = scored.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best });
    let from = at.saturating_sub(lead);
    let to = (from + wanted.len()).min(lines.len());
    (score >= SIMILAR).then(|| (from + 1, lines[from..to].join("\n")))
}

fn edited_line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_looked_for_up_to_a_deadline() {
        let text = "fn alpha() {}\nfn beta() {}\n";
        let later = Instant::now() + Duration::from_secs(3_600);
        assert_eq!(nearest_edit_match(text, "fn beto() {}", later), Some((2, "fn beta() {}".to_owned())));
        assert_eq!(nearest_edit_match(text, "fn beto() {}", Instant::now()), None);
        let long = format!("{}\n", "xy".repeat(8 << 20));
        assert_eq!(nearest_edit_match(&long, &"xz".repeat(8 << 20), later), None, "such lines are not compared");
    }
}
