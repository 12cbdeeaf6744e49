//! Calls of a run: those of one message are answered in one event.

use gander_domain::{Entry, Part, Timestamp, ToolCall, ToolCallId, ToolResult};
use serde_json::Value;

use super::Telling;
use crate::adk::content::{call_id, function_call, function_response, response};
use crate::adk::types::{Actions, Event};

/// Calls without an end, and results that wait for the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Tools {
    /// Asked for in a message, not called yet.
    wanted: Vec<ToolCallId>,
    /// Told to the client already.
    told: Vec<ToolCallId>,
    open: Vec<ToolCall>,
    results: Vec<(ToolCallId, Value)>,
    actions: Actions,
}

impl Tools {
    /// Takes note of the calls in a message; true if there are any.
    pub(super) fn want(&mut self, parts: &[Part]) -> bool {
        let calls: Vec<ToolCallId> = super::called(parts).map(|(call, _)| call).collect();
        self.told.clone_from(&calls);
        self.wanted.clone_from(&calls);
        !calls.is_empty()
    }

    /// A call is made. If no message told it, it is told now.
    pub(super) fn called(&mut self, call: &ToolCall) -> Option<Value> {
        self.wanted.retain(|wanted| *wanted != call.id);
        self.open.push(call.clone());
        let told = self.told.contains(&call.id);
        (!told).then(|| function_call(&call_id(call.id), &call.name, &call.arguments))
    }

    pub(super) fn done(&mut self, call: ToolCallId, result: &ToolResult) {
        let name = self.name(call).to_owned();
        self.open.retain(|open| open.id != call);
        self.wanted.retain(|wanted| *wanted != call);
        self.results.push((call, function_response(&call_id(call), &name, &response(result))));
    }

    /// What the results' event does beside. A change that no call made waits for nothing.
    pub(super) fn actions(&mut self, _call: Option<ToolCallId>) -> &mut Actions {
        &mut self.actions
    }

    pub(super) fn call(&self, id: ToolCallId) -> Option<&ToolCall> {
        self.open.iter().find(|call| call.id == id)
    }

    pub(super) fn open(&self) -> &[ToolCall] {
        &self.open
    }

    /// True if every call that was wanted was made.
    pub(super) fn all_called(&self) -> bool {
        self.wanted.is_empty()
    }

    fn name(&self, id: ToolCallId) -> &str {
        self.call(id).map_or("tool", |call| call.name.as_str())
    }

    /// In the order in which they were called.
    pub(super) fn take_results(&mut self) -> Vec<(ToolCallId, Value)> {
        let mut results = std::mem::take(&mut self.results);
        let place = |call: &ToolCallId| self.told.iter().position(|told| told == call).unwrap_or(usize::MAX);
        results.sort_by_key(|(call, _)| place(call));
        results
    }

    pub(super) fn take_actions(&mut self) -> Actions {
        std::mem::take(&mut self.actions)
    }
}

impl Telling {
    /// The results, once no call is open.
    pub(super) fn results(&mut self, at: Timestamp) -> Option<Event> {
        let all = self.tools.open().is_empty() && self.tools.all_called();
        all.then(|| self.flush_results(at)).flatten()
    }

    /// The results so far.
    pub(super) fn flush_results(&mut self, at: Timestamp) -> Option<Event> {
        let results = self.tools.take_results();
        let (first, _) = results.first()?;
        let (id, actions) = (first.uuid(), self.tools.take_actions());
        let parts = results.into_iter().map(|(_, part)| part).collect();
        Some(Event { actions, ..self.event(at, id, 0).saying("user", parts) })
    }

    /// What was kept or put away while no call was open is an event of its own.
    pub(super) fn loose(&mut self, entry: &Entry) -> Option<Event> {
        if !self.tools.open().is_empty() {
            return None;
        }
        let actions = self.tools.take_actions();
        let salt = u128::from(entry.seq.0) << 8;
        Some(Event { actions, ..self.event(entry.at, self.run.uuid(), salt) })
    }
}
