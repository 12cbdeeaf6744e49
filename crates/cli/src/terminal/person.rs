//! The person at the terminal: one reader of stdin for the whole command.

use std::io::{self, BufRead, IsTerminal};

use tokio::sync::mpsc;

/// The person at the terminal, if there is one.
pub(crate) struct Person {
    lines: mpsc::Receiver<String>,
}

impl Person {
    /// Listens to stdin, if a person sits there.
    pub(crate) fn at_terminal() -> Option<Self> {
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

    /// Drops what was typed before anything was asked: it is no answer.
    pub(crate) fn drop_typed(&mut self) {
        while self.lines.try_recv().is_ok() {}
    }

    /// The next line; `None` after ctrl-d.
    pub(crate) async fn line(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
