//! The terminal in raw mode: finished lines go into the scrollback, the rows below them are drawn again and again.

use std::io::{self, Write};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::view::View;
use crate::terminal::wrap::wrapped_width;

/// What is drawn between these two appears at once, where the terminal knows how.
const BEGIN_UPDATE: &str = "\x1b[?2026h";
const END_UPDATE: &str = "\x1b[?2026l";

/// Between these two a pasted text is told from a typed one.
const BEGIN_PASTES: &str = "\x1b[?2004h";
const END_PASTES: &str = "\x1b[?2004l";

/// The terminal in raw mode, until it is dropped.
///
/// Nothing but the rows of the last view is ever drawn over: what stands above them belongs to the scrollback.
pub(super) struct ChatScreen {
    /// How the terminal was before.
    before: Termios,
    drawn: View,
    columns: usize,
    /// The terminal broke the rows anew: they are drawn even if they are the same.
    torn: bool,
}

impl ChatScreen {
    pub(super) fn open() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let screen = Self { before, drawn: View::default(), columns: screen_size().0, torn: false };
        screen.enter()?;
        Ok(screen)
    }

    /// Columns and rows as they are now. When the terminal has another width its rows were broken anew, and the cursor
    /// moved with them: what is drawn next must know, so ask before every drawing.
    pub(super) fn measure(&mut self) -> (usize, usize) {
        let (columns, rows) = screen_size();
        self.torn |= columns != self.columns;
        self.columns = columns;
        (columns.max(20), rows.max(4))
    }

    /// Prints lines for good and draws the view below them.
    pub(super) fn draw(&mut self, lines: &[String], view: View) -> io::Result<()> {
        if lines.is_empty() && view == self.drawn && !std::mem::take(&mut self.torn) {
            return Ok(());
        }
        let mut text = String::from(BEGIN_UPDATE);
        text.push_str(&self.erase_text());
        for line in lines {
            text.push_str(line);
            text.push_str("\r\n");
        }
        text.push_str(&view.rows.join("\r\n"));
        let below = view.rows.len().saturating_sub(view.cursor.0 + 1);
        text.push_str(&screen_up(below));
        text.push('\r');
        if view.cursor.1 > 0 {
            text.push_str(&format!("\x1b[{}C", view.cursor.1));
        }
        text.push_str(END_UPDATE);
        self.drawn = view;
        print_to_screen(&text)
    }

    /// Clears everything that can be seen and draws the next view from the top.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.drawn = View::default();
        print_to_screen("\x1b[2J\x1b[H")
    }

    /// Gives the terminal back, stops this process, and takes the terminal again when it goes on.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.erase()?;
        self.leave()?;
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)?;
        self.enter()
    }

    /// Keys come one by one and are not printed.
    fn enter(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        print_to_screen(BEGIN_PASTES)
    }

    fn leave(&self) -> io::Result<()> {
        print_to_screen(END_PASTES)?;
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &self.before)?)
    }

    fn erase(&mut self) -> io::Result<()> {
        let text = self.erase_text();
        self.drawn = View::default();
        print_to_screen(&text)
    }

    /// To the first row of the last view, and everything from there on is gone.
    fn erase_text(&self) -> String {
        let above = &self.drawn.rows[..self.drawn.cursor.0.min(self.drawn.rows.len())];
        let rows: usize = above.iter().map(|row| self.height(wrapped_width(row))).sum();
        // The cursor's own row may have been broken before it.
        let own = self.drawn.cursor.1 / self.columns.max(1);
        format!("{}\r\x1b[J", screen_up(rows + own))
    }

    /// Rows that a row takes since the terminal was made narrower.
    fn height(&self, width: usize) -> usize {
        width.div_ceil(self.columns.max(1)).max(1)
    }
}

impl Drop for ChatScreen {
    fn drop(&mut self) {
        // If even this fails there is nobody to tell.
        self.erase().and_then(|()| self.leave()).ok();
    }
}

fn screen_up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}

fn screen_size() -> (usize, usize) {
    let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
}

fn print_to_screen(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
