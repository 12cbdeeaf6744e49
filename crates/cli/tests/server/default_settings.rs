//! Every protocol at default settings, with a token to prompt and to approve with: a prompt, the question before a command, its answer
//! and what came of it, over the wire of the real binary.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, ensure};
use async_trait::async_trait;
use gander_client::schema::{
    ClientCapabilities, Implementation, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionNotification, StopReason,
};
use gander_client::{Client, Endpoint, Error, Handler, Link, ShownUpdate};
use gander_testkit::harness::{Launch, PATIENCE, Server, binary, script};
use serde_json::{Value, json};

use crate::all_protocols::events::Events;

/// What is answered, and whether the command then runs.
const ANSWERS: [(&str, bool); 2] = [("yes", true), ("no", false)];

/// A server, somebody who was given a token, and the folder that this one may work in.
struct TestServer {
    server: Server,
    token: String,
    http: reqwest::Client,
    work: PathBuf,
    root: tempfile::TempDir,
}

impl TestServer {
    async fn open() -> anyhow::Result<Self> {
        rustls::crypto::ring::default_provider().install_default().ok();
        let root = tempfile::tempdir()?;
        let [data, work] = ["data", "work"].map(|name| root.path().join(name));
        std::fs::create_dir(&data)?;
        std::fs::create_dir(&work)?;
        // Who is not the owner works below these folders alone, and an editor must name one.
        let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data)
            .with("GANDER_SERVER_ROOTS", &json!([&work]).to_string());
        let server = launch.serve().await?;
        let token = launch.stdout(&["token", "add", "anna", "--scopes", "prompt,approve"]).await?.trim().to_owned();
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        Ok(Self { server, token, http, work, root })
    }

    fn send(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        let request = self.http.post(format!("http://{}{path}", self.server.address)).bearer_auth(&self.token);
        request.header("A2A-Version", "1.0").json(body)
    }

    /// What must go well.
    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let response = self.send(path, body).send().await?;
        let (status, text) = (response.status(), response.text().await?);
        ensure!(status.is_success(), "{path}: {status} {text}");
        Ok(serde_json::from_str(&text)?)
    }

    /// The file is there exactly if the command was allowed to run.
    fn check(&self, file: &str, ran: bool) -> anyhow::Result<()> {
        ensure!(holds(self.root.path(), file)? == ran, "{file} should {}be there", if ran { "" } else { "not " });
        Ok(())
    }
}

fn holds(folder: &Path, name: &str) -> anyhow::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == name || (entry.file_type()?.is_dir() && holds(&entry.path(), name)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A prompt whose one command makes a file.
fn touch(file: &str) -> String {
    let command = json!([{"tool": "shell", "args": {"command": format!("touch {file}")}}]);
    script(&[command, json!([{"text": "All done."}])])
}

/// An editor that chooses one kind of option.
struct Editor {
    chooses: PermissionOptionKind,
    said: Mutex<String>,
    asked: Mutex<usize>,
}

#[async_trait]
impl Handler for Editor {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities::new()
    }

    async fn updated(&self, update: SessionNotification) {
        if let ShownUpdate::Agent(text) = update.update.into() {
            self.said.lock().unwrap().push_str(&text);
        }
    }

    async fn request_permission(&self, request: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        *self.asked.lock().unwrap() += 1;
        let option = request.options.into_iter().find(|option| option.kind == self.chooses);
        let option = option.ok_or_else(|| Error::invalid_params("no such option"))?;
        let chosen = SelectedPermissionOutcome::new(option.option_id);
        Ok(RequestPermissionResponse::new(RequestPermissionOutcome::Selected(chosen)))
    }
}

async fn edits(test_server: &TestServer, link: Link, file: &str, ran: bool) -> anyhow::Result<()> {
    let chooses = if ran { PermissionOptionKind::AllowOnce } else { PermissionOptionKind::RejectOnce };
    let editor = Arc::new(Editor { chooses, said: Mutex::default(), asked: Mutex::default() });
    let client = Client::connect(link, Implementation::new("test", "0"), editor.clone()).await?;
    let session = client.new_session(&test_server.work).await?.session_id;
    let end = client.prompt(session, vec![touch(file).into()]).await?;
    assert_eq!((end.stop_reason, *editor.asked.lock().unwrap()), (StopReason::EndTurn, 1), "{file}");
    assert_eq!(*editor.said.lock().unwrap(), "All done.", "{file}");
    test_server.check(file, ran)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acp() -> anyhow::Result<()> {
    let test_server = TestServer::open().await?;
    let endpoint =
        Endpoint::new(format!("http://{}/acp", test_server.server.address)).with_bearer(&test_server.token)?;
    for (word, ran) in ANSWERS {
        edits(&test_server, Link::connect_http(&endpoint)?, &format!("http-{word}"), ran).await?;
        edits(&test_server, Link::connect_websocket(&endpoint).await?, &format!("websocket-{word}"), ran).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acp_rest() -> anyhow::Result<()> {
    let test_server = TestServer::open().await?;
    for (word, ran) in ANSWERS {
        let said = |text: &str| json!({"role": "user", "parts": [{"content": text}]});
        let new = json!({"agent_name": "gander", "mode": "sync", "input": [said(&touch(word))]});
        let run = test_server.post("/runs", &new).await?;
        assert_eq!(run["status"], "awaiting", "{run}");
        test_server.check(word, false)?;
        let (id, resume) = (&run["run_id"], json!({"type": "message", "message": said(word)}));
        let path = format!("/runs/{}", id.as_str().context("an id")?);
        let run = test_server.post(&path, &json!({"run_id": id, "mode": "sync", "await_resume": resume})).await?;
        assert_eq!(run["status"], "completed", "{run}");
        assert!(run["output"].to_string().contains("All done."), "{run}");
        test_server.check(word, ran)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a2a() -> anyhow::Result<()> {
    let test_server = TestServer::open().await?;
    for binding in ["rpc", "rest"] {
        let send = async |message: Value| {
            let params = json!({"message": message});
            if binding == "rest" {
                return Ok::<Value, anyhow::Error>(
                    test_server.post("/a2a/message:send", &params).await?["task"].take(),
                );
            }
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
            Ok(test_server.post("/a2a", &call).await?["result"]["task"].take())
        };
        for (word, ran) in ANSWERS {
            let file = format!("{binding}-{word}");
            let said = |id: &str, text: &str| json!({"messageId": format!("{id}-{file}"), "role": "ROLE_USER", "parts": [{"text": text}]});
            let task = send(said("first", &touch(&file))).await?;
            assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
            test_server.check(&file, false)?;
            let mut answer = said("second", word);
            answer["taskId"] = task["id"].clone();
            let task = send(answer).await?;
            assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
            assert!(task["artifacts"].to_string().contains("All done."), "{task}");
            test_server.check(&file, ran)?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goose() -> anyhow::Result<()> {
    let test_server = TestServer::open().await?;
    for (word, ran) in ANSWERS {
        let session = test_server.post("/agent/start", &json!({"working_dir": test_server.work})).await?["id"].take();
        let message = json!({
            "role": "user", "created": 1, "content": [{"type": "text", "text": touch(word)}],
            "metadata": {"userVisible": true, "agentVisible": true},
        });
        let reply = test_server.send("/reply", &json!({"session_id": session, "user_message": message}));
        let mut events = Events::of(reply.send().await?)?;
        let asked = events.until(|event| event["message"]["content"][0]["type"] == "actionRequired").await?;
        test_server.check(word, false)?;
        let id = &asked["message"]["content"][0]["data"]["id"];
        let action = if ran { "allow_once" } else { "deny_once" };
        let answer = json!({"id": id, "sessionId": session, "action": action, "principalType": "Tool"});
        test_server.post("/action-required/tool-confirmation", &answer).await?;
        let mut said = String::new();
        while let Some(event) = events.next().await? {
            said.push_str(event["message"]["content"][0]["text"].as_str().unwrap_or_default());
        }
        assert_eq!(said, "All done.", "{word}");
        test_server.check(word, ran)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adk() -> anyhow::Result<()> {
    let test_server = TestServer::open().await?;
    for (word, ran) in ANSWERS {
        let session = test_server.post("/apps/gander/users/anna/sessions", &json!({})).await?["id"].take();
        let run = async |part: Value| {
            let message = json!({"role": "user", "parts": [part]});
            let body = json!({"appName": "gander", "userId": "anna", "sessionId": session, "newMessage": message});
            test_server.post("/run", &body).await
        };
        let told = run(json!({"text": touch(word)})).await?;
        let events = told.as_array().context("events")?.iter();
        let mut parts = events.flat_map(|event| event["content"]["parts"].as_array().into_iter().flatten());
        let asks = |part: &&Value| part["functionCall"]["name"] == "adk_request_confirmation";
        let call = &parts.find(asks).with_context(|| format!("nothing is asked: {told}"))?["functionCall"];
        test_server.check(word, false)?;
        let answer = json!({"id": call["id"], "name": call["name"], "response": {"confirmed": ran}});
        let told = run(json!({"functionResponse": answer})).await?;
        assert!(told.to_string().contains("All done."), "{told}");
        test_server.check(word, ran)?;
    }
    Ok(())
}
