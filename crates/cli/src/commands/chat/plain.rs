//! The chat in whole lines: nothing is drawn twice and the cursor is never moved, for screen readers and simple terminals.

use gander_domain::sanitize;
use tokio::signal::unix::{SignalKind, signal};

use super::conversation::{Conversation, Work};
use super::conversation_questions::Answered;
use super::driver::ChatDriver;
use super::effects::Reply;
use super::picker::{Pick, PickerItem};
use crate::commands::Exit;
use crate::commands::run::question_text;
use crate::commands::session_id::short_session_id_length;
use crate::output::{Output, Style, Tone};
use crate::terminal::person::Person;

/// Until the person leaves.
pub(super) async fn run_plain(
    mut driver: ChatDriver,
    conversation: Conversation,
    person: Person,
    output: Output,
) -> anyhow::Result<Exit> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut front = PlainFront { conversation, output, asked: None, prompted: false, leaving: false };
    front.conversation.handle_connected();
    let mut person = Some(person);
    loop {
        if let Some(exit) = front.settle(&mut driver)? {
            return Ok(exit);
        }
        let line = async {
            match &mut person {
                Some(person) => person.line().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = driver.next_event() => driver.feed(&mut front.conversation, event),
            line = line => match line {
                Some(line) => front.handle_line(&line)?,
                None => {
                    person = None;
                    front.conversation.leave();
                }
            },
            _ = interrupts.recv() => front.handle_interrupt()?,
        }
    }
}

struct PlainFront {
    conversation: Conversation,
    output: Output,
    /// The question that was printed last.
    asked: Option<String>,
    /// The mark that says "type here" stands on the last line.
    prompted: bool,
    leaving: bool,
}

impl PlainFront {
    /// Prints what is new and does what is wanted.
    fn settle(&mut self, driver: &mut ChatDriver) -> anyhow::Result<Option<Exit>> {
        let exit = driver.carry_out(&mut self.conversation);
        let lines = self.conversation.transcript.take_done();
        for line in &lines {
            self.print(line)?;
        }
        while let Some(reply) = self.conversation.poll_reply() {
            match reply {
                Reply::Sessions(items) => self.print_sessions(&items)?,
                Reply::Agents(items) => {
                    for item in &items {
                        self.print(&format!("{}: {}", item.label, item.detail))?;
                    }
                    self.print("choose one with: /agent NAME")?;
                }
                Reply::Unsent(text) => self.print(&format!("Not sent: {}", sanitize::sanitized_line(&text)))?,
                Reply::Files { .. } => {}
            }
        }
        if exit.is_none() {
            self.ask()?;
        }
        Ok(exit)
    }

    fn handle_line(&mut self, line: &str) -> anyhow::Result<()> {
        (self.prompted, self.leaving) = (false, false);
        if self.conversation.form().is_some() {
            self.asked = None;
            let hint = self.conversation.fill_form(line);
            return if hint.is_empty() { Ok(()) } else { self.print(&hint) };
        }
        if self.conversation.questions.asked().is_none() {
            self.conversation.handle_line(line);
            return Ok(());
        }
        match self.conversation.answer(line) {
            Answered::Hint(hint) => {
                self.asked = None;
                self.print(&hint)
            }
            Answered::Done | Answered::Nothing => Ok(()),
        }
    }

    fn handle_interrupt(&mut self) -> anyhow::Result<()> {
        match self.conversation.work {
            Work::Running => self.conversation.cancel(),
            Work::Cancelling => self.conversation.leave(),
            Work::Idle | Work::Loading | Work::Connecting if self.leaving => self.conversation.leave(),
            Work::Idle | Work::Loading | Work::Connecting => {
                self.leaving = true;
                self.print("ctrl-c again leaves")?;
            }
        }
        Ok(())
    }

    /// The question that waits, or a mark that a prompt can be typed.
    fn ask(&mut self) -> anyhow::Result<()> {
        let question = self.conversation.question_lines(Style::Plain, usize::MAX, usize::MAX);
        if let Some(lines) = question {
            let text = lines.join("\n");
            if self.asked.as_ref() != Some(&text) {
                self.print(&text)?;
                let options = self
                    .conversation
                    .questions
                    .asked()
                    .map(|asked| question_text::question_prompt_line(&asked.options));
                self.output.piece(&options.unwrap_or_default())?;
                (self.asked, self.prompted) = (Some(text), true);
            }
            return Ok(());
        }
        if let Some(form) = self.conversation.form() {
            let text = form.lines().join("\n");
            if self.asked.as_ref() != Some(&text) {
                self.print(&text)?;
                self.output.piece("> ")?;
                (self.asked, self.prompted) = (Some(text), true);
            }
            return Ok(());
        }
        self.asked = None;
        if self.conversation.work == Work::Idle && !self.prompted {
            self.output.piece("> ")?;
            self.prompted = true;
        }
        Ok(())
    }

    fn print(&mut self, line: &str) -> anyhow::Result<()> {
        let start = if std::mem::take(&mut self.prompted) { "\n" } else { "" };
        Ok(self.output.line(&format!("{start}{line}"))?)
    }

    fn print_sessions(&mut self, items: &[PickerItem]) -> anyhow::Result<()> {
        let id = |item: &PickerItem| match &item.pick {
            Pick::Session(session) => session.clone(),
            Pick::Option { value, .. } => value.clone(),
        };
        let ids: Vec<String> = items.iter().map(id).collect();
        let length = short_session_id_length(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        for (item, id) in items.iter().zip(&ids) {
            let short: String = id.chars().take(length).collect();
            self.print(&format!("{short}  {}  ({})", item.label, item.detail))?;
        }
        self.conversation.transcript.line(Tone::Dim, "Open one with: /sessions ID");
        Ok(())
    }
}
