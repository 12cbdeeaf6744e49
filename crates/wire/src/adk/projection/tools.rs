//! Calls of a run: those of one message are answered in one event.

use gander_domain::{Entry, Part, Timestamp, ToolCall, ToolCallId, ToolResult};
use serde_json::Value;

use super::AdkProjection;
use crate::adk::content::{
    adk_function_call_id, adk_function_call_part, adk_function_response_part, adk_tool_response,
};
use crate::adk::types::{AdkActions, AdkEvent};

/// Calls without an end, and results that wait for the others.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenToolCalls {
    /// Asked for in a message, not called yet.
    wanted: Vec<ToolCallId>,
    /// Told to the client already.
    told: Vec<ToolCallId>,
    open: Vec<ToolCall>,
    results: Vec<(ToolCallId, Value)>,
    actions: AdkActions,
}

impl OpenToolCalls {
    /// Takes note of the calls in a message; true if there are any.
    pub(super) fn expect_calls(&mut self, parts: &[Part]) -> bool {
        let calls: Vec<ToolCallId> = super::adk_called_tools(parts).map(|(call, _)| call).collect();
        self.told.clone_from(&calls);
        self.wanted.clone_from(&calls);
        !calls.is_empty()
    }

    /// A call is made. If no message told it, it is told now.
    pub(super) fn tool_called(&mut self, call: &ToolCall) -> Option<Value> {
        self.wanted.retain(|wanted| *wanted != call.id);
        self.open.push(call.clone());
        let told = self.told.contains(&call.id);
        (!told).then(|| adk_function_call_part(&adk_function_call_id(call.id), &call.name, &call.arguments))
    }

    pub(super) fn tool_done(&mut self, call: ToolCallId, result: &ToolResult) {
        let name = self.call_name(call).to_owned();
        self.open.retain(|open| open.id != call);
        self.wanted.retain(|wanted| *wanted != call);
        self.results
            .push((call, adk_function_response_part(&adk_function_call_id(call), &name, &adk_tool_response(result))));
    }

    /// What the results' event does beside. A change that no call made waits for nothing.
    pub(super) fn result_actions(&mut self, _call: Option<ToolCallId>) -> &mut AdkActions {
        &mut self.actions
    }

    pub(super) fn find_call(&self, id: ToolCallId) -> Option<&ToolCall> {
        self.open.iter().find(|call| call.id == id)
    }

    pub(super) fn open_calls(&self) -> &[ToolCall] {
        &self.open
    }

    /// True if every call that was wanted was made.
    pub(super) fn all_called(&self) -> bool {
        self.wanted.is_empty()
    }

    fn call_name(&self, id: ToolCallId) -> &str {
        self.find_call(id).map_or("tool", |call| call.name.as_str())
    }

    /// In the order in which they were called.
    pub(super) fn take_results(&mut self) -> Vec<(ToolCallId, Value)> {
        let mut results = std::mem::take(&mut self.results);
        let location = |call: &ToolCallId| self.told.iter().position(|told| told == call).unwrap_or(usize::MAX);
        results.sort_by_key(|(call, _)| location(call));
        results
    }

    pub(super) fn take_actions(&mut self) -> AdkActions {
        std::mem::take(&mut self.actions)
    }
}

impl AdkProjection {
    /// The results, once no call is open.
    pub(super) fn results_when_done(&mut self, at: Timestamp) -> Option<AdkEvent> {
        let all = self.tools.open_calls().is_empty() && self.tools.all_called();
        all.then(|| self.flush_results(at)).flatten()
    }

    /// The results so far.
    pub(super) fn flush_results(&mut self, at: Timestamp) -> Option<AdkEvent> {
        let results = self.tools.take_results();
        let (first, _) = results.first()?;
        let (id, actions) = (first.uuid(), self.tools.take_actions());
        let parts = results.into_iter().map(|(_, part)| part).collect();
        Some(AdkEvent { actions, ..self.next_event(at, id, 0).with_content("user", parts) })
    }

    /// What was kept or put away while no call was open is an event of its own.
    pub(super) fn unattached_actions(&mut self, entry: &Entry) -> Option<AdkEvent> {
        if !self.tools.open_calls().is_empty() {
            return None;
        }
        let actions = self.tools.take_actions();
        let salt = u128::from(entry.seq.0) << 8;
        Some(AdkEvent { actions, ..self.next_event(entry.at, self.run.uuid(), salt) })
    }
}
