//! Agents behind a server that speaks the REST of Google's Agent Development Kit.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use gander_wire::adk::client::{AdkClientTurn, RemoteSession, adk_new_session_body};
use gander_wire::remote::{AnswerForm, RemoteRequest};
use tokio::sync::OnceCell;

use super::remote::{BegunTurn, RemoteEndpoint, RemoteError, RemoteHttp, RemotePrompt, RemoteProtocol};

/// The user of sessions unless another is named.
const DEFAULT_USER: &str = "user";

/// The way to an app behind a server that speaks ADK's REST.
pub struct AdkProtocol {
    http: Arc<RemoteHttp>,
    /// The name of the app, once it is known.
    app: OnceCell<String>,
    user: String,
}

impl AdkProtocol {
    /// The app of this name; absent: the only one.
    pub fn new(endpoint: &RemoteEndpoint, app: Option<String>, user: Option<String>) -> Result<Self, RemoteError> {
        let http = Arc::new(RemoteHttp::new(endpoint, &[])?);
        let app = app.map_or_else(OnceCell::new, |name| OnceCell::new_with(Some(name)));
        Ok(Self { http, app, user: user.unwrap_or_else(|| DEFAULT_USER.to_owned()) })
    }

    /// The only app of the server.
    async fn find_app(&self) -> Result<String, RemoteError> {
        let listed = self.http.get_json("/list-apps").await?;
        let names: Vec<&str> = listed.as_array().into_iter().flatten().filter_map(|app| app.as_str()).collect();
        match names[..] {
            [only] => Ok(only.to_owned()),
            [] => Err(RemoteError::Settings("the server lists no app".to_owned())),
            [_, ..] => Err(RemoteError::Settings(format!("say which app it is, agent = one of: {}", names.join(", ")))),
        }
    }
}

#[async_trait]
impl RemoteProtocol for AdkProtocol {
    const ALIAS_KIND: &'static str = "adk-agent";
    const TAKES_HISTORY: bool = true;

    /// A session has to be there before it is prompted. Of one that goes on it is known which events are old.
    async fn begin_turn(&self, prompt: RemotePrompt<'_>) -> Result<BegunTurn, RemoteError> {
        let app = self.app.get_or_try_init(|| self.find_app()).await?.clone();
        let user = self.user.clone();
        let path = RemoteSession::sessions_path(&app, &user);
        let answer = match &prompt.session {
            Some(session) => self.http.get_json(&format!("{path}/{session}")).await?,
            None => {
                let body = adk_new_session_body(prompt.before);
                self.http.send_whole(&RemoteRequest::post(path, body, AnswerForm::Whole)).await?
            }
        };
        let session = answer["id"].as_str().map(str::to_owned);
        let session = session.ok_or_else(|| RemoteError::Unreadable("a session without an id".to_owned()))?;
        let events = answer["events"].as_array().into_iter().flatten();
        let known: HashSet<String> = events.filter_map(|event| event["id"].as_str().map(str::to_owned)).collect();
        let turn = AdkClientTurn::new(RemoteSession { app, user, session }, &prompt.parts, prompt.model, known);
        Ok(BegunTurn { turn: Box::new(turn), http: Arc::clone(&self.http) })
    }
}
