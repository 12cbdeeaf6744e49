//! Tools of our own as extensions: which are on, everywhere and in a session.

use std::path::Path;
use std::sync::PoisonError;

use gander_domain::{SessionId, SessionView};
use gander_mcp::Spec;
use gander_tools::{BuiltIn, BuiltIns};

use super::entry::ExtensionEntry;
use super::registry::{AddedExtension, ExtensionScope};
use super::{ExtensionError, Extensions};

impl Extensions {
    /// Those that a session has.
    pub fn built_ins(&self, view: &SessionView) -> BuiltIns {
        self.resolve_servers(view.session, &view.owner, Path::new(&view.workspace), &self.client_specs(view.session))
            .built_ins
    }

    /// Each of them, and whether every session has it. A server of the same name takes its place.
    pub fn built_in_switches(&self) -> Vec<(BuiltIn, bool)> {
        let servers = self.known_with_switch();
        let free = |built_in: &BuiltIn| servers.iter().all(|(spec, _)| spec.name != built_in.name());
        BuiltIn::ALL.into_iter().filter(free).map(|built_in| (built_in, self.is_globally_on(built_in))).collect()
    }

    /// Those that every session has.
    pub fn built_ins_everywhere(&self) -> BuiltIns {
        self.built_in_switches().into_iter().filter(|(_, on)| *on).map(|(built_in, _)| built_in).collect()
    }

    /// Those of a session beside these servers. The nearer, the stronger: the owner's, the project's, the session's own.
    pub(super) fn built_ins_beside(
        &self,
        session: SessionId,
        project: &[(String, ExtensionEntry)],
        servers: &[Spec],
    ) -> BuiltIns {
        let on = |built_in: &BuiltIn| {
            let named = |(name, entry): &&(String, ExtensionEntry)| {
                entry.is_built_in() && BuiltIn::from_name(name) == Some(*built_in)
            };
            let project = project.iter().find(named).map(|(_, entry)| entry.enabled != Some(false));
            let own = self.config.registry.built_in_switch(ExtensionScope::Session(session), built_in.name());
            own.or(project).unwrap_or_else(|| self.is_globally_on(*built_in))
        };
        let free = |built_in: &BuiltIn| servers.iter().all(|spec| spec.name != built_in.name());
        BuiltIn::ALL.into_iter().filter(|built_in| on(built_in) && free(built_in)).collect()
    }

    /// Switches one on, here or everywhere.
    pub(super) async fn turn_on_built_in(
        &self,
        range: ExtensionScope,
        built_in: BuiltIn,
    ) -> Result<(), ExtensionError> {
        let added = AddedExtension { entry: ExtensionEntry::built_in(), guarded: false };
        self.config.registry.add(range, built_in.name(), added).await?;
        self.refresh_sessions();
        Ok(())
    }

    /// Switches one off, here or everywhere.
    pub(super) async fn turn_off_built_in(
        &self,
        range: ExtensionScope,
        built_in: BuiltIn,
    ) -> Result<(), ExtensionError> {
        self.config.registry.remove(range, built_in.name()).await?;
        self.refresh_sessions();
        Ok(())
    }

    /// The one of this name, unless a server takes its place.
    pub(super) fn find_built_in(&self, name: &str, servers: &[Spec]) -> Option<BuiltIn> {
        BuiltIn::from_name(name)
            .filter(|known| servers.iter().all(|spec| spec.name != known.name() && spec.name != name))
    }

    fn is_globally_on(&self, built_in: BuiltIn) -> bool {
        let written = self.switched.read().unwrap_or_else(PoisonError::into_inner).get(&built_in).copied();
        let kept = self.config.registry.built_in_switch(ExtensionScope::Everywhere, built_in.name());
        kept.or(written).unwrap_or_else(|| built_in.is_default())
    }
}
