//! Hands messages to the streams of a connection, as fast as their readers read: what has to wait is read again from the
//! journal or the log.

use gander_domain::Seq;
use gander_store::StoreError;

use super::connection_actor::ConnectionActor;
use super::journal::{ConnectionFact, ConnectionJournal, KeptMessage};
use super::streams::{ClientStream, Destination, OutgoingMessage};
use crate::protocols::acp::MAX_UNSENT;

impl ConnectionActor {
    /// Hands over what the client has to be told, once what has to be kept is kept.
    pub(super) async fn flush_messages(&mut self) {
        let Self { client, lanes, record, unread_whole, .. } = self;
        let incarnation = client.services.hub.store().incarnation();
        let outbox = client.connection.outbox();
        if outbox.is_empty() {
            return;
        }
        let outgoing = lanes.route_messages(outbox, &record.told);
        let before = record.last;
        let mut kept = keep_delivered_messages(record, &outgoing).await.into_iter();
        let mut n = before;
        for out in &outgoing {
            let mut place = None;
            match out.to {
                Destination::Kept { stream, .. } => {
                    n += 1;
                    place = kept.next();
                    if out.message.len() > MAX_UNSENT {
                        unread_whole.push((stream, n));
                    }
                }
                Destination::Log { session, seq, index } => {
                    if let Some(stream) = lanes.sessions.get_mut(&session)
                        && let Err(error) = deliver_messages_before(record, stream, incarnation, (seq, index)).await
                    {
                        tracing::error!(%error, "answers are not told");
                    }
                }
                Destination::Passing(_) | Destination::Nowhere => {}
            }
            lanes.deliver(incarnation, out, n, place);
        }
        lanes.send_body_answers();
        outbox.clear();
    }

    /// Tells what no log holds, once the log's part before it is told and the reader has read so far.
    pub(super) async fn replay_due_messages(&mut self) {
        let Self { client, lanes, record, .. } = self;
        let incarnation = client.services.hub.store().incarnation();
        if let Err(error) = deliver_connection_messages(record, &mut lanes.own).await {
            tracing::error!(%error, "answers are not told");
            lanes.own.drop_reader(); // whoever reads comes back to where it was
        }
        for (session, stream) in lanes.sessions.iter_mut().filter(|(_, stream)| !stream.due.is_empty()) {
            let head = client.connection.view(*session).map_or(0, |view| view.head.0);
            if let Err(error) = deliver_session_messages(record, stream, incarnation, head).await {
                tracing::error!(%error, "answers are not told");
                stream.drop_reader();
            }
        }
    }

    /// Follows sessions again whose readers have read.
    pub(super) fn resume_subscriptions(&mut self) {
        for (session, stream) in &mut self.lanes.sessions {
            let head = self.client.connection.view(*session).map_or(0, |view| view.head.0);
            let free = stream.pipe.as_ref().is_none_or(|pipe| pipe.has_capacity()) && !stream.has_due_message(head);
            if let Some(follower) = stream.paused.take_if(|_| free) {
                self.client.follows.resume(*session, follower);
            }
        }
    }

    /// The next answer that holds a whole session is made when the last one was given to a reader.
    pub(super) fn start_next_whole_session(&mut self) {
        let lanes = &self.lanes;
        self.unread_whole.retain(|(stream, n)| {
            let stream = match stream {
                None => Some(&lanes.own),
                Some(session) => lanes.sessions.get(session),
            };
            stream.is_some_and(|stream| stream.given.answer < *n)
        });
        if self.unread_whole.is_empty() {
            self.client.start_whole_session();
        }
    }
}

/// Writes messages that no log holds into the journal; gives their places, or none if that fails.
async fn keep_delivered_messages(record: &mut ConnectionJournal, outgoing: &[OutgoingMessage<'_>]) -> Vec<KeptMessage> {
    let (mut facts, mut kept) = (Vec::new(), Vec::new());
    for (out, n) in outgoing.iter().filter(|out| matches!(out.to, Destination::Kept { .. })).zip(record.last + 1..) {
        if let Destination::Kept { stream, entry, after } = out.to {
            let message = String::from_utf8_lossy(out.message).into_owned();
            kept.push(KeptMessage { n, after, at: Seq::ZERO, bytes: message.len() });
            facts.push(ConnectionFact::Said { n, stream, entry, after, message });
        }
    }
    if facts.is_empty() {
        return kept;
    }
    match record.append(&facts).await {
        Ok(end) => {
            let first = (end.0 + 1).saturating_sub(facts.len() as u64);
            kept.iter_mut().zip(first..).for_each(|(kept, at)| kept.at = Seq(at));
            kept
        }
        Err(error) => {
            tracing::error!(%error, "answers are not kept");
            Vec::new()
        }
    }
}

/// The messages that belong before one of the log's.
async fn deliver_messages_before(
    record: &ConnectionJournal,
    stream: &mut ClientStream,
    incarnation: u32,
    place: (u64, u32),
) -> Result<(), StoreError> {
    while let Some(kept) = stream.due.pop_front_if(|kept| kept.after < place) {
        let message = record.read_message(&kept).await?;
        stream.write_kept_message(incarnation, kept.n, message.as_bytes());
    }
    Ok(())
}

async fn deliver_session_messages(
    record: &ConnectionJournal,
    stream: &mut ClientStream,
    incarnation: u32,
    head: u64,
) -> Result<(), StoreError> {
    while let Some(kept) = stream.due.front().copied().filter(|kept| kept.after.0 <= head) {
        if !stream.can_take(kept.bytes) {
            break;
        }
        let message = record.read_message(&kept).await?;
        stream.due.pop_front();
        stream.write_kept_message(incarnation, kept.n, message.as_bytes());
    }
    Ok(())
}

async fn deliver_connection_messages(record: &ConnectionJournal, own: &mut ClientStream) -> Result<(), StoreError> {
    while let Some(kept) = own.due.front().copied().filter(|kept| own.can_take(kept.bytes)) {
        let message = record.read_message(&kept).await?;
        own.due.pop_front();
        own.write_connection_message(kept.n, message.as_bytes());
    }
    Ok(())
}
