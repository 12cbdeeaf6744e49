//! What a run asks of people: a call that the client answers in a run of its own.

use gander_domain::{Answer, Question, QuestionId, QuestionKind, QuestionOrigin, Reply, Timestamp};
use serde_json::{Map, Value, json};

use super::{AdkProjection, RunStage};
use crate::adk::content::{adk_function_call_id, adk_function_call_part, adk_function_response_part};
use crate::adk::types::AdkEvent;
use crate::preview::question_with_preview;

/// A question without an answer.
#[derive(Clone, Debug)]
pub(super) struct OpenQuestion {
    question: Question,
    told: bool,
}

impl OpenQuestion {
    /// False if the run goes on without an answer: a server invites to log in, or wants a changed tool approved.
    fn blocks_run(&self) -> bool {
        !self.question.is_non_blocking()
    }

    /// True if whoever asks lives, and no call is named.
    fn is_unattached(&self) -> bool {
        self.question.call.is_none() && self.question.origin == QuestionOrigin::Held
    }
}

/// How a question is named here: as the call that its answer answers.
pub fn adk_question_call_id(question: QuestionId) -> String {
    format!("adk-{question}")
}

impl AdkProjection {
    /// True if this question waits for an answer.
    pub fn is_open_question(&self, question: QuestionId) -> bool {
        self.questions.iter().any(|asked| asked.question.id == question)
    }

    pub(super) fn question_asked(&mut self, question: &Question) {
        self.questions.push(OpenQuestion { question: question.clone(), told: false });
    }

    pub(super) fn question_answered(&mut self, id: QuestionId, answer: &Answer) {
        self.questions.retain(|asked| asked.question.id != id);
        self.superseded |= answer.reply == Reply::Superseded;
        if self.stage == RunStage::Asking {
            self.stage = RunStage::Running;
        }
    }

    /// Once nothing goes on but waiting, all questions are told. One that holds nothing up is told at once.
    pub(super) fn emit_questions(&mut self, at: Timestamp, events: &mut Vec<AdkEvent>) {
        if matches!(self.stage, RunStage::Waiting | RunStage::Ended(_)) {
            return;
        }
        if !self.is_only_waiting() {
            let aside = self.take_new_questions(|asked| !asked.blocks_run());
            return events.extend(self.question_event(at, &aside));
        }
        self.stage = RunStage::Asking;
        let fresh = self.take_new_questions(|_| true);
        match self.question_event(at, &fresh) {
            Some(requests) => events.extend(std::iter::once(requests).chain(self.pending_results_event(at, &fresh))),
            None => events.extend(self.flush_results(at)),
        }
    }

    /// Questions of this kind that were not told yet; now they are.
    fn take_new_questions(&mut self, kind: impl Fn(&OpenQuestion) -> bool) -> Vec<Question> {
        let fresh = self.questions.iter_mut().filter(|asked| !asked.told && kind(asked));
        fresh
            .map(|asked| {
                asked.told = true;
                asked.question.clone()
            })
            .collect()
    }

    /// What asks these questions.
    fn question_event(&mut self, at: Timestamp, fresh: &[Question]) -> Option<AdkEvent> {
        let id = fresh.first()?.id.uuid();
        let mut ids: Vec<String> = fresh.iter().map(|question| adk_question_call_id(question.id)).collect();
        ids.sort_unstable();
        let parts = fresh.iter().map(|question| self.question_call(question)).collect();
        let request = self.next_event(at, id, 0).with_content("model", parts);
        Some(AdkEvent { long_running_tool_ids: Some(ids), ..request })
    }

    fn is_only_waiting(&self) -> bool {
        let asked = |call| self.questions.iter().any(|asked| asked.question.call == Some(call));
        let mut holding = self.questions.iter().filter(|asked| asked.blocks_run()).peekable();
        holding.peek().is_some()
            && !self.speaking
            && self.tools.all_called()
            && (holding.any(OpenQuestion::is_unattached) || self.tools.open_calls().iter().all(|call| asked(call.id)))
    }

    /// The call that stands for a question.
    fn question_call(&self, question: &Question) -> Value {
        let id = adk_question_call_id(question.id);
        let call = question.call.and_then(|call| self.tools.find_call(call));
        match (call, &question.ask) {
            (Some(call), QuestionKind::Choose { .. }) => {
                let original =
                    json!({ "id": adk_function_call_id(call.id), "args": call.arguments, "name": call.name });
                let arguments =
                    json!({ "originalFunctionCall": original, "toolConfirmation": adk_confirmation_payload(question) });
                adk_function_call_part(&id, "adk_request_confirmation", &arguments)
            }
            (_, QuestionKind::Form { schema }) => {
                let empty = schema.as_object().is_none_or(Map::is_empty);
                let mut arguments = json!({ "message": question.title });
                if !empty {
                    arguments["response_schema"] = schema.clone();
                }
                adk_function_call_part(&id, "adk_request_input", &arguments)
            }
            (None, QuestionKind::Choose { choices }) => {
                let ids: Vec<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
                let schema = json!({ "type": "object", "properties": { "choice": { "type": "string", "enum": ids } } });
                let arguments = json!({ "message": question_with_preview(question), "response_schema": schema });
                adk_function_call_part(&id, "adk_request_input", &arguments)
            }
            (_, QuestionKind::Visit { url }) => {
                let arguments = json!({ "message": format!("{}: {url}", question.title) });
                adk_function_call_part(&id, "adk_request_input", &arguments)
            }
        }
    }

    /// What stands in place of the results that wait for a yes.
    fn pending_results_event(&mut self, at: Timestamp, fresh: &[Question]) -> Option<AdkEvent> {
        let (mut parts, mut wanted) = (Vec::new(), Map::new());
        for question in fresh {
            let confirms = matches!(question.ask, QuestionKind::Choose { .. });
            let call = question.call.filter(|_| confirms).and_then(|call| self.tools.find_call(call));
            let Some(call) = call else { continue };
            let text = "This tool call requires confirmation, please approve or reject.";
            parts.push(adk_function_response_part(
                &adk_function_call_id(call.id),
                &call.name,
                &json!({ "error": text }),
            ));
            wanted.insert(adk_function_call_id(call.id), adk_confirmation_payload(question));
        }
        let done = self.tools.take_results();
        if parts.is_empty() && done.is_empty() {
            return None;
        }
        let id = fresh.first()?.id.uuid();
        let mut actions = self.tools.take_actions();
        actions.skip_summarization = (!wanted.is_empty()).then_some(true);
        actions.requested_tool_confirmations = wanted;
        let parts = done.into_iter().map(|(_, part)| part).chain(parts).collect();
        Some(AdkEvent { actions, ..self.next_event(at, id, 1).with_content("user", parts) })
    }
}

/// A plan that is to be approved may be sent back changed.
fn adk_confirmation_payload(question: &Question) -> Value {
    let mut confirmation = json!({ "hint": question_with_preview(question), "confirmed": false });
    if let Some(proposal) = &question.plan {
        confirmation["payload"] = json!(proposal.plan);
    }
    confirmation
}
