//! A sign of life while nothing else is printed: what is waited for, and for how long. On a terminal only.

use std::time::{Duration, Instant};

use super::row_limit::cut_line_to_row_limit;
use crate::output::{Output, Tone, clean_output_text};

/// How often it turns.
pub(crate) const TICK: Duration = Duration::from_millis(120);

/// Nothing is drawn before it has been quiet for so long: quick answers do not flicker.
const QUIET: Duration = Duration::from_millis(400);

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Draws over its own line and takes it away before anything else is printed.
#[derive(Debug)]
pub(crate) struct Spinner {
    output: Output,
    since: Instant,
    turn: usize,
    drawn: bool,
}

impl Spinner {
    pub(crate) fn new(output: Output) -> Self {
        Self { output, since: Instant::now(), turn: 0, drawn: false }
    }

    /// True if there is a terminal to draw on.
    pub(crate) fn can_draw(&self) -> bool {
        self.output.error_style().is_terminal()
    }

    /// Shows what is waited for, if it has been quiet.
    pub(crate) fn draw(&mut self, waits_for: &str) {
        let waited = self.since.elapsed();
        if !self.can_draw() || waited < QUIET {
            return;
        }
        self.turn = (self.turn + 1) % FRAMES.len();
        let text =
            cut_line_to_row_limit(&spinner_text(self.turn, waits_for, waited), self.output.columns().saturating_sub(1));
        self.output.aside(&format!("\r\x1b[K{}", self.output.error_style().paint(Tone::Dim, &text)));
        self.drawn = true;
    }

    /// Takes it away: something else is printed.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.output.aside("\r\x1b[K");
        }
    }

    /// Something happened: it is quiet from now on.
    pub(crate) fn restart(&mut self) {
        self.clear();
        self.since = Instant::now();
    }
}

/// What is waited for and for how long, behind a sign that turns.
pub(crate) fn spinner_text(turn: usize, waits_for: &str, waited: Duration) -> String {
    format!("{} {} · {}", FRAMES[turn % FRAMES.len()], clean_output_text(waits_for), spinner_elapsed(waited))
}

/// A span of time for people.
pub(crate) fn spinner_elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        let spans = [3, 75, 3_720].map(|seconds| spinner_elapsed(Duration::from_secs(seconds)));
        assert_eq!(spans, ["3 s", "1 min 15 s", "1 h 2 min"]);
    }
}
