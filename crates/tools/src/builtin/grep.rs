//! `grep`: finds lines by a regular expression.

use gander_domain::sanitize;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use async_trait::async_trait;
use gander_domain::{ToolCall, ToolEnd, ToolKind, ToolResult, ToolSpec};
use globset::GlobMatcher;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::list::list_glob_matcher;
use super::locations;
use crate::files::walk::{Walk, WalkedEntry, WalkedKind};
use crate::permission::is_secret_path;
use crate::process::command_output::clip_command_output_to_bytes;
use crate::{
    Group, Limits, Located, PathError, Tool, ToolContext, ToolEffect, ToolError, ToolPreview, Workspace, arguments,
};

/// Bytes of one line that are shown.
const LONGEST_LINE: usize = 500;

/// Lines around a match at most.
const WIDEST: usize = 20;

/// Lines found at most.
const MOST: usize = 2_000;

pub(crate) struct Grep {
    pub(crate) limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrepArguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    context: usize,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    limit: Option<usize>,
}

#[async_trait]
impl Tool for Grep {
    fn name(&self) -> &str {
        "grep"
    }

    fn group(&self) -> Group {
        Group::Look
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::Read
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description: "Finds lines by a regular expression (Rust syntax) in a file or in all files below a folder. Shows \
                          path:line:text, and with context path-line-text around it. What .gitignore names, hidden and binary \
                          files are left out."
                .into(),
            schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string"},
                    "path": {"type": "string", "description": "File or folder; default: the workspace's root"},
                    "glob": {"type": "string", "description": "Only files that fit, such as *.rs or src/**/*.ts"},
                    "context": {"type": "integer", "minimum": 0, "maximum": WIDEST, "description": "Lines to show around"},
                    "ignore_case": {"type": "boolean"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "Lines to find at most"}
                },
                "required": ["pattern"],
                "additionalProperties": false
            }).into(),
        }
    }

    fn preview(&self, arguments: &Value, workspace: &Workspace) -> Result<ToolPreview, ToolError> {
        let arguments: GrepArguments = arguments::parse_tool_arguments(arguments)?;
        build_grep_regex(&arguments)?;
        arguments.glob.as_deref().map(list_glob_matcher).transpose()?;
        let located = workspace.locate_path(arguments.path())?;
        let (pattern, name) =
            (sanitize::sanitized_line(&arguments.pattern), sanitize::sanitized_line(&workspace.display_name(&located)));
        Ok(ToolPreview {
            title: format!("Search {name} for {pattern}"),
            kind: ToolKind::Search,
            locations: vec![locations::location_of(&located)],
            idempotent: true,
        })
    }

    async fn run(&self, call: &ToolCall, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: GrepArguments = arguments::parse_tool_arguments(&call.arguments)?;
        let located = locations::locate_again(call, arguments.path(), &context.workspace)?;
        let search = GrepSearch {
            regex: build_grep_regex(&arguments)?,
            glob: arguments.glob.as_deref().map(list_glob_matcher).transpose()?,
            around: arguments.context.min(WIDEST),
            most: arguments.limit.unwrap_or(self.limits.matches).clamp(1, MOST),
            limits: self.limits,
            stop: context.cancel.clone(),
            found: 0,
            skipped: 0,
            text: String::new(),
        };
        let workspace = context.workspace.clone();
        let work = tokio::task::spawn_blocking(move || search.search_workspace(&workspace, &located));
        tokio::select! {
            () = context.cancel.cancelled() => Err(ToolError::cancelled()),
            found = work => found.map_err(|error| ToolError::failed(format!("search broke off: {error}")))?,
        }
    }
}

impl GrepArguments {
    fn path(&self) -> &str {
        self.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".")
    }
}

fn build_grep_regex(arguments: &GrepArguments) -> Result<Regex, ToolError> {
    let built =
        RegexBuilder::new(&arguments.pattern).case_insensitive(arguments.ignore_case).size_limit(4 << 20).build();
    built.map_err(|error| ToolError::failed(format!("pattern is not valid: {error}")))
}

struct GrepSearch {
    regex: Regex,
    glob: Option<GlobMatcher>,
    around: usize,
    most: usize,
    limits: Limits,
    stop: CancellationToken,
    found: usize,
    skipped: usize,
    text: String,
}

impl GrepSearch {
    fn search_workspace(mut self, workspace: &Workspace, start: &Located) -> Result<ToolResult, ToolError> {
        let walk = Walk { workspace, depth: usize::MAX, hidden: false };
        let walked = walk.visit(start, &mut |found: WalkedEntry| {
            let below = found.located.relative.strip_prefix(&start.relative).unwrap_or(&found.located.relative);
            if found.kind == WalkedKind::File && self.matches_glob(below) && !is_secret_path(&found.located.relative) {
                match workspace.read_text(&found.located, self.limits.file) {
                    Ok(text) => self.search_file(&workspace.display_name(&found.located), &text),
                    Err(PathError::TooLarge { .. }) => self.skipped += 1,
                    Err(_) => {} // binary, or gone meanwhile
                }
            }
            if self.is_full() || self.stop.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match walked {
            Err(PathError::NotDirectory(_)) => {
                let text = workspace.read_text(start, self.limits.file)?;
                self.search_file(&workspace.display_name(start), &text);
            }
            walked => walked?,
        }
        Ok(ToolResult::text(ToolEnd::Completed, self.into_text()))
    }

    /// A glob without a slash is about names, one with a slash about paths.
    fn matches_glob(&self, below: &std::path::Path) -> bool {
        self.glob.as_ref().is_none_or(|glob| match glob.glob().glob().contains('/') {
            true => glob.is_match(below),
            false => below.file_name().is_some_and(|name| glob.is_match(name)),
        })
    }

    fn is_full(&self) -> bool {
        self.found >= self.most || self.text.len() >= self.limits.output
    }

    fn search_file(&mut self, name: &str, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let mut shown = 0; // the first line not shown yet
        for at in 0..lines.len() {
            if self.is_full() || !self.regex.is_match(lines[at]) {
                continue;
            }
            self.found += 1;
            let from = at.saturating_sub(self.around).max(shown);
            if self.around > 0 && !self.text.is_empty() && (shown == 0 || from > shown) {
                self.text.push_str("--\n");
            }
            let to = (at + self.around + 1).min(lines.len());
            // Matches further down show themselves.
            let next = (at + 1..to).find(|next| self.regex.is_match(lines[*next])).unwrap_or(to);
            for (number, line) in lines.iter().enumerate().take(next).skip(from) {
                let mark = if number == at { ':' } else { '-' };
                let (number, line) = (number + 1, clip_command_output_to_bytes(line, LONGEST_LINE));
                // Writing to a string cannot fail.
                writeln!(self.text, "{name}{mark}{number}{mark}{line}").unwrap_or_default();
            }
            shown = next;
        }
    }

    fn into_text(mut self) -> String {
        if self.found == 0 {
            self.text.push_str("[nothing found]\n");
        }
        if self.is_full() {
            self.text.push_str(&format!("[stopped after {} lines: narrow the search]\n", self.found));
        }
        if self.skipped > 0 {
            self.text.push_str(&format!("[{} files were too large to search]\n", self.skipped));
        }
        self.text
    }
}
