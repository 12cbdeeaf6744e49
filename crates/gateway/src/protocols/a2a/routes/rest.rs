//! The HTTP+JSON binding: methods by address, agents and tenants as its first pieces, 0.3 below `v1`.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use gander_domain::AgentManifest;
use gander_http::artifact_download::{self, DownloadError};
use gander_http::body::{declares_foreign_charset, take_body_bytes};
use gander_http::error;
use gander_http::percent::decode_percent_lenient;
use gander_wire::a2a::json::JsonEventFrame;
use gander_wire::a2a::{
    A2aDialect, A2aError, A2aErrorKind, A2aMethod, A2aRequest, TaskSubject, json_rpc as json_rpc_wire,
};
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{StatusCode, Uri};
use serde_json::{Map, Value};

use super::response::{A2aResponse, a2a_response};
use super::{a2a_caller, json_rpc, requested_a2a_version, with_a2a_extensions_header};
use crate::protocols::a2a::A2aState;

/// Whatever is below `/a2a/`.
pub(crate) async fn handle_rest_request(
    State(state): State<Arc<A2aState>>,
    Extension(identity): Extension<gander_domain::caller::Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = take_body_bytes(body).await.unwrap_or_default();
    let path = parts.uri.path().strip_prefix("/a2a/").unwrap_or_default();
    let segments: Vec<String> = path.trim_end_matches('/').split('/').map(decode_percent_lenient).collect();
    let (agent, rest) = resolve_rest_agent(&state, &segments);
    let Some(agent) = agent else { return error::not_found_response(parts.uri.clone()).await };
    if rest.is_empty() && parts.method == http::Method::POST {
        return json_rpc::handle_json_rpc(&state, identity, agent, &parts, &body).await;
    }
    let Some(target) = RestTarget::from_path(&parts.method, rest) else {
        return error::not_found_response(parts.uri.clone()).await;
    };
    let media = rest_media_type(&parts.headers);
    let served = handle_rest_target(&state, identity, agent, &parts, &body, target, media).await;
    served.unwrap_or_else(|error| rest_error_response(&error, media))
}

/// Something that a context keeps under a name.
pub(crate) async fn get_a2a_artifact(
    State(state): State<Arc<A2aState>>,
    Extension(identity): Extension<gander_domain::caller::Caller>,
    Path(session): Path<String>,
    uri: Uri,
) -> Response {
    let found = artifact_download::download_artifact(&state, &identity, &session, &uri).await;
    found.unwrap_or_else(|error| {
        let kind = match error {
            DownloadError::Unreadable(_) => A2aErrorKind::InvalidParams,
            DownloadError::Missing(_) => A2aErrorKind::TaskNotFound,
            DownloadError::Later => A2aErrorKind::Unavailable,
            DownloadError::Failed => A2aErrorKind::Internal,
        };
        rest_error_response(&A2aError::new(kind, error.to_string()), "application/json")
    })
}

/// What an address asks for.
struct RestTarget {
    method: A2aMethod,
    dialect: A2aDialect,
    params: Map<String, Value>,
}

impl RestTarget {
    fn from_path(verb: &http::Method, segments: &[String]) -> Option<Self> {
        let (dialect, segments) = match segments {
            [first, rest @ ..] if first == "v1" => (A2aDialect::V03Rest, rest),
            other => (A2aDialect::V1, other),
        };
        let pieces: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (method, params) = match (verb.as_str(), pieces.as_slice()) {
            ("POST", ["message:send"]) => (A2aMethod::Send, vec![]),
            ("POST", ["message:stream"]) => (A2aMethod::Stream, vec![]),
            ("GET", ["tasks"]) if dialect == A2aDialect::V1 => (A2aMethod::List, vec![]),
            ("GET", ["extendedAgentCard"]) if dialect == A2aDialect::V1 => (A2aMethod::ExtendedCard, vec![]),
            ("GET", ["card"]) if dialect == A2aDialect::V03Rest => (A2aMethod::ExtendedCard, vec![]),
            (verb, ["tasks", task]) => parse_rest_task_segment(verb, task)?,
            ("POST", ["tasks", task, "pushNotificationConfigs"]) => (A2aMethod::SetPush, vec![("taskId", *task)]),
            ("GET", ["tasks", task, "pushNotificationConfigs"]) => (A2aMethod::ListPush, vec![("taskId", *task)]),
            ("GET", ["tasks", task, "pushNotificationConfigs", id]) => {
                (A2aMethod::GetPush, vec![("taskId", *task), ("id", *id)])
            }
            ("DELETE", ["tasks", task, "pushNotificationConfigs", id]) => {
                (A2aMethod::DeletePush, vec![("taskId", *task), ("id", *id)])
            }
            (_, _) => return None,
        };
        let params = params.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        Some(Self { method, dialect, params })
    }
}

/// The router knows no verbs behind a colon.
fn parse_rest_task_segment<'a>(verb: &str, segment: &'a str) -> Option<(A2aMethod, Vec<(&'static str, &'a str)>)> {
    match (verb, segment.rsplit_once(':')) {
        ("POST", Some((id, "cancel"))) => Some((A2aMethod::Cancel, vec![("id", id)])),
        ("GET" | "POST", Some((id, "subscribe"))) => Some((A2aMethod::Subscribe, vec![("id", id)])),
        ("GET", _) => Some((A2aMethod::Get, vec![("id", segment)])),
        (_, _) => None,
    }
}

/// The agent of an address, and what follows its name. A tenant is an agent too.
fn resolve_rest_agent<'a>(state: &A2aState, segments: &'a [String]) -> (Option<Arc<AgentManifest>>, &'a [String]) {
    let mut rest = segments;
    let mut agent = state.a2a.find_agent("");
    while let [first, after @ ..] = rest {
        if ["message:send", "message:stream", "tasks", "extendedAgentCard", "v1", ""].contains(&first.as_str()) {
            break;
        }
        (agent, rest) = (state.a2a.find_agent(first), after);
        if agent.is_none() {
            break;
        }
    }
    (agent, rest)
}

async fn handle_rest_target(
    state: &A2aState,
    identity: gander_domain::caller::Caller,
    agent: Arc<AgentManifest>,
    parts: &Parts,
    body: &Bytes,
    target: RestTarget,
    media: &'static str,
) -> Result<Response, A2aError> {
    if declares_foreign_charset(&parts.headers) {
        return Ok(error::not_utf8_response());
    }
    let version = requested_a2a_version(&parts.headers, &parts.uri);
    let agreed = match A2aDialect::from_version(&version) {
        Some(A2aDialect::V1) => target.dialect == A2aDialect::V1,
        Some(A2aDialect::V03 | A2aDialect::V03Rest) => target.dialect == A2aDialect::V03Rest,
        None => false,
    };
    if !agreed {
        return Err(json_rpc_wire::unsupported_json_rpc_version(&version));
    }
    let mut params = merge_rest_params(parts, body, target.params)?;
    let tenant = params.remove("tenant");
    if let Some(tenant) = tenant.as_ref().and_then(Value::as_str).filter(|tenant| !tenant.is_empty())
        && state.a2a.find_agent(tenant).is_none_or(|named| named.name != agent.name)
    {
        return Err(A2aError::invalid_field("tenant", "of the body and of the address differ"));
    }
    let request = A2aRequest::from_params(target.method, target.dialect, params)?;
    let caller = a2a_caller(state, identity, agent, target.dialect, parts);
    let frame = |subject: &TaskSubject| JsonEventFrame::unwrapped(caller.dialect, subject);
    let response = match a2a_response(state, &caller, parts, request, frame).await? {
        A2aResponse::Value(value) => {
            with_a2a_extensions_header(rest_json_response(StatusCode::OK, &value, media), &caller)
        }
        A2aResponse::Nothing => {
            with_a2a_extensions_header(rest_json_response(StatusCode::OK, &Map::new().into(), media), &caller)
        }
        A2aResponse::Events(response) => response,
    };
    Ok(response)
}

/// What the body says, under what the address says.
fn merge_rest_params(parts: &Parts, body: &Bytes, path: Map<String, Value>) -> Result<Map<String, Value>, A2aError> {
    let mut params = match body.trim_ascii() {
        b"" => Map::new(),
        body => match serde_json::from_slice(body) {
            Ok(Value::Object(params)) => params,
            Ok(_) => return Err(A2aError::new(A2aErrorKind::InvalidRequest, "a body is one object")),
            Err(error) => return Err(A2aError::new(A2aErrorKind::Parse, format!("not JSON: {error}"))),
        },
    };
    for (name, value) in
        rest_query_pairs(&parts.uri).into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("a2a-version"))
    {
        if params.get(&name).and_then(Value::as_str).is_some_and(|said| !said.is_empty() && said != value) {
            return Err(A2aError::invalid_field(name, "of the body and of the query differ"));
        }
        params.insert(name, value.into());
    }
    check_same_rest_task(&params, &path)?;
    params.extend(path);
    Ok(params)
}

/// What the body and the query call the task, and its push configuration, is what the address calls it.
fn check_same_rest_task(params: &Map<String, Value>, path: &Map<String, Value>) -> Result<(), A2aError> {
    let Some(task) = path.get("taskId").or_else(|| path.get("id")).and_then(Value::as_str) else { return Ok(()) };
    let id = match (path.get("taskId"), path.get("id").and_then(Value::as_str)) {
        (Some(_), None) => None, // a new configuration's, which no address names
        (_, id) => id,
    };
    // The protobuf of 0.3 calls a task `tasks/{id}`: as the name of the request, or as the parent of its configurations.
    let bare = |said: &str| said.strip_prefix("tasks/").unwrap_or(said).to_owned();
    let names = [("id", id), ("taskId", Some(task)), ("parent", Some(task)), ("name", id)];
    for (field, address) in names.into_iter().filter_map(|(field, address)| Some((field, address?))) {
        let said = params.get(field).and_then(Value::as_str).map(bare).unwrap_or_default();
        if !said.is_empty() && said != address {
            return Err(A2aError::invalid_field(field, "of the body and of the address differ"));
        }
    }
    Ok(())
}

/// The pairs of an address's query.
pub(crate) fn rest_query_pairs(uri: &Uri) -> Vec<(String, String)> {
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode_percent_lenient(&name.replace('+', " ")), decode_percent_lenient(&value.replace('+', " ")))
        })
        .collect()
}

/// Answers come in the type of the request.
fn rest_media_type(headers: &HeaderMap) -> &'static str {
    let named = [header::CONTENT_TYPE, header::ACCEPT];
    let own = |name: &header::HeaderName| {
        headers.get(name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains("a2a+json"))
    };
    if named.iter().any(own) { "application/a2a+json" } else { "application/json" }
}

fn rest_error_response(error: &A2aError, media: &'static str) -> Response {
    let status = StatusCode::from_u16(error.kind.codes().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    rest_json_response(status, &error.rest_body(), media)
}

fn rest_json_response(status: StatusCode, value: &Value, media: &'static str) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}
