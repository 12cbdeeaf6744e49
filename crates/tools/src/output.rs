//! What of a tool's result goes into the log and to the model: each piece within its limit, all texts together within theirs.

use gander_domain::{Part, ToolContent, ToolResult};

use crate::Limits;

/// A result of somebody else's making within the same limits. Its machine-readable form is left alone: whoever made it
/// reads it back.
pub fn limit_output_result(result: ToolResult, limits: &Limits) -> ToolResult {
    let mut room = limits.result;
    let content = result.content.into_iter().map(|content| match content {
        ToolContent::Part { part } => ToolContent::Part { part: limit_output_part(part, limits, &mut room) },
        other @ (ToolContent::Diff { .. } | ToolContent::Terminal { .. }) => other,
    });
    ToolResult { content: content.collect(), ..result }
}

/// Parts, each within its limit and all texts together within theirs.
pub fn limit_output_parts(parts: impl IntoIterator<Item = Part>, limits: &Limits) -> Vec<Part> {
    let mut room = limits.result;
    parts.into_iter().map(|part| limit_output_part(part, limits, &mut room)).collect()
}

/// The start of a text, at a character's border.
pub fn clip_output(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push_str("\n[the rest is left out]");
    }
    text
}

fn limit_output_part(part: Part, limits: &Limits, room: &mut usize) -> Part {
    let most = usize::try_from(limits.image).unwrap_or(usize::MAX).saturating_mul(4) / 3;
    match part {
        Part::Text { text } => Part::Text { text: take_output_share(text, room) },
        Part::Resource { uri, mime, text: Some(text), blob } => {
            Part::Resource { uri, mime, text: Some(take_output_share(text, room)), blob }
        }
        Part::Image { data, mime, .. } | Part::Audio { data, mime } if data.len() > most => {
            too_large_output_part(&mime, data.len())
        }
        Part::Resource { blob: Some(blob), mime, .. } if blob.len() > most => {
            too_large_output_part(mime.as_deref().unwrap_or("content"), blob.len())
        }
        other @ (Part::Thought { .. }
        | Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_)) => other,
    }
}

fn take_output_share(text: String, room: &mut usize) -> String {
    let text = clip_output(text, *room);
    *room = room.saturating_sub(text.len());
    text
}

fn too_large_output_part(what: &str, size: usize) -> Part {
    Part::text(format!("[{what} of {size} characters in base64 is too large and left out]"))
}

#[cfg(test)]
mod tests {
    use gander_domain::ToolEnd;
    use serde_json::json;

    use super::*;

    #[test]
    fn results_of_others_have_the_same_limits() {
        let limits = Limits { result: 8, ..Limits::default() };
        let raw = Some(json!({"whole": "0123456789"}));
        let given = ToolResult { raw: raw.clone(), ..ToolResult::text(ToolEnd::Completed, "0123456789") };
        let shown = ToolResult::text(ToolEnd::Completed, "01234567\n[the rest is left out]");
        assert_eq!(limit_output_result(given, &limits), ToolResult { raw, ..shown });
    }
}
