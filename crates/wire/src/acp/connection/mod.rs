//! The agent's side of one client's connection: messages in, intents and bytes out.

mod attachment;
mod intent_results;
mod log_meta;
mod reminder;
mod request_handlers;
mod resume;
mod v2_updates;
mod whole_messages;

use std::collections::{HashMap, VecDeque};

use gander_domain::{
    Command, Entry, Event, IdGenerator, Principal, QuestionId, RunId, RunOrigin, SessionId, SessionView,
};
use serde_json::value::RawValue;

use self::attachment::{Attachment, AttachmentFeed};
use self::intent_results::PendingRequest;
pub use self::reminder::ReminderForm;
use super::abilities::ClientAbilities;
use super::dialect::{Dialect, DialectState};
use super::host_calls::{self, AnswerShape, HostCall, HostCallError, HostCallId};
use super::question::{self, NoReply};
use super::requests::SessionRequest;
use super::types::{AgentProfile, Intent, IntentTicket, Withdrawal};
use crate::jsonrpc::{Counters, Error, Incoming, Malformed, MessageOrigin, Outbox, Peer, RequestId, Responder};

/// The name of this protocol in the log.
const PROTOCOL_NAME: &str = "acp";

/// How often a question is asked again because the answer was none.
const MAX_REASKED: u32 = 8;

/// The agent's side of one client's connection.
///
/// The order of calls: one of [`handle_message`](Self::handle_message) and [`handle_entries`](Self::handle_entries); then
/// carry out what [`poll_intent`](Self::poll_intent) returns until it returns `None`, giving each ticket back with the
/// method that its intent names; then write what [`outbox`](Self::outbox) holds and clear it.
///
/// - Every request gets exactly one answer; all updates of a run go out before the answer to its prompt.
/// - A load replays the history as updates, then answers, then goes on live from the same stream of entries: no seam.
/// - A question is asked at most once at a time here, and withdrawn when it is answered elsewhere. Only a chosen option
///   is an answer; an error or `cancelled` withdraws this client from the question, and whatever the question does not
///   offer has it asked again.
/// - What a client sends never ends the connection and changes nothing but what it asks for.
#[derive(Debug)]
pub struct Connection {
    profile: AgentProfile,
    origin: RunOrigin,
    peer: Peer<ClientQuestion>,
    /// The name under which its prompts are found again in the log.
    name: Option<String>,
    /// What the client calls itself.
    client_name: Option<String>,
    /// What the client can do; absent until it has introduced itself.
    abilities: Option<ClientAbilities>,
    logged_in: bool,
    speech: DialectState,
    sessions: HashMap<SessionId, Attachment>,
    /// Sessions that are being opened, and the requests that wait for it.
    opening: HashMap<SessionId, Vec<QueuedRequest>>,
    waiting: HashMap<u64, PendingRequest>,
    prompts: HashMap<RunId, ActivePrompt>,
    intents: VecDeque<Intent>,
    /// How often this client answered an open question with what it does not offer.
    unfit: HashMap<QuestionId, u32>,
    /// The client has answered a question: its person sees them.
    answers: bool,
    numbers: u64,
}

/// What we asked the client.
#[derive(Debug)]
enum ClientQuestion {
    Question { session: SessionId, question: QuestionId },
    Host { call: HostCallId, shape: AnswerShape },
}

/// A request that waits until its session is open here.
#[derive(Debug)]
struct QueuedRequest {
    responder: Responder,
    run: RunId,
    request: SessionRequest,
}

/// A prompt whose run has not ended.
#[derive(Debug)]
struct ActivePrompt {
    responder: Responder,
    session: SessionId,
    /// The client's own message went by: it is not told what it said.
    echoed: bool,
    /// Prompts that were handed to this run: answered with it.
    steered: Vec<Responder>,
}

impl ActivePrompt {
    fn new(responder: Responder, session: SessionId) -> Self {
        Self { responder, session, echoed: false, steered: Vec::new() }
    }

    /// Somebody else's prompt, whose end this client waits for.
    fn of_others(responder: Responder, session: SessionId) -> Self {
        Self { responder, session, echoed: true, steered: Vec::new() }
    }

    /// Everybody who waits for its end.
    fn into_responders(self) -> impl Iterator<Item = Responder> {
        std::iter::once(self.responder).chain(self.steered)
    }
}

impl Connection {
    /// A connection of this principal to an agent that says this about itself.
    pub fn new(profile: AgentProfile, principal: Principal) -> Self {
        Self {
            speech: DialectState::new(profile.v2),
            profile,
            origin: RunOrigin { by: principal, door: PROTOCOL_NAME.to_owned() },
            peer: Peer::default(),
            name: None,
            client_name: None,
            abilities: None,
            logged_in: true,
            sessions: HashMap::new(),
            opening: HashMap::new(),
            waiting: HashMap::new(),
            prompts: HashMap::new(),
            intents: VecDeque::new(),
            unfit: HashMap::new(),
            answers: false,
            numbers: 0,
        }
    }

    /// A connection that speaks this dialect, whatever the client says at `initialize`.
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.speech.force_dialect(dialect);
        self
    }

    /// Speaks this dialect from now on: what a client does may tell more than what it said.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.speech.force_dialect(dialect);
    }

    /// In which words the client is spoken to.
    pub fn dialect(&self) -> Dialect {
        self.speech.dialect()
    }

    /// The session that messages without one are about, for clients that say it by a header or not at all.
    pub fn current_session(&self) -> Option<SessionId> {
        self.speech.current_session()
    }

    /// The transport says which session the following messages are about.
    pub fn set_current_session(&mut self, session: SessionId) {
        self.speech.set_current_session(session);
    }

    /// Takes in one whole message of the client.
    pub fn handle_message(&mut self, message: &[u8], ids: &mut dyn IdGenerator) {
        self.peer.out.set_origin(MessageOrigin::default());
        match self.peer.handle_message(message) {
            None => {}
            Some(Incoming::Request { method, params, responder }) => {
                self.handle_request(&method, params, responder, ids)
            }
            Some(Incoming::Notification { method, params }) => self.handle_notification(&method, params),
            Some(Incoming::Cancelled(id)) => self.cancel_request(&id),
            Some(Incoming::Answer { context: ClientQuestion::Question { session, question }, result }) => {
                self.handle_answer(session, question, result);
            }
            Some(Incoming::Answer { context: ClientQuestion::Host { call, shape }, result }) => {
                self.intents.push_back(Intent::HostReply { call, result: host_calls::read_host_answer(shape, result) });
            }
            Some(Incoming::Malformed(malformed)) => self.peer.respond_malformed(&malformed),
        }
    }

    /// Refuses a message that was too large to be read.
    pub fn refuse_oversized(&mut self) {
        self.peer.out.set_origin(MessageOrigin::default());
        self.peer.respond_malformed(&Malformed::too_large());
    }

    /// What the client wants next.
    pub fn poll_intent(&mut self) -> Option<Intent> {
        self.intents.pop_front()
    }

    /// What waits to be written to the client. Clear it once it is written; while it is long, hold back entries.
    pub fn outbox(&mut self) -> &mut Outbox {
        if self.speech.dialect() != Dialect::Standard {
            self.peer.out.translate(|origin, message| self.speech.translate_message(origin, message));
        }
        &mut self.peer.out
    }

    /// Takes in entries of an open session, in the order of the log. Those that were seen before are skipped.
    pub fn handle_entries(&mut self, session: SessionId, entries: &[Entry]) {
        let Some(attachment) = self.sessions.get_mut(&session) else { return };
        for entry in entries {
            if let Event::QuestionAnswered { question, .. } = &entry.event {
                self.unfit.remove(question);
            }
        }
        let abilities = self.abilities.unwrap_or_default();
        let mut feed = AttachmentFeed::new(attachment, &mut self.peer, &mut self.prompts, abilities)
            .for_connection(self.name.as_deref())
            .with_whole_messages(self.speech.sends_whole_messages(session));
        entries.iter().for_each(|entry| feed.handle_entry(entry));
        feed.flush_update();
        if !abilities.v2 {
            attachment.drop_streamed_text(); // version 2 tells it again to those who join
        }
        if !attachment.is_replaying() {
            self.release_queued(session);
        }
    }

    /// Calls the client's editor. The reply comes as [`Intent::HostReply`].
    pub fn send_host_call(&mut self, session: SessionId, call: HostCall) -> Result<HostCallId, HostCallError> {
        let id = HostCallId(self.next_number());
        let context = |shape| ClientQuestion::Host { call: id, shape };
        let abilities = self.abilities.unwrap_or_default();
        self.peer.out.set_origin(session_message_origin(session));
        host_calls::send_host_call(&mut self.peer, abilities, session, id.request_id(), call, context).map(|()| id)
    }

    /// Takes back a call to the client's editor: no reply will come.
    pub fn cancel_host_call(&mut self, call: HostCallId) {
        self.peer.cancel_request(&call.request_id());
    }

    /// The client is gone: what it was asked fails, what it watched is let go. Its runs go on.
    pub fn handle_disconnect(&mut self) {
        for asked in self.peer.take_pending() {
            self.intents.push_back(match asked {
                ClientQuestion::Question { session, question } => {
                    Intent::Withdrew { session, question, how: Withdrawal::Failed }
                }
                ClientQuestion::Host { call, .. } => Intent::HostReply { call, result: Err(HostCallError::Gone) },
            });
        }
        let sessions = self.sessions.drain().map(|(session, _)| Intent::Detach { session });
        self.intents.extend(sessions);
    }

    /// What the client can do for us; `None` until it has introduced itself.
    pub fn abilities(&self) -> Option<ClientAbilities> {
        self.abilities
    }

    /// What the client calls itself, for people.
    pub fn client_name(&self) -> Option<&str> {
        self.client_name.as_deref()
    }

    /// True if a prompt waits for the end of its run.
    pub fn is_busy(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// True if this session's entries are wanted here.
    pub fn is_attached(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// What an open session is, as far as this client was told.
    pub fn view(&self, session: SessionId) -> Option<&SessionView> {
        self.sessions.get(&session)?.view()
    }

    /// The session of the question that the client was asked under this id.
    pub fn session_of_question(&self, id: &RequestId) -> Option<SessionId> {
        match self.peer.pending_context(id)? {
            ClientQuestion::Question { session, .. } => Some(*session),
            ClientQuestion::Host { .. } => None,
        }
    }

    /// What was dropped without an answer.
    pub fn counters(&self) -> Counters {
        self.peer.counters
    }

    /// An answer that comes too late, or to a question that is not open, is no answer.
    fn handle_answer(&mut self, session: SessionId, id: QuestionId, result: Result<&RawValue, Error>) {
        let Some(view) = self.sessions.get(&session).and_then(|attachment| attachment.view()) else { return };
        let Some(open) = view.run.as_ref().and_then(|run| run.find_question(id)) else { return };
        match question::read_acp_reply(open, result) {
            Ok(reply) => {
                self.answers = true;
                let command = Command::Answer { question: id, reply, origin: self.origin.clone(), meta: None };
                self.intents.push_back(Intent::Command { session, command, ticket: None });
            }
            Err(NoReply::Withdrew(how)) => {
                // Who answers that it knows no such method will not answer the next one either.
                self.answers &= how == Withdrawal::Cancelled;
                self.intents.push_back(Intent::Withdrew { session, question: id, how });
            }
            Err(NoReply::Unfit(why)) => {
                // A response cannot be refused with an error, so the question is asked again under the same id: who sends
                // a second response instead of reading the request is heard too. A client that never gets it right is
                // not asked for ever, but its next response still counts.
                let context = ClientQuestion::Question { session, question: id };
                let unfit = self.unfit.entry(id).or_default();
                *unfit += 1;
                if *unfit > MAX_REASKED {
                    self.peer.restore_pending(question::acp_question_request_id(id), context);
                    return;
                }
                self.peer.out.set_origin(session_message_origin(session));
                question::resend_acp_question(
                    &mut self.peer,
                    self.abilities.unwrap_or_default(),
                    view,
                    open,
                    &why,
                    context,
                );
            }
        }
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn issue_ticket(&mut self, waiting: PendingRequest) -> IntentTicket {
        let number = self.next_number();
        self.waiting.insert(number, waiting);
        IntentTicket(number)
    }
}

/// The place of a message about a session that no entry made.
fn session_message_origin(session: SessionId) -> MessageOrigin {
    MessageOrigin { session: Some(session), ..MessageOrigin::default() }
}
