//! The chat at a terminal as a machine: keys go in, the conversation and what is being typed change.

use std::time::{Duration, Instant};

use super::commands::{ChatCommand, read_chat_command};
use super::completion::{Completion, Trigger, find_completion_trigger, suggest_commands, suggest_files};
use super::conversation::{Conversation, Work};
use super::conversation_questions::Answered;
use super::editor::Editor;
use super::effects::Reply;
use super::history::InputHistory;
use super::key_parser::Key;
use super::picker::{Pick, Picker, PickerItem};

/// A key that comes so soon after another one was typed before its question was there is no answer to it.
const TYPING_PAUSE: Duration = Duration::from_millis(800);

/// The chat at a terminal.
pub(super) struct ChatApp {
    pub(super) conversation: Conversation,
    pub(super) editor: Editor,
    pub(super) completion: Option<Completion>,
    pub(super) picker: Option<Picker>,
    /// What is said about the question on the screen.
    pub(super) hint: String,
    /// Why the question is rejected is being typed.
    pub(super) reason: Option<Editor>,
    /// What is typed into a form.
    pub(super) form_line: Editor,
    /// Ctrl-c was pressed while nothing ran: once more leaves.
    pub(super) leaving: bool,
    history: InputHistory,
    last_key: Option<Instant>,
    /// Somebody was typing when the question on the screen came.
    interrupted_typing: bool,
    was_asked: bool,
}

/// What the terminal has to do beside drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalAction {
    Nothing,
    Suspend,
    Redraw,
}

impl ChatApp {
    pub(super) fn new(conversation: Conversation, history: InputHistory) -> Self {
        Self {
            conversation,
            editor: Editor::default(),
            completion: None,
            picker: None,
            hint: String::new(),
            reason: None,
            form_line: Editor::default(),
            leaving: false,
            history,
            last_key: None,
            interrupted_typing: false,
            was_asked: false,
        }
    }

    /// Takes in one key.
    pub(super) fn handle_key(&mut self, now: Instant, key: Key) -> TerminalAction {
        let leaving = std::mem::take(&mut self.leaving);
        let typed_into_question = self.is_slip(now);
        self.last_key = Some(now);
        if key == Key::Suspend {
            return TerminalAction::Suspend;
        } else if key == Key::Redraw {
            return TerminalAction::Redraw;
        } else if key == Key::Interrupt {
            self.handle_interrupt(leaving);
        } else if key == Key::EndOfInput && self.editor.is_empty() && self.reason.is_none() {
            self.conversation.leave();
        } else if self.picker.is_some() {
            self.handle_picker_key(key);
        } else if self.reason.is_some() {
            self.handle_reason_key(key);
        } else if self.conversation.form().is_some() && !typed_into_question {
            self.handle_form_key(key);
        } else if self.is_asked() && !typed_into_question {
            self.handle_question_key(&key);
        } else {
            self.handle_edit_key(key);
        }
        self.settle(now);
        TerminalAction::Nothing
    }

    /// Takes in what the conversation has for the person. Call it after everything that the conversation was fed with.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some(reply) = self.conversation.poll_reply() {
            match reply {
                Reply::Sessions(items) => self.open_picker("Sessions", items),
                Reply::Agents(items) => self.open_picker("Agent", items),
                Reply::Files { query, paths } => self.handle_files(&query, &paths),
                Reply::Unsent(text) if self.editor.is_empty() => self.editor.set(&text),
                Reply::Unsent(text) => {
                    self.editor.set(&format!("{text}\n{}", self.editor.text()));
                }
            }
        }
        let asked = self.is_asked();
        if asked && !self.was_asked {
            let recent = self.last_key.is_some_and(|last| now.duration_since(last) < TYPING_PAUSE);
            self.interrupted_typing = recent && !self.editor.is_empty();
            self.completion = None;
            if self.interrupted_typing {
                self.hint = "  (you were typing: pause for a moment, then answer)".to_owned();
            }
        }
        if !asked {
            self.hint.clear();
            self.reason = None;
            self.form_line.take();
        }
        self.was_asked = asked;
    }

    pub(super) fn is_asked(&self) -> bool {
        self.conversation.questions.asked().is_some() || self.conversation.form().is_some()
    }

    /// Somebody was typing when the question came, and has not paused since.
    fn is_slip(&mut self, now: Instant) -> bool {
        let paused = self.last_key.is_none_or(|last| now.duration_since(last) >= TYPING_PAUSE);
        if paused {
            self.interrupted_typing = false;
        }
        self.interrupted_typing
    }

    fn handle_interrupt(&mut self, leaving: bool) {
        if self.picker.take().is_some() || self.reason.take().is_some() {
            return;
        }
        match self.conversation.work {
            Work::Running => self.conversation.cancel(),
            Work::Cancelling => self.conversation.leave(),
            Work::Idle | Work::Loading | Work::Connecting if leaving => self.conversation.leave(),
            Work::Idle | Work::Loading | Work::Connecting => {
                self.editor.take();
                self.completion = None;
                self.leaving = true;
            }
        }
    }

    fn handle_question_key(&mut self, key: &Key) {
        match key {
            Key::Char('r') => self.reason = Some(Editor::default()),
            Key::Char(letter) => self.answer(&letter.to_string()),
            Key::Escape
            | Key::Paste(_)
            | Key::Enter
            | Key::NewLine
            | Key::Backspace
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::Up
            | Key::Down
            | Key::WordLeft
            | Key::WordRight
            | Key::Home
            | Key::End
            | Key::KillWord
            | Key::KillToStart
            | Key::KillToEnd
            | Key::Yank
            | Key::Tab
            | Key::BackTab
            | Key::Interrupt
            | Key::EndOfInput
            | Key::Suspend
            | Key::Redraw => self.answer(""),
        }
    }

    fn answer(&mut self, line: &str) {
        match self.conversation.answer(line) {
            Answered::Hint(hint) => self.hint = hint,
            Answered::Done | Answered::Nothing => self.hint.clear(),
        }
    }

    fn handle_reason_key(&mut self, key: Key) {
        let Some(editor) = &mut self.reason else { return };
        if key == Key::Escape {
            self.reason = None;
        } else if key != Key::Enter {
            edit_with_key(editor, key);
        } else {
            let reason = editor.take();
            self.reason = None;
            if !reason.trim().is_empty()
                && let Answered::Hint(hint) = self.conversation.reject_with_reason(reason.trim())
            {
                self.hint = hint;
            }
        }
    }

    fn handle_form_key(&mut self, key: Key) {
        if key == Key::Escape {
            self.conversation.decline_form();
        } else if key != Key::Enter {
            edit_with_key(&mut self.form_line, key);
        } else {
            let line = self.form_line.text().to_owned();
            self.hint = self.conversation.fill_form(&line);
            if self.hint.is_empty() {
                self.form_line.take();
            }
        }
    }

    fn handle_picker_key(&mut self, key: Key) {
        let Some(picker) = &mut self.picker else { return };
        match key {
            Key::Escape => self.picker = None,
            Key::Up | Key::BackTab => picker.up(),
            Key::Down | Key::Tab => picker.down(),
            Key::Backspace => picker.backspace(),
            Key::Char(letter) => picker.push(letter),
            Key::Enter => {
                let pick = picker.chosen().map(|item| item.pick.clone());
                self.picker = None;
                match pick {
                    Some(Pick::Session(session)) => self.conversation.open_session(&session),
                    Some(Pick::Option { id, value }) => self.conversation.set_option(&id, &value),
                    None => {}
                }
            }
            Key::Paste(_)
            | Key::NewLine
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::WordLeft
            | Key::WordRight
            | Key::Home
            | Key::End
            | Key::KillWord
            | Key::KillToStart
            | Key::KillToEnd
            | Key::Yank
            | Key::Interrupt
            | Key::EndOfInput
            | Key::Suspend
            | Key::Redraw => {}
        }
    }

    fn handle_edit_key(&mut self, key: Key) {
        match (key, &mut self.completion) {
            (Key::Tab, Some(_)) => return self.complete(),
            (Key::Enter, Some(completion)) if !is_completion_typed_out(completion, self.editor.text()) => {
                return self.complete();
            }
            (Key::Up, Some(completion)) => return completion.previous(),
            (Key::Down, Some(completion)) => return completion.next(),
            (Key::Escape, Some(_)) => {
                self.completion = None;
                return;
            }
            (Key::Escape, None) if self.conversation.is_running() => return self.conversation.cancel(),
            (Key::Enter, _) => return self.submit(),
            (Key::Up, None) => {
                if !self.editor.up()
                    && let Some(earlier) = self.history.previous(self.editor.text())
                {
                    self.editor.set(earlier);
                }
                return;
            }
            (Key::Down, None) => {
                if !self.editor.down()
                    && let Some(later) = self.history.next()
                {
                    self.editor.set(later);
                }
                return;
            }
            (key, _) => edit_with_key(&mut self.editor, key),
        }
        self.look_for_completion();
    }

    fn submit(&mut self) {
        self.completion = None;
        // As in a shell: a backslash at the end goes on in the next line.
        if self.editor.text().ends_with('\\') && self.editor.cursor() == self.editor.text().len() {
            self.editor.backspace();
            self.editor.insert("\n");
            return;
        }
        let line = self.editor.take();
        if line.trim().is_empty() {
            return;
        }
        self.history.push(line.trim_end());
        match read_chat_command(line.trim(), &self.conversation.info.options) {
            Some(ChatCommand::Option { id, value: None }) => self.pick_option(&id),
            Some(_) | None => self.conversation.handle_line(&line),
        }
    }

    fn pick_option(&mut self, id: &str) {
        let Some(option) = self.conversation.info.option(id) else { return };
        let item = |choice: &super::session_options::OptionChoice| PickerItem {
            label: choice.name.clone(),
            detail: match choice.name == choice.value {
                true => choice.description.clone(),
                false => [choice.value.as_str(), &choice.description].join("  ").trim().to_owned(),
            },
            pick: Pick::Option { id: option.id.clone(), value: choice.value.clone() },
        };
        let items = option.choices.iter().map(item).collect();
        let chosen = option.choices.iter().position(|choice| choice.value == option.current).unwrap_or(0);
        self.picker = Some(Picker::new(&option.name, items, chosen));
    }

    fn open_picker(&mut self, title: &str, items: Vec<PickerItem>) {
        let open = Pick::Session(self.conversation.session.clone().unwrap_or_default());
        let chosen = items.iter().position(|item| item.pick == open).unwrap_or(0);
        self.picker = Some(Picker::new(title, items, chosen));
    }

    fn look_for_completion(&mut self) {
        self.completion = None;
        match find_completion_trigger(self.editor.text(), self.editor.cursor()) {
            Some(Trigger::Command { query }) => {
                let suggestions = suggest_commands(&self.conversation.commands(), &query);
                self.completion = Completion::new(0..self.editor.cursor(), suggestions);
            }
            // The list comes with the answer.
            Some(Trigger::File { query, .. }) => self.conversation.find_files(&query),
            None => {}
        }
    }

    /// Files that fit, unless something else was typed meanwhile.
    fn handle_files(&mut self, asked: &str, paths: &[String]) {
        if let Some(Trigger::File { query, range }) = find_completion_trigger(self.editor.text(), self.editor.cursor())
            && query == asked
        {
            self.completion = Completion::new(range, suggest_files(paths));
        }
    }

    fn complete(&mut self) {
        if let Some(completion) = self.completion.take() {
            self.editor.replace(completion.range.clone(), completion.insert());
            self.look_for_completion();
        }
    }
}

/// What stands there is what the chosen suggestion would write: enter sends it.
fn is_completion_typed_out(completion: &Completion, text: &str) -> bool {
    text.get(completion.range.clone()).is_some_and(|typed| typed == completion.insert().trim_end())
}

/// Keys that only change a text.
fn edit_with_key(editor: &mut Editor, key: Key) {
    match key {
        Key::Char(letter) => editor.insert(&letter.to_string()),
        Key::Paste(text) => editor.insert(&text),
        Key::NewLine => editor.insert("\n"),
        Key::Backspace => editor.backspace(),
        Key::Delete | Key::EndOfInput => editor.delete(),
        Key::Left => editor.left(),
        Key::Right => editor.right(),
        Key::WordLeft => editor.word_left(),
        Key::WordRight => editor.word_right(),
        Key::Home => editor.home(),
        Key::End => editor.end(),
        Key::KillWord => editor.kill_word(),
        Key::KillToStart => editor.kill_to_start(),
        Key::KillToEnd => editor.kill_to_end(),
        Key::Yank => editor.yank(),
        Key::Enter
        | Key::Up
        | Key::Down
        | Key::Tab
        | Key::BackTab
        | Key::Escape
        | Key::Interrupt
        | Key::Suspend
        | Key::Redraw => {}
    }
}
