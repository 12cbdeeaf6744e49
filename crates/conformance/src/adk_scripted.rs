//! The scripted agents behind our captures of the Agent Development Kit: what they do follows from the first word.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::context::{CallStage, PendingCall};
use gander_domain::message::plain_text;
use gander_domain::{
    Choice, ChoiceKind, Delta, DeltaKind, Order, Outcome, Part, Question, QuestionId, QuestionKind, QuestionOrigin,
    Reply, Report, Role, SessionView, StopReason, ToolCall, ToolCallId, ToolEnd, ToolGate, ToolKind, ToolResult, Usage,
};
use gander_runtime::backend::{Backend, BackendRun};
use gander_store::Store;
use gander_store::clock::SystemIds;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::adk_tools::ScriptedTools;

const END: Report = Report::Ended(Outcome::Completed { stop: StopReason::EndTurn });

/// A scripted agent.
pub(crate) struct ScriptedAgent {
    pub(crate) store: Arc<dyn Store>,
}

/// One start of the agent for a run.
struct AdkScriptedRun {
    reports: mpsc::Sender<Report>,
    orders: mpsc::Receiver<Order>,
    tools: ScriptedTools,
    view: SessionView,
}

/// The session is gone, or the run was cancelled.
struct RunOver;

/// Why a call needs a yes, in the words of the original.
fn scripted_confirmation_hint(name: &str, arguments: &Value) -> Option<String> {
    match name {
        "delete_file" => Some(format!(
            "Please approve or reject the tool call {name}() by responding with a FunctionResponse with an expected ToolConfirmation payload."
        )),
        "transfer_money" => Some(format!(
            "Send {} to {}? You may lower the amount.",
            arguments["amount"],
            arguments["to"].as_str().unwrap_or_default()
        )),
        _ => None,
    }
}

#[async_trait]
impl Backend for ScriptedAgent {
    async fn drive(&self, backend_run: BackendRun) {
        let BackendRun { view, context, orders, reports, stop, .. } = backend_run;
        let own = context.messages.get(context.run_start_index()..).unwrap_or_default();
        let prompt = own.iter().find(|message| message.role == Role::User);
        let said = prompt.map(|message| plain_text(&message.parts)).unwrap_or_default();
        let tools = ScriptedTools { store: Arc::clone(&self.store) };
        let mut script = AdkScriptedRun { reports, orders, tools, view };
        let outcome = async {
            if context.pending.is_empty() {
                script.start(&said).await
            } else {
                script.continue_after_answers(&context.pending).await
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            outcome = outcome => drop(outcome),
        }
    }
}

impl AdkScriptedRun {
    async fn start(&mut self, said: &str) -> Result<(), RunOver> {
        if let Some((name, result)) = parse_scripted_late_result(said) {
            return self.report_tool_result(&name, &result).await;
        }
        let mut words = said.split_whitespace();
        let first = words.next().unwrap_or_default();
        match first {
            "think" => {
                self.send_deltas(DeltaKind::Thought, &["Let me ", "consider. "]).await?;
                self.answer_with(&["The answer ", "is 42."]).await
            }
            "tool" => self.call_tools(&["I will look. "], &[("get_weather", json!({ "city": "Paris" }))]).await,
            "tools2" => {
                let calls = ["Paris", "Rome"].map(|city| ("get_weather", json!({ "city": city })));
                self.call_tools(&[], &calls).await
            }
            "confirm" => {
                let call = ("delete_file", json!({ "path": "/data/a.txt" }));
                self.call_tools(&["This needs your consent. "], &[call]).await
            }
            "confirm2" => self.call_tools(&[], &[("transfer_money", json!({ "amount": 250, "to": "bob" }))]).await,
            "artifact" => {
                self.call_tools(&[], &[("save_note", json!({ "name": "note.txt", "body": "hello artifact" }))]).await
            }
            "elicit" => self.ask_form_in_tool().await,
            "invite" => {
                self.ask_login().await?;
                self.answer_with(&["Hello", ", ", "world!"]).await
            }
            "invite2" => self.ask_login_beside_tool().await,
            "state" => self.call_tools(&[], &[("set_pref", json!({ "key": "colour", "value": "blue" }))]).await,
            "long" => self.call_tools(&[], &[("start_job", json!({ "name": "build" }))]).await,
            "transfer" => self.call_tools(&[], &[("transfer_to_agent", json!({ "agent_name": "helper" }))]).await,
            "toolerror" => self.call_tools(&[], &[("broken_tool", json!({}))]).await,
            "error" => self.end_failed("RESOURCE_EXHAUSTED", "quota gone").await,
            "raise" => self.end_failed("RuntimeError", "model exploded").await,
            "midraise" => {
                self.send_deltas(DeltaKind::Text, &["half ", "way "]).await?;
                self.end_failed("RuntimeError", "model exploded half way").await
            }
            "blocked" => {
                self.send_deltas(DeltaKind::Text, &["Once upon "]).await?;
                self.finish_message(Vec::new()).await?;
                self.report(Report::Ended(Outcome::Completed { stop: StopReason::Refusal })).await
            }
            "slow" => self.stream_ticks().await,
            "many" => {
                let count = words.next().and_then(|count| count.parse().ok()).unwrap_or(10);
                let all: Vec<String> = (0..count).map(|number: u32| format!("word{number} ")).collect();
                self.answer_with(&all.iter().map(String::as_str).collect::<Vec<_>>()).await
            }
            _ => self.answer_with(&["Hello", ", ", "world!"]).await,
        }
    }

    /// Calls that were asked about have their answers now.
    async fn continue_after_answers(&mut self, pending: &[PendingCall]) -> Result<(), RunOver> {
        let mut last = None;
        for call in pending {
            let CallStage::Answered(_, answer) = &call.stage else { continue };
            let result = if answer.reply.is_allowed() {
                self.report(Report::ToolReady { call: call.id }).await?;
                self.wait_for_tool_start(call.id).await?;
                self.tools.run(&self.view, &call.name, &call.arguments).await.result
            } else {
                ToolResult::text(ToolEnd::Rejected, "no")
            };
            last = Some((call.name.clone(), result.clone()));
            self.report(Report::ToolDone { call: call.id, result }).await?;
        }
        if pending.iter().any(|call| matches!(call.stage, CallStage::Asked(_))) {
            return self.report(Report::Parked).await;
        }
        match last {
            Some((name, result)) => self.report_tool_result(&name, &result).await,
            None => self.report(END).await,
        }
    }

    async fn call_tools(&mut self, before: &[&str], calls: &[(&str, Value)]) -> Result<(), RunOver> {
        self.send_deltas(DeltaKind::Text, before).await?;
        let calls: Vec<ToolCall> = calls.iter().map(|(name, arguments)| scripted_tool_call(name, arguments)).collect();
        let use_of = |call: &ToolCall| Part::ToolUse {
            call: call.id,
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        };
        self.finish_message(calls.iter().map(use_of).collect()).await?;
        let (mut first, mut asked) = (None, false);
        for call in calls {
            if let Some(hint) = scripted_confirmation_hint(&call.name, &call.arguments) {
                asked = true;
                self.report(Report::ToolWanted { gate: ToolGate::Ask(scripted_question(hint)), call }).await?;
                continue;
            }
            let (id, name, arguments) = (call.id, call.name.clone(), call.arguments.clone());
            self.report(Report::ToolWanted { call, gate: ToolGate::External }).await?;
            let done = self.tools.run(&self.view, &name, &arguments).await;
            for effect in done.effects(id) {
                self.report(effect).await?;
            }
            first.get_or_insert((name, done.result.clone()));
            self.report(Report::ToolDone { call: id, result: done.result }).await?;
        }
        match first {
            _ if asked => self.report(Report::Parked).await,
            Some((name, result)) => self.report_tool_result(&name, &result).await,
            None => self.report(END).await,
        }
    }

    /// A tool that asks by itself while it runs.
    async fn ask_form_in_tool(&mut self) -> Result<(), RunOver> {
        let call = scripted_tool_call("book_table", &json!({ "day": "Monday" }));
        let (id, name, arguments) = (call.id, call.name.clone(), call.arguments.clone());
        self.finish_message(vec![Part::ToolUse { call: id, name, arguments }]).await?;
        self.report(Report::ToolWanted { call, gate: ToolGate::External }).await?;
        let schema = json!({ "type": "object", "properties": { "guests": { "type": "integer" } } });
        let asked = Question {
            ask: QuestionKind::Form { schema },
            origin: QuestionOrigin::Held,
            ..scripted_question("For how many?".to_owned())
        };
        let asked_id = asked.id;
        self.report(Report::Asked(asked)).await?;
        let reply = loop {
            match self.orders.recv().await {
                Some(Order::Answered { question, answer }) if question == asked_id => break answer.reply,
                order => self.handle_order(order).await?,
            }
        };
        let result = match reply {
            Reply::Filled { content } => scripted_completed_result(content),
            Reply::Chosen { .. }
            | Reply::Rejected { .. }
            | Reply::Declined
            | Reply::Cancelled
            | Reply::Interrupted
            | Reply::Superseded => ToolResult::text(ToolEnd::Rejected, "no"),
        };
        self.report(Report::ToolDone { call: id, result: result.clone() }).await?;
        self.report_tool_result("book_table", &result).await
    }

    /// Asks what nobody waits for, and goes on.
    async fn ask_login(&mut self) -> Result<(), RunOver> {
        let ask = QuestionKind::Visit { url: "https://example.org/login".to_owned() };
        let asked = Question { ask, origin: QuestionOrigin::NonBlocking, ..scripted_question("Log in".to_owned()) };
        self.report(Report::Asked(asked)).await
    }

    /// The same while a tool runs, which is not who asks.
    async fn ask_login_beside_tool(&mut self) -> Result<(), RunOver> {
        let call = scripted_tool_call("get_weather", &json!({ "city": "Paris" }));
        let (id, name, arguments) = (call.id, call.name.clone(), call.arguments.clone());
        self.finish_message(vec![Part::ToolUse { call: id, name: name.clone(), arguments: arguments.clone() }]).await?;
        self.report(Report::ToolWanted { call, gate: ToolGate::External }).await?;
        self.ask_login().await?;
        let result = self.tools.run(&self.view, &name, &arguments).await.result;
        self.report(Report::ToolDone { call: id, result: result.clone() }).await?;
        self.report_tool_result(&name, &result).await
    }

    async fn report_tool_result(&mut self, name: &str, result: &ToolResult) -> Result<(), RunOver> {
        let shown = match (&result.raw, result.end) {
            (Some(raw), _) => python_repr(raw),
            (None, ToolEnd::Rejected) => "{'error': 'This tool call is rejected.'}".to_owned(),
            (None, _) => "{'error': 'tool is broken'}".to_owned(),
        };
        self.answer_with(&["Tool ", &format!("{name} said: "), &shown]).await
    }

    async fn answer_with(&mut self, words: &[&str]) -> Result<(), RunOver> {
        self.send_deltas(DeltaKind::Text, words).await?;
        self.finish_message(Vec::new()).await?;
        self.report(END).await
    }

    async fn stream_ticks(&mut self) -> Result<(), RunOver> {
        for number in 0..50 {
            self.send_deltas(DeltaKind::Text, &[&format!("tick{number} ")]).await?;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
                order = self.orders.recv() => self.handle_order(order).await?,
            }
        }
        self.answer_with(&[]).await
    }

    async fn send_deltas(&self, growth: DeltaKind, words: &[&str]) -> Result<(), RunOver> {
        for word in words {
            self.report(Report::Deltas(vec![Delta { growth, text: (*word).to_owned() }])).await?;
        }
        Ok(())
    }

    async fn finish_message(&self, tail: Vec<Part>) -> Result<(), RunOver> {
        self.report(Report::MessageDone { tail, native: None, interrupted: false }).await?;
        let model = "scripted/scripted-1".to_owned();
        self.report(Report::UsageAdded(Usage { model, input: 11, output: 7, ..Usage::default() })).await
    }

    async fn end_failed(&self, reason: &str, message: &str) -> Result<(), RunOver> {
        self.report(Report::Ended(Outcome::failed(reason, message))).await
    }

    /// Waits until the call's start is stored.
    async fn wait_for_tool_start(&mut self, id: ToolCallId) -> Result<(), RunOver> {
        loop {
            match self.orders.recv().await {
                Some(Order::RunTool { call }) if call == id => return Ok(()),
                order => self.handle_order(order).await?,
            }
        }
    }

    async fn handle_order(&self, order: Option<Order>) -> Result<(), RunOver> {
        match order {
            Some(Order::Cancel) => {
                self.report(Report::Ended(Outcome::Cancelled)).await?;
                Err(RunOver)
            }
            None => Err(RunOver),
            Some(
                Order::Begin { .. }
                | Order::Resume { .. }
                | Order::RunTool { .. }
                | Order::Answered { .. }
                | Order::Steer { .. }
                | Order::Configured { .. },
            ) => Ok(()),
        }
    }

    async fn report(&self, report: Report) -> Result<(), RunOver> {
        self.reports.send(report).await.map_err(|_| RunOver)
    }
}

/// A result that came after its run, as the door words it.
fn parse_scripted_late_result(said: &str) -> Option<(String, ToolResult)> {
    let (_, rest) = said.strip_prefix("The call adk-")?.split_once(" of ")?;
    let (name, result) = rest.split_once(" gave this in the end: ")?;
    Some((name.to_owned(), scripted_completed_result(serde_json::from_str(result).ok()?)))
}

fn scripted_completed_result(value: Value) -> ToolResult {
    ToolResult { end: ToolEnd::Completed, content: Vec::new(), raw: Some(value) }
}

fn scripted_tool_call(name: &str, arguments: &Value) -> ToolCall {
    ToolCall {
        id: ToolCallId::make(&mut SystemIds),
        name: name.to_owned(),
        title: name.to_owned(),
        kind: ToolKind::Other,
        arguments: arguments.clone(),
        locations: Vec::new(),
        idempotent: true,
    }
}

fn scripted_question(title: String) -> Question {
    let choice = |id: &str, kind| Choice { id: id.to_owned(), name: id.to_owned(), kind };
    let choices = vec![choice("allow", ChoiceKind::AllowOnce), choice("reject", ChoiceKind::RejectOnce)];
    Question {
        id: QuestionId::make(&mut SystemIds),
        call: None,
        title,
        ask: QuestionKind::Choose { choices },
        origin: QuestionOrigin::Parked,
        fingerprint: None,
        plan: None,
        subagent: None,
        preview: Vec::new(),
        outward: None,
        meta: None,
    }
}

/// A value as python writes it.
fn python_repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("'{text}'"),
        Value::Array(items) => format!("[{}]", items.iter().map(python_repr).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("'{key}': {}", python_repr(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}
