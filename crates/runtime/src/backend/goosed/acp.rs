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

use super::{Goosed, Remote, rest};
use crate::backend::Stay;
use crate::backend::handler::cancelled;

/// Updates that wait to be reported. Beyond them goose has to wait.
const WAITING: usize = 64;

/// The code of a session that goose does not know.
const UNKNOWN_SESSION: i64 = -32002;

/// What the other end says while a turn is under way.
enum Heard {
    Updated(Box<SessionUpdate>),
    Asked(Box<RequestPermissionRequest>, oneshot::Sender<RequestPermissionOutcome>),
}

struct Ears(mpsc::Sender<Heard>);

#[async_trait]
impl Handler for Ears {
    async fn updated(&self, update: SessionNotification) {
        // Nobody hears it only if the run is over.
        self.0.send(Heard::Updated(Box::new(update.update))).await.ok();
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Heard::Asked(Box::new(request), answer)).await.ok();
        Ok(RequestPermissionResponse::new(answered.await.unwrap_or(RequestPermissionOutcome::Cancelled)))
    }
}

/// A turn under way.
struct Run {
    turn: AgentTurn,
    asked: Vec<(QuestionId, oneshot::Sender<RequestPermissionOutcome>)>,
    reports: mpsc::Sender<Report>,
}

/// Drives a run from its prompt to its end.
pub(super) async fn drive(goosed: &Goosed, stay: Stay) {
    let Stay { view, context, mut orders, reports, stop, .. } = stay;
    let (ears, heard) = mpsc::channel(WAITING);
    let opened = tokio::select! {
        biased;
        () = stop.cancelled() => return,
        () = cancelled(&mut orders) => Err(Outcome::Cancelled),
        opened = open(goosed, &view, ears) => {
            opened.map_err(|trouble| Outcome::failed(trouble.reason_code(), trouble.to_string()))
        }
    };
    let (client, theirs, heard) = match opened {
        Ok((client, theirs)) => (client, theirs, heard),
        Err(outcome) => {
            // Nobody hears it only if the session is gone.
            drop(reports.send(Report::Ended(outcome)).await);
            return;
        }
    };
    let own = &context.messages[context.run_start_index()..];
    let prompt = own.iter().find(|message| message.role == Role::User);
    let blocks: Vec<ContentBlock> = prompt.map_or(&[][..], |message| &message.parts).iter().filter_map(said).collect();
    let model = view.settings.model.clone().unwrap_or_else(|| goosed.name.clone());
    let run = Run { turn: AgentTurn::new(model), asked: Vec::new(), reports };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = run.listen(&client, &theirs, blocks, heard, orders) => {}
    }
    client.dispose();
}

/// The session over there begins with ours.
pub(super) async fn start(goosed: &Goosed, view: &SessionView) -> Result<String, GoosedError> {
    let (ears, heard) = mpsc::channel(WAITING);
    let deaf = tokio::spawn(ignore(heard));
    let client = connect(&goosed.remote, ears).await?;
    let made = create(goosed, view, &client).await;
    client.dispose();
    deaf.abort();
    made
}

/// The session over there is closed; goose keeps what was said in it.
pub(super) async fn close(goosed: &Goosed, theirs: &str) -> Result<(), GoosedError> {
    call(goosed, "session/close", json!({ "sessionId": theirs })).await.map(drop)
}

/// Calls one method on a connection of its own.
pub(super) async fn call(goosed: &Goosed, method: &str, params: Value) -> Result<Value, GoosedError> {
    let (ears, heard) = mpsc::channel(WAITING);
    let deaf = tokio::spawn(ignore(heard));
    let client = connect(&goosed.remote, ears).await?;
    let answer = client.request(method, &params).await.map_err(trouble);
    client.dispose();
    deaf.abort();
    answer
}

async fn ignore(mut heard: mpsc::Receiver<Heard>) {
    while heard.recv().await.is_some() {}
}

/// Parts that the protocol has no block for are what a function gave: told as text.
fn said(part: &Part) -> Option<ContentBlock> {
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
async fn open(goosed: &Goosed, view: &SessionView, ears: mpsc::Sender<Heard>) -> Result<(Client, String), GoosedError> {
    let gate = HistoryGate::default();
    let client = connect_with(&goosed.remote, Arc::new(Gated { ears: Ears(ears), gate: gate.clone() })).await?;
    let theirs = match goosed.mapping(view).find().await? {
        None => create(goosed, view, &client).await?,
        Some(theirs) => match client.load_session(theirs.clone(), folder(goosed, view)).await.map_err(trouble) {
            Ok(_) => theirs,
            Err(trouble) => return Err(goosed.heed(view, trouble).await),
        },
    };
    choose(&client, &theirs, view).await?;
    gate.open();
    Ok((client, theirs))
}

/// Tells goose which model answers, where the session or the prompt wants one.
async fn choose(client: &Client, theirs: &str, view: &SessionView) -> Result<(), GoosedError> {
    let wanted = rest::provider(view).model;
    let Some(wanted) = wanted else { return Ok(()) };
    let (provider, model) = match wanted.split_once('/') {
        Some((provider, model)) => (Some(provider), model),
        None => (None, wanted.as_str()),
    };
    for (option, value) in provider.map(|provider| ("provider", provider)).into_iter().chain([("model", model)]) {
        let params = json!({ "sessionId": theirs, "configId": option, "value": value });
        client.request::<Value>("session/set_config_option", &params).await.map_err(trouble)?;
    }
    Ok(())
}

async fn create(goosed: &Goosed, view: &SessionView, client: &Client) -> Result<String, GoosedError> {
    let made = client.new_session(folder(goosed, view)).await.map_err(trouble)?;
    let theirs = made.session_id.to_string();
    goosed.mapping(view).keep(&theirs).await?;
    if let Some(mode) = &goosed.remote.mode {
        let params = json!({ "sessionId": theirs, "modeId": mode });
        client.request::<Value>("session/set_mode", &params).await.map_err(trouble)?;
    }
    Ok(theirs)
}

fn folder(goosed: &Goosed, view: &SessionView) -> String {
    goosed.remote.folder.clone().unwrap_or_else(|| view.workspace.clone())
}

async fn connect(remote: &Remote, ears: mpsc::Sender<Heard>) -> Result<Client, GoosedError> {
    connect_with(remote, Arc::new(Ears(ears))).await
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
    let link = Link::http(&endpoint).map_err(|error| link_trouble(&error))?;
    Client::connect(link, Implementation::new("gander", env!("CARGO_PKG_VERSION")), handler).await.map_err(trouble)
}

/// Says nothing of a session's history, which is told while the session is opened.
struct Gated {
    ears: Ears,
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
impl Handler for Gated {
    async fn updated(&self, update: SessionNotification) {
        if self.gate.is_open() {
            self.ears.updated(update).await;
        }
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        self.ears.request_permission(request).await
    }
}

impl Run {
    /// Hears goose out to the end of its turn.
    async fn listen(
        mut self,
        client: &Client,
        theirs: &str,
        blocks: Vec<ContentBlock>,
        mut heard: mpsc::Receiver<Heard>,
        mut orders: mpsc::Receiver<Order>,
    ) {
        let mut prompt = std::pin::pin!(client.prompt(theirs.to_owned(), blocks));
        loop {
            let going = tokio::select! {
                biased;
                order = orders.recv() => self.order(order, client, theirs).await,
                news = heard.recv() => match news {
                    Some(news) => self.hear(news).await,
                    None => false,
                },
                ended = &mut prompt => {
                    while let Ok(news) = heard.try_recv() {
                        self.hear(news).await;
                    }
                    return self.end(ended).await;
                }
            };
            if !going {
                return;
            }
        }
    }

    async fn hear(&mut self, news: Heard) -> bool {
        let reports = match news {
            Heard::Updated(update) => self.turn.handle_update(*update, &mut SystemIds),
            Heard::Asked(request, answer) => {
                let (question, reports) = self.turn.handle_permission(&request, &mut SystemIds);
                self.asked.push((question, answer));
                reports
            }
        };
        self.report(reports).await
    }

    async fn order(&mut self, order: Option<Order>, client: &Client, theirs: &str) -> bool {
        match order {
            Some(Order::Cancel) => {
                client.cancel(theirs.to_owned()).await.ok();
                self.report(vec![Report::Ended(Outcome::Cancelled)]).await;
                false
            }
            Some(Order::Answered { question, answer }) => {
                let (outcome, ready) = self.turn.answer_question(question, &answer.reply);
                if let Some(place) = self.asked.iter().position(|(asked, _)| *asked == question) {
                    let going = self.report(ready.into_iter().collect()).await;
                    // An agent that is gone says so by the end of its prompt.
                    self.asked.remove(place).1.send(outcome).ok();
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

    async fn end(mut self, ended: Result<PromptResponse, CallError>) {
        let reports = match ended {
            Ok(response) => self.turn.handle_end(&response),
            Err(error) => {
                let trouble = trouble(error);
                self.turn.handle_failure(trouble.reason_code(), &trouble.to_string())
            }
        };
        self.report(reports).await;
    }

    async fn report(&self, reports: Vec<Report>) -> bool {
        for report in reports {
            if self.reports.send(report).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// Goose puts what went wrong into `data`.
fn trouble(error: CallError) -> GoosedError {
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
