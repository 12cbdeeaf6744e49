//! Every documented route of chat, sessions, agent and settings answers in its documented shape.
//!
//! The facts are our own reading of goose 1.35's API. With `GANDER_GOOSE_OPENAPI=FILE` the official description is held
//! against the same answers.

use gander_testkit::conformance::ConformanceRecorder;
use reqwest::Method;
use serde_json::{Value, json};

use crate::goose_rest::test_server::{TestServer, message, said};

/// What must be in an object, and of which type. A `?` is a field that may be null or absent.
const FACTS: &[(&str, &str)] = &[
    ("SessionListResponse", "sessions:[Session]"),
    (
        "Session",
        "id:string working_dir:string name:string created_at:string updated_at:string extension_data:object \
         message_count:integer user_set_name:boolean session_type:string goose_mode:string total_tokens:integer? \
         input_tokens:integer? output_tokens:integer? provider_name:string? schedule_id:string? conversation:[Message]?",
    ),
    ("Message", "role:string created:integer content:array metadata:object"),
    ("ResumeAgentResponse", "session:Session extension_results:[ExtensionLoadResult]?"),
    ("RestartAgentResponse", "extension_results:[ExtensionLoadResult]"),
    ("ExtensionLoadResult", "name:string success:boolean error:string?"),
    ("ToolInfo", "name:string description:string parameters:array permission:string?"),
    ("ListAppsResponse", "apps:array"),
    ("ImportAppResponse", "name:string message:string"),
    ("ConfigResponse", "config:object"),
    ("ExtensionResponse", "extensions:array"),
    ("ProviderDetails", "name:string metadata:ProviderMetadata is_configured:boolean provider_type:string"),
    (
        "ProviderMetadata",
        "name:string display_name:string description:string default_model:string known_models:[ModelInfo] \
         model_doc_link:string config_keys:array",
    ),
    ("ModelInfo", "name:string context_limit:integer"),
    ("ModelInfoResponse", "source:string"),
    (
        "ProviderCatalogEntry",
        "id:string name:string format:string api_url:string model_count:integer doc_url:string env_var:string",
    ),
    (
        "ProviderTemplate",
        "id:string name:string format:string api_url:string models:array supports_streaming:boolean env_var:string \
         doc_url:string",
    ),
    ("PromptsListResponse", "prompts:array"),
    ("SlashCommandsResponse", "commands:[SlashCommand]"),
    ("SlashCommand", "command:string help:string command_type:string"),
    ("SessionInsights", "totalSessions:integer totalTokens:integer"),
    ("SessionReplyResponse", "request_id:string"),
    ("SessionExtensionsResponse", "extensions:array"),
    ("ForkResponse", "sessionId:string"),
    ("UpdateSessionUserRecipeValuesResponse", "recipe:object"),
    ("SystemInfo", "app_version:string os:string os_version:string architecture:string enabled_extensions:array"),
    ("FeaturesResponse", "features:object"),
];

/// Why a value has not this shape; nothing if it has.
fn misfit(shape: &str, value: &Value) -> Option<String> {
    if let Some(shape) = shape.strip_suffix('?') {
        return if value.is_null() { None } else { misfit(shape, value) };
    }
    let plain = match shape {
        "any" => Some(true),
        "string" => Some(value.is_string()),
        "integer" => Some(value.is_u64()),
        "boolean" => Some(value.is_boolean()),
        "array" => Some(value.is_array()),
        "object" => Some(value.is_object()),
        _ => None,
    };
    if let Some(fits) = plain {
        return (!fits).then(|| format!("no {shape}: {value}"));
    }
    if let Some(items) = shape.strip_prefix('[').and_then(|shape| shape.strip_suffix(']')) {
        let Some(values) = value.as_array() else { return Some(format!("no list: {value}")) };
        return values.iter().find_map(|value| misfit(items, value));
    }
    let (_, fields) = FACTS.iter().find(|(name, _)| *name == shape).unwrap_or_else(|| panic!("no such shape: {shape}"));
    let mut fields = fields.split_whitespace().map(|field| field.split_once(':').unwrap());
    fields.find_map(|(key, shape)| misfit(shape, &value[key]).map(|why| format!("{key}: {why}")))
}

struct Case {
    method: Method,
    path: String,
    body: Option<Value>,
    status: u16,
    shape: &'static str,
}

fn get(path: &str, shape: &'static str) -> Case {
    Case { method: Method::GET, path: path.to_owned(), body: None, status: 200, shape }
}

fn post(path: &str, body: Value, shape: &'static str) -> Case {
    Case { method: Method::POST, path: path.to_owned(), body: Some(body), status: 200, shape }
}

fn put(path: &str, body: Value, shape: &'static str) -> Case {
    Case { method: Method::PUT, ..post(path, body, shape) }
}

fn sessions(id: &str, file: &str) -> Vec<Case> {
    let (of, request) = (|rest: &str| format!("/sessions/{id}{rest}"), uuid::Uuid::now_v7());
    vec![
        get("/sessions", "SessionListResponse"),
        get("/sessions/search?query=chat", "[Session]"),
        get("/sessions/insights", "SessionInsights"),
        get(&of(""), "Session"),
        get(&of("/export"), "string"),
        get(&of("/extensions"), "SessionExtensionsResponse"),
        put(&of("/name"), json!({"name": "Named"}), "any"),
        put(
            &of("/user_recipe_values"),
            json!({"userRecipeValues": {"who": "Anna"}}),
            "UpdateSessionUserRecipeValuesResponse",
        ),
        post(&of("/fork"), json!({"truncate": false, "copy": true}), "ForkResponse"),
        post("/sessions/import", json!({"json": file}), "Session"),
        post(
            &of("/reply"),
            json!({"request_id": request, "user_message": message(json!([[{"text": "hi", "delay_ms": 60000}]]))}),
            "SessionReplyResponse",
        ),
        post(&of("/cancel"), json!({"request_id": request}), "any"),
    ]
}

fn agent(id: &str, folder: &str) -> Vec<Case> {
    let of = |body: Value| {
        let mut body = body;
        body["session_id"] = json!(id);
        body
    };
    vec![
        post("/agent/start", json!({"working_dir": folder}), "Session"),
        post("/agent/resume", of(json!({"load_model_and_extensions": true})), "ResumeAgentResponse"),
        post("/agent/restart", of(json!({})), "RestartAgentResponse"),
        post("/agent/update_provider", of(json!({"provider": "demo", "model": "demo"})), "any"),
        post("/agent/update_session", of(json!({"goose_mode": "approve"})), "any"),
        post("/agent/update_from_session", of(json!({})), "any"),
        post("/agent/update_working_dir", of(json!({"working_dir": folder})), "any"),
        get(&format!("/agent/tools?session_id={id}"), "[ToolInfo]"),
        get(&format!("/agent/list_apps?session_id={id}"), "ListAppsResponse"),
        Case { status: 201, ..post("/agent/import_app", json!({"html": "<title>clock</title>"}), "ImportAppResponse") },
        get("/agent/export_app/clock", "string"),
        post("/agent/stop", of(json!({})), "any"),
    ]
}

fn settings() -> Vec<Case> {
    vec![
        get("/config", "ConfigResponse"),
        post("/config/upsert", json!({"key": "GOOSE_MODE", "value": "auto", "is_secret": false}), "any"),
        post("/config/read", json!({"key": "GOOSE_MODE", "is_secret": false}), "any"),
        post("/config/remove", json!({"key": "GOOSE_MODE", "is_secret": false}), "any"),
        get("/config/extensions", "ExtensionResponse"),
        get("/config/providers", "[ProviderDetails]"),
        get("/config/providers/demo/models", "[ModelInfo]"),
        get("/config/provider-catalog", "[ProviderCatalogEntry]"),
        post("/config/canonical-model-info", json!({"provider": "demo", "model": "demo"}), "ModelInfoResponse"),
        get("/config/prompts", "PromptsListResponse"),
        get("/config/slash_commands", "SlashCommandsResponse"),
        get("/config/validate", "any"),
        get("/system_info", "SystemInfo"),
        get("/features", "FeaturesResponse"),
        get("/status", "string"),
    ]
}

#[tokio::test]
async fn every_documented_route_answers_in_its_documented_shape() {
    let server = TestServer::open().await;
    let who = json!({"key": "who", "input_type": "string", "requirement": "optional", "description": "whom", "default": "you"});
    let recipe = json!({"version": "1.0.0", "title": "t", "description": "d", "instructions": "Greet {{ who }}.", "parameters": [who]});
    let started = server.ok("/agent/start", json!({"working_dir": server.work(), "recipe": recipe})).await;
    let id = started["id"].as_str().unwrap();
    server.reply(json!({"session_id": id, "user_message": said("hello")})).await;
    let (_, file) = server.get(&format!("/sessions/{id}/export")).await;
    let (official, mut recorder) = (official(), ConformanceRecorder::for_protocol("goose REST"));
    recorder.lists("route", ["POST /reply"]);
    recorder.shows("route", "POST /reply", "HTTP");
    let cases = sessions(id, file.as_str().unwrap()).into_iter().chain(agent(id, &server.work())).chain(settings());
    for Case { method, path, body, status, shape } in cases {
        let route = format!("{method} {}", path.split('?').next().unwrap_or(&path).replace(id, "{id}"));
        recorder.lists("route", [&route]);
        let request = server.request(method.clone(), &path);
        let response = match &body {
            Some(body) => request.json(body).send().await.unwrap(),
            None => request.send().await.unwrap(),
        };
        let found = response.status().as_u16();
        let text = response.text().await.unwrap();
        assert_eq!(found, status, "{method} {path}: {text}");
        let value: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        assert_eq!(misfit(shape, &value), None, "{method} {path}");
        recorder.shows("route", &route, "HTTP");
        if let Some(document) = &official {
            validate(document, shape, &value, &format!("{method} {path}"));
        }
    }
}

/// The official description, if somebody named it.
fn official() -> Option<Value> {
    let path = std::env::var_os("GANDER_GOOSE_OPENAPI")?;
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    allow_null(&mut document);
    Some(document)
}

/// OpenAPI 3.0 says `nullable` where JSON Schema has a type for it.
fn allow_null(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(allow_null),
        Value::Object(fields) => {
            fields.values_mut().for_each(allow_null);
            if fields.remove("nullable") == Some(Value::Bool(true)) {
                let schema = Value::Object(std::mem::take(fields));
                *value = json!({"anyOf": [schema, {"type": "null"}]});
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn validate(document: &Value, shape: &str, value: &Value, case: &str) {
    let name = shape.trim_matches(['[', ']', '?']);
    if document["components"]["schemas"].get(name).is_none() {
        return;
    }
    let reference = json!({"$ref": format!("#/components/schemas/{name}")});
    let items = shape.starts_with('[');
    let mut schema = if items { json!({"type": "array", "items": reference}) } else { reference };
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{case}: {wrong:#?}");
}

/// What goosed had and nothing here stands behind.
const ABSENT: [(Method, &str); 12] = [
    (Method::POST, "/agent/set_container"),
    (Method::POST, "/config/custom-providers"),
    (Method::POST, "/sessions/import/nostr"),
    (Method::GET, "/diagnostics/x"),
    (Method::GET, "/tunnel/status"),
    (Method::POST, "/tunnel/start"),
    (Method::POST, "/tunnel/stop"),
    (Method::GET, "/dictation/config"),
    (Method::GET, "/dictation/models"),
    (Method::POST, "/dictation/transcribe"),
    (Method::GET, "/local-inference/models"),
    (Method::GET, "/local-inference/search"),
];

#[tokio::test]
async fn what_is_not_offered_is_refused_honestly() {
    let server = TestServer::open().await;
    let mut recorder = ConformanceRecorder::for_protocol("goose REST");
    for (method, path) in ABSENT {
        let request = server.request(method.clone(), path);
        let request = if method == Method::POST { request.json(&json!({})) } else { request };
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), 501, "{method} {path}");
        let said: Value = response.json().await.unwrap();
        assert!(said["message"].is_string(), "{method} {path}: {said}");
        let route = format!("{method} {path}");
        recorder.lists("route", [&route]);
        recorder.refuses("route", &route, "501 with a sentence");
    }
}
