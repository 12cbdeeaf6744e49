//! What one principal sees of another at every route: nothing, with whatever id, in whatever place.

use futures::{StreamExt as _, stream};
use gander_gateway::server::ROUTES;
use gander_http::Verb;
use reqwest::{Method, Response};
use serde_json::json;

use std::collections::BTreeSet;

use crate::scopes::belongings::{Belongings, FULL, made_up};
use crate::scopes::rows::{Filled, Row, Template, rows};
use crate::scopes::{SETS, TestServer};

pub use crate::scopes::rows::USER;

/// Parameters that name what everybody has.
const SHARED: [&str; 4] = ["{app}", "{user}", "{agent}", "{*path}"];

fn routes() -> Vec<String> {
    let method = |verb| match verb {
        Verb::Get => "GET",
        Verb::Post => "POST",
        Verb::Put => "PUT",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
    };
    ROUTES.iter().map(|route| format!("{} {}", method(route.verb), route.path)).collect()
}

/// Every request of the table.
fn templates() -> Vec<(Row, Template)> {
    rows(&routes()).into_iter().filter_map(|row| Some((row.clone(), row.asked?))).collect()
}

/// Everything that is found fault with, several requests at a time: most of their time is the disk's.
async fn tried<F>(templates: Vec<(Row, Template)>, check: impl Fn(usize, (Row, Template)) -> F) -> Vec<String>
where
    F: Future<Output = Vec<String>>,
{
    let checks = stream::iter(templates).enumerate().map(|(number, template)| check(number, template));
    checks.buffered(16).concat().await
}

#[test]
fn every_route_has_a_row() {
    let (real, rows) = (routes(), rows(&routes()));
    let stated: BTreeSet<String> = rows.iter().map(Row::name).collect();
    assert_eq!(stated, real.iter().cloned().collect());
    for row in rows {
        let named = row.route.split('/').filter(|piece| piece.starts_with('{') && !SHARED.contains(piece)).count();
        let slots = row.asked.as_ref().map_or(0, |asked| asked.slots().len());
        assert!(named == 0 || slots > 0 || !row.reason.is_empty(), "{}: which id, or why none?", row.name());
    }
}

impl TestServer {
    /// Status and text of an answer. A stream that is only listened to has none.
    pub async fn answer(&self, token: &str, method: &Method, request: &Filled) -> (u16, String) {
        let mut asked = self.client.request(method.clone(), self.url(&request.address)).bearer_auth(token);
        if request.headers.iter().all(|(name, _)| *name != "a2a-version") {
            asked = asked.header("a2a-version", "1.0");
        }
        for (name, value) in &request.headers {
            asked = asked.header(*name, value);
        }
        if let Some(body) = &request.body {
            asked = asked.header("content-type", "application/json").body(body.clone());
        }
        loop {
            let response = self.sent(asked.try_clone().unwrap()).await;
            let status = response.status().as_u16();
            if *method == Method::GET && is_stream(&response) {
                return (status, "a stream".to_owned());
            }
            let text = first(response).await;
            // JSON-RPC says so in the answer.
            if !text.contains(r#""reason":"UNAVAILABLE""#) {
                return (status, text);
            }
        }
    }

    /// What is answered about this one's thing, and about one of the same form that nobody has.
    async fn both(
        &self,
        token: &str,
        row: &Row,
        asked: &Template,
        base: &Belongings,
        of: (&str, &str),
    ) -> [(u16, String); 2] {
        let (slot, real) = of;
        let (agent, fake) = (self.agent(), made_up(real));
        let mut answers = Vec::new();
        // The made-up one first: what the other one does must not be why they differ.
        for id in [fake.as_str(), real] {
            let request = asked.filled(&agent, |name| if name == slot { id } else { base.id(name) });
            answers.push(normal(self.answer(token, &row.method, &request).await, id, base));
        }
        answers.reverse();
        answers.try_into().unwrap()
    }
}

fn is_stream(response: &Response) -> bool {
    response.headers().get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// The whole text, or the first event: a stream may go on for as long as it is read.
async fn first(mut response: Response) -> String {
    if !is_stream(&response) {
        return response.text().await.unwrap();
    }
    let mut text = String::new();
    while !text.contains("data:") || !text.ends_with("\n\n") {
        let Some(chunk) = response.chunk().await.unwrap() else { break };
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    text
}

/// What an answer says, without the ids of the request and without what differs from call to call.
pub fn normal(answer: (u16, String), id: &str, base: &Belongings) -> (u16, String) {
    let ids = [id].into_iter().chain(base.slots().map(|slot| base.id(slot)));
    let text = ids.fold(answer.1, |text, id| text.replace(id, "<id>").replace(&id.replace(' ', "%20"), "<id>"));
    let mut out = String::new();
    let mut word = String::new();
    for letter in text.chars().chain([' ']) {
        if letter.is_ascii_alphanumeric() || letter == '-' {
            word.push(letter);
            continue;
        }
        let uuid = word.len() >= 36 && word.matches('-').count() >= 4;
        let mut masked: Vec<char> =
            word.chars().map(|letter| if letter.is_ascii_digit() { '#' } else { letter }).collect();
        masked.dedup_by(|next, before| *next == '#' && *before == '#');
        match uuid {
            true => out.push_str("<id>"),
            false => out.extend(masked),
        }
        out.push(letter);
        word.clear();
    }
    (answer.0, out)
}

/// A row that its owner is told nothing else about shows nothing: it must reach what it is about.
#[tokio::test]
async fn every_id_counts_for_its_owner() {
    let server = &TestServer::open().await;
    // Each has an owner of its own: what is asked may change things, or take them away.
    let idle = tried(templates(), async |number, (row, asked)| {
        let mut idle = Vec::new();
        for slot in asked.slots().iter().filter(|slot| slot.counts) {
            let ann = server.belongings_for(&format!("ann-{number}-{}", slot.name), |slot| asked.names(slot)).await;
            let [real, fake] = server.both(&ann.token, &row, &asked, &ann, (&slot.name, ann.id(&slot.name))).await;
            if real == fake {
                idle.push(format!("{} with a {}: {real:?}", row.name(), slot.name));
            }
        }
        if let Some(shown) = asked.shows.as_ref().filter(|shown| !shown.is_empty()) {
            let ann = server.belongings_for(&format!("ann-{number}"), |slot| asked.names(slot)).await;
            let request = asked.filled(&server.agent(), |name| ann.id(name));
            let (_, text) = server.answer(&ann.token, &row.method, &request).await;
            let missing = shown.iter().filter(|slot| !text.contains(ann.id(slot)));
            idle.extend(missing.map(|slot| format!("{} shows no {slot}: {text}", row.name())));
        }
        idle
    });
    let idle = idle.await;
    assert!(idle.is_empty(), "{} show nothing:\n{}", idle.len(), idle.join("\n"));
}

#[tokio::test]
async fn anothers_ids_look_made_up_at_every_route_with_every_scope() {
    let server = TestServer::open().await;
    let ann = server.belongings("ann").await;
    let (mut leaks, mut tried) = (Vec::new(), 0);
    for (name, scopes) in SETS {
        let bob = server.token("bob", scopes);
        for (row, asked) in templates() {
            for slot in asked.slots() {
                let [real, fake] = server.both(&bob, &row, &asked, &ann, (&slot.name, ann.id(&slot.name))).await;
                tried += 1;
                if real != fake || real.1.contains(&ann.secret()) {
                    leaks.push(format!("{} with a {} as {name}:\n  {real:?}\n  {fake:?}", row.name(), slot.name));
                }
            }
        }
    }
    assert!(tried > 1_000, "only {tried} pairs were tried");
    assert!(leaks.is_empty(), "{} leaks of {tried}:\n{}", leaks.len(), leaks.join("\n"));
}

/// One id of another's among one's own, which are right.
#[tokio::test]
async fn anothers_id_looks_made_up_beside_ones_own() {
    let server = &TestServer::open().await;
    let ann = &server.belongings("ann").await;
    let several = templates().into_iter().filter(|(_, asked)| asked.slots().len() > 1).collect();
    let leaks = tried(several, async |number, (row, asked)| {
        let mut leaks = Vec::new();
        for slot in asked.slots() {
            let mut told = Vec::new();
            for (turn, id) in [ann.id(&slot.name).to_owned(), made_up(ann.id(&slot.name))].into_iter().enumerate() {
                let bob = server
                    .belongings_for(&format!("bob-{number}-{}-{turn}", slot.name), |slot| asked.names(slot))
                    .await;
                let own = |name: &str| if name == slot.name { &id } else { bob.id(name) };
                let request = asked.filled(&server.agent(), own);
                let answer = server.answer(&bob.token, &row.method, &request).await;
                told.push(normal(answer, &id, &bob));
            }
            if told[0] != told[1] || told[0].1.contains(&ann.secret()) {
                leaks.push(format!("{} with another's {}:\n  {:?}\n  {:?}", row.name(), slot.name, told[0], told[1]));
            }
        }
        leaks
    });
    let leaks = leaks.await;
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}

#[tokio::test]
async fn lists_show_ones_own_alone() {
    let server = TestServer::open().await;
    let ann = server.belongings("ann").await;
    let mut leaks = Vec::new();
    for (name, scopes) in SETS {
        let bob = server.token("bob", scopes);
        for (row, asked) in templates().into_iter().filter(|(_, asked)| asked.slots().is_empty()) {
            let request = asked.filled(&server.agent(), |name| panic!("{name}"));
            let (status, text) = server.answer(&bob, &row.method, &request).await;
            let shown = ann.secrets().find(|secret| text.contains(secret));
            leaks.extend(shown.map(|shown| format!("{} as {name}: {shown} in {status} {text}", row.name())));
        }
    }
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}

/// An id in the place of another kind's: a run's where a session is named, and so on.
#[tokio::test]
async fn anothers_ids_look_made_up_in_places_of_another_kind() {
    let server = TestServer::open().await;
    let ann = server.belongings("ann").await;
    let bob = server.token("bob", FULL);
    let (mut leaks, mut tried) = (Vec::new(), 0);
    for (row, asked) in templates().into_iter().filter(|(row, _)| !row.route.starts_with("/api/")) {
        for slot in asked.slots() {
            for kind in ann.slots().filter(|kind| *kind != slot.name) {
                let [real, fake] = server.both(&bob, &row, &asked, &ann, (&slot.name, ann.id(kind))).await;
                tried += 1;
                if real != fake || real.1.contains(&ann.secret()) {
                    leaks.push(format!("{} with a {kind} as a {}:\n  {real:?}\n  {fake:?}", row.name(), slot.name));
                }
            }
        }
    }
    assert!(tried > 2_000, "only {tried} pairs were tried");
    assert!(leaks.is_empty(), "{} leaks of {tried}:\n{}", leaks.len(), leaks.join("\n"));
}

/// A run id is the caller's own name for a run: what another calls so is another run.
#[tokio::test]
async fn two_principals_may_choose_the_same_run_id() {
    let server = TestServer::open().await;
    let (ann, bob) = (server.token("ann", FULL), server.token("bob", FULL));
    let chosen = "019bffff-0000-7000-8000-0000000000aa";
    let new = |text: &str| {
        let input = json!([{ "role": "user", "parts": [{ "content": text }] }]);
        json!({ "agent_name": "echo", "mode": "sync", "input": input, "run_id": chosen })
    };
    let first = server.ok(&ann, "/runs", &new("Ann's")).await;
    let second = server.ok(&bob, "/runs", &new("Bob's")).await;
    assert_ne!(first["session_id"], second["session_id"]);
    for (token, text) in [(&ann, "Ann's"), (&bob, "Bob's")] {
        let (status, run) = server.ask(Some(token), &Method::GET, &format!("/runs/{chosen}"), None).await;
        assert!(status == 200 && run.contains(text), "{run}");
    }
}
