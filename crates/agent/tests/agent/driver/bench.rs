//! A driver on a bench: a model that reads its lines, tools that do what their names say.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt;
use gander_agent::AgentSettings;
use gander_agent::driver::{RunDeps, ToolExecutor, drive_turn};
use gander_agent::turn::{PermissionEvaluator, ToolDecision, TurnSetup};
use gander_domain::{
    Answer, Context, Delta, DeltaKind, Entry, Event, IdGenerator, Message, MessageId, Order, Plan, Principal, Question,
    QuestionId, QuestionKind, QuestionOrigin, Reply, Report, Role, RunId, RunOrigin, Seq, SessionPolicy, Settings,
    Timestamp, ToolCall, ToolCallId, ToolEnd, ToolKind, ToolResult, ToolSpec,
};
use gander_models::{Finish, Model, ModelError, ModelEvent, ModelInfo, ModelStop, ModelStream, Request, Tokens};
use gander_tools::ToolEvent;
use serde_json::Value;
use tokio::sync::{Barrier, Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// What the model does when it is called.
pub enum Line {
    /// Says this and ends, if only because nothing more comes.
    Batches(Vec<Vec<ModelEvent>>),
    /// Says this and then nothing for ever; tells when it is dropped.
    Hangs(Vec<ModelEvent>, Arc<Notify>),
    NeverConnects,
    Fails(ModelError),
}

impl Line {
    pub fn says(text: &str) -> Self {
        Self::Batches(vec![vec![says(text), done(ModelStop::EndTurn)]])
    }
}

pub struct Lines {
    info: ModelInfo,
    lines: Mutex<VecDeque<Line>>,
    /// How often it was called.
    pub calls: AtomicUsize,
    /// How many batches were read.
    pub read: Arc<AtomicUsize>,
}

/// Tells when it is dropped.
struct Tell(Arc<Notify>);

impl Drop for Tell {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl Model for Lines {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, _: Request) -> Result<ModelStream, ModelError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let line = self.lines.lock().unwrap().pop_front().expect("a line for every call");
        match line {
            Line::Batches(batches) => {
                let read = self.read.clone();
                let counted = futures::stream::iter(batches).map(move |batch| {
                    read.fetch_add(1, Ordering::SeqCst);
                    Ok(batch)
                });
                Ok(ModelStream::new(counted))
            }
            Line::Hangs(events, dropped) => {
                let tell = Tell(dropped);
                let rest = futures::stream::once(async move {
                    let _tell = tell;
                    std::future::pending().await
                });
                Ok(ModelStream::new(futures::stream::iter([Ok(events)]).chain(rest)))
            }
            Line::NeverConnects => std::future::pending().await,
            Line::Fails(error) => Err(error),
        }
    }
}

/// Tools that do what their names say.
pub struct TestHands {
    meeting: Barrier,
    pub count: AtomicUsize,
    pub begun: Notify,
    pub release: Notify,
    pub cleaned: AtomicUsize,
    pub dropped: Arc<Notify>,
}

impl PermissionEvaluator for TestHands {
    fn evaluate(
        &self,
        _: SessionPolicy,
        _: &gander_domain::Provenance,
        id: ToolCallId,
        name: &str,
        arguments: &Value,
        ids: &mut dyn IdGenerator,
    ) -> ToolDecision {
        let call = ToolCall {
            id,
            name: name.to_owned(),
            title: name.to_owned(),
            kind: ToolKind::Other,
            arguments: arguments.clone(),
            locations: Vec::new(),
            idempotent: false,
        };
        if name != "ask" {
            return ToolDecision::Run(call);
        }
        let question = Question {
            id: QuestionId::make(ids),
            call: Some(id),
            title: "may I?".into(),
            ask: QuestionKind::Choose { choices: Vec::new() },
            origin: QuestionOrigin::Parked,
            fingerprint: Some(self.fingerprint(&call)),
            plan: None,
            subagent: None,
            preview: Vec::new(),
            outward: None,
            meta: None,
        };
        ToolDecision::Ask(call, question)
    }

    fn fingerprint(&self, call: &ToolCall) -> String {
        call.name.clone()
    }

    fn record_answer(&self, _: &ToolCall, _: &Question, _: &Answer) {}
}

#[async_trait]
impl ToolExecutor for TestHands {
    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::new([])
    }

    async fn run(&self, call: &ToolCall, signals: mpsc::Sender<ToolEvent>, cancel: CancellationToken) -> ToolResult {
        match call.name.as_str() {
            "meet" => {
                self.meeting.wait().await;
            }
            "count" => drop(self.count.fetch_add(1, Ordering::SeqCst)),
            "panic" => panic!("this tool panics"),
            "show" => {
                signals.send(ToolEvent::Shown(Vec::new())).await.unwrap();
                signals.send(ToolEvent::Plan(Plan::default())).await.unwrap();
            }
            "linger" => {
                self.begun.notify_one();
                tokio::select! {
                    () = cancel.cancelled() => drop(self.cleaned.fetch_add(1, Ordering::SeqCst)),
                    () = self.release.notified() => {}
                }
            }
            "deaf" => {
                let _tell = Tell(self.dropped.clone());
                self.begun.notify_one();
                std::future::pending().await
            }
            other => panic!("no such tool: {other}"),
        }
        ToolResult::text(ToolEnd::Completed, "fine")
    }
}

struct Random;

impl IdGenerator for Random {
    fn next_id(&mut self) -> Uuid {
        Uuid::now_v7()
    }
}

pub struct Bench {
    pub model: Arc<Lines>,
    pub hands: Arc<TestHands>,
    pub cancel: CancellationToken,
    orders: mpsc::Sender<Order>,
    reports: mpsc::Receiver<Report>,
    driver: JoinHandle<()>,
}

impl Bench {
    pub fn new(lines: Vec<Line>) -> Self {
        Self::with_room_for(64, lines)
    }

    pub fn with_room_for(reports: usize, lines: Vec<Line>) -> Self {
        let model = Arc::new(Lines {
            info: info(),
            lines: Mutex::new(lines.into()),
            calls: AtomicUsize::new(0),
            read: Arc::new(AtomicUsize::new(0)),
        });
        let hands = Arc::new(TestHands {
            meeting: Barrier::new(2),
            count: AtomicUsize::new(0),
            begun: Notify::new(),
            release: Notify::new(),
            cleaned: AtomicUsize::new(0),
            dropped: Arc::new(Notify::new()),
        });
        let setup = TurnSetup {
            settings: AgentSettings { retry_after_ms: 1, ..AgentSettings::default() },
            model: model.info().clone(),
            system: String::new(),
            tools: Arc::default(),
            evaluator: hands.clone(),
            goal: None,
            subtasks: None,
            spent: Default::default(),
        };
        let deps = RunDeps {
            model: model.clone(),
            executor: hands.clone(),
            servers: Arc::default(),
            ids: Box::new(Random),
            mode_prompt: None,
        };
        let (orders, heard) = mpsc::channel(8);
        let (tell, reports) = mpsc::channel(reports);
        let cancel = CancellationToken::new();
        let driver = tokio::spawn(drive_turn(deps, setup, prompted(), heard, tell, cancel.clone()));
        Self { model, hands, cancel, orders, reports, driver }
    }

    pub async fn begin(&self) {
        self.order(Order::Begin { run: run() }).await;
    }

    pub async fn order(&self, order: Order) {
        self.orders.send(order).await.ok(); // the driver may be gone already
    }

    pub async fn report(&mut self) -> Report {
        self.reports.recv().await.expect("the driver went without an end")
    }

    pub async fn deltas(&mut self) -> Report {
        self.find(|report| matches!(report, Report::Deltas(_))).await
    }

    pub async fn until_wanted(&mut self) -> Report {
        self.find(|report| matches!(report, Report::ToolWanted { .. })).await
    }

    pub async fn wanted(&mut self) -> ToolCallId {
        let Report::ToolWanted { call, .. } = self.until_wanted().await else { unreachable!() };
        call.id
    }

    pub async fn tool_end(&mut self) -> ToolEnd {
        let done = self.find(|report| matches!(report, Report::ToolDone { .. })).await;
        let Report::ToolDone { result, .. } = done else { unreachable!() };
        result.end
    }

    pub async fn last(&mut self) -> Report {
        let mut last = self.report().await;
        while let Some(report) = self.reports.recv().await {
            last = report;
        }
        last
    }

    /// The text of each report of deltas.
    pub async fn texts_until_end(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some(report) = self.reports.recv().await {
            texts.extend(Some(text_of(&report)).filter(|text| !text.is_empty()));
        }
        texts
    }

    pub fn hang_up(&mut self) {
        self.reports.close();
    }

    pub async fn gone(&mut self) {
        (&mut self.driver).await.unwrap();
    }

    async fn find(&mut self, wanted: impl Fn(&Report) -> bool) -> Report {
        loop {
            let report = self.report().await;
            if wanted(&report) {
                return report;
            }
        }
    }
}

pub fn text_of(report: &Report) -> String {
    match report {
        Report::Deltas(deltas) => deltas.iter().map(|delta| delta.text.as_str()).collect(),
        _ => String::new(),
    }
}

pub fn says(text: &str) -> ModelEvent {
    ModelEvent::Delta(Delta { growth: DeltaKind::Text, text: text.to_owned() })
}

pub fn done(stop: ModelStop) -> ModelEvent {
    ModelEvent::Done(Finish { stop, usage: Tokens::default(), native: None })
}

pub fn wants(names: &[&str]) -> Vec<ModelEvent> {
    let started = |(index, name): (usize, &&str)| ModelEvent::ToolStarted { index: index as u32, name: (*name).into() };
    names.iter().enumerate().map(started).chain([done(ModelStop::ToolUse)]).collect()
}

pub fn answer(reply: Reply) -> Answer {
    Answer { by: Some(Principal::owner()), door: None, reply }
}

pub fn run() -> RunId {
    RunId::new(Uuid::from_u128(7))
}

pub fn info() -> ModelInfo {
    ModelInfo {
        provider: "test".into(),
        model: "lines".into(),
        window: None,
        max_output: None,
        images: false,
        audio: false,
        thinking: false,
        price: None,
        scripted: true,
    }
}

/// A context whose run has a prompt and nothing else.
pub fn prompted() -> Context {
    let settings = Settings::new("gander", "assistant");
    let mut context = Context::empty(settings, "/".into(), Vec::new());
    let origin = RunOrigin { by: Principal::owner(), door: "test".into() };
    let message = Message::text(MessageId::new(Uuid::from_u128(8)), Role::User, "go");
    for (seq, event) in [Event::RunStarted { origin }, Event::MessageDone { message }].into_iter().enumerate() {
        let entry = Entry { seq: Seq(seq as u64 + 1), at: Timestamp::default(), run: Some(run()), event, meta: None };
        context.apply(&entry);
    }
    context
}
