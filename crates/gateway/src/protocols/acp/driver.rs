//! Drives a client over a pair of byte streams, whatever frames its messages.

use std::io;
use std::time::Duration;

use gander_http::framed_io::{OutgoingBytes, heartbeat_interval, next_heartbeat, read_into_framing};
use gander_http::message_framing::{ConnectionStage, Framing, InboundMessage};
use gander_store::clock::SystemIds;
use gander_wire::acp::ReminderForm;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{AcpClient, MAX_CONCURRENT_REQUESTS, MAX_UNSENT};

/// How long answers under way are waited for when the client has said its last word.
const FINAL_RESPONSES_TIMEOUT: Duration = Duration::from_secs(2);

/// While more answers than this wait to be written, no request is read. Far more than [`MAX_UNSENT`]: a client that sends
/// many requests before it reads the first answer must not wait for us while we wait for it.
const MAX_UNSENT_RESPONSES: usize = 4 * 1024 * 1024;

/// How a server tells its clients that it ends.
#[derive(Clone, Debug, Default)]
pub struct ShutdownSignals {
    /// No new work: clients that wait for nothing are let go.
    pub soon: CancellationToken,
    /// All are let go.
    pub now: CancellationToken,
}

impl AcpClient {
    /// Serves the client until it is gone. Its runs go on.
    pub(super) async fn run<F, R, W>(mut self, mut framing: F, mut reader: R, mut writer: W, ending: ShutdownSignals)
    where
        F: Framing,
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let served = self.run_io_loop(&mut framing, &mut reader, &mut writer, ending).await;
        let ended = match served {
            Ok(()) => self.flush_responses(&mut framing, &mut writer).await,
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "client connection broke");
        }
        self.disconnect().await;
    }

    /// Reads and writes until the input ends, the framing is over or the server ends.
    async fn run_io_loop<F, R, W>(
        &mut self,
        framing: &mut F,
        reader: &mut R,
        writer: &mut W,
        ending: ShutdownSignals,
    ) -> io::Result<()>
    where
        F: Framing,
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let (mut sending, mut heartbeats) = (self.outgoing_bytes(), F::HEARTBEAT.map(heartbeat_interval));
        let (mut ends, mut held, mut resume) = (false, false, Instant::now());
        loop {
            self.carry_out_intents().await;
            if ends && !self.connection.is_busy() {
                framing.shut_down();
            }
            sending.load_outbox(framing, self.connection.outbox())?;
            if framing.is_closed() {
                return sending.write_all(writer, FINAL_RESPONSES_TIMEOUT).await;
            }
            sending.advance_now(writer)?;
            let ((free, listens), paused) = (self.capacity(sending.len()), resume > Instant::now());
            if listens && !paused && std::mem::take(&mut held) {
                resume = Instant::now() + self.handle_input(framing).await;
                continue;
            }
            tokio::select! {
                sent = sending.advance(writer), if !sending.is_done() => sent?,
                Some(event) = self.follows.next_event(), if free => self.handle_session_event(event),
                Some(done) = self.work.join_next() => self.handle_finished(done),
                Ok(()) = self.relisted.changed(), if free => self.refresh_catalogs(),
                Some(ask) = self.host_asks.recv(), if free => self.asks.send_request(ask, &mut self.connection),
                call = self.asks.next_abandoned() => self.connection.cancel_host_call(call),
                due = self.reminders.next_due() => self.connection.remind_of_question(due, ReminderForm::Update),
                () = ending.soon.cancelled(), if !ends => ends = true,
                () = ending.now.cancelled() => {
                    framing.shut_down();
                    sending.load_outbox(framing, self.connection.outbox())?;
                    return sending.write_all(writer, FINAL_RESPONSES_TIMEOUT).await;
                }
                () = next_heartbeat(&mut heartbeats) => framing.on_heartbeat(self.connection_stage()),
                () = tokio::time::sleep_until(resume), if paused => {}
                read = read_into_framing(reader, framing), if (listens && !paused) || framing.has_capacity() => {
                    if read? == 0 {
                        self.handle_input(framing).await;
                        return self.handle_input_end(framing, sending, writer).await;
                    }
                    if listens && !paused {
                        resume = Instant::now() + self.handle_input(framing).await;
                    } else {
                        framing.answer_control_frames();
                        held = true;
                    }
                }
            }
        }
    }

    fn outgoing_bytes(&self) -> OutgoingBytes {
        OutgoingBytes::with_spool(&self.large_responses.spool)
    }

    /// Whether there is room for entries, and for further requests, while so many bytes are on their way. A client that has
    /// read what it was sent gets the next large answer.
    fn capacity(&mut self, sending: usize) -> (bool, bool) {
        let unsent = sending + self.connection.outbox().bytes().len();
        let free = unsent < MAX_UNSENT;
        if free {
            self.start_whole_session();
        }
        (free, unsent < MAX_UNSENT_RESPONSES && self.work.len() < MAX_CONCURRENT_REQUESTS)
    }

    /// Takes in whole messages, each with all that follows from it, so that commands keep their order. Gives how long
    /// to wait before more is read.
    async fn handle_input(&mut self, framing: &mut impl Framing) -> Duration {
        let mut wait = Duration::ZERO;
        while let Some(piece) = framing.next_message() {
            wait = self.pace.as_ref().map_or(wait, |pace| pace());
            self.handle_message(&piece);
            self.carry_out_intents().await;
        }
        wait
    }

    fn handle_message(&mut self, piece: &InboundMessage<'_>) {
        match piece {
            InboundMessage::Message(message) => self.connection.handle_message(message, &mut SystemIds),
            InboundMessage::TooLong => self.connection.refuse_oversized(),
        }
    }

    /// The input ended, perhaps without an end of its last message.
    async fn handle_input_end<W: AsyncWrite + Unpin>(
        &mut self,
        framing: &mut impl Framing,
        mut sending: OutgoingBytes,
        writer: &mut W,
    ) -> io::Result<()> {
        if let Some(piece) = framing.final_message() {
            self.handle_message(&piece);
        }
        sending.write_all(writer, FINAL_RESPONSES_TIMEOUT).await
    }

    fn connection_stage(&self) -> ConnectionStage {
        if self.connection.abilities().is_some() { ConnectionStage::Known } else { ConnectionStage::Strange }
    }

    /// The client says no more, but it may still read: answers under way are given.
    async fn flush_responses<W: AsyncWrite + Unpin>(
        &mut self,
        framing: &mut impl Framing,
        writer: &mut W,
    ) -> io::Result<()> {
        let deadline = Instant::now() + FINAL_RESPONSES_TIMEOUT;
        let mut sending = self.outgoing_bytes();
        loop {
            self.carry_out_intents().await;
            sending.load_outbox(framing, self.connection.outbox())?;
            sending.write_all(writer, FINAL_RESPONSES_TIMEOUT).await?;
            self.start_whole_session();
            if self.work.only_waits() || framing.is_closed() {
                return writer.shutdown().await;
            }
            match tokio::time::timeout_at(deadline, self.work.join_next()).await {
                Ok(Some(done)) => self.handle_finished(done),
                Ok(None) => {}
                Err(_) => return writer.shutdown().await,
            }
        }
    }
}
