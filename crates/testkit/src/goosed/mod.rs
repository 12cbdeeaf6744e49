//! A goosed on loopback that does what a test has told it to: real HTTP, no agent behind it.

mod routes;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::upstream::next_request;

/// A running goosed; it stops when dropped.
#[derive(Debug)]
pub struct Goosed {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// One thing that a reply does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Tells this event.
    Event(Value),
    /// Goes on once a tool was confirmed.
    Confirmed,
    /// Goes on once a form was filled in.
    Elicited,
    /// Gives nothing but signs of life for so long.
    Alive(Duration),
    /// Breaks the connection.
    Cut,
    /// Gives nothing but signs of life until the client leaves.
    Hang,
}

/// What it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// Method and path.
    pub route: String,
    /// The body; null if there was none.
    pub body: Value,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    key: Option<String>,
    heard: Vec<Heard>,
    sessions: Vec<(String, String)>,
    replies: VecDeque<Vec<Step>>,
    /// Statuses that a route answers with instead, one after the other.
    faults: HashMap<String, VecDeque<u16>>,
    confirmed: usize,
    elicited: usize,
    left: usize,
}

impl Goosed {
    /// Starts one on a free port that wants this key.
    pub async fn start(key: Option<&str>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, shared) = (listener.local_addr()?, Arc::new(Shared::default()));
        shared.lock().key = key.map(str::to_owned);
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, task })
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What the next reply does. Without any it repeats what it was told.
    pub fn will_reply(&self, steps: Vec<Step>) {
        self.shared.lock().replies.push_back(steps);
    }

    /// This route answers with these statuses first, such as `POST /reply`.
    pub fn will_fail(&self, route: &str, statuses: &[u16]) {
        self.shared.lock().faults.entry(route.to_owned()).or_default().extend(statuses);
    }

    /// Has a session that nobody began through what is tested. One called `own_…` has a conversation.
    pub fn has_session(&self, id: &str) {
        self.shared.lock().sessions.push((id.to_owned(), "/srv/goose".to_owned()));
    }

    /// Forgets every session, as after a loss of its data.
    pub fn forget(&self) {
        self.shared.lock().sessions.clear();
    }

    /// Everything that was asked of a route.
    pub fn heard(&self, route: &str) -> Vec<Value> {
        self.shared.lock().heard.iter().filter(|heard| heard.route == route).map(|heard| heard.body.clone()).collect()
    }

    /// Every route that was asked for, in order.
    pub fn routes(&self) -> Vec<String> {
        self.shared.lock().heard.iter().map(|heard| heard.route.clone()).collect()
    }

    /// Waits until a route was asked for so many times.
    pub async fn hears(&self, route: &str, times: usize) {
        self.shared.wait(|state| state.heard.iter().filter(|heard| heard.route == route).count() >= times).await;
    }

    /// Waits until so many clients have left in the middle of a reply.
    pub async fn is_left(&self, times: usize) {
        self.shared.wait(|state| state.left >= times).await;
    }
}

impl Drop for Goosed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }

    /// Waits for a condition, and not for ever.
    async fn wait(&self, holds: impl Fn(&State) -> bool) {
        let waited = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if holds(&self.lock()) {
                    return;
                }
                changed.await;
            }
        });
        assert!(waited.await.is_ok(), "it never happened, heard: {:?}", self.lock().heard);
    }
}

/// An answer in words, under one id.
pub fn says(text: &str) -> Step {
    Step::Event(message("chatcmpl-1", "assistant", json!({"type": "text", "text": text})))
}

/// The agent wants a tool.
pub fn calls(id: &str, name: &str, arguments: &Value) -> Step {
    let value = json!({"name": name, "arguments": arguments});
    let call = json!({"type": "toolRequest", "id": id, "toolCall": {"status": "success", "value": value}});
    Step::Event(message("chatcmpl-1", "assistant", call))
}

/// What a tool gave.
pub fn gives(id: &str, text: &str) -> Step {
    let value = json!({"content": [{"type": "text", "text": text}], "isError": false});
    let content = json!({"type": "toolResponse", "id": id, "toolResult": {"status": "success", "value": value}});
    Step::Event(message("tool-1", "user", content))
}

/// Goose wants to know whether a tool may run.
pub fn asks(id: &str, name: &str) -> Step {
    let data = json!({"actionType": "toolConfirmation", "id": id, "toolName": name, "arguments": {}, "prompt": null});
    let mut message = message("", "assistant", json!({"type": "actionRequired", "data": data}));
    message["message"]["id"] = Value::Null;
    Step::Event(message)
}

/// The turn is over.
pub fn finishes(input: u64, output: u64) -> Step {
    Step::Event(json!({"type": "Finish", "reason": "stop", "token_state": tokens(input, output)}))
}

fn message(id: &str, role: &str, content: Value) -> Value {
    let metadata = json!({"userVisible": true, "agentVisible": true});
    let message = json!({"id": id, "role": role, "created": 1, "content": [content], "metadata": metadata});
    json!({"type": "Message", "message": message, "token_state": tokens(0, 0)})
}

fn tokens(input: u64, output: u64) -> Value {
    json!({
        "inputTokens": input, "outputTokens": output, "totalTokens": input + output,
        "accumulatedInputTokens": input, "accumulatedOutputTokens": output,
        "accumulatedTotalTokens": input + output, "accumulatedCost": null,
    })
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(connection(stream, Arc::clone(&shared)));
    }
}

/// A client that goes away in the middle is no error.
async fn connection(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut buffer = Vec::new();
    while let Ok(Some(request)) = next_request(&mut stream, &mut buffer).await {
        if routes::answer(&mut stream, &request, &shared).await.is_err() {
            return;
        }
    }
}
