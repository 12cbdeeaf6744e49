//! What is said and done in a session as lines for the scrollback, and what of it still grows.

use gander_client::ShownUpdate;

use crate::output::{Style, Tone, clean_output_text};
use crate::terminal::markdown::MarkdownStream;
use crate::terminal::view::{AnswerKind, Piece, TerminalView};
use crate::terminal::wrap::wrap_text;

/// Lines of a session, in the order in which they happened.
#[derive(Debug)]
pub(super) struct Transcript {
    style: Style,
    columns: usize,
    view: TerminalView,
    markdown: MarkdownStream,
    /// The line of a thought that is not whole yet.
    thought: String,
    section: Section,
    /// Whether what the person typed here is shown again, or stands where it was typed.
    echo: Echo,
    /// Lines that are whole and were not taken yet.
    done: Vec<String>,
}

/// What becomes of the person's own prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Echo {
    Shown,
    /// The terminal has shown them when they were typed.
    Typed,
}

/// What was shown last: an empty line stands between two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Start,
    Prompt,
    Answer,
    Thought,
    Around,
}

impl Transcript {
    pub(super) fn new(style: Style, columns: usize, echo: Echo) -> Self {
        let mut view = TerminalView::with_styles(style, style, columns, AnswerKind::Text);
        view.set_columns(columns);
        let (markdown, thought) = (MarkdownStream::new(style), String::new());
        Self { style, columns, view, markdown, thought, section: Section::Start, echo, done: Vec::new() }
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    pub(super) fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
        self.view.set_columns(columns);
    }

    /// Shows what happened.
    pub(super) fn show(&mut self, heard: &ShownUpdate) {
        match heard {
            ShownUpdate::Agent(text) => {
                self.begin(Section::Answer);
                let lines = self.markdown.push(text, self.columns);
                self.done.extend(lines);
            }
            ShownUpdate::Thought(text) => self.think(text),
            ShownUpdate::User(text) => self.prompt(text),
            ShownUpdate::Tool(_)
            | ShownUpdate::ToolChanged(_)
            | ShownUpdate::Plan(_)
            | ShownUpdate::Content(_)
            | ShownUpdate::Title(_)
            | ShownUpdate::Mode(_)
            | ShownUpdate::Usage { .. }
            | ShownUpdate::Other(_) => {
                let pieces = self.view.show_update(heard);
                self.around(pieces);
            }
        }
    }

    /// What the person at this terminal said.
    pub(super) fn own_prompt(&mut self, text: &str) {
        match self.echo {
            Echo::Shown => self.prompt(text),
            Echo::Typed => {
                self.close();
                self.view.interrupt();
                self.section = Section::Prompt;
            }
        }
    }

    /// What a person said, here or elsewhere.
    fn prompt(&mut self, text: &str) {
        self.close();
        self.begin(Section::Prompt);
        for (index, line) in clean_output_text(text).lines().enumerate() {
            let line = format!("{} {line}", if index == 0 { "›" } else { " " });
            let rows = wrap_text(&line, self.columns, 2);
            self.done.extend(rows.iter().map(|row| self.style.paint(Tone::Bold, row)));
        }
        self.section = Section::Prompt;
    }

    /// A line around the conversation.
    pub(super) fn line(&mut self, tone: Tone, text: &str) {
        let pieces = self.view.line(tone, text);
        self.around(pieces);
    }

    /// Lines that are painted already.
    pub(super) fn painted(&mut self, lines: impl IntoIterator<Item = String>) {
        self.close();
        self.begin(Section::Around);
        self.done.extend(lines);
    }

    /// Ends what is open: nothing is added to it any more.
    pub(super) fn close(&mut self) {
        let lines = self.markdown.finish(self.columns);
        self.done.extend(lines);
        let thought = std::mem::take(&mut self.thought);
        if !thought.is_empty() {
            let rows = self.thought_rows(&thought);
            self.done.extend(rows);
        }
    }

    /// Lines that are whole since the last time.
    pub(super) fn take_done(&mut self) -> Vec<String> {
        std::mem::take(&mut self.done)
    }

    /// What still grows, as it looks now.
    pub(super) fn open_lines(&self) -> Vec<String> {
        match self.thought.is_empty() {
            true => self.markdown.open_lines(self.columns),
            false => self.thought_rows(&self.thought),
        }
    }

    /// The tools that run now, in a few words.
    pub(super) fn running(&self) -> Option<String> {
        self.view.running()
    }

    fn think(&mut self, text: &str) {
        self.begin(Section::Thought);
        for piece in text.split_inclusive('\n') {
            self.thought.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.thought);
                let rows = self.thought_rows(line.trim_end());
                self.done.extend(rows);
            }
        }
    }

    fn thought_rows(&self, line: &str) -> Vec<String> {
        let rows = wrap_text(&format!("  {}", clean_output_text(line)), self.columns, 2);
        rows.iter().map(|row| self.style.paint(Tone::Dim, row)).collect()
    }

    fn around(&mut self, pieces: Vec<Piece>) {
        if pieces.is_empty() {
            return;
        }
        self.close();
        self.begin(Section::Around);
        for piece in pieces {
            let (Piece::Out(text) | Piece::Err(text)) = piece;
            self.done.extend(text.trim_end_matches('\n').split('\n').flat_map(|line| wrap_text(line, self.columns, 4)));
        }
    }

    fn begin(&mut self, section: Section) {
        let same = self.section == section && section != Section::Prompt;
        if same {
            return;
        }
        self.close();
        if self.section != Section::Start {
            self.done.push(String::new());
        }
        if section != Section::Around {
            self.view.interrupt();
        }
        self.section = section;
    }
}

#[cfg(test)]
mod tests {
    use gander_client::schema::{ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields};

    use super::*;

    #[test]
    fn what_a_tool_of_others_is_given_is_shown() {
        let mut transcript = Transcript::new(Style::Plain, 40, Echo::Shown);
        let call =
            ToolCall::new("1", "weather · forecast").raw_input(serde_json::json!({ "city": "Bonn\n", "days": 3 }));
        transcript.show(&ShownUpdate::Tool(Box::new(call)));
        assert_eq!(transcript.take_done(), ["• weather · forecast", "  city: Bonn␊", "  days: 3"]);
    }

    #[test]
    fn sections_stand_apart_and_open_text_is_not_done() {
        let mut transcript = Transcript::new(Style::Plain, 40, Echo::Shown);
        transcript.own_prompt("hello\nthere");
        transcript.show(&ShownUpdate::Thought("hm\nwell".into()));
        transcript.show(&ShownUpdate::Agent("I will **look**".into()));
        assert_eq!(transcript.open_lines(), ["I will look"]);
        assert_eq!(transcript.take_done(), ["› hello", "  there", "", "  hm", "  well", ""]);
        transcript.show(&ShownUpdate::Tool(Box::new(ToolCall::new("1", "read a.txt"))));
        let done = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
        transcript.show(&ShownUpdate::ToolChanged(Box::new(ToolCallUpdate::new("1", done))));
        transcript.show(&ShownUpdate::Agent("empty\n".into()));
        assert_eq!(transcript.take_done(), ["I will look", "", "• read a.txt", "  ✓ done", "", "empty"]);
        assert!(transcript.open_lines().is_empty());
    }
}
