//! Things of one principal that have ids, and ids of the same form that name nothing.

use std::collections::BTreeMap;

use gander_domain::SessionId;
use gander_domain::caller::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::scopes::TestServer;

pub const FULL: &[Scope] = &[Scope::Prompt, Scope::Approve, Scope::Admin];

/// What a principal has, by what it is.
#[derive(Clone)]
pub struct Belongings {
    /// The principal's name.
    pub name: String,
    /// A token with every scope.
    pub token: String,
    ids: BTreeMap<&'static str, String>,
}

impl Belongings {
    pub fn id(&self, slot: &str) -> &str {
        self.ids.get(slot).unwrap_or_else(|| panic!("nobody has one of these: {slot}"))
    }

    /// What everything of this principal says somewhere.
    pub fn secret(&self) -> String {
        secret(&self.name)
    }

    /// Everything that nobody else may be told.
    pub fn secrets(&self) -> impl Iterator<Item = String> {
        self.ids.values().cloned().chain([self.secret()])
    }

    pub fn slots(&self) -> impl Iterator<Item = &'static str> {
        self.ids.keys().copied()
    }
}

fn secret(name: &str) -> String {
    format!("secret of {name}")
}

/// An id of the same form that names nothing.
pub fn made_up(id: &str) -> String {
    let turned = |letter: char| match letter {
        'a' => 'b',
        '1' => '2',
        letter if letter.is_ascii_digit() => '1',
        _ => 'a',
    };
    let last = id.char_indices().rfind(|(_, letter)| letter.is_ascii_alphanumeric());
    let (at, letter) = last.unwrap_or_else(|| panic!("not an id: {id}"));
    format!("{}{}{}", &id[..at], turned(letter), &id[at + 1..])
}

/// A prompt after which the run waits for an answer.
pub fn asking(name: &str) -> String {
    let calls = json!([[{ "tool": "shell", "args": { "command": "touch asked" } }], [{ "text": secret(name) }]]);
    format!("{} [[script:{calls}]]", secret(name))
}

impl TestServer {
    pub fn agent(&self) -> String {
        self.app.services().agents.default_manifest().name.clone()
    }

    /// A principal of this name that has one of everything.
    pub async fn belongings(&self, name: &str) -> Belongings {
        self.belongings_for(name, |_| true).await
    }

    /// A principal of this name that has what is wanted, and perhaps more.
    pub async fn belongings_for(&self, name: &str, wanted: impl Fn(&str) -> bool) -> Belongings {
        let token = self.token(name, FULL);
        let mut all = Belongings { name: name.to_owned(), token, ids: BTreeMap::new() };
        let any = |slots: &[&str]| slots.iter().any(|slot| wanted(slot));
        if any(&["session", "run", "question", "call", "extension"]) {
            self.asking_session(&mut all).await;
        }
        if any(&["ended", "deleted"]) {
            self.other_sessions(&mut all).await;
        }
        if any(&["connection"]) {
            self.connection(&mut all).await;
        }
        if any(&["recipe", "slash", "schedule", "app", "prompt", "setting"]) {
            self.prepared(&mut all).await;
        }
        if any(&["talk", "note", "invocation", "event", "shelf"]) {
            self.adk_session(&mut all).await;
        }
        if any(&["context", "task", "push", "asked"]) {
            self.a2a_task(&mut all).await;
        }
        all
    }

    fn run_of(&self, text: &str) -> Value {
        let input = json!([{ "role": "user", "parts": [{ "content": text }] }]);
        json!({ "agent_name": self.agent(), "mode": "sync", "input": input })
    }

    async fn asking_session(&self, all: &mut Belongings) {
        let run = self.ok(&all.token, "/runs", &self.run_of(&asking(&all.name))).await;
        assert_eq!(run["status"], "awaiting", "{run}");
        let session: SessionId = run["session_id"].as_str().unwrap().parse().unwrap();
        let open = self.app.services().hub.session_view(session).await.unwrap().run.unwrap();
        let question = &open.questions[0];
        let title = json!({ "name": all.secret() });
        let named = self.ask(Some(&all.token), &Method::PUT, &format!("/sessions/{session}/name"), Some(&title)).await;
        assert_eq!(named.0, 200, "{named:?}");
        let extension = format!("{}server", all.name);
        let server = json!({ "type": "streamable_http", "name": extension, "uri": "https://mcp.invalid/x" });
        self.ok(&all.token, "/agent/add_extension", &json!({ "session_id": session, "config": server })).await;
        all.ids.extend([
            ("session", session.to_string()),
            ("run", open.id.to_string()),
            ("question", question.id.to_string()),
            ("call", question.call.unwrap().to_string()),
            ("extension", extension),
        ]);
    }

    async fn other_sessions(&self, all: &mut Belongings) {
        let ended = self.ok(&all.token, "/runs", &self.run_of(&all.secret())).await;
        let deleted = self.ok(&all.token, "/agent/start", &json!({})).await["id"].as_str().unwrap().to_owned();
        let gone = self.ask(Some(&all.token), &Method::DELETE, &format!("/sessions/{deleted}"), None).await;
        assert_eq!(gone.0, 200, "{gone:?}");
        all.ids.extend([("ended", ended["session_id"].as_str().unwrap().to_owned()), ("deleted", deleted)]);
    }

    async fn connection(&self, all: &mut Belongings) {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } });
        let response = self.sent(self.client.post(self.url("/acp")).bearer_auth(&all.token).json(&hello)).await;
        let connection = response.headers()["acp-connection-id"].to_str().unwrap().to_owned();
        all.ids.insert("connection", connection);
    }

    /// Recipes, schedules, apps, prompts and settings.
    async fn prepared(&self, all: &mut Belongings) {
        let (token, name, secret) = (&all.token, &all.name, all.secret());
        let recipe = json!({ "version": "1.0.0", "title": secret, "description": "d", "prompt": secret });
        let saved = self.ok(token, "/recipes/save", &json!({ "recipe": recipe, "id": format!("{name}-recipe") })).await;
        let slash = json!({ "id": saved["id"], "slash_command": format!("{name}-slash") });
        self.ok(token, "/recipes/slash-command", &slash).await;
        let job = json!({ "id": format!("{name}-schedule"), "recipe": recipe, "cron": "0 0 1 1 *" });
        self.ok(token, "/schedule/create", &job).await;
        let page = format!("<html><title>{name} page</title>{secret}</html>");
        self.ok(token, "/agent/import_app", &json!({ "html": page })).await;
        self.ok(token, "/agent/prompts", &json!({ "name": format!("{name}-prompt"), "content": secret })).await;
        let setting = json!({ "key": format!("{name}-setting"), "value": secret, "is_secret": false });
        self.ok(token, "/config/upsert", &setting).await;
        let named = |what: &str| format!("{name}-{what}");
        all.ids.extend([
            ("recipe", named("recipe")),
            ("slash", named("slash")),
            ("schedule", named("schedule")),
            ("app", format!("{name} page")),
            ("prompt", named("prompt")),
            ("setting", named("setting")),
        ]);
    }

    async fn adk_session(&self, all: &mut Belongings) {
        let (token, name) = (&all.token, &all.name);
        let talk = format!("{name}-talk");
        let at = format!("/apps/{}/users/{}/sessions/{talk}", self.agent(), crate::scopes::tenants::USER);
        self.ok(token, &at, &json!({ "state": { "kept": all.secret(), "user:kept": all.secret() } })).await;
        let note = format!("{name}-note.txt");
        for filename in [note.clone(), format!("user:{note}")] {
            let artifact = json!({ "filename": filename, "artifact": { "text": all.secret() } });
            self.ok(token, &format!("{at}/artifacts"), &artifact).await;
        }
        let said = json!({ "newMessage": { "role": "user", "parts": [{ "text": all.secret() }] } });
        let events = self.ok(token, &format!("{at}/run"), &said).await;
        let last = events.as_array().unwrap().last().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let invocation = text(&last["invocationId"]);
        let run = self.ask(Some(token), &Method::GET, &format!("/runs/{}", &invocation[2..]), None).await;
        let shelf = text(&serde_json::from_str::<Value>(&run.1).unwrap()["session_id"]);
        all.ids.extend([
            ("talk", talk),
            ("note", note),
            ("invocation", invocation),
            ("event", text(&last["id"])),
            ("shelf", shelf),
        ]);
    }

    /// A call of A2A that must succeed, once the disk keeps up.
    async fn rpc(&self, token: &str, call: &Value) -> Value {
        loop {
            let answer = self.ok(token, "/a2a", call).await;
            if answer.get("error").is_none() {
                return answer;
            }
            assert_eq!(answer["error"]["data"][0]["reason"], "UNAVAILABLE", "{answer}");
        }
    }

    /// A task that waits for an answer, and somebody who is told how it goes on.
    async fn a2a_task(&self, all: &mut Belongings) {
        let (token, name) = (&all.token, &all.name);
        let context = format!("{name}-context");
        let parts = json!([{ "text": asking(name) }]);
        let message = json!({ "messageId": "m1", "contextId": context, "role": "ROLE_USER", "parts": parts });
        let rpc =
            |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let sent = self.rpc(token, &rpc("SendMessage", json!({ "message": message }))).await;
        let task = sent["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned();
        let push = format!("{name}-push");
        let config = json!({ "taskId": task, "id": push, "url": "https://hook.invalid/x", "token": all.secret() });
        self.rpc(token, &rpc("CreateTaskPushNotificationConfig", config)).await;
        let run = self.app.services().hub.store().run(task.parse().unwrap()).await.unwrap().unwrap();
        let asked =
            self.app.services().hub.session_view(run.session).await.unwrap().run.unwrap().questions[0].id.to_string();
        all.ids.extend([("context", context), ("task", task), ("push", push), ("asked", asked)]);
    }
}
