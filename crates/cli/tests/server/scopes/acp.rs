//! Every method of the Agent Client Protocol, of goose's extensions and of our own, with every scope.

use std::collections::BTreeSet;

use gander_domain::caller::Scope;
use serde_json::{Value, json};

use crate::scopes::{SETS, TestServer, is_denied, suffices};

/// No session, question, schedule or recipe has it.
const NOTHING: &str = "019bffff-0000-7000-8000-000000000000";

const READ_BY_ANYBODY: &[Scope] = &[Scope::Prompt];
const APPROVE: &[Scope] = &[Scope::Prompt, Scope::Approve];

/// Methods that need more than a connection does, whatever their parameters say; `owner` for those of the owner alone.
const MORE: [(&str, &str); 6] = [
    ("_goose/unstable/elicitation/respond", "approve"),
    ("_goose/unstable/config/extensions/add", "owner"),
    ("_goose/unstable/config/extensions/remove", "owner"),
    ("_goose/unstable/config/extensions/toggle", "owner"),
    ("_goose/unstable/session/extensions/add", ""),
    ("_goose/unstable/extensions/add", ""),
];

/// Methods of our own that every client may call.
const FOR_EVERYBODY: [&str; 12] = [
    "_gander/agents/list",
    "_gander/artifacts/list",
    "_gander/artifacts/read",
    "_gander/extensions/login",
    "_gander/extensions/login/wait",
    "_gander/extensions/status",
    "_gander/session/history",
    "_gander/session/inspect",
    "_gander/session/wait",
    "_gander/session/watch",
    "_gander/sessions/watch",
    "_gander/workspace/files",
];

/// The names that stand before an arrow in these sources: a method that nobody listed cannot be forgotten.
pub fn methods() -> BTreeSet<String> {
    let wire = include_str!("../../../../wire/src/acp/requests/mod.rs");
    let goose = [
        include_str!("../../../../gateway/src/protocols/goose/extension_methods.rs"),
        include_str!("../../../../gateway/src/protocols/goose/recipe_methods.rs"),
    ];
    let own = include_str!("../../../../gateway/src/protocols/acp/gander_methods.rs");
    let everybodys = include_str!("../../../../gateway/src/protocols/acp/client_methods.rs");
    let arms = |text: &str| -> Vec<String> {
        let arms = text.lines().filter(|line| line.trim_start().starts_with('"') && line.contains("=>"));
        let names = arms.flat_map(|line| line.split("=>").next().unwrap_or_default().split('"').skip(1).step_by(2));
        names.map(str::to_owned).collect()
    };
    let requests = wire.split("pub fn read_acp_client_request(").nth(1).unwrap();
    let requests = requests.split("\n}").next().unwrap();
    let goose = goose.iter().flat_map(|text| arms(text)).filter(|name| name.contains('/'));
    let goose = goose.map(|name| format!("_goose/unstable/{name}"));
    arms(requests).into_iter().chain(goose).chain(arms(own)).chain(arms(everybodys)).collect()
}

/// Parameters that every method finds something in.
fn params(session: &Value) -> Value {
    json!({
        "sessionId": session, "prompt": [{ "type": "text", "text": "hello" }], "title": "t", "modeId": "general",
        "modelId": "demo/demo", "configId": "policy", "value": "read_only", "elicitationId": NOTHING,
        "userData": {}, "key": "GOOSE_MODE", "name": "none", "configKey": "none", "enabled": true, "keys": [],
        "values": [], "config": { "type": "builtin", "name": "none" }, "extensionConfig": {}, "data": "{}",
        "truncateFrom": 0, "workingDir": "/nowhere", "providerId": "demo", "id": "none", "recipe": {}, "app": "none",
        "html": "", "cron": "", "methodId": "none", "folder": "/nowhere", "log": {}, "content": "", "deeplink": "",
        "protocolVersion": 1,
    })
}

#[tokio::test]
async fn every_method_needs_what_the_table_says() {
    let server = TestServer::open().await;
    let methods = methods();
    for known in ["session/prompt", "session/set_config_option", "_session/steering", "_gander/trust/add"] {
        assert!(methods.contains(known), "{known} is not among {methods:?}");
    }
    let mut wrong = Vec::new();
    for (name, scopes) in SETS {
        let token = server.token("ann", scopes);
        let mut socket = match server.socket(&token).await {
            Ok(socket) => socket,
            Err(status) => {
                assert!(status == 403 && !suffices(scopes, READ_BY_ANYBODY), "{name}: {status}");
                continue;
            }
        };
        assert!(suffices(scopes, READ_BY_ANYBODY), "{name} must not connect");
        let session = socket.call("session/new", json!({ "mcpServers": [] })).await["result"]["sessionId"].clone();
        for method in &methods {
            if matches!(method.as_str(), "initialize" | "session/delete" | "session/close" | "session/archive") {
                continue; // the connection and the session are needed for the others
            }
            let answer = socket.call(method, params(&session)).await;
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            let may = match MORE.iter().find(|(known, _)| known == method) {
                Some((_, "approve")) => suffices(scopes, APPROVE),
                Some((_, "owner")) => false,
                Some(_) | None => true,
            };
            // Methods of our own command line are for local clients: over the network there are none of this name.
            let local = method.starts_with("_gander/") && !FOR_EVERYBODY.contains(&method.as_str());
            let unknown = local != (answer["error"]["code"] == -32601) && method.starts_with("_gander/");
            if is_denied(message) == may || unknown {
                wrong.push(format!("{method} as {name}: {answer}"));
            }
        }
        for (config, value, needs) in [("policy", "auto", APPROVE), ("policy", "read_only", READ_BY_ANYBODY)] {
            let params = json!({ "sessionId": session, "configId": config, "value": value });
            let answer = socket.call("session/set_config_option", params).await;
            if is_denied(answer["error"]["message"].as_str().unwrap_or_default()) == suffices(scopes, needs) {
                wrong.push(format!("{config} {value} as {name}: {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

/// A value of the wrong type is refused in words; it stops nobody.
#[tokio::test]
async fn an_extension_that_is_a_text_is_refused_in_words() {
    let server = TestServer::open().await;
    let mut socket = server.socket(&server.token).await.ok().unwrap();
    for wrong in [json!("x"), json!(7), json!([1]), json!(null), json!(true)] {
        let params = json!({ "name": "x", "extensionConfig": wrong });
        let answer = socket.call("_goose/unstable/config/extensions/add", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{wrong}: {answer}");
    }
    for wrong in [json!("x"), json!(7), json!([1]), json!({ "acp": "x" }), json!({ "acp": [1] })] {
        let session = socket.call("session/new", json!({ "mcpServers": [] })).await["result"]["sessionId"].clone();
        let prompt = json!([{ "type": "text", "text": "hello" }]);
        socket.call("session/prompt", json!({ "sessionId": session, "prompt": prompt, "_meta": wrong })).await;
    }
    let (_, status) = server.ask(Some(&server.token), &reqwest::Method::GET, "/gander/status", None).await;
    assert_eq!(serde_json::from_str::<Value>(&status).unwrap()["panics"], 0);
}
