//! A question as it stands on the screen: what would be done, whole or counted, and what can be answered.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gander_client::schema::{PermissionOption, PermissionOptionKind, ToolCallUpdate, ToolKind};
use gander_domain::sanitize;
use serde_json::{Map, Value};

use super::questions::RunQuestion;
use crate::output::{Style, Tone, reveal_output_text};
use crate::terminal::diff::diff_lines;

/// Lines of a question that are shown unless more are asked for.
const DETAIL_LINES: usize = 40;

/// A file that a change is compared with has at most so many bytes.
const MAX_COMPARED: u64 = 4 << 20;

/// The same where one key answers: a reason needs a key of its own.
pub(crate) fn question_keys_help() -> String {
    HELP.replace("  words    reject it, and tell the model why", "  r        reject it, and tell the model why")
}

/// What can be typed.
pub(crate) const HELP: &str = "  y        allow it, this once
  n        reject it
  a        always allow it: the option says what that covers
  1, 2, …  the option with this number
  v        show everything that would be done
  words    reject it, and tell the model why
  ctrl-c   cancel the turn";

/// How much of what would be done is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetailLimit {
    Screen,
    Whole,
}

/// The question in one line.
pub(crate) fn question_headline(question: &RunQuestion) -> String {
    let (tool, title) = (&question.tool, question.tool.fields.title.as_deref().unwrap_or("this"));
    let asks = match (tool.fields.kind, tool.fields.name.as_deref()) {
        (_, Some("propose_plan")) => "Approve this plan?".to_owned(),
        (Some(ToolKind::Edit), Some("edit" | "write")) => match question_argument(tool, "path") {
            Some(path) => format!("Allow edit of {path}?"),
            None => format!("Allow {title}?"),
        },
        (Some(ToolKind::Execute), Some("shell")) if question_has_network(tool) => {
            "Run this command with network access?".into()
        }
        (Some(ToolKind::Execute), Some("shell")) => "Run this command?".to_owned(),
        (Some(ToolKind::Fetch), Some("fetch")) => "Fetch this address?".to_owned(),
        // Questions of the server itself are whole sentences.
        (_, None) if title.contains('?') => title.to_owned(),
        (_, None) => format!("{title}?"),
        _ => format!("Allow {title}?"),
    };
    match question.subagent() {
        Some(agent) if !asks.starts_with(agent) => reveal_output_text(&format!("{agent}: {asks}")),
        Some(_) | None => reveal_output_text(&asks),
    }
}

/// Exactly what would be done, as far as it fits on a screen; what does not fit is counted.
pub(crate) fn question_detail(tool: &ToolCallUpdate, style: Style, limit: DetailLimit) -> String {
    let lines = question_detail_lines(tool, style);
    let most = if limit == DetailLimit::Whole { lines.len() } else { DETAIL_LINES };
    let shown = lines.iter().take(most).map(|line| format!("    {line}\n")).collect::<String>();
    match lines.len().saturating_sub(most) {
        0 => shown,
        hidden => format!("{shown}    … and {hidden} more lines (v shows them)\n"),
    }
}

/// The options as a person sees them, each whole.
#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
pub(crate) fn question_menu(options: &[PermissionOption]) -> String {
    let several = options.iter().filter(|option| option.kind == PermissionOptionKind::AllowAlways).count() > 1;
    let choices = options.iter().zip(1..).map(|(option, number)| {
        let letter = match option.kind {
            PermissionOptionKind::AllowOnce => " (y)",
            PermissionOptionKind::AllowAlways if !several => " (a)",
            PermissionOptionKind::RejectOnce => " (n)",
            _ => "",
        };
        format!("  {number}) {}{letter}", reveal_output_text(&option.name))
    });
    choices.collect::<Vec<_>>().join("\n")
}

/// What stands before the cursor.
pub(crate) fn question_prompt_line(options: &[PermissionOption]) -> String {
    let always = options.iter().any(|option| option.kind == PermissionOptionKind::AllowAlways);
    format!("[y/n/{}?] > ", if always { "a/" } else { "" })
}

/// After a line that means nothing.
pub(crate) fn question_try_again(options: &[PermissionOption]) -> String {
    format!("Enter y, n, 1–{}, or ? for help: ", options.len())
}

/// After "always" where there are several.
pub(crate) fn question_which_always(options: &[PermissionOption]) -> String {
    let numbers = options.iter().zip(1..).filter(|(option, _)| option.kind == PermissionOptionKind::AllowAlways);
    let numbers: Vec<String> = numbers.map(|(_, number)| number.to_string()).collect();
    format!("Which of them? Enter {}: ", numbers.join(" or "))
}

fn question_detail_lines(tool: &ToolCallUpdate, style: Style) -> Vec<String> {
    let Some(Value::Object(arguments)) = &tool.fields.raw_input else { return Vec::new() };
    match (tool.fields.name.as_deref(), arguments.get("old"), arguments.get("new"), arguments.get("content")) {
        (Some("edit"), Some(Value::String(old)), Some(Value::String(new)), _) => {
            let more = question_arguments_without(arguments, &["path", "old", "new"]);
            question_diff_text(&arguments["path"], old, new, style)
                .into_iter()
                .chain(question_argument_lines(&more))
                .collect()
        }
        (Some("write"), _, _, Some(Value::String(new))) => {
            let more = question_arguments_without(arguments, &["path", "content"]);
            let old = question_current_text(tool).unwrap_or_default();
            question_diff_text(&arguments["path"], &old, new, style)
                .into_iter()
                .chain(question_argument_lines(&more))
                .collect()
        }
        (Some("shell"), ..) => {
            let command = arguments.get("command").and_then(Value::as_str).unwrap_or_default();
            let shown = reveal_output_text(command);
            let command = shown.lines().map(|line| style.paint(Tone::Bold, &format!("$ {line}")));
            command.chain(question_argument_lines(&question_arguments_without(arguments, &["command"]))).collect()
        }
        _ => question_argument_lines(arguments),
    }
}

fn question_diff_text(path: &Value, old: &str, new: &str, style: Style) -> Vec<String> {
    let name = reveal_output_text(path.as_str().unwrap_or_default());
    let head = if old.is_empty() { format!("{name} (new)") } else { name };
    let lines = diff_lines(old, new);
    std::iter::once(style.paint(Tone::Bold, &head)).chain(lines.iter().map(|line| line.painted(style))).collect()
}

/// The file that would be replaced, as it is now: both sides of the question are on this machine.
fn question_current_text(tool: &ToolCallUpdate) -> Option<String> {
    let path = &tool.fields.locations.as_ref()?.first()?.path;
    let mut text = String::new();
    File::open(Path::new(path)).ok()?.take(MAX_COMPARED).read_to_string(&mut text).ok()?;
    Some(text)
}

fn question_argument_lines(arguments: &Map<String, Value>) -> Vec<String> {
    let texts = arguments.iter().map(|(name, value)| match (sanitize::sanitized_line(name), value) {
        // Behind a bar: a line of a text is not taken for another argument.
        (name, Value::String(text)) if text.contains('\n') => format!("{name}:\n  | {}", text.replace('\n', "\n  | ")),
        (name, Value::String(text)) => format!("{name}: {text}"),
        (name, Value::Array(items)) if !items.is_empty() && items.iter().all(Value::is_object) => {
            let items: Vec<String> = items.iter().map(|item| format!("  - {}", question_item_text(item))).collect();
            format!("{name}:\n{}", items.join("\n"))
        }
        (name, Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            format!("{name}: {value}")
        }
    });
    reveal_output_text(&texts.collect::<Vec<_>>().join("\n")).lines().map(str::to_owned).collect()
}

/// Steps of a plan are read, not parsed.
fn question_item_text(item: &Value) -> String {
    match item.as_object().map(|fields| (fields.len(), fields.get("text").and_then(Value::as_str))) {
        Some((1, Some(text))) => sanitize::sanitized_line(text),
        Some(_) | None => sanitize::sanitized_line(&item.to_string()),
    }
}

fn question_arguments_without(arguments: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    arguments.iter().filter(|(name, _)| !names.contains(&name.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn question_argument<'a>(tool: &'a ToolCallUpdate, name: &str) -> Option<&'a str> {
    tool.fields.raw_input.as_ref()?.get(name)?.as_str()
}

fn question_has_network(tool: &ToolCallUpdate) -> bool {
    tool.fields.raw_input.as_ref().is_some_and(|arguments| arguments["network"] == Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use gander_client::schema::ToolCallUpdateFields;
    use serde_json::json;

    use super::*;

    fn shown(fields: ToolCallUpdateFields) -> String {
        question_detail(&ToolCallUpdate::new("1", fields), Style::Piped, DetailLimit::Screen)
    }

    #[test]
    fn what_is_decided_about_is_shown_whole_or_counted() {
        let asked = |arguments| shown(ToolCallUpdateFields::new().raw_input(arguments));
        assert_eq!(asked(json!({ "command": "rm \u{202e}x", "time": 3 })), "    command: rm \\u{202e}x\n    time: 3\n");
        let long = asked(json!({ "content": "line\n".repeat(60) }));
        assert_eq!((long.lines().count(), long.lines().last()), (41, Some("    … and 22 more lines (v shows them)")));
        assert_eq!(asked(json!("text")), "");
        let forged = asked(json!({ "a": "x\ncommand: ls", "b\nc": 1 }));
        assert_eq!(forged, "    a:\n      | x\n      | command: ls\n    b␊c: 1\n");
    }

    #[test]
    fn an_edit_is_shown_as_a_diff_and_a_command_as_typed() {
        let edit = json!({ "path": "calc.py", "old": "return a - b\n", "new": "return a + b\n", "replace_all": true });
        let edit = ToolCallUpdateFields::new().name("edit".to_owned()).raw_input(edit);
        assert_eq!(shown(edit), "    calc.py\n    - return a - b\n    + return a + b\n    replace_all: true\n");
        let shell = json!({ "command": "echo a\nrm b", "network": true });
        let shell = ToolCallUpdateFields::new().name("shell".to_owned()).raw_input(shell);
        assert_eq!(shown(shell), "    $ echo a\n    $ rm b\n    network: true\n");
    }
}
