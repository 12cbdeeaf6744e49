//! The file a call was described with must be the file it touches.

use gander_domain::{Location, ToolCall};

use crate::{Located, ToolError, Workspace};

/// The place of a file, for people and policies.
pub(crate) fn location_of(located: &Located) -> Location {
    let path = located.absolute_path();
    Location { folder: path.is_dir(), ..Location::file(path.to_string_lossy()) }
}

/// Where the path leads now, if that is what was described: a link may have been turned since somebody agreed.
pub(crate) fn locate_again(call: &ToolCall, given: &str, workspace: &Workspace) -> Result<Located, ToolError> {
    let located = workspace.locate_path(given)?;
    match call.locations.first().is_some_and(|shown| shown.path == location_of(&located).path) {
        true => Ok(located),
        false => Err(ToolError::failed(format!("path leads elsewhere than when it was described: {given}"))),
    }
}
