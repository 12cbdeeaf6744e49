//! Agents behind a server that speaks A2A, 1.0 or 0.3, as their card says.

use std::sync::Arc;

use async_trait::async_trait;
use gander_wire::a2a::client::{A2aClientTurn, A2aInterface};
use gander_wire::a2a::{A2aDialect, EXTENSION};
use reqwest::Url;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::remote::{BegunTurn, RemoteEndpoint, RemoteError, RemoteHttp, RemotePrompt, RemoteProtocol};

/// Where cards are, the newest place first.
const CARD_PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// The way to an agent behind a server that speaks A2A.
pub struct A2aProtocol {
    endpoint: RemoteEndpoint,
    /// The one version that is spoken; absent: the newest of the card.
    version: Option<A2aDialect>,
    /// Finds the card.
    cards: RemoteHttp,
    /// What its card said. A server that is set up anew is asked again after a restart or a change of settings.
    interface: OnceCell<(A2aInterface, Arc<RemoteHttp>)>,
}

impl A2aProtocol {
    /// The agent whose card is below this address, or at it.
    pub fn new(endpoint: RemoteEndpoint, version: Option<A2aDialect>) -> Result<Self, RemoteError> {
        let cards = RemoteHttp::new(&endpoint, &[])?;
        Ok(Self { endpoint, version, cards, interface: OnceCell::new() })
    }

    /// The agent's card.
    async fn fetch_card(&self) -> Result<Value, RemoteError> {
        if self.endpoint.url.ends_with(".json") {
            return self.cards.get_json("").await;
        }
        let mut last = RemoteError::NotFound(String::new());
        for path in CARD_PATHS {
            match self.cards.get_json(path).await {
                Ok(card) => return Ok(card),
                Err(error @ RemoteError::NotFound(_)) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    async fn find_interface(&self) -> Result<(A2aInterface, Arc<RemoteHttp>), RemoteError> {
        let card = self.fetch_card().await?;
        let interface = A2aInterface::from_card(&card, self.version);
        let interface = interface.map_err(|error| RemoteError::Settings(error.to_string()))?;
        let url = own_a2a_backend_address(&self.endpoint.url, &interface.url)?;
        let endpoint = RemoteEndpoint { url, ..self.endpoint.clone() };
        // 0.3 knew the second header under another name.
        let headers =
            [("a2a-version", interface.version()), ("a2a-extensions", EXTENSION), ("x-a2a-extensions", EXTENSION)];
        let http = RemoteHttp::new(&endpoint, &headers)?;
        Ok((interface, Arc::new(http)))
    }
}

/// The address in a card, if it is the server that was configured: a card must not send us, and our key, anywhere else.
fn own_a2a_backend_address(configured: &str, named: &str) -> Result<String, RemoteError> {
    let parse = |url: &str| Url::parse(url).map_err(|error| RemoteError::Settings(format!("{error}: {url}")));
    let (configured, named) = (parse(configured)?, parse(named)?);
    let host = |url: &Url| {
        let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]" | "0.0.0.0"));
        if is_local { Some("localhost".to_owned()) } else { url.host_str().map(str::to_owned) }
    };
    let same_server = named.scheme() == configured.scheme()
        && host(&named) == host(&configured)
        && named.port_or_known_default() == configured.port_or_known_default();
    if !same_server {
        let message = format!("its card names another server, set that one as its url: {named}");
        return Err(RemoteError::Settings(message));
    }
    // A card made for every address of a machine names one that nobody can reach.
    let mut own = configured;
    own.set_path(named.path());
    own.set_query(named.query());
    Ok(own.to_string())
}

#[async_trait]
impl RemoteProtocol for A2aProtocol {
    const ALIAS_KIND: &'static str = "a2a-agent";
    const TAKES_HISTORY: bool = false;

    async fn begin_turn(&self, prompt: RemotePrompt<'_>) -> Result<BegunTurn, RemoteError> {
        let (interface, http) = self.interface.get_or_try_init(|| self.find_interface()).await?;
        let id = format!("{}-prompt", prompt.run);
        let turn = A2aClientTurn::new(interface.clone(), prompt.session, &id, &prompt.parts);
        Ok(BegunTurn { turn: Box::new(turn), http: Arc::clone(http) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_leads_to_the_configured_server_alone() {
        let own = |configured, named| own_a2a_backend_address(configured, named).ok();
        let at = |url: &str| Some(url.to_owned());
        assert_eq!(own("https://a.example/x", "https://a.example/rpc?v=1"), at("https://a.example/rpc?v=1"));
        assert_eq!(own("http://127.0.0.1:9/", "http://localhost:9/rpc"), at("http://127.0.0.1:9/rpc"));
        assert_eq!(own("https://a.example", "https://b.example"), None);
        assert_eq!(own("https://a.example", "http://a.example"), None);
        assert_eq!(own("http://127.0.0.1:9", "http://127.0.0.1:10"), None);
        assert_eq!(own("https://a.example", "http://169.254.169.254/latest"), None);
    }
}
