//! `/openapi.json` and the documentation.

use gander_gateway::server::{ROUTES, router};
use gander_http::Access;

use super::Server;

#[tokio::test]
async fn the_description_has_every_route_and_our_own_whole() {
    let server = Server::start(router, &[]).await;
    assert_eq!(server.send("GET", "/openapi.json", &[], "").await.status, 401);
    let api = server.send("GET", "/openapi.json", &[&server.bearer()], "").await.json();
    for route in ROUTES {
        let path = route.path.replace("{*", "{");
        let operation = &api["paths"][&path][format!("{:?}", route.verb).to_lowercase()];
        assert_eq!(operation["security"].is_null(), route.access == Access::Public, "{path}: {operation}");
        let official = operation["externalDocs"]["url"].is_string();
        assert!(official != operation["responses"]["default"].is_null(), "{path}: {operation}");
        let own = operation["tags"][0] == "gander";
        assert!(own != official && operation["summary"].is_string(), "{path}: {operation}");
    }
    for (path, text) in [("/docs/README.md", "# "), ("/docs/acp.md", "# Agent Client Protocol")] {
        let answer = server.send("GET", path, &[], "").await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/markdown; charset=utf-8")),
            "{path}"
        );
        assert!(answer.body.starts_with(text), "{path}: {}", answer.body);
    }
    assert_eq!(server.send("GET", "/docs/../Cargo.toml", &[], "").await.status, 404);
    assert_eq!(server.send("GET", "/docs/api", &[], "").await.header("location"), Some("/#/docs/api"));
}
