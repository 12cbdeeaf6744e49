//! `GET /openapi.json`: every route of the table. Our own are described whole; those of foreign protocols by path, method
//! and access, with the address of the protocol's own description.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use gander_domain::caller::Protocol;
use serde_json::{Map, Value, json};

use crate::oidc_metadata::OIDC_METADATA_PATH;
use crate::route::{Access, Payload, RouteRule, Verb};
use crate::route_tables::ProtocolAbout;
use crate::state::HttpState;

pub async fn get_openapi(State(state): State<Arc<HttpState>>) -> Json<Value> {
    let (routes, protocols) = state.api;
    Json(describe_routes(routes, protocols))
}

/// The description of these routes, as OpenAPI 3.1 has it.
fn describe_routes(routes: &[RouteRule], protocols: &[(Protocol, ProtocolAbout)]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let path = route.path.replace("{*", "{");
        let about = protocols.iter().find(|(protocol, _)| *protocol == route.protocol).map(|(_, about)| about);
        let Some(about) = about else { continue };
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[route.verb.method_name().to_ascii_lowercase()] = openapi_operation(route, about);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "gander", "version": gander_services::VERSION,
            "description": "One agent server, every agent protocol. Sessions are the same through each of them.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "tags": protocols.iter().map(|(_, about)| openapi_tag(about)).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "What `gander token` prints" },
            },
            "schemas": { "Problem": openapi_problem_schema() },
        },
    })
}

fn openapi_tag(about: &ProtocolAbout) -> Value {
    let mut tag = json!({ "name": about.name, "description": about.title });
    if let Some(url) = about.official {
        tag["externalDocs"] = json!({ "url": url });
    }
    tag
}

fn openapi_operation(route: &RouteRule, about: &ProtocolAbout) -> Value {
    let mut operation = match own_openapi_operation(route.verb, route.path) {
        Some(own) if about.official.is_none() => own,
        Some(_) | None => {
            let answer = json!({ "description": "As the protocol describes it" });
            json!({ "summary": about.title, "responses": { "default": answer } })
        }
    };
    operation["tags"] = json!([about.name]);
    operation["operationId"] = openapi_operation_id(route).into();
    if let Some(url) = about.official {
        operation["externalDocs"] = json!({ "url": url });
        if route.payload != Payload::None {
            operation["requestBody"] = json!({ "content": { "application/json": { "schema": {} } } });
        }
    }
    let parameters = openapi_path_parameters(route.path);
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    match route.access {
        Access::Public => {}
        Access::Token(scope) => {
            operation["security"] = json!([{ "token": [] }]);
            operation["x-scope"] = scope.name().into();
        }
        // Whoever is on this machine may be let in without a token, if the owner says so.
        Access::OpenProtocol(_, scope) => {
            operation["security"] = json!([{ "token": [] }, {}]);
            operation["x-scope"] = scope.name().into();
        }
    }
    if about.official.is_none() {
        add_openapi_refusals(&mut operation, route);
    }
    operation
}

/// `get_gander_status` for `GET /gander/status`.
fn openapi_operation_id(route: &RouteRule) -> String {
    let words = route.path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let verb = route.verb.method_name().to_ascii_lowercase();
    [verb.as_str()].into_iter().chain(words).collect::<Vec<_>>().join("_")
}

fn openapi_path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    names
        .map(|name| {
            json!({ "name": name.trim_start_matches('*'), "in": "path", "required": true, "schema": { "type": "string" } })
        })
        .collect()
}

/// What the guard answers before a handler runs.
fn add_openapi_refusals(operation: &mut Value, route: &RouteRule) {
    let mut refusals = vec![
        (400, "The request cannot be read"),
        (403, "The host or the origin is not one of this server's"),
        (429, "Too many requests; Retry-After says when to come back"),
        (503, "The server cannot do this now"),
    ];
    if route.access != Access::Public {
        refusals.push((401, "No token, or a wrong one"));
    }
    if route.payload != Payload::None {
        refusals.extend([(413, "The body is too large"), (415, "The body is not of the type that is expected")]);
    }
    for (status, description) in refusals {
        let responses = &mut operation["responses"];
        if responses[status.to_string()].is_null() {
            responses[status.to_string()] = openapi_problem_response(description);
        }
    }
}

fn openapi_problem_response(description: &str) -> Value {
    json!({
        "description": description,
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    })
}

fn openapi_problem_schema() -> Value {
    let text = json!({ "type": "string" });
    let error = json!({
        "type": "object", "required": ["code", "message"], "properties": { "code": text, "message": text },
    });
    json!({ "type": "object", "required": ["error"], "properties": { "error": error } })
}

/// A route of our own; `None` for one that nobody described, which a test forbids.
fn own_openapi_operation(verb: Verb, path: &str) -> Option<Value> {
    let file = |summary: &str, kind: &str| {
        let content = json!({ (kind): { "schema": { "type": "string" } } });
        json!({
            "summary": summary,
            "responses": {
                "200": { "description": "The file", "content": content },
                "404": openapi_problem_response("There is no such file"),
            },
        })
    };
    let redirect =
        |summary: &str| json!({ "summary": summary, "responses": { "303": { "description": "The page has it" } } });
    Some(match (verb, path) {
        (Verb::Get, "/" | "/inspector") => file("The page", "text/html"),
        (Verb::Get, "/assets/{*path}") => file("A file of the page", "*/*"),
        (Verb::Get, "/favicon.ico" | "/favicon.svg") => file("The page's icon", "image/*"),
        (Verb::Get, "/frame.html") => file("The frame in which the page shows what agents make", "text/html"),
        (Verb::Get, "/licences") => file("Licences of what the page contains", "text/html"),
        (Verb::Get, "/manifest.webmanifest") => file("The page's manifest", "application/manifest+json"),
        (Verb::Get, "/sw.js") => file("The page's service worker", "text/javascript"),
        (Verb::Get, "/docs") => redirect("The documentation, in the page"),
        (Verb::Get, "/docs/api") => redirect("This description, in the page"),
        (Verb::Get, "/docs/{*path}") => file("One page of the documentation", "text/markdown"),
        (Verb::Get, "/openapi.json") => openapi_json_answer("This description", json!({ "type": "object" })),
        (Verb::Get, "/ping") => openapi_json_answer("Whether the server answers", json!({ "type": "object" })),
        (Verb::Get, "/health") => openapi_health_operation(),
        (Verb::Get, "/status") => openapi_status_text_operation(),
        (Verb::Get, "/features") => openapi_features_operation(),
        (Verb::Get, OIDC_METADATA_PATH) => openapi_login_metadata_operation(),
        (Verb::Get, "/metrics") => json!({
            "summary": "Figures of this server and of the nodes beside it, for Prometheus",
            "responses": { "200": {
                "description": "The figures", "content": { "text/plain": { "schema": { "type": "string" } } },
            } },
        }),
        (Verb::Get, "/gander/audit") => openapi_audit_operation(),
        (Verb::Get, "/gander/status") => openapi_server_status_operation(),
        (Verb::Post, "/gander/tickets") => openapi_ticket_operation(),
        (Verb::Post, "/gander/login") => openapi_login_operation(),
        (Verb::Delete, "/gander/login") => json!({
            "summary": "Signs this browser out",
            "responses": { "204": { "description": "The cookie is revoked" } },
        }),
        (Verb::Get | Verb::Post | Verb::Put | Verb::Patch | Verb::Delete, _) => return None,
    })
}

fn openapi_json_answer(summary: &str, schema: Value) -> Value {
    let content = json!({ "application/json": { "schema": schema } });
    json!({ "summary": summary, "responses": { "200": { "description": "The answer", "content": content } } })
}

fn openapi_health_operation() -> Value {
    let answer = |words: &[&str]| {
        let schema = json!({
            "type": "object", "required": ["status"], "properties": { "status": { "type": "string", "enum": words } },
        });
        json!({ "application/json": { "schema": schema } })
    };
    json!({
        "summary": "Whether the store can be written and new work is taken",
        "responses": {
            "200": { "description": "Healthy", "content": answer(&["ok"]) },
            "503": { "description": "Not healthy", "content": answer(&["draining", "failing"]) },
        },
    })
}

fn openapi_status_text_operation() -> Value {
    let text = |word: &str| json!({ "text/plain": { "schema": { "type": "string", "enum": [word] } } });
    json!({
        "summary": "The same in one word, for clients that wait until a server is up",
        "responses": {
            "200": { "description": "Healthy", "content": text("ok") },
            "503": { "description": "Not healthy", "content": text("failing") },
        },
    })
}

fn openapi_login_metadata_operation() -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let schema = json!({
        "type": "object",
        "required": ["resource", "authorization_servers"],
        "properties": { "resource": { "type": "string" }, "authorization_servers": texts, "scopes_supported": texts,
            "bearer_methods_supported": texts, "gander_login": { "type": ["object", "null"] } },
    });
    let mut operation = openapi_json_answer("Which identity provider's tokens count (RFC 9728)", schema);
    operation["responses"]["404"] = json!({ "description": "None: only tokens of this server count" });
    operation
}

fn openapi_features_operation() -> Value {
    let features = json!({ "type": "object", "additionalProperties": { "type": "boolean" } });
    let schema = json!({ "type": "object", "required": ["features"], "properties": { "features": features } });
    openapi_json_answer("What this build can do, by name", schema)
}

fn openapi_audit_operation() -> Value {
    let parameter = |name: &str, kind: &str, about: &str| json!({ "name": name, "in": "query", "required": false, "description": about, "schema": { "type": kind } });
    let records = json!({ "type": "array", "items": { "type": "object" } });
    let schema = json!({ "type": "object", "required": ["records"], "properties": { "records": records } });
    let summary = "What agents did: who asked, who answered from where, what ran and how it ended";
    let mut operation = openapi_json_answer(summary, schema);
    operation["parameters"] = json!([
        parameter("session", "string", "Only this session"),
        parameter("since", "integer", "Only what was called since, in microseconds since 1970"),
        parameter("principal", "string", "Only what this principal asked for, answered or owns"),
        parameter("limit", "integer", "At most so many, the newest"),
    ]);
    operation
}

fn openapi_server_status_operation() -> Value {
    let text = json!({ "type": "string" });
    let store = json!({
        "type": "object", "required": ["status"],
        "properties": { "status": { "type": "string", "enum": ["ok", "failing"] }, "reason": text },
    });
    let schema = json!({
        "type": "object",
        "required": ["version", "principal", "scopes", "draining", "limits", "store"],
        "properties": {
            "version": text, "principal": text, "scopes": { "type": "array", "items": text },
            "draining": { "type": "boolean" }, "limits": { "type": "object" }, "store": store,
            "pid": { "type": "integer" }, "connections": { "type": "integer" }, "panics": { "type": "integer" },
            "app": { "type": "object" }, "node": { "type": "object" },
        },
    });
    openapi_json_answer("What is in force; figures of the whole server for the owner and administrators alone", schema)
}

fn openapi_ticket_operation() -> Value {
    let wanted = json!({
        "type": "object", "additionalProperties": false, "properties": { "phone": { "type": "boolean", "default": false } },
    });
    let made = json!({
        "type": "object", "required": ["ticket", "expiresInSeconds", "url"],
        "properties": {
            "ticket": { "type": "string" }, "expiresInSeconds": { "type": "integer" },
            "url": { "type": "string", "format": "uri" },
        },
    });
    let mut operation = openapi_json_answer("Makes a link that signs a browser in once", made);
    operation["requestBody"] = json!({ "required": false, "content": { "application/json": { "schema": wanted } } });
    operation
}

fn openapi_login_operation() -> Value {
    let wanted = json!({
        "type": "object", "required": ["ticket"], "properties": { "ticket": { "type": "string" } },
    });
    let given = json!({
        "type": "object", "required": ["pageKey"], "properties": { "pageKey": { "type": "string" } },
    });
    let given = json!({ "application/json": { "schema": given } });
    json!({
        "summary": "Trades a ticket for a cookie and a page key, for a page of this server alone",
        "requestBody": { "required": true, "content": { "application/json": { "schema": wanted } } },
        "responses": {
            "200": { "description": "The cookie is set, and the key that makes it count", "content": given },
            "401": openapi_problem_response("The ticket was used already or is too old"),
        },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::health::GanderRoutes;
    use crate::protocol::HttpProtocol;

    #[test]
    fn every_route_of_our_own_is_described() {
        let own = GanderRoutes::ROUTES.iter().map(|route| (route.verb, route.path));
        let silent: Vec<_> = own.filter(|(verb, path)| own_openapi_operation(*verb, path).is_none()).collect();
        assert!(silent.is_empty(), "{silent:?}");
    }

    #[test]
    fn a_description_has_every_route_once_with_its_access() {
        let rules: Vec<RouteRule> = GanderRoutes::ROUTES.iter().map(|route| route.rule(Protocol::Gander)).collect();
        let api = describe_routes(&rules, &[(Protocol::Gander, GanderRoutes::ABOUT)]);
        let operations = api["paths"].as_object().unwrap().values().flat_map(|methods| methods.as_object().unwrap());
        assert_eq!(operations.count(), rules.len());
        assert_eq!(api["paths"]["/gander/status"]["get"]["security"], json!([{ "token": [] }]));
        assert_eq!(api["paths"]["/health"]["get"]["security"], Value::Null);
        assert_eq!(api["paths"]["/assets/{path}"]["get"]["parameters"][0]["name"], "path");
    }
}
