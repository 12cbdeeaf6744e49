//! What a turn does with the tools that the model calls.

use std::sync::Arc;

use gander_domain::context::{CallStage, PendingCall};
use gander_domain::{
    Answer, Event, IdGenerator, Message, MessageId, Part, Plan, ProviderPayload, Question, QuestionId, Report, Role,
    ToolCall, ToolCallId, ToolEnd, ToolGate, ToolKind, ToolResult,
};
use serde_json::{Value, json};

use super::answer::agent;
use super::judge::Judgement;
use super::{Effect, Phase, Turn};
use crate::propose;

/// How many calls in a row, up to now, were of unknown tools or with wrong arguments.
pub(super) fn bad_calls(messages: &[Arc<Message>]) -> u32 {
    let parts =
        messages.iter().rev().filter(|message| message.role == Role::Tool).flat_map(|tool| tool.parts.iter().rev());
    let results = parts.filter_map(|part| if let Part::ToolResult { result, .. } = part { Some(result) } else { None });
    results.take_while(|result| result.raw == bad_mark()).count() as u32
}

impl Turn {
    /// Brings every call without a result as far as it can go by itself.
    pub(super) fn pick_up_calls(&mut self, ids: &mut dyn IdGenerator) {
        for pending in self.context.pending.clone() {
            match &pending.stage {
                CallStage::Requested => self.decide(&pending, ids),
                CallStage::Asked(_) => {}
                CallStage::Answered(question, answer) => self.follow(&pending, question, answer, ids),
                CallStage::Started => self.run_again(&pending),
            }
        }
    }

    /// Starts calls that waited for others to end, in their order. They are judged anew: the policy may have changed.
    fn start_queued(&mut self, ids: &mut dyn IdGenerator) {
        while self.has_slot() {
            let Some(id) = self.queued.pop_front() else { return };
            let Some(pending) = self.pending(id).cloned() else { continue };
            match &pending.stage {
                CallStage::Requested => self.decide(&pending, ids),
                CallStage::Answered(question, answer) => self.follow(&pending, question, answer, ids),
                CallStage::Asked(_) | CallStage::Started => {}
            }
        }
    }

    /// A call that was cleared counts from then on: its start is on its way.
    fn has_slot(&self) -> bool {
        let started = self.context.pending.iter().filter(|pending| pending.stage == CallStage::Started).count();
        started + self.cleared.len() < self.setup.settings.parallel_tool_calls.max(1)
    }

    /// Makes a call as if the model had made it: it is written down, asked about and answered like any other.
    pub(super) fn call_itself(&mut self, name: &str, arguments: Value, ids: &mut dyn IdGenerator) {
        self.call_with_payload(None, name, arguments, ids);
    }

    /// The same before the model was asked at all: it is no turn of its, also not after a crash.
    pub(super) fn call_without_model(&mut self, name: &str, arguments: Value, ids: &mut dyn IdGenerator) {
        self.call_with_payload(Some(ProviderPayload::synthetic()), name, arguments, ids);
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
        self.report(Report::MessageStarted { message });
        self.report(Report::MessageDone { tail: vec![part.clone()], native: native.clone(), interrupted: false });
        self.fold(Event::MessageDone { message: Message { native, ..agent(message, vec![part]) } });
        self.phase = Phase::Tools;
        self.pick_up_calls(ids);
        self.settle(ids);
    }

    pub(super) fn only_people_can_go_on(&self) -> bool {
        self.context.pending.iter().all(|pending| matches!(pending.stage, CallStage::Asked(_)))
    }

    pub(super) fn runs_tools(&self) -> bool {
        self.context.pending.iter().any(|pending| pending.stage == CallStage::Started)
    }

    /// May it run? The call may have been decided before, if the run was cut off right then.
    fn decide(&mut self, pending: &PendingCall, ids: &mut dyn IdGenerator) {
        let policy = self.context.settings.policy;
        match self.setup.judge.judge(policy, pending.id, &pending.name, &pending.arguments, ids) {
            Judgement::Run(call) => self.clear(pending, call, ids),
            Judgement::Ask(call, question) => self.ask(pending, call, question),
            Judgement::Refuse(call, result) => self.shut(pending, call, result),
            Judgement::Bad(result) => {
                let call = undescribed(pending);
                self.shut(pending, call, ToolResult { raw: bad_mark(), ..result });
            }
        }
    }

    /// It may run: now, or once others have ended. Until then nothing of it is in the log, so a crash loses nothing.
    fn clear(&mut self, pending: &PendingCall, call: ToolCall, ids: &mut dyn IdGenerator) {
        match self.has_slot() {
            true => self.start(pending, call, ids),
            false => self.queued.push_back(pending.id),
        }
    }

    fn start(&mut self, pending: &PendingCall, call: ToolCall, ids: &mut dyn IdGenerator) {
        let id = call.id;
        self.cleared.push(id);
        match &pending.call {
            Some(_) => self.report(Report::ToolReady { call: id }),
            None => self.want(call, ToolGate::Open),
        }
        if cfg!(bug = "tool_before_commit") {
            self.run_tool(id, ids);
        }
    }

    fn ask(&mut self, pending: &PendingCall, call: ToolCall, question: Question) {
        let question = Question { call: Some(call.id), ..question };
        if let Some(proposal) = &question.plan {
            self.report(Report::PlanSet(proposal.plan.clone()));
        }
        match &pending.call {
            Some(_) => self.report(Report::Asked(question.clone())),
            None => self.want(call, ToolGate::Ask(question.clone())),
        }
        self.fold(Event::QuestionAsked { question });
    }

    fn shut(&mut self, pending: &PendingCall, call: ToolCall, result: ToolResult) {
        let id = call.id;
        match &pending.call {
            Some(_) => self.report(Report::ToolDone { call: id, result: result.clone() }),
            None => self.want(call, ToolGate::Denied(result.clone())),
        }
        self.fold(Event::ToolDone { call: id, result });
    }

    fn want(&mut self, call: ToolCall, gate: ToolGate) {
        self.fold(Event::ToolCalled { call: call.clone() });
        self.report(Report::ToolWanted { call, gate });
    }

    /// An approval counts for what was shown. If the call is no longer that, it is asked about again;
    /// a rule that forbids it by now wins.
    fn follow(&mut self, pending: &PendingCall, question: &Question, answer: &Answer, ids: &mut dyn IdGenerator) {
        if let Some(call) = &pending.call {
            self.setup.judge.learn(call, question, answer);
        }
        if !answer.reply.allows() {
            return self.refused(pending.id);
        }
        if let Some(plan) = question.approved_plan(&answer.reply) {
            return self.approve(pending, plan, ids);
        }
        let policy = self.context.settings.policy;
        let (call, fresh) = match self.setup.judge.judge(policy, pending.id, &pending.name, &pending.arguments, ids) {
            Judgement::Run(call) => (call, None),
            Judgement::Ask(call, fresh) => (call, Some(fresh)),
            Judgement::Refuse(call, result) => return self.shut(pending, call, result),
            Judgement::Bad(result) => {
                return self.shut(pending, undescribed(pending), ToolResult { raw: bad_mark(), ..result });
            }
        };
        let bound = question.fingerprint.as_ref() == Some(&self.setup.judge.fingerprint(&call));
        match fresh {
            Some(fresh) if !bound => self.ask(pending, call, fresh),
            Some(_) | None => self.clear(pending, call, ids),
        }
    }

    /// The session has set the plan and the mode that carries it out. The call starts as any other that was allowed.
    fn approve(&mut self, pending: &PendingCall, plan: Plan, ids: &mut dyn IdGenerator) {
        if let Some(call) = &pending.call {
            self.approved.push((call.id, plan));
            self.start(pending, call.clone(), ids);
        }
    }

    fn refused(&mut self, call: ToolCallId) {
        let result = ToolResult::text(ToolEnd::Rejected, "the user said no: it did not run");
        self.report(Report::ToolDone { call, result: result.clone() });
        self.fold(Event::ToolDone { call, result });
    }

    /// Its start is in the log and its process died. Running it twice must be the same as running it once.
    fn run_again(&mut self, pending: &PendingCall) {
        match &pending.call {
            Some(call) if call.idempotent => self.effects.push_back(Effect::RunTool(call.clone())),
            Some(_) | None => {
                let text = "interrupted: it may or may not have taken effect, check before doing it again";
                let (call, result) = (pending.id, ToolResult::text(ToolEnd::Interrupted, text));
                self.report(Report::ToolDone { call, result: result.clone() });
                self.fold(Event::ToolDone { call, result });
            }
        }
    }

    pub(super) fn run_tool(&mut self, id: ToolCallId, ids: &mut dyn IdGenerator) {
        let Some(place) = self.cleared.iter().position(|cleared| *cleared == id) else { return };
        self.cleared.swap_remove(place);
        let Some(call) = self.pending(id).and_then(|pending| pending.call.clone()) else { return };
        self.fold(Event::ToolStarted { call: id });
        match self.approved.iter().position(|(approved, _)| *approved == id) {
            Some(place) => {
                let (_, plan) = self.approved.swap_remove(place);
                self.tool_done(id, propose::approved(&plan), ids); // what was approved is all there is to tell
            }
            None => self.effects.push_back(Effect::RunTool(call)),
        }
    }

    pub(super) fn tool_said(&mut self, call: ToolCallId, report: Report) {
        if self.is_running(call) {
            self.report(report);
        }
    }

    pub(super) fn tool_done(&mut self, call: ToolCallId, result: ToolResult, ids: &mut dyn IdGenerator) {
        if !self.is_running(call) {
            return;
        }
        self.report(Report::ToolDone { call, result: result.clone() });
        self.fold(Event::ToolDone { call, result });
        self.start_queued(ids);
        self.settle(ids);
    }

    pub(super) fn answered(&mut self, id: QuestionId, answer: Answer, ids: &mut dyn IdGenerator) {
        self.held.retain(|held| *held != id);
        let asked = self.context.pending.iter().find_map(|pending| match &pending.stage {
            CallStage::Asked(question) if question.id == id => Some((pending.clone(), question.clone())),
            CallStage::Requested | CallStage::Asked(_) | CallStage::Answered(..) | CallStage::Started => None,
        });
        let Some((pending, question)) = asked else { return };
        self.fold(Event::QuestionAnswered { question: id, answer: answer.clone() });
        self.follow(&pending, &question, &answer, ids);
        self.settle(ids);
    }

    fn is_running(&self, call: ToolCallId) -> bool {
        matches!(self.phase, Phase::Tools) && self.pending(call).is_some_and(|call| call.stage == CallStage::Started)
    }

    fn pending(&self, call: ToolCallId) -> Option<&PendingCall> {
        self.context.pending.iter().find(|pending| pending.id == call)
    }
}

/// Marks in the log what the model did wrong, so that a count of it survives a restart.
fn bad_mark() -> Option<serde_json::Value> {
    Some(json!({"error": "bad_call"}))
}

/// A call that no tool could describe.
fn undescribed(pending: &PendingCall) -> ToolCall {
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
