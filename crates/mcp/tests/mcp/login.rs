//! Logins: whose they are, and as whom we are known.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use gander_mcp::{
    Keyring, Login, MemoryToolPinStore, Reach, ServerState, ServersConfig, Spec, Transport, delete_login_tokens,
};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::test_server::{TestServer, circumstances};

/// A server behind a login, and who may let us in, at one address.
#[derive(Clone)]
struct Guarded {
    base: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// How many made themselves known.
    registered: usize,
    /// Clients by the codes they were given.
    codes: HashMap<String, String>,
    /// Clients by their tokens.
    tokens: HashMap<String, String>,
}

/// A request, as far as it matters.
struct Asked {
    url: Url,
    token: Option<String>,
    body: Vec<u8>,
}

impl Guarded {
    async fn serve() -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let guarded = Self { base, state: Arc::default() };
        let own = guarded.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let guarded = own.clone();
                tokio::spawn(async move { guarded.answer(stream).await });
            }
        });
        guarded
    }

    fn spec(&self, client_id: Option<&str>) -> Spec {
        let (url, client_id) = (format!("{}/mcp", self.base), client_id.map(str::to_owned));
        let transport = Transport::Http { url, headers: Vec::new(), reach: Reach::Anywhere, client_id };
        Spec::new("web".to_owned(), transport)
    }

    async fn answer(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let Some(asked) = self.read(&mut stream).await else { return };
        let (status, header, body) = self.said(&asked);
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n{header}");
        let page = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        drop(stream.write_all(page.as_bytes()).await);
    }

    async fn read(&self, stream: &mut BufReader<TcpStream>) -> Option<Asked> {
        let (mut first, mut length, mut token) = (String::new(), 0, None);
        stream.read_line(&mut first).await.ok()?;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok()?;
            let Some((name, value)) = line.trim().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "authorization" => token = value.trim().strip_prefix("Bearer ").map(str::to_owned),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let url = Url::parse(&self.base).ok()?.join(first.split(' ').nth(1)?).ok()?;
        Some(Asked { url, token, body })
    }

    fn said(&self, asked: &Asked) -> (&'static str, String, String) {
        let ok = |value: Value| ("200 OK", String::new(), value.to_string());
        let base = &self.base;
        let mut state = self.state.lock().unwrap();
        let query: HashMap<String, String> = asked.url.query_pairs().into_owned().collect();
        match asked.url.path() {
            path if path.starts_with("/.well-known/oauth-protected-resource") => {
                ok(json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}))
            }
            path if path.starts_with("/.well-known/oauth-authorization-server") => ok(json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            })),
            "/register" => {
                state.registered += 1;
                let mut client: Value = serde_json::from_slice(&asked.body).unwrap();
                client["client_id"] = json!(format!("registered-{}", state.registered));
                ("201 Created", String::new(), client.to_string())
            }
            "/authorize" => {
                let code = format!("code-{}", state.codes.len());
                let back = format!("{}?code={code}&state={}", query["redirect_uri"], query["state"]);
                state.codes.insert(code, query["client_id"].clone());
                ("302 Found", format!("location: {back}\r\n"), String::new())
            }
            "/token" => {
                let form: HashMap<String, String> = Url::parse(&format!("x:?{}", String::from_utf8_lossy(&asked.body)))
                    .unwrap()
                    .query_pairs()
                    .into_owned()
                    .collect();
                let client = state.codes.remove(&form["code"]).unwrap();
                let token = format!("token-{}", state.tokens.len());
                state.tokens.insert(token.clone(), client);
                ok(json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600}))
            }
            "/mcp" => match asked.token.as_ref().and_then(|token| state.tokens.get(token)) {
                Some(client) => mcp(&serde_json::from_slice(&asked.body).unwrap_or_default(), client),
                None => ("401 Unauthorized", "www-authenticate: Bearer\r\n".to_owned(), String::new()),
            },
            _ => ("404 Not Found", String::new(), String::new()),
        }
    }
}

/// One tool, which tells who calls.
fn mcp(message: &Value, client: &str) -> (&'static str, String, String) {
    let tool = json!({"name": "who", "inputSchema": {"type": "object"}});
    let result = match message["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "1"}}),
        Some("tools/list") => json!({"tools": [tool]}),
        Some("tools/call") => json!({"content": [{"type": "text", "text": client}]}),
        Some(_) => return ("202 Accepted", String::new(), String::new()),
        None => return ("405 Method Not Allowed", String::new(), String::new()),
    };
    ("200 OK", String::new(), json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
}

/// A person says yes in a browser.
async fn log_in(spec: &Spec, keyring: &Keyring) {
    let login = Login::begin_login(spec, keyring).await.unwrap();
    let browser = reqwest::Client::builder().no_proxy().build().unwrap();
    let page = browser.get(&login.url).send();
    let (end, page) = tokio::join!(login.wait_until_done(), page);
    assert_eq!((end, page.unwrap().status().as_u16()), (Ok(()), 200));
}

async fn session(spec: Spec, keyring: &Keyring) -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    let usual = circumstances(folder.path(), Arc::new(MemoryToolPinStore::default()));
    TestServer { folder, ..TestServer::within(vec![spec], ServersConfig { keyring: keyring.clone(), ..usual }).await }
}

#[tokio::test]
async fn who_is_known_there_by_hand_does_not_make_itself_known_again() {
    let guarded = Guarded::serve().await;
    let (known, unknown) = (guarded.spec(Some("gander-at-work")), guarded.spec(None));
    let keyring = Keyring::default();
    log_in(&known, &keyring.for_owner("anna")).await;
    let server = session(known, &keyring.for_owner("anna")).await;
    assert_eq!(server.text("web__who", json!({})).await, "gander-at-work");
    assert_eq!(guarded.state.lock().unwrap().registered, 0);
    log_in(&unknown, &keyring.for_owner("ben")).await;
    let server = session(unknown, &keyring.for_owner("ben")).await;
    assert_eq!(server.text("web__who", json!({})).await, "registered-1");
}

#[tokio::test]
async fn a_login_is_one_person_s_and_so_is_its_end() {
    let guarded = Guarded::serve().await;
    let (spec, keyring) = (guarded.spec(None), Keyring::default());
    let (anna, ben) = (keyring.for_owner("anna"), keyring.for_owner("ben"));
    log_in(&spec, &anna).await;
    let hers = session(spec.clone(), &anna).await;
    assert_eq!(hers.text("web__who", json!({})).await, "registered-1");
    let his = session(spec.clone(), &ben).await;
    assert_eq!(his.servers.server_statuses()[0].state, ServerState::Locked, "he did not log in");
    log_in(&spec, &ben).await;
    his.servers.resume_after_login(&spec);
    his.servers.wait_until_settled().await;
    let who = his.text("web__who", json!({})).await;
    assert!(who.starts_with("registered-") && who != "registered-1", "he is let in as himself: {who}");
    delete_login_tokens(&spec, &ben).await.unwrap();
    assert_eq!(session(spec.clone(), &ben).await.servers.server_statuses()[0].state, ServerState::Locked);
    assert_eq!(session(spec, &anna).await.servers.server_statuses()[0].state, ServerState::Ready, "hers holds");
}
