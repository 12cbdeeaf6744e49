//! Agents that the settings name: programs and servers that speak ACP, servers of other protocols, and gooses elsewhere.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use gander_domain::AgentManifest;
use gander_runtime::backend::Backend;
use gander_runtime::backend::a2a::A2aProtocol;
use gander_runtime::backend::acp::{AcpAgent, AcpAgentParts, AgentSandbox};
use gander_runtime::backend::acp_rest::AcpRestProtocol;
use gander_runtime::backend::adk::AdkProtocol;
use gander_runtime::backend::goosed::Goosed;
use gander_runtime::backend::remote::{RemoteAgent as ServerAgent, RemoteError, RemoteProtocol, remote_manifest};
use gander_services::agents::{Agent, AgentProblem};
use gander_store::Store;
use gander_tools::FileAccess;
use gander_tools::sandbox::Sandbox;

use crate::config::{AcpSettings, Config, RemoteAgent, RemoteKind, ServerSettings};

/// The agents that the settings name, as they were built last.
pub(super) struct ConfiguredAgents {
    store: Arc<dyn Store>,
    files: FileAccess,
    sandbox: Sandbox,
    /// By the fingerprint of their entries: one that did not change keeps its processes.
    built: Mutex<Vec<(u64, Agent)>>,
}

impl ConfiguredAgents {
    pub(super) fn new(store: Arc<dyn Store>, files: FileAccess, sandbox: Sandbox) -> Self {
        Self { store, files, sandbox, built: Mutex::default() }
    }

    /// The agents of these settings. One that cannot be built is left out, and the log says why.
    pub(super) fn build_all(&self, config: &Config) -> Vec<Agent> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *built);
        for agent in &config.agents {
            let kept = before.iter().find(|(fingerprint, _)| *fingerprint == agent.fingerprint);
            let made = match kept {
                Some((_, kept)) => Ok(kept.clone()),
                None => self.build(config, agent),
            };
            match made {
                Ok(made) => built.push((agent.fingerprint, made)),
                Err(error) => tracing::error!(agent = agent.name, %error, "an agent of the settings is left out"),
            }
        }
        built.iter().map(|(_, agent)| agent.clone()).collect()
    }

    /// One agent.
    pub(super) fn build(&self, config: &Config, agent: &RemoteAgent) -> anyhow::Result<Agent> {
        let RemoteAgent { name, title, description, kind, .. } = agent;
        let (mut manifest, backend, problem): (_, Arc<dyn Backend>, _) = match kind {
            RemoteKind::Goosed(remote) => {
                let goosed = Goosed::new(name, remote.clone(), Arc::clone(&self.store));
                let goosed = goosed.with_context(|| format!("the agent cannot be spoken to: {name}"))?;
                (remote.agent_manifest(name), Arc::new(goosed), None)
            }
            RemoteKind::Acp(settings) => {
                let parts = AcpAgentParts {
                    name: name.clone(),
                    address: settings.address.clone(),
                    folder: settings.folder.clone(),
                    login: settings.login.clone(),
                    idle_timeout: settings.idle_timeout,
                    tells_transcript: settings.tells_transcript,
                    files: self.files.clone(),
                    environment: config.tool_environment.clone(),
                    sandbox: settings.sandbox.clone().map(|writable| AgentSandbox {
                        sandbox: self.sandbox.clone(),
                        home: config.paths.agent_homes_folder().join(name),
                        writable,
                    }),
                };
                let agent = AcpAgent::new(parts, Arc::clone(&self.store));
                (acp_agent_manifest(name, settings), Arc::new(agent), Some(settings.clone()))
            }
            RemoteKind::A2a(settings) => {
                let protocol = A2aProtocol::new(settings.endpoint.clone(), settings.version);
                (server_manifest(name, "A2A", settings), self.server_agent(name, settings, protocol)?, None)
            }
            RemoteKind::AcpRest(settings) => {
                let protocol = AcpRestProtocol::new(&settings.endpoint, settings.agent.clone());
                (server_manifest(name, "ACP-REST", settings), self.server_agent(name, settings, protocol)?, None)
            }
            RemoteKind::Adk(settings) => {
                let protocol = AdkProtocol::new(&settings.endpoint, settings.agent.clone(), settings.user.clone());
                (server_manifest(name, "ADK", settings), self.server_agent(name, settings, protocol)?, None)
            }
        };
        manifest.title = title.clone().unwrap_or(manifest.title);
        manifest.description = description.clone().unwrap_or(manifest.description);
        let agent = Agent::new(manifest, backend);
        Ok(match problem {
            Some(settings) => agent.with_check(move || find_agent_problem(&settings)),
            None => agent,
        })
    }

    fn server_agent<P: RemoteProtocol>(
        &self,
        name: &str,
        settings: &ServerSettings,
        protocol: Result<P, RemoteError>,
    ) -> anyhow::Result<Arc<dyn Backend>> {
        let protocol = protocol.with_context(|| format!("the agent cannot be spoken to: {name}"))?;
        Ok(Arc::new(ServerAgent::new(name, protocol, Arc::clone(&self.store), settings.tells_history)))
    }
}

fn server_manifest(name: &str, protocol: &str, settings: &ServerSettings) -> AgentManifest {
    remote_manifest(name, protocol, &settings.endpoint.url)
}

fn acp_agent_manifest(name: &str, settings: &AcpSettings) -> AgentManifest {
    let mut manifest = AgentManifest::new(name, name, format!("The agent behind `{}`", settings.place));
    manifest.takes.push("image/*".to_owned());
    manifest.tags.push("acp".to_owned());
    manifest
}

/// Why an agent cannot run here, as far as can be told without starting it.
fn find_agent_problem(settings: &AcpSettings) -> Option<AgentProblem> {
    let missing = settings.program.as_ref()?.find_program().err()?;
    Some(AgentProblem { reason: missing.to_string(), fix: settings.install.clone() })
}
