//! A turn under a script: what happens goes in, what it does is written down line by line.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use gander_agent::AgentSettings;
use gander_agent::turn::{Effect, Input, PermissionEvaluator, ToolDecision, Turn, TurnSetup};
use gander_domain::{
    Answer, Choice, ChoiceKind, Context, Delta, DeltaKind, Entry, Event, IdGenerator, Message, MessageId, Notice,
    Outcome, Part, Policy, Principal, Question, QuestionId, QuestionKind, QuestionOrigin, Reply, Report, Role, RunId,
    RunOrigin, Seq, SessionPolicy, Settings, Timestamp, ToolCall, ToolCallId, ToolContent, ToolEnd, ToolGate, ToolKind,
    ToolResult, ToolSpec,
};
use gander_models::{Finish, ModelEvent, ModelInfo, ModelStop, Request, Tokens};
use serde_json::{Value, json};
use uuid::Uuid;

/// Ids that count.
#[derive(Clone, Default)]
pub struct Count(pub u128);

impl IdGenerator for Count {
    fn next_id(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }
}

/// A tool's name says what becomes of its calls: `look` (idempotent), `write` and `delegate` run, `danger`
/// asks, `forbidden` is refused, everything else is unknown.
#[derive(Default)]
pub struct Names {
    always: Mutex<BTreeSet<String>>,
}

impl PermissionEvaluator for Names {
    fn evaluate(
        &self,
        policy: SessionPolicy,
        _: &gander_domain::Provenance,
        id: ToolCallId,
        name: &str,
        arguments: &Value,
        ids: &mut dyn IdGenerator,
    ) -> ToolDecision {
        let call = described(id, name, arguments);
        let granted = policy.policy == Policy::Auto || self.always.lock().unwrap().contains(name);
        match name {
            "look" | "write" | "delegate" => ToolDecision::Run(call),
            "danger" if granted => ToolDecision::Run(call),
            "danger" => {
                let question = question(QuestionId::make(ids), &call, self.fingerprint(&call));
                ToolDecision::Ask(call, question)
            }
            "forbidden" => ToolDecision::Refuse(call, ToolResult::text(ToolEnd::Rejected, "the policy forbids it")),
            _ => ToolDecision::Bad(ToolResult::text(ToolEnd::Failed, format!("no such tool: {name}"))),
        }
    }

    fn fingerprint(&self, call: &ToolCall) -> String {
        format!("{}{}", call.name, call.arguments)
    }

    fn record_answer(&self, call: &ToolCall, _: &Question, answer: &Answer) {
        if matches!(answer.reply, Reply::Chosen { kind: ChoiceKind::AllowAlways, .. }) {
            self.always.lock().unwrap().insert(call.name.clone());
        }
    }
}

pub fn described(id: ToolCallId, name: &str, arguments: &Value) -> ToolCall {
    ToolCall {
        id,
        name: name.to_owned(),
        title: format!("use {name}"),
        kind: ToolKind::Other,
        arguments: arguments.clone(),
        locations: Vec::new(),
        idempotent: name == "look",
    }
}

pub fn question(id: QuestionId, call: &ToolCall, fingerprint: String) -> Question {
    let choice = |id: &str, kind| Choice { id: id.to_owned(), name: id.to_owned(), kind };
    Question {
        id,
        call: Some(call.id),
        title: format!("may I use {}?", call.name),
        ask: QuestionKind::Choose {
            choices: vec![
                choice("once", ChoiceKind::AllowOnce),
                choice("always", ChoiceKind::AllowAlways),
                choice("no", ChoiceKind::RejectOnce),
            ],
        },
        origin: QuestionOrigin::Parked,
        fingerprint: Some(fingerprint),
        plan: None,
        subagent: None,
        preview: Vec::new(),
        outward: None,
        meta: None,
    }
}

pub fn info() -> ModelInfo {
    ModelInfo {
        provider: "test".into(),
        model: "script".into(),
        window: Some(1_000),
        max_output: None,
        images: false,
        audio: false,
        thinking: false,
        price: None,
        scripted: true,
    }
}

pub fn setup() -> TurnSetup {
    let tool = |name: &str| ToolSpec { name: name.to_owned(), description: String::new(), schema: json!({}).into() };
    TurnSetup {
        settings: AgentSettings { retries: 2, max_turns: 10, ..AgentSettings::default() },
        model: ModelInfo { window: None, ..info() },
        system: "be good".into(),
        tools: ["look", "write", "danger", "forbidden"].map(tool).into(),
        evaluator: Arc::new(Names::default()),
        goal: None,
        subtasks: None,
        spent: Default::default(),
    }
}

/// A context whose run has this prompt and nothing else.
pub fn prompted(text: &str) -> Context {
    let settings = Settings::new("gander", "assistant");
    let mut context = Context::empty(settings, "/home/ada".into(), Vec::new());
    context.has_title = true;
    start(&mut context, text);
    context
}

/// The next run begins.
pub fn start(context: &mut Context, text: &str) {
    let run = RunId::new(Uuid::from_u128(0xaaaa_0000 + u128::from(context.head.0)));
    let origin = RunOrigin { by: Principal::owner(), door: "test".into() };
    fold(context, Some(run), Event::RunStarted { origin });
    fold(context, Some(run), Event::MessageDone { message: user(text) });
}

pub fn end(context: &mut Context) {
    let run = context.run;
    fold(context, run, Event::RunEnded { outcome: Outcome::Cancelled });
}

pub fn fold(context: &mut Context, run: Option<RunId>, event: Event) {
    let seq = Seq(context.head.0 + 1);
    context.apply(&Entry { seq, at: Timestamp::default(), run, event, meta: None });
}

pub fn user(text: &str) -> Message {
    let sum: u128 = text.bytes().map(u128::from).sum();
    Message::text(MessageId::new(Uuid::from_u128(0xbbbb_0000 + sum)), Role::User, text)
}

pub fn says(text: &str) -> ModelEvent {
    ModelEvent::Delta(Delta { growth: DeltaKind::Text, text: text.to_owned() })
}

pub fn thinks(text: &str) -> ModelEvent {
    ModelEvent::Delta(Delta { growth: DeltaKind::Thought, text: text.to_owned() })
}

pub fn calls(index: u32, name: &str, arguments: &str) -> Vec<ModelEvent> {
    vec![
        ModelEvent::ToolStarted { index, name: name.to_owned() },
        ModelEvent::ToolArguments { index, text: arguments.to_owned() },
    ]
}

pub fn done(stop: ModelStop) -> ModelEvent {
    used(stop, 0)
}

pub fn used(stop: ModelStop, input: u64) -> ModelEvent {
    ModelEvent::Done(Finish { stop, usage: Tokens { input, ..Tokens::default() }, native: None })
}

/// An answer that calls these tools and says nothing.
pub fn wants(names: &[&str]) -> Vec<ModelEvent> {
    let mut events: Vec<ModelEvent> =
        names.iter().enumerate().flat_map(|(index, name)| calls(index as u32, name, "{}")).collect();
    events.push(done(ModelStop::ToolUse));
    events
}

pub fn reply(choice: &str, kind: ChoiceKind) -> Answer {
    Answer { by: Some(Principal::owner()), door: None, reply: Reply::Chosen { choice: choice.to_owned(), kind } }
}

pub fn yes() -> Answer {
    reply("once", ChoiceKind::AllowOnce)
}

pub fn no() -> Answer {
    reply("no", ChoiceKind::RejectOnce)
}

pub fn ok() -> ToolResult {
    ToolResult::text(ToolEnd::Completed, "fine")
}

/// A turn, and what it did.
pub struct Script {
    turn: Turn,
    ids: Count,
    log: String,
    /// The calls it wanted, in order.
    pub wanted: Vec<ToolCallId>,
    /// The questions it asked, in order.
    pub asked: Vec<QuestionId>,
}

impl Script {
    pub fn new(setup: TurnSetup, context: Context) -> Self {
        let turn = Turn::new(setup, context);
        Self { turn, ids: Count::default(), log: String::new(), wanted: Vec::new(), asked: Vec::new() }
    }

    /// A turn with this prompt, begun.
    pub fn begun(text: &str) -> Self {
        let mut script = Self::new(setup(), prompted(text));
        script.feed(Input::Begin);
        script
    }

    pub fn feed(&mut self, input: Input) -> &mut Self {
        writeln!(self.log, "> {}", input_line(&input)).unwrap();
        self.turn.handle_input(Timestamp::default(), input, &mut self.ids);
        while let Some(effect) = self.turn.poll_effect() {
            self.remember(&effect);
            writeln!(self.log, "{}", effect_line(&effect)).unwrap();
        }
        self
    }

    pub fn model(&mut self, events: Vec<ModelEvent>) -> &mut Self {
        self.feed(Input::Model(events))
    }

    /// The order for the n-th call.
    pub fn run(&mut self, n: usize) -> &mut Self {
        self.feed(Input::RunTool(self.wanted[n]))
    }

    /// The n-th call's tool is done.
    pub fn done(&mut self, n: usize) -> &mut Self {
        self.ends(n, ok())
    }

    /// The n-th call's tool is done, with this result.
    pub fn ends(&mut self, n: usize, result: ToolResult) -> &mut Self {
        self.feed(Input::ToolDone(self.wanted[n], result))
    }

    pub fn answer(&mut self, n: usize, answer: Answer) -> &mut Self {
        self.feed(Input::Answered(self.asked[n], answer))
    }

    /// What happened up to now is not printed: the test is about what comes after it.
    pub fn unprinted(&mut self) -> &mut Self {
        self.log.clear();
        self
    }

    pub fn happened(&self) -> &str {
        &self.log
    }

    pub fn context(&self) -> &Context {
        self.turn.context()
    }

    fn remember(&mut self, effect: &Effect) {
        match effect {
            Effect::Report(Report::ToolWanted { call, gate }) => {
                self.wanted.push(call.id);
                if let ToolGate::Ask(question) = gate {
                    self.asked.push(question.id);
                }
            }
            Effect::Report(Report::Asked(question)) => self.asked.push(question.id),
            _ => {}
        }
    }
}

fn input_line(input: &Input) -> String {
    match input {
        Input::Begin => "begin".into(),
        Input::Model(events) => format!("model: {} events", events.len()),
        Input::ModelFailed(error) => format!("model failed: {error}"),
        Input::Waited => "waited".into(),
        Input::RunTool(call) => format!("order to run {}", short(call.uuid())),
        Input::ToolShows(call, _) => format!("{} shows", short(call.uuid())),
        Input::ToolPlans(call, _) => format!("{} plans", short(call.uuid())),
        Input::ToolMarked(call, _) => format!("{} marks its text", short(call.uuid())),
        Input::ToolSaved { call, name, .. } => format!("{} puts {name} away", short(call.uuid())),
        Input::ToolDone(call, result) => format!("{} done: {}", short(call.uuid()), result_line(result)),
        Input::Answered(question, answer) => format!("answered {}: {:?}", short(question.uuid()), answer.reply),
        Input::Steer(message) => format!("steer: {}", message.plain_text()),
        Input::Held(question) => format!("held: {}", question.title),
        Input::Abandoned(question) => format!("abandoned {}", short(question.uuid())),
        Input::Tools(tools) => format!("{} tools", tools.len()),
        Input::Noticed(notice) => format!("noticed: {}", notice_text(notice)),
        Input::Spent(usage) => format!("spent: {} {}", usage.input, usage.output),
        Input::Configured(settings) => format!("configured: {:?}", settings.policy),
        Input::Refitted { settings, tools, .. } => format!("refitted: {}, {} tools", settings.mode, tools.len()),
        Input::Cancel => "cancel".into(),
    }
}

fn effect_line(effect: &Effect) -> String {
    match effect {
        Effect::CallModel(request) => request_line(request),
        Effect::AbortModel => "abort model".into(),
        Effect::RunTool(call) => format!("run {} {}", call.name, short(call.id.uuid())),
        Effect::StopTools => "stop tools".into(),
        Effect::Wait(pause) => format!("wait {pause:?}"),
        Effect::Report(report) => report_line(report),
        Effect::End => "end".into(),
    }
}

fn request_line(request: &Request) -> String {
    let mut line = String::from("call model");
    for message in &request.messages {
        write!(line, "\n    {}", message_line(message)).unwrap();
    }
    line
}

fn message_line(message: &Message) -> String {
    let role = match message.role {
        Role::User => "user",
        Role::Agent => "agent",
        Role::Tool => "tool",
    };
    let parts: Vec<String> = message.parts.iter().map(part_line).collect();
    format!("{role}: {}", parts.join(" | "))
}

fn part_line(part: &Part) -> String {
    match part {
        Part::Text { text } if text.len() > 400 => format!("{}...{}", &text[..4], text.len()),
        Part::Text { text } => text.clone(),
        Part::Thought { text } => format!("({text})"),
        Part::ToolUse { call, name, arguments } => format!("{name} {} {arguments}", short(call.uuid())),
        Part::ToolResult { call, result } => format!("{} {}", short(call.uuid()), result_line(result)),
        other => format!("{other:?}"),
    }
}

fn result_line(result: &ToolResult) -> String {
    let texts: Vec<String> = result
        .content
        .iter()
        .map(|content| match content {
            ToolContent::Part { part } => part_line(part),
            other => format!("{other:?}"),
        })
        .collect();
    format!("{:?} {}", result.end, texts.join(" "))
}

pub fn report_line(report: &Report) -> String {
    match report {
        Report::MessageStarted { message } => format!("- message {} started", short(message.uuid())),
        Report::Deltas(deltas) => {
            let texts: Vec<String> = deltas.iter().map(|delta| format!("{:?} {}", delta.growth, delta.text)).collect();
            format!("- deltas: {}", texts.join(" | "))
        }
        Report::MessageDone { tail, native, interrupted } => {
            let tail: Vec<String> = tail.iter().map(part_line).collect();
            let native = if native.is_some() { ", native" } else { "" };
            let half = if *interrupted { ", interrupted" } else { "" };
            format!("- message done{half}{native}: {}", tail.join(" | ")).trim_end().to_owned()
        }
        Report::ToolWanted { call, gate } => {
            let gate = match gate {
                ToolGate::Open => "open".to_owned(),
                ToolGate::Ask(question) => format!("ask {}", short(question.id.uuid())),
                ToolGate::External => "foreign".to_owned(),
                ToolGate::Denied(result) => format!("shut {}", result_line(result)),
            };
            format!("- wanted {} {}: {gate}", call.name, short(call.id.uuid()))
        }
        Report::ToolReady { call } => format!("- ready {}", short(call.uuid())),
        Report::ToolUpdated { call, .. } => format!("- updated {}", short(call.uuid())),
        Report::ToolDone { call, result } => format!("- done {}: {}", short(call.uuid()), result_line(result)),
        Report::Asked(question) => format!("- asked {}", short(question.id.uuid())),
        Report::Withdrawn(question) => format!("- withdrawn {}", short(question.uuid())),
        Report::TextMarked(mark) => format!("- text of {mark:?}"),
        Report::PlanSet(plan) => format!("- plan of {}", plan.items.len()),
        Report::StateChanged { delta, .. } => format!("- keeps {} values", delta.len()),
        Report::ArtifactSaved { name, version, .. } => format!("- saved {name} {version}"),
        Report::Routed(route) => format!("- routed to {}", route.mode),
        Report::UsageAdded(usage) => format!("- used {} in, {} out", usage.input, usage.output),
        Report::Titled(title) => format!("- titled {title}"),
        Report::Noticed(notice) => format!("- noticed {:?}: {}", notice.severity, notice_text(notice)),
        Report::OpaqueUpdate { protocol, .. } => format!("- something of {protocol}"),
        Report::WithMeta { report, .. } => format!("{} with meta", report_line(report)),
        Report::Compacted { replacement, .. } => {
            let lines: Vec<String> =
                replacement.iter().map(|message| format!("\n    {}", message_line(message))).collect();
            format!("- compacted{}", lines.concat())
        }
        Report::Parked => "- parked".into(),
        Report::Ended(outcome) => format!("- ended {}", outcome_line(outcome)),
    }
}

fn notice_text(notice: &Notice) -> String {
    let detail = notice.detail.iter().map(|detail| format!(" ({detail})"));
    std::iter::once(notice.title.clone()).chain(detail).collect()
}

fn outcome_line(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed { stop } => format!("completed {stop:?}"),
        Outcome::Cancelled => "cancelled".into(),
        Outcome::Failed { reason, message } => format!("failed {reason}: {message}"),
    }
}

fn short(id: Uuid) -> String {
    format!("#{:x}", id.as_u128())
}
