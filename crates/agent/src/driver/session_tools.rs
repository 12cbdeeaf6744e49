//! What a turn's calls are judged and run by.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use gander_domain::{
    Answer, IdGenerator, Plan, Policy, Provenance, Question, QuestionId, QuestionKind, QuestionOrigin, Reply,
    SessionPolicy, SubagentCall, ToolCall, ToolCallId, ToolEnd, ToolResult, ToolSpec,
};
use gander_mcp::Servers;
use gander_tools::permission::{self, CallContext, Grant, LivePolicy, LiveRules, Outlet, Verdict};
use gander_tools::{
    Group, Host, ListedTool, ProtectedChanges, Tool, ToolContext, ToolEffect, ToolEvent, Toolbox, Workspace,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{network_retry, protected_files};
use crate::delegate::UserPrompter;
use crate::modes::ModeSpec;
use crate::propose;
use crate::turn::{PermissionEvaluator, ToolDecision};

/// What a driver has a turn's calls judged and run by. It is no [`Tool`]: it decides which tool a call is of, whether the
/// call may run, and what happens around it (questions, retries, protected files).
#[async_trait]
pub trait ToolExecutor: PermissionEvaluator {
    /// The tools on offer now.
    fn tools(&self) -> Arc<[ToolSpec]>;

    /// Runs a call to its end. It stops soon after `cancel`, and at once when dropped.
    async fn run(&self, call: &ToolCall, signals: mpsc::Sender<ToolEvent>, cancel: CancellationToken) -> ToolResult;
}

/// The built-in tools and those of a session's servers in one workspace, under its rules and grants.
pub struct SessionTools {
    /// The built-in tools.
    pub toolbox: Arc<Toolbox>,
    /// The session's servers.
    pub servers: Arc<Servers>,
    /// Says which of the tools are on offer, all others being unknown, and how much may run unasked at most.
    pub mode: Mutex<Arc<ModeSpec>>,
    /// Where files are.
    pub workspace: Arc<Workspace>,
    /// Who lends files and terminals.
    pub host: Arc<dyn Host>,
    /// What the owner decided beforehand.
    pub rules: LiveRules,
    /// What people decided for good.
    pub grants: Arc<dyn GrantStore>,
    /// The tools that services and the run's task lend to this session.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Tools that are the same in every run. Their specs are taken from here: schemas that runs share are compared by
    /// where they lie, and not made anew for each list.
    pub own_tools: Arc<[ListedTool]>,
    /// The plan as it was last set. [`Delegate`](crate::delegate) shows its sub-tasks after it.
    pub plan: Arc<Mutex<Plan>>,
    /// What the session lets run unasked, as it was when a call was last judged.
    pub policy: Mutex<SessionPolicy>,
    /// Where the text in the agent's context came from then.
    pub provenance: Mutex<Provenance>,
    /// What the server's settings let run unasked.
    pub setting: LivePolicy,
    /// Calls that a person said yes to, and that have not run yet.
    pub approved: Mutex<BTreeSet<ToolCallId>>,
    /// A call of this turn was preceded by a comparison of protected files. Whoever is parked begins anew.
    pub has_compared: AtomicBool,
}

/// Where grants are kept. Shared by all sessions; a grant names its workspace.
pub trait GrantStore: Send + Sync {
    /// All of them.
    fn grants(&self) -> Vec<Grant>;

    /// Writes one more down; the same one twice is one.
    fn add(&self, grant: Grant);
}

/// Grants that are forgotten with the process.
#[derive(Debug, Default)]
pub struct MemoryGrantStore(Mutex<Vec<Grant>>);

impl GrantStore for MemoryGrantStore {
    fn grants(&self) -> Vec<Grant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, grant: Grant) {
        let mut grants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }
}

#[async_trait]
impl ToolExecutor for SessionTools {
    fn tools(&self) -> Arc<[ToolSpec]> {
        let (mode, extensions) = (self.current_mode(), self.servers.built_ins());
        let is_offered = |group: Group| extensions.offers_group(group) && mode.offers_group(group);
        let built_in = self.toolbox.listed_tools();
        let built_in = built_in.iter().filter(|tool| is_offered(tool.group)).map(|tool| tool.spec.clone());
        let of_servers = self.servers.listed_tools().into_iter().filter(|tool| mode.offers_group(tool.group));
        let lent = |is_delegate: bool| {
            let optional = self.tools.iter().filter(|tool| !tool.is_required() && is_offered(tool.group()));
            optional
                .filter(move |tool| (tool.group() == Group::Delegate) == is_delegate)
                .map(|tool| self.spec_of(&**tool))
        };
        let required = self.tools.iter().filter(|tool| tool.is_required()).map(|tool| tool.spec());
        // Providers cache a request by its beginning: what stays the same for a server's lifetime comes first.
        let of_servers = of_servers.map(|tool| tool.spec);
        built_in.chain(lent(true)).chain(of_servers).chain(lent(false)).chain(required).collect()
    }

    async fn run(&self, call: &ToolCall, signals: mpsc::Sender<ToolEvent>, cancel: CancellationToken) -> ToolResult {
        if self.servers.runs_program(call) {
            let running = protected_files::RunningCall { signals: &signals, cancel: &cancel };
            let work = async {
                self.run_at_server(call, &signals, &cancel).await.unwrap_or_else(|| no_such_session_tool(call))
            };
            return protected_files::run_program_among_protected_files(self, running, work).await;
        }
        if let Some(result) = self.run_at_server(call, &signals, &cancel).await {
            return result;
        }
        let (workspace, host) = (self.workspace.clone(), self.host.clone());
        let protected_changes = self.protected_changes(call);
        let context = ToolContext { workspace, host, signals, cancel, protected_changes };
        if let Some(tool) = self.find_lent_tool(&call.name) {
            let result = tool.run(call, &context).await.unwrap_or_else(ToolResult::from);
            return match tool.group() == Group::Delegate {
                // What sub-agents answer is passed on whole: it is a model's text, not the output of a program.
                true => result,
                false => self.toolbox.redact_and_limit(result),
            };
        }
        if call.name == propose::NAME {
            // Its start is in the log, so it was approved, and then the process died: the session has set the plan.
            return propose::approved_proposal_result(&self.plan.lock().unwrap_or_else(PoisonError::into_inner));
        }
        if let ("plan", Ok(plan)) = (call.name.as_str(), Plan::parse_edited(&call.arguments)) {
            *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
        }
        let result = protected_files::run_watching_protected_files(self, call, &context).await;
        match network_retry::retry_call_with_network(call, &result).filter(|again| self.asks_about(again)) {
            Some(again) if network_retry::is_network_retry_granted(&*self.servers, &again, &context.cancel).await => {
                protected_files::run_watching_protected_files(self, &again, &context).await
            }
            Some(_) | None => result,
        }
    }
}

/// A sub-agent asks as a server does: by the run that is under way.
#[async_trait]
impl UserPrompter for Servers {
    async fn ask(&self, title: &str, ask: QuestionKind, origin: QuestionOrigin) -> Reply {
        Servers::ask_person(self, title, ask, origin).await
    }

    async fn ask_for_subagent(
        &self,
        title: &str,
        ask: QuestionKind,
        origin: QuestionOrigin,
        subagent: Option<Box<SubagentCall>>,
    ) -> Reply {
        Servers::ask_for_subagent(self, title, ask, origin, subagent).await
    }
}

impl PermissionEvaluator for SessionTools {
    fn evaluate(
        &self,
        policy: SessionPolicy,
        provenance: &Provenance,
        id: ToolCallId,
        name: &str,
        arguments: &Value,
        ids: &mut dyn IdGenerator,
    ) -> ToolDecision {
        *self.policy.lock().unwrap_or_else(PoisonError::into_inner) = policy;
        provenance.clone_into(&mut self.provenance.lock().unwrap_or_else(PoisonError::into_inner));
        let offered = self.tools();
        if !offered.iter().any(|tool| tool.name == name) {
            return ToolDecision::Bad(ToolResult::text(ToolEnd::Failed, unknown_session_tool_text(name, &offered)));
        }
        let lent = || {
            let tool = self.find_lent_tool(name)?;
            Some(tool.describe_call(id, arguments, &self.workspace).map_err(ToolResult::from))
        };
        let built_in = || self.toolbox.describe_call(id, name, arguments, &self.workspace);
        let call = match self.servers.describe_call(id, name, arguments).or_else(lent).unwrap_or_else(built_in) {
            Ok(call) => call,
            Err(result) => return ToolDecision::Bad(result),
        };
        match self.permission_verdict(self.effective_policy(policy), &call) {
            Verdict::Allow { .. } | Verdict::Ask(_) if call.name == propose::NAME => self.decide_tool_call(call, ids),
            Verdict::Allow { .. } => ToolDecision::Run(call),
            Verdict::Ask(asked) => {
                let question = permission::permission_question(QuestionId::make(ids), &call, &asked);
                let preview = self.toolbox.proposal(&call, &self.workspace);
                let preview = question.preview.iter().cloned().chain(preview).collect();
                ToolDecision::Ask(call, Question { preview, ..question })
            }
            Verdict::Deny { reason } => {
                ToolDecision::Refuse(call, ToolResult::text(ToolEnd::Rejected, format!("refused: {reason}")))
            }
        }
    }

    fn fingerprint(&self, call: &ToolCall) -> String {
        permission::permission_call_fingerprint(call)
    }

    /// Exactly what was shown is granted. [`Policy::Ask`] shows it whatever the policy is by now.
    fn record_answer(&self, call: &ToolCall, question: &Question, answer: &Answer) {
        let Reply::Chosen { choice, .. } = &answer.reply else { return };
        if question.fingerprint.as_deref() != Some(permission::permission_call_fingerprint(call).as_str()) {
            return;
        }
        if answer.reply.is_allowed() {
            self.approved.lock().unwrap_or_else(PoisonError::into_inner).insert(call.id);
        }
        // What is kept for good is decided apart from what this session has read.
        let objection = self.toolbox.find_objection(call, &self.workspace);
        let context = CallContext { provenance: Provenance::default(), ..self.call_context(call, objection) };
        let Verdict::Ask(asked) = self.verdict_in(Policy::Ask, call, &context) else { return };
        // What was offered under this id may have changed since: only what was read counts.
        let shown = question.find_choice(choice).map(|shown| &shown.name);
        let offered = asked.choices.iter().find(|offered| offered.id == *choice).map(|offered| &offered.name);
        let grant = asked.grants.into_iter().find(|(id, _)| id == choice);
        if let Some((_, grant)) = grant.filter(|_| shown.is_some() && shown == offered) {
            self.grants.add(grant);
        }
    }
}

impl SessionTools {
    fn spec_of(&self, tool: &dyn Tool) -> ToolSpec {
        let same = |own: &&ListedTool| own.group == tool.group() && own.spec.name == tool.name();
        self.own_tools.iter().find(same).map_or_else(|| tool.spec(), |own| own.spec.clone())
    }

    /// How it works now.
    pub fn current_mode(&self) -> Arc<ModeSpec> {
        Arc::clone(&self.mode.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// It works in another way from now on.
    pub fn set_mode(&self, mode: Arc<ModeSpec>) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// What counts of a session's policy at this moment.
    pub fn effective_policy(&self, policy: SessionPolicy) -> Policy {
        policy.under_setting(self.setting.current_policy())
    }

    /// The same, of the policy that a call was last judged by.
    fn last_policy(&self) -> Policy {
        self.effective_policy(*self.policy.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A plan is always put to a person.
    fn decide_tool_call(&self, call: ToolCall, ids: &mut dyn IdGenerator) -> ToolDecision {
        match propose::proposal_question(QuestionId::make(ids), &call, self.current_mode().then.clone()) {
            Some(question) => ToolDecision::Ask(call, question),
            None => ToolDecision::Bad(ToolResult::text(ToolEnd::Failed, "the plan cannot be read")),
        }
    }

    /// What is forbidden is not offered; where everything runs unasked the model may simply call again.
    fn asks_about(&self, call: &ToolCall) -> bool {
        let policy = self.last_policy();
        matches!(self.permission_verdict(policy, call), Verdict::Ask(_))
    }

    /// True if nobody is asked about anything.
    pub(super) fn is_auto(&self) -> bool {
        let policy = self.last_policy();
        self.current_mode().limit_policy(policy) == Policy::Auto
    }

    /// `None` if it is no tool of a server's. A call that missed the network is made again with it, if somebody says
    /// yes. Where everything runs unasked nobody is asked: nobody may be there.
    async fn run_at_server(
        &self,
        call: &ToolCall,
        signals: &mpsc::Sender<ToolEvent>,
        cancel: &CancellationToken,
    ) -> Option<ToolResult> {
        let result = self.servers.call_tool(call, signals.clone(), cancel.clone()).await?;
        if self.is_auto() || !self.servers.offer_network(call, &result, cancel).await {
            return Some(result);
        }
        Some(self.servers.call_tool(call, signals.clone(), cancel.clone()).await.unwrap_or(result))
    }

    /// Whether a person agreed to this call, or whether it would run unasked even if it changed what others run.
    fn protected_changes(&self, call: &ToolCall) -> ProtectedChanges {
        let approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner).remove(&call.id);
        let policy = self.last_policy();
        let objection = || Some("it may change what other programs run".to_owned());
        match approved || matches!(self.verdict_against(policy, call, objection()), Verdict::Allow { .. }) {
            true => ProtectedChanges::Allowed,
            false => ProtectedChanges::Refused,
        }
    }

    fn permission_verdict(&self, policy: Policy, call: &ToolCall) -> Verdict {
        self.verdict_against(policy, call, self.toolbox.find_objection(call, &self.workspace))
    }

    fn verdict_against(&self, policy: Policy, call: &ToolCall, objection: Option<String>) -> Verdict {
        self.verdict_in(policy, call, &self.call_context(call, objection))
    }

    fn call_context(&self, call: &ToolCall, objection: Option<String>) -> CallContext {
        // A terminal that somebody lends is outside of the sandbox, and its environment is theirs.
        let lent = !self.host.is_here() && self.host.offers().terminal;
        CallContext {
            effect: self.tool_effect(&call.name),
            folders: self.workspace.rule_folders(),
            sandboxed: !lent && self.toolbox.is_sandboxed(),
            isolated: !lent && self.toolbox.is_isolated(),
            objection,
            outlet: self.tool_outlet(call),
            provenance: self.provenance.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// A tool that a service lends stays here; a program of a server is kept here by its sandbox, if by anything.
    fn tool_outlet(&self, call: &ToolCall) -> Outlet {
        match self.servers.reaches_out(call) {
            Some(true) => Outlet::Network,
            Some(false) => Outlet::None,
            None => match self.find_lent_tool(&call.name) {
                Some(tool) if tool.outlives_session() => Outlet::Memory,
                Some(_) | None => Outlet::None,
            },
        }
    }

    fn verdict_in(&self, policy: Policy, call: &ToolCall, context: &CallContext) -> Verdict {
        permission::decide_permission(
            self.current_mode().limit_policy(policy),
            &self.rules.current_rules(),
            &self.grants.grants(),
            call,
            context,
        )
    }

    fn find_lent_tool(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.name() == name).map(|tool| &**tool)
    }

    /// Tools of MCP servers are unknown. None of them is taken for one of ours, for all their names have a server's
    /// before `__`.
    pub(super) fn tool_effect(&self, name: &str) -> ToolEffect {
        let own = self.find_lent_tool(name).or_else(|| self.toolbox.find_tool(name));
        own.map_or(ToolEffect::Unknown, |tool| tool.effect())
    }
}

/// The tool went away between being found and being called.
fn no_such_session_tool(call: &ToolCall) -> ToolResult {
    ToolResult::text(ToolEnd::Failed, format!("no such tool here: {:?}", call.name))
}

fn unknown_session_tool_text(name: &str, offered: &[ToolSpec]) -> String {
    let offered: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
    format!("no such tool here: {name:?} (there are: {})", offered.join(", "))
}
