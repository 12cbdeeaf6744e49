//! The agent's side of one client's connection: messages in, intents and bytes out.

mod attachment;
mod log_meta;
mod requests;
mod results;
mod resume;
mod v2_updates;

use std::collections::{HashMap, VecDeque};

use gander_domain::{Command, Entry, Event, Ids, Principal, QuestionId, RunId, RunOrigin, SessionId, SessionView};
use serde_json::value::RawValue;

use self::attachment::{Attachment, Feed};
use self::results::Waiting;
use super::abilities::Abilities;
use super::dialect::{Dialect, Speech};
use super::host_calls::{self, HostCall, HostCallId, HostError, Shape};
use super::input::SessionRequest;
use super::question::{self, NoReply};
use super::types::{Intent, Profile, Ticket, Withdrawal};
use crate::jsonrpc::{Counters, Error, Incoming, Malformed, Outbox, Peer, Place, RequestId, Responder};

/// The name of this door in the log.
const DOOR: &str = "acp";

/// How often a question is asked again because the answer was none.
const MAX_ASKED_AGAIN: u32 = 8;

/// The agent's side of one client's connection.
///
/// Feed it messages with [`receive`](Self::receive) and log entries with [`entries`](Self::entries); after each, carry out
/// what [`poll`](Self::poll) returns until it returns `None`, and write what [`outbox`](Self::outbox) holds.
///
/// - Every request gets exactly one answer; all updates of a run go out before the answer to its prompt.
/// - A load replays the history as updates, then answers, then goes on live from the same stream of entries: no seam.
/// - A question is asked at most once at a time here, and withdrawn when it is answered elsewhere. Only a chosen option
///   is an answer; an error or `cancelled` withdraws this client from the question, and whatever the question does not
///   offer has it asked again.
/// - What a client sends never ends the connection and changes nothing but what it asks for.
#[derive(Debug)]
pub struct Connection {
    profile: Profile,
    origin: RunOrigin,
    peer: Peer<Asked>,
    /// The name under which its prompts are found again in the log.
    name: Option<String>,
    /// What the client can do; absent until it has introduced itself.
    abilities: Option<Abilities>,
    logged_in: bool,
    speech: Speech,
    sessions: HashMap<SessionId, Attachment>,
    /// Sessions that are being opened, and the requests that wait for it.
    opening: HashMap<SessionId, Vec<Held>>,
    waiting: HashMap<u64, Waiting>,
    prompts: HashMap<RunId, Prompt>,
    intents: VecDeque<Intent>,
    /// How often this client answered an open question with what it does not offer.
    unfit: HashMap<QuestionId, u32>,
    numbers: u64,
}

/// What we asked the client.
#[derive(Debug)]
enum Asked {
    Question { session: SessionId, question: QuestionId },
    Host { call: HostCallId, shape: Shape },
}

/// A request that waits until its session is open here.
#[derive(Debug)]
struct Held {
    responder: Responder,
    run: RunId,
    request: SessionRequest,
}

/// A prompt whose run has not ended.
#[derive(Debug)]
struct Prompt {
    responder: Responder,
    session: SessionId,
    /// The client's own message went by: it is not told what it said.
    echoed: bool,
}

impl Prompt {
    fn new(responder: Responder, session: SessionId) -> Self {
        Self { responder, session, echoed: false }
    }
}

impl Connection {
    /// A connection of this principal to an agent that says this about itself.
    pub fn new(profile: Profile, principal: Principal) -> Self {
        Self {
            speech: Speech::new(profile.v2),
            profile,
            origin: RunOrigin { by: principal, door: DOOR.to_owned() },
            peer: Peer::default(),
            name: None,
            abilities: None,
            logged_in: true,
            sessions: HashMap::new(),
            opening: HashMap::new(),
            waiting: HashMap::new(),
            prompts: HashMap::new(),
            intents: VecDeque::new(),
            unfit: HashMap::new(),
            numbers: 0,
        }
    }

    /// A connection that speaks this dialect, whatever the client says at `initialize`.
    #[must_use]
    pub fn speaking(mut self, dialect: Dialect) -> Self {
        self.speech.force(dialect);
        self
    }

    /// Speaks this dialect from now on: what a client does may tell more than what it said.
    pub fn speak(&mut self, dialect: Dialect) {
        self.speech.force(dialect);
    }

    /// In which words the client is spoken to.
    pub fn dialect(&self) -> Dialect {
        self.speech.dialect()
    }

    /// The session that messages without one are about, for clients that say it by a header or not at all.
    pub fn current(&self) -> Option<SessionId> {
        self.speech.current()
    }

    /// The transport says which session the following messages are about.
    pub fn turn_to(&mut self, session: SessionId) {
        self.speech.turn_to(session);
    }

    /// Takes in one whole message of the client.
    pub fn receive(&mut self, message: &[u8], ids: &mut dyn Ids) {
        self.peer.out.address(Place::default());
        match self.peer.receive(message) {
            None => {}
            Some(Incoming::Request { method, params, responder }) => self.request(&method, params, responder, ids),
            Some(Incoming::Notification { method, params }) => self.notification(&method, params),
            Some(Incoming::Cancelled(id)) => self.take_back(&id),
            Some(Incoming::Answer { context: Asked::Question { session, question }, result }) => {
                self.answered(session, question, result);
            }
            Some(Incoming::Answer { context: Asked::Host { call, shape }, result }) => {
                self.intents.push_back(Intent::HostReply { call, result: host_calls::answer(shape, result) });
            }
            Some(Incoming::Malformed(malformed)) => self.peer.refuse(&malformed),
        }
    }

    /// Refuses a message that was too large to be read.
    pub fn refuse_oversized(&mut self) {
        self.peer.out.address(Place::default());
        self.peer.refuse(&Malformed::too_large());
    }

    /// What the client wants next.
    pub fn poll(&mut self) -> Option<Intent> {
        self.intents.pop_front()
    }

    /// What waits to be written to the client. Clear it once it is written; while it is long, hold back entries.
    pub fn outbox(&mut self) -> &mut Outbox {
        if self.speech.dialect() != Dialect::Standard {
            self.peer.out.translate(|place, message| self.speech.say(place, message));
        }
        &mut self.peer.out
    }

    /// Takes in entries of an open session, in the order of the log. Those that were seen before are skipped.
    pub fn entries(&mut self, session: SessionId, entries: &[Entry]) {
        let Some(attachment) = self.sessions.get_mut(&session) else { return };
        for entry in entries {
            if let Event::QuestionAnswered { question, .. } = &entry.event {
                self.unfit.remove(question);
            }
        }
        let abilities = self.abilities.unwrap_or_default();
        let mut feed = Feed::new(attachment, &mut self.peer, &mut self.prompts, abilities).of(self.name.as_deref());
        entries.iter().for_each(|entry| feed.entry(entry));
        feed.flush();
        if !abilities.v2 {
            attachment.forget_text(); // version 2 tells it again to those who join
        }
        if !attachment.is_replaying() {
            self.release(session);
        }
    }

    /// Calls the client's editor. The reply comes as [`Intent::HostReply`].
    pub fn call_host(&mut self, session: SessionId, call: HostCall) -> Result<HostCallId, HostError> {
        let id = HostCallId(self.number());
        let context = |shape| Asked::Host { call: id, shape };
        let abilities = self.abilities.unwrap_or_default();
        self.peer.out.address(of(session));
        host_calls::send(&mut self.peer, abilities, session, id.request_id(), call, context).map(|()| id)
    }

    /// Takes back a call to the client's editor: no reply will come.
    pub fn cancel_host(&mut self, call: HostCallId) {
        self.peer.withdraw(&call.request_id());
    }

    /// The client is gone: what it was asked fails, what it watched is let go. Its runs go on.
    pub fn disconnected(&mut self) {
        for asked in self.peer.abandon() {
            self.intents.push_back(match asked {
                Asked::Question { session, question } => {
                    Intent::Withdrew { session, question, how: Withdrawal::Failed }
                }
                Asked::Host { call, .. } => Intent::HostReply { call, result: Err(HostError::Gone) },
            });
        }
        let sessions = self.sessions.drain().map(|(session, _)| Intent::Detach { session });
        self.intents.extend(sessions);
    }

    /// What the client can do for us; `None` until it has introduced itself.
    pub fn abilities(&self) -> Option<Abilities> {
        self.abilities
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
    pub fn asked_in(&self, id: &RequestId) -> Option<SessionId> {
        match self.peer.awaited(id)? {
            Asked::Question { session, .. } => Some(*session),
            Asked::Host { .. } => None,
        }
    }

    /// What was dropped without an answer.
    pub fn counters(&self) -> Counters {
        self.peer.counters
    }

    /// An answer that comes too late, or to a question that is not open, is no answer.
    fn answered(&mut self, session: SessionId, id: QuestionId, result: Result<&RawValue, Error>) {
        let Some(view) = self.sessions.get(&session).and_then(|attachment| attachment.view()) else { return };
        let Some(open) = view.run.as_ref().and_then(|run| run.question(id)) else { return };
        match question::reply(open, result) {
            Ok(reply) => {
                let command = Command::Answer { question: id, reply, origin: self.origin.clone(), meta: None };
                self.intents.push_back(Intent::Command { session, command, ticket: None });
            }
            Err(NoReply::Withdrew(how)) => self.intents.push_back(Intent::Withdrew { session, question: id, how }),
            Err(NoReply::Unfit(why)) => {
                // A response cannot be refused with an error, so the question is asked again under the same id: who sends
                // a second response instead of reading the request is heard too. A client that never gets it right is
                // not asked for ever, but its next response still counts.
                let context = Asked::Question { session, question: id };
                let unfit = self.unfit.entry(id).or_default();
                *unfit += 1;
                if *unfit > MAX_ASKED_AGAIN {
                    self.peer.wait_for(question::request_id(id), context);
                    return;
                }
                self.peer.out.address(of(session));
                question::ask_again(&mut self.peer, self.abilities.unwrap_or_default(), view, open, &why, context);
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn ticket(&mut self, waiting: Waiting) -> Ticket {
        let number = self.number();
        self.waiting.insert(number, waiting);
        Ticket(number)
    }
}

/// The place of a message about a session that no entry made.
fn of(session: SessionId) -> Place {
    Place { session: Some(session), ..Place::default() }
}
