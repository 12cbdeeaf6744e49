//! What an approval would do, as text for protocols whose questions are text.

use gander_domain::{Part, Question, ToolContent};

use gander_domain::git_patch::git_patch;

/// Of longer previews only the beginning is told in text: the tool's arguments hold all of it.
const MAX_PREVIEW_TEXT: usize = 16 * 1024;

/// The question's title, and below it what an approval would do: a change as a patch, a command with its folder.
pub(crate) fn question_with_preview(question: &Question) -> String {
    let previews = question.shown_preview().iter().filter_map(question_preview_text);
    let mut text = std::iter::once(question.title.clone()).chain(previews).collect::<Vec<_>>().join("\n\n");
    if text.len() > MAX_PREVIEW_TEXT + question.title.len() {
        text.truncate(text.floor_char_boundary(MAX_PREVIEW_TEXT + question.title.len()));
        text.push_str("\n[…]");
    }
    text
}

fn question_preview_text(content: &ToolContent) -> Option<String> {
    match content {
        ToolContent::Part { part: Part::Text { text } } => Some(text.clone()),
        ToolContent::Diff { path, old, new } => Some(git_patch(path, old.as_deref(), new)),
        ToolContent::Part { .. } | ToolContent::Terminal { .. } => None,
    }
}
