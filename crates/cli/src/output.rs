//! The only place that prints: results on stdout, everything else on stderr, colours only on a terminal.

use std::io::{self, IsTerminal, Write};

use gander_domain::sanitize;

/// Where a command prints, and how.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    out: Style,
    err: Style,
}

/// How one stream is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// With colours.
    Colour,
    /// A terminal of somebody who wants none.
    Plain,
    /// Not a terminal.
    Piped,
}

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tone {
    /// Beside the point.
    Dim,
    /// The point.
    Bold,
    /// Went well.
    Good,
    /// Needs a look.
    Warn,
    /// Went wrong.
    Bad,
    /// Source code.
    Code,
}

impl Output {
    /// The process's own streams.
    pub fn of_process(no_color: bool) -> Self {
        let style = |terminal| match (terminal, no_color) {
            (false, _) => Style::Piped,
            (true, true) => Style::Plain,
            (true, false) => Style::Colour,
        };
        Self { out: style(io::stdout().is_terminal()), err: style(io::stderr().is_terminal()) }
    }

    /// How stdout is written.
    pub fn style(self) -> Style {
        self.out
    }

    /// How stderr is written.
    pub fn error_style(self) -> Style {
        self.err
    }

    /// How many columns the terminal has; where there is none, as many as people like to read.
    pub fn columns(self) -> usize {
        const USUAL: usize = 100;
        let size = rustix::termios::tcgetwinsize(io::stderr()).or_else(|_| rustix::termios::tcgetwinsize(io::stdout()));
        size.map(|size| usize::from(size.ws_col)).ok().filter(|columns| *columns > 0).unwrap_or(USUAL)
    }

    /// A piece of a result, at once.
    pub fn piece(self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// A line of a result.
    pub fn line(self, text: &str) -> io::Result<()> {
        self.piece(&format!("{text}\n"))
    }

    /// A line for the person at the terminal, apart from any result.
    pub fn note(self, text: &str) {
        self.aside(&format!("{text}\n"));
    }

    /// A piece for the person at the terminal. If even stderr is gone there is nobody to tell.
    pub fn aside(self, text: &str) {
        let mut err = io::stderr().lock();
        err.write_all(text.as_bytes()).and_then(|()| err.flush()).ok();
    }

    /// Why the command failed.
    pub fn failure(self, message: &str) {
        self.note(&format!("{} {message}", self.err.paint(Tone::Bad, "gander:")));
    }
}

impl Style {
    /// The text in this tone.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match (self, tone) {
            (Self::Plain | Self::Piped, _) => return text.to_owned(),
            (Self::Colour, Tone::Dim) => "2",
            (Self::Colour, Tone::Bold) => "1",
            (Self::Colour, Tone::Good) => "32",
            (Self::Colour, Tone::Warn) => "33",
            (Self::Colour, Tone::Bad) => "31",
            (Self::Colour, Tone::Code) => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// True for a terminal.
    pub fn is_terminal(self) -> bool {
        self != Self::Piped
    }
}

/// Foreign text for a terminal: nothing in it can move the cursor, hide or reorder what a person sees.
pub fn clean_output_text(text: &str) -> String {
    text.chars().filter(|c| !is_hostile_output_char(*c)).collect()
}

/// Foreign text that a person decides about: what would be dropped from it is shown instead.
pub fn reveal_output_text(text: &str) -> String {
    text.chars().fold(String::new(), |mut shown, c| {
        if sanitize::is_deceptive_char(c) {
            shown.extend(c.escape_unicode())
        } else {
            shown.push(c)
        }
        shown
    })
}

fn is_hostile_output_char(c: char) -> bool {
    let bidi = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}');
    let invisible = matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    bidi || invisible || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_play_tricks() {
        assert_eq!(clean_output_text("a\x1b[2Jb\r\u{202e}c\u{200b}\u{9b}d\n\te"), "a[2Jbcd\n\te");
        assert_eq!(clean_output_text("é 漢字 👩"), "é 漢字 👩");
        assert_eq!(reveal_output_text("rm \u{202e}x\r\n"), "rm \\u{202e}x\\u{d}\n");
    }

    #[test]
    fn colours_are_for_terminals() {
        assert_eq!(Style::Piped.paint(Tone::Bad, "x"), "x");
        assert_eq!(Style::Plain.paint(Tone::Bad, "x"), "x");
        assert_eq!(Style::Colour.paint(Tone::Bad, "x"), "\x1b[31mx\x1b[0m");
    }
}
