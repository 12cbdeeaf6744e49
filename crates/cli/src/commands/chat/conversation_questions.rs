//! The questions of a conversation: one at a time, answered with a key or with words.

use gander_client::schema::RequestPermissionRequest;
use gander_wire::acp::client::{AgentRequest, PermissionRequest};
use gander_wire::jsonrpc::{RequestId, Responder};
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::effects::Effect;
use super::form::{ChatForm, Filled};
use crate::commands::run::answer::{TypedAnswer, read_typed_answer, reject_once_answer};
use crate::commands::run::question_text::{self, DetailLimit};
use crate::commands::run::questions::{RunQuestion, Withdrawn};
use crate::output::{Style, Tone};
use crate::terminal::wrap::wrap_text;

/// What became of a typed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    Done,
    /// It means nothing yet: this has to be said first.
    Hint(String),
    /// Nothing is asked.
    Nothing,
}

impl Conversation {
    pub(super) fn handle_question(&mut self, permission: PermissionRequest, request: RequestPermissionRequest) {
        if let Some(before) = self.questions.push(RunQuestion::new(permission, request)) {
            self.push_effect(Effect::Decline { permission: before });
        }
        self.ask_next();
    }

    /// A form, or a page to open.
    pub(super) fn handle_request(&mut self, responder: Responder, request: &AgentRequest) {
        if let AgentRequest::Elicit(request) = request {
            self.forms.push_back(ChatForm::new(responder, &json!(request)));
        }
    }

    /// The form that is asked for now: questions come first.
    pub(super) fn form(&self) -> Option<&ChatForm> {
        self.forms.front().filter(|_| self.questions.asked().is_none())
    }

    /// Takes in a line for the form; gives what is wrong with it.
    pub(super) fn fill_form(&mut self, line: &str) -> String {
        let Some(form) = self.forms.front_mut() else { return String::new() };
        match form.fill(line) {
            Filled::Next => String::new(),
            Filled::Wrong(reason) => format!("  {reason}"),
            Filled::Done => {
                if let Some(form) = self.forms.pop_front() {
                    self.transcript.painted(form.lines().into_iter().take(1).chain(["  → sent".to_owned()]));
                    let (responder, response) = form.into_response();
                    self.push_effect(Effect::Respond { responder, response });
                }
                String::new()
            }
        }
    }

    /// Does not fill in the form.
    pub(super) fn decline_form(&mut self) {
        if let Some(form) = self.forms.pop_front() {
            self.transcript.painted(form.lines().into_iter().take(1).chain(["  → declined".to_owned()]));
            let response = json!({ "action": "decline" });
            self.push_effect(Effect::Respond { responder: form.responder, response });
        }
    }

    /// Leaves forms to others.
    pub(super) fn drop_forms(&mut self) {
        for form in std::mem::take(&mut self.forms) {
            let response = json!({ "action": "cancel" });
            self.push_effect(Effect::Respond { responder: form.responder, response });
        }
    }

    pub(super) fn handle_withdrawn(&mut self, id: &RequestId) {
        if let Some(place) = self.forms.iter().position(|form| form.responder.id() == id) {
            if let Some(form) = self.forms.remove(place) {
                let response = json!({ "action": "cancel" });
                self.push_effect(Effect::Respond { responder: form.responder, response });
                self.transcript.line(Tone::Dim, "  answered by another client");
            }
            return;
        }
        match self.questions.withdraw(id) {
            Withdrawn::Asked(permission) => {
                self.push_effect(Effect::Decline { permission });
                self.transcript.line(Tone::Dim, "  answered by another client");
                self.ask_next();
            }
            Withdrawn::Waiting(permission) => self.push_effect(Effect::Decline { permission }),
            Withdrawn::Unknown => {}
        }
    }

    /// Answers the question on the screen: a letter, a number, or words that reject it.
    pub(super) fn answer(&mut self, line: &str) -> Answered {
        let Some(RunQuestion { options, tool, .. }) = self.questions.asked() else { return Answered::Nothing };
        match read_typed_answer(options, line) {
            TypedAnswer::Option(option) => self.choose(&option, None),
            TypedAnswer::Reject { option, reason } => self.choose(&option, Some(reason)),
            TypedAnswer::WhichAlways => Answered::Hint(question_text::question_which_always(options)),
            TypedAnswer::Unclear => Answered::Hint(question_text::question_try_again(options)),
            TypedAnswer::Help => Answered::Hint(question_text::question_keys_help()),
            TypedAnswer::ShowAll => {
                let whole = question_text::question_detail(tool, self.transcript.style(), DetailLimit::Whole);
                self.transcript.painted(whole.lines().map(str::to_owned).collect::<Vec<_>>());
                Answered::Hint(String::new())
            }
        }
    }

    /// Rejects the question on the screen; the model is told why.
    pub(super) fn reject_with_reason(&mut self, reason: &str) -> Answered {
        let asked = self.questions.asked();
        let no =
            asked.and_then(|asked| reject_once_answer(&asked.options)).map(|option| option.option_id.0.to_string());
        match no {
            Some(option) => self.choose(&option, Some(reason.to_owned())),
            None => Answered::Hint("This question cannot be answered with no: choose a number.".to_owned()),
        }
    }

    /// The question as it stands on the screen, and how it can be answered.
    pub(super) fn question_lines(&self, style: Style, columns: usize, rows: usize) -> Option<Vec<String>> {
        let question = self.questions.asked()?;
        let headline = style.paint(Tone::Warn, &format!("? {}", question_text::question_headline(question)));
        let detail = question_text::question_detail(&question.tool, style, DetailLimit::Screen);
        let menu = question_text::question_menu(&question.options);
        let fit = |text: &str| text.lines().flat_map(|line| wrap_text(line, columns, 4)).collect::<Vec<_>>();
        let (mut detail, menu) = (fit(&detail), fit(&menu));
        let room = rows.saturating_sub(menu.len() + 4).max(2);
        if detail.len() > room {
            let hidden = detail.len() - room + 1;
            detail.truncate(room - 1);
            detail.push(format!("    … and {hidden} more lines (v shows them)"));
        }
        Some(fit(&headline).into_iter().chain(detail).chain(menu).collect())
    }

    fn ask_next(&mut self) {
        self.questions.next_question();
    }

    fn choose(&mut self, option: &str, reason: Option<String>) -> Answered {
        let Some(question) = self.questions.take_asked() else { return Answered::Nothing };
        let chosen = question.options.iter().find(|known| *known.option_id.0 == *option);
        let name = chosen.map(|chosen| chosen.name.clone()).unwrap_or_default();
        let said = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let headline = question_text::question_headline(&question);
        self.transcript.line(Tone::Warn, &format!("? {headline}\n  → {name}{said}"));
        let mut response = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        if let Some(reason) = reason {
            response["_meta"] = Value::Object([("gander/reason".to_owned(), json!(reason))].into_iter().collect());
        }
        self.push_effect(Effect::Respond { responder: question.permission.into(), response });
        self.ask_next();
        Answered::Done
    }
}
