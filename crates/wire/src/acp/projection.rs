//! Log entries as session updates: pure, without time, the same live and replayed.

use std::borrow::Cow;

use gander_domain::{
    DeltaKind, Entry, Event, Message, MessageId, Notice, Part, Plan, PlanItem, PlanStatus, Priority, ResetReason, Role,
    Route, SessionView, Settings, SettingsPatch, Severity, ToolCall, ToolCallId, ToolContent, ToolEnd, ToolKind,
    ToolResult, Usage,
};
use serde_json::Value;

use super::agent_words;
use super::content::{acp_content_block, acp_tool_content};
use super::schema::{self, SessionUpdate};

/// A joined chunk does not grow beyond this many bytes.
const MAX_JOINED_CHUNK: usize = 32 * 1024;

/// One `session/update`.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionUpdateOut<'a> {
    /// Text of a message: the hot path, written by hand.
    Text(TextChunk<'a>),
    /// The mode and the options; which exist is known to the connection.
    Settings { settings: Box<Settings>, mode_changed: bool },
    /// For clients that offer to show notices. No part of the history.
    Notice(Box<schema::Notice>),
    /// For clients that offer to show compactions.
    Compaction(Box<schema::CompactionUpdate>),
    /// What only version 2 tells, or the agent in words of its own: written as it is.
    Raw(Box<RawUpdate>),
    /// Everything else.
    Other(Box<SessionUpdate>),
}

/// An update as a value.
#[derive(Clone, Debug, PartialEq)]
pub struct RawUpdate {
    /// The update.
    pub update: Value,
    /// The `_meta` beside it.
    pub meta: Option<Value>,
}

/// A piece of one part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextChunk<'a> {
    /// Who speaks.
    pub voice: ChunkSpeaker,
    /// The message.
    pub message: MessageId,
    /// Which of its parts.
    pub part: u32,
    /// What is said.
    pub text: Cow<'a, str>,
}

/// Who speaks in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkSpeaker {
    /// A person.
    User,
    /// The agent.
    Agent,
    /// The agent, thinking.
    Thought,
}

/// What an entry looks like to a client. `view` is the session before the entry.
pub fn project_acp_entry<'a>(view: &SessionView, entry: &'a Entry) -> Vec<SessionUpdateOut<'a>> {
    let updates = project_acp_event(view, entry);
    match &entry.meta {
        Some(meta) => agent_words::with_agent_words(updates, &entry.event, meta),
        None => updates,
    }
}

fn project_acp_event<'a>(view: &SessionView, entry: &'a Entry) -> Vec<SessionUpdateOut<'a>> {
    match &entry.event {
        Event::PartDelta { message, part, growth, text } => {
            vec![SessionUpdateOut::Text(TextChunk { voice: delta_speaker(*growth), message: *message, part: *part, text: text.into() })]
        }
        Event::MessageDone { message } => match prompt_meta(view, entry) {
            Some(meta) => prompt_with_meta(message, meta),
            None => rest_of_message(view, message),
        },
        Event::ToolCalled { call } => vec![schema_update(SessionUpdate::ToolCall(acp_tool_call(call)))],
        Event::ToolStarted { call } => vec![tool_call_update(*call, tool_status_fields(schema::ToolCallStatus::InProgress))],
        Event::ToolUpdated { call, content } => vec![tool_call_update(*call, tool_shown_fields(content))],
        Event::ToolDone { call, result } => vec![tool_call_update(*call, tool_result_fields(result))],
        Event::PlanSet { plan: whole } => vec![schema_update(SessionUpdate::Plan(acp_plan(whole)))],
        Event::Routed { route } => route_updates(view, route),
        Event::UsageAdded { usage } => usage_update(view, usage).into_iter().collect(),
        Event::TitleSet { title } => vec![title_update(title)],
        Event::SettingsChanged { patch } => vec![settings_update(view, patch)],
        Event::HistoryReset { replacement, reason, .. } => history_reset_updates(entry, replacement, *reason),
        Event::Noticed { notice: told } => vec![notice_update(told)],
        Event::OpaqueUpdate { protocol, body } => agent_words::opaque_update(protocol, body).into_iter().collect(),
        Event::RunRecovered { .. } => vec![notice_update(&Notice {
            severity: Severity::Info,
            title: "The turn was picked up after a restart".to_owned(),
            detail: None,
        })],
        // told by the answer to the prompt, by requests to the client, or by the messages that follow
        Event::SessionCreated { .. }
        | Event::ArchiveSet { .. }
        | Event::RunQueued { .. }
        | Event::RunStarted { .. }
        | Event::CancelRequested { .. }
        | Event::RunEnded { .. }
        | Event::MessageStarted { .. }
        | Event::QuestionAsked { .. }
        | Event::QuestionAnswered { .. }
        // the tool's own result says so to people
        | Event::StateChanged { .. }
        | Event::ArtifactSaved { .. }
        | Event::TextMarked { .. }
        | Event::Unknown(_) => vec![],
    }
}

/// Grows the first update by the second if both are pieces of one part, else gives the second back.
pub fn join_session_updates<'a>(
    first: &mut SessionUpdateOut<'a>,
    second: SessionUpdateOut<'a>,
) -> Option<SessionUpdateOut<'a>> {
    match (first, second) {
        (SessionUpdateOut::Text(first), SessionUpdateOut::Text(second)) if first.continues_with(&second) => {
            first.text.to_mut().push_str(&second.text);
            None
        }
        (_, second) => Some(second),
    }
}

/// A session's title.
pub fn title_update(title: &str) -> SessionUpdateOut<'static> {
    schema_update(SessionUpdate::SessionInfoUpdate(schema::SessionInfoUpdate::new().title(title.to_owned())))
}

/// A tool call as a client first sees it.
pub fn acp_tool_call(call: &ToolCall) -> schema::ToolCall {
    schema::ToolCall::new(call.id.to_string(), call.title.clone())
        .name(call.name.clone())
        .kind(acp_tool_kind(call.kind))
        .locations(tool_locations(call))
        .raw_input(call.arguments.clone())
}

/// A tool call as a permission request shows it.
pub fn acp_permission_tool_call(call: &ToolCall) -> schema::ToolCallUpdate {
    let locations = Some(tool_locations(call)).filter(|locations| !locations.is_empty());
    let fields = tool_status_fields(schema::ToolCallStatus::Pending)
        .title(call.title.clone())
        .name(call.name.clone())
        .kind(acp_tool_kind(call.kind))
        .locations(locations)
        .raw_input(call.arguments.clone());
    schema::ToolCallUpdate::new(call.id.to_string(), fields)
}

impl TextChunk<'_> {
    fn continues_with(&self, next: &Self) -> bool {
        (self.voice, self.message, self.part) == (next.voice, next.message, next.part)
            && self.text.len() + next.text.len() <= MAX_JOINED_CHUNK
    }
}

fn delta_speaker(growth: DeltaKind) -> ChunkSpeaker {
    match growth {
        DeltaKind::Text => ChunkSpeaker::Agent,
        DeltaKind::Thought => ChunkSpeaker::Thought,
    }
}

fn schema_update(update: SessionUpdate) -> SessionUpdateOut<'static> {
    SessionUpdateOut::Other(Box::new(update))
}

/// The `_meta` that a client sent with the prompt which this entry is.
fn prompt_meta<'a>(view: &'a SessionView, entry: &Entry) -> Option<&'a schema::Meta> {
    let run = view.run.as_ref().filter(|run| entry.run == Some(run.id) && entry.seq == run.from.next())?;
    run.meta.as_ref()?.get("acp")?.get("_meta")?.as_object()
}

fn prompt_with_meta(message: &Message, meta: &schema::Meta) -> Vec<SessionUpdateOut<'static>> {
    let id = schema::MessageId::new(message.id.to_string());
    let chunk = |block| schema::ContentChunk::new(block).message_id(id.clone()).meta(meta.clone());
    let blocks = message.parts.iter().filter_map(acp_content_block);
    blocks.map(|block| schema_update(SessionUpdate::UserMessageChunk(chunk(block)))).collect()
}

/// All of a message, for a client that is told none of it before.
pub(super) fn whole_message_output<'a>(message: &'a Message) -> Vec<SessionUpdateOut<'a>> {
    let parts = message.parts.iter().enumerate();
    parts.filter_map(|(index, part)| part_update(message, index, part, 0)).collect()
}

/// What of a whole message was not streamed before: all of a person's, the tail of the agent's.
fn rest_of_message<'a>(view: &SessionView, message: &'a Message) -> Vec<SessionUpdateOut<'a>> {
    let run = view.run.as_ref().filter(|run| run.open.as_ref().is_some_and(|open| open.id == message.id));
    let shown = |index: usize| run.and_then(|run| run.grown.get(index)).copied().unwrap_or(0);
    let parts = message.parts.iter().enumerate();
    parts.filter_map(|(index, part)| part_update(message, index, part, shown(index))).collect()
}

/// What is left of a part of which so many bytes were shown. A message only ever grows, so they are its first ones.
fn part_update<'a>(message: &Message, index: usize, part: &'a Part, shown: usize) -> Option<SessionUpdateOut<'a>> {
    let text = |voice, text: &'a str| {
        let part = u32::try_from(index).unwrap_or(u32::MAX);
        let chunk = TextChunk { voice, message: message.id, part, text: text.into() };
        (!text.is_empty()).then_some(SessionUpdateOut::Text(chunk))
    };
    match part {
        Part::Text { text: whole } => text(role_speaker(message.role), whole.get(shown..)?),
        Part::Thought { text: whole } => text(ChunkSpeaker::Thought, whole.get(shown..)?),
        Part::Image { .. } | Part::Audio { .. } | Part::Link { .. } | Part::Resource { .. } | Part::Unknown(_) => {
            let chunk = schema::ContentChunk::new(acp_content_block(part)?)
                .message_id(schema::MessageId::new(message.id.to_string()));
            Some(schema_update(match message.role {
                Role::User => SessionUpdate::UserMessageChunk(chunk),
                Role::Agent | Role::Tool => SessionUpdate::AgentMessageChunk(chunk),
            }))
        }
        Part::ToolUse { .. } | Part::ToolResult { .. } => None, // told by the tool events
    }
}

fn role_speaker(role: Role) -> ChunkSpeaker {
    match role {
        Role::User => ChunkSpeaker::User,
        Role::Agent | Role::Tool => ChunkSpeaker::Agent,
    }
}

fn tool_call_update(call: ToolCallId, fields: schema::ToolCallUpdateFields) -> SessionUpdateOut<'static> {
    schema_update(SessionUpdate::ToolCallUpdate(schema::ToolCallUpdate::new(call.to_string(), fields)))
}

fn tool_status_fields(status: schema::ToolCallStatus) -> schema::ToolCallUpdateFields {
    schema::ToolCallUpdateFields::new().status(status)
}

fn tool_shown_fields(content: &[ToolContent]) -> schema::ToolCallUpdateFields {
    schema::ToolCallUpdateFields::new().content(acp_tool_content(content))
}

/// A result without content leaves what the tool showed last.
fn tool_result_fields(result: &ToolResult) -> schema::ToolCallUpdateFields {
    let status = match result.end {
        ToolEnd::Completed => schema::ToolCallStatus::Completed,
        ToolEnd::Failed | ToolEnd::Rejected | ToolEnd::Cancelled | ToolEnd::Interrupted => {
            schema::ToolCallStatus::Failed
        }
    };
    let content = acp_tool_content(&result.content);
    tool_status_fields(status).content((!content.is_empty()).then_some(content)).raw_output(result.raw.clone())
}

fn acp_tool_kind(kind: ToolKind) -> schema::ToolKind {
    match kind {
        ToolKind::Read => schema::ToolKind::Read,
        ToolKind::Edit => schema::ToolKind::Edit,
        ToolKind::Delete => schema::ToolKind::Delete,
        ToolKind::Move => schema::ToolKind::Move,
        ToolKind::Search => schema::ToolKind::Search,
        ToolKind::Execute => schema::ToolKind::Execute,
        ToolKind::Think => schema::ToolKind::Think,
        ToolKind::Fetch => schema::ToolKind::Fetch,
        ToolKind::SwitchMode => schema::ToolKind::SwitchMode,
        ToolKind::Other => schema::ToolKind::Other,
    }
}

fn tool_locations(call: &ToolCall) -> Vec<schema::ToolCallLocation> {
    let locations = call.locations.iter().filter(|location| !location.folder);
    locations.map(|location| schema::ToolCallLocation::new(&location.path).line(location.line)).collect()
}

fn acp_plan(plan: &Plan) -> schema::Plan {
    schema::Plan::new(plan.items.iter().map(acp_plan_entry).collect())
}

fn acp_plan_entry(item: &PlanItem) -> schema::PlanEntry {
    let priority = match item.priority {
        Priority::High => schema::PlanEntryPriority::High,
        Priority::Medium => schema::PlanEntryPriority::Medium,
        Priority::Low => schema::PlanEntryPriority::Low,
    };
    let status = match item.status {
        PlanStatus::Pending => schema::PlanEntryStatus::Pending,
        PlanStatus::InProgress => schema::PlanEntryStatus::InProgress,
        PlanStatus::Completed => schema::PlanEntryStatus::Completed,
    };
    schema::PlanEntry::new(item.text.clone(), priority, status)
}

/// Without the size of the window there is nothing to compare with, so nothing to show.
fn usage_update(view: &SessionView, usage: &Usage) -> Option<SessionUpdateOut<'static>> {
    // What a sub-agent's call cost is added; how full the window is says only a call of the session's own.
    let last = if usage.child.is_none() { usage } else { view.last_usage.as_ref()? };
    window_update(last, view.spent.cost + usage.cost.unwrap_or(0))
}

fn window_update(last: &Usage, spent: u64) -> Option<SessionUpdateOut<'static>> {
    let cost = (spent > 0).then(|| schema::Cost::new(usage_dollars(spent), "USD"));
    let update = schema::UsageUpdate::new(last.input + last.output, last.window?).cost(cost);
    Some(schema_update(SessionUpdate::UsageUpdate(update)))
}

/// The title, the plan and the usage of a session as they are now: what a client is told that was not there before.
pub(super) fn present_updates(view: &SessionView) -> Vec<SessionUpdateOut<'static>> {
    let title = view.title.as_deref().map(title_update);
    let plan = (!view.plan.items.is_empty()).then(|| schema_update(SessionUpdate::Plan(acp_plan(&view.plan))));
    let usage = view.last_usage.as_ref().and_then(|last| window_update(last, view.spent.cost));
    title.into_iter().chain(plan).chain(usage).collect()
}

/// Millionths of a dollar as dollars: exact enough for any bill below nine billion.
#[expect(clippy::cast_precision_loss, reason = "amounts on the wire are floats")]
fn usage_dollars(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}

fn settings_update(view: &SessionView, patch: &SettingsPatch) -> SessionUpdateOut<'static> {
    let mut settings = view.settings.clone();
    settings.apply_patch(patch);
    let mode_changed = (&settings.agent, &settings.mode) != (&view.settings.agent, &view.settings.mode);
    SessionUpdateOut::Settings { settings: Box::new(settings), mode_changed }
}

/// The mode changes, and whoever takes notices is told why.
fn route_updates(view: &SessionView, route: &Route) -> Vec<SessionUpdateOut<'static>> {
    let mut settings = view.settings.clone();
    settings.apply_route(route);
    let mode_changed = (&settings.agent, &settings.mode) != (&view.settings.agent, &view.settings.mode);
    let title = format!("Routed to {}, {} % sure", route.mode, route.confidence);
    let told = Notice { severity: Severity::Info, title, detail: Some(route.reasons.join("; ")) };
    vec![SessionUpdateOut::Settings { settings: Box::new(settings), mode_changed }, notice_update(&told)]
}

fn notice_update(notice: &Notice) -> SessionUpdateOut<'static> {
    let severity = match notice.severity {
        Severity::Info => schema::NoticeSeverity::Info,
        Severity::Warning => schema::NoticeSeverity::Warning,
        Severity::Error => schema::NoticeSeverity::Error,
    };
    let notice = schema::Notice::new(severity, notice.title.clone()).description(notice.detail.clone());
    SessionUpdateOut::Notice(Box::new(notice))
}

/// A client cannot take back what it shows: it is shown what stands in its place.
fn history_reset_updates<'a>(
    entry: &Entry,
    replacement: &'a [Message],
    reason: ResetReason,
) -> Vec<SessionUpdateOut<'a>> {
    match reason {
        ResetReason::Compacted => vec![compaction_update(entry, replacement)],
        ResetReason::Cleared | ResetReason::Rewound | ResetReason::Replaced => {
            replacement.iter().flat_map(replaced_message_updates).collect()
        }
    }
}

fn compaction_update(entry: &Entry, replacement: &[Message]) -> SessionUpdateOut<'static> {
    let summary: Vec<_> =
        replacement.iter().flat_map(|message| message.parts.iter().filter_map(acp_content_block)).collect();
    let id = format!("compaction-{}", entry.seq);
    let update = schema::CompactionUpdate::new(id, schema::CompactionStatus::Completed).summary(summary);
    SessionUpdateOut::Compaction(Box::new(update))
}

/// A message of a replaced history, its tools included: no tool events tell of them.
fn replaced_message_updates(message: &Message) -> impl Iterator<Item = SessionUpdateOut<'_>> {
    message.parts.iter().enumerate().filter_map(|(index, part)| match part {
        Part::ToolUse { call, name, arguments } => Some(past_tool_call_update(*call, name, arguments)),
        Part::ToolResult { call, result } => Some(tool_call_update(*call, tool_result_fields(result))),
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::Unknown(_) => part_update(message, index, part, 0),
    })
}

fn past_tool_call_update(call: ToolCallId, name: &str, arguments: &Value) -> SessionUpdateOut<'static> {
    let call = schema::ToolCall::new(call.to_string(), name).name(name.to_owned()).raw_input(arguments.clone());
    schema_update(SessionUpdate::ToolCall(call))
}
