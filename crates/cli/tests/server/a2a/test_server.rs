//! A server with the agent that the kits ask for, and requests to it in every binding.

use std::sync::Mutex;
use std::time::Duration;

use gander_testkit::conformance::ConformanceRecorder;
use gander_testkit::harness::{Launch, PATIENCE, Server, binary};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};

/// A server and who calls it.
pub(crate) struct TestServer {
    pub(crate) server: Server,
    pub(crate) token: String,
    pub(crate) client: Client,
    recorder: Mutex<ConformanceRecorder>,
    root: tempfile::TempDir,
}

/// The two bindings that speak JSON, in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    Rpc,
    Rest,
    OldRpc,
    OldRest,
}

pub(crate) const BINDINGS: [Binding; 4] = [Binding::Rpc, Binding::Rest, Binding::OldRpc, Binding::OldRest];

impl TestServer {
    pub(crate) async fn open() -> anyhow::Result<Self> {
        Self::with(&[]).await
    }

    pub(crate) async fn with(variables: &[(&str, &str)]) -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let mut launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), root.path())
            .with_conformance_agents()
            .with("GANDER_A2A_AGENT", "tck");
        for (name, value) in variables {
            launch = launch.with(name, value);
        }
        let server = launch.serve().await?;
        let token = launch.stdout(&["token"]).await?.trim().to_owned();
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = Client::builder().no_proxy().timeout(PATIENCE).build()?;
        Ok(Self { server, token, client, recorder: Mutex::new(ConformanceRecorder::for_protocol("a2a")), root })
    }

    /// Kills the server and starts another on the same data.
    pub(crate) async fn restart(self) -> anyhow::Result<Self> {
        let Self { server, token, client, recorder, root } = self;
        let launch = server.launch.clone();
        server.kill().await?;
        Ok(Self { server: launch.serve().await?, token, client, recorder, root })
    }

    /// The folder that everything of this server is in.
    pub(crate) fn root(&self) -> &std::path::Path {
        self.root.path()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path)).bearer_auth(&self.token)
    }

    /// A JSON-RPC call in 1.0.
    pub(crate) async fn rpc(&self, method: &str, params: Value) -> anyhow::Result<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let response = self.request(Method::POST, "/a2a").header("A2A-Version", "1.0").json(&body).send().await?;
        assert_eq!(response.status(), 200);
        let answer = response.json().await?;
        self.heard(&answer);
        Ok(answer)
    }

    /// Notes which states and errors an answer shows.
    fn heard(&self, answer: &Value) {
        let mut recorder = self.recorder.lock().unwrap();
        if let Some(code) = answer["error"]["code"].as_i64() {
            recorder.shows("error", &code.to_string(), "JSON-RPC");
        }
        for task in [&answer["result"], &answer["result"]["task"]] {
            recorder.shows("state", task["status"]["state"].as_str().unwrap_or_default(), "JSON-RPC");
        }
    }

    /// What a call of 1.0 gives, which must not be an error.
    pub(crate) async fn call(&self, method: &str, params: Value) -> anyhow::Result<Value> {
        let mut response = self.rpc(method, params).await?;
        anyhow::ensure!(response.get("error").is_none(), "{method}: {response}");
        Ok(response["result"].take())
    }

    /// The code of the error that a call gives.
    pub(crate) async fn code(&self, method: &str, params: Value) -> anyhow::Result<i64> {
        let response = self.rpc(method, params).await?;
        response["error"]["code"].as_i64().ok_or_else(|| anyhow::anyhow!("no error: {response}"))
    }

    /// Sends a text with this message id in 1.0, and gives the task.
    pub(crate) async fn send(&self, id: &str, text: &str) -> anyhow::Result<Value> {
        Ok(self.call("SendMessage", json!({ "message": message(id, text) })).await?["task"].take())
    }

    /// Sends a text and does not wait.
    pub(crate) async fn start(&self, id: &str, text: &str) -> anyhow::Result<Value> {
        let params = json!({ "message": message(id, text), "configuration": { "returnImmediately": true } });
        Ok(self.call("SendMessage", params).await?["task"].take())
    }

    /// Sends a text in this binding, and gives the task in that binding's form.
    pub(crate) async fn send_by(&self, binding: Binding, id: &str, text: &str) -> anyhow::Result<Value> {
        let response = self.post(binding, "message:send", &said(binding, id, text)).await?;
        let mut value: Value = response.json().await?;
        Ok(match binding {
            Binding::Rpc => value["result"]["task"].take(),
            Binding::OldRpc => value["result"].take(),
            Binding::Rest | Binding::OldRest => value["task"].take(),
        })
    }

    /// Posts the body of a send or a stream in this binding.
    pub(crate) async fn post(&self, binding: Binding, verb: &str, body: &Value) -> anyhow::Result<Response> {
        let (path, version, body) = match binding {
            Binding::Rpc | Binding::OldRpc => {
                let old = binding == Binding::OldRpc;
                let method = match (verb, old) {
                    ("message:send", false) => "SendMessage",
                    ("message:send", true) => "message/send",
                    (_, false) => "SendStreamingMessage",
                    (_, true) => "message/stream",
                };
                let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": body });
                ("/a2a".to_owned(), if old { "0.3" } else { "1.0" }, body)
            }
            Binding::Rest => (format!("/a2a/{verb}"), "1.0", body.clone()),
            Binding::OldRest => (format!("/a2a/v1/{verb}"), "0.3", body.clone()),
        };
        Ok(self.request(Method::POST, &path).header("A2A-Version", version).json(&body).send().await?)
    }
}

/// A message of 1.0.
pub(crate) fn message(id: &str, text: &str) -> Value {
    json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] })
}

/// The parameters of a send in this binding.
pub(crate) fn said(binding: Binding, id: &str, text: &str) -> Value {
    match binding {
        Binding::Rpc | Binding::Rest => json!({ "message": message(id, text) }),
        Binding::OldRpc => json!({ "message": { "kind": "message", "messageId": id, "role": "user",
            "parts": [{ "kind": "text", "text": text }] } }),
        Binding::OldRest => json!({ "request": { "message_id": id, "role": "ROLE_USER",
            "content": [{ "text": text }] }, "configuration": { "blocking": true } }),
    }
}

/// The events of a stream: their ids and what they say, to its end.
pub(crate) async fn events(response: Response) -> anyhow::Result<Vec<(Option<String>, Value)>> {
    assert_eq!(response.status(), 200);
    let mut recorder = ConformanceRecorder::for_protocol("a2a");
    let text = tokio::time::timeout(Duration::from_secs(60), response.text()).await??;
    let blocks = text.split("\n\n").filter(|block| block.contains("data: "));
    blocks
        .map(|block| {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            let data: Value = serde_json::from_str(field("data: ").unwrap_or_default())?;
            let event = data.get("result").unwrap_or(&data);
            event.as_object().into_iter().flatten().for_each(|(kind, _)| recorder.shows("event", kind, "stream"));
            recorder.shows("state", event["statusUpdate"]["status"]["state"].as_str().unwrap_or_default(), "stream");
            Ok((field("id: ").map(str::to_owned), data))
        })
        .collect()
}
