//! Sub-agents as sessions of their own: started, followed to their end, and cancelled with the run that wants them.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gander_agent::delegate::{Parent, SubEnd, SubResult, SubTask, SubagentRunner};
use gander_agent::modes::AgentCatalog;
use gander_agent::turn::OUTPUT;
use gander_domain::caller::Caller;
use gander_domain::sanitize;
use gander_domain::trace::TraceContext;
use gander_domain::{
    Budget, Choice, ChoiceKind, Command, Event, IfBusy, Outcome, Part, Question, QuestionId, QuestionKind,
    QuestionOrigin, Reply, Role, Roster, Routing, RunId, RunOrigin, Seq, SessionId, SessionView, Settings,
    SubagentCall, TextMark, ToolCall, ToolCallId, ToolEnd, ToolResult, Usage,
};
use gander_mcp::{Reach, Spec};
use gander_runtime::backend::ClientResources;
use gander_runtime::hub::{Ack, Follower, Hub, HubError, WeakHub};
use gander_services::extensions::{ExtensionEntry, ExtensionScope, Extensions, Rights};
use gander_services::recipes::{Recipes, SessionRecipe, resolve_recipe_extensions};
use gander_services::sessions::{ChildSession, FirstPrompt, start_child_session};
use gander_store::{DeltaForm, Limit, StoreError};
use gander_tools::{Guard, ToolEvent};
use sha2::{Digest as _, Sha256};

/// The origin of sub-agents' runs; it is in the log. They have no sub-agents themselves.
pub const DOOR: &str = gander_domain::provenance::SUBAGENT_DOOR;

/// How long a sub-agent that was cancelled has to say so.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(4);

/// Starts sub-agents for one session.
pub struct HubSubagents {
    pub hub: WeakHub,
    pub agent_catalog: Arc<AgentCatalog>,
    pub recipes: Arc<Recipes>,
    pub extensions: Arc<Extensions>,
    pub parent: SessionView,
    /// What their runs are part of, if runs are traced.
    pub trace: Option<TraceContext>,
    /// What the run's own client lends is passed on.
    pub client_resources: ClientResources,
}

/// One sub-agent and the run that waits for it.
struct SubagentRun<'a> {
    hub: &'a Hub,
    session: SessionId,
    run: RunId,
    origin: RunOrigin,
    /// The name of its task: people are told who asks.
    name: &'a str,
    trace: Option<TraceContext>,
    parent: Parent<'a>,
}

/// What the log of a sub-agent's run has told so far.
#[derive(Default)]
struct ChildProgress {
    /// The agent's last message.
    text: String,
    /// Questions without an answer.
    open: Vec<Question>,
    /// Calls that have not ended: a question shows which of them it is about.
    calls: Vec<ToolCall>,
    /// The call that hands over a result in the form that was asked for, and what it gave.
    output: Option<ToolCallId>,
    result: Option<String>,
    /// Usage entries that the parent paid for before a restart.
    paid: usize,
    due: Vec<Usage>,
    outcome: Option<Outcome>,
}

impl ChildProgress {
    /// Takes in what matters to the parent. The rest is for whoever reads the sub-agent's session.
    fn handle_event(&mut self, event: &Event) {
        if let Event::MessageDone { message } = event {
            if message.role == Role::Agent {
                self.text = message.plain_text();
            }
        } else if let Event::ToolCalled { call } = event {
            self.output = (call.name == OUTPUT).then_some(call.id).or(self.output);
            self.calls.push(call.clone());
        } else if let Event::ToolDone { call, result } = event {
            if self.output == Some(*call) {
                self.result = structured_subagent_result(result).or(self.result.take());
            }
            self.calls.retain(|known| known.id != *call);
        } else if let Event::QuestionAsked { question } = event {
            self.open.push(question.clone());
        } else if let Event::QuestionAnswered { question, .. } = event {
            self.open.retain(|known| known.id != *question);
        } else if let Event::UsageAdded { usage } = event {
            match self.paid.checked_sub(1) {
                Some(fewer) => self.paid = fewer,
                None => self.due.push(usage.clone()),
            }
        } else if let Event::RunEnded { outcome } = event {
            self.outcome = Some(outcome.clone());
        }
    }
}

/// A sub-agent's log from its start, and how many of its model calls its parent has paid for already.
struct FollowedRun {
    follower: Follower,
    paid: usize,
}

/// A question of a sub-agent that its parent's user was asked.
struct ForwardedQuestion<'a> {
    question: QuestionId,
    reply: Pin<Box<dyn Future<Output = Reply> + Send + 'a>>,
}

#[async_trait]
impl SubagentRunner for HubSubagents {
    fn check(&self, task: &SubTask) -> Result<(), String> {
        self.subagent_settings(task)
            .map(drop)
            .ok_or_else(|| format!("no such agent or mode: {}", subagent_mode_name(task)))
    }

    async fn run(&self, call: ToolCallId, task: &SubTask, parent: Parent<'_>) -> SubResult {
        let session = SessionId::new(derived_subagent_id(call, &task.name, "session"));
        let failed = |why: String| SubResult { end: SubEnd::Failed, text: why, session: session.to_string() };
        let (Some(hub), Some(settings)) = (self.hub.upgrade(), self.subagent_settings(task)) else {
            return failed("the server is stopping".to_owned());
        };
        let run = RunId::new(derived_subagent_id(call, &task.name, "run"));
        let origin = RunOrigin { by: self.parent.owner.clone(), door: DOOR.to_owned() };
        let sub = SubagentRun { hub: &hub, session, run, origin, name: &task.name, trace: self.trace, parent };
        let has_servers = match self.attach_recipe_extensions(&sub, task).await {
            Ok(has_servers) => has_servers,
            Err(why) => return failed(why),
        };
        let result = match self.start_or_resume(&sub, task, settings).await {
            Ok(watched) => sub.follow_to_end(watched).await.unwrap_or_else(|error| failed(error.to_string())),
            Err(error) => failed(error.to_string()),
        };
        if has_servers {
            self.extensions.close_session(session);
        }
        result
    }
}

impl HubSubagents {
    /// Attaches the extensions that its recipe names; true if MCP servers are among them. No program starts unless
    /// somebody agrees.
    async fn attach_recipe_extensions(&self, sub: &SubagentRun<'_>, task: &SubTask) -> Result<bool, String> {
        let Some(recipe) = &task.recipe else { return Ok(false) };
        let wanted = resolve_recipe_extensions(&self.extensions, recipe, &Reach::Guarded(Guard::default()));
        for program in &wanted.programs {
            self.confirm_program(sub, &task.name, program).await?;
        }
        let view = SessionView { session: sub.session, ..self.parent.clone() };
        let enabled = self.extensions.built_ins(&view);
        for built_in in wanted.built_ins.into_iter().filter(|built_in| !enabled.is_enabled(*built_in)) {
            let range = ExtensionScope::Session(sub.session);
            let added =
                self.extensions.add(range, built_in.name(), ExtensionEntry::built_in(), Rights::Addresses).await;
            added.map_err(|error| error.to_string())?;
        }
        let servers = [wanted.programs, wanted.addresses].concat();
        let has_servers = !servers.is_empty();
        if has_servers {
            self.extensions.attach_session(&view, servers);
        }
        Ok(has_servers)
    }

    /// Asks the parent's user; with nobody there it is a no.
    async fn confirm_program(&self, sub: &SubagentRun<'_>, recipe: &str, program: &Spec) -> Result<(), String> {
        let title = format!(
            "The recipe {} starts a program, {}: {}",
            sanitize::sanitized_line(recipe),
            sanitize::sanitized_line(&program.name),
            sanitize::sanitized_line(&program.command_or_url())
        );
        let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
        let choices = vec![
            choice("allow_once", "Start it", ChoiceKind::AllowOnce),
            choice("reject_once", "No", ChoiceKind::RejectOnce),
        ];
        let reply = tokio::select! {
            biased;
            () = sub.parent.cancel.cancelled() => Reply::Cancelled,
            reply = sub.parent.prompter.ask(&title, QuestionKind::Choose { choices }, QuestionOrigin::Held) => reply,
        };
        match reply.is_allowed() {
            true => Ok(()),
            false => Err(format!("a recipe starts no program unasked, and nobody agreed: {}", program.name)),
        }
    }

    /// Starts it, or finds what was started before the process died.
    async fn start_or_resume(
        &self,
        sub: &SubagentRun<'_>,
        task: &SubTask,
        settings: Settings,
    ) -> Result<FollowedRun, HubError> {
        match sub.hub.session_view(sub.session).await {
            Ok(_) => {
                let paid = self.count_paid_calls(sub).await?;
                return Ok(FollowedRun {
                    follower: sub.hub.follow_session(sub.session, Seq::ZERO, DeltaForm::Joined),
                    paid,
                });
            }
            Err(HubError::Store(StoreError::NotFound(_))) => {}
            Err(error) => return Err(error),
        }
        if let Some(recipe) = &task.recipe {
            // Before it begins: its first run already works towards what the recipe wants.
            let followed = SessionRecipe { recipe: (**recipe).clone(), folder: None };
            self.recipes.set_session_recipe(sub.session, &followed).await?;
        }
        let (run, origin, parts) = (sub.run, sub.origin.clone(), vec![Part::text(task.prompt.clone())]);
        let command = Command::Prompt { run, origin, parts, if_busy: IfBusy::Refuse, meta: None };
        let prompt = FirstPrompt { command, ack: Ack::Committed };
        // As it is now: the run may have read something since it began.
        let inherited = sub.hub.session_view(self.parent.session).await?.provenance.text_mark();
        let child = ChildSession { id: sub.session, settings, prompt, inherited };
        let begun =
            start_child_session(sub.hub, &sub.subagent_caller(), &self.parent, child, self.client_resources.clone())
                .await;
        begun.accepted.await?;
        Ok(FollowedRun { follower: begun.follower, paid: 0 })
    }

    /// How many of its model calls are in the parent's log: after a crash none is paid for twice.
    async fn count_paid_calls(&self, sub: &SubagentRun<'_>) -> Result<usize, HubError> {
        let (mut paid, mut after) = (0, Seq::ZERO);
        loop {
            let page = sub.hub.store().read(self.parent.session, after, Limit::default(), DeltaForm::Joined).await?;
            let Some(last) = page.last() else { return Ok(paid) };
            after = last.seq;
            let of_this = |usage: &Usage| usage.child == Some(sub.session);
            let is_paid = |event: &Event| matches!(event, Event::UsageAdded { usage } if of_this(usage));
            paid += page.iter().filter(|entry| is_paid(&entry.event)).count();
        }
    }

    /// What the sub-agent is set to: never more than its parent may, nor more than is left.
    fn subagent_settings(&self, task: &SubTask) -> Option<Settings> {
        let parent = &self.parent.settings;
        let modes = self.agent_catalog.modes_in(Path::new(&self.parent.workspace));
        let roster = Roster::new(modes.agent_manifests().map(Arc::new).collect());
        let agent_mode = roster.find_mode(subagent_mode_name(task))?;
        let mut settings = Settings { routing: Routing::Off, ..parent.clone() };
        (settings.agent, settings.mode) = (agent_mode.agent.name.clone(), agent_mode.mode.id.clone());
        settings.model = task.model.clone().or(settings.model);
        settings.max_turns = task.max_turns.or(settings.max_turns);
        let wanted = task.recipe.as_ref().and_then(|recipe| recipe.settings.as_ref()?.temperature);
        // From 0 to 2: the check of the recipe saw to that.
        settings.temperature = wanted.map(|degrees| (degrees * 100.0).round() as u16).or(settings.temperature);
        let spent = &self.parent.spent;
        let left = |most: Option<u64>, spent: u64| most.map(|most| most.saturating_sub(spent));
        let tokens = left(parent.budget.tokens, spent.input + spent.output);
        settings.budget = Budget {
            tokens: task.max_tokens.into_iter().chain(tokens).min(),
            cost: left(parent.budget.cost, spent.cost),
        };
        Some(settings)
    }
}

impl SubagentRun<'_> {
    /// Follows its log until its run has ended. Its questions are asked of the parent's user.
    async fn follow_to_end(&self, watched: FollowedRun) -> Result<SubResult, HubError> {
        let FollowedRun { mut follower, paid } = watched;
        let mut progress = ChildProgress { paid, ..ChildProgress::default() };
        let mut asking: Option<ForwardedQuestion<'_>> = None;
        loop {
            // Whoever is asked stays asked as long as the question is open: dropping it withdraws it.
            // One at a time: what holds the sub-agent up goes before what does not.
            let next = progress.open.iter().min_by_key(|question| question.is_non_blocking());
            asking = asking.filter(|asking| next.is_some_and(|question| question.id == asking.question));
            asking = asking.or_else(|| next.map(|question| self.forward_question(question.clone(), &progress.calls)));
            let asked = async {
                match &mut asking {
                    Some(asking) => (asking.question, (&mut asking.reply).await),
                    None => std::future::pending().await,
                }
            };
            let batch = tokio::select! {
                biased;
                () = self.parent.cancel.cancelled() => return self.cancel_run(follower).await,
                batch = follower.next_batch() => batch.map_err(HubError::from)?.ok_or(HubError::Gone(self.session))?,
                (question, reply) = asked => {
                    progress.open.retain(|known| known.id != question);
                    self.answer_question(question, reply).await;
                    continue;
                }
            };
            batch
                .iter()
                .filter(|entry| entry.run == Some(self.run))
                .for_each(|entry| progress.handle_event(&entry.event));
            for usage in std::mem::take(&mut progress.due) {
                self.report_usage(usage).await;
            }
            if let Some(outcome) = &progress.outcome {
                self.report_untrusted_text().await?;
                return Ok(self.result_of_outcome(outcome, progress.result.unwrap_or(progress.text)));
            }
        }
    }

    /// Asks its parent's user.
    fn forward_question(&self, question: Question, calls: &[ToolCall]) -> ForwardedQuestion<'_> {
        let origin = if question.is_non_blocking() { QuestionOrigin::NonBlocking } else { QuestionOrigin::Held };
        let Question { id, call, title, ask, preview, .. } = question;
        let call = calls.iter().find(|known| Some(known.id) == call).cloned();
        let agent = sanitize::sanitized_line(self.name);
        let title = format!("{agent}: {title}");
        let subagent = call.map(|call| Box::new(SubagentCall { agent, call, preview }));
        let reply = async move { self.parent.prompter.ask_for_subagent(&title, ask, origin, subagent).await };
        ForwardedQuestion { question: id, reply: Box::pin(reply) }
    }

    /// Whatever the parent's people answer was authorised there.
    fn subagent_caller(&self) -> Caller {
        Caller { trace: self.trace, ..Caller::internal(self.origin.by.clone()) }
    }

    /// What it says may be what a page told it: its parent has to know before it hears it.
    async fn report_untrusted_text(&self) -> Result<(), HubError> {
        let mark = self.hub.session_view(self.session).await?.provenance.text_mark();
        let mark = TextMark { private: None, ..mark };
        if !mark.is_empty() && self.parent.signals.send(ToolEvent::Marked(mark)).await.is_err() {
            tracing::debug!(session = %self.session, "a sub-agent ended after its parent");
        }
        Ok(())
    }

    /// Its model calls count as usage of its parent.
    async fn report_usage(&self, usage: Usage) {
        let usage = Usage { child: Some(self.session), ..usage };
        if self.parent.signals.send(ToolEvent::Spent(usage)).await.is_err() {
            tracing::debug!(session = %self.session, "a sub-agent paid for a model call after its parent's end");
        }
    }

    /// Somebody may have answered in the sub-agent's own session meanwhile: the first answer counts.
    async fn answer_question(&self, question: QuestionId, reply: Reply) {
        let command = Command::Answer { question, reply, origin: self.origin.clone(), meta: None };
        if let Err(error) =
            self.hub.execute_command(&self.subagent_caller(), self.session, command, Ack::Committed).await
        {
            tracing::debug!(%error, "a sub-agent's question was answered elsewhere");
        }
    }

    async fn cancel_run(&self, mut follower: Follower) -> Result<SubResult, HubError> {
        let command = Command::Cancel { run: Some(self.run), origin: self.origin.clone() };
        if let Err(error) =
            self.hub.execute_command(&self.subagent_caller(), self.session, command, Ack::Committed).await
        {
            tracing::debug!(%error, "a sub-agent was over before it was cancelled");
        }
        let ended = async {
            while let Ok(Some(batch)) = follower.next_batch().await {
                if batch.iter().any(|entry| matches!(entry.event, Event::RunEnded { .. })) {
                    return;
                }
            }
        };
        if tokio::time::timeout(CANCEL_TIMEOUT, ended).await.is_err() {
            tracing::warn!(session = %self.session, "a sub-agent takes long to end");
        }
        Ok(self.sub_result(SubEnd::Cancelled, "cancelled".to_owned()))
    }

    fn result_of_outcome(&self, outcome: &Outcome, answer: String) -> SubResult {
        match outcome {
            Outcome::Completed { stop } => match stop.limit_message() {
                Some(limit) => self.sub_result(SubEnd::Failed, format!("{answer}\n[{limit}]").trim_start().to_owned()),
                None => self.sub_result(SubEnd::Completed, answer),
            },
            Outcome::Cancelled => self.sub_result(SubEnd::Cancelled, answer),
            Outcome::Failed { message, .. } => self.sub_result(SubEnd::Failed, message.clone()),
        }
    }

    fn sub_result(&self, end: SubEnd, text: String) -> SubResult {
        SubResult { end, text, session: self.session.to_string() }
    }
}

/// A result of the form that was asked for.
fn structured_subagent_result(result: &ToolResult) -> Option<String> {
    let raw = result.raw.as_ref().filter(|_| result.end == ToolEnd::Completed)?;
    Some(raw.to_string())
}

fn subagent_mode_name(task: &SubTask) -> &str {
    task.mode.as_deref().unwrap_or("specialist")
}

/// The same call and task are the same sub-agent, also after a crash.
fn derived_subagent_id(call: ToolCallId, task: &str, what: &str) -> uuid::Uuid {
    let mut hash = Sha256::new();
    for piece in [call.uuid().as_bytes(), task.as_bytes(), what.as_bytes()] {
        hash.update((piece.len() as u64).to_be_bytes());
        hash.update(piece);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
