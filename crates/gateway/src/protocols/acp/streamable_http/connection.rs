//! One connection over HTTP: the same client as over any other transport, its messages handed to streams.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gander_domain::caller::{Caller, Protocol};
use gander_domain::{Entry, Event, Seq, SessionId};
use gander_store::Form;
use gander_store::clock::SystemIds;
use gander_wire::acp::Dialect;
use gander_wire::jsonrpc::Place;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinError;
use tokio::time::Instant;
use uuid::Uuid;

use super::journal::{Began, Fact, Record};
use super::streams::{COMES_BACK, Lanes, To};
use super::{Addressed, Ask, Closed, Connections, Post, Posted};
use crate::protocols::acp::intents::Done;
use crate::protocols::acp::sessions::first;
use crate::protocols::acp::subscriptions::{Attendance, News};
use crate::protocols::acp::{AT_ONCE, Client, UNSENT};
use crate::sse::Position;

/// Without a reader and a request for so long, a connection leaves memory; it is known for longer.
const UNUSED: Duration = Duration::from_secs(10 * 60);

/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Text that is joined into one message at most, so that the message is never cut: an id then names all of it.
const JOINED: usize = 8 * 1024;

/// Where a connection comes from.
pub(super) enum Origin {
    /// It was just made.
    Fresh { client: Box<Client>, initialize: Bytes },
    /// It may be known from before.
    Stored,
}

/// How a client introduced itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Introduced {
    Known,
    Unknown,
    Malformed,
}

/// One connection.
pub(super) struct Actor {
    pub(super) client: Client,
    pub(super) record: Record,
    pub(super) lanes: Lanes,
    /// Something was read, or will never be.
    pub(super) read: Arc<Notify>,
    /// Messages that are answered when what they began is done.
    posts: Vec<oneshot::Sender<Posted>>,
    used: Instant,
    /// The id of a session that the client may begin: the same as the connection's.
    reserved: SessionId,
    /// The words that are on record.
    spoken: Dialect,
}

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    On,
    Over,
}

/// Takes in `initialize` and gives the answer, which may have to wait for a session.
pub(super) async fn introduce(client: &mut Client, initialize: &[u8]) -> (Introduced, Vec<u8>) {
    client.connection.receive(initialize, &mut SystemIds);
    client.settle().await;
    while let Some(done) = client.work.join_next().await {
        client.finished(done);
        client.settle().await;
    }
    let malformed = client.connection.counters().malformed > 0;
    let introduced = match (client.connection.abilities(), malformed) {
        (Some(_), _) => Introduced::Known,
        (None, true) => Introduced::Malformed,
        (None, false) => Introduced::Unknown,
    };
    (introduced, take(client))
}

impl Actor {
    /// Serves the connection until nobody uses it, or it is closed.
    pub(super) async fn run(
        connections: Arc<Connections>,
        id: Uuid,
        origin: Origin,
        mut mailbox: mpsc::Receiver<Ask>,
        ready: oneshot::Sender<()>,
    ) {
        let Some(mut actor) = Self::begin(&connections, id, origin).await else {
            connections.lock().remove(&id);
            return; // whoever waits in the mailbox is told by the dropped reply
        };
        ready.send(()).ok(); // whoever restores does not wait
        actor.serve(&connections, id, &mut mailbox).await;
        actor.client.leave().await;
    }

    async fn begin(connections: &Connections, id: Uuid, origin: Origin) -> Option<Self> {
        let store = Arc::clone(connections.desk.hub.store());
        let begun = match origin {
            Origin::Fresh { client, initialize } => {
                let mut record = Record::new(store, id);
                let initialize = String::from_utf8(initialize.into()).ok()?;
                let (principal, manner) = (client.peer.caller.principal.clone(), client.peer.manner);
                let began = Fact::Began { principal, manner, initialize };
                record.write(&[began]).await.map(|()| Some((*client, record)))
            }
            Origin::Stored => match Record::find(store, id).await {
                Ok(Some((record, began))) => Ok(Some((restored(connections, id, began).await, record))),
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            },
        };
        let (client, record) = begun.inspect_err(|error| tracing::error!(%error, "no connection")).ok()??;
        let mut lanes = Lanes::default();
        lanes.own.had = Position { answer: record.last, ..Position::default() };
        let (read, posts, used, reserved) = (Arc::default(), Vec::new(), Instant::now(), SessionId::new(id));
        let spoken = client.connection.dialect();
        let mut actor = Self { client, record, lanes, read, posts, used, reserved, spoken };
        if let Some(head) = actor.client.connection.view(reserved).map(|view| view.head) {
            actor.opened(reserved, head).await; // the introduction brought it along
        }
        actor.load_again().await;
        Some(actor)
    }

    async fn serve(&mut self, connections: &Connections, id: Uuid, mailbox: &mut mpsc::Receiver<Ask>) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        let read = Arc::clone(&self.read);
        loop {
            self.client.settle().await;
            self.tell().await;
            self.tell_due();
            self.accept_posts();
            self.go_on();
            self.attend();
            tokio::select! {
                Some(ask) = mailbox.recv(), if self.client.work.len() < AT_ONCE => {
                    if self.asked(ask).await == Goes::Over {
                        connections.lock().remove(&id);
                        return;
                    }
                }
                Some(news) = self.client.follows.next() => self.hear(news),
                Some(done) = self.client.work.join_next() => self.finished(done).await,
                Ok(()) = self.client.relisted.changed() => self.client.relist(),
                Some(ask) = self.client.host_asks.recv() => self.call_host(ask),
                call = self.client.asks.given_up() => {
                    self.client.connection.outbox().address(Place::default());
                    self.client.connection.cancel_host(call);
                }
                () = read.notified() => self.lanes.tidy(),
                _ = looks.tick() => {
                    if self.is_unused().await && connections.retire(id, mailbox) {
                        return;
                    }
                }
            }
        }
    }

    /// Hands over what the client has to be told, once what has to be kept is kept.
    async fn tell(&mut self) {
        let Self { client, lanes, record, .. } = self;
        let incarnation = client.desk.hub.store().incarnation();
        let outbox = client.connection.outbox();
        if outbox.is_empty() {
            return;
        }
        let outgoing = lanes.sort(outbox, &record.told);
        let before = record.last;
        let kept = outgoing.iter().filter_map(|out| match out.to {
            To::Kept { lane, entry, after } => {
                Some((lane, entry, after, String::from_utf8_lossy(out.message).into_owned()))
            }
            To::Log { .. } | To::Passing(_) | To::Nowhere => None,
        });
        let facts: Vec<Fact> = kept
            .zip(before + 1..)
            .map(|((lane, entry, after, message), n)| Fact::Said { n, lane, entry, after, message })
            .collect();
        if !facts.is_empty()
            && let Err(error) = record.write(&facts).await
        {
            tracing::error!(%error, "answers are not kept");
        }
        let mut n = before;
        for out in &outgoing {
            n += u64::from(matches!(out.to, To::Kept { .. }));
            lanes.give(incarnation, out, n);
        }
        outbox.clear();
    }

    /// Tells again what no log holds, once the log's part before it is told.
    fn tell_due(&mut self) {
        let incarnation = self.client.desk.hub.store().incarnation();
        for (session, lane) in self.lanes.sessions.iter_mut().filter(|(_, lane)| !lane.due.is_empty()) {
            let head = self.client.connection.view(*session).map_or(0, |view| view.head.0);
            lane.tell_due(incarnation, |said| said.after.0 <= head);
        }
    }

    /// What a message began is done: it is stored that it came.
    fn accept_posts(&mut self) {
        if self.client.work.is_empty() {
            self.posts.drain(..).for_each(|post| drop(post.send(Posted::Accepted)));
        }
    }

    /// Follows sessions again whose readers have read.
    fn go_on(&mut self) {
        for (session, lane) in &mut self.lanes.sessions {
            if let Some(follower) = lane.paused.take_if(|_| lane.pipe.as_ref().is_none_or(|pipe| pipe.has_room())) {
                self.client.follows.go_on(*session, follower);
            }
        }
    }

    /// A client counts as attached while it asks, reads or is about to come back, not for as long as it is remembered.
    fn attend(&mut self) {
        let asks = self.used.elapsed() < COMES_BACK || self.lanes.is_waited_for();
        for (session, lane) in &self.lanes.sessions {
            let attendance = if asks || lane.is_expected() { Attendance::Here } else { Attendance::Away };
            self.client.follows.attend(*session, attendance);
        }
    }

    fn hear(&mut self, news: News) {
        let News { session, mut follower, batch } = news;
        let Self { client, lanes, .. } = self;
        let known = lanes.sessions.get(&session).map_or(0, |lane| lane.known.seq);
        match batch {
            Ok(Some(batch)) => {
                for entries in batch.pieces().flat_map(|entries| cut(entries, known)) {
                    client.connection.entries(session, entries);
                    // What does not fit is read again from the log.
                    if client.connection.outbox().bytes().len() >= UNSENT
                        && let Some(last) = entries.last()
                    {
                        follower = client.desk.hub.follow(session, last.seq, Form::Exact);
                        break;
                    }
                }
                match lanes.sessions.get_mut(&session) {
                    Some(lane) if client.connection.is_attached(session) => lane.paused = Some(follower),
                    Some(_) | None => client.follows.remove(session),
                }
            }
            Ok(None) => {
                self.client.lose(session);
                self.detach();
            }
            Err(error) => {
                self.client.broken(session, &error);
                self.detach();
            }
        }
    }

    async fn asked(&mut self, ask: Ask) -> Goes {
        self.used = Instant::now();
        if ask.caller().principal != self.client.peer.caller.principal {
            return Goes::On; // another's connection is as unknown as none
        }
        // What a request does is done with the authority of its own token, not of the one that made the connection.
        self.client.peer.caller = ask.caller().clone();
        if let Err(error) = self.record.seen().await {
            tracing::error!(%error, "a sign of life is not kept");
        }
        match ask {
            Ask::Post { post, reply, .. } => self.post(post, reply).await,
            Ask::Open { open, reply, .. } => drop(reply.send(self.open(open).await)),
            Ask::Close { reply, .. } => {
                if let Err(error) = self.record.forget().await {
                    tracing::error!(%error, "a connection is not forgotten");
                }
                reply.send(Closed::Over).ok();
                return Goes::Over;
            }
        }
        Goes::On
    }

    async fn post(&mut self, post: Post, reply: oneshot::Sender<Posted>) {
        let Post { message, request, answers, by, named, session } = post;
        if by == Addressed::Session && !self.speaks_goosed().await {
            drop(reply.send(Posted::UnknownSession));
            return;
        }
        if let Some(session) = named
            && session != self.reserved
            && !self.lanes.sessions.contains_key(&session)
            && !self.client.owns(session).await
        {
            drop(reply.send(Posted::UnknownSession));
            return;
        }
        if let Some(answered) = answers {
            self.recall(&answered).await;
            let asked_in = self.client.connection.asked_in(&answered);
            let named = named.filter(|named| *named != self.reserved);
            if asked_in.zip(named).is_some_and(|(asked_in, named)| asked_in != named) {
                drop(reply.send(Posted::OtherSession));
                return;
            }
        }
        if let Some(session) = named.filter(|session| *session != self.reserved) {
            self.client.connection.turn_to(session);
        }
        let malformed = self.client.connection.counters().malformed;
        self.client.connection.receive(&message, &mut SystemIds);
        if self.client.connection.counters().malformed > malformed {
            drop(reply.send(Posted::Malformed(take(&mut self.client))));
            return;
        }
        self.note_dialect().await;
        if request.is_none() {
            // An answer has no answer of its own: only its response can say that it does not count.
            self.client.denied = None;
            self.client.settle().await;
            if let Some(denied) = self.client.denied.take() {
                drop(reply.send(Posted::Denied(denied)));
                return;
            }
        }
        match request {
            Some(id) if self.spoken == Dialect::Goosed => {
                drop(reply.send(Posted::Answered(self.lanes.answer_in_body(id))));
            }
            request => {
                self.lanes.asked.extend(request.zip(session));
                self.posts.push(reply);
            }
        }
    }

    /// Whoever names a session alone speaks as paper 000 does, and finds a session behind the id.
    async fn speaks_goosed(&mut self) -> bool {
        if self.client.connection.dialect() == Dialect::Goosed {
            return true;
        }
        let found = first(Arc::clone(&self.client.desk), self.client.peer.clone(), Some(self.reserved)).await;
        self.client.connection.speak(Dialect::Goosed);
        self.client.connection.turn_to(self.reserved);
        found.is_ok()
    }

    /// In which words the client is spoken to survives a restart.
    async fn note_dialect(&mut self) {
        let dialect = self.client.connection.dialect();
        if std::mem::replace(&mut self.spoken, dialect) != dialect
            && let Err(error) = self.record.write(&[Fact::Speaks { dialect }]).await
        {
            tracing::error!(%error, "a dialect is not kept");
        }
    }

    async fn finished(&mut self, done: Result<Done, JoinError>) {
        let opened = match &done {
            Ok(Done::Opened { result: Ok((view, after)), .. }) => Some((view.session, *after)),
            Ok(_) | Err(_) => None,
        };
        self.client.finished(done);
        if let Some((session, after)) = opened {
            self.opened(session, after).await;
        }
        self.detach();
    }

    /// A session is open now, from this place on.
    async fn opened(&mut self, session: SessionId, after: Seq) {
        let answer = self.record.last;
        let lane = self.lanes.sessions.entry(session).or_default();
        let was_attached = std::mem::replace(&mut lane.attached, true);
        lane.paused = None;
        if after == Seq::ZERO {
            lane.stand(Position { seq: 0, index: 0, answer: answer + 1 });
            let request = self.client.connection.load_under_way(session).map(|request| serde_json::json!(request));
            if let Err(error) = self.record.write(&[Fact::Loads { n: answer + 1, session, request }]).await {
                tracing::error!(%error, "a load is not kept");
            }
        } else if was_attached {
            // The stream goes on where it was, however far the session has come.
            let given = lane.given;
            if self.rewind(session, given).await.is_err() {
                self.client.lose(session);
            }
        } else {
            lane.stand(Position { seq: after.0, index: u32::MAX, answer });
        }
    }

    /// Sessions that are not open here any more are not followed.
    fn detach(&mut self) {
        for (session, lane) in &mut self.lanes.sessions {
            lane.attached &= self.client.connection.is_attached(*session);
        }
    }

    async fn is_unused(&mut self) -> bool {
        self.lanes.tidy();
        let used = self.lanes.has_reader();
        if used {
            self.used = Instant::now();
            if let Err(error) = self.record.seen().await {
                tracing::error!(%error, "a sign of life is not kept");
            }
        }
        !used && self.used.elapsed() > UNUSED && !self.client.connection.is_busy() && self.client.work.is_empty()
    }

    fn call_host(&mut self, ask: crate::protocols::acp::host_calls::HostAsk) {
        match self.lanes.sessions.get(&ask.session()) {
            Some(lane) if lane.has_reader() => self.client.asks.send(ask, &mut self.client.connection),
            Some(_) | None => ask.refuse(),
        }
    }
}

/// A client as it introduced itself before.
async fn restored(connections: &Connections, id: Uuid, began: Began) -> Client {
    let Began { principal, manner, initialize } = began;
    let desk = Arc::clone(&connections.desk);
    // The request that brought it back says what may be done.
    let nobody = Caller { protocol: Protocol::Acp, ..Caller::internal(principal).without_scopes() };
    let mut client = Client::from_network(desk, nobody, manner).named(id);
    introduce(&mut client, initialize.as_bytes()).await;
    client
}

/// Everything the client has to be told, as one message.
fn take(client: &mut Client) -> Vec<u8> {
    let outbox = client.connection.outbox();
    let bytes = outbox.bytes().trim_ascii_end().to_vec();
    outbox.clear();
    bytes
}

/// Cuts entries so that the text of each piece fits into one message, and none reaches over what the reader knows.
pub(super) fn cut(entries: &[Entry], known: u64) -> impl Iterator<Item = &[Entry]> {
    let mut text = 0;
    entries.chunk_by(move |entry, next| {
        text += grown(entry);
        let joins = text + grown(next) <= JOINED && entry.seq != Seq(known);
        if !joins {
            text = 0;
        }
        joins
    })
}

fn grown(entry: &Entry) -> usize {
    if let Event::PartDelta { text, .. } = &entry.event { text.len() } else { 0 }
}

impl Client {
    /// The same client, with a name in the log, fed entry by entry.
    pub(super) fn named(mut self, id: Uuid) -> Self {
        self.connection = self.connection.named(id.to_string());
        self.form = Form::Exact;
        self.reserved = Some(SessionId::new(id));
        self
    }
}
