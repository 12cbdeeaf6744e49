//! The Agent Client Protocol over any pair of byte streams, one message a line.

mod editor;
mod extensions;
mod follows;
mod intents;

use std::sync::Arc;
use std::time::Duration;

use gander_domain::SessionId;
use gander_wire::acp::{Connection, Profile};
use gander_wire::jsonrpc::{Line, Lines};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::editor::{Asks, HostAsk};
use self::follows::Follows;
use self::intents::Done;
use super::Desk;
use crate::app::Peer;
use crate::clock::SystemIds;

/// While more than this waits to be written, nothing new is asked for: entries stay in the log, input in its pipe.
const UNSENT: usize = 256 * 1024;

/// Requests of one client that are being carried out at once.
const AT_ONCE: usize = 128;

/// How long answers under way are waited for when the client has said its last word.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Calls to a client's editor that wait to be sent.
const HOST_CALLS: usize = 32;

/// Serves one client until it is gone. Its runs go on.
pub async fn serve<R, W>(desk: Arc<Desk>, reader: R, writer: W, peer: Peer)
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let client = Client::new(desk, peer);
    if let Err(error) = client.serve(reader, writer).await {
        tracing::debug!(%error, "client connection broke");
    }
}

/// One client's connection and what is under way for it.
struct Client {
    desk: Arc<Desk>,
    peer: Peer,
    connection: Connection,
    follows: Follows,
    work: JoinSet<Done>,
    asks: Asks,
    host_asks: mpsc::Receiver<HostAsk>,
    host_sender: mpsc::Sender<HostAsk>,
    /// Taken from the connection, being written.
    sending: Vec<u8>,
    sent: usize,
}

impl Client {
    fn new(desk: Arc<Desk>, peer: Peer) -> Self {
        let (host_sender, host_asks) = mpsc::channel(HOST_CALLS);
        let connection = Connection::new(profile(&desk), peer.principal.clone());
        Self {
            follows: Follows::new(Arc::clone(&desk.clients)),
            desk,
            peer,
            connection,
            work: JoinSet::new(),
            asks: Asks::default(),
            host_asks,
            host_sender,
            sending: Vec::new(),
            sent: 0,
        }
    }

    async fn serve<R, W>(mut self, mut reader: R, mut writer: W) -> std::io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let mut lines = Lines::default();
        let mut input = Vec::with_capacity(8 * 1024);
        loop {
            self.settle().await;
            self.load();
            let free = self.has_room();
            tokio::select! {
                wrote = writer.write(&self.sending[self.sent..]), if !self.sending.is_empty() => self.wrote(wrote?),
                Some(batch) = self.follows.next(), if free => self.follows.tell(batch, &mut self.connection),
                Some(done) = self.work.join_next() => self.finished(done),
                Some(ask) = self.host_asks.recv(), if free => self.asks.send(ask, &mut self.connection),
                call = self.asks.given_up() => self.connection.cancel_host(call),
                read = reader.read_buf(&mut input), if free && self.work.len() < AT_ONCE => {
                    if read? == 0 {
                        break;
                    }
                    lines.push(&input);
                    input.clear();
                    self.receive(&mut lines).await;
                }
            }
        }
        if let Some(Line::Whole(last)) = lines.finish() {
            self.connection.receive(last, &mut SystemIds);
        }
        let ended = self.finish(&mut writer).await;
        self.leave().await;
        ended
    }

    /// Takes in whole lines, each with all that follows from it, so that commands keep their order.
    async fn receive(&mut self, lines: &mut Lines) {
        loop {
            match lines.next_line() {
                Some(Line::Whole(line)) => self.connection.receive(line, &mut SystemIds),
                Some(Line::TooLong) => self.connection.refuse_oversized(),
                None => return,
            }
            self.settle().await;
        }
    }

    /// Carries out what the client wants.
    async fn settle(&mut self) {
        while let Some(intent) = self.connection.poll() {
            self.carry_out(intent).await;
        }
    }

    fn has_room(&mut self) -> bool {
        self.sending.len() - self.sent + self.connection.outbox().bytes().len() < UNSENT
    }

    /// Takes what the connection has to say, once everything older is written.
    fn load(&mut self) {
        if self.sending.is_empty() && !self.connection.outbox().is_empty() {
            let outbox = self.connection.outbox();
            self.sending.extend_from_slice(outbox.bytes());
            outbox.clear();
        }
    }

    fn wrote(&mut self, bytes: usize) {
        self.sent += bytes;
        if bytes == 0 || self.sent == self.sending.len() {
            self.sending.clear();
            self.sending.shrink_to(UNSENT);
            self.sent = 0;
        }
    }

    /// The client says no more, but it may still read: answers under way are given.
    async fn finish<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> std::io::Result<()> {
        let deadline = tokio::time::Instant::now() + LAST_ANSWERS;
        loop {
            self.settle().await;
            self.load();
            writer.write_all(&self.sending[self.sent..]).await?;
            self.wrote(self.sending.len() - self.sent);
            if self.connection.outbox().is_empty() && self.work.is_empty() {
                return writer.flush().await;
            }
            match tokio::time::timeout_at(deadline, self.work.join_next()).await {
                Ok(Some(done)) => self.finished(done),
                Ok(None) => {}
                Err(_) => return writer.flush().await,
            }
        }
    }

    /// What the client was asked fails, what it watched is let go. Its runs go on.
    async fn leave(mut self) {
        self.follows.clear();
        self.connection.disconnected();
        self.settle().await;
        self.asks.clear();
    }

    fn attach(&mut self, session: SessionId, after: gander_domain::Seq) {
        self.follows.add(session, self.desk.hub.follow(session, after, crate::log::Form::Joined));
    }
}

fn profile(desk: &Desk) -> Profile {
    Profile {
        name: desk.manifest.name.clone(),
        title: desk.manifest.title.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        image: true,
        audio: false,
        mcp_http: false,
        mcp_sse: false,
    }
}
