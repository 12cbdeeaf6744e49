//! ADK's REST: who did not begin a run looks at the session again and again, for no stream of it is told to others.

use anyhow::Context;
use async_trait::async_trait;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

use super::{ProtocolClient, TestSession, texts};
use crate::all_protocols::LAST;

pub struct Adk;

impl Adk {
    /// A session of another door is found under its agent, and the user of that name.
    async fn session(test_session: &TestSession) -> anyhow::Result<Value> {
        test_session
            .ok(test_session.get(&format!("/apps/{}/users/user/sessions/{}", test_session.agent, test_session.session)))
            .await
    }

    fn run(test_session: &TestSession, part: Value) -> RequestBuilder {
        let message = json!({ "role": "user", "parts": [part] });
        let body = json!({ "appName": test_session.agent, "userId": "user", "sessionId": test_session.session, "newMessage": message });
        test_session.post("/run", &body)
    }

    fn parts(session: &Value) -> impl Iterator<Item = &Value> {
        let events = session["events"].as_array().into_iter().flatten();
        events.flat_map(|event| event["content"]["parts"].as_array().into_iter().flatten())
    }

    fn asked(session: &Value) -> Option<&Value> {
        let mut calls = Self::parts(session).map(|part| &part["functionCall"]);
        calls.find(|call| call["name"] == "adk_request_confirmation")
    }

    /// What the agent said, not what it was told.
    fn said(session: &Value) -> String {
        let events = session["events"].as_array().into_iter().flatten();
        events.filter(|event| event["author"] != "user").map(|event| texts(event, "text")).collect()
    }
}

#[async_trait]
impl ProtocolClient for Adk {
    fn name(&self) -> &'static str {
        "adk"
    }

    async fn watch(&self, test_session: &TestSession, asked: Sender<&'static str>) -> anyhow::Result<String> {
        while Self::asked(&Self::session(test_session).await?).is_none() {
            tokio::task::yield_now().await;
        }
        asked.send(self.name()).await?;
        loop {
            let session = Self::session(test_session).await?;
            if Self::said(&session).contains(LAST) {
                let mut tools = Self::parts(&session).map(|part| &part["functionResponse"]["name"]);
                tools.find(|name| **name == "shell").context("no answer of the tool")?;
                return Ok(Self::said(&session));
            }
            tokio::task::yield_now().await;
        }
    }

    async fn question(&self, test_session: &TestSession) -> anyhow::Result<(String, Option<Value>)> {
        loop {
            let session = Self::session(test_session).await?;
            let Some(call) = Self::asked(&session) else {
                tokio::task::yield_now().await;
                continue;
            };
            let hint = call["args"]["toolConfirmation"]["hint"].as_str().context("no hint")?.to_owned();
            let original = &call["args"]["originalFunctionCall"];
            return Ok((hint, Some(json!({ "name": original["name"], "arguments": original["args"] }))));
        }
    }

    /// An answer that comes too late begins nothing.
    async fn answer(&self, test_session: &TestSession) -> anyhow::Result<bool> {
        let session = Self::session(test_session).await?;
        let Some(call) = Self::asked(&session) else { return Ok(false) };
        let response =
            json!({ "id": call["id"], "name": "adk_request_confirmation", "response": { "confirmed": true } });
        let events = test_session.ok(Self::run(test_session, json!({ "functionResponse": response }))).await?;
        Ok(!events.as_array().context("no list of events")?.is_empty())
    }

    async fn say(&self, test_session: &TestSession, text: &str) -> anyhow::Result<()> {
        let events = test_session.ok(Self::run(test_session, json!({ "text": text }))).await?;
        events.as_array().filter(|events| !events.is_empty()).context("no answer").map(drop)
    }

    async fn history(&self, test_session: &TestSession) -> anyhow::Result<String> {
        Ok(texts(&Self::session(test_session).await?["events"], "text"))
    }
}
