//! Telling a client's person in the stream that a question waits, if the client itself does not answer it.
//!
//! Clients may ignore `session/request_permission`, and some cannot be asked at all. Their turn would wait without a
//! word, so the stream says what waits and where it can be answered. It is in no log: others see the question itself.

use gander_domain::{Question, QuestionId, QuestionKind, SessionId};
use serde_json::json;

use super::{Connection, session_message_origin};
use crate::acp::projection::SessionUpdateOut;
use crate::acp::question;
use crate::acp::schema::{ContentBlock, ContentChunk, Notice, NoticeSeverity, SessionUpdate};

/// How a client hears of a question that still waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReminderForm {
    /// As a message in its stream.
    Update,
    /// As the answer to its prompt: it has no stream, and would wait for its only answer for ever.
    PromptAnswer,
}

impl Connection {
    /// The next question that was put to this client, or could not be put to it. Each comes once: after a while give
    /// it to [`remind_of_question`](Self::remind_of_question).
    pub fn poll_asked(&mut self) -> Option<(SessionId, QuestionId)> {
        self.sessions.iter_mut().find_map(|(session, attachment)| Some((*session, attachment.pop_asked()?)))
    }

    /// Tells the client's person what waits and how to answer it elsewhere. Nothing is said if the question is answered,
    /// or if the client has shown that it can answer.
    pub fn remind_of_question(&mut self, (session, question): (SessionId, QuestionId), form: ReminderForm) {
        let abilities = self.abilities.unwrap_or_default();
        let Some(attachment) = self.sessions.get(&session) else { return };
        let Some(view) = attachment.view() else { return };
        let Some((run, open)) = view.run.as_ref().and_then(|run| Some((run.id, run.find_question(question)?))) else {
            return;
        };
        let can_be_asked = question::acp_question_request(abilities, view, open).is_some();
        if can_be_asked && (self.answers || abilities.shows_questions()) {
            return;
        }
        self.peer.out.set_origin(session_message_origin(session));
        let text = reminder_text(session, open);
        match form {
            ReminderForm::PromptAnswer => {
                if let Some(prompt) = self.prompts.remove(&run) {
                    let waits = json!({ "id": question, "title": open.title });
                    let state = json!({ "stopReason": "awaiting", "message": text, "question": waits });
                    prompt.into_responders().for_each(|responder| self.peer.respond_result(responder, &state));
                }
            }
            ReminderForm::Update if abilities.notices => {
                let notice = Notice::new(NoticeSeverity::Warning, text);
                attachment.send_update(&mut self.peer.out, &SessionUpdateOut::Notice(Box::new(notice)));
            }
            ReminderForm::Update => {
                let chunk = ContentChunk::new(ContentBlock::from(format!("\n\n{text}\n\n")));
                let update = SessionUpdate::AgentMessageChunk(chunk);
                attachment.send_update(&mut self.peer.out, &SessionUpdateOut::Other(Box::new(update)));
            }
        }
    }
}

/// One paragraph for people.
fn reminder_text(session: SessionId, question: &Question) -> String {
    let what = match question.ask {
        QuestionKind::Choose { .. } => "permission",
        QuestionKind::Form { .. } | QuestionKind::Visit { .. } => "input",
    };
    format!(
        "Waiting for {what}: {}. This client has not answered. To answer, run `gander watch {session}` in a terminal, or \
         `gander open` for the page in a browser. To be asked less, choose a permission policy for this client \
         (`--policy`, or `GOOSE_MODE` when started as goose).",
        question.title
    )
}
