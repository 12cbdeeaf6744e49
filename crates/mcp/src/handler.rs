//! What a server may ask of us: events, questions to people, a model's answer, the session's folders.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gander_domain::{QuestionKind, Reply, Severity};
use gander_tools::Redactor;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    InputRequest, InputRequests, ListRootsResult, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, Root, RootsCapabilities, SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use super::sampling;
use super::session_handle::SessionHandle;
use super::session_handles::SessionHandles;

/// Complaints of one connection that people are shown.
const MAX_NOTICES: u32 = 20;

/// Our end of one connection.
#[derive(Clone)]
pub(super) struct McpHandler {
    /// The server's name.
    pub name: String,
    pub sessions: SessionHandles,
    /// Several sessions use the server.
    pub shared: bool,
    pub calls: Arc<Calls>,
    /// The session's folders, as addresses.
    pub roots: Arc<[String]>,
    pub redactor: Redactor,
    /// Rung when the server's lists changed.
    pub changed: Arc<Notify>,
    /// The connection is over: nobody waits for answers any more.
    pub gone: CancellationToken,
    pub notices: Arc<AtomicU32>,
}

impl McpHandler {
    /// Answers to what a server wants to know before it goes on with a call of this session.
    pub(super) async fn answer_input_requests(
        &self,
        session: &SessionHandle,
        requests: InputRequests,
    ) -> BTreeMap<String, Value> {
        let mut answers = BTreeMap::new();
        for (key, request) in requests {
            let answer = match request {
                InputRequest::Elicitation(request) => {
                    json!(self.answer_elicitation(Some(session), request.params).await)
                }
                InputRequest::CreateMessage(request) => match self.answer_sampling(Some(session), request.params).await
                {
                    Ok(result) => json!(result),
                    Err(error) => json!({ "error": error }),
                },
                InputRequest::ListRoots(_) => json!(self.list_session_roots()),
                _ => Value::Null,
            };
            answers.insert(key, answer);
        }
        answers
    }

    /// Whom a question is put to that names no call: the session whose calls are under way. A server that several
    /// use while none or more than one of them calls it gets no answer, for it could be the wrong one's.
    fn session_to_ask(&self) -> Option<SessionHandle> {
        if self.shared { self.calls.sole_calling_session() } else { self.sessions.first_session() }
    }

    async fn answer_elicitation(&self, session: Option<&SessionHandle>, params: ElicitRequestParams) -> ElicitResult {
        let Some(session) = session else { return ElicitResult::new(ElicitationAction::Cancel) };
        let (message, ask) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                (message, QuestionKind::Form { schema: json!(requested_schema) })
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } if is_web_url(&url) => {
                (message, QuestionKind::Visit { url })
            }
            ElicitRequestParams::UrlElicitationParams { .. } | _ => {
                return ElicitResult::new(ElicitationAction::Decline);
            }
        };
        let _thinking = self.calls.open_question();
        match session.ask_person(&format!("{} asks: {message}", self.name), ask, self.calls.question_origin()).await {
            Reply::Filled { content } => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            Reply::Rejected { .. } | Reply::Declined => ElicitResult::new(ElicitationAction::Decline),
            Reply::Chosen { .. } | Reply::Cancelled | Reply::Interrupted | Reply::Superseded => {
                ElicitResult::new(ElicitationAction::Cancel)
            }
        }
    }

    async fn answer_sampling(
        &self,
        session: Option<&SessionHandle>,
        params: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        let nobody = || ErrorData::invalid_request("it is not clear which session's model is wanted", None);
        let _thinking = self.calls.open_question();
        sampling::sample_with_session_model(
            &self.name,
            session.ok_or_else(nobody)?,
            params,
            self.calls.question_origin(),
        )
        .await
    }

    fn list_session_roots(&self) -> ListRootsResult {
        ListRootsResult::new(self.roots.iter().map(Root::new).collect())
    }

    fn show_log_message(&self, severity: Severity, params: &LoggingMessageNotificationParam) {
        if self.notices.fetch_add(1, Ordering::SeqCst) >= MAX_NOTICES {
            return;
        }
        let text = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
        let text = self.redactor.redact_text(&text);
        self.sessions.notify_all(severity, &format!("{} says: {text}", self.name));
    }

    /// What comes first: the answer, or the end of whoever asked.
    async fn unless_gone<T>(&self, context: &RequestContext<RoleClient>, answer: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.gone.cancelled() => None,
            () = context.ct.cancelled() => None,
            answer = answer => Some(answer),
        }
    }
}

impl ClientHandler for McpHandler {
    fn get_info(&self) -> ClientConfig {
        let mut elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::new());
        elicitation.url = Some(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        capabilities.sampling = Some(SamplingCapability::default());
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("gander", env!("CARGO_PKG_VERSION")))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let session = self.session_to_ask();
        let answer = self.unless_gone(&context, self.answer_sampling(session.as_ref(), params)).await;
        answer.unwrap_or_else(|| Err(ErrorData::internal_error("nobody waits for it any more", None)))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.list_session_roots())
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let session = self.session_to_ask();
        let answer = self.unless_gone(&context, self.answer_elicitation(session.as_ref(), params)).await;
        Ok(answer.unwrap_or_else(|| ElicitResult::new(ElicitationAction::Cancel)))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.calls.show_progress(&params);
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        match params.level {
            LoggingLevel::Debug | LoggingLevel::Info | LoggingLevel::Notice => {}
            LoggingLevel::Warning => self.show_log_message(Severity::Warning, &params),
            LoggingLevel::Error | LoggingLevel::Critical | LoggingLevel::Alert | LoggingLevel::Emergency => {
                self.show_log_message(Severity::Error, &params);
            }
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// People are sent to nothing but web pages.
fn is_web_url(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}
