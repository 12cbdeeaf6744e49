//! Tool calls as people follow them: what runs, its output as it comes, and how it ended.

use std::collections::HashMap;

use gander_domain::sanitize::sanitized_line;
use gander_wire::acp::schema::{
    ContentBlock, Diff, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind,
};
use serde_json::Value;

use super::diff::diff_lines;
use super::row_limit::{RowLimit, cut_line_to_row_limit};
use crate::output::{Style, Tone, clean_output_text};

/// Lines of a diff that are shown.
const MAX_DIFF_LINES: usize = 60;

/// Arguments of a call that are shown.
const MAX_INPUT_LINES: usize = 6;

/// Remembers the calls that have not ended, and what of their output is on the screen.
#[derive(Debug, Default)]
pub(super) struct ToolLog {
    calls: HashMap<String, OpenCall>,
    /// The call whose lines were printed last: others name themselves first.
    current: Option<String>,
}

#[derive(Debug)]
struct OpenCall {
    title: String,
    kind: ToolKind,
    /// Lines of its output that are on the screen.
    shown: usize,
    running: bool,
    /// What it showed last: a result may leave it as it is.
    text: String,
}

/// A line for the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolLine {
    pub(super) tone: Option<Tone>,
    pub(super) text: String,
}

impl ToolLog {
    /// A call is wanted.
    pub(super) fn handle_call(&mut self, call: &ToolCall, columns: usize) -> Vec<ToolLine> {
        let id = call.tool_call_id.0.to_string();
        let (title, kind) = (call.title.clone(), call.kind);
        self.calls.insert(id.clone(), OpenCall { title, kind, shown: 0, running: false, text: String::new() });
        let mut lines = self.name_call(&id);
        lines.extend(tool_input_lines(call, columns));
        lines
    }

    /// A call goes on, or ends.
    pub(super) fn handle_update(&mut self, update: &ToolCallUpdate, style: Style, columns: usize) -> Vec<ToolLine> {
        let id = update.tool_call_id.0.to_string();
        let call = self.calls.entry(id.clone()).or_insert_with(|| OpenCall {
            title: update.fields.title.clone().unwrap_or_default(),
            kind: update.fields.kind.unwrap_or(ToolKind::Other),
            shown: 0,
            running: true,
            text: String::new(),
        });
        if let Some(title) = &update.fields.title {
            call.title.clone_from(title);
        }
        let content = update.fields.content.as_deref();
        if let Some(content) = content {
            call.text = tool_output_text(content);
        }
        match update.fields.status {
            Some(ToolCallStatus::Completed | ToolCallStatus::Failed) => self.end_call(&id, update, style, columns),
            Some(ToolCallStatus::InProgress) => {
                call.running = true;
                Vec::new()
            }
            _ if call.kind == ToolKind::Execute => self.show_live(&id, columns),
            _ => Vec::new(),
        }
    }

    /// What a call that has not ended is called.
    pub(super) fn title(&self, id: &str) -> Option<&str> {
        self.calls.get(id).map(|call| call.title.as_str())
    }

    /// The titles of calls that run now.
    pub(super) fn running(&self) -> impl Iterator<Item = &str> {
        self.calls.values().filter(|call| call.running).map(|call| call.title.as_str())
    }

    /// Something else was printed: the next line of a call says which one it is of.
    pub(super) fn interrupt(&mut self) {
        self.current = None;
    }

    /// Whole lines that are new, up to the limit. The last one may still grow.
    fn show_live(&mut self, id: &str, columns: usize) -> Vec<ToolLine> {
        let Some(call) = self.calls.get_mut(id) else { return Vec::new() };
        let whole = call.text.rfind('\n').map_or("", |end| &call.text[..end]);
        let fresh: Vec<String> =
            whole.lines().take(tool_row_limit(call.kind, false).head).skip(call.shown).map(str::to_owned).collect();
        call.shown += fresh.len();
        if fresh.is_empty() {
            return Vec::new();
        }
        let mut lines = self.name_call(id);
        lines.extend(fresh.iter().map(|line| tool_output_line(line, columns)));
        lines
    }

    fn end_call(&mut self, id: &str, update: &ToolCallUpdate, style: Style, columns: usize) -> Vec<ToolLine> {
        let continues = self.current.as_deref() == Some(id);
        let Some(call) = self.calls.remove(id) else { return Vec::new() };
        let failed = update.fields.status == Some(ToolCallStatus::Failed);
        let exit_code = update.fields.raw_output.as_ref().and_then(|raw| raw["exit_code"].as_i64());
        let diffs: Vec<&Diff> = update.fields.content.iter().flatten().filter_map(tool_content_diff).collect();
        let (text, ending) = split_tool_ending(&call, exit_code, failed, !diffs.is_empty());
        let all: Vec<&str> = text.lines().collect();
        let (head, hidden, tail) = tool_row_limit(call.kind, failed).remaining(&all, call.shown);
        let mut body: Vec<ToolLine> = head.iter().map(|line| tool_output_line(line, columns)).collect();
        if hidden > 0 {
            body.push(ToolLine { tone: Some(Tone::Dim), text: format!("  │ … {hidden} more lines") });
        }
        body.extend(tail.iter().map(|line| tool_output_line(line, columns)));
        body.extend(diffs.iter().flat_map(|diff| tool_diff_rows(diff, style)));
        let mut lines = if continues || body.is_empty() { Vec::new() } else { named_tool_lines(&call.title) };
        lines.extend(body);
        self.current = None;
        let (mark, tone) = if failed { ("✗", Tone::Bad) } else { ("✓", Tone::Good) };
        let text = match continues || !lines.is_empty() {
            true => format!("  {mark} {ending}"),
            false => format!("{mark} {}: {ending}", call.title),
        };
        lines.push(ToolLine { tone: Some(tone), text });
        lines
    }

    /// The line that says which call the following lines are of, unless it is there already.
    fn name_call(&mut self, id: &str) -> Vec<ToolLine> {
        if self.current.as_deref() == Some(id) {
            return Vec::new();
        }
        self.current = Some(id.to_owned());
        self.calls.get(id).map(|call| named_tool_lines(&call.title)).unwrap_or_default()
    }
}

/// What a tool is given, where its title does not say it: those of our own do.
fn tool_input_lines(call: &ToolCall, columns: usize) -> Vec<ToolLine> {
    let (ToolKind::Other, Some(Value::Object(input))) = (call.kind, &call.raw_input) else { return Vec::new() };
    let line =
        |text: String| ToolLine { tone: Some(Tone::Dim), text: cut_line_to_row_limit(&format!("  {text}"), columns) };
    let mut lines: Vec<ToolLine> = input
        .iter()
        .take(MAX_INPUT_LINES)
        .map(|(name, value)| match value {
            Value::String(text) => line(format!("{}: {}", sanitized_line(name), sanitized_line(text))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                line(format!("{}: {}", sanitized_line(name), sanitized_line(&value.to_string())))
            }
        })
        .collect();
    if input.len() > MAX_INPUT_LINES {
        lines.push(line(format!("… {} more", input.len() - MAX_INPUT_LINES)));
    }
    lines
}

fn named_tool_lines(title: &str) -> Vec<ToolLine> {
    vec![ToolLine { tone: Some(Tone::Bold), text: format!("• {title}") }]
}

fn tool_output_line(line: &str, columns: usize) -> ToolLine {
    // A tab is as wide as the terminal likes: the cut would miss the edge.
    let line = clean_output_text(line).replace('\t', "    ");
    ToolLine { tone: Some(Tone::Dim), text: cut_line_to_row_limit(&format!("  │ {line}"), columns) }
}

/// How much of an output is shown: what a command says matters more than a file that was read.
#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn tool_row_limit(kind: ToolKind, failed: bool) -> RowLimit {
    match kind {
        _ if failed => RowLimit { head: 10, tail: 15 },
        ToolKind::Execute => RowLimit { head: 10, tail: 10 },
        ToolKind::Read | ToolKind::Edit | ToolKind::Think | ToolKind::SwitchMode => RowLimit { head: 0, tail: 0 },
        ToolKind::Search | ToolKind::Fetch => RowLimit { head: 5, tail: 0 },
        _ => RowLimit { head: 8, tail: 4 },
    }
}

/// The output, and in one line how the call ended.
fn split_tool_ending(call: &OpenCall, exit_code: Option<i64>, failed: bool, changed: bool) -> (String, String) {
    let text = call.text.trim_end();
    let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let bracketed = last.strip_prefix('[').and_then(|last| last.strip_suffix(']'));
    match (call.kind, exit_code, bracketed) {
        (ToolKind::Execute, Some(code), Some(told)) if told == format!("exit code {code}") || told == "no output" => {
            (before.to_owned(), format!("exit code {code}"))
        }
        (ToolKind::Execute, Some(code), _) => (text.to_owned(), format!("exit code {code}")),
        (ToolKind::Execute, None, Some(told)) => (before.to_owned(), told.to_owned()),
        _ if failed && !text.contains('\n') && !text.is_empty() => (String::new(), text.to_owned()),
        _ if failed => (text.to_owned(), "failed".to_owned()),
        _ if changed => (String::new(), text.lines().next().unwrap_or("changed").to_owned()),
        (ToolKind::Read, ..) => (String::new(), format!("{} lines", text.lines().count())),
        _ => (text.to_owned(), "done".to_owned()),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn tool_output_text(content: &[ToolCallContent]) -> String {
    let texts = content.iter().filter_map(|content| match content {
        ToolCallContent::Content(content) => match &content.content {
            ContentBlock::Text(text) => Some(text.text.clone()),
            ContentBlock::Image(image) => Some(format!("[{}]", image.mime_type)),
            ContentBlock::Audio(audio) => Some(format!("[{}]", audio.mime_type)),
            _ => None,
        },
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn tool_content_diff(content: &ToolCallContent) -> Option<&Diff> {
    match content {
        ToolCallContent::Diff(diff) => Some(diff),
        _ => None,
    }
}

fn tool_diff_rows(diff: &Diff, style: Style) -> Vec<ToolLine> {
    let lines = diff_lines(diff.old_text.as_deref().unwrap_or_default(), &diff.new_text);
    let hidden = lines.len().saturating_sub(MAX_DIFF_LINES);
    let shown = lines.iter().take(MAX_DIFF_LINES);
    let mut rows: Vec<ToolLine> =
        shown.map(|line| ToolLine { tone: None, text: format!("  {}", line.painted(style)) }).collect();
    if hidden > 0 {
        rows.push(ToolLine { tone: Some(Tone::Dim), text: format!("  … {hidden} more lines") });
    }
    rows
}
