//! What a turn does with the tools that the model calls.

use std::sync::Arc;

use gander_domain::context::{CallStage, PendingCall};
use gander_domain::{
    Answer, Event, IdGenerator, Message, MessageId, Part, Plan, ProviderPayload, Question, QuestionId, RejectReason,
    Reply, Report, Role, TextMark, ToolCall, ToolCallId, ToolEnd, ToolGate, ToolKind, ToolResult,
};
use serde_json::{Value, json};

use super::draft::drafted_message;
use super::evaluator::ToolDecision;
use super::{Effect, Phase, Turn};
use crate::propose;

/// How many calls in a row, up to now, were of unknown tools or with wrong arguments.
pub(super) fn count_bad_tool_calls(messages: &[Arc<Message>]) -> u32 {
    let parts =
        messages.iter().rev().filter(|message| message.role == Role::Tool).flat_map(|tool| tool.parts.iter().rev());
    let results = parts.filter_map(|part| if let Part::ToolResult { result, .. } = part { Some(result) } else { None });
    results.take_while(|result| result.raw == bad_tool_call_mark()).count() as u32
}

impl Turn {
    /// Brings every call without a result as far as it can go by itself.
    pub(super) fn pick_up_calls(&mut self, ids: &mut dyn IdGenerator) {
        for pending in self.context.pending.clone() {
            match &pending.stage {
                CallStage::Requested => self.evaluate_call(&pending, ids),
                CallStage::Asked(_) => {}
                CallStage::Answered(question, answer) => self.apply_answer(&pending, question, answer, ids),
                CallStage::Started => self.rerun_call(&pending),
            }
        }
    }

    /// Starts calls that waited for others to end, in their order. They are judged anew: the policy may have changed.
    fn start_queued(&mut self, ids: &mut dyn IdGenerator) {
        while self.has_free_slot() {
            let Some(id) = self.queued.pop_front() else { return };
            let Some(pending) = self.find_pending(id).cloned() else { continue };
            match &pending.stage {
                CallStage::Requested => self.evaluate_call(&pending, ids),
                CallStage::Answered(question, answer) => self.apply_answer(&pending, question, answer, ids),
                CallStage::Asked(_) | CallStage::Started => {}
            }
        }
    }

    /// A call that was cleared counts from then on: its start is on its way.
    fn has_free_slot(&self) -> bool {
        let started = self.context.pending.iter().filter(|pending| pending.stage == CallStage::Started).count();
        started + self.cleared.len() < self.setup.settings.parallel_tool_calls.max(1)
    }

    /// Makes a call as if the model had made it: it is written down, asked about and answered like any other.
    pub(super) fn call_for_goal(&mut self, name: &str, arguments: Value, ids: &mut dyn IdGenerator) {
        self.call_with_payload(None, name, arguments, ids);
    }

    /// The same before the model was asked at all: it is no turn of its, also not after a crash.
    pub(super) fn call_without_model(&mut self, name: &str, arguments: Value, ids: &mut dyn IdGenerator) {
        self.call_with_payload(Some(ProviderPayload::made_by_server()), name, arguments, ids);
    }

    fn call_with_payload(
        &mut self,
        native: Option<ProviderPayload>,
        name: &str,
        arguments: Value,
        ids: &mut dyn IdGenerator,
    ) {
        let message = MessageId::make(ids);
        let part = Part::ToolUse { call: ToolCallId::make(ids), name: name.to_owned(), arguments };
        self.push_report(Report::MessageStarted { message });
        self.push_report(Report::MessageDone { tail: vec![part.clone()], native: native.clone(), interrupted: false });
        self.apply_event(Event::MessageDone { message: Message { native, ..drafted_message(message, vec![part]) } });
        self.phase = Phase::Tools;
        self.pick_up_calls(ids);
        self.continue_after_tools(ids);
    }

    pub(super) fn waits_for_answers_only(&self) -> bool {
        self.context.pending.iter().all(|pending| matches!(pending.stage, CallStage::Asked(_)))
    }

    pub(super) fn has_running_tools(&self) -> bool {
        self.context.pending.iter().any(|pending| pending.stage == CallStage::Started)
    }

    fn evaluate_pending(&self, pending: &PendingCall, ids: &mut dyn IdGenerator) -> ToolDecision {
        let (policy, provenance) = (self.context.settings.session_policy(), &self.context.provenance);
        self.setup.evaluator.evaluate(policy, provenance, pending.id, &pending.name, &pending.arguments, ids)
    }

    /// May it run? The call may have been decided before, if the run was cut off right then.
    fn evaluate_call(&mut self, pending: &PendingCall, ids: &mut dyn IdGenerator) {
        match self.evaluate_pending(pending, ids) {
            ToolDecision::Run(call) => self.start_or_queue_call(pending, call, ids),
            ToolDecision::Ask(call, question) => self.ask_about_call(pending, call, question),
            ToolDecision::Refuse(call, result) => self.deny_call(pending, call, result),
            ToolDecision::Bad(result) => {
                let call = minimal_tool_call(pending);
                self.deny_call(pending, call, ToolResult { raw: bad_tool_call_mark(), ..result });
            }
        }
    }

    /// It may run: now, or once others have ended. Until then nothing of it is in the log, so a crash loses nothing.
    fn start_or_queue_call(&mut self, pending: &PendingCall, call: ToolCall, ids: &mut dyn IdGenerator) {
        match self.has_free_slot() {
            true => self.start_call(pending, call, ids),
            false => self.queued.push_back(pending.id),
        }
    }

    fn start_call(&mut self, pending: &PendingCall, call: ToolCall, ids: &mut dyn IdGenerator) {
        let id = call.id;
        self.cleared.push(id);
        match &pending.call {
            Some(_) => self.push_report(Report::ToolReady { call: id }),
            None => self.report_wanted(call, ToolGate::Open),
        }
        if cfg!(bug = "tool_before_commit") {
            self.handle_run_tool(id, ids);
        }
    }

    fn ask_about_call(&mut self, pending: &PendingCall, call: ToolCall, question: Question) {
        let question = Question { call: Some(call.id), ..question };
        if let Some(proposal) = &question.plan {
            self.push_report(Report::PlanSet(proposal.plan.clone()));
        }
        match &pending.call {
            Some(_) => self.push_report(Report::Asked(question.clone())),
            None => self.report_wanted(call, ToolGate::Ask(question.clone())),
        }
        self.apply_event(Event::QuestionAsked { question });
    }

    fn deny_call(&mut self, pending: &PendingCall, call: ToolCall, result: ToolResult) {
        let id = call.id;
        match &pending.call {
            Some(_) => self.push_report(Report::ToolDone { call: id, result: result.clone() }),
            None => self.report_wanted(call, ToolGate::Denied(result.clone())),
        }
        self.apply_event(Event::ToolDone { call: id, result });
    }

    fn report_wanted(&mut self, call: ToolCall, gate: ToolGate) {
        self.apply_event(Event::ToolCalled { call: call.clone() });
        self.push_report(Report::ToolWanted { call, gate });
    }

    /// An approval counts for what was shown. If the call is no longer that, it is asked about again;
    /// a rule that forbids it by now wins.
    fn apply_answer(&mut self, pending: &PendingCall, question: &Question, answer: &Answer, ids: &mut dyn IdGenerator) {
        if let Some(call) = &pending.call {
            self.setup.evaluator.record_answer(call, question, answer);
        }
        if !answer.reply.is_allowed() {
            return self.reject_call(pending.id, &answer.reply);
        }
        if let Some(plan) = question.approved_plan(&answer.reply) {
            return self.approve_plan(pending, plan, ids);
        }
        let (call, fresh) = match self.evaluate_pending(pending, ids) {
            ToolDecision::Run(call) => (call, None),
            ToolDecision::Ask(call, fresh) => (call, Some(fresh)),
            ToolDecision::Refuse(call, result) => return self.deny_call(pending, call, result),
            ToolDecision::Bad(result) => {
                return self.deny_call(
                    pending,
                    minimal_tool_call(pending),
                    ToolResult { raw: bad_tool_call_mark(), ..result },
                );
            }
        };
        let bound = question.fingerprint.as_ref() == Some(&self.setup.evaluator.fingerprint(&call));
        match fresh {
            Some(fresh) if !bound => self.ask_about_call(pending, call, fresh),
            Some(_) | None => self.start_or_queue_call(pending, call, ids),
        }
    }

    /// The session has set the plan and the mode that carries it out. The call starts as any other that was allowed.
    fn approve_plan(&mut self, pending: &PendingCall, plan: Plan, ids: &mut dyn IdGenerator) {
        if let Some(call) = &pending.call {
            self.approved.push((call.id, plan));
            self.start_call(pending, call.clone(), ids);
        }
    }

    fn reject_call(&mut self, call: ToolCallId, reply: &Reply) {
        let result = ToolResult::text(ToolEnd::Rejected, rejected_tool_call_message(reply));
        self.push_report(Report::ToolDone { call, result: result.clone() });
        self.apply_event(Event::ToolDone { call, result });
    }

    /// Its start is in the log and its process died. Running it twice must be the same as running it once.
    fn rerun_call(&mut self, pending: &PendingCall) {
        match &pending.call {
            Some(call) if call.idempotent => self.effects.push_back(Effect::RunTool(call.clone())),
            Some(_) | None => {
                let text = "interrupted: it may or may not have taken effect, check before doing it again";
                let (call, result) = (pending.id, ToolResult::text(ToolEnd::Interrupted, text));
                self.push_report(Report::ToolDone { call, result: result.clone() });
                self.apply_event(Event::ToolDone { call, result });
            }
        }
    }

    pub(super) fn handle_run_tool(&mut self, id: ToolCallId, ids: &mut dyn IdGenerator) {
        let Some(place) = self.cleared.iter().position(|cleared| *cleared == id) else { return };
        self.cleared.swap_remove(place);
        let Some(call) = self.find_pending(id).and_then(|pending| pending.call.clone()) else { return };
        self.apply_event(Event::ToolStarted { call: id });
        match self.approved.iter().position(|(approved, _)| *approved == id) {
            Some(place) => {
                let (_, plan) = self.approved.swap_remove(place);
                self.handle_tool_done(id, propose::approved_proposal_result(&plan), ids); // what was approved is all there is to tell
            }
            None => self.effects.push_back(Effect::RunTool(call)),
        }
    }

    pub(super) fn handle_tool_report(&mut self, call: ToolCallId, report: Report) {
        if self.is_running(call) {
            self.push_report(report);
        }
    }

    /// Comes before the result does, so that nothing is decided in between.
    pub(super) fn handle_tool_marked(&mut self, call: ToolCallId, mark: TextMark) {
        if self.is_running(call) {
            self.push_report(Report::TextMarked(mark.clone()));
            self.apply_event(Event::TextMarked { mark });
        }
    }

    pub(super) fn handle_tool_done(&mut self, call: ToolCallId, result: ToolResult, ids: &mut dyn IdGenerator) {
        if !self.is_running(call) {
            return;
        }
        self.push_report(Report::ToolDone { call, result: result.clone() });
        self.apply_event(Event::ToolDone { call, result });
        self.start_queued(ids);
        self.continue_after_tools(ids);
    }

    pub(super) fn handle_answered(&mut self, id: QuestionId, answer: Answer, ids: &mut dyn IdGenerator) {
        self.held.retain(|held| *held != id);
        let asked = self.context.pending.iter().find_map(|pending| match &pending.stage {
            CallStage::Asked(question) if question.id == id => Some((pending.clone(), question.clone())),
            CallStage::Requested | CallStage::Asked(_) | CallStage::Answered(..) | CallStage::Started => None,
        });
        let Some((pending, question)) = asked else { return };
        self.apply_event(Event::QuestionAnswered { question: id, answer: answer.clone() });
        self.apply_answer(&pending, &question, &answer, ids);
        self.continue_after_tools(ids);
    }

    fn is_running(&self, call: ToolCallId) -> bool {
        matches!(self.phase, Phase::Tools)
            && self.find_pending(call).is_some_and(|call| call.stage == CallStage::Started)
    }

    fn find_pending(&self, call: ToolCallId) -> Option<&PendingCall> {
        self.context.pending.iter().find(|pending| pending.id == call)
    }
}

/// Marks in the log what the model did wrong, so that a count of it survives a restart.
fn bad_tool_call_mark() -> Option<serde_json::Value> {
    Some(json!({"error": "bad_call"}))
}

/// What the model is told about a call that nobody allowed. Only a person's no is called one: a model that is told
/// otherwise gives up what it may well try again once somebody is there.
fn rejected_tool_call_message(reply: &Reply) -> String {
    match reply {
        Reply::Rejected { reason: RejectReason::Said(why) } => {
            format!("the user said no: it did not run. They say: {why}")
        }
        Reply::Rejected { reason: RejectReason::Unattended } => {
            "nobody could be asked: it did not run. Go on without it, or say what you would have done".to_owned()
        }
        Reply::Chosen { .. } | Reply::Filled { .. } | Reply::Declined => "the user said no: it did not run".to_owned(),
        Reply::Cancelled | Reply::Interrupted | Reply::Superseded => "nobody answered: it did not run".to_owned(),
    }
}

/// A call that no tool could describe.
fn minimal_tool_call(pending: &PendingCall) -> ToolCall {
    ToolCall {
        id: pending.id,
        name: pending.name.clone(),
        title: pending.name.clone(),
        kind: ToolKind::Other,
        arguments: pending.arguments.clone(),
        locations: Vec::new(),
        idempotent: false,
    }
}
