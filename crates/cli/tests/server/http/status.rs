//! `/gander/status`: what the server shows of itself, and to whom.

use gander_domain::caller::Scope;
use gander_gateway::server::router;
use gander_services::token;
use secrecy::ExposeSecret;
use serde_json::json;

use super::Server;

#[tokio::test]
async fn status_shows_who_asks_and_every_limit_in_force() {
    let server = Server::start(router, &[("GANDER_LIMITS_BODY", "1 KiB")]).await;
    let status = server.send("GET", "/gander/status", &[&server.bearer()], "").await.json();
    assert_eq!(status["principal"], "owner");
    assert_eq!(status["scopes"], json!(["read", "prompt", "approve", "admin"]));
    assert_eq!(status["version"], gander::VERSION);
    assert_eq!(status["limits"], serde_json::to_value(&server.config.sections.limits).unwrap());
    assert_eq!(status["limits"]["body"], "1 KiB");
}

#[tokio::test]
async fn totals_of_the_server_are_shown_to_whoever_may_see_the_server() {
    let server = Server::start(router, &[]).await;
    let totals = ["pid", "connections", "panics", "app"];
    for (name, scopes, sees) in
        [("other", vec![Scope::Prompt, Scope::Approve], false), ("admin", vec![Scope::Admin], true)]
    {
        let token = token::add_token(&server.config.paths, name, &scopes, None).unwrap();
        let bearer = format!("Authorization: Bearer {}", token.expose_secret());
        let status = server.send("GET", "/gander/status", &[&bearer], "").await.json();
        assert_eq!((&status["principal"], &status["store"]["status"]), (&json!(name), &json!("ok")));
        assert!(status["limits"].is_object());
        assert_eq!(totals.map(|total| status.get(total).is_some()), [sees; 4], "{name}: {status}");
    }
    let owner = server.send("GET", "/gander/status", &[&server.bearer()], "").await.json();
    assert_eq!(totals.map(|total| owner.get(total).is_some()), [true; 4]);
}
