//! The scripted agents behind our captures of the Agent Development Kit: what they do follows from the first word.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::context::{PendingCall, Stage};
use gander_domain::message::plain_text;
use gander_domain::{
    Ask, Choice, ChoiceKind, Delta, Gate, Growth, Order, Outcome, Part, Question, QuestionId, QuestionOrigin, Reply,
    Report, Role, SessionView, StopReason, ToolCall, ToolCallId, ToolEnd, ToolKind, ToolResult, Usage,
};
use gander_runtime::backend::{Backend, Stay};
use gander_store::Store;
use gander_store::clock::SystemIds;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::wire_tools::Bench;

const END: Report = Report::Ended(Outcome::Completed { stop: StopReason::EndTurn });

/// A scripted agent.
pub(super) struct Wire {
    pub(super) store: Arc<dyn Store>,
}

/// One stay of a run.
struct Play {
    reports: mpsc::Sender<Report>,
    orders: mpsc::Receiver<Order>,
    bench: Bench,
    view: SessionView,
}

/// The session is gone, or the run was cancelled.
struct Over;

/// Why a call needs a yes, in the words of the original.
fn hint(name: &str, arguments: &Value) -> Option<String> {
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
impl Backend for Wire {
    async fn drive(&self, stay: Stay) {
        let Stay { view, context, orders, reports, stop, .. } = stay;
        let own = context.messages.get(context.run_from()..).unwrap_or_default();
        let prompt = own.iter().find(|message| message.role == Role::User);
        let said = prompt.map(|message| plain_text(&message.parts)).unwrap_or_default();
        let bench = Bench { store: Arc::clone(&self.store) };
        let mut play = Play { reports, orders, bench, view };
        let played = async {
            if context.pending.is_empty() { play.begin(&said).await } else { play.go_on(&context.pending).await }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            played = played => drop(played),
        }
    }
}

impl Play {
    async fn begin(&mut self, said: &str) -> Result<(), Over> {
        if let Some((name, result)) = late(said) {
            return self.conclude(&name, &result).await;
        }
        let mut words = said.split_whitespace();
        let first = words.next().unwrap_or_default();
        match first {
            "think" => {
                self.grow(Growth::Thought, &["Let me ", "consider. "]).await?;
                self.speak(&["The answer ", "is 42."]).await
            }
            "tool" => self.call(&["I will look. "], &[("get_weather", json!({ "city": "Paris" }))]).await,
            "tools2" => {
                let calls = ["Paris", "Rome"].map(|city| ("get_weather", json!({ "city": city })));
                self.call(&[], &calls).await
            }
            "confirm" => {
                let call = ("delete_file", json!({ "path": "/data/a.txt" }));
                self.call(&["This needs your consent. "], &[call]).await
            }
            "confirm2" => self.call(&[], &[("transfer_money", json!({ "amount": 250, "to": "bob" }))]).await,
            "artifact" => {
                self.call(&[], &[("save_note", json!({ "name": "note.txt", "body": "hello artifact" }))]).await
            }
            "elicit" => self.elicit().await,
            "invite" => {
                self.invite().await?;
                self.speak(&["Hello", ", ", "world!"]).await
            }
            "invite2" => self.invite_beside().await,
            "state" => self.call(&[], &[("set_pref", json!({ "key": "colour", "value": "blue" }))]).await,
            "long" => self.call(&[], &[("start_job", json!({ "name": "build" }))]).await,
            "transfer" => self.call(&[], &[("transfer_to_agent", json!({ "agent_name": "helper" }))]).await,
            "toolerror" => self.call(&[], &[("broken_tool", json!({}))]).await,
            "error" => self.fail("RESOURCE_EXHAUSTED", "quota gone").await,
            "raise" => self.fail("RuntimeError", "model exploded").await,
            "midraise" => {
                self.grow(Growth::Text, &["half ", "way "]).await?;
                self.fail("RuntimeError", "model exploded half way").await
            }
            "blocked" => {
                self.grow(Growth::Text, &["Once upon "]).await?;
                self.done(Vec::new()).await?;
                self.tell(Report::Ended(Outcome::Completed { stop: StopReason::Refusal })).await
            }
            "slow" => self.tick().await,
            "many" => {
                let count = words.next().and_then(|count| count.parse().ok()).unwrap_or(10);
                let all: Vec<String> = (0..count).map(|number: u32| format!("word{number} ")).collect();
                self.speak(&all.iter().map(String::as_str).collect::<Vec<_>>()).await
            }
            _ => self.speak(&["Hello", ", ", "world!"]).await,
        }
    }

    /// Calls that were asked about have their answers now.
    async fn go_on(&mut self, pending: &[PendingCall]) -> Result<(), Over> {
        let mut last = None;
        for call in pending {
            let Stage::Answered(_, answer) = &call.stage else { continue };
            let result = if answer.reply.allows() {
                self.tell(Report::ToolReady { call: call.id }).await?;
                self.started(call.id).await?;
                self.bench.run(&self.view, &call.name, &call.arguments).await.result
            } else {
                ToolResult::text(ToolEnd::Rejected, "no")
            };
            last = Some((call.name.clone(), result.clone()));
            self.tell(Report::ToolDone { call: call.id, result }).await?;
        }
        if pending.iter().any(|call| matches!(call.stage, Stage::Asked(_))) {
            return self.tell(Report::Parked).await;
        }
        match last {
            Some((name, result)) => self.conclude(&name, &result).await,
            None => self.tell(END).await,
        }
    }

    async fn call(&mut self, before: &[&str], calls: &[(&str, Value)]) -> Result<(), Over> {
        self.grow(Growth::Text, before).await?;
        let calls: Vec<ToolCall> = calls.iter().map(|(name, arguments)| tool_call(name, arguments)).collect();
        let use_of = |call: &ToolCall| Part::ToolUse {
            call: call.id,
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        };
        self.done(calls.iter().map(use_of).collect()).await?;
        let (mut first, mut asked) = (None, false);
        for call in calls {
            if let Some(hint) = hint(&call.name, &call.arguments) {
                asked = true;
                self.tell(Report::ToolWanted { gate: Gate::Ask(question(hint)), call }).await?;
                continue;
            }
            let (id, name, arguments) = (call.id, call.name.clone(), call.arguments.clone());
            self.tell(Report::ToolWanted { call, gate: Gate::Foreign }).await?;
            let done = self.bench.run(&self.view, &name, &arguments).await;
            for effect in done.effects(id) {
                self.tell(effect).await?;
            }
            first.get_or_insert((name, done.result.clone()));
            self.tell(Report::ToolDone { call: id, result: done.result }).await?;
        }
        match first {
            _ if asked => self.tell(Report::Parked).await,
            Some((name, result)) => self.conclude(&name, &result).await,
            None => self.tell(END).await,
        }
    }

    /// A tool that asks by itself while it runs.
    async fn elicit(&mut self) -> Result<(), Over> {
        let call = tool_call("book_table", &json!({ "day": "Monday" }));
        let (id, name, arguments) = (call.id, call.name.clone(), call.arguments.clone());
        self.done(vec![Part::ToolUse { call: id, name, arguments }]).await?;
        self.tell(Report::ToolWanted { call, gate: Gate::Foreign }).await?;
        let schema = json!({ "type": "object", "properties": { "guests": { "type": "integer" } } });
        let asked = Question {
            ask: Ask::Form { schema },
            origin: QuestionOrigin::Held,
            ..question("For how many?".to_owned())
        };
        let asked_id = asked.id;
        self.tell(Report::Asked(asked)).await?;
        let reply = loop {
            match self.orders.recv().await {
                Some(Order::Answered { question, answer }) if question == asked_id => break answer.reply,
                order => self.heed(order).await?,
            }
        };
        let result = match reply {
            Reply::Filled { content } => giving(content),
            Reply::Chosen { .. } | Reply::Declined | Reply::Cancelled | Reply::Interrupted | Reply::Superseded => {
                ToolResult::text(ToolEnd::Rejected, "no")
            }
        };
        self.tell(Report::ToolDone { call: id, result: result.clone() }).await?;
        self.conclude("book_table", &result).await
    }

    /// Asks what nobody waits for, and goes on.
    async fn invite(&mut self) -> Result<(), Over> {
        let ask = Ask::Visit { url: "https://example.org/login".to_owned() };
        let asked = Question { ask, origin: QuestionOrigin::Aside, ..question("Log in".to_owned()) };
        self.tell(Report::Asked(asked)).await
    }

    /// The same while a tool runs, which is not who asks.
    async fn invite_beside(&mut self) -> Result<(), Over> {
        let call = tool_call("get_weather", &json!({ "city": "Paris" }));
        let (id, name, arguments) = (call.id, call.name.clone(), call.arguments.clone());
        self.done(vec![Part::ToolUse { call: id, name: name.clone(), arguments: arguments.clone() }]).await?;
        self.tell(Report::ToolWanted { call, gate: Gate::Foreign }).await?;
        self.invite().await?;
        let result = self.bench.run(&self.view, &name, &arguments).await.result;
        self.tell(Report::ToolDone { call: id, result: result.clone() }).await?;
        self.conclude(&name, &result).await
    }

    async fn conclude(&mut self, name: &str, result: &ToolResult) -> Result<(), Over> {
        let shown = match (&result.raw, result.end) {
            (Some(raw), _) => python(raw),
            (None, ToolEnd::Rejected) => "{'error': 'This tool call is rejected.'}".to_owned(),
            (None, _) => "{'error': 'tool is broken'}".to_owned(),
        };
        self.speak(&["Tool ", &format!("{name} said: "), &shown]).await
    }

    async fn speak(&mut self, words: &[&str]) -> Result<(), Over> {
        self.grow(Growth::Text, words).await?;
        self.done(Vec::new()).await?;
        self.tell(END).await
    }

    async fn tick(&mut self) -> Result<(), Over> {
        for number in 0..50 {
            self.grow(Growth::Text, &[&format!("tick{number} ")]).await?;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(100)) => {}
                order = self.orders.recv() => self.heed(order).await?,
            }
        }
        self.speak(&[]).await
    }

    async fn grow(&self, growth: Growth, words: &[&str]) -> Result<(), Over> {
        for word in words {
            self.tell(Report::Deltas(vec![Delta { growth, text: (*word).to_owned() }])).await?;
        }
        Ok(())
    }

    async fn done(&self, tail: Vec<Part>) -> Result<(), Over> {
        self.tell(Report::MessageDone { tail, native: None, interrupted: false }).await?;
        let model = "scripted/scripted-1".to_owned();
        self.tell(Report::UsageAdded(Usage { model, input: 11, output: 7, ..Usage::default() })).await
    }

    async fn fail(&self, reason: &str, message: &str) -> Result<(), Over> {
        self.tell(Report::Ended(Outcome::failed(reason, message))).await
    }

    /// Waits until the call's start is stored.
    async fn started(&mut self, id: ToolCallId) -> Result<(), Over> {
        loop {
            match self.orders.recv().await {
                Some(Order::RunTool { call }) if call == id => return Ok(()),
                order => self.heed(order).await?,
            }
        }
    }

    async fn heed(&self, order: Option<Order>) -> Result<(), Over> {
        match order {
            Some(Order::Cancel) => {
                self.tell(Report::Ended(Outcome::Cancelled)).await?;
                Err(Over)
            }
            None => Err(Over),
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

    async fn tell(&self, report: Report) -> Result<(), Over> {
        self.reports.send(report).await.map_err(|_| Over)
    }
}

/// A result that came after its run, as the door words it.
fn late(said: &str) -> Option<(String, ToolResult)> {
    let (_, rest) = said.strip_prefix("The call adk-")?.split_once(" of ")?;
    let (name, result) = rest.split_once(" gave this in the end: ")?;
    Some((name.to_owned(), giving(serde_json::from_str(result).ok()?)))
}

fn giving(value: Value) -> ToolResult {
    ToolResult { end: ToolEnd::Completed, content: Vec::new(), raw: Some(value) }
}

fn tool_call(name: &str, arguments: &Value) -> ToolCall {
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

fn question(title: String) -> Question {
    let choice = |id: &str, kind| Choice { id: id.to_owned(), name: id.to_owned(), kind };
    let choices = vec![choice("allow", ChoiceKind::AllowOnce), choice("reject", ChoiceKind::RejectOnce)];
    Question {
        id: QuestionId::make(&mut SystemIds),
        call: None,
        title,
        ask: Ask::Choose { choices },
        origin: QuestionOrigin::Parked,
        fingerprint: None,
        plan: None,
    }
}

/// A value as python writes it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("'{text}'"),
        Value::Array(items) => format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(key, value)| format!("'{key}': {}", python(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}
