//! `Provenance`: where the text in a session's context comes from. The permission rules judge outward calls by it.
//!
//! A fold of the log like the view and the context, so it survives a restart, a compaction and a hand-over to another
//! agent, and nobody can forget to carry it along. It errs to one side: text is marked too often rather than too rarely.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Entry, Event, Message, Part, Question, QuestionId, Reply, ResetReason, Role, Seq, TextMark, ToolCall, ToolCallId,
    ToolEnd,
};

/// The choice that lets outward calls to one destination run for the rest of a session.
pub const ALLOW_SESSION: &str = "allow_session";

/// The origin of sub-agents' runs. Their prompts are written by a model, not by a person.
pub const SUBAGENT_DOOR: &str = "delegate";

/// More files than this are remembered as "any file".
const MAX_FILES: usize = 1_000;

/// How many addresses that a person named are remembered, the first ones.
const MAX_NAMED_URLS: usize = 256;

/// A longer address is not remembered.
const MAX_URL_BYTES: usize = 2_048;

/// Where the text in a session's context comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    untrusted: Option<MarkedText>,
    private: Option<MarkedText>,
    /// Files that the session wrote while untrusted text was in its context: reading them brings it back.
    untrusted_files: BTreeSet<String>,
    /// A command ran then: which files it wrote, nobody knows.
    any_file_untrusted: bool,
    /// Addresses that a person named, letter for letter: no private data can hide in them.
    named_urls: BTreeSet<String>,
    /// Destinations that a person allowed for the rest of the session, having been told why they were asked.
    allowed: BTreeSet<String>,
    /// Calls without an end.
    open_calls: Vec<(ToolCallId, CallText)>,
    /// Questions about outward calls without an answer, with the destination of each.
    open_questions: Vec<(QuestionId, String)>,
    /// The next message of a person was written by somebody else, such as an MCP server's prompt.
    next_prompt_is_foreign: bool,
    /// The run under way is that of a sub-agent.
    is_subagent_run: bool,
    /// The agent that the next run is given to.
    agent: String,
    /// The agents that runs were given to: what one of another system said stays in the context of the others.
    agents: BTreeSet<String>,
}

/// Text of one kind that is in the context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MarkedText {
    /// Where the first of it came from, in words for people.
    source: String,
    /// The entry that brought it.
    since: Seq,
}

/// What the result of a call brings into the context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CallText {
    /// Text from outside.
    Untrusted { source: String },
    /// What an extension, an artifact or an app holds: private to people, and written by anybody.
    Foreign { source: String },
    /// What files hold.
    Files { paths: Vec<String> },
    /// Nothing, but it changes this file.
    Change { path: String },
    /// What a command says, with or without the network.
    Command { networked: bool },
    /// What sub-agents say. If they read untrusted text they say so themselves.
    Subagents,
}

impl Provenance {
    /// Where untrusted text in the context comes from, if there is any.
    pub fn untrusted(&self) -> Option<&str> {
        self.untrusted.as_ref().map(|marked| marked.source.as_str())
    }

    /// Where private data in the context comes from, if there is any.
    pub fn private(&self) -> Option<&str> {
        self.private.as_ref().map(|marked| marked.source.as_str())
    }

    /// Addresses that a person named.
    pub fn named_urls(&self) -> impl Iterator<Item = &str> {
        self.named_urls.iter().map(String::as_str)
    }

    /// True if a person allowed outward calls to this destination for the rest of the session.
    pub fn is_allowed(&self, destination: &str) -> bool {
        self.allowed.contains(destination)
    }

    /// What text that is made from this context carries on.
    pub fn text_mark(&self) -> TextMark {
        TextMark { untrusted: self.untrusted().map(str::to_owned), private: self.private().map(str::to_owned) }
    }

    /// The agents that runs were given to.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().map(String::as_str)
    }

    /// True if this mark says nothing new.
    pub fn includes_mark(&self, mark: &TextMark) -> bool {
        (mark.untrusted.is_none() || self.untrusted.is_some()) && (mark.private.is_none() || self.private.is_some())
    }

    /// Takes in the next entry.
    pub fn apply(&mut self, entry: &Entry) {
        match &entry.event {
            Event::SessionCreated { inherited, settings, .. } => {
                self.add_mark(inherited, entry.seq);
                self.agent.clone_from(&settings.agent);
            }
            Event::SettingsChanged { patch } => {
                self.agent = patch.agent.clone().unwrap_or(std::mem::take(&mut self.agent))
            }
            Event::Routed { route } => {
                self.agent.clone_from(&route.agent);
                self.agents.insert(route.agent.clone());
            }
            Event::TextMarked { mark } => {
                self.add_mark(mark, entry.seq);
                self.next_prompt_is_foreign |= entry.run.is_none() && mark.untrusted.is_some();
            }
            Event::HistoryReset { keep_to, replacement, reason } => {
                self.reset_history(entry.seq, *keep_to, replacement, *reason);
            }
            Event::RunStarted { origin } => {
                self.is_subagent_run = origin.door == SUBAGENT_DOOR;
                self.agents.insert(self.agent.clone());
            }
            Event::RunEnded { .. } => {
                self.open_calls.clear();
                self.open_questions.clear();
            }
            Event::MessageDone { message } if message.role == Role::User => self.add_prompt(message, entry.seq),
            Event::ToolCalled { call } => self.open_call(call),
            Event::ToolDone { call, result } => self.close_call(*call, result.end, entry.seq),
            Event::QuestionAsked { question } => self.open_question(question),
            Event::QuestionAnswered { question, answer } => self.close_question(*question, &answer.reply),
            Event::TitleSet { .. }
            | Event::ArchiveSet { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::StateChanged { .. }
            | Event::ArtifactSaved { .. }
            | Event::UsageAdded { .. }
            | Event::RunQueued { .. }
            | Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::MessageStarted { .. }
            | Event::PartDelta { .. }
            | Event::MessageDone { .. }
            | Event::ToolStarted { .. }
            | Event::ToolUpdated { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => {} // brings no text into the context that was not there
        }
    }

    /// Takes in what is known about the origin of text that came at this place.
    pub fn add_mark(&mut self, mark: &TextMark, at: Seq) {
        if let Some(source) = &mark.untrusted {
            self.mark_untrusted(source, at);
        }
        if let Some(source) = &mark.private {
            self.mark_private(source, at);
        }
    }

    fn mark_untrusted(&mut self, source: &str, at: Seq) {
        self.untrusted.get_or_insert_with(|| MarkedText { source: source.to_owned(), since: at });
    }

    fn mark_private(&mut self, source: &str, at: Seq) {
        self.private.get_or_insert_with(|| MarkedText { source: source.to_owned(), since: at });
    }

    /// A summary is made from what it replaces, so its marks stay. Where a person goes back behind the text that was
    /// marked, the text is gone from the context; the files written from it are not.
    fn reset_history(&mut self, at: Seq, keep_to: Seq, replacement: &[Message], reason: ResetReason) {
        match reason {
            ResetReason::Compacted => {}
            ResetReason::Cleared | ResetReason::Rewound if replacement.is_empty() => {
                self.untrusted = self.untrusted.take().filter(|marked| marked.since <= keep_to);
                self.private = self.private.take().filter(|marked| marked.since <= keep_to);
            }
            ResetReason::Cleared | ResetReason::Rewound | ResetReason::Replaced => {}
        }
        for part in replacement.iter().flat_map(|message| &message.parts) {
            if let Part::ToolUse { name, arguments, .. } = part
                && let Some(text) = provenance_call_text(name, arguments, &[])
            {
                self.add_call_text(text, at);
            }
        }
    }

    fn add_prompt(&mut self, message: &Message, at: Seq) {
        let is_foreign = std::mem::take(&mut self.next_prompt_is_foreign) || self.is_subagent_run;
        for part in &message.parts {
            match part {
                Part::Image { .. } | Part::Audio { .. } | Part::Resource { .. } => {
                    self.mark_private("an attachment", at);
                }
                Part::Text { text } if !is_foreign => self.add_named_urls(text),
                Part::Text { .. }
                | Part::Thought { .. }
                | Part::Link { .. }
                | Part::ToolUse { .. }
                | Part::ToolResult { .. }
                | Part::Unknown(_) => {}
            }
        }
    }

    fn add_named_urls(&mut self, text: &str) {
        let ends = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\'' | '`' | '(' | ')' | '[' | ']');
        let words = text.split(ends).map(|word| word.trim_end_matches(['.', ',', ';', ':', '!', '?']));
        for url in words.filter(|word| word.starts_with("https://") || word.starts_with("http://")) {
            if url.len() <= MAX_URL_BYTES && self.named_urls.len() < MAX_NAMED_URLS {
                self.named_urls.insert(url.to_owned());
            }
        }
    }

    fn open_call(&mut self, call: &ToolCall) {
        let paths: Vec<String> = call.locations.iter().map(|location| location.path.clone()).collect();
        if let Some(text) = provenance_call_text(&call.name, &call.arguments, &paths) {
            self.open_calls.retain(|(id, _)| *id != call.id);
            self.open_calls.push((call.id, text));
        }
    }

    /// A call that was refused never ran. Of all others something may have come back, also of one that failed.
    fn close_call(&mut self, id: ToolCallId, end: ToolEnd, at: Seq) {
        let Some(index) = self.open_calls.iter().position(|(open, _)| *open == id) else { return };
        let (_, text) = self.open_calls.swap_remove(index);
        match end {
            ToolEnd::Rejected => {}
            ToolEnd::Completed | ToolEnd::Failed | ToolEnd::Cancelled | ToolEnd::Interrupted => {
                self.add_call_text(text, at);
            }
        }
    }

    fn add_call_text(&mut self, text: CallText, at: Seq) {
        match text {
            CallText::Untrusted { source } => self.mark_untrusted(&source, at),
            CallText::Foreign { source } => {
                self.mark_untrusted(&source, at);
                self.mark_private(&source, at);
            }
            CallText::Files { paths } => {
                if self.any_file_untrusted || paths.iter().any(|path| self.is_untrusted_file(path)) {
                    self.mark_untrusted("a file that was written from text from outside", at);
                }
                self.mark_private("files", at);
            }
            CallText::Change { path } => {
                if self.untrusted.is_some() {
                    self.add_untrusted_file(path);
                }
            }
            CallText::Command { networked } => {
                if networked {
                    self.mark_untrusted("a command with network access", at);
                } else if self.any_file_untrusted || !self.untrusted_files.is_empty() {
                    self.mark_untrusted("a file that was written from text from outside", at);
                }
                self.any_file_untrusted |= self.untrusted.is_some();
                self.mark_private("the output of a command", at);
            }
            CallText::Subagents => self.mark_private("what a sub-agent found", at),
        }
    }

    /// Searches name folders: what is below one of them is read as well.
    fn is_untrusted_file(&self, path: &str) -> bool {
        let is_below =
            |file: &str| file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        path.is_empty() || self.untrusted_files.iter().any(|file| is_below(file))
    }

    fn add_untrusted_file(&mut self, path: String) {
        self.any_file_untrusted |= path.is_empty() || self.untrusted_files.len() >= MAX_FILES;
        if !self.any_file_untrusted {
            self.untrusted_files.insert(path);
        }
    }

    fn open_question(&mut self, question: &Question) {
        if let Some(outward) = &question.outward {
            self.open_questions.push((question.id, outward.destination.clone()));
        }
    }

    fn close_question(&mut self, id: QuestionId, reply: &Reply) {
        let Some(index) = self.open_questions.iter().position(|(open, _)| *open == id) else { return };
        let (_, destination) = self.open_questions.swap_remove(index);
        if matches!(reply, Reply::Chosen { choice, .. } if choice == ALLOW_SESSION) {
            self.allowed.insert(destination);
        }
    }
}

/// What the result of a call of this tool brings into the context.
///
/// Judged by name, for the log of an earlier version has nothing else. No extension can take the name of a built-in
/// tool: all of theirs have `__` in them. Without paths a file tool may have read any file.
fn provenance_call_text(name: &str, arguments: &Value, paths: &[String]) -> Option<CallText> {
    let paths = || if paths.is_empty() { vec![String::new()] } else { paths.to_vec() };
    match name {
        "fetch" => {
            let url = arguments.get("url").and_then(Value::as_str).unwrap_or("the network");
            Some(CallText::Untrusted { source: url_origin(url) })
        }
        "read" | "list" | "grep" => Some(CallText::Files { paths: paths() }),
        "write" | "edit" => Some(CallText::Change { path: paths().swap_remove(0) }),
        "shell" => Some(CallText::Command { networked: arguments.get("network") == Some(&Value::Bool(true)) }),
        "list_resources" | "read_resource" => Some(CallText::Foreign { source: "a resource of an MCP server".into() }),
        "artifact_read" => Some(CallText::Foreign { source: "an artifact".into() }),
        "app_read" => Some(CallText::Foreign { source: "an app".into() }),
        "delegate" => Some(CallText::Subagents),
        _ if name.starts_with("recipe_") => Some(CallText::Subagents),
        _ => {
            let (server, _) = name.split_once("__")?;
            Some(CallText::Foreign { source: format!("the extension {server}") })
        }
    }
}

/// An address without its path: a question that quotes it must not carry what an attacker wrote there.
fn url_origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "the network".to_owned() };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}")
}
