//! Questions at the terminal: one reader of stdin for the whole command.

use std::io::{self, BufRead, IsTerminal};

use gander_domain::sanitize;
use gander_wire::acp::schema::{PermissionOption, PermissionOptionKind, ToolCallUpdate};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::output::reveal;

/// Lines of a question that are shown.
const DETAIL_LINES: usize = 40;

/// The person at the terminal, if there is one.
pub(super) struct Person {
    lines: mpsc::Receiver<String>,
}

impl Person {
    /// Listens to stdin, if a person sits there.
    pub(super) fn at_terminal() -> Option<Self> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let (sender, lines) = mpsc::channel(1);
        // Blocks in a read until the process ends: nothing waits for it.
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Some(Self { lines })
    }

    /// Forgets what was typed before anything was asked.
    pub(super) fn forget(&mut self) {
        while self.lines.try_recv().is_ok() {}
    }

    /// The next line; `None` after ctrl-d.
    pub(super) async fn line(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}

/// Exactly what would be done, as far as it fits on a screen; what does not fit is counted.
pub(super) fn detail(tool: &ToolCallUpdate) -> String {
    let Some(Value::Object(arguments)) = &tool.fields.raw_input else { return String::new() };
    let texts = arguments.iter().map(|(name, value)| match (sanitize::visible_line(name), value) {
        // Behind a bar: a line of a text is not taken for another argument.
        (name, Value::String(text)) if text.contains('\n') => format!("{name}:\n  | {}", text.replace('\n', "\n  | ")),
        (name, Value::String(text)) => format!("{name}: {text}"),
        (name, Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            format!("{name}: {value}")
        }
    });
    let whole = reveal(&texts.collect::<Vec<_>>().join("\n"));
    let lines: Vec<&str> = whole.lines().collect();
    let shown = lines.iter().take(DETAIL_LINES).map(|line| format!("    {line}\n")).collect::<String>();
    match lines.len().saturating_sub(DETAIL_LINES) {
        0 => shown,
        hidden => format!("{shown}    … and {hidden} more lines\n"),
    }
}

/// The choices as a person sees them.
pub(super) fn menu(options: &[PermissionOption]) -> String {
    let choices = options.iter().zip(1..).map(|(option, number)| format!("  {number}) {}", option.name));
    choices.collect::<Vec<_>>().join("\n")
}

/// The choice that a line means: its number, or the beginning of its name.
pub(super) fn choice<'a>(options: &'a [PermissionOption], line: &str) -> Option<&'a PermissionOption> {
    let line = line.trim().to_lowercase();
    if let Ok(number) = line.parse::<usize>() {
        return number.checked_sub(1).and_then(|index| options.get(index));
    }
    let mut fitting = options.iter().filter(|option| !line.is_empty() && option.name.to_lowercase().starts_with(&line));
    let first = fitting.next();
    first.filter(|_| fitting.next().is_none())
}

/// The choice that says no, for when nobody can be asked.
pub(super) fn refusal(options: &[PermissionOption]) -> Option<&PermissionOption> {
    options.iter().find(|option| option.kind == PermissionOptionKind::RejectOnce)
}

#[cfg(test)]
mod tests {
    use gander_wire::acp::schema::ToolCallUpdateFields;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_decided_about_is_shown_whole_or_counted() {
        let asked = |arguments| detail(&ToolCallUpdate::new("1", ToolCallUpdateFields::new().raw_input(arguments)));
        assert_eq!(asked(json!({ "command": "rm \u{202e}x", "time": 3 })), "    command: rm \\u{202e}x\n    time: 3\n");
        let long = asked(json!({ "content": "line\n".repeat(60) }));
        assert_eq!((long.lines().count(), long.lines().last()), (41, Some("    … and 22 more lines")));
        assert_eq!(asked(json!("text")), "");
        let forged = asked(json!({ "a": "x\ncommand: ls", "b\nc": 1 }));
        assert_eq!(forged, "    a:\n      | x\n      | command: ls\n    b␊c: 1\n");
    }

    fn options() -> Vec<PermissionOption> {
        vec![
            PermissionOption::new("a", "Allow once", PermissionOptionKind::AllowOnce),
            PermissionOption::new("b", "Allow always", PermissionOptionKind::AllowAlways),
            PermissionOption::new("c", "Reject", PermissionOptionKind::RejectOnce),
        ]
    }

    #[test]
    fn a_number_or_an_unambiguous_beginning_chooses() {
        let options = options();
        let chosen = |line: &str| choice(&options, line).map(|option| option.option_id.0.to_string());
        assert_eq!(chosen(" 1 "), Some("a".into()));
        assert_eq!(chosen("allow al"), Some("b".into()));
        assert_eq!(chosen("r"), Some("c".into()));
        for nonsense in ["", "0", "4", "allow", "yes", "-1"] {
            assert_eq!(chosen(nonsense), None, "{nonsense}");
        }
        assert_eq!(refusal(&options).map(|option| option.name.as_str()), Some("Reject"));
    }
}
