//! One run over ACP: a `goose serve`, which has no REST any more.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gander_client::schema::{
    ContentBlock, Implementation, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SessionNotification,
};
use gander_client::{CallError, Client, Endpoint, Error, Handler, Link, LinkError};
use gander_domain::{Context, Outcome, Report, Role, SessionView};
use gander_wire::goose::client::GoosedError;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{Goosed, GoosedRemote, goosed_store_trouble, rest_run};
use crate::backend::BackendRun;
use crate::backend::acp::agent_turn::ToldUpdate;
use crate::backend::acp::prompt_run::{AgentEvent, EVENT_CAPACITY, PromptEnd, PromptRun, prompt_run_blocks};
use crate::backend::hand_over::HandOver;
use crate::backend::orders::wait_for_cancel_order;

/// The code of a session that goose does not know.
const UNKNOWN_SESSION: i64 = -32002;

struct AcpHandler(mpsc::Sender<AgentEvent>);

#[async_trait]
impl Handler for AcpHandler {
    async fn updated(&self, update: SessionNotification) {
        // Nobody hears it only if the run is over.
        self.0.send(AgentEvent::Updated(Box::new(update.update.into()))).await.ok();
    }

    fn wants_whole_updates(&self) -> bool {
        true
    }

    async fn updated_whole(&self, params: Value, known: Option<SessionNotification>) {
        let told = ToldUpdate { known: known.map(|known| known.update), whole: Some(params) };
        self.0.send(AgentEvent::Updated(Box::new(told))).await.ok();
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        let (answer, answered) = oneshot::channel();
        self.0.send(AgentEvent::Permission(Box::new(request), answer)).await.ok();
        Ok(answered.await.unwrap_or_else(|_| RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled)))
    }
}

/// Drives a run from its prompt to its end.
pub(super) async fn drive_acp_run(goosed: &Goosed, backend_run: BackendRun) {
    let BackendRun { view, context, mut orders, reports, stop, .. } = backend_run;
    let (events, mut events_in) = mpsc::channel(EVENT_CAPACITY);
    let opened = tokio::select! {
        biased;
        () = stop.cancelled() => return,
        () = wait_for_cancel_order(&mut orders) => Err(Outcome::Cancelled),
        opened = open_acp_run_for_prompt(goosed, &view, &context, events) => {
            opened.map_err(|trouble| Outcome::failed(trouble.reason_code(), trouble.to_string()))
        }
    };
    let (client, theirs, hand_over) = match opened {
        Ok(opened) => opened,
        // Nobody hears it only if the session is gone.
        Err(outcome) => return drop(reports.send(Report::Ended(outcome)).await),
    };
    let own = &context.messages[context.run_start_index()..];
    let prompt = own.iter().find(|message| message.role == Role::User);
    let mut blocks: Vec<ContentBlock> = prompt.map(|message| prompt_run_blocks(message)).unwrap_or_default();
    if let Some(transcript) = hand_over.transcript() {
        blocks.insert(0, transcript.into());
    }
    goosed.session_mapping(&view).note_last_prompt(&context).await;
    if let Some(notice) = hand_over.notice(&goosed.name) {
        drop(reports.send(Report::Noticed(notice)).await);
    }
    let model = view.settings.model.clone().unwrap_or_else(|| goosed.name.clone());
    let mut run = PromptRun::new(model, reports, Duration::ZERO);
    let end = tokio::select! {
        biased;
        () = stop.cancelled() => PromptEnd::Abandoned,
        end = run.drive_prompt(&client, &theirs, blocks, &mut events_in, &mut orders) => end,
    };
    if let PromptEnd::Failed(error) = end {
        let trouble = acp_run_call_trouble(error);
        run.report_failure(trouble.reason_code(), &trouble.to_string()).await;
    }
    client.close_connection();
}

/// The session behind ours with a connection to it, and what goose is to be told first.
async fn open_acp_run_for_prompt<'a>(
    goosed: &Goosed,
    view: &SessionView,
    context: &'a Context,
    events: mpsc::Sender<AgentEvent>,
) -> Result<(Client, String, HandOver<'a>), GoosedError> {
    let hand_over = goosed.hand_over(view, context).await?;
    let (client, theirs) = open_acp_run_session(goosed, view, events).await?;
    Ok((client, theirs, hand_over))
}

/// The session over there begins with ours.
pub(super) async fn start_acp_run_session(goosed: &Goosed, view: &SessionView) -> Result<String, GoosedError> {
    let (events, events_in) = mpsc::channel(EVENT_CAPACITY);
    let deaf = tokio::spawn(drain_acp_run_events(events_in));
    let client = connect_acp_run(&goosed.remote, events).await?;
    let made = create_acp_run_session(goosed, view, &client).await;
    client.close_connection();
    deaf.abort();
    made
}

/// The session over there is closed; goose keeps what was said in it.
pub(super) async fn close_acp_run_session(goosed: &Goosed, theirs: &str) -> Result<(), GoosedError> {
    call_acp_run_method(goosed, "session/close", json!({ "sessionId": theirs })).await.map(drop)
}

/// Calls one method on a connection of its own.
pub(super) async fn call_acp_run_method(goosed: &Goosed, method: &str, params: Value) -> Result<Value, GoosedError> {
    let (events, events_in) = mpsc::channel(EVENT_CAPACITY);
    let deaf = tokio::spawn(drain_acp_run_events(events_in));
    let client = connect_acp_run(&goosed.remote, events).await?;
    let answer = client.request(method, &params).await.map_err(acp_run_call_trouble);
    client.close_connection();
    deaf.abort();
    answer
}

async fn drain_acp_run_events(mut events_in: mpsc::Receiver<AgentEvent>) {
    while events_in.recv().await.is_some() {}
}

/// A connection whose session is ready for a prompt. What it tells of its history is known.
async fn open_acp_run_session(
    goosed: &Goosed,
    view: &SessionView,
    events: mpsc::Sender<AgentEvent>,
) -> Result<(Client, String), GoosedError> {
    let gate = HistoryGate::default();
    let client =
        connect_acp_run_with(&goosed.remote, Arc::new(GatedHandler { events: AcpHandler(events), gate: gate.clone() }))
            .await?;
    let theirs = match goosed.session_mapping(view).find_remote_id().await.map_err(goosed_store_trouble)? {
        None => create_acp_run_session(goosed, view, &client).await?,
        Some(theirs) => {
            match client
                .load_session(theirs.clone(), acp_run_session_folder(goosed, view))
                .await
                .map_err(acp_run_call_trouble)
            {
                Ok(_) => theirs,
                Err(trouble) => return Err(goosed.forget_if_lost(view, trouble).await),
            }
        }
    };
    set_acp_run_model(&client, &theirs, view).await?;
    gate.open();
    Ok((client, theirs))
}

/// Tells goose which model answers, where the session or the prompt wants one.
async fn set_acp_run_model(client: &Client, theirs: &str, view: &SessionView) -> Result<(), GoosedError> {
    let wanted = rest_run::rest_run_provider(view).model;
    let Some(wanted) = wanted else { return Ok(()) };
    let (provider, model) = match wanted.split_once('/') {
        Some((provider, model)) => (Some(provider), model),
        None => (None, wanted.as_str()),
    };
    for (option, value) in provider.map(|provider| ("provider", provider)).into_iter().chain([("model", model)]) {
        let params = json!({ "sessionId": theirs, "configId": option, "value": value });
        client.request::<Value>("session/set_config_option", &params).await.map_err(acp_run_call_trouble)?;
    }
    Ok(())
}

async fn create_acp_run_session(goosed: &Goosed, view: &SessionView, client: &Client) -> Result<String, GoosedError> {
    let made = client.new_session(acp_run_session_folder(goosed, view)).await.map_err(acp_run_call_trouble)?;
    let theirs = made.session_id.to_string();
    goosed.session_mapping(view).set_remote_id(&theirs).await.map_err(goosed_store_trouble)?;
    if let Some(mode) = &goosed.remote.mode {
        let params = json!({ "sessionId": theirs, "modeId": mode });
        client.request::<Value>("session/set_mode", &params).await.map_err(acp_run_call_trouble)?;
    }
    Ok(theirs)
}

fn acp_run_session_folder(goosed: &Goosed, view: &SessionView) -> String {
    goosed.remote.folder.clone().unwrap_or_else(|| view.workspace.clone())
}

async fn connect_acp_run(remote: &GoosedRemote, events: mpsc::Sender<AgentEvent>) -> Result<Client, GoosedError> {
    connect_acp_run_with(remote, Arc::new(AcpHandler(events))).await
}

async fn connect_acp_run_with(remote: &GoosedRemote, handler: Arc<dyn Handler>) -> Result<Client, GoosedError> {
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
    let link = Link::connect_http(&endpoint).map_err(|error| acp_run_link_trouble(&error))?;
    Client::connect(link, Implementation::new("gander", env!("CARGO_PKG_VERSION")), handler)
        .await
        .map_err(acp_run_call_trouble)
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

    fn wants_whole_updates(&self) -> bool {
        true
    }

    async fn updated_whole(&self, params: Value, known: Option<SessionNotification>) {
        if self.gate.is_open() {
            self.events.updated_whole(params, known).await;
        }
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        self.events.request_permission(request).await
    }
}

/// Goose puts what went wrong into `data`.
fn acp_run_call_trouble(error: CallError) -> GoosedError {
    match &error {
        CallError::Refused(error) if error.code == UNKNOWN_SESSION => GoosedError::NotFound,
        CallError::Refused(error) => {
            let said = error.data.as_ref().and_then(|data| serde_json::to_value(data).ok());
            let text = said.as_ref().and_then(Value::as_str).map(str::to_owned);
            GoosedError::Said(text.unwrap_or_else(|| error.message.clone()))
        }
        CallError::Gone(link) => acp_run_link_trouble(link),
        CallError::Late { .. } | CallError::Unreadable { .. } | CallError::Version(_) => {
            GoosedError::Unavailable(error.to_string())
        }
    }
}

fn acp_run_link_trouble(error: &LinkError) -> GoosedError {
    match error {
        LinkError::Refused { status, message } => GoosedError::from_status(*status, message),
        LinkError::Interrupted(why) => GoosedError::Cut(why.clone()),
        LinkError::Disposed | LinkError::Closed | LinkError::Io(_) | LinkError::TooLong | LinkError::Unreachable(_) => {
            GoosedError::Unavailable(error.to_string())
        }
    }
}
