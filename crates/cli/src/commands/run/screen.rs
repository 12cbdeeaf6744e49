//! Where a turn is shown: pieces on the terminal or events as JSON, and a spinner while nothing comes.

use std::io;

use gander_client::ShownUpdate;
use serde_json::Value;

use super::events;
use crate::output::{Output, Tone};
use crate::terminal::spinner::Spinner;
use crate::terminal::view::{AnswerKind, Piece, TerminalView};

/// How events are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Where a turn is shown.
pub(crate) struct Screen {
    output: Output,
    format: Format,
    view: TerminalView,
    spinner: Spinner,
    /// What came while a question is on the screen: printing it would tear question and answer apart.
    held: Vec<ShownUpdate>,
    holding: bool,
}

impl Screen {
    pub(crate) fn new(output: Output, format: Format, answer: AnswerKind) -> Self {
        let (view, spinner) = (TerminalView::new(output, answer), Spinner::new(output));
        Self { output, format, view, spinner, held: Vec::new(), holding: false }
    }

    pub(crate) fn output(&self) -> Output {
        self.output
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Shows what happened, now or once the question on the screen is answered.
    pub(crate) fn show_update(&mut self, heard: ShownUpdate) -> io::Result<()> {
        if self.is_json() {
            return self.event(&events::update_event_json(&heard));
        }
        if self.holding {
            self.hold(heard);
            return Ok(());
        }
        let pieces = self.view.show_update(&heard);
        if pieces.is_empty() {
            return Ok(());
        }
        self.print(pieces)
    }

    /// A line around the answer, for people only.
    pub(crate) fn line(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        if self.is_json() {
            return Ok(());
        }
        let pieces = self.view.line(tone, text);
        self.print(pieces)
    }

    /// Text beside the answer, as it is.
    pub(crate) fn aside(&mut self, text: &str) {
        self.spinner.clear();
        self.output.aside(text);
    }

    pub(crate) fn event(&mut self, event: &Value) -> io::Result<()> {
        self.output.line(&event.to_string())
    }

    /// A question is on the screen from now on.
    pub(crate) fn hold_updates(&mut self) {
        self.holding = true;
    }

    /// The question is answered: what came meanwhile is shown.
    pub(crate) fn release_updates(&mut self) -> io::Result<()> {
        self.holding = false;
        self.spinner.restart();
        for heard in std::mem::take(&mut self.held) {
            self.show_update(heard)?;
        }
        Ok(())
    }

    /// Ends what is open, with the result of a recipe if there is one.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        let pieces = self.view.take_result();
        self.print(pieces)
    }

    /// Draws the spinner, where there is room for it.
    pub(crate) fn tick(&mut self, waits_for: &str) {
        if !self.is_json() && !self.holding && self.view.is_at_line_start() {
            let running = self.view.running();
            self.spinner.draw(running.as_deref().unwrap_or(waits_for));
        }
    }

    /// True if there is a spinner at all.
    pub(crate) fn has_spinner(&self) -> bool {
        !self.is_json() && self.spinner.can_draw()
    }

    fn print(&mut self, pieces: Vec<Piece>) -> io::Result<()> {
        self.spinner.restart();
        for piece in pieces {
            match piece {
                Piece::Out(text) => self.output.piece(&text)?,
                Piece::Err(text) => self.output.aside(&text),
            }
        }
        Ok(())
    }

    /// What a tool shows replaces what it showed before, so that a long question costs no memory.
    fn hold(&mut self, heard: ShownUpdate) {
        if let ShownUpdate::ToolChanged(change) = &heard
            && change.fields.status.is_none()
        {
            self.held.retain(|held| {
                !matches!(held, ShownUpdate::ToolChanged(before)
                    if before.tool_call_id == change.tool_call_id && before.fields.status.is_none())
            });
        }
        self.held.push(heard);
    }
}
