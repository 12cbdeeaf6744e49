//! `fetch`: gets a page from the internet as readable text.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gander_domain::{Part, ToolCall, ToolContent, ToolEnd, ToolKind, ToolResult, ToolSpec};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::html;
use crate::blocking::BlockingPool;
use crate::process::command_output::clip_command_output_to_bytes;
use crate::{
    Blocked, Group, Guard, Limits, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace, arguments,
};
use gander_domain::sanitize;

/// Redirects that are followed.
const MOST_REDIRECTS: usize = 5;

/// Who asks.
const AGENT: &str = concat!("gander/", env!("CARGO_PKG_VERSION"));

pub(crate) struct Fetch {
    pub(crate) limits: Limits,
    pub(crate) guard: Guard,
    pub(crate) blocking: BlockingPool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
}

struct FetchedPage {
    url: Url,
    status: StatusCode,
    mime: String,
    body: Vec<u8>,
    cut: bool,
}

#[async_trait]
impl Tool for Fetch {
    fn name(&self) -> &str {
        "fetch"
    }

    fn group(&self) -> Group {
        Group::Web
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Network
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description:
                "Gets a public http or https address. HTML comes as readable text, other text as it is, pictures as \
                          pictures. Addresses of this machine and of private networks are refused."
                    .into(),
            schema: json!({
                "type": "object",
                "properties": {"url": {"type": "string"}},
                "required": ["url"],
                "additionalProperties": false
            })
            .into(),
        }
    }

    fn preview(&self, arguments: &Value, _workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let Arguments { url } = arguments::parse_tool_arguments(arguments)?;
        self.guard.check_literal_host(&parse_fetch_url(&url)?)?;
        Ok(ToolPreview {
            title: format!("Fetch {}", sanitize::sanitized_line(&url)),
            kind: ToolKind::Fetch,
            locations: vec![],
            idempotent: true,
        })
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Arguments { url } = arguments::parse_tool_arguments(&call.arguments)?;
        let url = parse_fetch_url(&url)?;
        tokio::select! {
            () = context.cancel.cancelled() => Err(ToolError::cancelled()),
            shown = tokio::time::timeout(self.limits.fetch, self.fetch_result(url)) => match shown {
                Ok(shown) => shown,
                Err(_) => Err(ToolError::failed(format!("no answer in time: {} s", self.limits.fetch.as_secs()))),
            },
        }
    }
}

impl Fetch {
    /// A page of some megabytes is no work for a thread that serves others.
    async fn fetch_result(&self, url: Url) -> Result<ToolResult, ToolError> {
        let (page, limits) = (self.fetch_page(url).await?, self.limits);
        self.blocking.run_blocking(move || page.to_tool_result(&limits)).await?
    }

    async fn fetch_page(&self, mut url: Url) -> Result<FetchedPage, ToolError> {
        for _ in 0..=MOST_REDIRECTS {
            let response = self.send_request(&url).await?;
            let target = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let Some(target) = target else { return self.read_body(url, response).await };
            let target = target.to_str().ok().and_then(|target| url.join(target).ok());
            url = target.ok_or_else(|| ToolError::failed("redirected to something that is no address"))?;
        }
        Err(ToolError::failed(format!("redirected more than {MOST_REDIRECTS} times")))
    }

    /// One request to an address that was checked; redirects come back to be checked too.
    async fn send_request(&self, url: &Url) -> Result<Response, ToolError> {
        let request = build_fetch_client(&self.guard, url)
            .await?
            .get(url.clone())
            .header(ACCEPT, "text/html,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5");
        request.send().await.map_err(|error| fetch_error(&error))
    }

    async fn read_body(&self, url: Url, mut response: Response) -> Result<FetchedPage, ToolError> {
        let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("text/plain");
        let mime = header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (status, mut body, mut cut) = (response.status(), Vec::new(), false);
        while let Some(chunk) = response.chunk().await.map_err(|error| fetch_error(&error))? {
            let room = self.limits.page - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                cut = true;
                break;
            }
        }
        Ok(FetchedPage { url, status, mime, body, cut })
    }
}

impl FetchedPage {
    fn to_tool_result(&self, limits: &Limits) -> Result<ToolResult, ToolError> {
        let end = if self.status.is_success() { ToolEnd::Completed } else { ToolEnd::Failed };
        let raw = json!({"url": self.url.as_str(), "status": self.status.as_u16(), "content_type": self.mime});
        let part = match self.mime.as_str() {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => self.image_part(limits)?,
            mime if is_fetched_text(mime) => Part::text(self.page_text(limits)),
            mime => return Err(ToolError::failed(format!("content is neither text nor a picture: {mime}"))),
        };
        Ok(ToolResult { end, content: vec![ToolContent::Part { part }], raw: Some(raw) })
    }

    fn image_part(&self, limits: &Limits) -> Result<Part, ToolError> {
        if self.cut || self.body.len() as u64 > limits.image {
            return Err(ToolError::failed(format!("picture is too large: {} bytes or more", self.body.len())));
        }
        let (mime, uri) = (self.mime.clone(), Some(self.url.to_string()));
        Ok(Part::Image { mime, data: STANDARD.encode(&self.body), uri })
    }

    fn page_text(&self, limits: &Limits) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let text = match self.mime.as_str() {
            "text/html" | "application/xhtml+xml" => html::html_to_text(&text),
            _ => text.into_owned(),
        };
        let kept = clip_command_output_to_bytes(&text, limits.result);
        let status = if self.status.is_success() { String::new() } else { format!("[status {}]\n", self.status) };
        let mark = if self.cut || kept.len() < text.len() { "\n[the rest is left out]" } else { "" };
        format!("{status}{kept}{mark}")
    }
}

/// Gets what is at an address that the guard lets through, without following it elsewhere. Or says why not.
pub async fn download_page(guard: &Guard, address: &str, most: usize) -> Result<Vec<u8>, String> {
    fetch_bytes(guard, address, most).await.map_err(|error| error.message)
}

async fn fetch_bytes(guard: &Guard, address: &str, most: usize) -> Result<Vec<u8>, ToolError> {
    let url = parse_fetch_url(address)?;
    let mut response =
        build_fetch_client(guard, &url).await?.get(url).send().await.map_err(|error| fetch_error(&error))?;
    if !response.status().is_success() {
        return Err(ToolError::failed(format!("answered with status {}: {address}", response.status())));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| fetch_error(&error))? {
        if body.len() + chunk.len() > most {
            return Err(ToolError::failed(format!("longer than {most} bytes: {address}")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Dials only what was checked, and goes nowhere else.
async fn build_fetch_client(guard: &Guard, url: &Url) -> Result<Client, ToolError> {
    let addresses = guard.allowed_addresses(url).await?;
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .resolve_to_addrs(url.host_str().unwrap_or_default(), &addresses)
        .user_agent(AGENT)
        .build()
        .map_err(|error| fetch_error(&error))
}

impl From<Blocked> for ToolError {
    fn from(blocked: Blocked) -> Self {
        Self::failed(blocked.to_string())
    }
}

fn parse_fetch_url(url: &str) -> Result<Url, ToolError> {
    Url::parse(url.trim()).map_err(|error| ToolError::failed(format!("not an address: {error}")))
}

fn is_fetched_text(mime: &str) -> bool {
    mime.starts_with("text/")
        || mime.ends_with("+json")
        || mime.ends_with("+xml")
        || ["application/json", "application/xml", "application/javascript", "application/yaml", "application/toml", ""]
            .contains(&mime)
}

/// The error and what caused it, without the address: that is told elsewhere.
fn fetch_error(error: &reqwest::Error) -> ToolError {
    let mut message = String::from("fetch failed");
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        message.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    ToolError::failed(message)
}
