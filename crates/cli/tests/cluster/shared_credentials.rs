//! Tokens, browsers and secrets of one node count at the others.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use gander_testkit::harness::{Launch, eventually};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};

use crate::test_cluster::{TestCluster, http_client, schema_for};

const SHORT: Pace = Pace { deltas: 3, between_ms: 0, first_ms: 0, size: 8, word: 4 };

/// What is never in the database.
const SECRET: &str = "hush-of-an-mcp-server";

/// What an axum handler saw of a header.
type Seen = Arc<Mutex<Vec<String>>>;

/// The status that somebody with this token gets at a node.
async fn status_at(cluster: &TestCluster, node: usize, token: &str) -> anyhow::Result<u16> {
    let url = format!("http://{}/agents", cluster.server(node)?.address);
    Ok(http_client()?.get(url).bearer_auth(token).send().await?.status().as_u16())
}

/// A command at a node, and the first line of what it prints.
async fn first_line(cluster: &TestCluster, node: usize, arguments: &[&str]) -> anyhow::Result<String> {
    let printed = cluster.launches[node].stdout(arguments).await?;
    Ok(printed.lines().next().context("nothing was printed")?.to_owned())
}

/// Nodes that have a key in common.
async fn keyed_cluster(url: String, nodes: usize, folder: &Path) -> anyhow::Result<TestCluster> {
    let file = folder.join("cluster.key");
    std::fs::write(&file, "6c6f636b".repeat(8))?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
    let key = file.display().to_string();
    let set_up = |_: usize, launch: Launch| {
        launch.with("GANDER_CLUSTER_KEY_FILE", &key).with("GANDER_A2A_PUSH_ALLOW", "[\"127.0.0.1\"]")
    };
    TestCluster::start_with(url, nodes, set_up).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_one_node_counts_at_the_others_until_it_is_revoked_anywhere() -> anyhow::Result<()> {
    let test = "a_token_of_one_node_counts_at_the_others_until_it_is_revoked_anywhere";
    let Some(url) = schema_for(test) else { return Ok(()) };
    let cluster = TestCluster::start(url, 2).await?;
    let owner = first_line(&cluster, 0, &["token"]).await?;
    assert_ne!(owner, first_line(&cluster, 1, &["token"]).await?, "each data directory has its own");
    assert_eq!([status_at(&cluster, 0, &owner).await?, status_at(&cluster, 1, &owner).await?], [200, 200]);
    let token = first_line(&cluster, 0, &["token", "add", "phone"]).await?;
    assert_eq!(status_at(&cluster, 1, &token).await?, 200, "at once");
    assert_eq!(status_at(&cluster, 0, &token).await?, 200);
    assert_eq!(status_at(&cluster, 1, &format!("{token}0")).await?, 401);
    let listed = cluster.launches[1].stdout(&["token", "list"]).await?;
    ensure!(["phone", "owner@disk-0", "owner@disk-1"].iter().all(|name| listed.contains(name)), "{listed}");
    let raw = format!("SELECT count(*) FROM scope WHERE fact LIKE '%{token}%' OR fact LIKE '%{owner}%'");
    assert_eq!(cluster.count(&raw).await?, 0, "the database holds no token");
    ensure!(!cluster.launches[1].run(&["token", "add", "phone"]).await?.status.success(), "the name is taken");
    cluster.launches[1].stdout(&["token", "revoke", "phone"]).await?;
    cluster.launches[1].stdout(&["token", "revoke", "owner@disk-0"]).await?;
    for (node, token) in [(0, &token), (1, &token), (1, &owner)] {
        eventually("it counts no longer", async || {
            status_at(&cluster, node, token).await.is_ok_and(|status| status == 401)
        })
        .await?;
    }
    assert_eq!(status_at(&cluster, 0, &owner).await?, 200, "the owner's own node knows its token from the file");
    Ok(())
}

/// Trades a ticket for a cookie and a page key; none if it counts for nothing.
async fn log_in(cluster: &TestCluster, node: usize, ticket: &str) -> anyhow::Result<Option<[String; 2]>> {
    let base = format!("http://{}", cluster.server(node)?.address);
    let request = http_client()?.post(format!("{base}/gander/login")).header("origin", &base);
    let answer = request.json(&json!({ "ticket": ticket })).send().await?;
    if answer.status() == StatusCode::UNAUTHORIZED {
        return Ok(None);
    }
    ensure!(answer.status().is_success(), "{}", answer.text().await?);
    let cookie = answer.headers()["set-cookie"].to_str()?.to_owned();
    let cookie = cookie.split([';', '=']).nth(1).context("no cookie")?.to_owned();
    let key = answer.json::<Value>().await?["pageKey"].as_str().context("no page key")?.to_owned();
    Ok(Some([cookie, key]))
}

/// The status that a browser gets. The cookie's name has the port in it: nodes behind one name have the same one.
async fn browser_status(cluster: &TestCluster, node: usize, [cookie, key]: &[String; 2]) -> anyhow::Result<u16> {
    let address = cluster.server(node)?.address;
    let request = http_client()?.get(format!("http://{address}/agents")).header("x-gander-page-key", key);
    let request = request.header("cookie", format!("gander_{}={cookie}", address.port()));
    let request = request.header("sec-fetch-site", "same-origin").header("origin", format!("http://{address}"));
    Ok(request.send().await?.status().as_u16())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_that_came_in_at_one_node_is_in_at_the_others() -> anyhow::Result<()> {
    let Some(url) = schema_for("a_browser_that_came_in_at_one_node_is_in_at_the_others") else { return Ok(()) };
    let cluster = TestCluster::start(url, 2).await?;
    let owner = first_line(&cluster, 0, &["token"]).await?;
    let tickets = format!("http://{}/gander/tickets", cluster.server(0)?.address);
    let ticket = http_client()?.post(tickets).bearer_auth(owner).json(&json!({})).send().await?;
    let ticket = ticket.json::<Value>().await?["ticket"].as_str().context("no ticket")?.to_owned();
    let (one, other) = tokio::join!(log_in(&cluster, 0, &ticket), log_in(&cluster, 1, &ticket));
    let browser = match (one?, other?) {
        (Some(browser), None) | (None, Some(browser)) => browser,
        (one, other) => anyhow::bail!("a ticket is good once: {} {}", one.is_some(), other.is_some()),
    };
    for node in [0, 1] {
        assert_eq!(browser_status(&cluster, node, &browser).await?, 200, "at once, at node {node}");
        let guessed = [browser[0].clone(), browser[0].clone()];
        assert_eq!(browser_status(&cluster, node, &guessed).await?, 401);
    }
    let raw = format!("SELECT count(*) FROM scope WHERE fact LIKE '%{}%' OR fact LIKE '%{ticket}%'", browser[0]);
    assert_eq!(cluster.count(&raw).await?, 0, "the database holds neither ticket nor cookie");
    cluster.launches[1].stdout(&["open", "--revoke"]).await?;
    for node in [0, 1] {
        eventually("the browser is out", async || {
            browser_status(&cluster, node, &browser).await.is_ok_and(|status| status == 401)
        })
        .await?;
    }
    Ok(())
}

async fn note_authorization(State(seen): State<Seen>, headers: HeaderMap) -> StatusCode {
    let said = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or("nothing");
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(said.to_owned());
    StatusCode::SERVICE_UNAVAILABLE
}

async fn note_token(State(seen): State<Seen>, headers: HeaderMap, body: axum::Json<Value>) {
    let said = headers.get("x-a2a-notification-token").and_then(|value| value.to_str().ok()).unwrap_or("nothing");
    let state = body.0["statusUpdate"]["status"]["state"].as_str().unwrap_or_default().to_owned();
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{said} {state}"));
}

async fn listen(app: Router<Seen>) -> anyhow::Result<(String, Seen)> {
    let (seen, listener) = (Seen::default(), tokio::net::TcpListener::bind("127.0.0.1:0").await?);
    let base = format!("http://{}", listener.local_addr()?);
    let app = app.with_state(Arc::clone(&seen));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok((base, seen))
}

fn has_seen(seen: &Seen, text: &str) -> bool {
    seen.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|said| said == text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_an_mcp_server_is_sealed_in_the_database_and_used_by_every_node() -> anyhow::Result<()> {
    let test = "a_secret_of_an_mcp_server_is_sealed_in_the_database_and_used_by_every_node";
    let Some(url) = schema_for(test) else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let cluster = keyed_cluster(url, 2, folder.path()).await?;
    let (base, seen) = listen(Router::new().route("/mcp", post(note_authorization))).await?;
    let address = format!("{base}/mcp");
    let add = ["extensions", "add", "web", "--no-start", "--url", &address, "--header-env", "Authorization=AUTH"];
    let adding = cluster.launches[0].clone().with("AUTH", SECRET);
    adding.stdout(&add).await?;
    ensure!(seen.lock().unwrap_or_else(PoisonError::into_inner).is_empty(), "nobody started it yet");
    eventually("the other node knows the server", async || {
        cluster.launches[1].stdout(&["extensions", "list"]).await.is_ok_and(|listed| listed.contains(&address))
    })
    .await?;
    let mut client = cluster.client(1).await?;
    let session = client.new_session(&cluster.folder).await?;
    client.prompt(&session, &SHORT.marker()).await?;
    eventually("the other node sends the secret", async || has_seen(&seen, SECRET)).await?;
    let raw = format!("SELECT count(*) FROM scope WHERE fact LIKE '%{SECRET}%'");
    assert_eq!(cluster.count(&raw).await?, 0, "the database holds it in no readable form");
    assert_eq!(cluster.count("SELECT count(*) FROM scope WHERE name = 'secrets'").await?, 1);
    let files = cluster.launches.iter().map(|launch| std::fs::read_to_string(launch.data.join("secrets.json")));
    ensure!(files.flatten().all(|text| !text.contains(SECRET)), "no node keeps it in a file of its own");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_with_a_credential_is_sent_after_the_node_that_was_asked_is_gone() -> anyhow::Result<()> {
    let test = "a_notification_with_a_credential_is_sent_after_the_node_that_was_asked_is_gone";
    let Some(url) = schema_for(test) else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let mut cluster = keyed_cluster(url, 2, folder.path()).await?;
    let (base, seen) = listen(Router::new().route("/hook", post(note_token))).await?;
    let owner = first_line(&cluster, 0, &["token"]).await?;
    let http = http_client()?;
    let a2a = async |cluster: &TestCluster, node: usize, method: &str, params: Value| -> anyhow::Result<Value> {
        let url = format!("http://{}/a2a", cluster.server(node)?.address);
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = http.post(url).bearer_auth(&owner).header("a2a-version", "1.0").json(&request);
        let mut answer: Value = request.send().await?.json().await?;
        ensure!(answer.get("error").is_none(), "{method} at node {node}: {answer}");
        Ok(answer["result"].take())
    };
    let asking = format!("[[call=shell|{{\"command\":\"touch made-by-a-tool\"}}]] {}", SHORT.marker());
    let message = |id: &str, text: &str| json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
    let task = a2a(&cluster, 1, "SendMessage", json!({ "message": message("m1", &asking) })).await?["task"].take();
    let hook = format!("{base}/hook");
    let config = json!({ "taskId": task["id"], "url": hook, "token": SECRET });
    a2a(&cluster, 1, "CreateTaskPushNotificationConfig", config).await?;
    cluster.servers[1].take().context("node 1 is down")?.kill().await?;
    let mut answer = message("m2", "yes");
    answer["taskId"] = task["id"].clone();
    let done = a2a(&cluster, 0, "SendMessage", json!({ "message": answer })).await?["task"].take();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let last = format!("{SECRET} TASK_STATE_COMPLETED");
    eventually("the other node sends it, with the credential", async || has_seen(&seen, &last)).await
}
