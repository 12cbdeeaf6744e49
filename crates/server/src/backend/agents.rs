//! The agents of this server: each a manifest and whatever runs it. A session's settings name the one that serves it.

use std::sync::Arc;

use async_trait::async_trait;
use gander_domain::{AgentManifest, Outcome, Report, SessionView, Settings};

use super::{Backend, Holding, Stay};

/// All agents. The first serves whoever names none.
pub struct Agents {
    first: Agent,
    others: Vec<Agent>,
    /// The first answers to every name.
    any_name: bool,
}

/// One agent.
#[derive(Clone)]
pub struct Agent {
    /// What it is and offers.
    pub manifest: Arc<AgentManifest>,
    /// What runs it.
    pub backend: Arc<dyn Backend>,
}

/// There is one of this name already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two agents of this name: {0}")]
pub struct NameTaken(pub String);

impl Agent {
    /// An agent that this back-end runs.
    pub fn new(manifest: AgentManifest, backend: Arc<dyn Backend>) -> Self {
        Self { manifest: Arc::new(manifest), backend }
    }
}

impl Agents {
    /// With one agent, the default.
    pub fn new(first: Agent) -> Self {
        Self { first, others: Vec::new(), any_name: false }
    }

    /// One agent that answers to every name.
    pub fn only(agent: Agent) -> Self {
        Self { any_name: true, ..Self::new(agent) }
    }

    /// One more.
    pub fn add(&mut self, agent: Agent) -> Result<(), NameTaken> {
        if self.find(&agent.manifest.name).is_some() {
            return Err(NameTaken(agent.manifest.name.clone()));
        }
        self.others.push(agent);
        Ok(())
    }

    /// The agent of whoever names none.
    pub fn default_manifest(&self) -> &Arc<AgentManifest> {
        &self.first.manifest
    }

    /// What the agent of this name is.
    pub fn manifest(&self, name: &str) -> Option<&Arc<AgentManifest>> {
        self.find(name).map(|agent| &agent.manifest)
    }

    /// What all of them are, the default first.
    pub fn manifests(&self) -> impl Iterator<Item = &Arc<AgentManifest>> {
        std::iter::once(&self.first).chain(&self.others).map(|agent| &agent.manifest)
    }

    /// These settings, for the agent of this name in its default mode.
    pub fn settings(&self, name: &str, base: &Settings) -> Option<Settings> {
        let manifest = self.manifest(name)?;
        let mode = manifest.default_mode().to_owned();
        Some(Settings { agent: manifest.name.clone(), mode, ..base.clone() })
    }

    fn find(&self, name: &str) -> Option<&Agent> {
        let mut agents = std::iter::once(&self.first).chain(&self.others);
        agents.find(|agent| agent.manifest.name == name).or_else(|| self.any_name.then_some(&self.first))
    }
}

#[async_trait]
impl Backend for Agents {
    async fn drive(&self, stay: Stay) {
        match self.find(&stay.view.settings.agent) {
            Some(agent) => agent.backend.drive(stay).await,
            None => {
                let message = format!("no such agent here: {}", stay.view.settings.agent);
                // Nobody hears it only if the session is gone.
                drop(stay.reports.send(Report::Ended(Outcome::failed("agent", message))).await);
            }
        }
    }
    async fn opened(&self, view: &SessionView) {
        if let Some(agent) = self.find(&view.settings.agent) {
            agent.backend.opened(view).await;
        }
    }

    async fn closing(&self, view: &SessionView) {
        if let Some(agent) = self.find(&view.settings.agent) {
            agent.backend.closing(view).await;
        }
    }

    async fn holdings(&self, view: &SessionView) -> Vec<String> {
        match self.find(&view.settings.agent) {
            Some(agent) => agent.backend.holdings(view).await,
            None => Vec::new(),
        }
    }

    async fn holding(&self, view: &SessionView, name: &str) -> Option<Holding> {
        self.find(&view.settings.agent)?.backend.holding(view, name).await
    }
}
