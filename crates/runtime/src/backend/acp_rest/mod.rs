//! Agents behind a server that speaks ACP-REST.

use std::sync::Arc;

use async_trait::async_trait;
use gander_wire::acp_rest::client::AcpRestClientTurn;
use tokio::sync::OnceCell;

use super::remote::{BegunTurn, RemoteEndpoint, RemoteError, RemoteHttp, RemotePrompt, RemoteProtocol};

/// The way to an agent behind a server that speaks ACP-REST.
pub struct AcpRestProtocol {
    http: Arc<RemoteHttp>,
    /// Its name there, once it is known.
    agent: OnceCell<String>,
}

impl AcpRestProtocol {
    /// The agent of this name there; absent: the only one.
    pub fn new(endpoint: &RemoteEndpoint, agent: Option<String>) -> Result<Self, RemoteError> {
        let http = Arc::new(RemoteHttp::new(endpoint, &[])?);
        Ok(Self { http, agent: agent.map_or_else(OnceCell::new, |name| OnceCell::new_with(Some(name))) })
    }

    /// The only agent of the server.
    async fn find_agent(&self) -> Result<String, RemoteError> {
        let listed = self.http.get_json("/agents").await?;
        let agents = listed["agents"].as_array().into_iter().flatten();
        let names: Vec<&str> = agents.filter_map(|agent| agent["name"].as_str()).collect();
        match names[..] {
            [only] => Ok(only.to_owned()),
            [] => Err(RemoteError::Settings("the server lists no agent".to_owned())),
            [_, ..] => {
                Err(RemoteError::Settings(format!("say which agent it is, agent = one of: {}", names.join(", "))))
            }
        }
    }
}

#[async_trait]
impl RemoteProtocol for AcpRestProtocol {
    const ALIAS_KIND: &'static str = "acp-rest-agent";
    const TAKES_HISTORY: bool = true;

    async fn begin_turn(&self, prompt: RemotePrompt<'_>) -> Result<BegunTurn, RemoteError> {
        let agent = self.agent.get_or_try_init(|| self.find_agent()).await?;
        let turn = AcpRestClientTurn::new(agent, prompt.session, prompt.before, &prompt.parts);
        Ok(BegunTurn { turn: Box::new(turn), http: Arc::clone(&self.http) })
    }
}
