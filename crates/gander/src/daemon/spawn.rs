//! Starting this very binary as a background server.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::config::Config;

/// Above this the log of background servers begins anew.
const MAX_LOG_BYTES: u64 = 1 << 20;

/// What goose's variables choose is for the sessions of whoever has them, and travels with its attachment: the server is
/// everybody's.
const OF_ONE_CALLER: [&str; 4] = ["GOOSE_PROVIDER", "GOOSE_MODEL", "GOOSE_MODE", "GOOSE_SERVER__SECRET_KEY"];

/// A background server that was just started.
#[derive(Debug)]
pub(super) struct Spawned {
    child: Child,
}

impl Spawned {
    /// Starts it: away from this terminal and folder, its words in a log file.
    pub(super) fn start(config: &Config) -> io::Result<Self> {
        let log = open_server_log(&config.paths.server_log())?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--background", "--data"]).arg(config.paths.data_directory());
        if config.file.exists() {
            command.arg("--config").arg(std::path::absolute(&config.file)?);
        }
        for name in OF_ONE_CALLER {
            command.env_remove(name);
        }
        command.current_dir("/").stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Self { child: command.spawn()? })
    }

    /// How it ended, if it has.
    pub(super) fn exit_status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// It runs on without us. Should it end before us, somebody has to notice.
    pub(super) fn detach(mut self) {
        std::thread::spawn(move || self.child.wait());
    }
}

fn open_server_log(path: &Path) -> io::Result<std::fs::File> {
    let full = std::fs::metadata(path).is_ok_and(|log| log.len() > MAX_LOG_BYTES);
    if full {
        std::fs::remove_file(path)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
