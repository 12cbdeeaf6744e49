//! An agent as a program on this machine: found, checked, started, watched, started again on request.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::process::{Ended, Process};
use crate::schema::Implementation;
use crate::{CallError, Client, Handler, LinkError, Search, SearchError, Version, VersionError};

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct Launch {
    search: Search,
    minimum: Option<Version>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
}

/// How an agent is.
#[derive(Clone, Debug)]
pub enum Status {
    /// It is being started.
    Starting,
    /// It runs and has introduced itself.
    Running,
    /// It was stopped.
    Stopped,
    /// It could not be started.
    Failed(Arc<StartError>),
    /// It ended unasked.
    Crashed(Arc<Ended>),
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
    Spawn {
        /// Which.
        program: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// It ended before it had introduced itself.
    #[error("the agent ended before it was ready: {0}")]
    Died(Arc<Ended>),
    /// It did not introduce itself as it should.
    #[error("the agent did not introduce itself: {0}")]
    Hello(CallError),
}

/// An agent as a program on this machine. Dropping it stops it.
#[derive(Debug)]
pub struct Agent {
    launch: Launch,
    who: Implementation,
    handler: Handle,
    status: watch::Sender<Status>,
    current: Option<(Client, Process)>,
}

/// A handler that need not be shown.
struct Handle(Arc<dyn Handler>);

impl Launch {
    /// The program that this search finds, each time anew.
    pub fn of(search: impl Into<Search>) -> Self {
        let (arguments, environment) = (Vec::new(), Vec::new());
        Self { search: search.into(), minimum: None, arguments, environment, folder: None }
    }

    /// Only if `--version` says at least this.
    #[must_use]
    pub fn at_least(mut self, minimum: Version) -> Self {
        self.minimum = Some(minimum);
        self
    }

    /// One more argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// One more variable of its environment, which is else that of this process.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The folder that it starts in.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }
}

impl Agent {
    /// Finds, checks and starts the program, and introduces this client to it.
    pub async fn start(
        launch: Launch,
        who: Implementation,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, Arc<StartError>> {
        let (status, _) = watch::channel(Status::Starting);
        let mut agent = Self { launch, who, handler: Handle(handler), status, current: None };
        agent.restart().await?;
        Ok(agent)
    }

    /// Calls go through here. After a crash they fail with -32000 until a [`restart`](Self::restart).
    pub fn client(&self) -> Result<&Client, CallError> {
        self.current.as_ref().map(|(client, _)| client).ok_or_else(|| CallError::Gone(Arc::new(LinkError::Disposed)))
    }

    /// How it is, now and from now on.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// Stops it if it runs, looks for the program again and starts it.
    pub async fn restart(&mut self) -> Result<(), Arc<StartError>> {
        self.halt().await;
        self.status.send_replace(Status::Starting);
        match self.launch().await {
            Ok((client, process)) => {
                self.status.send_replace(Status::Running);
                tokio::spawn(watch_over(process.ended(), client.clone(), self.status.clone()));
                self.current = Some((client, process));
                Ok(())
            }
            Err(error) => {
                let error = Arc::new(error);
                self.status.send_replace(Status::Failed(Arc::clone(&error)));
                Err(error)
            }
        }
    }

    /// Stops it: SIGTERM, and SIGKILL if it still runs after [`STOP_LIMIT`](crate::STOP_LIMIT). Open calls fail with -32000.
    pub async fn stop(mut self) -> Option<Arc<Ended>> {
        self.halt().await
    }

    async fn halt(&mut self) -> Option<Arc<Ended>> {
        let (client, process) = self.current.take()?;
        self.status.send_replace(Status::Stopped);
        client.dispose();
        Some(process.stop().await)
    }

    async fn launch(&self) -> Result<(Client, Process), StartError> {
        let Launch { search, minimum, arguments, environment, folder } = &self.launch;
        let program = search.find()?;
        if let Some(minimum) = minimum {
            Version::check(&program, *minimum).await?;
        }
        let (process, link) = Process::start(&program, arguments, environment, folder.as_ref())
            .map_err(|reason| StartError::Spawn { program, reason })?;
        match Client::connect(link, self.who.clone(), Arc::clone(&self.handler.0)).await {
            Ok(client) => Ok((client, process)),
            Err(CallError::Gone(_)) => Err(StartError::Died(process.stop().await)),
            Err(error) => Err(StartError::Hello(error)),
        }
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handler")
    }
}

/// Tells of a crash: an end that nobody asked for.
async fn watch_over(ended: impl Future<Output = Arc<Ended>>, client: Client, status: watch::Sender<Status>) {
    let ended = ended.await;
    client.gone().await;
    status.send_if_modified(|status| {
        let crashed = matches!(status, Status::Running);
        if crashed {
            *status = Status::Crashed(ended);
        }
        crashed
    });
}
