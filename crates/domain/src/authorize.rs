//! Who may do what: the one place where a caller's scopes are compared with what it asks for.
//!
//! Operations call these checks; protocols only tell the refusal in their own form. `docs/tokens.md` has the table.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::caller::{Caller, Scope, Transport};
use crate::{Command, Policy, SessionInit, SessionView, Settings};

/// Why a caller may not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denied {
    /// Its token is not good for that.
    #[error("{action} needs a token with the scope {scope}")]
    Scope {
        /// What was asked for.
        action: Cow<'static, str>,
        /// What is missing.
        scope: Scope,
    },
    /// It belongs to the one who started the server.
    #[error("{0} is for the owner of the server alone")]
    OwnerOnly(Cow<'static, str>),
    /// The server does not do it for callers on the network; the setting that changes that.
    #[error("not allowed here, see the setting: {0}")]
    Setting(Cow<'static, str>),
}

impl Caller {
    /// Starting, steering, cancelling, naming, archiving, rewinding and deleting.
    pub fn may_prompt(&self) -> Result<(), Denied> {
        self.require_scope(Scope::Prompt, "changing a session")
    }

    /// Answering a permission request or an elicitation, with whatever answer.
    ///
    /// "Always" is an answer too: whoever may answer may grant, for the principal's own sessions.
    pub fn may_answer(&self) -> Result<(), Denied> {
        self.require_scope(Scope::Approve, "answering a question")
    }

    /// Taking a grant back, which changes what future answers will be asked for.
    pub fn may_grant(&self) -> Result<(), Denied> {
        self.require_scope(Scope::Approve, "changing grants")
    }

    /// Letting more run unasked than before. Tightening is free.
    pub fn may_loosen_policy(&self, from: Policy, to: Policy) -> Result<(), Denied> {
        if to <= from { Ok(()) } else { self.require_scope(Scope::Approve, "loosening the permission policy") }
    }

    /// Letting the settings of a project's folder count.
    pub fn may_trust(&self) -> Result<(), Denied> {
        self.may_change_server("trusting a folder")
    }

    /// Calling a tool without a model, and so without anybody being asked.
    pub fn may_call_tool(&self) -> Result<(), Denied> {
        self.require_scope(Scope::Approve, "calling a tool directly")
    }

    /// Changing what every session has, or what the server itself does.
    pub fn may_change_server_settings(&self) -> Result<(), Denied> {
        self.may_change_server("changing what every session has")
    }

    /// Reading what every agent of the server did.
    pub fn may_read_audit(&self) -> Result<(), Denied> {
        self.require_scope(Scope::Admin, "reading the audit trail")
    }

    /// Seeing what belongs to the whole server, and so what others do. A token of the owner's may be meant for less.
    pub fn may_see_server(&self) -> bool {
        self.has_scope(Scope::Admin)
    }

    /// Naming a program that the server then starts.
    pub fn may_name_program(&self, remote_commands: bool) -> Result<(), Denied> {
        self.require_scope(Scope::Admin, "naming a program to start")?;
        match self.transport {
            Transport::Local => Ok(()),
            Transport::Loopback | Transport::Network if remote_commands => Ok(()),
            Transport::Loopback | Transport::Network => Err(Denied::Setting("server.allow_remote_commands".into())),
        }
    }

    /// The policy of a session that this caller begins, if it would like this one.
    ///
    /// Settings that it saved or that an older session has are a wish: without the scope they tighten, never loosen.
    pub fn allowed_policy(&self, default: Policy, wanted: Policy) -> Policy {
        if self.may_loosen_policy(default, wanted).is_ok() { wanted } else { default }
    }

    /// The settings of an older session for a new one of this caller's.
    pub fn inherited_settings(&self, default: Policy, old: Settings) -> Settings {
        let policy = self.allowed_policy(default, old.policy);
        Settings { policy, policy_chosen: old.policy_chosen && policy == old.policy, ..old }
    }

    fn may_change_server(&self, action: &'static str) -> Result<(), Denied> {
        self.require_scope(Scope::Admin, action)?;
        if self.is_owner() { Ok(()) } else { Err(Denied::OwnerOnly(action.into())) }
    }

    fn require_scope(&self, scope: Scope, action: &'static str) -> Result<(), Denied> {
        if self.has_scope(scope) { Ok(()) } else { Err(Denied::Scope { action: action.into(), scope }) }
    }
}

/// What every command needs, whatever session it is for.
pub fn authorize_any_command(caller: &Caller, command: &Command) -> Result<(), Denied> {
    match command {
        Command::Answer { .. } => caller.may_answer(),
        Command::Prompt { .. }
        | Command::Cancel { .. }
        | Command::Configure { .. }
        | Command::SetTitle { .. }
        | Command::SetState { .. }
        | Command::Archive { .. }
        | Command::MarkText { .. }
        | Command::Reset { .. } => caller.may_prompt(),
    }
}

/// The same for this session, where the server's settings have this policy.
///
/// A mode only narrows what the session's policy allows, so choosing one never loosens it.
pub fn authorize_command(
    caller: &Caller,
    view: &SessionView,
    setting: Policy,
    command: &Command,
) -> Result<(), Denied> {
    authorize_any_command(caller, command)?;
    match command {
        Command::Configure { patch } => {
            let mut after: Settings = view.settings.clone();
            after.apply_patch(patch);
            // What counts now: what a session was begun with may be looser than the settings are by now.
            let counts = |settings: &Settings| settings.session_policy().under_setting(setting);
            caller.may_loosen_policy(counts(&view.settings), counts(&after))
        }
        Command::Answer { .. }
        | Command::Prompt { .. }
        | Command::Cancel { .. }
        | Command::SetTitle { .. }
        | Command::SetState { .. }
        | Command::Archive { .. }
        | Command::MarkText { .. }
        | Command::Reset { .. } => Ok(()),
    }
}

/// Beginning a session, where sessions have this policy unless somebody loosens it.
pub fn authorize_creation(caller: &Caller, init: &SessionInit, default: Policy) -> Result<(), Denied> {
    caller.may_prompt()?;
    caller.may_loosen_policy(default, init.settings.policy)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::Principal;

    use super::*;

    fn caller(scopes: &[Scope], transport: Transport) -> Caller {
        let scopes = scopes.iter().copied().collect();
        Caller { scopes, transport, ..Caller::local(Principal::named("ann")) }
    }

    #[test]
    fn the_whole_server_is_for_admins_to_see_whoever_they_are() {
        let owner = |scopes: &[Scope]| Caller { principal: Principal::owner(), ..caller(scopes, Transport::Network) };
        assert!(!owner(&[Scope::Read, Scope::Prompt, Scope::Approve]).may_see_server(), "an owner's lesser token");
        assert!(owner(&[Scope::Admin]).may_see_server() && Caller::local_owner().may_see_server());
        assert!(caller(&[Scope::Admin], Transport::Network).may_see_server());
    }

    #[test]
    fn tightening_is_free_and_loosening_is_not() {
        let prompts = caller(&[Scope::Prompt], Transport::Loopback);
        let all = [Policy::ReadOnly, Policy::Ask, Policy::AutoEdit, Policy::Auto];
        for (from, to) in all.iter().flat_map(|from| all.iter().map(move |to| (*from, *to))) {
            assert_eq!(prompts.may_loosen_policy(from, to).is_ok(), to <= from, "{from:?} to {to:?}");
        }
        assert_eq!(prompts.allowed_policy(Policy::Ask, Policy::Auto), Policy::Ask);
        assert_eq!(prompts.allowed_policy(Policy::Ask, Policy::ReadOnly), Policy::ReadOnly);
    }

    #[test]
    fn programs_need_the_scope_and_the_place() {
        let named = |scopes: &[Scope], transport, remote| caller(scopes, transport).may_name_program(remote).is_ok();
        let admin = [Scope::Admin];
        assert!(named(&admin, Transport::Local, false));
        assert!(named(&admin, Transport::Network, true));
        assert!(!named(&admin, Transport::Loopback, false));
        assert!(!named(&[Scope::Prompt, Scope::Approve], Transport::Local, true));
    }

    #[test]
    fn what_every_session_has_is_the_owners_with_the_scope() {
        assert!(Caller::local_owner().may_change_server_settings().is_ok());
        let other = caller(&[Scope::Admin], Transport::Local);
        assert_eq!(other.may_trust(), Err(Denied::OwnerOnly("trusting a folder".into())));
        let visitor = Caller::local_owner().without_scopes();
        assert_eq!(visitor.may_trust(), Err(Denied::Scope { action: "trusting a folder".into(), scope: Scope::Admin }));
    }

    #[test]
    fn what_a_session_was_begun_with_is_no_licence_once_the_settings_are_stricter() {
        let prompts = caller(&[Scope::Prompt], Transport::Network);
        let approves = caller(&[Scope::Prompt, Scope::Approve], Transport::Network);
        let mut view = SessionView::from_created(&crate::Entry {
            seq: crate::Seq(1),
            at: crate::Timestamp::from_micros(0),
            run: None,
            event: crate::Event::SessionCreated {
                session: crate::SessionId::new(uuid::Uuid::nil()),
                owner: Principal::owner(),
                workspace: "/".to_owned(),
                folders: vec![],
                settings: Settings { policy: Policy::Auto, ..Settings::new("gander", "assistant") },
                parent: None,
                inherited: Box::default(),
            },
            meta: None,
        })
        .unwrap();
        let choose = |policy| Command::Configure {
            patch: crate::SettingsPatch { policy: Some(policy), ..crate::SettingsPatch::default() },
        };
        let may = |caller: &Caller, view: &SessionView, setting, policy| {
            authorize_command(caller, view, setting, &choose(policy)).is_ok()
        };
        assert!(may(&prompts, &view, Policy::Auto, Policy::Auto));
        assert!(!may(&prompts, &view, Policy::Ask, Policy::Auto), "it counts as ask by now");
        assert!(may(&prompts, &view, Policy::Ask, Policy::ReadOnly));
        assert!(may(&approves, &view, Policy::Ask, Policy::Auto));
        view.settings.policy_chosen = true;
        assert!(may(&prompts, &view, Policy::Ask, Policy::Auto), "somebody who may chose it");
    }
}
