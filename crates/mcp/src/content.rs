//! What a server gives, in our words.

use gander_domain::{Part, ToolContent, ToolEnd, ToolResult};
use gander_tools::Limits;
use gander_tools::output::{clip_output, limit_output_parts};
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::Value;

/// The result of a call. What is too large is left out, and says so.
pub(super) fn tool_result_from_content(result: CallToolResult, limits: &Limits) -> ToolResult {
    let end = if result.is_error == Some(true) { ToolEnd::Failed } else { ToolEnd::Completed };
    let mut parts = content_to_parts(result.content, limits);
    if let (true, Some(structured)) = (parts.is_empty(), &result.structured_content) {
        parts.push(Part::text(clip_output(structured.to_string(), limits.result)));
    }
    let raw = result.structured_content.filter(|value| content_fits_limits(value, limits));
    ToolResult { end, content: parts.into_iter().map(|part| ToolContent::Part { part }).collect(), raw }
}

/// Content, each piece within its limit and all texts together within theirs.
pub(super) fn content_to_parts(content: impl IntoIterator<Item = ContentBlock>, limits: &Limits) -> Vec<Part> {
    limit_output_parts(content.into_iter().map(content_to_part), limits)
}

/// What a resource holds.
pub(super) fn resource_content_part(contents: ResourceContents) -> Part {
    match contents {
        ResourceContents::TextResourceContents { uri, mime_type: mime, text, .. } => {
            Part::Resource { uri, mime, text: Some(text), blob: None }
        }
        ResourceContents::BlobResourceContents { uri, mime_type: Some(mime), blob, .. }
            if is_picture_content(&mime) =>
        {
            Part::Image { mime, data: blob, uri: Some(uri) }
        }
        ResourceContents::BlobResourceContents { uri, mime_type: mime, blob, .. } => {
            Part::Resource { uri, mime, text: None, blob: Some(blob) }
        }
        other => unknown_content_part(&other),
    }
}

fn content_to_part(block: ContentBlock) -> Part {
    match block {
        ContentBlock::Text(text) => Part::Text { text: text.text },
        ContentBlock::Image(image) => Part::Image { mime: image.mime_type, data: image.data, uri: None },
        ContentBlock::Audio(audio) => Part::Audio { mime: audio.mime_type, data: audio.data },
        ContentBlock::Resource(embedded) => resource_content_part(embedded.resource),
        ContentBlock::ResourceLink(link) => link_content_part(link),
        other => unknown_content_part(&other),
    }
}

fn link_content_part(link: Resource) -> Part {
    let Resource { uri, name, title, description, mime_type: mime, size, .. } = link;
    let more = [
        ("title", title.map(Value::from)),
        ("description", description.map(Value::from)),
        ("size", size.map(Value::from)),
    ];
    let more: serde_json::Map<String, Value> =
        more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    Part::Link { uri, name, mime, more: (!more.is_empty()).then_some(Value::Object(more)) }
}

fn content_fits_limits(value: &Value, limits: &Limits) -> bool {
    value.to_string().len() <= limits.result
}

fn is_picture_content(mime: &str) -> bool {
    matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

fn unknown_content_part(value: &impl serde::Serialize) -> Part {
    Part::Unknown(serde_json::to_value(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value, limits: &Limits) -> ToolResult {
        tool_result_from_content(serde_json::from_value(value).expect("it is a result"), limits)
    }

    #[test]
    fn every_kind_of_content_is_kept() {
        let given = json!({
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "audio", "data": "BBBB", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "x://1", "mimeType": "text/plain", "text": "one"}},
                {"type": "resource", "resource": {"uri": "x://2", "blob": "CCCC"}},
                {"type": "resource_link", "uri": "x://3", "name": "three", "description": "third"},
            ],
            "structuredContent": {"n": 1},
        });
        let parts = [
            Part::text("hi"),
            Part::Image { mime: "image/png".into(), data: "AAAA".into(), uri: None },
            Part::Audio { mime: "audio/wav".into(), data: "BBBB".into() },
            Part::Resource {
                uri: "x://1".into(),
                mime: Some("text/plain".into()),
                text: Some("one".into()),
                blob: None,
            },
            Part::Resource { uri: "x://2".into(), mime: None, text: None, blob: Some("CCCC".into()) },
            Part::Link {
                uri: "x://3".into(),
                name: "three".into(),
                mime: None,
                more: Some(json!({"description": "third"})),
            },
        ];
        let content = parts.map(|part| ToolContent::Part { part }).into();
        let expected = ToolResult { end: ToolEnd::Completed, content, raw: Some(json!({"n": 1})) };
        assert_eq!(read(given, &Limits::default()), expected);
    }

    #[test]
    fn structure_alone_is_also_told_in_words() {
        let result = read(json!({"structuredContent": {"n": 1}, "isError": true}), &Limits::default());
        assert_eq!(
            result,
            ToolResult { raw: Some(json!({"n": 1})), ..ToolResult::text(ToolEnd::Failed, r#"{"n":1}"#) }
        );
    }

    #[test]
    fn what_is_too_large_says_so() {
        let limits = Limits { result: 8, image: 3, ..Limits::default() };
        let content = json!([
            {"type": "text", "text": "größer als erlaubt"},
            {"type": "text", "text": "more"},
            {"type": "image", "data": "AAAAAAAA", "mimeType": "image/png"},
        ]);
        let shown = read(json!({ "content": content }), &limits);
        let texts = [
            "größer\n[the rest is left out]",
            "\n[the rest is left out]",
            "[image/png of 8 characters in base64 is too large and left out]",
        ];
        let content = texts.map(|text| ToolContent::Part { part: Part::text(text) }).into();
        assert_eq!(shown, ToolResult { end: ToolEnd::Completed, content, raw: None });
    }
}
