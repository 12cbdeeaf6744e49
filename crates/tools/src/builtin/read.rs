//! `read`: shows a text file with line numbers, or a picture.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gander_domain::{Location, Part, ToolCall, ToolContent, ToolEnd, ToolKind, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::locations;
use crate::process::command_output::clip_command_output_to_bytes;
use crate::{
    Group, Limits, Located, PathError, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace, arguments,
};
use gander_domain::sanitize;

/// Bytes of one line that are shown.
const LONGEST_LINE: usize = 2_000;

/// Bytes that tell what a file is.
const SNIFFED: usize = 8 << 10;

pub(crate) struct Read {
    pub(crate) limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    limit: Option<u32>,
}

/// What the first bytes of a file say.
enum FileKind {
    Text,
    Image(&'static str),
    Binary,
}

#[async_trait]
impl Tool for Read {
    fn name(&self) -> &str {
        "read"
    }

    fn group(&self) -> Group {
        Group::Look
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Read
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description: format!(
                "LineReads a file of the workspace. Each line comes as its number, a tab, and the line. Shows {} lines unless \
                 limit says otherwise; read long files in parts with line and limit. Pictures (png, jpeg, gif, webp) \
                 are shown as such.",
                self.limits.lines
            ),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace's root, or absolute inside it"},
                    "line": {"type": "integer", "minimum": 1, "description": "First line to show; default 1"},
                    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to show"}
                },
                "required": ["path"],
                "additionalProperties": false
            }).into(),
        }
    }

    fn preview(&self, arguments: &Value, workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let Arguments { path, line, limit } = arguments::parse_tool_arguments(arguments)?;
        let located = workspace.locate_path(&path)?;
        let name = sanitize::sanitized_line(&workspace.display_name(&located));
        let title = match (line.unwrap_or(1).max(1), limit) {
            (1, None) => format!("Read {name}"),
            (from, None) => format!("Read {name} from line {from}"),
            (from, Some(limit)) => format!("Read {name}, lines {from}-{}", from.saturating_add(limit.max(1)) - 1),
        };
        let location = Location { line, ..locations::location_of(&located) };
        Ok(ToolPreview { title, kind: ToolKind::Read, locations: vec![location], idempotent: true })
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments::parse_tool_arguments(&call.arguments)?;
        let located = locations::locate_again(call, &arguments.path, &context.workspace)?;
        tokio::select! {
            () = context.cancel.cancelled() => Err(ToolError::cancelled()),
            result = self.read_and_show(&arguments, &located, context) => result,
        }
    }
}

impl Read {
    async fn read_and_show(
        &self,
        arguments: &Arguments,
        located: &Located,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let (workspace, place, limit) = (context.workspace.clone(), located.clone(), self.limits.file);
        let bytes = tokio::task::spawn_blocking(move || workspace.read_file(&place, limit)).await;
        let bytes = bytes.map_err(|error| ToolError::failed(format!("file work broke off: {error}")))?;
        let lent = context.host.offers().read;
        match bytes {
            Ok(bytes) => match detect_read_kind(&bytes) {
                FileKind::Image(mime) => self.image_result(mime, &bytes, located),
                FileKind::Binary => Err(PathError::NotText(arguments.path.clone()).into()),
                FileKind::Text if lent => {
                    self.text_result(arguments, &context.read_text(located.absolute_path(), limit).await?)
                }
                FileKind::Text => self.text_result(arguments, &String::from_utf8_lossy(&bytes)),
            },
            // A file that only the editor has so far.
            Err(PathError::NotFound(_)) if lent => {
                self.text_result(arguments, &context.read_text(located.absolute_path(), limit).await?)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn image_result(&self, mime: &str, bytes: &[u8], located: &Located) -> Result<ToolResult, ToolError> {
        if bytes.len() as u64 > self.limits.image {
            return Err(ToolError::failed(format!(
                "picture is larger than {} bytes: {}",
                self.limits.image,
                bytes.len()
            )));
        }
        let uri = Some(located.absolute_path().to_string_lossy().into_owned());
        let part = Part::Image { mime: mime.to_owned(), data: STANDARD.encode(bytes), uri };
        Ok(ToolResult { end: ToolEnd::Completed, content: vec![ToolContent::Part { part }], raw: None })
    }

    fn text_result(&self, arguments: &Arguments, text: &str) -> Result<ToolResult, ToolError> {
        let total = text.lines().count();
        let from = arguments.line.unwrap_or(1).max(1) as usize;
        if total == 0 {
            return Ok(ToolResult::text(ToolEnd::Completed, "[the file is empty]"));
        }
        if from > total {
            return Err(ToolError::failed(format!("the file has {total} lines, there is no line: {from}")));
        }
        let wanted = arguments.limit.unwrap_or(self.limits.lines).max(1) as usize;
        let (mut shown, mut next) = (String::new(), from);
        for line in text.lines().skip(from - 1).take(wanted) {
            let line = numbered_read_line(next, line);
            if shown.len() + line.len() > self.limits.result {
                break;
            }
            shown.push_str(&line);
            next += 1;
        }
        if next <= total {
            shown.push_str(&format!("[lines {from}-{} of {total}; read on with line {next}]\n", next - 1));
        }
        Ok(ToolResult::text(ToolEnd::Completed, shown))
    }
}

fn numbered_read_line(number: usize, line: &str) -> String {
    let kept = clip_command_output_to_bytes(line, LONGEST_LINE);
    match line.len() - kept.len() {
        0 => format!("{number}\t{line}\n"),
        more => format!("{number}\t{kept}[… {more} more bytes]\n"),
    }
}

fn detect_read_kind(bytes: &[u8]) -> FileKind {
    let start = &bytes[..bytes.len().min(SNIFFED)];
    match start {
        [0x89, b'P', b'N', b'G', ..] => FileKind::Image("image/png"),
        [0xff, 0xd8, 0xff, ..] => FileKind::Image("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => FileKind::Image("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => FileKind::Image("image/webp"),
        _ if start.contains(&0) || std::str::from_utf8(bytes).is_err() => FileKind::Binary,
        _ => FileKind::Text,
    }
}
