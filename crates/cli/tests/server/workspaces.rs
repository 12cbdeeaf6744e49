//! Where sessions of REST clients work: in the folder they name, in their agent's, or in a private one.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use crate::binary::{Running, TestDirectory};

/// A client of a server that listens.
struct Client {
    base: String,
    token: String,
}

impl Client {
    fn of(server: &mut Running, token: &str) -> Self {
        let line = server.wait_for("listening on http://");
        let base = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
        Self { base, token: token.trim().to_owned() }
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
        let mut request =
            reqwest::Client::new().post(format!("{}{path}", self.base)).bearer_auth(&self.token).json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// A run of ACP-REST in a new session, which this header may name a folder for.
    async fn acp_rest(&self, agent: &str, folder: Option<&str>) -> (u16, Value) {
        let input = json!([{ "role": "user", "parts": [{ "content": "text" }] }]);
        let headers: Vec<(&str, &str)> = folder.iter().map(|folder| ("Gander-Workspace", *folder)).collect();
        self.post("/runs", &headers, &json!({ "agent_name": agent, "input": input, "mode": "sync" })).await
    }

    async fn a2a(&self) -> (u16, Value) {
        let message = json!({ "messageId": "m1", "role": "ROLE_USER", "parts": [{ "text": "text" }] });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
        self.post("/a2a", &[("A2A-Version", "1.0")], &call).await
    }

    async fn adk(&self) -> (u16, Value) {
        self.post("/apps/gander/users/me/sessions", &[], &json!({})).await
    }
}

/// The folder of the session that was changed last.
fn latest_folder(test_directory: &TestDirectory) -> String {
    test_directory.json_lines(&["sessions", "list", "--json"])[0]["cwd"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rest_client_works_where_it_says_else_where_its_agent_does() {
    let test_directory = TestDirectory::new();
    let (named, of_agent) = (test_directory.folder("named"), test_directory.folder("notes"));
    let private = test_directory.data().join("scratch").to_str().unwrap().to_owned();
    let test_directory = test_directory.with("GANDER_SERVER_WORKSPACES", &format!("{{ gander = \"{of_agent}\" }}"));
    let mut server = test_directory.start(&["serve", "--listen", "127.0.0.1:0"]);
    let client = Client::of(&mut server, &test_directory.ok(&["token"]));
    let (status, run) = client.acp_rest("gander", Some(&named)).await;
    assert_eq!((status, &run["status"]), (200, &json!("completed")), "{run}");
    assert_eq!(latest_folder(&test_directory), named);
    assert_eq!(client.acp_rest("gander", None).await.0, 200);
    assert_eq!(latest_folder(&test_directory), of_agent);
    assert_eq!(client.acp_rest("coding", None).await.0, 200);
    assert!(latest_folder(&test_directory).starts_with(&private), "another agent has no folder of its own");
    let (status, refused) = client.acp_rest("gander", Some("relative/path")).await;
    assert!((400..500).contains(&status) && refused.to_string().contains("must be an absolute path"), "{refused}");
    assert_eq!(client.a2a().await.0, 200);
    assert_eq!(latest_folder(&test_directory), of_agent);
    assert_eq!(client.adk().await.0, 200);
    assert_eq!(latest_folder(&test_directory), of_agent);
    server.terminate();
    server.wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_has_the_agents_folder_only_below_the_roots() {
    let test_directory = TestDirectory::new();
    let of_agent = test_directory.folder("notes");
    let with_agent = format!("{{ gander = \"{of_agent}\" }}");
    let mut test_directory = test_directory.with("GANDER_SERVER_WORKSPACES", &with_agent);
    let guest = test_directory.ok(&["token", "add", "guest", "--scopes", "prompt"]);
    for (roots, inside) in [("[]".to_owned(), false), (format!("[\"{of_agent}\"]"), true)] {
        test_directory.variables.push(("GANDER_SERVER_ROOTS", roots));
        let mut server = test_directory.start(&["serve", "--listen", "127.0.0.1:0"]);
        let client = Client::of(&mut server, &guest);
        let (status, session) = client.adk().await;
        assert_eq!(status, 200, "{session}");
        let (status, run) = client.acp_rest("gander", Some(&of_agent)).await;
        assert_eq!(status == 200, inside, "a folder that is named is refused, not replaced: {run}");
        server.terminate();
        server.wait();
        let used = std::fs::read_dir(test_directory.data().join("scratch")).map_or(0, Iterator::count);
        assert_eq!(used, 1, "the first session has a private folder, the second has none");
    }
}
