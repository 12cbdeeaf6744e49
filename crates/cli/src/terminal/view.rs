//! What is heard of a session, for people: the answer on stdout, everything around it on stderr.

use gander_wire::acp::client::ShownUpdate;
use gander_wire::acp::schema::{
    ContentBlock, ContentChunk, PlanEntryStatus, SessionUpdate, ToolCallStatus, ToolCallUpdate,
};
use serde_json::Value;

use super::tool_log::{ToolLine, ToolLog};
use crate::output::{Output, Style, Tone, clean_output_text};

/// Remembers what is open, so that every line begins where a line should.
#[derive(Debug)]
pub(crate) struct TerminalView {
    out: Style,
    err: Style,
    columns: usize,
    open: Open,
    tools: ToolLog,
    answer: AnswerKind,
    result: Option<Value>,
}

/// What goes to stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// What the agent says.
    Text,
    /// Only the result of a recipe, once its checks have passed.
    Result,
}

/// A piece of text and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
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
    pub(crate) fn new(output: Output, answer: AnswerKind) -> Self {
        Self::with_styles(output.style(), output.error_style(), output.columns(), answer)
    }

    pub(crate) fn with_styles(out: Style, err: Style, columns: usize, answer: AnswerKind) -> Self {
        // Nobody looks at a pipe: nothing is cut there.
        let columns = if err.is_terminal() { columns } else { usize::MAX };
        Self { out, err, columns, open: Open::Nothing, tools: ToolLog::default(), answer, result: None }
    }

    /// Shows what was heard.
    pub(crate) fn show_update(&mut self, heard: &ShownUpdate) -> Vec<Piece> {
        match heard {
            ShownUpdate::Agent(text) => self.text(text),
            ShownUpdate::Thought(text) => self.thought(text),
            ShownUpdate::User(text) => self.line(Tone::Bold, &format!("› {text}")),
            ShownUpdate::Tool(call) => {
                let lines = self.tools.handle_call(call, self.columns);
                self.tool_lines(&lines)
            }
            ShownUpdate::ToolChanged(update) => self.tool_update(update),
            ShownUpdate::Plan(plan) => {
                let items =
                    plan.entries.iter().map(|item| format!("  {} {}", viewed_status_mark(&item.status), item.content));
                self.line(Tone::Dim, &std::iter::once("plan".to_owned()).chain(items).collect::<Vec<_>>().join("\n"))
            }
            ShownUpdate::Content(update) => self.line(Tone::Dim, &viewed_media_label(update)),
            ShownUpdate::Other(update) => self.other(update),
            ShownUpdate::Title(_) | ShownUpdate::Mode(_) | ShownUpdate::Usage { .. } => Vec::new(),
        }
    }

    /// The terminal has another width from now on.
    pub(crate) fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// Something else was printed: the next line of a tool says which call it is of.
    pub(crate) fn interrupt(&mut self) {
        self.tools.interrupt();
    }

    /// True if the cursor stands at the beginning of a line.
    pub(crate) fn is_at_line_start(&self) -> bool {
        self.open == Open::Nothing
    }

    /// What runs now, in a few words; `None` if only the model works.
    pub(crate) fn running(&self) -> Option<String> {
        let mut running = self.tools.running();
        let first = running.next()?;
        match running.count() {
            0 => Some(format!("running {first}")),
            more => Some(format!("running {first} and {more} more")),
        }
    }

    /// The result of a recipe, at the end of the turn.
    pub(crate) fn take_result(&mut self) -> Vec<Piece> {
        let mut pieces = self.close();
        pieces.extend(self.result.take().map(|result| viewed_result_piece(&result)));
        pieces
    }

    fn tool_update(&mut self, update: &ToolCallUpdate) -> Vec<Piece> {
        let title = update.fields.title.as_deref().or_else(|| self.tools.title(&update.tool_call_id.0));
        let result = viewed_recipe_result(title, update);
        if let Some(result) = result {
            self.result = Some(result.clone());
            return if self.answer == AnswerKind::Text { self.take_result() } else { Vec::new() };
        }
        let lines = self.tools.handle_update(update, self.err, self.columns);
        self.tool_lines(&lines)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    fn other(&mut self, update: &SessionUpdate) -> Vec<Piece> {
        match update {
            SessionUpdate::Notice(notice) => {
                let detail = notice.description.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
                self.line(Tone::Warn, &format!("! {}{detail}", notice.title))
            }
            _ => Vec::new(),
        }
    }

    fn tool_lines(&mut self, lines: &[ToolLine]) -> Vec<Piece> {
        if lines.is_empty() {
            return Vec::new();
        }
        let mut pieces = self.close();
        for ToolLine { tone, text } in lines {
            let text = match tone {
                Some(tone) => {
                    self.err.paint(*tone, &if self.err.is_terminal() { clean_output_text(text) } else { text.clone() })
                }
                None => text.clone(),
            };
            pieces.push(Piece::Err(format!("{text}\n")));
        }
        pieces
    }

    /// A line of its own around the answer.
    pub(crate) fn line(&mut self, tone: Tone, text: &str) -> Vec<Piece> {
        let mut pieces = self.close();
        self.tools.interrupt();
        let text = if self.err.is_terminal() { clean_output_text(text) } else { text.to_owned() };
        pieces.push(Piece::Err(format!("{}\n", self.err.paint(tone, &text))));
        pieces
    }

    /// Ends what is open.
    pub(crate) fn close(&mut self) -> Vec<Piece> {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => Vec::new(),
            Open::Text if self.answer == AnswerKind::Result => vec![Piece::Err("\n".to_owned())],
            Open::Text => vec![Piece::Out("\n".to_owned())],
            Open::Thought => vec![Piece::Err("\n".to_owned())],
        }
    }

    fn text(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = if self.open == Open::Thought { self.close() } else { Vec::new() };
        if !text.is_empty() {
            self.tools.interrupt();
            self.open = if text.ends_with('\n') { Open::Nothing } else { Open::Text };
            if self.answer == AnswerKind::Result {
                let text = if self.err.is_terminal() { clean_output_text(text) } else { text.to_owned() };
                pieces.push(Piece::Err(text));
                return pieces;
            }
            pieces.push(Piece::Out(if self.out.is_terminal() { clean_output_text(text) } else { text.to_owned() }));
        }
        pieces
    }

    fn thought(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = if self.open == Open::Text { self.close() } else { Vec::new() };
        if !text.is_empty() {
            self.tools.interrupt();
            self.open = if text.ends_with('\n') { Open::Nothing } else { Open::Thought };
            let text = if self.err.is_terminal() { clean_output_text(text) } else { text.to_owned() };
            pieces.push(Piece::Err(self.err.paint(Tone::Dim, &text)));
        }
        pieces
    }
}

/// The result that a recipe asked for, handed over by the tool of that name.
fn viewed_recipe_result<'a>(title: Option<&str>, update: &'a ToolCallUpdate) -> Option<&'a Value> {
    let done = update.fields.status == Some(ToolCallStatus::Completed);
    let named = title == Some("Result");
    update.fields.raw_output.as_ref().filter(|_| done && named)
}

fn viewed_result_piece(result: &Value) -> Piece {
    Piece::Out(format!("{}\n", serde_json::to_string_pretty(result).unwrap_or_default()))
}

/// What is no text, by its media type.
#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enums are open")]
fn viewed_media_label(update: &SessionUpdate) -> String {
    let (SessionUpdate::UserMessageChunk(ContentChunk { content, .. })
    | SessionUpdate::AgentMessageChunk(ContentChunk { content, .. })
    | SessionUpdate::AgentThoughtChunk(ContentChunk { content, .. })) = update
    else {
        return "[content]".to_owned();
    };
    match content {
        ContentBlock::Image(image) => format!("[{}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[{}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        ContentBlock::Resource(_) => "[attached file]".to_owned(),
        _ => "[content]".to_owned(),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
fn viewed_status_mark(status: &PlanEntryStatus) -> &'static str {
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
        let mut view = TerminalView::with_styles(style, style, 80, AnswerKind::Text);
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
            err "  ✓ done\n"
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
