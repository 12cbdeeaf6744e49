//! Several agents behind one hub, and agents that are one function.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use futures::StreamExt as _;
use gander::handler::PromptHandler;
use gander::{Form, FormAnswer, HandlerError, PromptRequest, PromptResult, UpdateSink};
use gander_domain::caller::Caller;
use gander_domain::{
    AgentManifest, Command, Entry, Event, IfBusy, Message, Outcome, Part, Recovery, Reply, Role, Seq, SessionId,
    SessionInit, StopReason,
};
use gander_http::sse::{SseProjection, SseStream, SseWriter, StreamPosition};
use gander_runtime::hub::{Ack, Hub};
use gander_services::agents::{Agent, Agents, NameTaken};
use gander_store::{DeltaForm, MemoryStore, Store};
use gander_testkit::build;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Says its name.
fn named(name: &'static str, store: &Arc<dyn Store>) -> Agent {
    let handler = PromptHandler::durable(move |_, sink: UpdateSink| async move {
        sink.text(name).await?;
        Ok(StopReason::EndTurn)
    });
    Agent::new(AgentManifest::new(name, name, "says its name"), handler.into_backend(store))
}

/// Says something, asks, says what it heard.
async fn ask(_: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.message([Part::text("one moment")]).await?;
    let answer = sink.ask(Form::from_schema("which?", json!({ "type": "object" }))).await?;
    let FormAnswer::Accepted(content) = answer else { return Err(HandlerError::failed("no content")) };
    sink.message([Part::text(content.to_string())]).await?;
    Ok(StopReason::EndTurn)
}

fn agents(store: &Arc<dyn Store>) -> Agents {
    let mut agents = Agents::new(named("first", store));
    agents.add(named("second", store)).unwrap();
    assert_eq!(agents.add(named("first", store)), Err(NameTaken("first".to_owned())));
    let asking = PromptHandler::durable(ask).into_backend(store);
    agents.add(Agent::new(AgentManifest::new("asking", "asking", "asks"), asking)).unwrap();
    agents
}

fn hub_on(store: &Arc<dyn Store>) -> Hub {
    Hub::new(Arc::clone(store), Arc::new(agents(store)), Recovery::default())
}

fn hub() -> Hub {
    hub_on(&(Arc::new(MemoryStore::new()) as Arc<dyn Store>))
}

async fn session(hub: &Hub, agent: &str) -> SessionId {
    let mut birth: SessionInit = build::birth(build::session(1));
    birth.settings.agent = agent.to_owned();
    hub.create_session(&Caller::local_owner(), birth, Vec::new()).await.unwrap().session
}

async fn prompt(hub: &Hub, session: SessionId) {
    let (run, origin, parts) = (build::run(1), build::origin(), vec![Part::text("hello")]);
    let command = Command::Prompt { run, origin, parts, if_busy: IfBusy::Refuse, meta: None };
    hub.execute_command(&Caller::local_owner(), session, command, Ack::Committed).await.unwrap();
}

/// What is in the log up to the first entry of this kind.
async fn until(hub: &Hub, session: SessionId, last: fn(&Event) -> bool) -> Vec<Event> {
    let (mut follower, mut events) = (hub.follow_session(session, Seq::ZERO, DeltaForm::Exact), Vec::new());
    loop {
        for entry in follower.next_batch().await.unwrap().unwrap().iter() {
            events.push(entry.event.clone());
            if last(&entry.event) {
                return events;
            }
        }
    }
}

fn said(events: &[Event]) -> Vec<String> {
    let whole = |event: &Event| {
        let Event::MessageDone { message } = event else { return None };
        (message.role == Role::Agent).then(|| Message::plain_text(message))
    };
    events.iter().filter_map(whole).collect()
}

fn ends(event: &Event) -> bool {
    matches!(event, Event::RunEnded { .. })
}

#[tokio::test]
async fn each_session_is_served_by_the_agent_it_names() {
    for name in ["first", "second"] {
        let hub = hub();
        let session = session(&hub, name).await;
        prompt(&hub, session).await;
        assert_eq!(said(&until(&hub, session, ends).await), [name]);
    }
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_named_in_the_failure() {
    let hub = hub();
    let session = session(&hub, "gone").await;
    prompt(&hub, session).await;
    let events = until(&hub, session, ends).await;
    let outcome = Outcome::failed("agent", "no such agent here: gone");
    assert_eq!(events.last(), Some(&Event::RunEnded { outcome }));
}

#[tokio::test]
async fn a_handler_that_asked_goes_on_after_a_restart_and_repeats_nothing() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let first = hub_on(&store);
    let session = session(&first, "asking").await;
    prompt(&first, session).await;
    let asked = until(&first, session, |event| matches!(event, Event::QuestionAsked { .. })).await;
    let Some(Event::QuestionAsked { question }) = asked.last() else { panic!("nobody is asked") };
    first.drain_sessions(std::time::Duration::from_secs(5)).await;
    let second = hub_on(&store);
    let reply = Reply::Filled { content: json!("this") };
    let answer = Command::Answer { question: question.id, reply, origin: build::origin(), meta: None };
    second.execute_command(&Caller::local_owner(), session, answer, Ack::Committed).await.unwrap();
    let events = until(&second, session, ends).await;
    assert_eq!(said(&events), ["one moment", "\"this\""]);
    let outcome = Outcome::Completed { stop: StopReason::EndTurn };
    assert_eq!(events.last(), Some(&Event::RunEnded { outcome }));
}

/// The kinds of entries, two events each.
#[derive(Default)]
struct Kinds(bool);

impl SseProjection for Kinds {
    fn write_start(&mut self, frames: &mut SseWriter) {
        frames.write_unlogged(&"begin");
    }

    fn project_entry(&mut self, entry: &Entry, frames: &mut SseWriter) {
        let value = serde_json::to_value(&entry.event).unwrap();
        frames.write_event(&value["kind"]);
        frames.write_event(&entry.seq);
        self.0 = ends(&entry.event);
    }

    fn is_complete(&self) -> bool {
        self.0
    }
}

#[tokio::test]
async fn a_log_is_read_as_events_and_a_reader_goes_on_after_any_of_them() {
    let hub = hub();
    let session = session(&hub, "first").await;
    prompt(&hub, session).await;
    until(&hub, session, ends).await;
    let read = async |seen: StreamPosition| {
        let (follower, stop) = (hub.follow_session(session, Seq::ZERO, DeltaForm::Exact), CancellationToken::new());
        let follow = SseStream { follower, projection: Kinds::default(), seen, incarnation: 7, stop };
        let pieces: Vec<_> = follow.into_events().map(|piece| piece.unwrap()).collect().await;
        String::from_utf8(pieces.concat()).unwrap()
    };
    let all = read(StreamPosition::default()).await;
    let events: Vec<&str> = all.split_inclusive("\n\n").collect();
    assert_eq!(events[0], "data: \"begin\"\n\n");
    assert_eq!(events[1], "id: 7.1.0\ndata: \"session_created\"\n\n");
    assert_eq!(events.last(), Some(&"id: 7.7.1\ndata: 7\n\n"));
    for cut in 1..events.len() {
        let id = events[cut].strip_prefix("id: 7.").unwrap().split_once('\n').unwrap().0;
        let (seq, index) = id.split_once('.').unwrap();
        let seen = StreamPosition { seq: seq.parse().unwrap(), index: index.parse().unwrap(), answer: 0 };
        assert_eq!(read(seen).await, format!("{}{}", events[0], events[cut + 1..].concat()), "{id}");
    }
}
