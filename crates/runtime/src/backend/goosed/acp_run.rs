//! One run over ACP: a `goose serve`, which has no REST any more.

use std::sync::Arc;

use async_trait::async_trait;
use gander_client::schema::{
    ContentBlock, Implementation, PromptResponse, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionNotification, SessionUpdate,
};
use gander_client::{CallError, Client, Endpoint, Error, Handler, Link, LinkError};
use gander_domain::{Order, Outcome, Part, QuestionId, Report, Role, SessionView};
use gander_store::clock::SystemIds;
use gander_wire::acp::client::AgentTurn;
use gander_wire::acp::content::content_block;
use gander_wire::goose::client::GoosedError;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{Goosed, Remote, rest_run};
use crate::backend::BackendRun;
use crate::backend::handler::wait_for_cancel;

/// Updates that wait to be reported. Beyond them goose has to wait.
const EVENT_CAPACITY: usize = 64;

/// The code of a session that goose does not know.
const UNKNOWN_SESSION: i64 = -32002;

/// What the other end says while a turn is under way.
enum AcpEvent {
    Updated(Box<SessionUpdate>),
    Asked(Box<RequestPermissionRequest>, oneshot::Sender<RequestPermissionOutcome>),
}

struct AcpHandler(mpsc::Sender<AcpEvent>);

#[async_trait]
impl Handler for AcpHandler {
    async fn updated(&self, update: SessionNotification) {
        // Nobody hears it only if the run is over.
        self.0.send(AcpEvent::Updated(Box::new(update.update))).await.ok();
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        let (answer, answered) = oneshot::channel();
        self.0.send(AcpEvent::Asked(Box::new(request), answer)).await.ok();
        Ok(RequestPermissionResponse::new(answered.await.unwrap_or(RequestPermissionOutcome::Cancelled)))
    }
}

/// A turn under way.
struct AcpRun {
    turn: AgentTurn,
    open_permissions: Vec<(QuestionId, oneshot::Sender<RequestPermissionOutcome>)>,
    reports: mpsc::Sender<Report>,
}

/// Drives a run from its prompt to its end.
pub(super) async fn drive_run(goosed: &Goosed, backend_run: BackendRun) {
    let BackendRun { view, context, mut orders, reports, stop, .. } = backend_run;
    let (events, events_in) = mpsc::channel(EVENT_CAPACITY);
    let opened = tokio::select! {
    biased;
    () = stop.cancelled() => return,
    () = wait_for_cancel(&mut orders) => Err(Outcome::Cancelled),
    opened = open_session(goosed, &view, events) => {
    opened.map_err(|trouble| Outcome::failed(trouble.reason_code(), trouble.to_string()))
    }
    };
    let (client, theirs, events_in) = match opened {
        Ok((client, theirs)) => (client, theirs, events_in),
        Err(outcome) => {
            // Nobody hears it only if the session is gone.
            drop(reports.send(Report::Ended(outcome)).await);
            return;
        }
    };
    let own = &context.messages[context.run_start_index()..];
    let prompt = own.iter().find(|message| message.role == Role::User);
    let blocks: Vec<ContentBlock> =
        prompt.map_or(&[][..], |message| &message.parts).iter().filter_map(prompt_block).collect();
    let model = view.settings.model.clone().unwrap_or_else(|| goosed.name.clone());
    let run = AcpRun { turn: AgentTurn::new(model), open_permissions: Vec::new(), reports };
    tokio::select! {
    biased;
    () = stop.cancelled() => {}
    () = run.drive_prompt(&client, &theirs, blocks, events_in, orders) => {}
    }
    client.close_connection();
}

/// The session over there begins with ours.
pub(super) async fn start_session(goosed: &Goosed, view: &SessionView) -> Result<String, GoosedError> {
    let (events, events_in) = mpsc::channel(EVENT_CAPACITY);
    let deaf = tokio::spawn(drain_events(events_in));
    let client = connect(&goosed.remote, events).await?;
    let made = create_session(goosed, view, &client).await;
    client.close_connection();
    deaf.abort();
    made
}

/// The session over there is closed; goose keeps what was said in it.
pub(super) async fn close_session(goosed: &Goosed, theirs: &str) -> Result<(), GoosedError> {
    call_method(goosed, "session/close", json!({ "sessionId": theirs })).await.map(drop)
}

/// GoosedHttp one method on a connection of its own.
pub(super) async fn call_method(goosed: &Goosed, method: &str, params: Value) -> Result<Value, GoosedError> {
    let (events, events_in) = mpsc::channel(EVENT_CAPACITY);
    let deaf = tokio::spawn(drain_events(events_in));
    let client = connect(&goosed.remote, events).await?;
    let answer = client.request(method, &params).await.map_err(call_trouble);
    client.close_connection();
    deaf.abort();
    answer
}

async fn drain_events(mut events_in: mpsc::Receiver<AcpEvent>) {
    while events_in.recv().await.is_some() {}
}

/// Parts that the protocol has no block for are what a function gave: told as text.
fn prompt_block(part: &Part) -> Option<ContentBlock> {
    content_block(part).or_else(|| match part {
        Part::Unknown(value) => Some(value.to_string().into()),
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. } => None,
    })
}

/// A connection whose session is ready for a prompt. What it tells of its history is known.
async fn open_session(
    goosed: &Goosed,
    view: &SessionView,
    events: mpsc::Sender<AcpEvent>,
) -> Result<(Client, String), GoosedError> {
    let gate = HistoryGate::default();
    let client =
        connect_with(&goosed.remote, Arc::new(GatedHandler { events: AcpHandler(events), gate: gate.clone() })).await?;
    let theirs = match goosed.session_mapping(view).find_remote_id().await? {
        None => create_session(goosed, view, &client).await?,
        Some(theirs) => {
            match client.load_session(theirs.clone(), session_folder(goosed, view)).await.map_err(call_trouble) {
                Ok(_) => theirs,
                Err(trouble) => return Err(goosed.forget_if_lost(view, trouble).await),
            }
        }
    };
    set_model(&client, &theirs, view).await?;
    gate.open();
    Ok((client, theirs))
}

/// Tells goose which model answers, where the session or the prompt wants one.
async fn set_model(client: &Client, theirs: &str, view: &SessionView) -> Result<(), GoosedError> {
    let wanted = rest_run::requested_provider(view).model;
    let Some(wanted) = wanted else { return Ok(()) };
    let (provider, model) = match wanted.split_once('/') {
        Some((provider, model)) => (Some(provider), model),
        None => (None, wanted.as_str()),
    };
    for (option, value) in provider.map(|provider| ("provider", provider)).into_iter().chain([("model", model)]) {
        let params = json!({ "sessionId": theirs, "configId": option, "value": value });
        client.request::<Value>("session/set_config_option", &params).await.map_err(call_trouble)?;
    }
    Ok(())
}

async fn create_session(goosed: &Goosed, view: &SessionView, client: &Client) -> Result<String, GoosedError> {
    let made = client.new_session(session_folder(goosed, view)).await.map_err(call_trouble)?;
    let theirs = made.session_id.to_string();
    goosed.session_mapping(view).set_remote_id(&theirs).await?;
    if let Some(mode) = &goosed.remote.mode {
        let params = json!({ "sessionId": theirs, "modeId": mode });
        client.request::<Value>("session/set_mode", &params).await.map_err(call_trouble)?;
    }
    Ok(theirs)
}

fn session_folder(goosed: &Goosed, view: &SessionView) -> String {
    goosed.remote.folder.clone().unwrap_or_else(|| view.workspace.clone())
}

async fn connect(remote: &Remote, events: mpsc::Sender<AcpEvent>) -> Result<Client, GoosedError> {
    connect_with(remote, Arc::new(AcpHandler(events))).await
}

async fn connect_with(remote: &Remote, handler: Arc<dyn Handler>) -> Result<Client, GoosedError> {
    let base = remote.url.trim_end_matches('/');
    let url = if base.ends_with("/acp") { base.to_owned() } else { format!("{base}/acp") };
    let mut endpoint = Endpoint::new(url);
    if let Some(key) = &remote.key {
        let value = HeaderValue::from_str(key.expose_secret());
        let mut value = value.map_err(|_| GoosedError::Unauthorized)?;
        value.set_sensitive(true);
        endpoint = endpoint.with_header(HeaderName::from_static("x-secret-key"), value);
    }
    if let Some(pin) = remote.pin {
        endpoint = endpoint.with_pin(pin);
    }
    let link = Link::connect_http(&endpoint).map_err(|error| link_trouble(&error))?;
    Client::connect(link, Implementation::new("gander", env!("CARGO_PKG_VERSION")), handler).await.map_err(call_trouble)
}

/// Says nothing of a session's history, which is told while the session is opened.
struct GatedHandler {
    events: AcpHandler,
    gate: HistoryGate,
}

#[derive(Clone, Default)]
struct HistoryGate(Arc<std::sync::atomic::AtomicBool>);

impl HistoryGate {
    fn open(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Release);
    }

    fn is_open(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Acquire)
    }
}

#[async_trait]
impl Handler for GatedHandler {
    async fn updated(&self, update: SessionNotification) {
        if self.gate.is_open() {
            self.events.updated(update).await;
        }
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        self.events.request_permission(request).await
    }
}

impl AcpRun {
    /// Hears goose out to the end of its turn.
    async fn drive_prompt(
        mut self,
        client: &Client,
        theirs: &str,
        blocks: Vec<ContentBlock>,
        mut events_in: mpsc::Receiver<AcpEvent>,
        mut orders: mpsc::Receiver<Order>,
    ) {
        let mut prompt = std::pin::pin!(client.prompt(theirs.to_owned(), blocks));
        loop {
            let going = tokio::select! {
            biased;
            order = orders.recv() => self.handle_order(order, client, theirs).await,
            event = events_in.recv() => match event {
            Some(event) => self.handle_event(event).await,
            None => false,
            },
            ended = &mut prompt => {
            while let Ok(event) = events_in.try_recv() {
            self.handle_event(event).await;
            }
            return self.handle_end(ended).await;
            }
            };
            if !going {
                return;
            }
        }
    }

    async fn handle_event(&mut self, event: AcpEvent) -> bool {
        let reports = match event {
            AcpEvent::Updated(update) => self.turn.handle_update(*update, &mut SystemIds),
            AcpEvent::Asked(request, answer) => {
                let (question, reports) = self.turn.handle_permission(&request, &mut SystemIds);
                self.open_permissions.push((question, answer));
                reports
            }
        };
        self.send_reports(reports).await
    }

    async fn handle_order(&mut self, order: Option<Order>, client: &Client, theirs: &str) -> bool {
        match order {
            Some(Order::Cancel) => {
                client.cancel(theirs.to_owned()).await.ok();
                self.send_reports(vec![Report::Ended(Outcome::Cancelled)]).await;
                false
            }
            Some(Order::Answered { question, answer }) => {
                let (outcome, ready) = self.turn.answer_question(question, &answer.reply);
                if let Some(place) = self.open_permissions.iter().position(|(asked, _)| *asked == question) {
                    let going = self.send_reports(ready.into_iter().collect()).await;
                    // An agent that is gone says so by the end of its prompt.
                    self.open_permissions.remove(place).1.send(outcome).ok();
                    return going;
                }
                true
            }
            Some(
                Order::Begin { .. }
                | Order::Resume { .. }
                | Order::RunTool { .. }
                | Order::Steer { .. }
                | Order::Configured { .. },
            ) => true,
            None => false,
        }
    }

    async fn handle_end(mut self, ended: Result<PromptResponse, CallError>) {
        let reports = match ended {
            Ok(response) => self.turn.handle_end(&response),
            Err(error) => {
                let trouble = call_trouble(error);
                self.turn.handle_failure(trouble.reason_code(), &trouble.to_string())
            }
        };
        self.send_reports(reports).await;
    }

    async fn send_reports(&self, reports: Vec<Report>) -> bool {
        for report in reports {
            if self.reports.send(report).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// Goose puts what went wrong into `data`.
fn call_trouble(error: CallError) -> GoosedError {
    match &error {
        CallError::Refused(error) if error.code == UNKNOWN_SESSION => GoosedError::NotFound,
        CallError::Refused(error) => {
            let said = error.data.as_ref().and_then(|data| serde_json::to_value(data).ok());
            let text = said.as_ref().and_then(Value::as_str).map(str::to_owned);
            GoosedError::Said(text.unwrap_or_else(|| error.message.clone()))
        }
        CallError::Gone(link) => link_trouble(link),
        CallError::Late { .. } | CallError::Unreadable { .. } | CallError::Version(_) => {
            GoosedError::Unavailable(error.to_string())
        }
    }
}

fn link_trouble(error: &LinkError) -> GoosedError {
    match error {
        LinkError::Refused { status, message } => GoosedError::from_status(*status, message),
        LinkError::Interrupted(why) => GoosedError::Cut(why.clone()),
        LinkError::Disposed | LinkError::Closed | LinkError::Io(_) | LinkError::TooLong | LinkError::Unreachable(_) => {
            GoosedError::Unavailable(error.to_string())
        }
    }
}
