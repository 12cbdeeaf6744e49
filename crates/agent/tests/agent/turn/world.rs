//! A turn and the real session machine, with everything between them taken one step at a time.

use std::collections::{BTreeMap, VecDeque};

use gander_agent::turn::{Effect, Input, Turn, TurnSetup};
use gander_domain::session::{Recovery, SessionInit};
use gander_domain::{
    Answer, Command, Context, Entry, Event, IfBusy, MachineContext, Order, Outcome, Part, Principal, Reply, Report,
    RunId, RunOrigin, Session, SessionId, SessionView, Timestamp, ToolCall, ToolCallId,
};
use gander_models::{ModelError, ModelEvent, ModelInfo, Request};
use uuid::Uuid;

use crate::turn::script::{Count, info, ok, prompted, setup};

pub struct World {
    setup: TurnSetup,
    session: Session,
    pub entries: Vec<Entry>,
    turn: Option<Turn>,
    ids: Count,
    /// On their way to the session.
    reports: VecDeque<(RunId, Report)>,
    /// On their way to the turn.
    orders: VecDeque<Order>,
    /// The model call under way.
    pub model: Option<Request>,
    /// The tools that run.
    pub tools: Vec<ToolCall>,
    pub waiting: bool,
    /// The turn was told to stop.
    cancelled: bool,
    /// How often each tool ran.
    ran: BTreeMap<ToolCallId, u32>,
}

pub fn owner() -> RunOrigin {
    RunOrigin { by: Principal::owner(), door: "test".into() }
}

impl World {
    /// A session with a first prompt.
    pub fn new() -> Self {
        Self::with_window(None)
    }

    /// A session with a first prompt, and a model with this window.
    pub fn with_window(window: Option<u64>) -> Self {
        Self::with(TurnSetup { model: ModelInfo { window, ..info() }, ..setup() })
    }

    /// A session with a first prompt, and a turn that works with this.
    pub fn with(setup: TurnSetup) -> Self {
        let birth = SessionInit {
            session: SessionId::new(Uuid::from_u128(0xffff)),
            owner: Principal::owner(),
            workspace: "/home/ada".into(),
            folders: Vec::new(),
            settings: prompted("").settings,
            parent: None,
            inherited: Default::default(),
            meta: None,
        };
        let mut world = Self {
            setup,
            session: Session::create(Timestamp::default(), birth),
            entries: Vec::new(),
            turn: None,
            ids: Count(0x1000),
            reports: VecDeque::new(),
            orders: VecDeque::new(),
            model: None,
            tools: Vec::new(),
            waiting: false,
            cancelled: false,
            ran: BTreeMap::new(),
        };
        world.prompt(IfBusy::Refuse);
        world
    }

    pub fn prompt(&mut self, if_busy: IfBusy) {
        let run = RunId::new(Uuid::from_u128(0xeeee_0000 + self.ids.0));
        let parts = vec![Part::text("go")];
        self.command(Command::Prompt { run, origin: owner(), parts, if_busy, meta: None });
    }

    pub fn cancel(&mut self) {
        self.command(Command::Cancel { run: None, origin: owner() });
    }

    /// Answers the n-th open question.
    pub fn answer(&mut self, n: usize, choice: &str) -> bool {
        let questions = self.session.view().run.as_ref().map(|run| run.questions.clone()).unwrap_or_default();
        let Some(question) = questions.get(n % questions.len().max(1)) else { return false };
        let kind = question.find_choice(choice).unwrap().kind;
        let reply = Reply::Chosen { choice: choice.to_owned(), kind };
        self.command(Command::Answer { question: question.id, reply, origin: owner(), meta: None });
        true
    }

    /// The session hears the next report.
    pub fn hear(&mut self) -> bool {
        let Some((run, report)) = self.reports.pop_front() else { return false };
        self.session.handle_report(&mut MachineContext { at: Timestamp::default(), ids: &mut self.ids }, run, report);
        self.drain();
        true
    }

    /// The turn gets the next order.
    pub fn obey(&mut self) -> bool {
        let Some(order) = self.orders.pop_front() else { return false };
        match order {
            Order::Begin { .. } | Order::Resume { .. } => {
                let context = Context::replay(&self.entries).unwrap();
                self.leave();
                self.turn = Some(Turn::new(self.setup.clone(), context));
                self.feed(Input::Begin);
            }
            Order::RunTool { call } => self.feed(Input::RunTool(call)),
            Order::Answered { question, answer } => self.feed(Input::Answered(question, answer)),
            Order::Steer { message } => self.feed(Input::Steer(message)),
            Order::Configured { settings } => self.feed(Input::Configured(settings)),
            Order::Cancel => {
                self.cancelled = true;
                self.feed(Input::Cancel);
            }
        }
        true
    }

    pub fn speak(&mut self, events: Vec<ModelEvent>) {
        if self.model.is_some() {
            self.feed(Input::Model(events));
        }
    }

    pub fn fail(&mut self, error: ModelError) {
        if self.model.take().is_some() {
            self.feed(Input::ModelFailed(error));
        }
    }

    pub fn wait(&mut self) -> bool {
        let waited = std::mem::take(&mut self.waiting);
        if waited {
            self.feed(Input::Waited);
        }
        waited
    }

    /// The n-th running tool is done.
    pub fn finish(&mut self, n: usize) -> bool {
        if self.tools.is_empty() {
            return false;
        }
        let call = self.tools.remove(n % self.tools.len());
        self.feed(Input::ToolDone(call.id, ok()));
        true
    }

    /// The process dies; another one picks up.
    pub fn crash(&mut self) {
        self.leave();
        self.reports.clear();
        self.orders.clear();
        self.session = Session::restore(SessionView::replay(&self.entries).unwrap());
        self.session
            .recover(&mut MachineContext { at: Timestamp::default(), ids: &mut self.ids }, &Recovery::default());
        self.drain();
    }

    pub fn feed(&mut self, input: Input) {
        let Some(turn) = &mut self.turn else { return };
        turn.handle_input(Timestamp::default(), input, &mut self.ids);
        let effects: Vec<Effect> = std::iter::from_fn(|| turn.poll_effect()).collect();
        effects.into_iter().for_each(|effect| self.perform(effect));
    }

    /// How each run ended, in order.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let ended = |entry: &Entry| match &entry.event {
            Event::RunEnded { outcome } => Some(outcome.clone()),
            _ => None,
        };
        self.entries.iter().filter_map(ended).collect()
    }

    pub fn idle(&self) -> bool {
        self.session.view().run.is_none()
    }

    /// What the turn knows is what the log says, once nothing is on its way between them.
    pub fn assert_folded(&self) {
        let Some(turn) = &self.turn else { return };
        let (known, logged) = (turn.context(), Context::replay(&self.entries).unwrap());
        assert_eq!(known.messages, logged.messages);
        assert_eq!(known.pending, logged.pending);
        assert_eq!((known.turns, known.tokens, known.run), (logged.turns, logged.tokens, logged.run));
    }

    /// The driver is gone, and with it all it did.
    fn leave(&mut self) {
        (self.turn, self.model, self.waiting, self.cancelled) = (None, None, false, false);
        self.tools.clear();
    }

    /// The laws of a turn that its effects alone can break.
    fn perform(&mut self, effect: Effect) {
        assert!(self.turn.is_some(), "after the end: {effect:?}");
        match effect {
            Effect::CallModel(request) => {
                assert!(!self.cancelled, "a model call after a cancel");
                self.assert_answered(&request);
                self.model = Some(request);
            }
            Effect::AbortModel => self.model = None,
            Effect::RunTool(call) => {
                assert!(!self.cancelled, "a tool after a cancel");
                let started = |entry: &Entry| entry.event == Event::ToolStarted { call: call.id };
                assert!(self.entries.iter().any(started), "a tool before its start was committed");
                let times = self.ran.entry(call.id).or_default();
                *times += 1;
                assert!(*times == 1 || call.idempotent, "a tool ran twice");
                assert!(self.approved(call.id), "a tool without a yes");
                self.tools.push(call);
            }
            Effect::StopTools => self.tools.clear(),
            Effect::Wait(_) => self.waiting = true,
            Effect::Report(report) => {
                let end = matches!(report, Report::Ended(_));
                assert!(!self.cancelled || end, "after a cancel: {report:?}");
                let run = self.turn.as_ref().and_then(|turn| turn.context().run).unwrap();
                self.reports.push_back((run, report));
            }
            Effect::End => {
                let last = self.reports.back().map(|(_, report)| report);
                assert!(matches!(last, Some(Report::Ended(_) | Report::Parked)), "an end without a word");
                assert!(self.tools.is_empty(), "a tool outlives its turn");
                self.leave();
            }
        }
    }

    /// Nobody was asked about it, or somebody said yes.
    fn approved(&self, call: ToolCallId) -> bool {
        let mut asked = self.entries.iter().rev().filter_map(|entry| match &entry.event {
            Event::QuestionAsked { question } if question.call == Some(call) => Some(question.id),
            _ => None,
        });
        let yes = |id| {
            self.entries.iter().any(|entry| {
                matches!(&entry.event, Event::QuestionAnswered { question, answer: Answer { reply, .. } }
                    if *question == id && reply.is_allowed())
            })
        };
        asked.next().is_none_or(yes)
    }

    /// Every call that was ever called has its result before the model is asked again.
    fn assert_answered(&self, request: &Request) {
        let parts: Vec<&Part> = request.messages.iter().flat_map(|message| &message.parts).collect();
        for part in &parts {
            let Part::ToolUse { call, .. } = part else { continue };
            let called = |entry: &Entry| matches!(&entry.event, Event::ToolCalled { call: of } if of.id == *call);
            let results = parts.iter().filter(|part| matches!(part, Part::ToolResult { call: of, .. } if of == call));
            assert!(results.count() == 1 || !self.entries.iter().any(called), "no result of {call}");
        }
    }

    fn command(&mut self, command: Command) {
        // It may be refused: a prompt may find the session busy.
        self.session.handle_command(&mut MachineContext { at: Timestamp::default(), ids: &mut self.ids }, command).ok();
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(effect) = self.session.poll_effect() {
            match effect {
                gander_domain::Effect::Append(entry) => self.entries.push(entry),
                gander_domain::Effect::Order { order, .. } => self.orders.push_back(order),
            }
        }
    }
}
