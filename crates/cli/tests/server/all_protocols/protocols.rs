//! The protocols, each in its protocol's own words. Another one is one more type here and one more line in `all`.

mod adk;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use async_trait::async_trait;
use gander_testkit::harness::{Client, Server, Transcript};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use crate::all_protocols::LAST;
use crate::all_protocols::events::Events;

/// A protocol that leads to the same sessions.
#[async_trait]
pub trait ProtocolClient: Send + Sync {
    /// As the log calls it.
    fn name(&self) -> &'static str;
    /// Watches the run to its end; tells when it asks. Gives what the agent said.
    async fn watch(&self, test_session: &TestSession, asked: Sender<&'static str>) -> anyhow::Result<String>;
    /// What whoever is asked reads before it answers, and the call as data, if the protocol has a place for it.
    async fn question(&self, test_session: &TestSession) -> anyhow::Result<(String, Option<Value>)>;
    /// Says yes to what the run asks; true if that counted.
    async fn answer(&self, test_session: &TestSession) -> anyhow::Result<bool>;
    /// Says something in the session and waits for the end.
    async fn say(&self, test_session: &TestSession, text: &str) -> anyhow::Result<()>;
    /// Everything that was said in the session.
    async fn history(&self, test_session: &TestSession) -> anyhow::Result<String>;
}

/// All of them.
pub fn all() -> Vec<Box<dyn ProtocolClient>> {
    vec![Box::new(AcpRest), Box::new(A2a), Box::new(Acp), Box::new(Goose), Box::new(adk::Adk)]
}

/// The session, and how to get there.
#[derive(Clone)]
pub struct TestSession {
    pub session: String,
    pub run: String,
    /// Who serves it.
    pub agent: String,
    url: String,
    token: String,
    socket: PathBuf,
    folder: PathBuf,
    client: reqwest::Client,
}

impl TestSession {
    /// A session that an editor made.
    pub async fn begin(server: &Server, root: &Path, token: String) -> anyhow::Result<Self> {
        let folder = gander_testkit::harness::workspace(root)?;
        let session = server.client().await?.new_session(&folder).await?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let (url, socket) = (format!("http://{}", server.address), server.launch.socket());
        let agent = "gander".to_owned();
        Ok(Self { session, run: String::new(), agent, url, token, socket, folder, client })
    }

    /// The same with another session of its agent.
    pub async fn in_new_session(&self, server: &Server) -> anyhow::Result<Self> {
        let params = json!({ "cwd": self.folder, "mcpServers": [], "_meta": { "agent": self.agent } });
        let made = server.client().await?.call("session/new", params).await?;
        let session = made["sessionId"].as_str().context("no session")?.to_owned();
        Ok(Self { session, run: String::new(), ..self.clone() })
    }

    /// Begins a run and gives its id.
    pub async fn start(&self, text: &str) -> anyhow::Result<String> {
        let run = self.ok(self.post("/runs", &self.new_run("async", text))).await?;
        Ok(run["run_id"].as_str().context("no run")?.to_owned())
    }

    /// The run as it is now.
    pub async fn run_object(&self) -> anyhow::Result<Value> {
        self.ok(self.get(&format!("/runs/{}", self.run))).await
    }

    /// Waits until the run awaits nobody and is over.
    pub async fn settled(&self) -> anyhow::Result<Value> {
        loop {
            let run = self.run_object().await?;
            if run["status"] == "completed" {
                return Ok(run);
            }
            ensure!(run["status"] != "failed", "{run}");
            tokio::task::yield_now().await;
        }
    }

    /// A path of A2A for the agent that serves the session.
    fn a2a(&self, path: &str) -> String {
        format!("/a2a/{}{path}", self.agent)
    }

    fn new_run(&self, mode: &str, text: &str) -> Value {
        let input = [json!({ "role": "user", "parts": [{ "content": text }] })];
        json!({ "agent_name": self.agent, "mode": mode, "session_id": self.session, "input": input })
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.client.request(Method::GET, format!("{}{path}", self.url)).bearer_auth(&self.token)
    }

    pub fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.client.request(Method::POST, format!("{}{path}", self.url)).bearer_auth(&self.token).json(body)
    }

    pub async fn ok(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let response = request.send().await?;
        let (status, text) = (response.status(), response.text().await?);
        ensure!(status.is_success(), "{status}: {text}");
        Ok(serde_json::from_str(&text)?)
    }

    /// True if it went well, false if the answer is this status.
    async fn counted(&self, request: RequestBuilder, too_late: u16) -> anyhow::Result<bool> {
        let response = request.send().await?;
        let (status, text) = (response.status(), response.text().await?);
        ensure!(status.is_success() || status == too_late, "{status}: {text}");
        Ok(status.is_success())
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub async fn editor(&self) -> anyhow::Result<Client> {
        let mut editor = Client::attach(&self.socket, &self.folder).await?;
        editor.initialize().await?;
        editor.load(&self.session, &self.folder).await?;
        Ok(editor)
    }
}

/// All texts in a value's members of this name.
fn texts(value: &Value, name: &str) -> String {
    match value {
        Value::Object(object) => object.iter().fold(String::new(), |all, (key, value)| match value.as_str() {
            Some(text) if key == name => all + text + "\n",
            Some(_) | None => all + &texts(value, name),
        }),
        Value::Array(values) => values.iter().map(|value| texts(value, name)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => String::new(),
    }
}

struct AcpRest;

#[async_trait]
impl ProtocolClient for AcpRest {
    fn name(&self) -> &'static str {
        "acp_rest"
    }

    async fn watch(&self, test_session: &TestSession, asked: Sender<&'static str>) -> anyhow::Result<String> {
        let stream =
            test_session.get(&format!("/runs/{}/events", test_session.run)).header("accept", "text/event-stream");
        Events::of(stream.send().await?)?.until(|event| event["type"] == "run.awaiting").await?;
        asked.send(self.name()).await?;
        Ok(texts(&test_session.settled().await?["output"], "content"))
    }

    async fn question(&self, test_session: &TestSession) -> anyhow::Result<(String, Option<Value>)> {
        let stream =
            test_session.get(&format!("/runs/{}/events", test_session.run)).header("accept", "text/event-stream");
        let event = Events::of(stream.send().await?)?.until(|event| event["type"] == "run.awaiting").await?;
        let parts = event["run"]["await_request"]["message"]["parts"].as_array().cloned().unwrap_or_default();
        let read = parts.iter().filter(|part| part["content_type"] == "text/plain");
        Ok((read.map(|part| texts(part, "content")).collect(), None))
    }

    async fn answer(&self, test_session: &TestSession) -> anyhow::Result<bool> {
        let message = json!({ "role": "user", "parts": [{ "content": "yes" }] });
        let body = json!({ "mode": "async", "await_resume": { "type": "message", "message": message } });
        test_session.counted(test_session.post(&format!("/runs/{}", test_session.run), &body), 403).await
    }

    async fn say(&self, test_session: &TestSession, text: &str) -> anyhow::Result<()> {
        let run = test_session.ok(test_session.post("/runs", &test_session.new_run("sync", text))).await?;
        ensure!(run["status"] == "completed", "{run}");
        Ok(())
    }

    async fn history(&self, test_session: &TestSession) -> anyhow::Result<String> {
        let session = test_session.ok(test_session.get(&format!("/sessions/{}", test_session.session))).await?;
        let mut all = String::new();
        for url in session["history"].as_array().context("no history")? {
            let message = test_session.ok(test_session.client.get(url.as_str().context("no address")?)).await?;
            all.push_str(&texts(&message, "content"));
        }
        Ok(all)
    }
}

struct A2a;

const EXTENSION: &str = "urn:gander:a2a:activity:v1";

impl A2a {
    fn said(test_session: &TestSession, text: &str) -> RequestBuilder {
        let id = format!("m-{}", uuid::Uuid::now_v7());
        let parts = [json!({ "text": text })];
        let message =
            json!({ "messageId": id, "role": "ROLE_USER", "contextId": test_session.session, "parts": parts });
        test_session
            .post(&test_session.a2a("/message:send"), &json!({ "message": message }))
            .header("A2A-Version", "1.0")
    }
}

#[async_trait]
impl ProtocolClient for A2a {
    fn name(&self) -> &'static str {
        "a2a"
    }

    async fn watch(&self, test_session: &TestSession, asked: Sender<&'static str>) -> anyhow::Result<String> {
        let stream = test_session
            .get(&test_session.a2a(&format!("/tasks/{}:subscribe", test_session.run)))
            .header("A2A-Version", "1.0");
        let mut events = Events::of(stream.send().await?)?;
        events.until(|event| event.to_string().contains("TASK_STATE_INPUT_REQUIRED")).await?;
        asked.send(self.name()).await?;
        events.until(|event| event["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED").await?;
        let task =
            test_session.get(&test_session.a2a(&format!("/tasks/{}", test_session.run))).header("A2A-Version", "1.0");
        Ok(texts(&test_session.ok(task).await?["artifacts"], "text"))
    }

    async fn question(&self, test_session: &TestSession) -> anyhow::Result<(String, Option<Value>)> {
        let stream = test_session
            .get(&test_session.a2a(&format!("/tasks/{}:subscribe", test_session.run)))
            .header("A2A-Version", "1.0");
        let asks = |event: &Value| event.to_string().contains("TASK_STATE_INPUT_REQUIRED");
        let event = Events::of(stream.send().await?)?.until(asks).await?;
        let status = event.pointer("/task/status").or_else(|| event.pointer("/statusUpdate/status"));
        Ok((texts(&status.context("no status")?["message"]["parts"], "text"), None))
    }

    /// A message that does not say which question it answers may come as one more word to the running task.
    async fn answer(&self, test_session: &TestSession) -> anyhow::Result<bool> {
        let task =
            test_session.get(&test_session.a2a(&format!("/tasks/{}", test_session.run))).header("A2A-Version", "1.0");
        let task = test_session.ok(task.header("A2A-Extensions", EXTENSION)).await?;
        let parts = task["status"]["message"]["parts"].as_array().cloned().unwrap_or_default();
        let Some(question) = parts.iter().map(|part| &part["data"]).find(|data| data["kind"] == "question") else {
            return Ok(false); // somebody was faster
        };
        let message = json!({
            "messageId": "m-yes", "role": "ROLE_USER", "taskId": test_session.run, "parts": [{ "text": "yes" }],
            "metadata": { EXTENSION: { "question": question["id"] } },
        });
        let send = test_session
            .post(&test_session.a2a("/message:send"), &json!({ "message": message }))
            .header("A2A-Version", "1.0");
        test_session.counted(send, 400).await
    }

    async fn say(&self, test_session: &TestSession, text: &str) -> anyhow::Result<()> {
        let sent = test_session.ok(Self::said(test_session, text)).await?;
        ensure!(sent["task"]["status"]["state"] == "TASK_STATE_COMPLETED", "{sent}");
        Ok(())
    }

    async fn history(&self, test_session: &TestSession) -> anyhow::Result<String> {
        let list = test_session
            .get(&test_session.a2a(&format!("/tasks?contextId={}&includeArtifacts=true", test_session.session)));
        let list = test_session.ok(list.header("A2A-Version", "1.0")).await?;
        let tasks = list["tasks"].as_array().context("no tasks")?.iter().rev();
        Ok(tasks.map(|task| texts(&task["history"], "text") + &texts(&task["artifacts"], "text")).collect())
    }
}

struct Acp;

impl Acp {
    fn is_question(message: &Value) -> bool {
        message["method"] == "session/request_permission"
    }
}

#[async_trait]
impl ProtocolClient for Acp {
    fn name(&self) -> &'static str {
        "acp"
    }

    async fn watch(&self, test_session: &TestSession, asked: Sender<&'static str>) -> anyhow::Result<String> {
        let mut editor = test_session.editor().await?;
        if !editor.seen.iter().any(Self::is_question) {
            editor.until(Self::is_question).await?;
        }
        asked.send(self.name()).await?;
        while !Transcript::of(&editor.seen, &test_session.session).text().contains(LAST) {
            editor.receive().await?.context("the server hung up")?;
        }
        Ok(Transcript::of(&editor.seen, &test_session.session).text())
    }

    async fn question(&self, test_session: &TestSession) -> anyhow::Result<(String, Option<Value>)> {
        let mut editor = test_session.editor().await?;
        if !editor.seen.iter().any(Self::is_question) {
            editor.until(Self::is_question).await?;
        }
        let asked = editor.seen.iter().find(|message| Self::is_question(message)).context("no question")?;
        let call = &asked["params"]["toolCall"];
        let title = call["title"].as_str().context("no title")?.to_owned();
        Ok((title, Some(json!({ "name": call["name"], "arguments": call["rawInput"] }))))
    }

    /// An editor is told nothing about its answer.
    async fn answer(&self, test_session: &TestSession) -> anyhow::Result<bool> {
        let mut editor = test_session.editor().await?;
        let mut answered = false;
        while !Transcript::of(&editor.seen, &test_session.session).text().contains(LAST) {
            let question = editor.seen.iter().find(|message| Self::is_question(message)).cloned();
            if let Some(question) = question.filter(|_| !answered) {
                editor.choose(&question, "allow_once").await?;
                answered = true;
            }
            editor.receive().await?.context("the server hung up")?;
        }
        Ok(false)
    }

    async fn say(&self, test_session: &TestSession, text: &str) -> anyhow::Result<()> {
        let reason = test_session.editor().await?.turn(&test_session.session, text).await?;
        ensure!(reason == "end_turn", "{reason}");
        Ok(())
    }

    async fn history(&self, test_session: &TestSession) -> anyhow::Result<String> {
        let editor = test_session.editor().await?;
        Ok(editor.seen.iter().map(|message| texts(&message["params"]["update"], "text")).collect())
    }
}

struct Goose;

impl Goose {
    async fn events(test_session: &TestSession) -> anyhow::Result<Events> {
        Events::of(test_session.get(&format!("/sessions/{}/events", test_session.session)).send().await?)
    }

    fn is_question(event: &Value) -> bool {
        event["message"]["content"][0]["type"] == "actionRequired"
    }
}

#[async_trait]
impl ProtocolClient for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    async fn watch(&self, test_session: &TestSession, asked: Sender<&'static str>) -> anyhow::Result<String> {
        let (mut events, mut all) = (Self::events(test_session).await?, String::new());
        while let Some(event) = events.next().await? {
            all.push_str(&texts(&event["message"]["content"], "text"));
            if Self::is_question(&event) {
                asked.send(self.name()).await?;
            }
            if event["type"] == "Finish" {
                // Deltas come one by one.
                return Ok(all.replace('\n', ""));
            }
        }
        anyhow::bail!("the stream ended: {all}")
    }

    async fn question(&self, test_session: &TestSession) -> anyhow::Result<(String, Option<Value>)> {
        let asked = Self::events(test_session).await?.until(Self::is_question).await?;
        let data = &asked["message"]["content"][0]["data"];
        let prompt = data["prompt"].as_str().context("no prompt")?.to_owned();
        Ok((prompt, Some(json!({ "name": data["toolName"], "arguments": data["arguments"] }))))
    }

    async fn answer(&self, test_session: &TestSession) -> anyhow::Result<bool> {
        let asked = Self::events(test_session).await?.until(Self::is_question).await?;
        let id = &asked["message"]["content"][0]["data"]["id"];
        let body =
            json!({ "id": id, "sessionId": test_session.session, "action": "allow_once", "principalType": "Tool" });
        test_session.counted(test_session.post("/action-required/tool-confirmation", &body), 404).await
    }

    async fn say(&self, test_session: &TestSession, text: &str) -> anyhow::Result<()> {
        let message = json!({
            "role": "user", "created": 1, "content": [{ "type": "text", "text": text }],
            "metadata": { "userVisible": true, "agentVisible": true },
        });
        let body = json!({ "session_id": test_session.session, "user_message": message });
        let response = test_session.post("/reply", &body).send().await?;
        if !response.status().is_success() {
            anyhow::bail!("{}: {}", response.status(), response.text().await?);
        }
        let mut events = Events::of(response)?;
        events.until(|event| event["type"] == "Finish").await.map(drop)
    }

    async fn history(&self, test_session: &TestSession) -> anyhow::Result<String> {
        let session = test_session.ok(test_session.get(&format!("/sessions/{}", test_session.session))).await?;
        Ok(texts(&session["conversation"], "text"))
    }
}
