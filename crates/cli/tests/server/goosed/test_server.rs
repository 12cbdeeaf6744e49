//! A hub whose only agent is behind a goosed on loopback.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::caller::Caller;
use gander_domain::{
    ChoiceKind, Command, Event, IfBusy, Message, Outcome, Part, QuestionKind, Recovery, Reply, Role, RunId, Seq,
    SessionId, SessionInit,
};
use gander_runtime::backend::goosed::{Goosed, GoosedRemote};
use gander_runtime::hub::{Ack, Hub};
use gander_services::agents::{Agent, Agents};
use gander_store::{DeltaForm, MemoryStore, Store};
use gander_testkit::{build, goosed};
use serde_json::Value;

pub const KEY: &str = "hush";

pub struct TestServer {
    pub goose: goosed::Goosed,
    pub store: Arc<MemoryStore>,
    pub hub: Hub,
}

impl TestServer {
    pub async fn open() -> Self {
        let goose = goosed::Goosed::start(Some(KEY)).await.unwrap();
        let store = Arc::new(MemoryStore::new());
        let hub = hub(&goose.url(), KEY, Arc::clone(&store) as _);
        Self { goose, store, hub }
    }

    /// The same store under another process.
    pub fn restart(&mut self) {
        self.hub = hub(&self.goose.url(), KEY, Arc::clone(&self.store) as _);
    }

    pub async fn session(&self, number: u128) -> SessionId {
        let mut birth: SessionInit = build::birth(build::session(number));
        birth.settings.agent = "goose".to_owned();
        self.hub.create_session(&Caller::local_owner(), birth, Vec::new()).await.unwrap().session
    }

    pub async fn prompt(&self, session: SessionId, run: u128, parts: Vec<Part>, meta: Option<Value>) -> RunId {
        let (run, origin) = (build::run(run), build::origin());
        let command = Command::Prompt { run, origin, parts, if_busy: IfBusy::Refuse, meta };
        self.hub.execute_command(&Caller::local_owner(), session, command, Ack::Committed).await.unwrap();
        run
    }

    /// A whole run of these words: what is in the log, from its start to its end.
    pub async fn run(&self, session: SessionId, run: u128, text: &str) -> Vec<Event> {
        let run = self.prompt(session, run, vec![Part::text(text)], None).await;
        self.until(session, run, |event| matches!(event, Event::RunEnded { .. })).await
    }

    /// What this run wrote up to the first entry of a kind.
    pub async fn until(&self, session: SessionId, run: RunId, last: impl Fn(&Event) -> bool) -> Vec<Event> {
        let (mut follower, mut events) = (self.hub.follow_session(session, Seq::ZERO, DeltaForm::Exact), Vec::new());
        let found = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                for entry in follower.next_batch().await.unwrap().unwrap().iter().filter(|entry| entry.run == Some(run))
                {
                    events.push(entry.event.clone());
                    if last(&entry.event) {
                        return;
                    }
                }
            }
        });
        let found = found.await;
        assert!(found.is_ok(), "it never happened, there is: {events:?}");
        events
    }

    /// Chooses this at the one open question.
    pub async fn answer(&self, session: SessionId, kind: ChoiceKind) {
        let view = self.hub.session_view(session).await.unwrap();
        let question = view.run.unwrap().questions.remove(0);
        let QuestionKind::Choose { choices } = &question.ask else { panic!("{question:?}") };
        let choice = choices.iter().find(|choice| choice.kind == kind).unwrap().id.clone();
        let reply = Reply::Chosen { choice, kind };
        self.reply(session, question.id, reply).await;
    }

    pub async fn reply(&self, session: SessionId, question: gander_domain::QuestionId, reply: Reply) {
        let command = Command::Answer { question, reply, origin: build::origin(), meta: None };
        self.hub.execute_command(&Caller::local_owner(), session, command, Ack::Committed).await.unwrap();
    }
}

pub fn hub(url: &str, key: &str, store: Arc<dyn Store>) -> Hub {
    let mut remote = GoosedRemote::new(url);
    remote.key = Some(key.to_owned().into());
    remote.pause = Duration::from_millis(5);
    remote.timeout = Duration::from_secs(30);
    hub_of(remote, store)
}

pub fn hub_of(remote: GoosedRemote, store: Arc<dyn Store>) -> Hub {
    let agent = Goosed::new("goose", remote.clone(), Arc::clone(&store)).unwrap();
    let agents = Agents::new(Agent::new(remote.agent_manifest("goose"), Arc::new(agent)));
    Hub::new(store, Arc::new(agents), Recovery::default())
}

pub fn outcome(events: &[Event]) -> &Outcome {
    match events.last() {
        Some(Event::RunEnded { outcome }) => outcome,
        other => panic!("no end: {other:?}"),
    }
}

/// The words of the agent's messages, one text each.
pub fn said(events: &[Event]) -> Vec<String> {
    let whole = |event: &Event| match event {
        Event::MessageDone { message } if message.role == Role::Agent => Some(Message::plain_text(message)),
        _ => None,
    };
    events.iter().filter_map(whole).collect()
}
