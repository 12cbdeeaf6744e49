//! The two families, each in its own words.

use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_rows::test_server::TestServer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Goose,
    Adk,
}

pub const FAMILIES: [Family; 2] = [Family::Goose, Family::Adk];

/// Where sessions of ADK are.
pub const SESSIONS: &str = "/apps/gander/users/u1/sessions";

impl Family {
    /// The header that its clients send their token in.
    pub fn credential(self, token: &str) -> String {
        match self {
            Self::Goose => format!("X-Secret-Key: {token}"),
            Self::Adk => format!("Authorization: Bearer {token}"),
        }
    }

    /// Where a prompt is sent and answered with a stream.
    pub fn stream(self) -> &'static str {
        match self {
            Self::Goose => "/reply",
            Self::Adk => "/run_sse",
        }
    }

    /// What only shows something.
    pub fn list(self) -> &'static str {
        match self {
            Self::Goose => "/sessions",
            Self::Adk => SESSIONS,
        }
    }

    /// The answer to a body that is no JSON.
    pub fn no_json(self) -> u16 {
        match self {
            Self::Goose => 400,
            Self::Adk => 422,
        }
    }

    /// A session.
    pub async fn begin(self, server: &TestServer) -> String {
        match self {
            Self::Goose => {
                let made = server.post(self, "/agent/start", &json!({ "working_dir": server.work() })).await;
                made.ok()["id"].as_str().unwrap().to_owned()
            }
            Self::Adk => server.post(self, SESSIONS, &Value::Null).await.ok()["id"].as_str().unwrap().to_owned(),
        }
    }

    /// A prompt with these parts of a message.
    pub fn prompt(self, session: &str, parts: Value) -> Value {
        match self {
            Self::Goose => {
                let message = json!({ "role": "user", "created": 1, "content": parts });
                json!({ "session_id": session, "user_message": message })
            }
            Self::Adk => {
                let message = json!({ "role": "user", "parts": parts });
                json!({ "appName": "gander", "userId": "u1", "sessionId": session, "newMessage": message })
            }
        }
    }

    pub fn says(self, session: &str, text: &str) -> Value {
        match self {
            Self::Goose => self.prompt(session, json!([{ "type": "text", "text": text }])),
            Self::Adk => self.prompt(session, json!([{ "text": text }])),
        }
    }

    /// Everything that was said in a session, as the family shows it.
    pub async fn history(self, server: &TestServer, session: &str) -> Value {
        let mut told = server.get(self, &self.told(session)).await.ok();
        match self {
            Self::Goose => serde_json::from_str::<Value>(told.as_str().unwrap()).unwrap()["conversation"].take(),
            Self::Adk => told["events"].take(),
        }
    }

    /// Where that is.
    pub fn told(self, session: &str) -> String {
        match self {
            Self::Goose => format!("/sessions/{session}/export"),
            Self::Adk => format!("{SESSIONS}/{session}"),
        }
    }

    /// True if a prompt to a new session is answered.
    pub async fn works(self, server: &TestServer) {
        let session = self.begin(server).await;
        let said = gander_testkit::harness::script(&[json!([{ "text": "still here" }])]);
        let answer = server.post(self, self.stream(), &self.says(&session, &said)).await;
        assert_eq!(answer.status, 200, "{self:?}: {}", answer.text);
        let history = self.history(server, &session).await;
        assert_eq!(history.to_string().matches("still here").count(), 2, "{self:?}: once asked, once said: {history}");
    }

    /// Any other method on the path of its stream.
    pub fn wrong_methods(self) -> [Method; 4] {
        [Method::PUT, Method::DELETE, Method::TRACE, Method::PATCH]
    }
}
