//! The Agent Communication Protocol: runs begun, found, answered, cancelled and followed.

mod history_import;
pub(crate) mod routes;
mod runs;
mod sessions;
mod state;
mod stats;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use gander_domain::caller::Caller;
use gander_domain::{CommandError, QuestionId, RunId, RunOrigin, Seq, SessionId};
use gander_runtime::hub::{Follower, HubError};
use gander_services::Services;
use gander_store::{Form, Limit, Store, StoreError};
use gander_tools::Guard;
use gander_wire::acp_rest::{AcpRestError, AcpRestProjection, AcpRestRefusal, PROTOCOL_NAME};

use crate::sse::{Projection, SseWriter};

pub use sessions::{ResourceUrls, UnknownResource};
pub use state::AcpRestState;

/// This door.
pub struct AcpRest {
    services: Arc<Services>,
    resources: ResourceUrls,
    guard: Guard,
    figures: stats::StatsCache,
}

/// Where the caller found us: addresses of ours begin with this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(pub String);

impl BaseUrl {
    /// Where the caller reads what a session keeps.
    fn artifacts_url(&self, session: SessionId) -> String {
        format!("{}/acp-rest/sessions/{session}/artifacts", self.0)
    }
}

/// A run that is being followed.
pub struct AcpRestRunSubscription {
    /// What was read of it so far.
    pub reading: AcpRestProjection,
    /// The rest.
    pub follower: Follower,
    /// The question that was just answered: until the log says so, the run only seems to await.
    answered: Option<QuestionId>,
    session: SessionId,
    begin: RunStart,
}

/// Where a run begins, for who must read it again.
#[derive(Clone, Debug)]
struct RunStart {
    unread: AcpRestProjection,
    after: Seq,
}

impl AcpRest {
    /// This door to these sessions.
    pub fn new(services: Arc<Services>, resources: ResourceUrls, guard: Guard) -> Self {
        Self { services, resources, guard, figures: stats::StatsCache::default() }
    }
}

impl fmt::Debug for AcpRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpRest").finish_non_exhaustive()
    }
}

impl AcpRestRunSubscription {
    /// Which run.
    pub fn run(&self) -> RunId {
        self.reading.run().run_id
    }

    /// Its session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    fn is_settled(&self) -> bool {
        self.answered.is_none() && self.reading.is_settled()
    }

    /// The answer's own entry ends the pretence.
    fn note_answered(&mut self) {
        let open = self.reading.question().map(|question| question.id);
        if self.answered.is_some() && open != self.answered {
            self.answered = None;
        }
    }
}

/// A run as a stream of events, until it ends or awaits.
pub struct RunEventProjection {
    reading: AcpRestProjection,
    answered: Option<QuestionId>,
    over: bool,
    begin: RunStart,
    session: SessionId,
    store: Arc<dyn Store>,
}

impl RunEventProjection {
    /// The events of this run that were not read yet, and where they come from.
    pub fn from_subscription(watched: AcpRestRunSubscription) -> (Self, Follower) {
        let AcpRestRunSubscription { reading, follower, answered, session, begin } = watched;
        let (reading, store) = (reading.without_output(), Arc::clone(follower.store()));
        (Self { reading, answered, over: false, begin, session, store }, follower)
    }
}

impl Projection for RunEventProjection {
    fn project_entry(&mut self, entry: &gander_domain::Entry, frames: &mut SseWriter) {
        self.reading.project_entry(entry, &mut |event| frames.write_event(event));
        let open = self.reading.question().map(|question| question.id);
        if open != self.answered {
            self.answered = None;
        }
        self.over = self.answered.is_none() && self.reading.is_settled();
    }

    fn is_complete(&self) -> bool {
        self.over
    }

    fn needs_restore(&self, entry: &gander_domain::Entry) -> bool {
        self.reading.needs_restore(entry)
    }

    fn restore(&mut self, upto: Seq) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let RunStart { unread: mut reading, after: mut place } = self.begin.clone();
            while place < upto {
                let page = self.store.read(self.session, place, Limit::default(), Form::Joined).await?;
                let Some(last) = page.last() else { break };
                place = last.seq;
                page.iter().take_while(|entry| entry.seq <= upto).for_each(|entry| reading.handle_entry(entry));
            }
            self.reading = reading.without_output();
            Ok(())
        })
    }

    fn write_log_lost(&mut self, frames: &mut SseWriter) {
        let error = AcpRestError::server_error("the log can be read no further");
        frames.write_unlogged(&gander_wire::acp_rest::Event::Error { error: &error });
    }
}

fn run_origin(identity: &Caller) -> RunOrigin {
    RunOrigin { by: identity.principal.clone(), door: PROTOCOL_NAME.to_owned() }
}

/// What a client is told of a refusal inside.
fn hub_refusal(error: &HubError) -> AcpRestRefusal {
    let server = |status, error: AcpRestError| AcpRestRefusal { status, error };
    match error {
        HubError::Refused(CommandError::QueueFull(_)) => server(429, AcpRestError::server_error(error.to_string())),
        HubError::Refused(CommandError::EmptyPrompt | CommandError::BadAnswer(_) | CommandError::StateFull(_)) => {
            AcpRestRefusal::unreadable(error.to_string())
        }
        HubError::Refused(
            CommandError::RunActive(_)
            | CommandError::RunAwaiting(_)
            | CommandError::NotRunning
            | CommandError::NoSuchRun(_)
            | CommandError::NoSuchQuestion(_)
            | CommandError::NoSuchSeq(_),
        ) => AcpRestRefusal::wrong_state(error.to_string()),
        HubError::Store(StoreError::NotFound(session) | StoreError::Deleted(session)) => {
            AcpRestRefusal::not_found(format!("no such session: {session}"))
        }
        HubError::Store(StoreError::Truncated { .. }) => {
            server(409, AcpRestError::invalid("the log does not have this place").with_reason("log_truncated"))
        }
        HubError::Denied(_) => AcpRestRefusal::wrong_state(error.to_string()),
        HubError::Draining => server(503, AcpRestError::server_error(error.to_string())),
        HubError::Store(inside) => {
            tracing::error!(error = %inside, "a run could not be served");
            server(
                if inside.is_outage() { 503 } else { 500 },
                AcpRestError::server_error("the store failed, see the server's log"),
            )
        }
        HubError::Gone(_) => server(500, AcpRestError::server_error(error.to_string())),
    }
}

fn store_refusal(error: StoreError) -> AcpRestRefusal {
    hub_refusal(&HubError::Store(error))
}
