//! Lists are complete, and their limits are numbers that mean something.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::semantics::test_server::{TestServer, text};

/// More sessions than any page has.
const SESSIONS: usize = 1_040;

async fn with_sessions(count: usize) -> (TestServer, BTreeSet<String>) {
    let server = TestServer::open().await;
    let mut made = BTreeSet::new();
    for _ in 0..count / 40 {
        made.extend(futures::future::join_all((0..40).map(|_| server.goose_session())).await);
    }
    (server, made)
}

fn ids(sessions: &Value) -> BTreeSet<String> {
    sessions.as_array().unwrap().iter().map(|session| text(&session["id"])).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_session_is_in_every_list() {
    let (server, made) = with_sessions(SESSIONS).await;
    let all = server.get("/sessions").await.ok();
    assert_eq!((ids(&all["sessions"]) == made, &all["next_cursor"]), (true, &Value::Null), "goose");
    assert_eq!(server.get("/sessions/insights").await.ok()["totalSessions"], SESSIONS);
    let mut found = BTreeSet::new();
    let mut path = "/sessions?limit=300".to_owned();
    let mut pages = 0;
    loop {
        let page = server.get(&path).await.ok();
        found.extend(ids(&page["sessions"]));
        pages += 1;
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/sessions?limit=300&cursor={cursor}");
    }
    assert_eq!((found == made, pages), (true, 4), "goose, page by page");
    let adk = server.get("/apps/gander/users/user/sessions").await.ok();
    assert_eq!(ids(&adk), made, "ADK");
    let mut client = crate::served::pipe::client(&server.app, gander_domain::Principal::owner()).await;
    let (mut found, mut cursor) = (BTreeSet::new(), Value::Null);
    loop {
        let page =
            client.call("session/list", json!({ "cursor": cursor, "_meta": { "unprompted": true } })).await.unwrap();
        let sessions = page["sessions"].as_array().unwrap().iter();
        found.extend(sessions.map(|session| text(&session["sessionId"])));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(found, made, "ACP");
}

#[tokio::test]
async fn a_limit_is_a_number_that_means_something() {
    let (server, made) = with_sessions(40).await;
    for bad in ["0", "-1", "x", "1e3", "99999999999999999999", "1.5", ""] {
        for path in ["/sessions?", "/sessions/search?query=a&", "/schedule/x/sessions?"] {
            let refused = server.get(&format!("{path}limit={bad}")).await;
            assert_eq!(refused.status, 400, "{path}limit={bad}: {}", refused.text);
            assert!(refused.json()["message"].as_str().unwrap().contains("limit"), "{path}: {}", refused.text);
        }
        let refused = server.get(&format!("/apps/gander/users/user/sessions?limit={bad}")).await;
        assert_eq!(refused.status, 422, "ADK limit={bad}: {}", refused.text);
        assert_eq!(refused.json()["detail"][0]["loc"], json!(["query", "limit"]), "{}", refused.text);
        let size = server
            .get_with(&format!("/a2a/gander/tasks?pageSize={bad}"), &[crate::semantics::test_server::VERSION])
            .await;
        assert_eq!(size.status, 400, "A2A pageSize={bad}: {}", size.text);
    }
    for (name, bad) in [("offset", "-1"), ("page", "-1"), ("order", "sideways")] {
        let refused = server.get(&format!("/apps/gander/users/user/sessions?{name}={bad}")).await;
        assert_eq!(refused.json()["detail"][0]["loc"], json!(["query", name]), "{name}={bad}: {}", refused.text);
    }
    assert_eq!(server.get("/sessions?cursor=nonsense").await.status, 400);
    let some = server.get("/apps/gander/users/user/sessions?limit=7&page=2").await.ok();
    assert_eq!(ids(&some).len(), 7);
    let all = server.get("/apps/gander/users/user/sessions?limit=100000").await.ok();
    assert_eq!(ids(&all), made);
    assert_eq!(ids(&server.get("/sessions?limit=7").await.ok()["sessions"]).len(), 7);
}
