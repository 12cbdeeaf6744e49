//! A prompt for a session in which a turn runs already: steer it, queue behind it, or wait for its end.

use clap::ValueEnum;

/// What a prompt does if a turn runs in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum IfBusy {
    /// Hand the prompt to the running turn
    Steer,
    /// Queue the prompt; it runs when the turn has ended
    Queue,
    /// Follow the turn to its end, then send the prompt
    Wait,
    /// Fail
    Refuse,
}

/// What a person can do about it.
pub(crate) const CHOICES: &str = "  s) steer: hand your prompt to the running turn
  q) queue: run your prompt when the turn has ended
  w) wait: follow the turn, then send your prompt
  l) leave";

/// What stands before the cursor.
pub(crate) const PROMPT: &str = "[s/q/w/l] > ";

/// What a typed line means; `None` if it means nothing, and the inner one if it means to leave.
pub(crate) fn read_busy_choice(line: &str) -> Option<Option<IfBusy>> {
    match line.trim().to_lowercase().as_str() {
        "s" | "steer" | "1" => Some(Some(IfBusy::Steer)),
        "q" | "queue" | "2" => Some(Some(IfBusy::Queue)),
        "w" | "wait" | "3" => Some(Some(IfBusy::Wait)),
        "l" | "leave" | "4" => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_words_and_numbers_choose() {
        assert_eq!(
            [read_busy_choice("s"), read_busy_choice(" Queue "), read_busy_choice("4"), read_busy_choice("x")],
            [Some(Some(IfBusy::Steer)), Some(Some(IfBusy::Queue)), Some(None), None]
        );
    }
}
