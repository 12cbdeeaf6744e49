//! Every route with every scope.

use gander_domain::caller::Scope;
use gander_gateway::server::ROUTES;
use gander_http::Verb;
use reqwest::Method;
use serde_json::{Value, json};

use crate::scopes::{SETS, TestServer, is_denied, suffices};

/// Who may come in: a method, a path and a scope a line. Stated here, not taken from the code.
const TABLE: &str = include_str!("routes.txt");

/// No session, run, question, schedule or app has it.
const NOTHING: &str = "019bffff-0000-7000-8000-000000000000";

struct Row {
    method: Method,
    path: &'static str,
    needs: Option<Scope>,
}

fn rows() -> Vec<Row> {
    let row = |line: &'static str| {
        let words: Vec<&str> = line.split(' ').collect();
        let needs = match words[2] {
            "public" => None,
            "read" => Some(Scope::Read),
            "prompt" => Some(Scope::Prompt),
            "approve" => Some(Scope::Approve),
            "admin" => Some(Scope::Admin),
            other => panic!("no such scope: {other}"),
        };
        Row { method: words[0].parse().unwrap(), path: words[1], needs }
    };
    TABLE.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

fn method(verb: Verb) -> Method {
    match verb {
        Verb::Get => Method::GET,
        Verb::Post => Method::POST,
        Verb::Put => Method::PUT,
        Verb::Patch => Method::PATCH,
        Verb::Delete => Method::DELETE,
    }
}

/// The path with every parameter filled in.
pub fn filled(path: &str, value: &str) -> String {
    let piece = |piece: &str| if piece.starts_with('{') { value.to_owned() } else { piece.to_owned() };
    path.split('/').map(piece).collect::<Vec<_>>().join("/")
}

#[test]
fn the_table_has_every_route_once() {
    let mut stated: Vec<String> = rows().iter().map(|row| format!("{} {}", row.method, row.path)).collect();
    let mut real: Vec<String> = ROUTES.iter().map(|route| format!("{} {}", method(route.verb), route.path)).collect();
    stated.sort();
    real.sort();
    assert_eq!(stated, real);
}

#[tokio::test]
async fn every_route_lets_in_whom_the_table_says() {
    let server = TestServer::with(&[("GANDER_LIMITS_BAD_TOKENS_PER_MINUTE", "1000000")]).await;
    let body = json!({});
    let mut wrong = Vec::new();
    let mut check = |row: &Row, who: &str, expected: &str, (status, text): (u16, String)| {
        let got = match status {
            401 => "401",
            403 if is_denied(&text) => "403",
            _ => "in",
        };
        if got != expected {
            wrong.push(format!("{} {} as {who}: {status} instead of {expected}: {text:.120}", row.method, row.path));
        }
    };
    for row in rows() {
        let body = (row.method != Method::GET && row.method != Method::DELETE).then_some(&body);
        let path = filled(row.path, NOTHING);
        let nobody = if row.needs.is_none() { "in" } else { "401" };
        check(&row, "nobody", nobody, server.ask(None, &row.method, &path, body).await);
    }
    for (name, scopes) in SETS {
        let token = server.token("ann", scopes);
        for row in rows() {
            let body = (row.method != Method::GET && row.method != Method::DELETE).then_some(&body);
            let may = row.needs.is_none_or(|needed| suffices(scopes, &[needed]));
            let answer = server.ask(Some(&token), &row.method, &filled(row.path, NOTHING), body).await;
            check(&row, name, if may { "in" } else { "403" }, answer);
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

/// Links are followed and pages fetched ahead by programs that nobody asked.
#[tokio::test]
async fn no_get_changes_anything() {
    let server = TestServer::open().await;
    let token = server.token("ann", &[Scope::Prompt, Scope::Approve, Scope::Admin]);
    let session = server.ok(&token, "/agent/start", &json!({})).await["id"].as_str().unwrap().to_owned();
    let before = server.stored_figures(&token).await;
    let mut found = 0;
    for row in rows().iter().filter(|row| row.method == Method::GET) {
        for value in [session.as_str(), "gander", NOTHING] {
            // Only the head: some are streams without an end.
            let request = server.client.get(server.url(&filled(row.path, value))).header("a2a-version", "1.0");
            found += u32::from(server.sent(request.bearer_auth(&token)).await.status().is_success());
        }
    }
    assert!(found > 40, "only {found} of them found anything");
    assert_eq!(server.stored_figures(&token).await, before, "something was stored");
}

impl TestServer {
    /// How much the store has written, for sessions and for anything else.
    async fn stored_figures(&self, token: &str) -> Vec<String> {
        let (status, text) = self.ask(Some(token), &Method::GET, "/metrics", None).await;
        assert_eq!(status, 200, "{text}");
        let is_stored =
            |line: &&str| line.starts_with("gander_store_commits") || line.starts_with("gander_store_entries");
        text.lines().filter(is_stored).map(str::to_owned).collect()
    }
}

/// What a body asks for can need more than its route.
#[tokio::test]
async fn every_body_that_asks_for_more_needs_more() {
    let server = TestServer::open().await;
    let sh = json!({ "type": "stdio", "name": "x", "cmd": "true", "args": [] });
    let prompt: &[Scope] = &[Scope::Prompt];
    let approve: &[Scope] = &[Scope::Prompt, Scope::Approve];
    for (name, scopes) in SETS {
        let starter = server.token("ann", &[Scope::Prompt]);
        let session = server.ok(&starter, "/agent/start", &json!({})).await["id"].clone();
        let token = server.token("ann", scopes);
        let mode = |mode: &str| json!({ "session_id": session, "goose_mode": mode });
        let saved = |value: &str| json!({ "key": "GOOSE_MODE", "value": value, "is_secret": false });
        let rows: [(&str, Value, &[Scope]); 8] = [
            ("/agent/update_session", mode("chat"), prompt),
            ("/agent/update_session", mode("approve"), approve),
            ("/agent/update_session", mode("smart_approve"), approve),
            ("/agent/update_session", mode("auto"), approve),
            ("/config/upsert", saved("chat"), prompt),
            ("/config/upsert", saved("auto"), approve),
            ("/config/upsert", saved("smart_approve"), approve),
            ("/sessions/import", json!({ "json": "{\"conversation\":[],\"goose_mode\":\"auto\"}" }), prompt),
        ];
        for (path, body, needs) in rows {
            let (status, text) = server.post(&token, path, &body).await;
            let may = suffices(scopes, needs);
            assert_eq!(may, status == 200, "{path} {body} as {name}: {status} {text}");
            assert_eq!(may, !is_denied(&text), "{path} {body} as {name}: {status} {text}");
        }
        // What every session has is the owner's alone, and programs are not named over the network.
        for body in
            [json!({ "name": "x", "config": sh, "enabled": true }), json!({ "name": "developer", "enabled": false })]
        {
            let (status, text) = server.post(&token, "/config/extensions", &body).await;
            assert!(status == 403 && is_denied(&text), "{body} as {name}: {status} {text}");
        }
        let (status, text) =
            server.post(&token, "/agent/add_extension", &json!({ "session_id": session, "config": sh })).await;
        assert_eq!(status, 403, "as {name}: {text}");
    }
}
