//! A way to an agent: whole messages out, whole messages in, both bounded.

use std::io;
use std::time::Duration;

use gander_wire::jsonrpc::{Line, Lines};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::LinkError;

/// How many messages wait in each direction.
const MESSAGE_CAPACITY: usize = 128;
/// How long the last messages may take to leave once nobody wants the link any more.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// What is read, and about what is written, at a time.
const CHUNK_SIZE: usize = 64 * 1024;

/// A way to an agent. Dropping it ends the connection after what was sent has left.
#[derive(Debug)]
pub struct Link {
    pub(crate) outgoing: mpsc::Sender<Vec<u8>>,
    pub(crate) incoming: mpsc::Receiver<Result<Vec<u8>, LinkError>>,
    _end: DropGuard,
}

/// The transport's end of a link.
#[derive(Debug)]
pub(crate) struct LinkPeer {
    pub(crate) outgoing: mpsc::Receiver<Vec<u8>>,
    pub(crate) incoming: mpsc::Sender<Result<Vec<u8>, LinkError>>,
    /// Cancelled when the link was dropped.
    pub(crate) end: CancellationToken,
}

impl Link {
    /// Over a pair of byte streams, one message per line: stdio, a socket, a pipe.
    pub fn from_line_streams(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let (link, LinkPeer { outgoing, incoming, end }) = Self::link_pair();
        let lost = incoming.clone();
        tokio::spawn(read_link_lines(reader, incoming, end.clone()));
        tokio::spawn(async move {
            let farewell = async {
                end.cancelled().await;
                tokio::time::sleep(FLUSH_TIMEOUT).await;
                Ok(())
            };
            let written = tokio::select! {
                written = write_link_lines(writer, outgoing) => written,
                late = farewell => late,
            };
            if let Err(error) = written {
                lost.send(Err(error.into())).await.ok();
            }
        });
        link
    }

    pub(crate) fn link_pair() -> (Self, LinkPeer) {
        let end = CancellationToken::new();
        let (outgoing, outgoing_far) = mpsc::channel(MESSAGE_CAPACITY);
        let (incoming_far, incoming) = mpsc::channel(MESSAGE_CAPACITY);
        let far = LinkPeer { outgoing: outgoing_far, incoming: incoming_far, end: end.clone() };
        (Self { outgoing, incoming, _end: end.drop_guard() }, far)
    }
}

async fn read_link_lines(
    mut reader: impl AsyncRead + Unpin,
    incoming: mpsc::Sender<Result<Vec<u8>, LinkError>>,
    end: CancellationToken,
) {
    let mut lines = Lines::default();
    let mut chunk = vec![0; CHUNK_SIZE];
    loop {
        let read = tokio::select! {
            read = reader.read(&mut chunk) => read,
            () = end.cancelled() => return,
        };
        match read {
            Ok(0) => lines.push(b"\n"),
            Ok(length) => lines.push(&chunk[..length]),
            Err(error) => {
                incoming.send(Err(error.into())).await.ok();
                return;
            }
        }
        while let Some(line) = lines.next_line() {
            let message = match line {
                Line::Whole(line) => Ok(line.to_vec()),
                Line::TooLong => Err(LinkError::TooLong),
            };
            if incoming.send(message).await.is_err() {
                return;
            }
        }
        if matches!(read, Ok(0)) {
            incoming.send(Err(LinkError::Closed)).await.ok();
            return;
        }
    }
}

/// Writes what waits together at once.
async fn write_link_lines(
    mut writer: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    while let Some(message) = outgoing.recv().await {
        let mut next = Some(message);
        while let Some(message) = next {
            bytes.extend_from_slice(&message);
            bytes.push(b'\n');
            next = if bytes.len() < CHUNK_SIZE { outgoing.try_recv().ok() } else { None };
        }
        writer.write_all(&bytes).await?;
        writer.flush().await?;
        bytes.clear();
        bytes.shrink_to(CHUNK_SIZE);
    }
    writer.shutdown().await
}
