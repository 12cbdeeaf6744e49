//! The streams of one connection: which message goes where, and what a reader has been given.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use gander_domain::{Seq, SessionId};
use gander_http::sse::{EventId, StreamPosition};
use gander_runtime::hub::Follower;
use gander_wire::acp::ReminderForm;
use gander_wire::jsonrpc::{MessageOrigin, Outbox, RequestId};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::envelope::MessageKind;
use super::journal::KeptMessage;
use super::sse_pipe::SsePipe;

/// A reader that left is expected back for so long.
pub(super) const RECONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// One stream, with or without a reader.
#[derive(Default)]
pub(super) struct ClientStream {
    pub(super) pipe: Option<SsePipe>,
    /// What was given to a reader last.
    pub(super) given: StreamPosition,
    /// What the client certainly has: a reader that names no place goes on from here.
    pub(super) had: StreamPosition,
    /// What the reader has anyway: told again, but not to it.
    pub(super) known: StreamPosition,
    /// The last message of an entry.
    counted: Option<(u64, u32)>,
    /// Messages that no log holds, to be told once the reader is where they belong and has read what came before.
    pub(super) due: VecDeque<KeptMessage>,
    /// Goes on once the reader has read.
    pub(super) paused: Option<Follower>,
    /// When its reader left.
    left: Option<Instant>,
    /// The session is followed.
    pub(super) attached: bool,
}

/// All streams of a connection.
#[derive(Default)]
pub(super) struct ClientStreams {
    /// The connection's own.
    pub(super) own: ClientStream,
    pub(super) sessions: HashMap<SessionId, ClientStream>,
    /// Which session an unanswered request is about.
    pub(super) asked: HashMap<RequestId, SessionId>,
    /// Requests that are answered where they came in.
    bodies: HashMap<RequestId, oneshot::Sender<Vec<u8>>>,
    /// Their answers, until everything that comes before them is told.
    answered: Vec<(oneshot::Sender<Vec<u8>>, Vec<u8>)>,
}

/// A message and where it goes.
pub(super) struct OutgoingMessage<'a> {
    pub(super) to: Destination,
    pub(super) message: &'a [u8],
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// To the stream of its session; the log holds it.
    Log { session: SessionId, seq: u64, index: u32 },
    /// To this stream, once it is kept.
    Kept { stream: Option<SessionId>, entry: Option<(SessionId, Seq)>, after: (u64, u32) },
    /// To whoever reads now.
    Passing(SessionId),
    /// The connection's own stream had it.
    Nowhere,
}

impl ClientStream {
    pub(super) fn has_reader(&self) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| !pipe.is_abandoned())
    }

    /// True if somebody reads, or has just left and is about to come back: its answers wait for it here. A reader whose leaving
    /// was not noticed yet has just left.
    pub(super) fn expects_reader(&self) -> bool {
        self.pipe.is_some() || self.left.is_some_and(|left| left.elapsed() < RECONNECT_TIMEOUT)
    }

    /// Its reader is gone, and expected back. Whoever comes back says from where it is told again.
    pub(super) fn drop_reader(&mut self) {
        (self.pipe, self.left) = (None, Some(Instant::now()));
        self.due.clear();
    }

    /// The stream is here, whoever reads it.
    pub(super) fn set_position(&mut self, position: StreamPosition) {
        (self.given, self.had) = (position, position);
        self.start_after(position);
    }

    /// Begins to tell from a place that the reader knows.
    pub(super) fn start_after(&mut self, known: StreamPosition) {
        (self.known, self.counted) = (known, None);
    }

    /// The index of an entry's next message.
    fn next_index(&mut self, seq: u64) -> u32 {
        let index = match self.counted {
            Some((last, index)) if last == seq => index + 1,
            Some(_) | None => 0,
        };
        self.counted = Some((seq, index));
        index
    }

    fn write_logged_message(&mut self, incarnation: u32, seq: u64, index: u32, message: &[u8]) {
        let position = StreamPosition { seq, index, ..self.given };
        if let Some(pipe) = self.pipe.as_ref().filter(|_| !self.known.covers(seq, index)) {
            pipe.push_event(Some(&EventId { incarnation, position }), message);
            self.given = position;
        }
    }

    /// A message of no entry has a number, and the place of what came before it.
    pub(super) fn write_kept_message(&mut self, incarnation: u32, answer: u64, message: &[u8]) {
        if let Some(pipe) = &self.pipe {
            self.given.answer = answer;
            pipe.push_event(Some(&EventId { incarnation, position: self.given }), message);
        }
    }

    /// True if this message can be told now.
    pub(super) fn can_take(&self, bytes: usize) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| pipe.can_take(bytes))
    }

    /// True if the log's part of this stream waits for a message that no log holds.
    pub(super) fn has_due_message(&self, head: u64) -> bool {
        self.due.front().is_some_and(|kept| kept.after.0 <= head)
    }

    /// What was kept of a message goes out at once if the reader can take it; else it waits in the journal.
    fn write_or_defer(&mut self, message: &[u8], kept: Option<KeptMessage>, write: impl FnOnce(&mut Self, &[u8])) {
        match kept {
            Some(kept) if self.pipe.is_some() && (!self.due.is_empty() || !self.can_take(message.len())) => {
                self.due.push_back(kept);
            }
            Some(_) | None => write(self, message),
        }
    }

    /// On the connection's own stream the number is all.
    pub(super) fn write_connection_message(&mut self, answer: u64, message: &[u8]) {
        if let Some(pipe) = &self.pipe {
            self.given.answer = answer;
            pipe.push_event(Some(&answer), message);
        }
    }
}

impl ClientStreams {
    /// Says where each message goes.
    pub(super) fn route_messages<'a>(
        &mut self,
        outbox: &'a Outbox,
        told: &HashSet<(SessionId, Seq)>,
    ) -> Vec<OutgoingMessage<'a>> {
        let messages = outbox.messages();
        messages
            .map(|(origin, message)| OutgoingMessage { to: self.destination_of(origin, message, told), message })
            .collect()
    }

    /// Hands a message over. Kept ones have a number.
    pub(super) fn deliver(
        &mut self,
        incarnation: u32,
        outgoing: &OutgoingMessage<'_>,
        n: u64,
        kept: Option<KeptMessage>,
    ) {
        let message = outgoing.message;
        match outgoing.to {
            Destination::Log { session, seq, index } => {
                if let Some(stream) = self.sessions.get_mut(&session) {
                    stream.write_logged_message(incarnation, seq, index, message);
                }
            }
            Destination::Kept { stream: None, .. } => {
                self.own.write_or_defer(message, kept, |own, message| own.write_connection_message(n, message));
            }
            Destination::Kept { stream: Some(session), .. } => {
                if let Some(stream) = self.sessions.get_mut(&session) {
                    let write = |stream: &mut ClientStream, message: &[u8]| {
                        stream.write_kept_message(incarnation, n, message);
                    };
                    stream.write_or_defer(message, kept, write);
                }
            }
            Destination::Passing(session) => {
                if let Some(pipe) = self.sessions.get(&session).and_then(|stream| stream.pipe.as_ref()) {
                    pipe.push_event(None, message);
                }
            }
            Destination::Nowhere => {}
        }
    }

    /// The answer to this request goes where it came in, if somebody still waits there.
    pub(super) fn answer_in_body(&mut self, request: RequestId) -> oneshot::Receiver<Vec<u8>> {
        let (body, answer) = oneshot::channel();
        self.bodies.insert(request, body);
        answer
    }

    /// Answers requests where they came in: what their streams were to be told before is told.
    pub(super) fn send_body_answers(&mut self) {
        for (body, answer) in self.answered.drain(..) {
            drop(body.send(answer)); // whoever asked may have left just now
        }
    }

    /// True if somebody waits for an answer where it asked.
    pub(super) fn has_body_waiter(&self) -> bool {
        self.bodies.values().any(|body| !body.is_closed())
    }

    /// Who waits for the answer in the body of its own request reads no stream.
    pub(super) fn reminder_form(&self) -> ReminderForm {
        if self.has_body_waiter() { ReminderForm::PromptAnswer } else { ReminderForm::Update }
    }

    /// True if anybody reads anything.
    pub(super) fn has_reader(&self) -> bool {
        self.own.has_reader() || self.has_body_waiter() || self.sessions.values().any(ClientStream::has_reader)
    }

    /// Lets go of readers that left.
    pub(super) fn drop_gone_readers(&mut self) {
        for stream in self.sessions.values_mut().chain([&mut self.own]) {
            if stream.pipe.take_if(|pipe| pipe.is_abandoned()).is_some() {
                stream.drop_reader();
            }
        }
        self.sessions.retain(|_, stream| stream.attached || stream.pipe.is_some());
    }

    /// Streams that wait for a session that is not open here.
    pub(super) fn waiting_streams(&self) -> usize {
        self.sessions.values().filter(|stream| !stream.attached).count()
    }

    fn destination_of(
        &mut self,
        origin: MessageOrigin,
        message: &[u8],
        told: &HashSet<(SessionId, Seq)>,
    ) -> Destination {
        let kind = MessageKind::classify(message);
        let body = kind.answered_id().and_then(|id| self.bodies.remove(id));
        let body = body.filter(|body| !body.is_closed());
        let in_body = body.is_some();
        self.answered.extend(body.map(|body| (body, message.to_vec())));
        let asked = kind.answered_id().and_then(|id| self.asked.remove(id));
        let session = origin.session.or(asked);
        let stream = session.and_then(|session| self.sessions.get(&session));
        let read = stream.is_some_and(ClientStream::expects_reader);
        let after = stream.map_or((0, 0), |stream| stream.counted.unwrap_or((stream.given.seq, stream.given.index)));
        match (session, kind) {
            (Some(session), kind) if origin.seq > Seq::ZERO => {
                let entry = (session, origin.seq);
                let seq = origin.seq.0;
                let index = self.sessions.get_mut(&session).map_or(0, |stream| stream.next_index(seq));
                match kind {
                    MessageKind::Answer(_) if in_body || told.contains(&entry) => Destination::Nowhere,
                    MessageKind::Answer(_) if !read => Destination::Kept { stream: None, entry: Some(entry), after },
                    MessageKind::Answer(_)
                    | MessageKind::Request
                    | MessageKind::HostCall
                    | MessageKind::Notification => Destination::Log { session, seq, index },
                }
            }
            (_, MessageKind::Answer(_)) if in_body => Destination::Nowhere,
            (session, MessageKind::Answer(_)) => {
                Destination::Kept { stream: session.filter(|_| read), entry: None, after }
            }
            (Some(session), MessageKind::HostCall) => Destination::Passing(session),
            (session, MessageKind::Request | MessageKind::Notification | MessageKind::HostCall) => {
                Destination::Kept { stream: session, entry: None, after }
            }
        }
    }
}
