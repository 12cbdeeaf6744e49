//! Content blocks and parts: checked on the way in, translated on the way out.

use gander_domain::{Part, ToolContent};
use serde_json::{Map, Value};

use super::schema::{
    AudioContent, BlobResourceContents, Content, ContentBlock, Diff, EmbeddedResource, EmbeddedResourceResource,
    ImageContent, ResourceLink, Terminal, TextContent, TextResourceContents, ToolCallContent,
};
use super::types::AgentProfile;
use crate::check;
use crate::jsonrpc::Error;

/// A prompt's blocks as parts. Nothing is fetched: a link stays a link.
pub fn acp_prompt_parts(blocks: Vec<ContentBlock>, profile: &AgentProfile) -> Result<Vec<Part>, Error> {
    if blocks.is_empty() {
        return Err(Error::invalid_params("prompt has no content"));
    }
    blocks.into_iter().map(|block| acp_block_part(block, profile)).collect()
}

/// A part as a block, if the protocol has one for it.
pub fn acp_content_block(part: &Part) -> Option<ContentBlock> {
    match part {
        Part::Text { text } | Part::Thought { text } => Some(ContentBlock::Text(TextContent::new(text.clone()))),
        Part::Image { mime, data, uri } => {
            Some(ContentBlock::Image(ImageContent::new(data.clone(), mime.clone()).uri(uri.clone())))
        }
        Part::Audio { mime, data } => Some(ContentBlock::Audio(AudioContent::new(data.clone(), mime.clone()))),
        Part::Link { uri, name, mime, more } => {
            Some(acp_resource_link_block(uri, name, mime.as_deref(), more.as_ref()))
        }
        Part::Resource { uri, mime, text, blob } => {
            let contents = match (text, blob) {
                (Some(text), _) => EmbeddedResourceResource::TextResourceContents(
                    TextResourceContents::new(text.clone(), uri.clone()).mime_type(mime.clone()),
                ),
                (None, blob) => EmbeddedResourceResource::BlobResourceContents(
                    BlobResourceContents::new(blob.clone().unwrap_or_default(), uri.clone()).mime_type(mime.clone()),
                ),
            };
            Some(ContentBlock::Resource(EmbeddedResource::new(contents)))
        }
        Part::Unknown(value) => serde_json::from_value(value.clone()).ok(),
        Part::ToolUse { .. } | Part::ToolResult { .. } => None,
    }
}

/// What a tool shows.
pub fn acp_tool_content(content: &[ToolContent]) -> Vec<ToolCallContent> {
    content
        .iter()
        .filter_map(|item| match item {
            ToolContent::Part { part } => {
                acp_content_block(part).map(|block| ToolCallContent::Content(Content::new(block)))
            }
            ToolContent::Diff { path, old, new } => {
                Some(ToolCallContent::Diff(Diff::new(path, new.clone()).old_text(old.clone())))
            }
            ToolContent::Terminal { id } => Some(ToolCallContent::Terminal(Terminal::new(id.clone()))),
        })
        .collect()
}

fn acp_block_part(block: ContentBlock, profile: &AgentProfile) -> Result<Part, Error> {
    match block {
        ContentBlock::Text(text) => Ok(Part::Text { text: text.text }),
        ContentBlock::Image(image) if profile.image => acp_image_part(image),
        ContentBlock::Image(_) => Err(Error::invalid_params("pictures are not supported")),
        ContentBlock::Audio(audio) if profile.audio => acp_audio_part(audio),
        ContentBlock::Audio(_) => Err(Error::invalid_params("audio is not supported")),
        ContentBlock::ResourceLink(link) => acp_resource_link_part(link),
        ContentBlock::Resource(resource) => acp_embedded_resource_part(resource),
        // the schema crate may grow further kinds: not known here, so not accepted
        _ => Err(Error::invalid_params("content of an unknown kind")),
    }
}

/// A picture of a type that models see.
fn acp_image_part(image: ImageContent) -> Result<Part, Error> {
    check_content_part(Part::Image { mime: check::normalize_mime(&image.mime_type), data: image.data, uri: image.uri })
}

fn acp_audio_part(audio: AudioContent) -> Result<Part, Error> {
    check_content_part(Part::Audio { mime: audio.mime_type.to_ascii_lowercase(), data: audio.data })
}

fn check_content_part(part: Part) -> Result<Part, Error> {
    // Whether there are any is said in the greeting, and was checked before.
    check::check_media_for(&part, &["*/*".to_owned()]).map_err(|error| Error::invalid_params(error.to_string()))?;
    Ok(part)
}

fn acp_resource_link_part(link: ResourceLink) -> Result<Part, Error> {
    refuse_nul_in_content("uri", &link.uri)?;
    refuse_nul_in_content("name", &link.name)?;
    let more: Map<String, Value> = [
        ("title", link.title.map(Value::from)),
        ("description", link.description.map(Value::from)),
        ("size", link.size.map(Value::from)),
        ("annotations", link.annotations.and_then(|annotations| serde_json::to_value(annotations).ok())),
    ]
    .into_iter()
    .filter_map(|(key, value)| value.map(|value| (key.to_owned(), value)))
    .collect();
    let more = (!more.is_empty()).then_some(Value::Object(more));
    Ok(Part::Link { uri: link.uri, name: link.name, mime: link.mime_type, more })
}

fn acp_embedded_resource_part(resource: EmbeddedResource) -> Result<Part, Error> {
    let (uri, mime, text, blob) = match resource.resource {
        EmbeddedResourceResource::TextResourceContents(text) => (text.uri, text.mime_type, Some(text.text), None),
        EmbeddedResourceResource::BlobResourceContents(blob) => (blob.uri, blob.mime_type, None, Some(blob.blob)),
        // see `part`
        _ => return Err(Error::invalid_params("resource of an unknown kind")),
    };
    refuse_nul_in_content("uri", &uri)?;
    check_content_part(Part::Resource { uri, mime, text, blob })
}

fn acp_resource_link_block(uri: &str, name: &str, mime: Option<&str>, more: Option<&Value>) -> ContentBlock {
    let mut link = ResourceLink::new(name, uri).mime_type(mime.map(str::to_owned));
    if let Some(more) = more {
        let text = |key| more.get(key).and_then(Value::as_str).map(str::to_owned);
        link = link.title(text("title")).description(text("description"));
        link = link.size(more.get("size").and_then(Value::as_i64));
        link = link.annotations(more.get("annotations").and_then(|value| serde_json::from_value(value.clone()).ok()));
    }
    ContentBlock::ResourceLink(link)
}

/// Refuses what no store can hold in an id, name or path.
pub(super) fn refuse_nul_in_content(what: &str, text: &str) -> Result<(), Error> {
    if text.contains('\0') {
        return Err(Error::invalid_params(format!("NUL in {what}")));
    }
    Ok(())
}
