//! Logs for tests: a session told entry by entry, with counted ids and times.

use gander_domain::{
    Answer, DeltaKind, Entry, Event, Message, MessageId, Outcome, Part, Principal, Question, QuestionId, QuestionKind,
    QuestionOrigin, Reply, Role, RunId, RunOrigin, Seq, SessionId, Settings, StopReason, Timestamp,
};
use gander_store::{Append, Committed, Durability, Epoch, Store, StoreError};
use serde_json::Value;
use uuid::Uuid;

/// A session and what happened in it.
#[derive(Clone)]
pub struct Story {
    pub session: SessionId,
    pub entries: Vec<Entry>,
    pub epoch: Epoch,
    run: Option<RunId>,
    message: Option<Message>,
    sent: usize,
    ids: u128,
    now: i64,
}

impl Story {
    /// The `number`th session, just created.
    pub fn new(number: u64) -> Self {
        Self::owned(number, Principal::owner(), "/workspace")
    }

    pub fn owned(number: u64, owner: Principal, workspace: &str) -> Self {
        let session = SessionId::new(Uuid::from_u128(u128::from(number) << 64));
        let ids = u128::from(number) << 64;
        let now = i64::try_from(number).unwrap() * 1_000_000;
        let mut story =
            Self { session, entries: vec![], epoch: Epoch::FIRST, run: None, message: None, sent: 0, ids, now };
        let settings = Settings::new("native", "code");
        let workspace = workspace.to_owned();
        story.push(Event::SessionCreated {
            session,
            owner,
            workspace,
            folders: vec![],
            settings,
            parent: None,
            inherited: Default::default(),
        });
        story
    }

    pub fn push(&mut self, event: Event) -> &mut Self {
        self.now += 1000;
        self.push_now(event)
    }

    /// At the same time as the one before.
    pub fn push_now(&mut self, event: Event) -> &mut Self {
        let seq = Seq(self.entries.len() as u64 + 1);
        let at = Timestamp::from_micros(self.now);
        self.entries.push(Entry { seq, at, run: self.run, event, meta: None });
        self
    }

    pub fn meta(&mut self, meta: Value) -> &mut Self {
        self.entries.last_mut().unwrap().meta = Some(Box::new(meta));
        self
    }

    pub fn at(&mut self, now: i64) -> &mut Self {
        self.now = now;
        self
    }

    pub fn titled(&mut self, title: &str) -> &mut Self {
        self.push(Event::TitleSet { title: title.to_owned() })
    }

    pub fn run(&mut self) -> RunId {
        let run = RunId::new(self.id());
        self.run = Some(run);
        self.push(Event::RunStarted { origin: RunOrigin { by: Principal::owner(), door: "acp".into() } });
        run
    }

    pub fn queued(&mut self) -> RunId {
        let run = RunId::new(self.id());
        let active = self.run.replace(run);
        let origin = RunOrigin { by: Principal::owner(), door: "acp".into() };
        self.push(Event::RunQueued { origin, parts: vec![Part::text("later")] });
        self.run = active;
        run
    }

    pub fn ends(&mut self) -> &mut Self {
        self.push(Event::RunEnded { outcome: Outcome::Completed { stop: StopReason::EndTurn } });
        self.run = None;
        self
    }

    pub fn opens(&mut self) -> &mut Self {
        let message = MessageId::new(self.id());
        self.message =
            Some(Message { id: message, role: Role::Agent, parts: vec![], interrupted: false, native: None });
        self.push(Event::MessageStarted { message, role: Role::Agent })
    }

    pub fn says(&mut self, text: &str) -> &mut Self {
        self.grows(DeltaKind::Text, text)
    }

    pub fn thinks(&mut self, text: &str) -> &mut Self {
        self.grows(DeltaKind::Thought, text)
    }

    pub fn closes(&mut self) -> &mut Self {
        let message = self.message.take().unwrap();
        self.push(Event::MessageDone { message })
    }

    pub fn asks(&mut self) -> QuestionId {
        self.asks_from(QuestionOrigin::Parked)
    }

    pub fn asks_from(&mut self, origin: QuestionOrigin) -> QuestionId {
        let id = QuestionId::new(self.id());
        let ask = QuestionKind::Visit { url: "http://localhost/".into() };
        let title = "May I?".to_owned();
        let question = Question {
            id,
            call: None,
            title,
            ask,
            origin,
            fingerprint: None,
            plan: None,
            subagent: None,
            preview: Vec::new(),
            outward: None,
            meta: None,
        };
        self.push(Event::QuestionAsked { question });
        id
    }

    pub fn answers(&mut self, question: QuestionId) -> &mut Self {
        self.push(Event::QuestionAnswered { question, answer: Answer { by: None, door: None, reply: Reply::Declined } })
    }

    /// A run that streams a thought and a text with everything that could go wrong in them.
    pub fn turn(&mut self) -> &mut Self {
        self.run();
        self.opens().thinks("hm").thinks("").thinks(" wait\u{0}").says("Grüße, ").says("🦆🦆").says("\n\"quoted\"\\ ");
        for word in 0..40 {
            self.says(&format!("{word} "));
        }
        self.closes().ends()
    }

    /// A message whose deltas cannot all share a row.
    pub fn says_with_meta(&mut self) -> &mut Self {
        self.run();
        self.opens().says("one ").says("two ").meta(serde_json::json!({"kept": true})).says("three").closes().ends()
    }

    /// What was told since the last time.
    pub fn fresh(&mut self) -> Vec<Entry> {
        let fresh = self.entries[self.sent..].to_vec();
        self.sent = self.entries.len();
        fresh
    }

    pub fn head(&self) -> Seq {
        Seq(self.entries.len() as u64)
    }

    /// The fresh entries as an append.
    pub fn append(&mut self, sync: Durability) -> Append {
        Append::new(self.session, self.epoch, self.fresh(), sync)
    }

    pub async fn create(&mut self, store: &impl Store) -> Committed {
        let append = self.append(Durability::Barrier);
        store.create(append, vec![]).await.unwrap()
    }

    pub async fn send(&mut self, store: &impl Store) -> Result<Committed, StoreError> {
        store.append(self.append(Durability::Relaxed)).await
    }

    /// Sends the fresh entries in appends of a few.
    pub async fn send_in_pieces(&mut self, store: &impl Store, size: usize) {
        for piece in self.fresh().chunks(size) {
            store.append(Append::new(self.session, self.epoch, piece.to_vec(), Durability::Relaxed)).await.unwrap();
        }
    }

    fn grows(&mut self, growth: DeltaKind, text: &str) -> &mut Self {
        let message = self.message.as_mut().unwrap();
        let grown = match (growth, message.parts.last_mut()) {
            (DeltaKind::Text, Some(Part::Text { text })) | (DeltaKind::Thought, Some(Part::Thought { text })) => {
                Some(text)
            }
            _ => None,
        };
        match grown {
            Some(grown) => grown.push_str(text),
            None if growth == DeltaKind::Text => message.parts.push(Part::text(text)),
            None => message.parts.push(Part::Thought { text: text.to_owned() }),
        }
        let (id, part) = (message.id, u32::try_from(message.parts.len()).unwrap() - 1);
        self.now += i64::from(text.len().is_multiple_of(3));
        self.push_now(Event::PartDelta { message: id, part, growth, text: text.to_owned() })
    }

    fn id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }
}
