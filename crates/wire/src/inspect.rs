//! One log, entry by entry, beside what each protocol says of it: for people who look into a session.

use gander_domain::{Entry, Event, SessionCatalog, SessionView};
use serde::Serialize;
use serde_json::{Value, json};

use crate::a2a::json::a2a_stream_event_json_with_ids;
use crate::a2a::{A2aDialect, A2aProjection, DetailLevel, TaskOpening, TaskSubject, TaskUpdate};
use crate::acp;
use crate::acp_rest::AcpRestProjection;
use crate::adk::projection::HistoryProjection;
use crate::goose;

/// What each protocol's clients are told of one entry; nothing if it does not concern them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Projections {
    /// The Agent Client Protocol: updates and requests.
    pub acp: Vec<Value>,
    /// The Agent Communication Protocol: events of the run.
    pub acp_rest: Vec<Value>,
    /// Agent2Agent: updates of the task.
    pub a2a: Vec<Value>,
    /// The Agent Development Kit: events of the session.
    pub adk: Vec<Value>,
    /// goose: messages and notifications.
    pub goose: Vec<Value>,
}

/// Folds a log and projects each entry for every protocol. Feed it every entry from the first.
#[derive(Default)]
pub struct Inspection {
    view: Option<SessionView>,
    acp_rest: Option<AcpRestProjection>,
    a2a: Option<A2aProjection>,
    adk: HistoryProjection,
}

impl Inspection {
    /// What the protocols say of the next entry.
    pub fn project_entry(&mut self, catalog: &SessionCatalog, entry: &Entry) -> Projections {
        let Some(view) = &self.view else {
            self.view = SessionView::from_created(entry);
            return Projections { adk: inspected_values(&self.adk.project_entry(entry)), ..Projections::default() };
        };
        if let (Event::RunQueued { .. } | Event::RunStarted { .. }, Some(run)) = (&entry.event, entry.run)
            && self.a2a.as_ref().is_none_or(|known| known.subject().task != run)
        {
            let subject = TaskSubject { task: run, context: view.session.to_string(), artifacts_url: None };
            self.a2a = Some(A2aProjection::new(subject, DetailLevel::Plain, TaskOpening::AtOnce));
            self.acp_rest = Some(AcpRestProjection::new(view.session, &view.settings.agent, run));
        }
        let projections = Projections {
            acp: acp::inspect::inspected_acp_messages(view, catalog, entry),
            acp_rest: self
                .acp_rest
                .as_mut()
                .map(|projection| inspected_acp_rest_events(projection, entry))
                .unwrap_or_default(),
            a2a: self.a2a.as_mut().map(|projection| inspected_a2a_updates(projection, entry)).unwrap_or_default(),
            adk: inspected_values(&self.adk.project_entry(entry)),
            goose: goose::projection::project_goose_entry(view, entry),
        };
        if let Some(view) = &mut self.view {
            view.apply(entry);
        }
        projections
    }
}

fn inspected_acp_rest_events(projection: &mut AcpRestProjection, entry: &Entry) -> Vec<Value> {
    let mut events = Vec::new();
    projection.project_entry(entry, &mut |event| events.push(json!(event)));
    events
}

fn inspected_a2a_updates(projection: &mut A2aProjection, entry: &Entry) -> Vec<Value> {
    let updates = projection.project_entry(entry);
    let told = updates.iter().filter(|update| !matches!(update, TaskUpdate::Said(_)));
    told.map(|update| a2a_stream_event_json_with_ids(A2aDialect::V1, projection.subject(), update)).collect()
}

fn inspected_values<T: Serialize>(items: &[T]) -> Vec<Value> {
    items.iter().map(|item| json!(item)).collect()
}
