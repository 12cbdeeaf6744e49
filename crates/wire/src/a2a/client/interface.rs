//! Which version and binding a server speaks, as its card says, and how requests look in it.

use serde_json::{Value, json};

use crate::a2a::v03_json::v03_message_json;
use crate::a2a::{A2aDialect, A2aMessage};
use crate::remote::{AnswerForm, RemoteRequest};

/// How a server is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aInterface {
    /// Where it is, as the card says.
    pub url: String,
    pub dialect: A2aDialect,
    pub binding: A2aBinding,
    /// Whether it streams what happens.
    pub streams: bool,
}

/// What requests are put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum A2aBinding {
    JsonRpc,
    Rest,
}

/// A card that names nothing that we speak.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent card names no interface of A2A 1.0 or 0.3 over JSON-RPC, nor of 1.0 over HTTP+JSON: {0}")]
pub struct NoInterface(pub String);

impl A2aInterface {
    /// The best interface of this version, or of any, that a card names. JSON-RPC comes first: every SDK has it.
    pub fn from_card(card: &Value, version: Option<A2aDialect>) -> Result<Self, NoInterface> {
        let takes = |dialect| version.is_none_or(|wanted| wanted == dialect);
        let streams = card["capabilities"]["streaming"] == true;
        let new = |url: &str, dialect, binding| Self { url: url.to_owned(), dialect, binding, streams };
        let interfaces = card["supportedInterfaces"].as_array().cloned().unwrap_or_default();
        let find = |binding: &str, version: &str| {
            let fits = |interface: &&Value| {
                interface["protocolBinding"] == binding
                    && interface["protocolVersion"].as_str().is_some_and(|named| named.starts_with(version))
            };
            interfaces.iter().find(fits).and_then(|interface| interface["url"].as_str()).map(str::to_owned)
        };
        if let Some(url) = find("JSONRPC", "1.").filter(|_| takes(A2aDialect::V1)) {
            return Ok(new(&url, A2aDialect::V1, A2aBinding::JsonRpc));
        }
        if let Some(url) = find("HTTP+JSON", "1.").filter(|_| takes(A2aDialect::V1)) {
            return Ok(new(&url, A2aDialect::V1, A2aBinding::Rest));
        }
        if let Some(url) =
            find("JSONRPC", "0.3").or_else(|| a2a_client_interface_v03_url(card)).filter(|_| takes(A2aDialect::V03))
        {
            return Ok(new(&url, A2aDialect::V03, A2aBinding::JsonRpc));
        }
        Err(NoInterface(card["name"].as_str().unwrap_or("without a name").to_owned()))
    }

    /// The value of `A2A-Version`.
    pub fn version(&self) -> &'static str {
        match self.dialect {
            A2aDialect::V1 => "1.0",
            A2aDialect::V03 | A2aDialect::V03Rest => "0.3",
        }
    }

    /// Says something.
    pub(super) fn send_request(&self, message: &A2aMessage) -> RemoteRequest {
        let mut params = match self.dialect {
            A2aDialect::V1 => json!({ "message": message }),
            A2aDialect::V03 | A2aDialect::V03Rest => json!({ "message": v03_message_json(self.dialect, message) }),
        };
        if self.streams {
            return self.request("stream", "/message:stream", params, AnswerForm::Stream);
        }
        if self.dialect != A2aDialect::V1 {
            params["configuration"] = json!({ "blocking": true });
        }
        self.request("send", "/message:send", params, AnswerForm::Whole)
    }

    /// Asks something about a task: `get`, `cancel` or `subscribe`.
    pub(super) fn task_request(&self, what: &str, task: &str, answer: AnswerForm) -> RemoteRequest {
        if self.binding == A2aBinding::Rest {
            return match what {
                "cancel" => RemoteRequest::post(format!("/tasks/{task}:cancel"), json!({}), answer),
                "subscribe" => RemoteRequest { answer, ..RemoteRequest::get(format!("/tasks/{task}:subscribe")) },
                _ => RemoteRequest::get(format!("/tasks/{task}")),
            };
        }
        self.request(what, "", json!({ "id": task }), answer)
    }

    fn request(&self, what: &str, path: &str, params: Value, answer: AnswerForm) -> RemoteRequest {
        match self.binding {
            A2aBinding::Rest => RemoteRequest::post(path, params, answer),
            A2aBinding::JsonRpc => {
                let method = a2a_client_interface_method(self.dialect, what);
                let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
                RemoteRequest::post("", body, answer)
            }
        }
    }
}

fn a2a_client_interface_method(dialect: A2aDialect, what: &str) -> &'static str {
    match (dialect, what) {
        (A2aDialect::V1, "stream") => "SendStreamingMessage",
        (A2aDialect::V1, "send") => "SendMessage",
        (A2aDialect::V1, "subscribe") => "SubscribeToTask",
        (A2aDialect::V1, "cancel") => "CancelTask",
        (A2aDialect::V1, _) => "GetTask",
        (A2aDialect::V03 | A2aDialect::V03Rest, "stream") => "message/stream",
        (A2aDialect::V03 | A2aDialect::V03Rest, "send") => "message/send",
        (A2aDialect::V03 | A2aDialect::V03Rest, "subscribe") => "tasks/resubscribe",
        (A2aDialect::V03 | A2aDialect::V03Rest, "cancel") => "tasks/cancel",
        (A2aDialect::V03 | A2aDialect::V03Rest, _) => "tasks/get",
    }
}

/// The card of 0.3: one address, and further ones by transport.
fn a2a_client_interface_v03_url(card: &Value) -> Option<String> {
    let is_rpc = |transport: &Value| transport.as_str().is_none_or(|name| name == "JSONRPC");
    let main = card["url"].as_str().filter(|_| is_rpc(&card["preferredTransport"]));
    let mut more = card["additionalInterfaces"].as_array().into_iter().flatten();
    let more = more.find(|interface| interface["transport"] == "JSONRPC").and_then(|found| found["url"].as_str());
    main.or(more).map(str::to_owned)
}
