//! Who works where: the data directory is nobody's workspace, and a token that may only prompt reads nothing with it.

use gander_domain::caller::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::goose_rest::test_server::TestServer;

/// A recipe whose parameter is the text of a file.
fn recipe() -> Value {
    let parameter = json!({"key": "f", "input_type": "file", "requirement": "user_prompt", "description": "a file"});
    json!({"version": "1.0.0", "title": "Show", "description": "shows", "prompt": "{{ f }}", "parameters": [parameter]})
}

struct Anna<'a> {
    test_server: &'a TestServer,
    token: String,
}

impl<'a> Anna<'a> {
    fn of(test_server: &'a TestServer) -> Self {
        Self { test_server, token: test_server.other(&[Scope::Prompt]) }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request =
            self.test_server.client.request(method, self.test_server.url(path)).header("x-secret-key", &self.token);
        let response = request.json(body).send().await.unwrap();
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// What the file parameter of a recipe gives in this folder.
    async fn reads(&self, folder: Option<&str>, file: &str) -> (u16, Value) {
        let mut started = json!({"recipe": recipe()});
        if let Some(folder) = folder {
            started["working_dir"] = json!(folder);
        }
        let (status, session) = self.send(Method::POST, "/agent/start", &started).await;
        if status != 200 {
            return (status, session);
        }
        let path = format!("/sessions/{}/user_recipe_values", session["id"].as_str().unwrap());
        self.send(Method::PUT, &path, &json!({"userRecipeValues": {"f": file}})).await
    }
}

#[tokio::test]
async fn a_token_that_may_only_prompt_does_not_read_the_owners() {
    let test_server = TestServer::with(&[("GANDER_PERMISSIONS_POLICY", "ask")]).await;
    let anna = Anna::of(&test_server);
    let data = test_server.config.paths.data_directory().to_str().unwrap().to_owned();
    let root = test_server.root().to_str().unwrap().to_owned();
    std::os::unix::fs::symlink(&data, test_server.work() + "/link").unwrap();
    let tries = [
        (data.clone(), "token"),
        (format!("{data}/scratch"), "../token"),
        (format!("{}/link", test_server.work()), "token"),
        (format!("{}/../data", test_server.work()), "token"),
        (root.clone(), "data/token"),
        ("/".to_owned(), &data[1..]),
        (test_server.work(), "link/token"),
    ];
    for (folder, file) in &tries {
        let (status, said) = anna.reads(Some(folder), file).await;
        assert_eq!(status, 400, "{folder}: {said}");
        let expected = format!(
            "working_dir must lie below a folder of server.roots; only the owner on the server's machine may choose \
             others (leave it out for a private folder): {folder}"
        );
        assert_eq!(said, json!({"message": expected}));
    }
    let (status, said) = anna.reads(None, "../../token").await;
    assert_eq!(status, 400, "{said}");
    assert!(!said.to_string().contains(&test_server.token), "{said}");
}

#[tokio::test]
async fn not_even_the_owner_works_in_the_data_directory_or_reads_it_from_above() {
    let test_server = TestServer::open().await;
    let data = test_server.config.paths.data_directory().to_str().unwrap().to_owned();
    test_server.ok("/agent/start", json!({})).await; // makes the folder of private folders
    for folder in [data.clone(), format!("{data}/scratch"), format!("{}/../data", test_server.work())] {
        let (status, said) = test_server.post("/agent/start", json!({"working_dir": folder})).await;
        let expected = format!("working_dir is in the server's data directory, which is never a workspace: {folder}");
        assert_eq!((status, said), (400, json!({"message": expected})));
    }
    let above = test_server.root().canonicalize().unwrap();
    let started = test_server.ok("/agent/start", json!({"working_dir": above, "recipe": recipe()})).await;
    let path = format!("/sessions/{}/user_recipe_values", started["id"].as_str().unwrap());
    let (status, said) = test_server.put(&path, json!({"userRecipeValues": {"f": "data/token"}})).await;
    assert_eq!(status, 400, "{said}");
    assert!(said.to_string().contains("path is outside the workspace: data/token"), "{said}");
}

#[tokio::test]
async fn what_a_recipe_reads_for_somebody_else_lies_below_the_roots_and_holds_no_secret() {
    let lent = tempfile::tempdir().unwrap();
    let folder = lent.path().canonicalize().unwrap();
    let roots = format!("[{:?}]", folder.to_str().unwrap());
    let test_server = TestServer::with(&[("GANDER_SERVER_ROOTS", &roots)]).await;
    let anna = Anna::of(&test_server);
    std::fs::create_dir(folder.join("inner")).unwrap();
    std::fs::write(folder.join("inner/plain.txt"), format!("token {}", test_server.token)).unwrap();
    std::fs::write(folder.join("inner/.env"), "KEY=1").unwrap();
    let inner = folder.join("inner").to_str().unwrap().to_owned();
    let (status, said) = anna.reads(Some(&inner), "plain.txt").await;
    assert_eq!((status, &said["recipe"]["prompt"]), (200, &json!("token [redacted]")), "{said}");
    let (status, said) = anna.reads(Some(&inner), ".env").await;
    assert_eq!(status, 400);
    assert!(said.to_string().contains("file may hold secrets: .env"), "{said}");
    assert_eq!(anna.reads(Some(&test_server.work()), "plain.txt").await.0, 400, "a folder that is not lent");
}

#[tokio::test]
async fn a_private_folder_is_its_owners_alone() {
    let test_server = TestServer::open().await;
    let mine = test_server.ok("/agent/start", json!({})).await["working_dir"].as_str().unwrap().to_owned();
    std::fs::write(format!("{mine}/note.txt"), "private").unwrap();
    let anna = Anna::of(&test_server);
    let (status, said) = anna.reads(Some(&mine), "note.txt").await;
    assert_eq!(status, 400, "{said}");
    let (_, hers) = anna.send(Method::POST, "/agent/start", &json!({})).await;
    let hers = hers["working_dir"].as_str().unwrap();
    std::fs::write(format!("{hers}/note.txt"), "mine").unwrap();
    let (status, said) = anna.reads(Some(hers), "note.txt").await;
    assert_eq!((status, &said["recipe"]["prompt"]), (200, &json!("mine")), "{said}");
}

#[tokio::test]
async fn the_owner_from_another_machine_is_held_by_the_roots_too() {
    let test_server = TestServer::open().await;
    let start = |forwarded: bool| {
        let request =
            test_server.request(Method::POST, "/agent/start").json(&json!({"working_dir": test_server.work()}));
        let request = if forwarded { request.header("x-forwarded-for", "203.0.113.7") } else { request };
        async { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!((start(false).await, start(true).await), (200, 400));
}

#[tokio::test]
async fn tools_do_not_see_the_data_directory_from_a_workspace_around_it() {
    let test_server = TestServer::open().await;
    let above = test_server.root().canonicalize().unwrap();
    std::fs::write(above.join("seen.txt"), "plain token text").unwrap();
    std::os::unix::fs::symlink(above.join("data"), above.join("door")).unwrap();
    let session = test_server.ok("/agent/start", json!({"working_dir": above})).await["id"].clone();
    let calls = json!([[
        {"tool": "read", "args": {"path": "data/token"}},
        {"tool": "read", "args": {"path": "door/token"}},
        {"tool": "list", "args": {"path": "data"}},
        {"tool": "list", "args": {}},
        {"tool": "grep", "args": {"pattern": "[a-z]", "path": "."}},
    ], [{"text": "done"}]]);
    let events = test_server
        .reply(json!({"session_id": session, "user_message": crate::goose_rest::test_server::message(calls)}))
        .await;
    let told = json!(events).to_string();
    assert!(told.contains("seen.txt"), "{told}");
    for hidden in [test_server.token.as_str(), "log.db", "server.lock", "secrets.json"] {
        assert!(!told.contains(hidden), "{hidden}: {told}");
    }
}
