//! Whether a tool call may run: a pure decision from policy, rules, grants and the call itself.
//!
//! Deny beats ask beats allow. Nothing here reads a file, a clock or the environment.

mod decide_effect;
mod glob;
mod grant;
mod live_policy;
mod live_rules;
mod outward;
mod programs;
mod reads;
mod rule;
mod script;
mod secret_and_protected_paths;
mod workspace_folders;

use gander_domain::{
    Answer, Choice, ChoiceKind, OutwardCall, Part, Policy, Provenance, Question, QuestionId, QuestionKind,
    QuestionOrigin, ToolCall, ToolContent, provenance, sanitize,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::tool_effect::ToolEffect;
use decide_effect::CallEffect;

pub use grant::{Grant, Scope, Stand};
pub use live_policy::LivePolicy;
pub use live_rules::LiveRules;
pub use outward::Outlet;
pub use programs::read_only_programs;
pub use reads::{LineReads, NamedPath, RepositoryUse, find_reads};
pub use rule::{Action, Rule};
pub use script::{paths_named_in_script, plain_script_words};
pub(crate) use secret_and_protected_paths::{
    PathClass, classify_path_name, normalize_path_name, secret_path_gitattributes,
};
pub use secret_and_protected_paths::{is_protected_path, is_secret_path};
pub use workspace_folders::WorkspaceFolders;

/// What a decision about one call depends on besides the call itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallContext {
    /// What the call's tool does.
    pub effect: ToolEffect,
    /// Where it would run.
    pub folders: WorkspaceFolders,
    /// True if commands run in a sandbox. Without one none of them runs unasked, not even one that only reads.
    pub sandboxed: bool,
    /// True if a command that did not ask for the network has none.
    pub isolated: bool,
    /// What the files themselves hold against this very call: against a shell line that only reads, a link that leads out
    /// or a repository that names programs; against a change of a file, that what others run would be another. Whoever
    /// may look at files says so.
    pub objection: Option<String>,
    /// Where a tool that is none of ours could carry something.
    pub outlet: Outlet,
    /// Where the text in the agent's context comes from.
    pub provenance: Provenance,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Yes, unasked.
    Allow {
        /// For the audit trail.
        why: String,
    },
    /// A person decides.
    Ask(PermissionPrompt),
    /// No.
    Deny {
        /// Told to the model.
        reason: String,
    },
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionPrompt {
    /// The call in one line, with nothing hidden in it.
    pub title: String,
    /// Why it does not run unasked.
    pub why: String,
    /// What can be answered.
    pub choices: Vec<Choice>,
    /// What each choice of "always" stores, by its id: exactly what its name says.
    pub grants: Vec<(String, Grant)>,
    /// It would carry something out, and nothing that was decided beforehand covers that.
    pub outward: Option<OutwardCall>,
}

/// Decides about one call.
pub fn decide_permission(
    policy: Policy,
    rules: &[Rule],
    grants: &[Grant],
    call: &ToolCall,
    context: &CallContext,
) -> Verdict {
    let effect = CallEffect::from_call(call, context);
    let grants: Vec<&Grant> = grants.iter().filter(|grant| grant.is_for_workspace(&context.folders)).collect();
    let covered = |stand| grants.iter().any(|grant| grant.stand == stand && grant.covers_effect(&effect, context));
    let rules: Vec<&Rule> = rules.iter().filter(|rule| rule.applies_to(call, &effect, &context.folders)).collect();
    if rules.iter().any(|rule| rule.action == Action::Deny) {
        return deny_permission_verdict("a rule forbids it");
    }
    if covered(Stand::Deny) {
        return deny_permission_verdict("it was refused for good in this workspace");
    }
    let allowing: Vec<&Rule> = rules.iter().copied().filter(|rule| rule.action == Action::Allow).collect();
    let unasked = effect.allow_unasked(policy, &allowing, &grants, context);
    if policy == Policy::ReadOnly && !(effect.is_read_only() && unasked.is_ok()) {
        return deny_permission_verdict("the policy is read_only");
    }
    if let Some(oddity) = effect.find_deception() {
        return ask_permission_verdict(call, context, oddity, Vec::new());
    }
    if rules.iter().any(|rule| rule.action == Action::Ask) {
        return ask_permission_verdict(call, context, "a rule asks for it", Vec::new());
    }
    if let Some(outward) = outward::find_outward_call(&effect, &allowing, call, context) {
        return ask_outward_permission(call, context, outward);
    }
    match unasked {
        Ok(why) => allow_permission_verdict(why),
        Err(_) if covered(Stand::Allow) => allow_permission_verdict("it was allowed for good in this workspace"),
        Err(why) => ask_permission_verdict(call, context, why, effect.always_grants(context)),
    }
}

/// The question about a call that is asked for.
pub fn permission_question(id: QuestionId, call: &ToolCall, prompt: &PermissionPrompt) -> Question {
    Question {
        id,
        call: Some(call.id),
        title: prompt.title.clone(),
        ask: QuestionKind::Choose { choices: prompt.choices.clone() },
        origin: QuestionOrigin::Parked,
        fingerprint: Some(permission_call_fingerprint(call)),
        plan: None,
        subagent: None,
        preview: prompt.outward.iter().map(|outward| permission_text_content(&outward.reason)).collect(),
        outward: prompt.outward.clone().map(Box::new),
        meta: None,
    }
}

/// True if this answer to this question lets exactly this call run. To be asked right before it runs.
pub fn permission_answer_approves(question: &Question, answer: &Answer, call: &ToolCall) -> bool {
    answer.reply.is_allowed()
        && question.call == Some(call.id)
        && question.fingerprint.as_deref() == Some(permission_call_fingerprint(call).as_str())
}

/// What binds an approval to a tool and its arguments: one changed byte makes another.
pub fn permission_call_fingerprint(call: &ToolCall) -> String {
    let mut hash = Sha256::new();
    hash.update((call.name.len() as u64).to_be_bytes());
    hash.update(call.name.as_bytes());
    hash.update(canonical_permission_json(&call.arguments).as_bytes());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON with sorted keys: equal values are equal texts.
pub fn canonical_permission_json(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), canonical_permission_json(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical_permission_json).collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn allow_permission_verdict(why: impl Into<String>) -> Verdict {
    Verdict::Allow { why: why.into() }
}

fn deny_permission_verdict(reason: impl Into<String>) -> Verdict {
    Verdict::Deny { reason: reason.into() }
}

fn ask_permission_verdict(
    call: &ToolCall,
    context: &CallContext,
    why: impl Into<String>,
    grants: Vec<Grant>,
) -> Verdict {
    let mut choices = vec![permission_choice("allow_once", "Allow", ChoiceKind::AllowOnce)];
    let mut stored = Vec::new();
    for (index, grant) in grants.iter().enumerate() {
        let id = if index == 0 { "allow_always".to_owned() } else { format!("allow_always_{}", index + 1) };
        choices.push(permission_choice(&id, &format!("Always allow {grant}"), ChoiceKind::AllowAlways));
        stored.push((id, grant.clone()));
    }
    choices.push(permission_choice("reject_once", "Reject", ChoiceKind::RejectOnce));
    if let Some(exact) = grants.into_iter().next() {
        let never = format!("Never allow {exact}");
        choices.push(permission_choice("reject_always", &never, ChoiceKind::RejectAlways));
        stored.push(("reject_always".to_owned(), exact.as_refusal()));
    }
    let title = permission_prompt_title(call, context.effect);
    Verdict::Ask(PermissionPrompt { title, why: why.into(), choices, grants: stored, outward: None })
}

/// Nothing is stored beyond the session: what else is in its context then, nobody knows today.
fn ask_outward_permission(call: &ToolCall, context: &CallContext, outward: OutwardCall) -> Verdict {
    let session = format!("Allow {} for the rest of this session", outward::outward_destination_name(call, context));
    let choices = vec![
        permission_choice("allow_once", "Allow", ChoiceKind::AllowOnce),
        permission_choice(provenance::ALLOW_SESSION, &session, ChoiceKind::AllowAlways),
        permission_choice("reject_once", "Reject", ChoiceKind::RejectOnce),
    ];
    let (title, why) = (permission_prompt_title(call, context.effect), outward.reason.clone());
    Verdict::Ask(PermissionPrompt { title, why, choices, grants: Vec::new(), outward: Some(outward) })
}

fn permission_text_content(text: &str) -> ToolContent {
    ToolContent::Part { part: Part::text(text) }
}

/// The titles of our own tools say it all. Those of others are theirs: what runs is shown with them.
fn permission_prompt_title(call: &ToolCall, effect: ToolEffect) -> String {
    match effect.has_own_title() {
        true => sanitize::sanitized_line(&call.title),
        false => sanitize::sanitized_call_text(&call.name, &call.arguments, &call.title),
    }
}

fn permission_choice(id: &str, name: &str, kind: ChoiceKind) -> Choice {
    Choice { id: id.to_owned(), name: name.to_owned(), kind }
}
