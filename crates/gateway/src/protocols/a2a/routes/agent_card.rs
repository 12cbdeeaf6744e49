//! Agent cards and the catalog of agents, under the name by which the server was called.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use gander_domain::{AgentManifest, SlashCommand};
use gander_http::settings::OpenProtocol;
use gander_http::{error, origin_check};
use gander_services::paths::hex_path_text;
use gander_wire::a2a::A2aDialect;
use gander_wire::a2a::card::{self as cards, CardAccess, CardDetails};
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::protocols::a2a::A2aState;

/// The card of the first agent.
pub(crate) async fn get_default_card(State(state): State<Arc<A2aState>>, request: Request) -> Response {
    let parts = request.into_parts().0;
    match state.a2a.find_agent("") {
        Some(agent) => card_response(&state, &parts, &agent),
        None => error::not_found_response(parts.uri).await,
    }
}

/// The card of an agent by its name.
pub(crate) async fn get_agent_card(
    State(state): State<Arc<A2aState>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let parts = request.into_parts().0;
    match state.a2a.find_agent(&name) {
        Some(agent) => card_response(&state, &parts, &agent),
        None => error::not_found_response(parts.uri).await,
    }
}

/// The keys that signatures of cards can be checked with, if there are any.
pub(crate) async fn get_signing_keys(State(state): State<Arc<A2aState>>, request: Request) -> Response {
    let parts = request.into_parts().0;
    match state.signer.as_deref() {
        Some(signer) => cacheable_card_response(&state, &parts.headers, &signer.jwks(), None),
        None => error::not_found_response(parts.uri).await,
    }
}

/// All agents, and where their cards are.
pub(crate) async fn get_agent_catalog(State(state): State<Arc<A2aState>>, request: Request) -> Response {
    let parts = request.into_parts().0;
    let (base, host) = (card_base_url(&state, &parts), card_authority(&parts));
    let agents: Vec<(AgentManifest, String)> = state
        .a2a
        .list_agents()
        .into_iter()
        .map(|agent| {
            let url = format!("{base}/a2a/{}/.well-known/agent-card.json", agent.name);
            (AgentManifest::clone(&agent), url)
        })
        .collect();
    cacheable_card_response(&state, &parts.headers, &cards::agent_catalog(&host, &agents), None)
}

/// Where an agent is, as the caller calls it.
pub(crate) fn card_details(state: &A2aState, parts: &Parts, agent: &AgentManifest) -> CardDetails {
    let base = card_base_url(state, parts);
    let first = state.a2a.find_agent("").is_some_and(|first| first.name == agent.name);
    let url = if first { format!("{base}/a2a") } else { format!("{base}/a2a/{}", agent.name) };
    let open = state.open.contains(&OpenProtocol::A2a);
    CardDetails {
        url,
        grpc: state.cards.grpc.then(|| card_authority(parts)),
        version: gander_services::VERSION.to_owned(),
        access: if open { CardAccess::Open } else { CardAccess::Token },
        push: true,
        // Recipes are somebody's: who did not come in is told of those that every session has.
        commands: SlashCommand::of_every_session(),
    }
}

fn card_response(state: &A2aState, parts: &Parts, agent: &AgentManifest) -> Response {
    let (agent, details) = (&state.services.with_accepted_media(agent), card_details(state, parts, agent));
    let new = cards::agent_card_in_dialect(A2aDialect::V1, agent, &details);
    let card = if state.cards.v03 { cards::agent_card(agent, &details) } else { new.clone() };
    let signatures = card_signatures(state, parts, [&card, &new]);
    cacheable_card_response(state, &parts.headers, &card, signatures)
}

/// The card in the words of one version, for somebody who came in and has these commands.
pub(crate) fn card_for_version(
    state: &A2aState,
    parts: &Parts,
    dialect: A2aDialect,
    (agent, commands): (&AgentManifest, &[SlashCommand]),
) -> Value {
    let details = CardDetails { commands: commands.to_vec(), ..card_details(state, parts, agent) };
    let mut card = cards::agent_card_in_dialect(dialect, &state.services.with_accepted_media(agent), &details);
    if let Some(signatures) = card_signatures(state, parts, [&card, &card]) {
        card["signatures"] = signatures;
    }
    card
}

/// A reader that takes only what 1.0 knows from a card for both versions checks what it took: hence up to two.
fn card_signatures(state: &A2aState, parts: &Parts, forms: [&Value; 2]) -> Option<Value> {
    let signer = state.signer.as_deref()?;
    let keys = format!("{}/.well-known/jwks.json", card_base_url(state, parts));
    let forms = if forms[0] == forms[1] { &forms[..1] } else { &forms[..] };
    Some(forms.iter().filter_map(|form| signer.sign_card(form, &keys)).collect())
}

/// Where the caller found us.
pub(crate) fn card_base_url(state: &A2aState, parts: &Parts) -> String {
    state
        .cards
        .public_url
        .clone()
        .map_or_else(|| origin_check::request_base_url(parts), |url| url.trim_end_matches('/').to_owned())
}

fn card_authority(parts: &Parts) -> String {
    origin_check::request_authority(&parts.uri, &parts.headers).unwrap_or_default()
}

/// Whoever has it already is told just that. Signatures differ each time and say nothing new.
fn cacheable_card_response(
    state: &A2aState,
    headers: &HeaderMap,
    value: &Value,
    signatures: Option<Value>,
) -> Response {
    let mut body = value.to_string();
    let tag = format!("W/\"{}\"", hex_path_text(&Sha256::digest(body.as_bytes())));
    if let (Some(signatures), Some(object)) = (signatures, value.as_object()) {
        let mut signed = object.clone();
        signed.insert("signatures".to_owned(), signatures);
        body = Value::Object(signed).to_string();
    }
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let known = known.flat_map(|tags| tags.split(',')).any(|known| known.trim() == tag || known.trim() == "*");
    let mut response = if known { StatusCode::NOT_MODIFIED.into_response() } else { Response::new(Body::from(body)) };
    let since = state.cards.since.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let mut set = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    set(header::ETAG, &tag);
    set(header::LAST_MODIFIED, &since);
    set(header::CACHE_CONTROL, "public, max-age=60");
    if !known {
        set(header::CONTENT_TYPE, "application/json");
    }
    response
}
