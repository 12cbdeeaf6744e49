//! An agent as a program on this machine: found, checked, started, watched, started again on request.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::agent_launch::AgentLaunch;
use crate::process::{AgentProcess, ProcessExit};
use crate::schema::Implementation;
use crate::{CallError, Client, Handler, LinkError, SearchError, Version, VersionError};

/// How an agent is.
#[derive(Clone, Debug)]
pub enum AgentStatus {
    /// It is being started.
    Starting,
    /// It runs and has introduced itself.
    Running,
    /// It was stopped.
    Stopped,
    /// It could not be started.
    Failed(Arc<StartError>),
    /// It ended unasked.
    Crashed(Arc<ProcessExit>),
}

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It is not there.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// It is of the wrong version.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// It cannot be run.
    #[error("cannot start {program}: {reason}")]
    Spawn { program: PathBuf, reason: io::Error },
    /// It ended before it had introduced itself.
    #[error("the agent ended before it was ready: {0}")]
    Died(Arc<ProcessExit>),
    /// It did not introduce itself as it should.
    #[error("the agent did not introduce itself: {0}")]
    Hello(CallError),
}

/// An agent as a program on this machine. Dropping it stops it.
#[derive(Debug)]
pub struct Agent {
    launch: AgentLaunch,
    who: Implementation,
    handler: OpaqueHandler,
    status: watch::Sender<AgentStatus>,
    current: Option<(Client, AgentProcess)>,
}

/// A handler that need not be shown.
struct OpaqueHandler(Arc<dyn Handler>);

impl Agent {
    /// Finds, checks and starts the program, and introduces this client to it.
    pub async fn start(
        launch: AgentLaunch,
        who: Implementation,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, Arc<StartError>> {
        let (status, _) = watch::channel(AgentStatus::Starting);
        let mut agent = Self { launch, who, handler: OpaqueHandler(handler), status, current: None };
        agent.restart_process().await?;
        Ok(agent)
    }

    /// Calls go through here. After a crash they fail with -32000 until a [`restart`](Self::restart).
    pub fn running_client(&self) -> Result<&Client, CallError> {
        self.current.as_ref().map(|(client, _)| client).ok_or_else(|| CallError::Gone(Arc::new(LinkError::Disposed)))
    }

    /// How it is, now and from now on.
    pub fn status_changes(&self) -> watch::Receiver<AgentStatus> {
        self.status.subscribe()
    }

    /// Stops it if it runs, looks for the program again and starts it.
    pub async fn restart_process(&mut self) -> Result<(), Arc<StartError>> {
        self.stop_process().await;
        self.status.send_replace(AgentStatus::Starting);
        match self.launch_process().await {
            Ok((client, process)) => {
                self.status.send_replace(AgentStatus::Running);
                tokio::spawn(watch_for_crash(process.wait_exit(), client.clone(), self.status.clone()));
                self.current = Some((client, process));
                Ok(())
            }
            Err(error) => {
                let error = Arc::new(error);
                self.status.send_replace(AgentStatus::Failed(Arc::clone(&error)));
                Err(error)
            }
        }
    }

    /// Stops it: SIGTERM, and SIGKILL if it still runs after [`STOP_TIMEOUT`](crate::STOP_TIMEOUT). Open calls fail with -32000.
    pub async fn stop(mut self) -> Option<Arc<ProcessExit>> {
        self.stop_process().await
    }

    async fn stop_process(&mut self) -> Option<Arc<ProcessExit>> {
        let (client, process) = self.current.take()?;
        self.status.send_replace(AgentStatus::Stopped);
        client.close_connection();
        Some(process.stop().await)
    }

    async fn launch_process(&self) -> Result<(Client, AgentProcess), StartError> {
        let program = self.launch.search.find_program()?;
        if let Some(minimum) = self.launch.minimum {
            Version::check_minimum(&program, minimum).await?;
        }
        let (process, link) = AgentProcess::start(self.launch.process_command(&program))
            .map_err(|reason| StartError::Spawn { program, reason })?;
        match Client::connect(link, self.who.clone(), Arc::clone(&self.handler.0)).await {
            Ok(client) => Ok((client, process)),
            Err(CallError::Gone(_)) => Err(StartError::Died(process.stop().await)),
            Err(error) => Err(StartError::Hello(error)),
        }
    }
}

impl std::fmt::Debug for OpaqueHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handler")
    }
}

/// Tells of a crash: an end that nobody asked for.
async fn watch_for_crash(
    ended: impl Future<Output = Arc<ProcessExit>>,
    client: Client,
    status: watch::Sender<AgentStatus>,
) {
    let ended = ended.await;
    client.wait_gone().await;
    status.send_if_modified(|status| {
        let crashed = matches!(status, AgentStatus::Running);
        if crashed {
            *status = AgentStatus::Crashed(ended);
        }
        crashed
    });
}
