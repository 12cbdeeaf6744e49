//! Tokens of an identity provider: which count, for whom and how long, that they travel no further, and the login of a
//! program without a browser. The issuer is our own, with real keys; `interop/oidc` has one that others wrote.

#![allow(clippy::unwrap_used)]

mod issuer;
mod outbound;

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use gander_testkit::harness::{Launch, PATIENCE, Server, Terminal, binary, data};
use ring::hmac;
use serde_json::{Value, json};

use issuer::{AUDIENCE, TestIssuer, TestKey, encode, signed_part, unix_seconds};

/// A server that takes tokens of the issuer.
struct TestServer {
    server: Server,
    http: reqwest::Client,
    _root: tempfile::TempDir,
}

impl TestServer {
    async fn open(issuer: &TestIssuer, more: &[(&str, &str)]) -> anyhow::Result<Self> {
        rustls::crypto::ring::default_provider().install_default().ok();
        let root = tempfile::tempdir()?;
        let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data(root.path())?)
            .with("GANDER_AUTH_OIDC_ISSUER", &issuer.url())
            .with("GANDER_AUTH_OIDC_AUDIENCE", AUDIENCE)
            .with("GANDER_LIMITS_BAD_TOKENS_PER_MINUTE", "1000");
        let launch = more.iter().fold(launch, |launch, (name, value)| launch.with(name, value));
        let server = launch.serve().await?;
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        Ok(Self { server, http, _root: root })
    }

    fn get(&self, path: &str, token: &str) -> reqwest::RequestBuilder {
        self.http.get(format!("http://{}{path}", self.server.address)).bearer_auth(token)
    }

    /// The status of a request with this token, and what its answer says.
    async fn status(&self, token: &str) -> anyhow::Result<(u16, Value)> {
        let response = self.get("/gander/status", token).send().await?;
        Ok((response.status().as_u16(), response.json().await?))
    }

    async fn refusal(&self, token: &str) -> anyhow::Result<String> {
        let response = self.get("/gander/status", token).send().await?;
        let challenge = response.headers().get("www-authenticate").cloned().context("no challenge")?;
        ensure!(response.status() == 401 && challenge.to_str()?.contains("invalid_token"), "{response:?}");
        let body: Value = response.json().await?;
        Ok(body["error"]["message"].as_str().context("no message")?.to_owned())
    }
}

#[tokio::test]
async fn tokens_of_the_issuer_count_and_others_are_refused_with_the_reason() -> anyhow::Result<()> {
    let issuer = TestIssuer::start().await;
    let (rsa, curve, edwards) = (TestKey::rsa(), TestKey::curve(), TestKey::edwards());
    issuer.publish(&[("r", &rsa), ("c", &curve), ("e", &edwards)]);
    let server = TestServer::open(&issuer, &[]).await?;
    for key in [("r", &rsa), ("c", &curve), ("e", &edwards)] {
        let (status, who) = server.status(&issuer.token(key, "ada", json!({}))).await?;
        assert_eq!((status, &who["principal"], &who["scopes"]), (200, &json!("oidc:ada"), &json!(["read", "prompt"])));
    }
    let now = unix_seconds();
    let changed = |claims| issuer.token(("r", &rsa), "ada", claims);
    let other = "https://other.example";
    let without_expiry = changed(json!({"exp": null}));
    let wrong = [
        (changed(json!({"aud": other})), "meant for another audience"),
        (changed(json!({"aud": [other]})), "meant for another audience"),
        (changed(json!({"aud": null})), "lacks a claim, or the claim is of the wrong type: aud"),
        (changed(json!({"iss": other})), "comes from another issuer"),
        (changed(json!({"iss": [issuer.url(), other]})), "comes from another issuer"),
        (changed(json!({"exp": now - 120})), "has expired"),
        (changed(json!({"exp": "tomorrow"})), "wrong type: exp"),
        (without_expiry, "wrong type: exp"),
        (changed(json!({"nbf": now + 120})), "not valid yet"),
        (changed(json!({"nbf": "later"})), "wrong type: nbf"),
        (changed(json!({"sub": null})), "wrong type: sub"),
    ];
    for (token, reason) in &wrong {
        let said = server.refusal(token).await?;
        assert!(said.contains(reason), "{said:?} should say: {reason}");
    }
    // The clocks may differ a little, and an audience may be one of several.
    for fine in [json!({"exp": now - 5}), json!({"nbf": now + 5}), json!({"aud": [other, AUDIENCE]})] {
        assert_eq!(server.status(&changed(fine)).await?.0, 200);
    }
    // Tokens of this server count as before.
    let owner = server.server.launch.stdout(&["token"]).await?;
    assert_eq!(server.status(owner.trim()).await?.1["principal"], "owner");
    Ok(())
}

#[tokio::test]
async fn neither_none_nor_a_public_key_as_a_secret_nor_a_forged_header_lets_anybody_in() -> anyhow::Result<()> {
    let issuer = TestIssuer::start().await;
    let (rsa, curve) = (TestKey::rsa(), TestKey::curve());
    issuer.publish(&[("r", &rsa), ("c", &curve)]);
    let server = TestServer::open(&issuer, &[]).await?;
    let claims = issuer.claims("ada");
    let unsigned = |alg: &str| format!("{}.", signed_part(&json!({"alg": alg, "kid": "r"}), &claims));
    // What everybody can read, used as the secret of an HMAC.
    let public = rsa.jwk("r");
    let forged = |header: Value, secret: &[u8]| {
        let signed = signed_part(&header, &claims);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
        format!("{signed}.{}", encode(tag))
    };
    let modulus = public["n"].as_str().unwrap();
    let (mine, theirs) = (TestKey::edwards(), TestKey::curve());
    let good = issuer.token(("r", &rsa), "ada", json!({}));
    let (head, signature) = good.rsplit_once('.').unwrap();
    let tampered = format!("{}.{signature}", signed_part(&json!({"alg": "RS256", "kid": "r"}), &issuer.claims("root")));
    let sign = |key: &TestKey, header: Value| key.sign(&header, &claims);
    let wrong = [
        (unsigned("none"), "algorithm is not allowed: none"),
        (unsigned("None"), "algorithm is not allowed: None"),
        (unsigned("RS256"), "signature is wrong"),
        (format!("{head}."), "signature is wrong"),
        (forged(json!({"alg": "HS256", "kid": "r"}), modulus.as_bytes()), "algorithm is not allowed: HS256"),
        (forged(json!({"alg": "HS256", "kid": "r"}), public.to_string().as_bytes()), "algorithm is not allowed: HS256"),
        (forged(json!({"alg": "RS256", "kid": "r"}), modulus.as_bytes()), "signature is wrong"),
        (tampered, "signature is wrong"),
        (sign(&theirs, json!({"alg": "ES256", "kid": "c"})), "signature is wrong"),
        (sign(&mine, json!({"alg": "EdDSA", "kid": "r"})), "a key that the issuer does not publish"),
        (sign(&curve, json!({"alg": "ES256", "kid": "r"})), "a key that the issuer does not publish"),
        (sign(&mine, json!({"alg": "EdDSA", "jwk": mine.jwk("m")})), "a key that the issuer does not publish"),
        (sign(&curve, json!({"alg": "ES256", "kid": "c", "crit": ["b64"], "b64": false})), "no signed JSON Web Token"),
        (sign(&curve, json!({"alg": "ES256", "kid": "c", "typ": "logout+jwt"})), "another type than an access token"),
        ("a.b.c".to_owned(), "no signed JSON Web Token"),
        (format!("{}.x.y", encode("[]")), "no signed JSON Web Token"),
        (format!("{}.{}.y", encode(r#"{"alg":"RS256"}"#), "x".repeat(20_000)), "no signed JSON Web Token"),
    ];
    for (token, reason) in &wrong {
        let said = server.refusal(token).await?;
        assert!(said.contains(reason), "{said:?} should say: {reason}");
    }
    assert_eq!(server.status(&good).await?.0, 200);
    Ok(())
}

#[tokio::test]
async fn a_new_key_is_found_an_old_one_ends_and_a_flood_of_unknown_ones_asks_the_issuer_little() -> anyhow::Result<()> {
    let issuer = TestIssuer::start().await;
    let (first, second) = (TestKey::curve(), TestKey::curve());
    issuer.publish(&[("1", &first)]);
    let server = TestServer::open(&issuer, &[]).await?;
    let old = issuer.token(("1", &first), "ada", json!({}));
    for _ in 0..20 {
        assert_eq!(server.status(&old).await?.0, 200);
    }
    assert_eq!(issuer.key_fetches(), 1, "keys are cached");
    issuer.publish(&[("2", &second)]);
    let new = issuer.token(("2", &second), "ada", json!({}));
    assert_eq!(server.status(&new).await?.0, 200, "the new key is fetched");
    assert!(server.refusal(&old).await?.contains("does not publish"), "the old key is gone, and what it signed");
    let flood = (0..300).map(|number| {
        let token = issuer.token((&format!("made-up-{number}"), &second), "ada", json!({}));
        let server = &server;
        async move { server.refusal(&token).await }
    });
    let refused: Vec<_> = futures::stream::iter(flood).buffer_unordered(30).collect().await;
    assert!(refused.iter().all(Result::is_ok), "{refused:?}");
    assert!(issuer.key_fetches() <= 6, "{} fetches", issuer.key_fetches());
    assert_eq!(server.status(&new).await?.0, 200);
    Ok(())
}

#[tokio::test]
async fn an_issuer_that_cannot_be_reached_lets_nobody_in_and_local_tokens_count() -> anyhow::Result<()> {
    let issuer = TestIssuer::start().await;
    let key = TestKey::curve();
    // Nobody listens there.
    let gone = TestIssuer { address: ([127, 0, 0, 1], 9).into(), ..issuer };
    let server = TestServer::open(&gone, &[]).await?;
    let (status, body) = server.status(&gone.token(("1", &key), "ada", json!({}))).await?;
    assert_eq!((status, &body["error"]["code"]), (503, &json!("identity_provider_unavailable")));
    let owner = server.server.launch.stdout(&["token"]).await?;
    assert_eq!(server.status(owner.trim()).await?.0, 200);
    Ok(())
}

#[tokio::test]
async fn claims_say_who_it_is_what_it_may_do_and_where_it_works() -> anyhow::Result<()> {
    let issuer = TestIssuer::start().await;
    let key = TestKey::curve();
    issuer.publish(&[("1", &key)]);
    let roots = tempfile::tempdir()?;
    let [ada, bob] = ["ada", "bob"].map(|name| roots.path().join(name));
    [&ada, &bob].into_iter().try_for_each(std::fs::create_dir)?;
    let settings = [
        ("GANDER_SERVER_ROOTS", &*json!([roots.path()]).to_string()),
        ("GANDER_AUTH_OIDC_PRINCIPAL_CLAIM", "email"),
        ("GANDER_AUTH_OIDC_SCOPES_CLAIM", "groups"),
        ("GANDER_AUTH_OIDC_SCOPES", r#"{ staff = ["prompt", "approve"], admins = ["prompt", "admin"] }"#),
        ("GANDER_AUTH_OIDC_ROOTS_CLAIM", "folders"),
        ("GANDER_AUTH_OIDC_OWNERS", r#"["root@example.com"]"#),
    ];
    let server = TestServer::open(&issuer, &settings).await?;
    let token = |claims| issuer.token(("1", &key), "7", claims);
    let staff = token(json!({"email": "ada@example.com", "groups": ["staff"], "folders": [ada, "/etc", "relative"]}));
    let (_, who) = server.status(&staff).await?;
    assert_eq!(who["principal"], "oidc:ada@example.com");
    assert_eq!(who["scopes"], json!(["read", "prompt", "approve"]));
    let root = token(json!({"email": "root@example.com", "groups": ["admins"]}));
    let (_, who) = server.status(&root).await?;
    assert_eq!((&who["principal"], &who["scopes"]), (&json!("owner"), &json!(["read", "prompt", "admin"])));
    let start = async |token: &str, folder: &std::path::Path| -> anyhow::Result<(u16, Value)> {
        let url = format!("http://{}/agent/start", server.server.address);
        let response = server.http.post(url).bearer_auth(token).json(&json!({"working_dir": folder})).send().await?;
        Ok((response.status().as_u16(), response.json().await.unwrap_or_default()))
    };
    let (status, session) = start(&staff, &ada).await?;
    assert_eq!(status, 200, "{session}");
    // Neither another's folder below the roots, nor what the claim lists outside of them.
    for folder in [bob.as_path(), std::path::Path::new("/etc")] {
        assert_ne!(start(&staff, folder).await?.0, 200, "{}", folder.display());
    }
    let guest = token(json!({"email": "eve@example.com", "folders": [ada]}));
    assert_eq!(start(&guest, &ada).await?.0, 403, "no group, no prompt");
    // Another principal of the same issuer does not see the session.
    let path = format!("/sessions/{}", session["id"].as_str().context("an id")?);
    assert_eq!(server.get(&path, &staff).send().await?.status(), 200);
    assert_eq!(server.get(&path, &guest).send().await?.status(), 404);
    Ok(())
}

#[tokio::test]
async fn what_a_token_opened_ends_with_it() -> anyhow::Result<()> {
    let issuer = TestIssuer::start().await;
    let key = TestKey::curve();
    issuer.publish(&[("1", &key)]);
    let server = TestServer::open(&issuer, &[("GANDER_AUTH_OIDC_CLOCK_SKEW", "0s")]).await?;
    let token = issuer.token(("1", &key), "ada", json!({"exp": unix_seconds() + 4}));
    let endpoint = gander_client::Endpoint::new(format!("http://{}/acp", server.server.address)).with_bearer(&token)?;
    let link = gander_client::Link::connect_websocket(&endpoint).await?;
    let mut connection = gander_client::AgentConnection::new(link);
    let call = connection.client.initialize("test", "0");
    connection.wait_for_answer(call, |_| {}).await?;
    // Nothing is sent any more: it is the server that ends the connection.
    let ended = async { while connection.next_event().await.is_ok() {} };
    tokio::time::timeout(PATIENCE, ended).await.context("the WebSocket stays open")?;
    assert!(server.refusal(&token).await?.contains("has expired"));
    Ok(())
}

#[tokio::test]
async fn a_login_on_another_device_lets_the_terminal_attach_and_is_refreshed() -> anyhow::Result<()> {
    let issuer = TestIssuer::start().await;
    let key = TestKey::rsa();
    issuer.publish(&[("1", &key)]);
    let root = tempfile::tempdir()?;
    let roots = json!([root.path()]).to_string();
    let settings = [("GANDER_AUTH_OIDC_CLIENT_ID", "gander-cli"), ("GANDER_SERVER_ROOTS", &roots)];
    let server = TestServer::open(&issuer, &settings).await?;
    let url = format!("http://{}", server.server.address);
    let metadata = server.http.get(format!("{url}/.well-known/oauth-protected-resource")).send().await?;
    let metadata: Value = metadata.json().await?;
    assert_eq!((&metadata["authorization_servers"], &metadata["resource"]), (&json!([issuer.url()]), &json!(url)));
    let [ending, lasting] = [("ada", 30), ("ada", 600)]
        .map(|(name, left)| issuer.token(("1", &key), name, json!({"exp": unix_seconds() + left})));
    let granted = |token: &str, seconds: u64, refresh: &str| {
        (200, json!({"access_token": token, "token_type": "Bearer", "expires_in": seconds, "refresh_token": refresh}))
    };
    issuer.state.lock().unwrap().polls = vec![
        (400, json!({"error": "authorization_pending"})),
        (400, json!({"error": "slow_down"})),
        granted(&ending, 30, "refresh-1"),
        granted(&lasting, 600, "refresh-2"),
    ];
    let elsewhere = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data(root.path())?);
    // A server that names another one's audience would be sent a token that counts there.
    let refused = elsewhere.run(&["login", &url]).await?;
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && told.contains(&format!("--audience {AUDIENCE}")), "{told}");
    assert!(issuer.state.lock().unwrap().forms.is_empty(), "nothing was asked of the issuer");
    let shown = elsewhere.stdout(&["login", &url, "--audience", AUDIENCE]).await?;
    assert!(shown.contains("WDJB-MJHT") && shown.contains(&format!("{}/enter", issuer.url())), "{shown}");
    let file = elsewhere.data.join("logins.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file)?.permissions());
    assert_eq!(mode & 0o777, 0o600);
    // It ends within the minute: it is refreshed before it is used, and the new one is kept.
    let mut chat = elsewhere.command(["chat", "--plain", "--attach", &url]);
    chat.current_dir(root.path());
    let mut chat = Terminal::start(chat)?;
    chat.until("/help").await?;
    chat.enter("text")?;
    chat.until("scripted").await?;
    chat.enter("/quit")?;
    chat.ended().await?;
    let kept = std::fs::read_to_string(&file)?;
    assert!(kept.contains("refresh-2") && kept.contains(&lasting), "{kept}");
    let forms = issuer.state.lock().unwrap().forms.clone();
    let grants: Vec<&str> = forms.iter().filter_map(|(_, form)| form.get("grant_type").map(String::as_str)).collect();
    let device = "urn:ietf:params:oauth:grant-type:device_code";
    assert_eq!(grants, [device, device, device, "refresh_token"]);
    let all_name_the_client =
        forms.iter().all(|(_, form)| form["client_id"] == "gander-cli" && form["resource"] == AUDIENCE);
    assert!(all_name_the_client, "{forms:?}");
    elsewhere.stdout(&["logout", &url]).await?;
    assert!(!std::fs::read_to_string(&file)?.contains("refresh-2"));
    let again = elsewhere.run(&["logout", &url]).await?;
    assert!(!again.status.success());
    Ok(())
}

#[tokio::test]
async fn doctor_shows_the_issuer_and_wrong_settings_are_named() -> anyhow::Result<()> {
    let issuer = TestIssuer::start().await;
    issuer.publish(&[("1", &TestKey::curve())]);
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data(root.path())?);
    let config = launch.data.join("config/gander");
    std::fs::create_dir_all(&config)?;
    let text = format!("[auth.oidc]\nissuer = {:?}\naudience = {AUDIENCE:?}\nclient_id = \"cli\"\n", issuer.url());
    std::fs::write(config.join("gander.toml"), &text)?;
    let shown = launch.stdout(&["doctor"]).await?;
    for line in [&issuer.url(), AUDIENCE, "signing keys                 1"] {
        assert!(shown.contains(line), "{line} is not in:\n{shown}");
    }
    for (text, reason) in [
        ("[auth.oidc]\nissuer = \"https://login.example\"\n", "auth.oidc.issuer needs auth.oidc.audience"),
        ("[auth.oidc]\nissuer = \"http://login.example\"\naudience = \"x\"\n", "must begin with https://"),
        ("[auth.oidc]\nalgorithms = [\"HS256\"]\n", "unknown variant `HS256`"),
        ("[auth.oidc]\nisuer = \"x\"\n", "did you mean auth.oidc.issuer?"),
        ("[auth.odic]\n", "unknown key"),
    ] {
        std::fs::write(config.join("gander.toml"), text)?;
        let output = launch.run(&["doctor"]).await?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(reason), "{text}: {said}");
    }
    Ok(())
}
