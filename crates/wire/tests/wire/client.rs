//! Our client against our agent, joined in memory.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use crate::common::{TestConnection, catalog, view};
use agent_client_protocol_schema::v1::{
    ClientCapabilities, ContentBlock, FileSystemCapabilities, Implementation, StopReason, TextContent,
};
use gander_domain::{ChoiceKind, Command, Delta, DeltaKind, IfBusy, MessageId, Outcome, Reply, Report, ToolGate};
use gander_testkit::{SessionScript, build};
use gander_wire::acp::client::{AgentClient, AgentEvent, AgentRequest, ShownUpdate};
use gander_wire::acp::{Connection, Intent};
use serde_json::json;

/// A client, an agent's connection and a session machine behind it.
struct Pair {
    client: AgentClient,
    test_connection: TestConnection,
    script: SessionScript,
    fed: usize,
}

impl Pair {
    fn new() -> Self {
        Self {
            client: AgentClient::default(),
            test_connection: TestConnection::fresh(),
            script: SessionScript::begin(),
            fed: 0,
        }
    }

    /// Everything in flight arrives, and the server does what it is asked.
    fn settle(&mut self) -> Vec<AgentEvent> {
        loop {
            let sent: Vec<Vec<u8>> = self.client.outbox().messages().map(|(_, message)| message.to_vec()).collect();
            self.client.outbox().clear();
            sent.iter().for_each(|message| self.test_connection.raw(message));
            while let Some(intent) = self.test_connection.connection.poll_intent() {
                serve(&mut self.test_connection.connection, &mut self.script, &mut self.fed, intent);
            }
            self.test_connection.connection.handle_entries(build::session(1), &self.script.log[self.fed..]);
            self.fed = self.script.log.len();
            let answered = self.test_connection.texts();
            answered.iter().for_each(|line| self.client.handle_message(line.as_bytes()));
            if sent.is_empty() && answered.is_empty() {
                return std::iter::from_fn(|| self.client.poll_event()).collect();
            }
        }
    }

    fn report(&mut self, report: Report) {
        let run = self.script.session.view().run.as_ref().unwrap().id;
        self.script.report(run, report);
    }
}

fn serve(connection: &mut Connection, script: &mut SessionScript, fed: &mut usize, intent: Intent) {
    match intent {
        Intent::NewSession { ticket, .. } => {
            *fed = script.log.len();
            connection.handle_opened(ticket, view(&script.log), catalog());
        }
        Intent::LoadSession { ticket, .. } => {
            *fed = 0;
            connection.handle_opened(ticket, view(&script.log), catalog());
        }
        Intent::Command { command, ticket, .. } => match (script.command(command), ticket) {
            (Ok(accepted), Some(ticket)) => connection.handle_accepted(ticket, accepted),
            (Err(error), Some(ticket)) => connection.handle_refusal(ticket, &error.into()),
            (_, None) => {}
        },
        other => panic!("not served: {other:?}"),
    }
}

fn text(text: &str) -> Vec<ContentBlock> {
    vec![ContentBlock::Text(TextContent::new(text))]
}

fn heard(told: AgentEvent) -> (String, ShownUpdate) {
    let AgentEvent::Updated(update) = told else { panic!("{told:?}") };
    (update.session_id.0.to_string(), ShownUpdate::from(update.update))
}

fn opened() -> (Pair, String) {
    let mut pair = Pair::new();
    pair.client.initialize("test", "0");
    pair.client.new_session("/workspace");
    let told = pair.settle();
    let [AgentEvent::Initialized { .. }, AgentEvent::Opened { session, .. }, AgentEvent::Updated(_)] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(*session, build::session(1).to_string());
    let session = session.clone();
    (pair, session)
}

#[test]
fn a_prompt_with_a_permission_runs_from_end_to_end() {
    let (mut pair, session) = opened();
    let prompt = pair.client.prompt(&session, &text("say hi"));
    assert_eq!(pair.settle(), []);
    pair.report(Report::MessageStarted { message: MessageId::new(build::run(50).uuid()) });
    pair.report(Report::Deltas(["Hel", "lo"].map(|text| Delta { growth: DeltaKind::Text, text: text.into() }).into()));
    let call = build::shell(build::call_id(6));
    let gate = ToolGate::Ask(build::permission(build::question_id(7), call.id));
    pair.report(Report::ToolWanted { call, gate });
    let mut told = pair.settle();
    let Some(AgentEvent::Asked { permission, request }) = told.pop() else { panic!("{told:?}") };
    assert_eq!(request.options.len(), 2);
    assert_eq!(heard(told.remove(0)), (session.clone(), ShownUpdate::Agent("Hello".to_owned())));
    pair.client.select_option(permission, "allow");
    pair.settle();
    let answers = pair.script.lines(0).matches(r#""choice":"allow""#).count();
    assert_eq!(answers, 1);
    pair.report(Report::ToolReady { call: build::call_id(6) });
    pair.report(Report::Ended(Outcome::Completed { stop: gander_domain::StopReason::EndTurn }));
    let told = pair.settle();
    assert_eq!(told.last(), Some(&AgentEvent::Ended { call: prompt, stop: StopReason::EndTurn }));
}

#[test]
fn a_cancel_ends_the_turn_as_cancelled_and_withdraws_the_question() {
    let (mut pair, session) = opened();
    let prompt = pair.client.prompt(&session, &text("say hi"));
    pair.settle();
    let call = build::shell(build::call_id(6));
    let gate = ToolGate::Ask(build::permission(build::question_id(7), call.id));
    pair.report(Report::ToolWanted { call, gate });
    let mut told = pair.settle();
    let Some(AgentEvent::Asked { permission, .. }) = told.pop() else { panic!("{told:?}") };
    pair.client.cancel(&session);
    let run = pair.script.session.view().run.as_ref().unwrap().id;
    let mut told = pair.settle();
    pair.script.report(run, Report::Ended(Outcome::Cancelled));
    told.extend(pair.settle());
    assert!(told.contains(&AgentEvent::Withdrawn { request: permission.id().clone() }), "{told:?}");
    assert_eq!(told.last(), Some(&AgentEvent::Ended { call: prompt, stop: StopReason::Cancelled }));
    pair.client.decline(permission);
    assert_eq!(pair.settle(), []);
    assert_eq!(pair.test_connection.connection.counters().stray_answers, 1);
}

#[test]
fn a_late_joiner_hears_history_then_life() {
    let (mut pair, session) = opened();
    pair.script.prompt(build::run(5), IfBusy::Refuse).unwrap();
    pair.settle();
    let load = pair.client.load_session(&session, "/workspace");
    let mut told = pair.settle();
    assert_eq!(told[1], AgentEvent::Opened { call: load, session: session.clone() });
    assert_eq!(heard(told.remove(0)), (session.clone(), ShownUpdate::User("hello".to_owned())));
    pair.report(Report::MessageStarted { message: MessageId::new(build::run(50).uuid()) });
    pair.report(Report::Deltas(vec![Delta { growth: DeltaKind::Thought, text: "hm".into() }]));
    let told: Vec<_> = pair.settle().into_iter().map(heard).collect();
    assert_eq!(told, [(session, ShownUpdate::Thought("hm".to_owned()))]);
}

#[test]
fn what_the_client_does_not_offer_is_refused_and_banners_are_skipped() {
    let mut client = AgentClient::default();
    client.handle_message(b"Welcome to the shell");
    assert!(client.outbox().is_empty());
    client.handle_message(br#"{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{}}"#);
    let answer = String::from_utf8(client.outbox().bytes().to_vec()).unwrap();
    assert!(answer.contains("-32601"), "{answer}");
    assert_eq!(client.counters().malformed, 1);
}

#[test]
fn what_was_offered_is_told_and_answered() {
    let mut client = AgentClient::default();
    let offers = ClientCapabilities::new().fs(FileSystemCapabilities::new().read_text_file(true));
    client.initialize_with(Implementation::new("test", "0"), offers);
    client.accept_extensions();
    client.outbox().clear();
    for (id, method) in [(1, "fs/read_text_file"), (2, "fs/write_text_file"), (3, "terminal/create"), (4, "_own")] {
        let params = json!({ "sessionId": "s", "path": "/a", "content": "", "command": "ls" });
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        client.handle_message(request.to_string().as_bytes());
    }
    let told: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    let [AgentEvent::Requested { responder: first, request: read }, AgentEvent::Requested { request: own, .. }] =
        <[AgentEvent; 2]>::try_from(told).unwrap()
    else {
        panic!("not asked")
    };
    assert!(matches!(*read, AgentRequest::ReadTextFile(ref read) if read.path.to_str() == Some("/a")), "{read:?}");
    assert!(matches!(*own, AgentRequest::Extension { ref method, .. } if method == "_own"), "{own:?}");
    client.respond(first, &json!({ "content": "text" }));
    let sent: Vec<String> =
        client.outbox().messages().map(|(_, message)| String::from_utf8(message.to_vec()).unwrap()).collect();
    assert!(sent[0].contains(r#""id":2"#) && sent[0].contains("-32601"), "{sent:?}");
    assert!(sent[1].contains(r#""id":3"#) && sent[1].contains("-32601"), "{sent:?}");
    assert_eq!(sent[2], r#"{"jsonrpc":"2.0","id":1,"result":{"content":"text"}}"#);
}

#[test]
fn a_call_that_is_taken_back_is_cancelled_and_its_answer_dropped() {
    let mut client = AgentClient::default();
    let call = client.call("session/list", &json!({}));
    client.outbox().clear();
    assert!(client.cancel_call(call) && !client.cancel_call(call));
    let cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}}\n";
    assert_eq!(client.outbox().bytes(), cancel.as_bytes());
    client.handle_message(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!((client.poll_event(), client.counters().stray_answers), (None, 1));
}

#[test]
fn an_agent_that_is_gone_fails_every_call() {
    let mut client = AgentClient::default();
    let (first, second) = (client.initialize("test", "0"), client.call("x", &json!({})));
    client.handle_disconnect();
    let mut failed: Vec<_> = std::iter::from_fn(|| client.poll_event())
        .map(|told| match told {
            AgentEvent::Failed { call, .. } => call,
            other => panic!("{other:?}"),
        })
        .collect();
    failed.sort_unstable();
    assert_eq!(failed, [first, second]);
}

#[test]
fn a_reject_is_an_answer_too() {
    let (mut pair, session) = opened();
    pair.client.prompt(&session, &text("say hi"));
    pair.settle();
    let call = build::shell(build::call_id(6));
    let gate = ToolGate::Ask(build::permission(build::question_id(7), call.id));
    pair.report(Report::ToolWanted { call, gate });
    let Some(AgentEvent::Asked { permission, .. }) = pair.settle().pop() else { panic!("not asked") };
    pair.client.select_option(permission, "reject");
    pair.client.handle_message(b"");
    let sent: Vec<Vec<u8>> = pair.client.outbox().messages().map(|(_, message)| message.to_vec()).collect();
    sent.iter().for_each(|message| pair.test_connection.raw(message));
    let Intent::Command { command: Command::Answer { reply, .. }, .. } = pair.test_connection.intent() else {
        panic!("no answer")
    };
    assert_eq!(reply, Reply::Chosen { choice: "reject".to_owned(), kind: ChoiceKind::RejectOnce });
}
