//! What is heard of a session, for people: the answer on stdout, everything around it on stderr.

use std::collections::HashMap;

use gander_wire::acp::client::ShownUpdate;
use gander_wire::acp::schema::{PlanEntryStatus, SessionUpdate, ToolCallStatus};

use crate::output::{Style, Tone, clean};

/// Remembers what is open, so that every line begins where a line should.
#[derive(Debug)]
pub(super) struct TerminalView {
    out: Style,
    err: Style,
    open: Open,
    titles: HashMap<String, String>,
}

/// A piece of text and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The answer.
    Out(String),
    /// What is around it.
    Err(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Text,
    Thought,
}

impl TerminalView {
    pub(super) fn new(out: Style, err: Style) -> Self {
        Self { out, err, open: Open::Nothing, titles: HashMap::new() }
    }

    /// Shows what was heard.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    pub(super) fn show_update(&mut self, heard: &ShownUpdate) -> Vec<Piece> {
        match heard {
            ShownUpdate::Agent(text) => self.text(text),
            ShownUpdate::Thought(text) => self.thought(text),
            ShownUpdate::User(text) => self.line(Tone::Bold, &format!("› {text}")),
            ShownUpdate::Tool(call) => {
                self.titles.insert(call.tool_call_id.0.to_string(), call.title.clone());
                self.line(Tone::Dim, &format!("• {}", call.title))
            }
            ShownUpdate::ToolChanged(update) => {
                let id = update.tool_call_id.0.to_string();
                if let Some(title) = &update.fields.title {
                    self.titles.insert(id.clone(), title.clone());
                }
                let title = self.titles.get(&id).cloned().unwrap_or_default();
                match update.fields.status {
                    Some(ToolCallStatus::Completed) if title == "Result" && update.fields.raw_output.is_some() => {
                        self.result(update.fields.raw_output.as_ref())
                    }
                    Some(ToolCallStatus::Completed) => self.line(Tone::Good, &format!("✓ {title}")),
                    Some(ToolCallStatus::Failed) => self.line(Tone::Bad, &format!("✗ {title}")),
                    _ => Vec::new(),
                }
            }
            ShownUpdate::Plan(plan) => {
                let items = plan.entries.iter().map(|item| format!("  {} {}", mark(&item.status), item.content));
                self.line(Tone::Dim, &std::iter::once("plan".to_owned()).chain(items).collect::<Vec<_>>().join("\n"))
            }
            ShownUpdate::Content(_) => self.line(Tone::Dim, "[content that is no text]"),
            ShownUpdate::Other(update) => match &**update {
                SessionUpdate::Notice(notice) => {
                    let detail = notice.description.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
                    self.line(Tone::Warn, &format!("! {}{detail}", notice.title))
                }
                _ => Vec::new(),
            },
            ShownUpdate::Title(_) | ShownUpdate::Mode(_) | ShownUpdate::Usage { .. } => Vec::new(),
        }
    }

    /// The result of a recipe is the answer.
    fn result(&mut self, result: Option<&serde_json::Value>) -> Vec<Piece> {
        let mut pieces = self.close();
        let text = result.and_then(|result| serde_json::to_string_pretty(result).ok()).unwrap_or_default();
        pieces.push(Piece::Out(format!("{text}\n")));
        pieces
    }

    /// A line of its own around the answer.
    pub(super) fn line(&mut self, tone: Tone, text: &str) -> Vec<Piece> {
        let mut pieces = self.close();
        let text = if self.err.is_terminal() { clean(text) } else { text.to_owned() };
        pieces.push(Piece::Err(format!("{}\n", self.err.paint(tone, &text))));
        pieces
    }

    /// Ends what is open.
    pub(super) fn close(&mut self) -> Vec<Piece> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => Vec::new(),
            Open::Text => vec![Piece::Out("\n".to_owned())],
            Open::Thought => vec![Piece::Err("\n".to_owned())],
        }
    }

    fn text(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = if self.open == Open::Thought { self.close() } else { Vec::new() };
        if !text.is_empty() {
            self.open = if text.ends_with('\n') { Open::Nothing } else { Open::Text };
            pieces.push(Piece::Out(if self.out.is_terminal() { clean(text) } else { text.to_owned() }));
        }
        pieces
    }

    fn thought(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = if self.open == Open::Text { self.close() } else { Vec::new() };
        if !text.is_empty() {
            self.open = if text.ends_with('\n') { Open::Nothing } else { Open::Thought };
            let text = if self.err.is_terminal() { clean(text) } else { text.to_owned() };
            pieces.push(Piece::Err(self.err.paint(Tone::Dim, &text)));
        }
        pieces
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn mark(status: &PlanEntryStatus) -> &'static str {
    match status {
        PlanEntryStatus::Completed => "✓",
        PlanEntryStatus::InProgress => "▸",
        _ => "·",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use gander_wire::acp::schema::{ToolCall, ToolCallUpdate, ToolCallUpdateFields};

    use super::*;

    fn shown(style: Style, all: &[ShownUpdate]) -> String {
        let mut view = TerminalView::new(style, style);
        let mut pieces: Vec<Piece> = all.iter().flat_map(|heard| view.show_update(heard)).collect();
        pieces.extend(view.close());
        let text = |piece| match piece {
            Piece::Out(text) => format!("out {text:?}\n"),
            Piece::Err(text) => format!("err {text:?}\n"),
        };
        pieces.into_iter().map(text).collect()
    }

    #[test]
    fn the_answer_is_apart_from_what_is_around_it() {
        let done = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
        let all = [
            ShownUpdate::Thought("hm".into()),
            ShownUpdate::Agent("let me ".into()),
            ShownUpdate::Agent("look".into()),
            ShownUpdate::Tool(Box::new(ToolCall::new("1", "read a.txt"))),
            ShownUpdate::ToolChanged(Box::new(ToolCallUpdate::new("1", done))),
            ShownUpdate::Agent("it is empty\n".into()),
        ];
        expect![[r#"
            err "hm"
            err "\n"
            out "let me "
            out "look"
            out "\n"
            err "• read a.txt\n"
            err "✓ read a.txt\n"
            out "it is empty\n"
        "#]]
        .assert_eq(&shown(Style::Piped, &all));
    }

    #[test]
    fn a_terminal_is_safe_from_foreign_text() {
        let all =
            [ShownUpdate::Agent("a\x1b[2Jb".into()), ShownUpdate::Tool(Box::new(ToolCall::new("1", "rm \u{202e}x")))];
        expect![[r#"
            out "a[2Jb"
            out "\n"
            err "• rm x\n"
        "#]]
        .assert_eq(&shown(Style::Plain, &all));
    }
}
