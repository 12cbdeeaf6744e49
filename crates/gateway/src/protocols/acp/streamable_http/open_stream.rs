//! Opening streams: from wherever the client is, without a gap and without telling anything twice.

use std::sync::Arc;

use gander_domain::{QuestionId, Seq, SessionId, SessionView};
use gander_http::sse::StreamPosition;
use gander_runtime::hub::HubError;
use gander_services::sessions::SessionError;
use gander_store::{DeltaForm, StoreError};
use gander_wire::jsonrpc::RequestId;

use super::connection_actor::{ConnectionActor, split_entries};
use super::sse_pipe::sse_pipe;
use super::{OpenError, OpenOutcome, OpenRequest, ResumeFrom, SsePipeReader};

/// Streams that may wait for sessions that are not there.
const MAX_WAITING_STREAMS: usize = 16;

impl ConnectionActor {
    pub(super) async fn handle_open(&mut self, open: OpenRequest) -> OpenOutcome {
        self.lanes.drop_gone_readers();
        match open.session {
            None => self.open_connection_stream(open).await,
            Some(session) => self.open_session_stream(session, open).await,
        }
    }

    async fn open_connection_stream(&mut self, open: OpenRequest) -> OpenOutcome {
        let after = match open.from {
            ResumeFrom::Wherever if self.lanes.own.has_reader() => return Err(OpenError::Taken),
            ResumeFrom::Wherever => self.lanes.own.had.answer,
            ResumeFrom::Now => self.record.last,
            ResumeFrom::Number(n) if n <= self.record.last => n,
            ResumeFrom::Number(_) | ResumeFrom::Event(_) => return Err(OpenError::Truncated),
        };
        let due = self.record.kept_messages(None, after).await.map_err(|error| open_stream_error(&error.into()))?;
        let (pipe, events) = sse_pipe(Arc::clone(&self.read), open.stop);
        self.lanes.own.pipe = Some(pipe);
        self.lanes.own.had.answer = after;
        self.lanes.own.due = due;
        Ok(events)
    }

    async fn open_session_stream(&mut self, session: SessionId, open: OpenRequest) -> OpenOutcome {
        let stream = self.lanes.sessions.get(&session);
        let attached = stream.is_some_and(|stream| stream.attached);
        let names_no_place = matches!(open.from, ResumeFrom::Wherever | ResumeFrom::Now);
        if names_no_place && stream.is_some_and(|stream| stream.has_reader()) {
            return Err(OpenError::Taken);
        }
        // Nobody is told of a session that it did not open. One that is not there may be about to be.
        if !attached && (names_no_place || !self.client.owns_session(session).await) {
            return self.open_waiting_stream(session, open);
        }
        if open.from == ResumeFrom::Now {
            return Ok(self.open_live_stream(session, open));
        }
        let position = self.resume_position(session, open.from).await?;
        self.replay_from(session, position).await.map_err(|error| open_stream_error(&error))?;
        let due = self
            .record
            .kept_messages(Some(session), position.answer)
            .await
            .map_err(|error| open_stream_error(&error.into()))?;
        let (pipe, events) = sse_pipe(Arc::clone(&self.read), open.stop);
        let stream = self.lanes.sessions.entry(session).or_default();
        (stream.pipe, stream.given, stream.had) = (Some(pipe), position, position);
        stream.due = due;
        Ok(events)
    }

    /// The stream goes on where the connection is. Nothing is gone through again, so that nothing is answered again: a
    /// client may use the id of a request that was answered for another one.
    fn open_live_stream(&mut self, session: SessionId, open: OpenRequest) -> SsePipeReader {
        let seq = self.client.connection.view(session).map_or(0, |view| view.head.0);
        let (pipe, events) = sse_pipe(Arc::clone(&self.read), open.stop);
        let stream = self.lanes.sessions.entry(session).or_default();
        stream.pipe = Some(pipe);
        stream.due.clear();
        stream.set_position(StreamPosition { seq, index: u32::MAX, answer: self.record.last });
        events
    }

    /// The stream waits for the client to open the session. Another's looks the same as its own and as none.
    fn open_waiting_stream(&mut self, session: SessionId, open: OpenRequest) -> OpenOutcome {
        let known = self.lanes.sessions.contains_key(&session);
        let names_place = !matches!(open.from, ResumeFrom::Wherever | ResumeFrom::Now);
        if names_place || (!known && self.lanes.waiting_streams() >= MAX_WAITING_STREAMS) {
            return Err(OpenError::Unknown);
        }
        let (pipe, events) = sse_pipe(Arc::clone(&self.read), open.stop);
        self.lanes.sessions.entry(session).or_default().pipe = Some(pipe);
        Ok(events)
    }

    /// Where the reader is.
    async fn resume_position(&mut self, session: SessionId, from: ResumeFrom) -> Result<StreamPosition, OpenError> {
        let store = self.client.services.hub.store();
        let head = store.head(session).await.map_err(|error| open_stream_error(&error.into()))?;
        let now = StreamPosition { seq: head.0, index: u32::MAX, answer: self.record.last };
        let stream = self.lanes.sessions.get(&session).filter(|stream| stream.attached);
        match from {
            ResumeFrom::Wherever => Ok(stream.map_or(now, |stream| stream.had)),
            ResumeFrom::Now => Ok(now),
            ResumeFrom::Event(id) => {
                let StreamPosition { seq, answer, .. } = id.position;
                if id.incarnation != store.incarnation() || seq > head.0 || answer > self.record.last {
                    return Err(OpenError::Truncated);
                }
                // The history that it was to be told anew, it has seen nothing of.
                let anew = self.record.loads.get(&session).is_some_and(|load| answer < load.n);
                Ok(if anew { StreamPosition { answer, ..StreamPosition::default() } } else { id.position })
            }
            ResumeFrom::Number(_) => Err(OpenError::Truncated),
        }
    }

    /// Tells a session again from a place on. What the reader knows is gone through at once, in silence, so that
    /// its questions and prompts are known here too.
    pub(super) async fn replay_from(&mut self, session: SessionId, known: StreamPosition) -> Result<(), HubError> {
        let view = self.view_before(session, known.seq).await?;
        let folder = match &view {
            Some(view) => view.workspace.clone(),
            None => {
                let (services, peer) = (&self.client.services, &self.client.peer);
                services.sessions.view(&peer.caller, session).await.map(|view| view.workspace).unwrap_or_default()
            }
        };
        let catalog = (self.client.services.catalog)(&folder);
        let from = self.client.connection.resume_from(session, view, catalog);
        let stream = self.lanes.sessions.entry(session).or_default();
        stream.start_after(known);
        (stream.attached, stream.paused) = (true, None);
        let mut follower = self.client.services.hub.follow_session(session, from, DeltaForm::Exact);
        while follower.last_seq() < Seq(known.seq) {
            let Some(batch) = follower.next_stored().await? else { break };
            for entries in batch.entry_slices().flat_map(|entries| split_entries(entries, [known.seq, 0])) {
                self.client.connection.handle_entries(session, entries);
            }
        }
        self.client.follows.subscribe(session, follower);
        Ok(())
    }

    /// Loads that no answer was given to before a restart begin anew: the history is told, then the request answered.
    pub(super) async fn restart_loads(&mut self) {
        let open =
            self.record.loads.iter().filter_map(|(session, load)| Some((*session, load.n, load.request.clone()?)));
        for (session, n, request) in open.collect::<Vec<_>>() {
            let (services, peer) = (&self.client.services, &self.client.peer);
            let began = match services.sessions.stored_view(&peer.caller, session).await {
                Ok(view) => {
                    let catalog = (self.client.services.catalog)(&view.workspace);
                    self.client.connection.restart_load(request, &view, catalog);
                    let known = StreamPosition { seq: 0, index: 0, answer: n };
                    let stream = self.lanes.sessions.entry(session).or_default();
                    (stream.given, stream.had) = (known, known);
                    self.replay_from(session, known).await.map_err(SessionError::from)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = began {
                tracing::warn!(%error, "a load that was under way is not answered");
            }
        }
    }

    /// What a session was before an entry, or before the run that the entry belongs to. `None` before the first.
    async fn view_before(&mut self, session: SessionId, seq: u64) -> Result<Option<SessionView>, HubError> {
        let hub = &self.client.services.hub;
        if seq <= 1 {
            return Ok(None);
        }
        let view = hub.view_at(session, Seq(seq - 1)).await?;
        match &view.run {
            Some(run) => hub.view_at(session, Seq(run.from.0.saturating_sub(1))).await.map(Some),
            None => Ok(Some(view)),
        }
    }

    /// An answer to a question that was asked before this connection was restored: the question is remembered. If the
    /// connection is about to go through it anyway, gives the session and the place where it will know it.
    pub(super) async fn restore_question(&mut self, answered: &RequestId) -> Option<(SessionId, Seq)> {
        let RequestId::Text(text) = answered else { return None };
        let question = text.parse::<QuestionId>().ok()?;
        let services = &self.client.services;
        let row = services.sessions.find_question(&self.client.peer.caller, question).await.ok()??;
        if row.answered.is_some() || self.client.connection.session_of_question(answered).is_some() {
            return None;
        }
        if self.lanes.sessions.get(&row.session).is_some_and(|stream| stream.attached) {
            let head = services.hub.store().head(row.session).await.ok()?;
            return Some((row.session, head));
        }
        if let Ok(now) = self.resume_position(row.session, ResumeFrom::Wherever).await
            && let Err(error) = self.replay_from(row.session, now).await
        {
            tracing::debug!(%error, "a question is not remembered");
        }
        None
    }
}

fn open_stream_error(error: &HubError) -> OpenError {
    match error {
        HubError::Store(StoreError::NotFound(_) | StoreError::Deleted(_)) => OpenError::Unknown,
        HubError::Store(_) | HubError::Refused(_) | HubError::Denied(_) | HubError::Draining | HubError::Gone(_) => {
            tracing::error!(%error, "a stream is not opened");
            OpenError::Failed
        }
    }
}
