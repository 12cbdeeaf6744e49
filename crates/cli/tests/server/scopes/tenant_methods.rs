//! What one principal sees of another through the methods of the Agent Client Protocol and of goose's extensions.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::scopes::acp::methods;
use crate::scopes::belongings::{Belongings, FULL, made_up};
use crate::scopes::rows::{Template, calls};
use crate::scopes::socket::Socket;
use crate::scopes::tenants::normal;
use crate::scopes::{SETS, TestServer};

#[test]
fn every_method_has_a_row() {
    let stated: BTreeSet<String> = calls().iter().map(|(method, _)| (*method).to_owned()).collect();
    assert_eq!(stated, methods());
}

fn templates() -> Vec<(&'static str, Template)> {
    calls().into_iter().filter_map(|(method, template)| Some((method, template?))).collect()
}

/// What a call comes to. Whoever is told to come back does: how busy the disk is, is not what this is about.
async fn told(socket: &mut Socket, method: &str, params: &str) -> String {
    loop {
        let answer = socket.call(method, serde_json::from_str(params).unwrap()).await;
        let answer = json!([answer.get("error"), answer.get("result")]).to_string();
        if !answer.contains("the store is busy") {
            return answer;
        }
    }
}

/// What is told about this id, and about one of the same form that nobody has.
async fn both(
    socket: &mut Socket,
    method: &str,
    template: &Template,
    base: &Belongings,
    of: (&str, &str),
) -> [String; 2] {
    let (slot, real) = of;
    let fake = made_up(real);
    let mut answers = Vec::new();
    // The made-up one first: what the other one does must not be why they differ.
    for id in [fake.as_str(), real] {
        let params = template.filled("", |name| if name == slot { id } else { base.id(name) }).body.unwrap();
        answers.push(normal((0, told(socket, method, &params).await), id, base).1);
    }
    answers.reverse();
    answers.try_into().unwrap()
}

#[tokio::test]
async fn every_id_counts_for_its_owner() {
    let server = &TestServer::open().await;
    let checks = stream::iter(templates()).enumerate().map(async |(number, (method, template))| {
        let mut idle = Vec::new();
        for slot in template.slots().iter().filter(|slot| slot.counts) {
            let ann = server.belongings_for(&format!("ann-{number}-{}", slot.name), |slot| template.names(slot)).await;
            let mut socket = server.socket(&ann.token).await.ok().unwrap();
            let [real, fake] = both(&mut socket, method, &template, &ann, (&slot.name, ann.id(&slot.name))).await;
            if real == fake {
                idle.push(format!("{method} with a {}: {real}", slot.name));
            }
        }
        if let Some(shown) = template.shows.as_ref().filter(|shown| !shown.is_empty()) {
            let ann = server.belongings_for(&format!("ann-{number}"), |slot| template.names(slot)).await;
            let text = told(&mut server.socket(&ann.token).await.ok().unwrap(), method, "{}").await;
            let missing = shown.iter().filter(|slot| !text.contains(ann.id(slot)));
            idle.extend(missing.map(|slot| format!("{method} shows no {slot}: {text}")));
        }
        idle
    });
    let idle: Vec<String> = checks.buffered(8).concat().await;
    assert!(idle.is_empty(), "{} show nothing:\n{}", idle.len(), idle.join("\n"));
}

#[tokio::test]
async fn anothers_ids_look_made_up_at_every_method_with_every_scope() {
    let server = TestServer::open().await;
    let ann = server.belongings("ann").await;
    let (mut leaks, mut tried) = (Vec::new(), 0);
    for (name, scopes) in SETS {
        let Ok(mut socket) = server.socket(&server.token("bob", scopes)).await else { continue };
        for (method, template) in templates() {
            for slot in template.slots() {
                // Also ids of other kinds in its place.
                for kind in ann.slots().filter(|kind| *kind == slot.name || scopes == FULL) {
                    let [real, fake] = both(&mut socket, method, &template, &ann, (&slot.name, ann.id(kind))).await;
                    tried += 1;
                    if real != fake || real.contains(&ann.secret()) {
                        leaks.push(format!("{method} with a {kind} as a {} as {name}:\n  {real}\n  {fake}", slot.name));
                    }
                }
            }
            if template.slots().is_empty() {
                let text = told(&mut socket, method, "{}").await;
                let shown = ann.secrets().find(|secret| text.contains(secret));
                leaks.extend(shown.map(|shown| format!("{method} as {name}: {shown} in {text}")));
            }
        }
    }
    assert!(tried > 1_000, "only {tried} pairs were tried");
    assert!(leaks.is_empty(), "{} leaks of {tried}:\n{}", leaks.len(), leaks.join("\n"));
}

/// One id of another's beside one's own, which are right.
#[tokio::test]
async fn anothers_id_looks_made_up_beside_ones_own() {
    let server = &TestServer::open().await;
    let ann = &server.belongings("ann").await;
    let several = templates().into_iter().filter(|(_, template)| template.slots().len() > 1);
    let checks = stream::iter(several).enumerate().map(async |(number, (method, template))| {
        let mut leaks = Vec::new();
        for slot in template.slots() {
            let mut answers = Vec::new();
            for (turn, id) in [ann.id(&slot.name).to_owned(), made_up(ann.id(&slot.name))].into_iter().enumerate() {
                let bob = server
                    .belongings_for(&format!("bob-{number}-{}-{turn}", slot.name), |slot| template.names(slot))
                    .await;
                let own = |name: &str| if name == slot.name { &id } else { bob.id(name) };
                let params = template.filled("", own).body.unwrap();
                let answer = told(&mut server.socket(&bob.token).await.ok().unwrap(), method, &params).await;
                answers.push(normal((0, answer), &id, &bob).1);
            }
            if answers[0] != answers[1] || answers[0].contains(&ann.secret()) {
                leaks.push(format!("{method} with another's {}: {answers:?}", slot.name));
            }
        }
        leaks
    });
    let leaks: Vec<String> = checks.buffered(8).concat().await;
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}

/// What a client holds open is told of its own sessions alone.
#[tokio::test]
async fn updates_come_from_ones_own_sessions_alone() {
    let server = TestServer::open().await;
    let ann = server.belongings("ann").await;
    let bob = server.belongings("bob").await;
    let mut socket = server.socket(&bob.token).await.ok().unwrap();
    for method in ["session/load", "session/resume", "session/prompt"] {
        let params =
            json!({ "sessionId": ann.id("session"), "mcpServers": [], "prompt": [{ "type": "text", "text": "x" }] });
        let answer = socket.call(method, params).await;
        assert!(answer.get("error").is_some(), "{answer}");
    }
    let answer = json!({ "id": ann.id("question"), "session_id": ann.id("session"), "action": "allow_once" });
    server.ok(&ann.token, "/action-required/tool-confirmation", &answer).await;
    let resumed = server.ok(&ann.token, "/agent/resume", &json!({ "session_id": ann.id("session") })).await;
    assert_eq!(resumed["session"]["id"], ann.id("session"));
    // Whatever Bob was sent before comes before this.
    let own = socket.call("session/load", json!({ "sessionId": bob.id("ended"), "mcpServers": [] })).await;
    assert!(own.get("error").is_none(), "{own}");
    let heard: Vec<Value> = socket.heard;
    assert!(!heard.is_empty(), "one's own history is told");
    let shown = ann.secrets().find(|secret| json!(heard).to_string().contains(secret));
    assert_eq!(shown, None);
}
